"""Newton's quadratic of a record around an announced model, and how far one person can move its
sum.

At a public model whose score of the record is t, a generalised linear loss ℓ(t, y) is, to second
order, the quadratic ½wᵀMw − p·w of the step w, with

    M = h·xxᵀ,   p = −g·x,   g = ∂ℓ/∂t,   h = ∂²ℓ/∂t².

So a wave of contributors who blur (M, p) around the last wave's model gives one Newton step of the
*exact* loss. M̃ = M + E, E symmetric with diagonal N(0, σ²/n), off-diagonal N(0, σ²/(2n)), and p̃ =
p + N(0, τ²σ²/n·I), is isotropic in ‖M‖_F² + ‖p‖²/τ², and the sums are μ-GDP with μ = Δ(τ)/σ
(`theory.moment_calibration`). A record is weighted by 1/max(1, ‖x‖²), which needs no bound on x:

    ‖M‖_F = m ≤ h·min(1, s²),   ‖p‖ = A = |g|·min(s, 1/s),   s = ‖x‖ ≥ 0.

Nothing here depends on who announced the model: whatever the scores are, (m, A) lies in a set D
that the loss alone decides. For two records at an angle of cosine c, with gradients opposed,

    F = m² + m'² − 2mm'c² + (A² + A'² + 2AA'c)/τ²,

and Δ² is its maximum over D × D and c in [0, 1] (for negative c exchange the signs of the
gradients; for equal signs F is smaller). F is the square of a norm of a difference, so it is convex
in (m, A), and only extreme points of the convex hull of D count. `zero-out` is m² + A²/τ².

**Logistic** (`logistic_sensitivity`). |g| = a in [0, 1], h = a(1 − a).

1. D: for s ≤ 1, a = A/s and m = A(s − A) ≤ A(1 − A). For s > 1, a = As and m = a(1 − a) ≤ ¼, with A
   ≤ a. So m ≤ A(1 − A) for A ≥ ½ and m ≤ ¼ below: the hull's extreme points are (0, 0), (0, 1), (¼,
   0) and (A(1 − A), A). The one that weighting adds, (¼, 0), is never worst: with c = 0, which is
   best for it, (¼, ½) is farther from anything. So **the weight does not change Δ**, s = 1 is the
   worst, and with a, b for the two |g|, k = τ²(1 − a)(1 − b),

       τ²F = τ²(a²(1 − a)² + b²(1 − b)²) + a² + b² + 2ab·c(1 − kc).

2. With S = a + b and P = (1 − a)(1 − b): ab = S − 1 + P, (a − b)² = (2 − S)² − 4P.
   * k ≤ ½: c = 1 is best, τ²F = τ²(a − b)²(1 − S)² + S², which falls as P grows. So P is the least:
     P = 0, one of them 1 and the other b, if S ≥ 1: **F₁ = b²(1 − b)² + (1 + b)²/τ²**; else ab = 0,
     which is `zero-out`.
   * k ≥ ½: c = 1/(2k), and with κ = 1/(2τ²), τ²F = τ²[((2−S)² − 4P)(1−S)² + 2(S−1+P)P] + S² −
     2(S−1+P) + κ(S−1+P)/P. Its second derivative in P is 4τ² + 2κ(S−1)/P³: positive for S ≥ 1, and
     for S < 1 as (1−S)/P ≤ 1 (ab ≥ 0) and P ≥ κ. So P is at an end: P = κ is the case above;
     ab = 0 is `zero-out`, below 1.5 or below a = b; and a = b = 1 − u gives **F₂ = 2[(1 − u)(u +
     κ/u)]²**, u ≥ √κ.

   Δ² = max(max_b F₁, max_u F₂): two cubics, 2τ²b(1−b)(1−2b) + 2(1+b) = 0 and u² − κ − 2u³ = 0.
3. F₁ ≤ 4/τ² for all b exactly if τ²b²(1 − b) ≤ 3 + b, that is τ ≤ τ* = √((37 + 14√7)/3) = 4.9679
   (the ratio is least at b = √7 − 2); and with w = τu, F₂ ≤ 4/τ² means (1 − w/τ)(w + 1/(2w)) ≤ √2,
   whose left side grows with τ and is at most 1.36 at τ*. Until then **Δ = 2/τ**: the curvature is
   free.

`zero-out`: a²(1 − a)² + a²/τ² is largest at a = 1 or at the smaller zero of 2a² − 3a + 1 + 1/τ².

**Poisson** (`bounded_sensitivity`). With t clipped to [−B, B] and y to [0, Y], h = e^t ≤ H = e^B
and |g| = |e^t − y| ≤ G = max(e^B, Y − e^{−B}). D lies in the rectangle [0, H] × [0, G] (weighted or
not), whose corners give, with ϱ = G²/(τ²H²),

    Δ² = H²·max((2 + ϱ)²/2 [ϱ ≤ 2], 1 + 4ϱ),

as `theory.joint.sensitivity_of_multiples` proves for R_q² = H and R_p = G. It holds for any loss
with 0 ≤ h ≤ H and |g| ≤ G. `zero-out`: H² + G²/τ².

**Squared loss.** h = 1 and g = −e, the residual, clipped to ±E: (xxᵀ, e·x) is part of zzᵀ with z =
(c, u, ωe), which has Σe² besides, and less noise: `theory.joint` and `theory.maps.ResidualMap`.

Whoever sees a single submission compares any two records: `replace`, always.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError
from blurfit.theory.joint import sensitivity_of_multiples
from blurfit.theory.setting import NEIGHBOURS, Neighbours
from blurfit.validate import one_of, positive

_NUDGE = 1 + 1e-12  # far above what rounding can take from a handful of operations
FREE_CURVATURE = math.sqrt((37 + 14 * math.sqrt(7)) / 3)  # τ*, up to which Δ = 2/τ
LARGEST_SCORE = 30.0  # of a Poisson loss: rates from 1e-13 to 1e13


@dataclass(frozen=True)
class LogisticNewton:
    """ln(1 + e^{−yt}) for a label y = ±1: g = −y/(1 + e^{yt}), h = |g|(1 − |g|), whatever t is.

    >>> loss = LogisticNewton()
    >>> round(loss.sensitivity() * loss.balance, 9)
    2.0
    """

    balance: float = 4.96

    def __post_init__(self) -> None:
        positive(balance=self.balance)

    def slopes(self, score: ArrayLike, target: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """(g, h); a score that is not a number counts as 0, and a label by its sign alone."""
        t = np.nan_to_num(np.asarray(score, dtype=np.float64), nan=0.0)
        y = np.where(np.asarray(target, dtype=np.float64) > 0, 1.0, -1.0)
        size = expit(-y * t)
        return np.asarray(-y * size), np.asarray(size * (1 - size))

    def sensitivity(self, neighbours: Neighbours = "replace") -> float:
        """Δ(τ), exactly."""
        return logistic_sensitivity(self.balance, neighbours)


@dataclass(frozen=True)
class PoissonNewton:
    """e^t − yt for a count y in [0, Y]: g = e^t − y, h = e^t, with t clipped to [−B, B].

    Args:
        count_bound: Y, public; larger counts are cut to it.
        score_bound: B; None for max(1, ln Y): no rate is above the largest count.
        balance_of_noise: τ; None for G/H: the noise of p is then within 12 % of its least, 2G/μ.
    """

    count_bound: float
    score_bound: float | None = None
    balance_of_noise: float | None = None

    def __post_init__(self) -> None:
        positive(count_bound=self.count_bound)
        for name in ("score_bound", "balance_of_noise"):
            if getattr(self, name) is not None:
                positive(**{name: getattr(self, name)})
        if self.reach > LARGEST_SCORE:
            raise InvalidValueError(
                f"Expected score_bound={self.reach:g} <= {LARGEST_SCORE:g}, as rates may be its "
                "exponential; choose a smaller score_bound or count_bound."
            )

    @property
    def reach(self) -> float:
        """B."""
        if self.score_bound is not None:
            return self.score_bound
        return max(1.0, math.log(self.count_bound))

    @property
    def curvature_bound(self) -> float:
        """H = e^B."""
        return math.exp(self.reach)

    @property
    def gradient_bound(self) -> float:
        """G = max(e^B, Y − e^{−B})."""
        return max(self.curvature_bound, self.count_bound - math.exp(-self.reach))

    @property
    def balance(self) -> float:
        """τ."""
        if self.balance_of_noise is not None:
            return self.balance_of_noise
        return self.gradient_bound / self.curvature_bound

    def slopes(self, score: ArrayLike, target: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """(g, h), with score and count inside their bounds; what is not a number counts as 0."""
        t = np.clip(np.nan_to_num(np.asarray(score, dtype=np.float64)), -self.reach, self.reach)
        y = np.clip(np.nan_to_num(np.asarray(target, dtype=np.float64)), 0.0, self.count_bound)
        rate = np.exp(t)
        return np.asarray(rate - y), np.asarray(rate)

    def sensitivity(self, neighbours: Neighbours = "replace") -> float:
        """Δ for curvatures in [0, H] and gradients in [−G, G]."""
        return bounded_sensitivity(
            self.curvature_bound, self.gradient_bound, self.balance, neighbours
        )


def logistic_sensitivity(balance: float, neighbours: Neighbours = "replace") -> float:
    """Δ(τ) of logistic loss: 2/τ up to τ*, and the larger of two cubics' values beyond.

    >>> round(logistic_sensitivity(4.0), 6), round(logistic_sensitivity(8.0), 4)
    (0.5, 0.365)
    """
    positive(balance=balance)
    one_of(NEIGHBOURS, neighbours=neighbours)
    if neighbours == "zero-out":
        return _zero_out(balance) * _NUDGE
    if balance <= FREE_CURVATURE:
        return 2 / balance * _NUDGE
    square = balance**2
    kappa = 1 / (2 * square)
    b = _inside([2 * square, -3 * square, square + 1, 1], 0.0, 1.0)
    first = np.sqrt(b**2 * (1 - b) ** 2 + (1 + b) ** 2 / square)
    u = _inside([-2, 1, 0, -kappa], math.sqrt(kappa), 1.0)
    second = math.sqrt(2) * (1 - u) * (u + kappa / u)
    return float(max(first.max(), second.max())) * _NUDGE


def bounded_sensitivity(
    curvature_bound: float,
    gradient_bound: float,
    balance: float,
    neighbours: Neighbours = "replace",
) -> float:
    """Δ of any loss with 0 ≤ h ≤ H and |g| ≤ G.

    >>> round(bounded_sensitivity(1.0, 1.0, 1.0) ** 2, 9)
    5.0
    """
    positive(curvature_bound=curvature_bound, gradient_bound=gradient_bound, balance=balance)
    one_of(NEIGHBOURS, neighbours=neighbours)
    if neighbours == "zero-out":
        return math.hypot(curvature_bound, gradient_bound / balance) * _NUDGE
    return sensitivity_of_multiples(math.sqrt(curvature_bound), gradient_bound, balance)


def _zero_out(balance: float) -> float:
    """The largest √(a²(1 − a)² + a²/τ²): at a = 1, or at (3 − √(1 − 8/τ²))/4 where that is real."""
    inner = 1 - 8 / balance**2
    a = np.array([1.0, (3 - math.sqrt(inner)) / 4]) if inner >= 0 else np.ones(1)
    return float(np.sqrt(a**2 * (1 - a) ** 2 + a**2 / balance**2).max())


def _inside(cubic: list[float], low: float, high: float) -> FloatArray:
    """The ends, and the real zeros between them: where a smooth function can be largest.

    A zero that rounding has made complex keeps its real part: the value there is attained too, so
    no harm is done by looking at a point too many.
    """
    zeros = np.roots(cubic).real
    return np.array([low, high, *zeros[(zeros > low) & (zeros < high)]])
