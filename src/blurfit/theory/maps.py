"""The public map of a later wave: from an encoded record (v, y) to what is blurred.

A map is made of numbers that earlier waves taught, and is announced before its wave opens. It has a
mean m, a whitening matrix W (lower triangular, W = L⁻¹ with LLᵀ the covariance as far as it is
known), and the last model, coefficients β and intercept β₀:

    f = W(v − m),      t = β·v + β₀.

* `ResidualMap`, for numbers and for lines of labels: g = (y − t)/scale, s = min(1, r√p/‖f‖), and
  z = (c·s, a·s·f/(r√p), b·clip(s·g, ±R)/R) with a² + b² ≤ 1: the *whole record* is weighted by s,
  which is weighted least squares. Where the mean is linear, that biases nothing, whatever r is.
* `GaugeMap`: which of the bins of ‖f‖/√p and of |g| a record is in, for whoever chooses r and R.
* `NewtonMap`, for labels and counts: x = (f/√p, κ)/√(1 + κ²), whose norm is 1 for a typical record,
  and the quadratic (h·xxᵀ, −g·x)/max(1, ‖x‖²) below at the score t.

**A map needs no trust.** What a record can move is bounded by the ball alone, whoever chose m, W, β
and r, and for whatever reason. But that must be so in floating point as well, and an error that
appears for some records and not for others would tell something about them. Therefore:

1. Everything public is checked when the map is made or read, *before* any record is seen: finite,
   sizes at most 10⁶ (W: 10¹²), W triangular with a nonzero diagonal, radii in range.
2. From then on the map is total: defined for every array of floats, NaN and infinities included. It
   multiplies by W and never solves with L (for L = diag(1, 10⁻³²⁰) whether a solver fails depends
   on the record). What is not a number becomes 0; scores are clipped; nothing is raised for a
   value.
3. The ball is kept with a scaled norm: with k = max|f_i| and w = f/k, ‖w‖ lies between 1 and √p,
   and nothing overflows or vanishes. Each entry of z carries at most 4 roundings besides those of
   ‖w‖, so ‖u‖ ≤ 1 + (p + 8)·2⁻⁵² as computed, far below the 2⁻¹¹ by which an agreement's grid
   widens Δ.

**Newton's quadratic** of a record around an announced model, and how far one person can move its
sum. At a public model whose score of the record is t, a generalised linear loss ℓ(t, y) is, to
second order, the quadratic ½wᵀMw − p·w of the step w, with

    M = h·xxᵀ,   p = −g·x,   g = ∂ℓ/∂t,   h = ∂²ℓ/∂t².

So a wave of contributors who blur (M, p) around the last wave's model gives one Newton step of the
*exact* loss. M̃ = M + E, E symmetric with diagonal N(0, σ²/n), off-diagonal N(0, σ²/(2n)), and p̃ =
p + N(0, τ²σ²/n·I), is isotropic in ‖M‖_F² + ‖p‖²/τ², and the sums are μ-GDP with μ = Δ(τ)/σ
(`theory.moments`). A record is weighted by 1/max(1, ‖x‖²), which needs no bound on x:

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

as `theory.moments.sensitivity_of_multiples` proves for R_q² = H and R_p = G. It holds for any loss
with 0 ≤ h ≤ H and |g| ≤ G. `zero-out`: H² + G²/τ².

**Squared loss.** h = 1 and g = −e, the residual, clipped to ±E: (xxᵀ, e·x) is part of zzᵀ with z =
(c, u, ωe), which has Σe² besides, and less noise: `ResidualMap`. There the first entry c' = c·s
differs between records, so its square is blurred and sent as well, and with ‖u‖ ≤ 1

    ‖zzᵀ − z'z'ᵀ‖² = ‖z‖⁴ + ‖z'‖⁴ − 2(z·z')² ≤ 2(c² + 1)²:      **Δ = √2(c² + 1)**,

attained for c ≤ 1 by c' = c and u·u' = −c². `zero-out`: ‖zzᵀ‖ ≤ c² + 1, whether the record is
left out or becomes (c, 0), which is closer.

**Gauge.** A record is in one bin of each histogram, so another record in its place takes one from a
bin and gives one to another in each: Δ = 2 for two histograms and √2 for their joint one;
`zero-out`, where the record leaves its bins, √2 and 1.

Whoever sees a single submission compares any two records: `replace`, always.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from blurfit.arrays import FloatArray, IntArray, fixed
from blurfit.errors import InvalidValueError
from blurfit.theory.guarantees import NEIGHBOURS, Neighbours
from blurfit.theory.moments import NUDGE, sensitivity_of_multiples
from blurfit.validate import finite, one_of, positive

FREE_CURVATURE = math.sqrt((37 + 14 * math.sqrt(7)) / 3)  # τ*, up to which Δ = 2/τ
LARGEST_LOG_RATE = 30.0  # of a Poisson loss: rates from 1e-13 to 1e13
LARGEST_NUMBER = 1e6  # of means, coefficients and scales: records lie in [−1, 1]
LARGEST_WHITENING = 1e12
LARGEST_SCORE = 500.0  # of a model that is announced; its exponential is still a number
SMALLEST_RADIUS, LARGEST_RADIUS = 1e-4, 1e6
KINDS = ("residual", "gauge", "logistic", "poisson")
MOST_BINS = 64  # of a gauge


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
        if self.reach > LARGEST_LOG_RATE:
            raise InvalidValueError(
                f"Expected score_bound={self.reach:g} <= {LARGEST_LOG_RATE:g}, as rates may be its "
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
        return _zero_out(balance) * NUDGE
    if balance <= FREE_CURVATURE:
        return 2 / balance * NUDGE
    square = balance**2
    kappa = 1 / (2 * square)
    b = _inside([2 * square, -3 * square, square + 1, 1], 0.0, 1.0)
    first = np.sqrt(b**2 * (1 - b) ** 2 + (1 + b) ** 2 / square)
    u = _inside([-2, 1, 0, -kappa], math.sqrt(kappa), 1.0)
    second = math.sqrt(2) * (1 - u) * (u + kappa / u)
    return float(max(first.max(), second.max())) * NUDGE


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
        return math.hypot(curvature_bound, gradient_bound / balance) * NUDGE
    return sensitivity_of_multiples(math.sqrt(curvature_bound), gradient_bound, balance)


def _zero_out(balance: float) -> float:
    """Return the largest √(a²(1 − a)² + a²/τ²): at a = 1, or at (3 − √(1 − 8/τ²))/4 if real."""
    inner = 1 - 8 / balance**2
    a = np.array([1.0, (3 - math.sqrt(inner)) / 4]) if inner >= 0 else np.ones(1)
    return float(np.sqrt(a**2 * (1 - a) ** 2 + a**2 / balance**2).max())


def _inside(cubic: list[float], low: float, high: float) -> FloatArray:
    """Return the ends, and the real zeros between them: where a smooth function can be largest.

    A zero that rounding has made complex keeps its real part: the value there is attained too, so
    no harm is done by looking at a point too many.
    """
    zeros = np.roots(cubic).real
    return np.array([low, high, *zeros[(zeros > low) & (zeros < high)]])


@dataclass(frozen=True, eq=False)
class Whitening:
    """f = W(v − m) and t = β·v + β₀, for every v.

    Lists of numbers are taken for arrays.

    >>> white = Whitening([0.5], [[2.0]], [1.0], 0.25)
    >>> white.features([[1.0], [float("nan")]]).tolist()
    [[1.0], [0.0]]
    """

    mean: FloatArray
    matrix: FloatArray
    coefficients: FloatArray
    intercept: float = 0.0

    def __post_init__(self) -> None:
        mean = _numbers(LARGEST_NUMBER, mean=self.mean)
        matrix = _numbers(LARGEST_WHITENING, matrix=self.matrix)
        beta = _numbers(LARGEST_NUMBER, coefficients=self.coefficients)
        p = mean.size
        if mean.ndim != 1 or not p or matrix.shape != (p, p) or beta.shape != (p,):
            raise InvalidValueError(
                f"Expected mean and coefficients of one length p and matrix of shape (p, p), got "
                f"{mean.shape}, {beta.shape} and {matrix.shape}."
            )
        if np.triu(matrix, 1).any() or not np.diagonal(matrix).all():
            raise InvalidValueError(
                "Expected matrix to be lower triangular with a nonzero diagonal: only such a "
                "whitening can be undone."
            )
        finite(intercept=self.intercept)
        if abs(self.intercept) > LARGEST_NUMBER:
            raise InvalidValueError(
                f"Expected intercept={self.intercept!r} to be at most {LARGEST_NUMBER:g} in size."
            )
        for name, value in (("mean", mean), ("matrix", matrix), ("coefficients", beta)):
            object.__setattr__(self, name, fixed(value))
        object.__setattr__(self, "intercept", float(self.intercept))

    @property
    def dimension(self) -> int:
        """p, the number of encoded features."""
        return self.mean.size

    def features(self, v: ArrayLike) -> FloatArray:
        """W(v − m); a record for which that is not a finite vector becomes 0."""
        rows = np.asarray(v, dtype=np.float64)
        with np.errstate(all="ignore"):
            f = (rows - self.mean) @ self.matrix.T
        return np.where(np.isfinite(f).all(axis=-1, keepdims=True), f, 0.0)

    def score(self, v: ArrayLike) -> FloatArray:
        """β·v + β₀, clipped to ±500; 0 where it is not a number."""
        with np.errstate(all="ignore"):
            t = np.asarray(v, dtype=np.float64) @ self.coefficients + self.intercept
        return np.asarray(np.clip(np.nan_to_num(t), -LARGEST_SCORE, LARGEST_SCORE))

    def to_dict(self) -> dict[str, Any]:
        """Write it as part of an agreement: W row by row, up to its diagonal."""
        matrix = self.matrix
        return {
            "mean": self.mean.tolist(),
            "whitening": [matrix[i, : i + 1].tolist() for i in range(self.dimension)],
            "coefficients": self.coefficients.tolist(),
            "intercept": self.intercept,
        }

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> "Whitening":
        """Read what `to_dict` wrote; refuse anything else."""
        try:
            rows = entry["whitening"]
            matrix = np.zeros((len(rows), len(rows)))
            for i, row in enumerate(rows):
                if len(row) != i + 1:
                    raise InvalidValueError(
                        f"Expected {i + 1} numbers in row {i} of whitening, got {len(row)}."
                    )
                matrix[i, : i + 1] = row
            return cls(entry["mean"], matrix, entry["coefficients"], entry["intercept"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            if isinstance(error, InvalidValueError):
                raise
            raise InvalidValueError(
                f"Expected a map's mean, whitening, coefficients and intercept: {error!r}."
            ) from error


def norms(x: FloatArray) -> FloatArray:
    """‖x‖ of each row, scaled by its largest entry: no square overflows or vanishes."""
    largest = np.abs(x).max(axis=-1, keepdims=True, initial=0.0)
    w = x / np.where(largest > 0, largest, 1.0)
    with np.errstate(over="ignore"):  # an infinite norm of finite numbers is a norm above any bound
        found = largest[..., 0] * np.sqrt(np.einsum("...i,...i->...", w, w))
    return np.asarray(found)


def into_ball(x: FloatArray, reach: float) -> FloatArray:
    """x/max(‖x‖, reach) for finite rows: x/reach, cut to the unit ball."""
    largest = np.abs(x).max(axis=-1, keepdims=True, initial=0.0)
    w = x / np.where(largest > 0, largest, 1.0)
    length = np.sqrt(np.einsum("...i,...i->...", w, w))[..., None]
    with np.errstate(over="ignore"):  # then the other term is the smaller one
        return np.asarray(w * np.minimum(largest / reach, 1 / np.maximum(length, 1.0)))


def _numbers(most: float, **named: ArrayLike) -> FloatArray:
    """Return the one named array as finite floats of bounded size, in a copy of its own."""
    ((name, value),) = named.items()
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"Expected {name} to be an array of numbers: {error}.") from error
    if not (np.isfinite(array).all() and (np.abs(array) <= most).all()):
        raise InvalidValueError(
            f"Expected {name} to be finite numbers of at most {most:g} in size; no release that "
            "teaches anything gives others."
        )
    return array


def within(low: float, high: float, **values: float) -> None:
    """Refuse a named value that is not between two numbers."""
    positive(**values)
    for name, value in values.items():
        if not low <= value <= high:
            raise InvalidValueError(f"Expected {name}={value!r} between {low:g} and {high:g}.")


@dataclass(frozen=True, eq=False)
class ResidualMap:
    """z = (c·s, a·s·f/(r√p), b·s·g/bound), s = min(1, r√p/‖f‖): ‖(z₁, …)‖ ≤ 1 for every record.

    Args:
        whitening: m, W and the last model.
        radius: r; a record with ‖f‖ > r√p has the weight s < 1.
        scale: The residuals' spread as far as it is known.
        bound: R; s·g, g = (y − t)/scale, is cut to ±R.
        constant: c, the largest first entry of z.
        feature_weight: a.
        target_weight: b; a² + b² ≤ 1.
    """

    whitening: Whitening
    radius: float
    scale: float
    bound: float
    constant: float = 0.25
    feature_weight: float = 0.8
    target_weight: float = 0.6

    def __post_init__(self) -> None:
        within(SMALLEST_RADIUS, LARGEST_RADIUS, radius=self.radius, bound=self.bound)
        within(1 / LARGEST_NUMBER, LARGEST_NUMBER, scale=self.scale)
        within(0.01, 1.0, constant=self.constant, feature_weight=self.feature_weight)
        within(0.01, 1.0, target_weight=self.target_weight)
        if self.feature_weight**2 + self.target_weight**2 > 1:
            raise InvalidValueError(
                f"Expected feature_weight={self.feature_weight!r} and "
                f"target_weight={self.target_weight!r} to have squares that sum to at most 1."
            )

    @property
    def feature_scale(self) -> float:
        """a/(r√p): the weight of each whitened feature in z."""
        return self.feature_weight / (self.radius * math.sqrt(self.whitening.dimension))

    @property
    def target_scale(self) -> float:
        """b/bound: the weight of the residual in z."""
        return self.target_weight / self.bound

    def sensitivity(self, neighbours: Neighbours = "replace") -> float:
        """Δ of Σzzᵀ, whatever the map is: √2(c² + 1), or c² + 1 where a record is left out."""
        one_of(NEIGHBOURS, neighbours=neighbours)
        length = self.constant**2 + 1
        return (math.sqrt(2) if neighbours == "replace" else 1.0) * length * NUDGE

    def vectors(self, v: ArrayLike, y: ArrayLike) -> FloatArray:
        """z of each record."""
        f = self.whitening.features(v)
        reach = self.radius * math.sqrt(self.whitening.dimension)
        inside = into_ball(f, reach)
        with np.errstate(all="ignore"):
            weight = reach / np.maximum(norms(f), reach)
            g = weight * (np.asarray(y, dtype=np.float64) - self.whitening.score(v)) / self.scale
        g = np.clip(np.where(np.isnan(g), 0.0, g), -self.bound, self.bound) / self.bound
        z = np.empty((*f.shape[:-1], f.shape[-1] + 2))
        z[..., 0] = self.constant * weight
        z[..., 1:-1] = self.feature_weight * inside
        z[..., -1] = self.target_weight * g
        return z

    def to_dict(self) -> dict[str, Any]:
        """Write it as part of an agreement."""
        return {
            "kind": "residual",
            **self.whitening.to_dict(),
            "radius": self.radius,
            "scale": self.scale,
            "bound": self.bound,
            "weights": [self.constant, self.feature_weight, self.target_weight],
        }


@dataclass(frozen=True, eq=False)
class NewtonMap:
    """(h·xxᵀ, −g·x)/max(1, ‖x‖²) at the score t, with x = (f/√p, κ)/√(1 + κ²)."""

    whitening: Whitening
    loss: LogisticNewton | PoissonNewton
    constant: float = 0.3

    def __post_init__(self) -> None:
        within(0.01, 100.0, constant=self.constant)

    @property
    def scale(self) -> tuple[float, float]:
        """What f and the constant 1 are multiplied by in x."""
        length = math.hypot(1.0, self.constant)
        return 1 / (math.sqrt(self.whitening.dimension) * length), self.constant / length

    def sensitivity(self, neighbours: Neighbours = "replace") -> float:
        """Δ of (ΣM, Σp), whatever the map is: the loss's own."""
        return self.loss.sensitivity(neighbours)

    def vectors(self, v: ArrayLike) -> FloatArray:
        """x of each record, divided by max(1, ‖x‖): inside the unit ball."""
        f = self.whitening.features(v)
        of_features, constant = self.scale
        x = np.empty((*f.shape[:-1], f.shape[-1] + 1))
        x[..., :-1] = of_features * f
        x[..., -1] = constant
        return into_ball(x, 1.0)

    def slopes(self, v: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """(g, h), with g divided by max(1, ‖x‖): so that (h·uuᵀ, −g·u), u = `vectors`, is sent."""
        f = self.whitening.features(v)
        of_features, constant = self.scale
        length = np.hypot(of_features * norms(f), constant)
        g, h = self.loss.slopes(self.whitening.score(v), y)
        return g / np.maximum(1.0, length), h

    def sums(self, v: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(ΣM, Σp) of many."""
        u, (g, h) = self.vectors(v), self.slopes(v, y)
        return (u * h[:, None]).T @ u, -(g @ u)

    def to_dict(self) -> dict[str, Any]:
        """Write it as part of an agreement."""
        entry: dict[str, Any] = {**self.whitening.to_dict(), "constant": self.constant}
        if isinstance(self.loss, LogisticNewton):
            return {"kind": "logistic", **entry, "balance": self.loss.balance}
        return {
            "kind": "poisson",
            **entry,
            "balance": self.loss.balance,
            "count_bound": self.loss.count_bound,
            "score_bound": self.loss.reach,
        }


@dataclass(frozen=True, eq=False)
class GaugeMap:
    """The bins of ‖f‖/√p and of |g|, g = (y − t)/scale, that a record is in: one 1 in each of two
    histograms, or one in their joint one.

    Args:
        whitening: m, W and the last model.
        scale: The residuals' spread as far as it is known.
        features: Where the bins of ‖f‖/√p end: increasing; what is beyond is in the last one.
        errors: Where the bins of |g| end.
        joint: Whether pairs of bins are counted.
    """

    whitening: Whitening
    scale: float
    features: FloatArray
    errors: FloatArray
    joint: bool = False

    def __post_init__(self) -> None:
        within(1 / LARGEST_NUMBER, LARGEST_NUMBER, scale=self.scale)
        for name in ("features", "errors"):
            edges = _numbers(LARGEST_WHITENING, **{name: getattr(self, name)})
            increasing = edges.ndim == 1 and (np.diff(edges, prepend=0.0) > 0).all()
            if not increasing or not 2 <= len(edges) <= MOST_BINS:
                raise InvalidValueError(f"Expected {name} to be 2 to {MOST_BINS} increasing ends.")
            object.__setattr__(self, name, fixed(edges))
        if type(self.joint) is not bool:
            raise InvalidValueError(f"Expected joint={self.joint!r} to be true or false.")

    @property
    def width(self) -> int:
        """How many counts there are."""
        bins = len(self.features), len(self.errors)
        return bins[0] * bins[1] if self.joint else sum(bins)

    def sensitivity(self, neighbours: Neighbours = "replace") -> float:
        """Δ of the counts: a record is in one bin, or in one of each histogram."""
        one_of(NEIGHBOURS, neighbours=neighbours)
        moved = (1 if self.joint else 2) * (2 if neighbours == "replace" else 1)
        return math.sqrt(moved) * NUDGE

    def places(self, v: ArrayLike, y: ArrayLike) -> tuple[IntArray, ...]:
        """The counts to which each record adds 1: one array of places, or two."""
        size = norms(self.whitening.features(v)) / math.sqrt(self.whitening.dimension)
        with np.errstate(all="ignore"):
            g = np.abs(np.asarray(y, dtype=np.float64) - self.whitening.score(v)) / self.scale
        f, e = len(self.features), len(self.errors)
        row = np.searchsorted(self.features[:-1], size)
        column = np.searchsorted(self.errors[:-1], np.where(np.isnan(g), 0.0, g))
        return (row * e + column,) if self.joint else (row, f + column)

    def to_dict(self) -> dict[str, Any]:
        """Write it as part of an agreement."""
        return {
            "kind": "gauge",
            **self.whitening.to_dict(),
            "scale": self.scale,
            "features": self.features.tolist(),
            "errors": self.errors.tolist(),
            "joint": self.joint,
        }


WaveMap = ResidualMap | NewtonMap  # under which a step is collected
Announced = WaveMap | GaugeMap


def map_from_dict(entry: Mapping[str, Any]) -> Announced:
    """Read the map of an agreement, and check it before any record is read."""
    if not isinstance(entry, Mapping):
        raise InvalidValueError(f"Expected a map to be a dict, got {type(entry).__name__}.")
    kind = entry.get("kind")
    one_of(KINDS, kind=kind)
    common = {"kind", "mean", "whitening", "coefficients", "intercept"}
    own = {
        "residual": {"radius", "scale", "bound", "weights"},
        "gauge": {"scale", "features", "errors", "joint"},
        "logistic": {"constant", "balance"},
        "poisson": {"constant", "balance", "count_bound", "score_bound"},
    }[str(kind)]
    if set(entry) != common | own:
        raise InvalidValueError(
            f"Expected a {kind} map to have {sorted(common | own)}, got {sorted(entry)}."
        )
    whitening = Whitening.from_dict(entry)
    if kind == "residual":
        weights = entry["weights"]
        if not isinstance(weights, list) or len(weights) != 3:
            raise InvalidValueError(f"Expected weights={weights!r} to be [c, a, b].")
        return ResidualMap(whitening, entry["radius"], entry["scale"], entry["bound"], *weights)
    if kind == "gauge":
        ends = entry["features"], entry["errors"]
        return GaugeMap(whitening, entry["scale"], *ends, entry["joint"])
    loss: LogisticNewton | PoissonNewton
    if kind == "logistic":
        loss = LogisticNewton(entry["balance"])
    else:
        loss = PoissonNewton(entry["count_bound"], entry["score_bound"], entry["balance"])
    return NewtonMap(whitening, loss, entry["constant"])
