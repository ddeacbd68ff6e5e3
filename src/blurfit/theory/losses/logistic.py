"""Logistic regression by a parabola in place of ln(2cosh(z/2))."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError
from blurfit.theory.losses.parabola import Parabola, reach_of, worst
from blurfit.theory.losses.quadratic import Quadratic
from blurfit.theory.losses.records import read, signs
from blurfit.theory.setting import APPROXIMATIONS, Approximation
from blurfit.validate import one_of, positive

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_PANEL = 2.0
_FADED = 48.0  # e⁻⁴⁸ is less than half a unit in the last place of 1


@dataclass(frozen=True)
class LogisticLoss:
    """ln(1 + e^{−yz}) = −yz/2 + g(z) ≈ −yz/2 + a + ½cz²; so q = √c·x, p = ½yx and s = a.

    Here z = w·x and g(z) = ln(2cosh(z/2)), since 1 + e^{−yz} = e^{−yz/2}·(e^{yz/2} + e^{−yz/2}) and
    |y| = 1. The label enters by the odd part only, and that part is linear: p is exact whichever
    parabola is chosen, and only the even part is approximated.

    With ‖x‖ ≤ R: R_q = √c·R and R_p = R/2. It is `parallel`, because p = κq with |κ| = 1/(2√c),
    which is R_p/R_q. Since c ≤ ¼, which is Taylor's, the other approximations need less noise too.

    Args:
        feature_bound: R, the bound on ‖x‖; records outside are refused.
        approximation: "taylor" at z = 0; or over |z| ≤ ηR "chebyshev", of the least largest error,
            or "least-squares".
        weight_bound: η; needed except for "taylor".

    >>> LogisticLoss().q_bound, LogisticLoss().p_bound
    (0.5, 0.5)
    >>> round(LogisticLoss(approximation="chebyshev", weight_bound=2.0).approximation_error(), 4)
    0.0074
    >>> round(LogisticLoss().approximation_error(weight_bound=2.0), 4)
    0.0662
    """

    feature_bound: float = 1.0
    approximation: Approximation = "taylor"
    weight_bound: float | None = None
    parallel: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(feature_bound=self.feature_bound)
        one_of(APPROXIMATIONS, approximation=self.approximation)
        if self.weight_bound is not None:
            reach_of(self.feature_bound, self.weight_bound)
        elif self.approximation != "taylor":
            raise InvalidValueError(
                f"Expected weight_bound with approximation={self.approximation!r}, which is fitted "
                "over |w·x| <= weight_bound * feature_bound; give it, or choose "
                "approximation='taylor'."
            )

    @cached_property
    def parabola(self) -> Parabola:
        """The a + ½cz² in place of g."""
        if self.approximation == "taylor":
            return Parabola(math.log(2), 0.0, 0.25)
        reach = reach_of(self.feature_bound, self.weight_bound)
        return _chebyshev(reach) if self.approximation == "chebyshev" else _least_squares(reach)

    @property
    def q_bound(self) -> float:
        """R_q = √c·R."""
        return math.sqrt(self.parabola.curvature) * self.feature_bound

    @property
    def p_bound(self) -> float:
        """R_p = R/2."""
        return self.feature_bound / 2

    def terms(self, features: ArrayLike, target: ArrayLike) -> Quadratic:
        """(√c·x, ½yx, a) of each record, for labels −1 and +1."""
        records = read(features, target, self.feature_bound)
        y = signs(records.target)
        q = records.along(math.sqrt(self.parabola.curvature))
        return Quadratic(q, p=records.along(y / 2), s=np.full_like(y, self.parabola.constant))

    def approximation_error(self, weight_bound: float | None = None) -> float:
        """The largest |g(z) − a − ½cz²| over |z| ≤ ηR, never rounded down.

        The odd part −yz/2 is exact, so this is the error of the loss. It is even, so only z ≥ 0
        counts. Its slope g'(z) − cz has the derivative σ'(z) − c, which changes its sign once,
        where 4cosh²(z/2) = 1/c: the slope is monotone on either side of that.
        """
        reach = reach_of(self.feature_bound, weight_bound, self.weight_bound)
        return _worst(self.parabola, reach)


def even_part(z: float) -> float:
    """g(z) = ln(2cosh(z/2)) = |z|/2 + ln(1 + e^{−|z|}), which cannot overflow."""
    return abs(z) / 2 + math.log1p(math.exp(-abs(z)))


def _worst(parabola: Parabola, reach: float) -> float:
    turn = 2 * math.acosh(max(1.0, 0.5 / math.sqrt(parabola.curvature)))
    return worst(
        lambda z: even_part(z) - parabola(z),
        lambda z: math.tanh(z / 2) / 2 - parabola.curvature * z,
        (0.0, min(turn, reach), reach),
        size=even_part(reach) + parabola(reach),
    )


def _chebyshev(reach: float) -> Parabola:
    """The best uniform one: c = 2(g(Z) − g(0))/Z², a = g(0) + D/2, D = max(g(z) − g(0) − ½cz²).

    g is even, so an odd part would not help. In t = z² the rest, a + ½cz², is a straight line, and
    G(t) = g(√t) is concave, since its slope tanh(z/2)/(4z) decreases. The chord of G from 0 to
    T = Z² lies below G, by D at most, at the t* where G' is the chord's slope. Raised by D/2 the
    line errs by −D/2 at 0, +D/2 at t* and −D/2 at T, and by no more anywhere: D/2 is the largest
    error. No line does better (de la Vallée Poussin): it would lie above this one at t* and below
    it at 0 and at T, so their difference, a straight line too, would change its sign twice.

    By Taylor's formula with the integral remainder, c = 2∫₀¹(1 − t)g''(Zt)dt. The code takes it so:
    positive numbers are added, where g(Z) − g(0) would lose all its digits as Z → 0.
    """
    c = _faded_mean(lambda z: 2 * (1 - z / reach) * _curvature(z), reach)
    chord = Parabola(math.log(2), 0.0, c)
    return Parabola(math.log(2) + _worst(chord, reach) / 2, 0.0, c)


def _least_squares(reach: float) -> Parabola:
    """The L² projection: c = 15/16·∫₋₁¹(1 − t²)²g''(Zt)dt and a = ½∫₋₁¹g(Zt)dt − cZ²/6.

    Its t²-part is that of ⟨g, P₂⟩P₂·5/2, with P₂ = (3t² − 1)/2 = ((t² − 1)²)''/8 (Rodrigues).
    Integration by parts, twice, moves both derivatives to g; the boundary terms vanish. The
    constant makes the mean error zero, and z² has the mean Z²/3. In the mean of g the term |z|/2 is
    Z/4; the rest, ln(1 + e^{−z}), fades.
    """
    c = _faded_mean(lambda z: 15 / 8 * (1 - (z / reach) ** 2) ** 2 * _curvature(z), reach)
    mean = reach / 4 + _faded_mean(lambda z: np.log1p(np.exp(-z)), reach)
    return Parabola(mean - c * reach / 6 * reach, 0.0, c)


def _curvature(z: FloatArray) -> FloatArray:
    """The second derivative g'' = σ' = σ(z)σ(−z)."""
    product: FloatArray = expit(z) * expit(-z)
    return product


def _faded_mean(function: Callable[[FloatArray], FloatArray], reach: float) -> float:
    """1/Z·∫₀^Z f(z)dz for an f that fades as e^{−z}, to full precision.

    Gauss–Legendre in panels no wider than 2, as far as f can be told from zero. The nearest poles
    of σ and of ln(1 + e^{−z}) lie at ±iπ, so 20 nodes on a panel err by (π + √(π² + 1))⁻⁴⁰ ≈ 10⁻³².
    """
    end = min(reach, _FADED)
    panels = math.ceil(end / _PANEL)
    half = end / panels / 2
    centres = half * (2 * np.arange(panels) + 1)
    z = centres[:, None] + half * _NODES
    return float((function(z) @ _WEIGHTS).sum() * (half / reach))
