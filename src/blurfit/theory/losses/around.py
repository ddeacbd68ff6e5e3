"""The tangent parabola at a model that is public already: one Newton step from last year's weights.

With z₀ = x·w₀ and f the curve in z = x·w, f(z) ≈ f(z₀) + f'(z₀)(z − z₀) + ½f''(z₀)(z − z₀)².
Collected in powers of z

    q = √f''(z₀)·x,    p = (f''(z₀)z₀ − f'(z₀))x,    s = f(z₀) − f'(z₀)z₀ + ½f''(z₀)z₀²,

so value, gradient and Hessian agree with the true loss at w₀, for each record and hence for their
sum, whose minimiser is Newton's step from w₀. The error is of the third order in w − w₀: a good
prior makes it small where the answer lies. The largest error over the whole ball is no smaller for
it (`approximation_error`).

Here p = κq for every record, but |κ| may exceed R_p/R_q where q is short: `parallel` is False.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, gammaln

from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError
from blurfit.theory.losses.logistic import even_part
from blurfit.theory.losses.parabola import Parabola, reach_of, rounded_up, worst
from blurfit.theory.losses.poisson import counts, refuse_exponent
from blurfit.theory.losses.quadratic import Quadratic
from blurfit.theory.losses.records import numbers, read, signs
from blurfit.validate import finite, positive

PriorWeights = Sequence[float] | FloatArray


@dataclass(frozen=True)
class LogisticAround:
    """q = √σ'(z₀)·x and p = (σ'(z₀)z₀ + yσ(−yz₀))x, the logistic loss near z₀ = x·w₀.

    They are the tangent parabola's for f(z) = ln(1 + e^{−yz}), as f' = −yσ(−yz) and f'' = σ', with
    s = ln(1 + e^{−yz₀}) + yσ(−yz₀)z₀ + ½σ'(z₀)z₀². At w₀ = 0 this is `LogisticLoss` by Taylor. With
    ‖x‖ ≤ R, and so |z₀| ≤ Z = R‖w₀‖:

    * R_q = R/2, because σ' ≤ ¼ = σ'(0). (In one dimension z₀ = 0 only at x = 0; elsewhere it is
      attained.)
    * R_p = R·(σ(Z) − Zσ'(Z)), between R/2 and R. The coefficient of p only changes its sign with
      (z₀, y), so let y = −1: it is m(z₀) = z₀σ'(z₀) − σ(z₀), and m' = z₀σ'' ≤ 0 because σ'' has the
      sign of −z₀. From m(−∞) = 0 it falls to m(∞) = −1, so |m| is largest at z₀ = Z: a record that
      the prior model gets wrong, as surely as it can.
    * `parallel` is False: at that record |κ| = (σ(Z) − Zσ'(Z))/√σ'(Z) = cosh(Z/2)·R_p/R_q.

    Args:
        prior_weights: w₀, which must be public: a guess, or published with a guarantee of its own.
        feature_bound: R, the bound on ‖x‖; records outside are refused.
        weight_bound: η, for `approximation_error` only.
    """

    prior_weights: PriorWeights
    feature_bound: float = 1.0
    weight_bound: float | None = None
    parallel: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive(feature_bound=self.feature_bound)
        if self.weight_bound is not None:
            positive(weight_bound=self.weight_bound)
        object.__setattr__(self, "prior_weights", _prior(self.prior_weights))
        finite(**{"‖prior_weights‖ * feature_bound": self._prior_reach})

    @property
    def q_bound(self) -> float:
        """R_q = R/2."""
        return self.feature_bound / 2

    @property
    def p_bound(self) -> float:
        """R_p = R·(σ(Z) − Zσ'(Z)), rounded up."""
        Z = self._prior_reach
        return self.feature_bound * rounded_up(_sigma(Z) - Z * _sigma_slope(Z), 1.0)

    def terms(self, features: ArrayLike, target: ArrayLike) -> Quadratic:
        """The tangent parabola of each record at w₀, for labels −1 and +1."""
        records = read(features, target, self.feature_bound)
        y = signs(records.target)
        z = records.project(np.asarray(self.prior_weights))
        c = expit(z) * expit(-z)
        pull = y * expit(-y * z)  # −f', towards the right side
        s = np.logaddexp(0.0, -y * z) + pull * z + c * z / 2 * z
        return Quadratic(records.along(np.sqrt(c)), records.along(c * z + pull), s)

    def approximation_error(self, weight_bound: float | None = None) -> float:
        """The largest |loss − parabola| over ‖w‖ ≤ η and every record, never rounded down.

        The odd part −yz/2 is linear, so the error is that of the even part g(z) = ln(2cosh(z/2)):

            E(z, z₀) = g(z) − g(z₀) − g'(z₀)(z − z₀) − ½g''(z₀)(z − z₀)²,   |z| ≤ ηR, |z₀| ≤ Z.

        As ∂E/∂z₀ = −½g'''(z₀)(z − z₀)² has the sign of z₀, E is least at z₀ = 0 and largest at an
        end; z₀ = −Z mirrors z₀ = Z, so two z₀ remain, and for each of them a search over z. There
        ∂²E/∂z² = g''(z) − g''(z₀) changes its sign at ±z₀ only, and ∂E/∂z is monotone between.

        At z₀ = 0 this is Taylor's error, so the largest error over the ball is never less than
        Taylor's: the prior helps near itself. Within ‖w − w₀‖ ≤ r the error is at most
        (rR)³/(36√3), since |σ''| ≤ 1/(6√3).
        """
        reach = reach_of(self.feature_bound, weight_bound, self.weight_bound)
        return max(_worst_logistic(0.0, reach), _worst_logistic(self._prior_reach, reach))

    @property
    def _prior_reach(self) -> float:
        return self.feature_bound * math.hypot(*self.prior_weights)


@dataclass(frozen=True)
class PoissonAround:
    """q = e^{z₀/2}·x, p = (y + e^{z₀}(z₀ − 1))x, s = e^{z₀}(1 − z₀ + ½z₀²) + ln y!, with z₀ = x·w₀.

    These are the tangent parabola's for f(z) = e^z − yz + ln y!. At w₀ = 0 they are `PoissonLoss`
    by Taylor. With ‖x‖ ≤ R, and so |z₀| ≤ Z = R‖w₀‖, and 0 ≤ y ≤ Y:

    * R_q = R·e^{Z/2}.
    * R_p = R·max(1, Y + e^Z(Z − 1)). For h(z₀) = e^{z₀}(z₀ − 1) has h' = z₀e^{z₀}: it is least at
      0, where it is −1, and largest at Z, as h(Z) − h(−Z) = 2(Z·cosh(Z) − sinh(Z)) ≥ 0. So y + h
      lies between −1 and Y + h(Z).
    * `parallel` is False: at z₀ = −Z, y = Y, |κ| = |Y − e^{−Z}(1 + Z)|·e^{Z/2}, which for a large Y
      is about e^Z·R_p/R_q.

    Args:
        prior_weights: w₀, which must be public: a guess, or published with a guarantee of its own.
        count_bound: Y, the largest count that may occur; records beyond are refused.
        feature_bound: R, the bound on ‖x‖; records outside are refused.
        weight_bound: η, for `approximation_error` only.
    """

    prior_weights: PriorWeights
    count_bound: float
    feature_bound: float = 1.0
    weight_bound: float | None = None
    parallel: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive(count_bound=self.count_bound, feature_bound=self.feature_bound)
        if self.weight_bound is not None:
            positive(weight_bound=self.weight_bound)
        object.__setattr__(self, "prior_weights", _prior(self.prior_weights))
        refuse_exponent(self._prior_reach, "‖prior_weights‖ * feature_bound")

    @property
    def q_bound(self) -> float:
        """R_q = R·e^{Z/2}, rounded up."""
        return self.feature_bound * rounded_up(math.exp(self._prior_reach / 2), 0.0)

    @property
    def p_bound(self) -> float:
        """R_p = R·max(1, Y + e^Z(Z − 1)), rounded up."""
        Z = self._prior_reach
        h = math.exp(Z) * (Z - 1)
        return self.feature_bound * rounded_up(max(1.0, self.count_bound + h), abs(h))

    def terms(self, features: ArrayLike, target: ArrayLike) -> Quadratic:
        """The tangent parabola of each record at w₀."""
        records = read(features, target, self.feature_bound)
        y = counts(records.target, self.count_bound)
        z = records.project(np.asarray(self.prior_weights))
        rate = np.exp(z)
        s = rate * (1 - z + z**2 / 2) + gammaln(y + 1)
        return Quadratic(records.along(np.sqrt(rate)), records.along(y + rate * (z - 1)), s)

    def approximation_error(self, weight_bound: float | None = None) -> float:
        """The largest |loss − parabola| = max(e^{−Z}·r(v), e^Z·|r(−v)|), never rounded down.

        Here r(u) = e^u − 1 − u − ½u² and v = ηR + Z. The error is E(z, z₀) = e^{z₀}·r(z − z₀). It
        grows in z, as r' = e^u − 1 − u ≥ 0, and falls in z₀, as ∂E/∂z₀ = −½e^{z₀}(z − z₀)². So it
        is largest at (ηR, −Z) and least at (−ηR, Z), and both may occur.
        """
        reach = reach_of(self.feature_bound, weight_bound, self.weight_bound)
        refuse_exponent(reach, "weight_bound * feature_bound")
        Z = self._prior_reach
        v = reach + Z
        above = math.exp(reach) - math.exp(-Z) * (1 + v + v**2 / 2)
        below = math.exp(Z) * (1 - v + v**2 / 2) - math.exp(-reach)
        size = math.exp(reach) + math.exp(Z) * (1 + v + v**2 / 2)
        return rounded_up(max(above, below), size)

    @property
    def _prior_reach(self) -> float:
        return self.feature_bound * math.hypot(*self.prior_weights)


def _worst_logistic(centre: float, reach: float) -> float:
    c = _sigma_slope(centre)
    tangent = Parabola(even_part(centre), math.tanh(centre / 2) / 2, c)
    inside = sorted(min(max(edge, -reach), reach) for edge in (-centre, centre))
    return worst(
        lambda z: even_part(z) - tangent(z - centre),
        lambda z: math.tanh(z / 2) / 2 - tangent.slope - c * (z - centre),
        (-reach, *inside, reach),
        size=even_part(reach) + 2 * even_part(centre) + tangent(reach + centre),
    )


def _prior(weights: PriorWeights) -> tuple[float, ...]:
    """The prior as a tuple: so losses can be compared, hashed and printed, and never change."""
    w = numbers(prior_weights=weights)
    if w.ndim != 1 or w.size == 0 or not np.isfinite(w).all():
        raise InvalidValueError(
            "Expected prior_weights to be a vector of finite numbers, one per feature, "
            f"and got {weights!r}."
        )
    return tuple(w.tolist())


def _sigma(z: float) -> float:
    return float(expit(z))


def _sigma_slope(z: float) -> float:
    return float(expit(z) * expit(-z))
