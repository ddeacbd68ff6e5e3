"""Poisson regression of counts by a parabola in place of e^z."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, hyp0f1, hyp1f1

from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError, NotCertifiedError
from blurfit.theory.losses.parabola import Parabola, reach_of, worst
from blurfit.theory.losses.quadratic import Quadratic
from blurfit.theory.losses.records import read, within
from blurfit.theory.roots import brent
from blurfit.theory.setting import APPROXIMATIONS, Approximation
from blurfit.validate import one_of, positive

LARGEST_EXPONENT = 100.0  # rates up to e¹⁰⁰ ≈ 10⁴³: nobody counts so far, and nothing overflows


@dataclass(frozen=True)
class PoissonLoss:
    """e^z − yz + ln y! with e^z ≈ a + bz + ½cz²; so q = √c·x, p = (y − b)x and s = a + ln y!.

    It is the negative log-likelihood of a count y of rate e^z, z = w·x. With ‖x‖ ≤ R and 0 ≤ y ≤ Y
    (`count_bound`): R_q = √c·R and R_p = R·max(|b|, |Y − b|), since |y − b| is largest at an end of
    [0, Y]. It is `parallel`, because p = κq with κ = (y − b)/√c, and |κ| ≤ R_p/R_q. Targets between
    whole numbers are taken as well (ln y! is ln Γ(y + 1)).

    Taylor's c = 1 is the least of the three, so a better approximation has a larger R_q, and asks
    for more noise: it pays where records are many.

    Args:
        count_bound: Y, the largest count that may occur; records beyond are refused.
        weight_bound: η; the parabola is fitted over |z| ≤ ηR.
        feature_bound: R, the bound on ‖x‖; records outside are refused.
        approximation: "chebyshev", of the least largest error; "least-squares"; or "taylor" at 0.

    >>> loss = PoissonLoss(count_bound=5, weight_bound=1.0)
    >>> taylor = PoissonLoss(count_bound=5, weight_bound=1.0, approximation="taylor")
    >>> round(loss.approximation_error(), 3), round(taylor.approximation_error(), 3)
    (0.045, 0.218)
    """

    count_bound: float
    weight_bound: float
    feature_bound: float = 1.0
    approximation: Approximation = "chebyshev"
    parallel: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(
            count_bound=self.count_bound,
            weight_bound=self.weight_bound,
            feature_bound=self.feature_bound,
        )
        one_of(APPROXIMATIONS, approximation=self.approximation)
        refuse_exponent(self.weight_bound * self.feature_bound, "weight_bound * feature_bound")

    @cached_property
    def parabola(self) -> Parabola:
        """The a + bz + ½cz² in place of e^z."""
        reach = self.weight_bound * self.feature_bound
        if self.approximation == "taylor":
            return Parabola(1.0, 1.0, 1.0)
        return _chebyshev(reach) if self.approximation == "chebyshev" else _least_squares(reach)

    @property
    def q_bound(self) -> float:
        """R_q = √c·R."""
        return math.sqrt(self.parabola.curvature) * self.feature_bound

    @property
    def p_bound(self) -> float:
        """R_p = R·max(|b|, |Y − b|)."""
        b = self.parabola.slope
        return self.feature_bound * max(abs(b), abs(self.count_bound - b))

    def terms(self, features: ArrayLike, target: ArrayLike) -> Quadratic:
        """(√c·x, (y − b)x, a + ln y!) of each record."""
        records = read(features, target, self.feature_bound)
        y = counts(records.target, self.count_bound)
        a, b, c = self.parabola.constant, self.parabola.slope, self.parabola.curvature
        return Quadratic(records.along(math.sqrt(c)), records.along(y - b), a + gammaln(y + 1))

    def approximation_error(self, weight_bound: float | None = None) -> float:
        """The largest |e^z − a − bz − ½cz²| over |z| ≤ ηR, never rounded down.

        The error's slope e^z − b − cz has the derivative e^z − c, so it falls until z = ln c and
        rises from there.
        """
        reach = reach_of(self.feature_bound, weight_bound, self.weight_bound)
        refuse_exponent(reach, "weight_bound * feature_bound")
        parabola = self.parabola
        b, c = parabola.slope, parabola.curvature
        return worst(
            lambda z: math.exp(z) - parabola(z),
            lambda z: math.exp(z) - b - c * z,
            (-reach, min(max(math.log(c), -reach), reach), reach),
            size=math.exp(reach) + abs(parabola.constant) + reach * (abs(b) + c * reach / 2),
        )


def counts(y: FloatArray, count_bound: float) -> FloatArray:
    """The targets, if they lie in [0, Y]."""
    remedy = "counts are at least 0; cap them in public at count_bound, or agree on a larger one"
    return within(y, 0.0, count_bound, f"0 and count_bound={count_bound:g}", remedy)


def refuse_exponent(exponent: float, name: str) -> None:
    """Refuse rates beyond e¹⁰⁰."""
    if exponent > LARGEST_EXPONENT:
        raise InvalidValueError(
            f"Expected {name}={exponent:g} <= {LARGEST_EXPONENT:g}, as rates may be its exponential"
            "; choose smaller weights, or scale the features."
        )


def _least_squares(reach: float) -> Parabola:
    """The L² projection: a = ₀F₁(3/2) − cZ²/6, b = ₀F₁(5/2) and c = ₀F₁(7/2), each at Z²/4.

    The Legendre coefficients of e^{Zt} are (2k + 1)i_k(Z), with i_k the modified spherical Bessel
    functions, so b = 3i₁(Z)/Z and c = 15i₂(Z)/Z². Integrated by parts, as for the logistic loss,
    they are means of e^{Zt}, by ¾(1 − t²) and by 15/16·(1 − t²)²; and these are the confluent ₀F₁
    above, in which nothing is divided by a Z that may be small. The constant makes the mean error
    zero: ₀F₁(3/2; Z²/4) = sinh(Z)/Z is the mean of e^z, and Z²/3 that of z².
    """
    square = reach**2 / 4
    mean, b, c = (float(hyp0f1(order, square)) for order in (1.5, 2.5, 3.5))
    return Parabola(mean - c * reach**2 / 6, b, c)


def _chebyshev(reach: float) -> Parabola:
    """The best uniform one: its error is −E, +E, −E, +E at −Z < z₁ < z₂ < Z.

    Four such points make it the best (Chebyshev): a better one would differ from it by a parabola
    that changes its sign three times. They are found by Remez' exchange, in t = z/Z and for the
    cubic remainder of e^z only,

        ρ(t) = (e^{Zt} − 1 − Zt − (Zt)²/2)·6/Z³ = t³·₁F₁(1; 4; Zt),

    which loses no digits as Z → 0 (there ρ = t³, of which ¾t is the best approximation). Each round
    solves α + βt + γt² ± E = ρ at four points, then moves the inner two to the zeros of the slope
    ρ' − β − 2γt. These exist: ρ' is convex, for ρ''' ∝ e^{Zt} > 0, and the error rises, falls and
    rises from point to point, so its slope is positive at both ends and negative at its lowest,
    where ρ'' = 2γ. Last, a = 1 + αZ³/6, b = 1 + βZ²/6 and c = 1 + γZ/3.

    c > 0: an error that changes its sign three times is zero at three points, so the parabola
    interpolates e^z there, and its second derivative is that of e^z somewhere between.
    """
    inner = (-0.5, 0.5)
    for _ in range(40):
        t = np.array([-1.0, *inner, 1.0])
        system = np.column_stack([np.ones(4), t, t**2, [-1.0, 1.0, -1.0, 1.0]])
        remainder = t**3 * hyp1f1(1, 4, reach * t)
        alpha, beta, gamma, _level = np.linalg.solve(system, remainder).tolist()

        def slope(t: float, b: float = beta, c: float = gamma) -> float:
            return 3 * t**2 * float(hyp1f1(1, 3, reach * t)) - b - 2 * c * t

        lowest = math.log1p(gamma * reach / 3) / reach
        moved = (brent(slope, -1.0, lowest, xtol=1e-15), brent(slope, lowest, 1.0, xtol=1e-15))
        step = max(abs(new - old) for new, old in zip(moved, inner, strict=True))
        inner = moved
        if step < 1e-9:  # convergence is quadratic, so the next step would be below rounding
            a, b, c = 1 + alpha * reach**3 / 6, 1 + beta * reach**2 / 6, 1 + gamma * reach / 3
            return Parabola(a, b, c)
    raise NotCertifiedError(
        f"No best parabola was found over |z| <= {reach:g}; choose approximation='least-squares'."
    )
