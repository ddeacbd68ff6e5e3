"""Public transforms of later waves: from an encoded record (v, y) to the numbers that are blurred.

A later wave measures records relative to what earlier releases showed. Its transform is computed
from those releases (`blurfit.learning.waves`), announced before the wave opens, and applied by
every contributor (`blurfit.theory.forms.WaveForm`). It has a mean m, a whitening matrix W (lower
triangular) and the last model, coefficients β and intercept β₀:

    f = W(v − m),      t = β·v + β₀.

* `ResidualMap`, for numbers and for the linear start of labels: g = (y − t)/scale, s = min(1,
  r√p/‖f‖), and z = (c·s, a·s·f/(r√p), b·clip(s·g, ±R)/R) with a² + b² ≤ 1; p features, r and R
  public bounds. The whole record is weighted by s. If the target's conditional mean is linear, that
  biases nothing, whatever r is.
* `NewtonMap`, for labels and counts: x = (f/(r√p), κ)/√(1 + κ²) and the quadratic (h·xxᵀ,
  −g·x)/max(1, ‖x‖²), with g and h the first and second derivative of the loss at the score t.

Guarantee, proved in `docs/theory/transforms.md` and `docs/theory/newton.md`: whatever transform is
announced and whatever a record holds, one person moves the sums by at most Δ in the norm in which
entries off the diagonal count twice, the vector p of a Newton wave 1/τ², and squared slopes ω²:

| wave | Δ for `replace` | condition |
| --- | --- | --- |
| residual | √2(c² + 1) | a² + b² ≤ 1 |
| residual, robust | √(2(K + b²)² + 2ω²(K² − b⁴/(1 + ω²))), K = c² + a² | ω² ≤ ½ |
| Newton, labels | 2/τ, if τ ≤ 4.9679; else `logistic_sensitivity` | robust: τ ≤ 4.5, 2ω²τ² ≤ 1 |
| Newton, counts | `bounded_sensitivity` | 0 ≤ h ≤ H, ‖g‖ ≤ G; robust: 2ω²G²τ² ≤ 1 |

Several rows of one person have the Δ of one row. A single submission is compared with any other:
`replace`, always.

In floating point the bound needs two things. Every public number is checked before a record is
seen. From then on a transform is total: NaN becomes 0, scores are clipped, nothing raises an error
for a value, and ‖u‖ ≤ 1 + (p + 8)·2⁻⁵². Tests: `tests/theory/test_maps.py`, `test_newton.py`,
`test_whitening.py`, `test_wave_form.py`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from blurfit.data import FloatArray, fixed
from blurfit.errors import InvalidValueError, finite, nonnegative, one_of, positive, whole
from blurfit.theory.moments import NEIGHBOURS, NUDGE, Neighbours

FREE_CURVATURE = math.sqrt((37 + 14 * math.sqrt(7)) / 3)  # τ*, up to which Δ = 2/τ
FREE_SQUARES = 4.5  # τ, up to which it is so with the squared slopes as well
LARGEST_LOG_RATE = 30.0  # rates are from 1e-13 to 1e13
LARGEST_SLOPE = 1e13
NORMAL_NODES, NORMAL_WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
NORMAL_WEIGHTS = NORMAL_WEIGHTS / NORMAL_WEIGHTS.sum()
_HUGE = 1e300  # stands for infinity, where a mean of squares follows
LOG_RATES = (-LARGEST_LOG_RATE, LARGEST_LOG_RATE)
LARGEST_NUMBER = 1e6  # of means, coefficients and scales: records lie in [−1, 1]
LARGEST_WHITENING = 1e12
LARGEST_SCORE = 500.0  # of a model that is announced; its exponential is still a number
SMALLEST_RADIUS, LARGEST_RADIUS = 1e-4, 1e6


@dataclass(frozen=True)
class LogisticNewton:
    """ln(1 + e^{−yt}) for a label y = ±1: g = −y/(1 + e^{yt}), h = |g|(1 − |g|), whatever t is.

    >>> loss = LogisticNewton()
    >>> round(loss.sensitivity() * loss.balance, 9)
    2.0
    """

    balance: float = FREE_SQUARES
    kind: ClassVar[str] = "logistic"
    gradient_bound: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        positive(balance=self.balance)

    @property
    def robust_weight(self) -> float:
        """ω = 1/(√2·τ) of the squared slopes."""
        return 1 / (math.sqrt(2) * self.balance)

    def slopes(self, score: ArrayLike, target: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """(g, h); a score that is not a number counts as 0, and a label by its sign alone."""
        y = np.where(np.asarray(target, dtype=np.float64) > 0, 1.0, -1.0)
        size = expit(-y * np.asarray(score, dtype=np.float64))
        size = np.where(np.isnan(size), 0.5, size)
        return np.asarray(-y * size), np.asarray(size * (1 - size))

    def sensitivity(self, neighbours: Neighbours = "replace", *, robust: bool = False) -> float:
        """Δ(τ), exactly."""
        return logistic_sensitivity(self.balance, neighbours, robust=robust)


@dataclass(frozen=True)
class PoissonNewton:
    """e^t − yt for a count y in [0, Y]: g = e^t − y, cut to ±G, and h = e^t, cut to H."""

    count_bound: float  # Y, public; larger counts are cut to it
    curvature_bound: float  # H
    gradient_bound: float  # G
    balance: float  # τ; at G/H the noise of p is within 12 % of its least, 2G/μ
    kind: ClassVar[str] = "poisson"

    def __post_init__(self) -> None:
        for name in ("count_bound", "curvature_bound", "gradient_bound"):
            within(1 / LARGEST_SLOPE, LARGEST_SLOPE, **{name: getattr(self, name)})
        positive(balance=self.balance)

    @classmethod
    def of(cls, count_bound: float, curvature_bound: float, gradient_bound: float) -> Self:
        """Return the loss with the larger of 1 and G/H for τ."""
        balance = max(1.0, gradient_bound / curvature_bound)
        return cls(count_bound, curvature_bound, gradient_bound, balance)

    @property
    def robust_weight(self) -> float:
        """ω of the squared slopes: 0.55H/G², or less where τ asks for it."""
        most = 0.55 * self.curvature_bound / self.gradient_bound**2
        return min(most, 0.7 / (self.balance * self.gradient_bound))

    def slopes(self, score: ArrayLike, target: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """(g, h), inside their bounds whatever is given; what is not a number counts as 0."""
        t = np.clip(np.nan_to_num(np.asarray(score, dtype=np.float64)), *LOG_RATES)
        y = np.clip(np.nan_to_num(np.asarray(target, dtype=np.float64)), 0.0, self.count_bound)
        rate = np.exp(t)
        g = np.clip(rate - y, -self.gradient_bound, self.gradient_bound)
        return np.asarray(g), np.asarray(np.minimum(rate, self.curvature_bound))

    def sensitivity(self, neighbours: Neighbours = "replace", *, robust: bool = False) -> float:
        """Δ for curvatures in [0, H] and gradients in [−G, G]."""
        bounds, weight = (self.curvature_bound, self.gradient_bound), self.robust_weight * robust
        return bounded_sensitivity(*bounds, self.balance, neighbours, robust_weight=weight)


def logistic_sensitivity(
    balance: float, neighbours: Neighbours = "replace", *, robust: bool = False
) -> float:
    """Δ(τ) of logistic loss: 2/τ up to τ*, and the larger of two cubics' values beyond.

    `robust` counts the squared slopes too, with ω = 1/(√2·τ), for which τ is at most 4.5.

    >>> round(logistic_sensitivity(4.0), 6), round(logistic_sensitivity(8.0), 4)
    (0.5, 0.365)
    """
    positive(balance=balance)
    one_of(NEIGHBOURS, neighbours=neighbours)
    if robust and balance > FREE_SQUARES:
        raise InvalidValueError(
            "Expected balance={balance!r} <= {free_squares} where squared slopes are sent: "
            "beyond, they would cost noise.",
            balance=balance,
            free_squares=FREE_SQUARES,
        )
    if neighbours == "zero-out":
        return _zero_out(balance, 0.5 if robust else 0.0) * NUDGE
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
    *,
    robust_weight: float = 0.0,
) -> float:
    """Δ of any loss with 0 ≤ h ≤ H and |g| ≤ G; ω is the weight of its squared slopes, if sent.

    >>> round(bounded_sensitivity(1.0, 1.0, 1.0) ** 2, 9)
    5.0
    """
    positive(curvature_bound=curvature_bound, gradient_bound=gradient_bound, balance=balance)
    nonnegative(robust_weight=robust_weight)
    one_of(NEIGHBOURS, neighbours=neighbours)
    ratio = (gradient_bound / (balance * curvature_bound)) ** 2
    squares = (robust_weight * gradient_bound**2 / curvature_bound) ** 2
    if 2 * squares > ratio:
        raise InvalidValueError(
            "Expected robust_weight={robust_weight!r} at most 1/(√2·balance·gradient_bound).",
            robust_weight=robust_weight,
        )
    if neighbours == "zero-out":
        return curvature_bound * math.sqrt(1 + squares + ratio) * NUDGE
    first = 2 + 2 * squares  # 2K
    corner = first + 2 * ratio + ratio**2 / first if ratio <= first else 0.0
    return curvature_bound * math.sqrt(max(1 + 4 * ratio, corner)) * NUDGE


def _zero_out(balance: float, squares: float) -> float:
    """Return the largest √(a²(1 − a)² + (q·a⁴ + a²)/τ²), q = `squares` = ω²τ²: at a = 1, or at the
    smaller zero of (2τ² + 2q)a² − 3τ²a + τ² + 1, if it is real.
    """
    square = balance**2
    first = 2 * square + 2 * squares
    inner = 9 * square**2 - 4 * first * (square + 1)
    a = np.array([1.0, (3 * square - math.sqrt(inner)) / (2 * first)] if inner >= 0 else [1.0])
    return float(np.sqrt(a**2 * (1 - a) ** 2 + (squares * a**4 + a**2) / square).max())


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
        mean = numbers(LARGEST_NUMBER, mean=self.mean)
        matrix = numbers(LARGEST_WHITENING, matrix=self.matrix)
        beta = numbers(LARGEST_NUMBER, coefficients=self.coefficients)
        p = mean.size
        if mean.ndim != 1 or not p or matrix.shape != (p, p) or beta.shape != (p,):
            raise InvalidValueError(
                "Expected mean and coefficients of one length p and matrix of shape (p, p), got "
                "{shape}, {shape_2} and {shape_3}.",
                shape=mean.shape,
                shape_2=beta.shape,
                shape_3=matrix.shape,
            )
        if np.triu(matrix, 1).any() or not np.diagonal(matrix).all():
            raise InvalidValueError(
                "Expected matrix to be lower triangular with a nonzero diagonal: only such a "
                "whitening can be undone."
            )
        finite(intercept=self.intercept)
        if abs(self.intercept) > LARGEST_NUMBER:
            raise InvalidValueError(
                "Expected intercept={intercept!r} to be at most {largest_number:g} in size.",
                intercept=self.intercept,
                largest_number=LARGEST_NUMBER,
            )
        for name, value in (("mean", mean), ("matrix", matrix), ("coefficients", beta)):
            object.__setattr__(self, name, fixed(value))
        object.__setattr__(self, "intercept", float(self.intercept))

    @property
    def dimension(self) -> int:
        """p, the number of encoded features."""
        return self.mean.size

    @cached_property
    def scores(self) -> tuple[float, float]:
        """Mean and standard deviation of the scores, by what the map says of the features."""
        spread = np.linalg.norm(np.linalg.solve(self.matrix.T, self.coefficients))
        return self.intercept + float(self.coefficients @ self.mean), float(spread)

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

    def columns(self, v: FloatArray, *, alone: bool = False) -> tuple[FloatArray, FloatArray]:
        """Compute features and scores of many rows, in columns.

        Args:
            v: (n, p) finite numbers.
            alone: whether each row is computed by itself, in an order of its own and element by
                element, so that no bit depends on other rows or on its place among them. A product
                of matrices may round a row by its place.

        Returns:
            f (p, n), and t (n,) clipped to ±500.
        """
        if alone:
            x = np.array(v.T, order="C")
            f, t = np.zeros(x.shape), np.full(len(v), self.intercept)
            products = np.empty(x.shape)
            for place, (column, centre) in enumerate(zip(x, self.mean, strict=True)):
                t += self.coefficients[place] * column
                column -= centre
                np.multiply(self.matrix[place:, place, None], column, out=products[place:])
                f[place:] += products[place:]
        else:  # `np.dot` lets other threads run, unlike `@`
            f = np.dot(self.matrix, v.T)
            f -= (self.matrix @ self.mean)[:, None]
            t = np.dot(v, self.coefficients)
            t += self.intercept
        return f, np.clip(t, -LARGEST_SCORE, LARGEST_SCORE, out=t)

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
                        "Expected {i} numbers in row {i_2} of whitening, got {row_count}.",
                        i=i + 1,
                        i_2=i,
                        row_count=len(row),
                    )
                matrix[i, : i + 1] = row
            return cls(entry["mean"], matrix, entry["coefficients"], entry["intercept"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            if isinstance(error, InvalidValueError):
                raise
            raise InvalidValueError(
                "Expected a map's mean, whitening, coefficients and intercept: {error!r}.",
                error=error,
            ) from error


def norms(x: FloatArray) -> FloatArray:
    """‖x‖ of each row, scaled by its largest entry: no square overflows or vanishes."""
    largest, _, length = _scaled(x)
    with np.errstate(over="ignore"):  # an infinite norm of finite numbers is a norm above any bound
        return np.asarray((largest * length)[..., 0])


def root_mean_square(x: FloatArray) -> float:
    """√(mean of x²) of some numbers, scaled by the largest: no square overflows or vanishes."""
    largest = float(np.abs(x).max(initial=0.0))
    if not 0 < largest < math.inf:
        return largest
    return largest * math.sqrt(float(np.mean((x / largest) ** 2)))


def into_ball(x: FloatArray, reach: float) -> FloatArray:
    """x/max(‖x‖, reach) for finite rows: x/reach, cut to the unit ball."""
    largest, w, length = _scaled(x)
    with np.errstate(over="ignore"):  # then the other term is the smaller one
        return np.asarray(w * np.minimum(largest / reach, 1 / np.maximum(length, 1.0)))


def _scaled(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the largest entry of each row, the row over it, and the norm of that."""
    largest = np.abs(x).max(axis=-1, keepdims=True, initial=0.0)
    w = x / np.where(largest > 0, largest, 1.0)
    return largest, w, np.sqrt(np.einsum("...i,...i->...", w, w))[..., None]


def numbers(most: float, **named: ArrayLike) -> FloatArray:
    """Return the one named array as finite floats of bounded size, in a copy of its own."""
    ((name, value),) = named.items()
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidValueError(
            "Expected {name} to be an array of numbers: {error}.", name=name, error=error
        ) from error
    if not (np.isfinite(array).all() and (np.abs(array) <= most).all()):
        raise InvalidValueError(
            "Expected {name} to be finite numbers of at most {most:g} in size; no release that "
            "teaches anything gives others.",
            name=name,
            most=most,
        )
    return array


def gaussian_mean(function: Callable[[FloatArray], FloatArray], mean: float, sd: float) -> float:
    """E[f(t)] for t ~ N(mean, sd²), by 21 points of Gauss and Hermite."""
    return float(NORMAL_WEIGHTS @ function(mean + sd * NORMAL_NODES))


def within(low: float, high: float, **values: float) -> None:
    """Refuse a named value that is not between two numbers."""
    positive(**values)
    for name, value in values.items():
        if not low <= value <= high:
            raise InvalidValueError(
                "Expected {name}={value!r} between {low:g} and {high:g}.",
                name=name,
                value=value,
                low=low,
                high=high,
            )


def _yes_or_no(**values: object) -> None:
    for name, value in values.items():
        if type(value) is not bool:
            raise InvalidValueError(
                "Expected {name}={value!r} to be true or false.", name=name, value=value
            )


class PublicMap:
    """What every map has: a whitening, and its own numbers as an agreement states them."""

    whitening: Whitening
    kind: ClassVar[str]  # as an agreement calls it
    written: ClassVar[tuple[str, ...]]

    def spread(self, radius: float) -> float:
        """r√p, beyond which ‖f‖ counts less."""
        return radius * math.sqrt(self.whitening.dimension)

    def to_dict(self) -> dict[str, Any]:
        """Write it as part of an agreement."""
        own = {name: getattr(self, name) for name in self.written}
        lists = {name: one.tolist() for name, one in own.items() if isinstance(one, np.ndarray)}
        return {"kind": self.kind, **self.whitening.to_dict(), **own, **lists}


@dataclass(frozen=True, eq=False)
class ResidualMap(PublicMap):
    """z = (c·s, a·s·f/(r√p), b·s·g/bound), s = min(1, r√p/‖f‖): ‖(z₁, …)‖ ≤ 1 for every record."""

    whitening: Whitening  # m, W and the last model
    radius: float  # r; a record with ‖f‖ > r√p has the weight s < 1
    scale: float  # the residuals' spread as far as it is known
    bound: float  # R; s·g, g = (y − t)/scale, is cut to ±R
    constant: float = 0.25  # c, the largest first entry of z
    feature_weight: float = 0.8  # a
    target_weight: float = 0.6  # b; a² + b² ≤ 1
    robust: bool = False  # whether squared errors are sent as well
    stride: int = 1  # of so many rows that are held one sends them: they are a spread alone
    kind = "residual"
    written: ClassVar[tuple[str, ...]] = "radius", "scale", "bound", "weights", "robust", "stride"
    robust_weight: ClassVar[float] = 0.5  # ω, which costs a 25th more noise

    def __post_init__(self) -> None:
        within(SMALLEST_RADIUS, LARGEST_RADIUS, radius=self.radius, bound=self.bound)
        within(1 / LARGEST_NUMBER, LARGEST_NUMBER, scale=self.scale)
        within(0.01, 1.0, constant=self.constant, feature_weight=self.feature_weight)
        within(0.01, 1.0, target_weight=self.target_weight)
        _yes_or_no(robust=self.robust)
        whole(stride=self.stride)
        if self.feature_weight**2 + self.target_weight**2 > 1:
            raise InvalidValueError(
                "Expected feature_weight={feature_weight!r} and "
                "target_weight={target_weight!r} to have squares that sum to at most 1.",
                feature_weight=self.feature_weight,
                target_weight=self.target_weight,
            )

    @property
    def feature_scale(self) -> float:
        """a/(r√p): the weight of each whitened feature in z."""
        return self.feature_weight / self.spread(self.radius)

    @property
    def target_scale(self) -> float:
        """b/bound: the weight of the residual in z."""
        return self.target_weight / self.bound

    @property
    def typical_square(self) -> float:
        """What a row is expected to add to Σg²xxᵀ of each feature, where nothing is cut."""
        return (self.feature_scale / self.bound) ** 2

    def sensitivity(self, neighbours: Neighbours = "replace") -> float:
        """Δ of Σzzᵀ, and of squared errors if they are sent, whatever the map is: √2(c² + 1), or
        c² + 1 where a record is left out, and what B adds.
        """
        one_of(NEIGHBOURS, neighbours=neighbours)
        replaced, squares = neighbours == "replace", self.robust_weight**2 if self.robust else 0.0
        features = self.constant**2 + self.feature_weight**2  # K
        apart = self.target_weight**4 / (1 + squares) if replaced else 0.0
        whole = (self.constant**2 + 1) ** 2 + squares * (features**2 - apart)
        return math.sqrt((2 if replaced else 1) * whole) * NUDGE

    def vectors(self, v: ArrayLike, y: ArrayLike, *, together: bool = False) -> FloatArray:
        """z of each record, or of the rows of one person, which are cut `together`."""
        f, reach = self.whitening.features(v), self.spread(self.radius)
        size = norms(f)
        if together:
            size = np.full(len(size), root_mean_square(size))
        with np.errstate(all="ignore"):
            weight = reach / np.maximum(size, reach)
            g = weight * (np.asarray(y, dtype=np.float64) - self.whitening.score(v)) / self.scale
        g = np.nan_to_num(g, nan=0.0, posinf=_HUGE, neginf=-_HUGE)
        if together:
            length = np.array(len(f) ** -0.5)  # so that the rows side by side are one vector
            inside = into_ball((f * length).reshape(-1), reach).reshape(f.shape) / length
            g = g / max(self.bound, root_mean_square(g))
        else:
            inside = into_ball(f, reach)
            g = np.clip(g, -self.bound, self.bound) / self.bound
        z = np.empty((*f.shape[:-1], f.shape[-1] + 2))
        z[..., 0] = self.constant * weight
        z[..., 1:-1] = self.feature_weight * inside
        z[..., -1] = self.target_weight * g
        return z

    def sizes(self, v: FloatArray, y: FloatArray) -> FloatArray:
        """‖f‖/√p and g of finite rows (n, p) with targets (n,), each computed alone: (2, n)."""
        f, t = self.whitening.columns(v, alone=True)
        squares = np.zeros(len(v))
        for feature in f:
            squares += feature * feature
        return np.stack([np.sqrt(squares / len(f)), (y - t) / self.scale])

    def columns(self, v: FloatArray, y: FloatArray, people: FloatArray | None = None) -> FloatArray:
        """z of many rows, in columns: (p + 2, n).

        Args:
            v: (n, p) finite numbers.
            y: (n,) targets, finite.
            people: (2, n), for each row the root mean squares of `sizes` over all rows of its
                person, by which these are cut together. Each row is then computed alone.
        """
        f, t = self.whitening.columns(v, alone=people is not None)
        g = (y - t) / self.scale
        reach = self.spread(self.radius)
        if people is None:
            length = np.sqrt(np.einsum("ij,ij->j", f, f))
        else:
            length = people[0] * math.sqrt(self.whitening.dimension)
        weight = reach / np.maximum(length, reach)
        g *= weight
        if people is None:
            np.clip(g, -self.bound, self.bound, out=g)
        else:
            g *= self.bound / np.maximum(self.bound, weight * people[1])
        z = np.empty((len(f) + 2, len(v)))
        np.multiply(weight, self.constant, out=z[0])
        np.multiply(f, weight * self.feature_scale, out=z[1:-1])
        np.multiply(g, self.target_scale, out=z[-1])
        return z

    def sums(
        self,
        v: FloatArray,
        y: FloatArray,
        weights: FloatArray | None = None,
        people: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray | None]:
        """(Σzzᵀ, Σg²xxᵀ) of many finite rows (n, p), the last only if it is sent; with weights (n,)
        each row counts so much, without its square. `people` is that of `columns`.
        """
        z = self.columns(v, y, people)
        squares = self.slopes(z) if self.robust and weights is None else None
        if weights is not None:
            z *= np.sqrt(weights)
        return np.dot(z, z.T), None if squares is None else np.dot(squares, squares.T)

    def slopes(self, z: FloatArray) -> FloatArray:
        """g·x of rows (p + 2, n) as `columns` gives them: (p + 1, n)."""
        return np.asarray(z[:-1] * (z[-1] / self.target_weight))

    @property
    def weights(self) -> list[float]:
        """[c, a, b]."""
        return [self.constant, self.feature_weight, self.target_weight]


@dataclass(frozen=True, eq=False)
class NewtonMap(PublicMap):
    """(h·xxᵀ, −g·x)/max(1, ‖x‖²) at the score t, with x = (f/(r√p), κ)/√(1 + κ²)."""

    whitening: Whitening  # m, W and the last model
    loss: LogisticNewton | PoissonNewton  # what g and h are the slopes of
    constant: float = 0.3  # κ; not divided by r, so that the constant's noise does not grow with it
    radius: float = 1.0  # r ≥ 1; a record with ‖f‖ > r√p counts less
    robust: bool = False  # whether the squared slopes are sent as well
    stride: int = 1  # as of a residual map
    kind = "newton"
    written: ClassVar[tuple[str, ...]] = "constant", "radius", "robust", "stride"

    def __post_init__(self) -> None:
        within(0.01, 100.0, constant=self.constant)
        within(1.0, LARGEST_RADIUS, radius=self.radius)  # so that no finite f becomes infinite
        _yes_or_no(robust=self.robust)
        whole(stride=self.stride)
        self.sensitivity()  # is refused where squared slopes are not free

    @property
    def robust_weight(self) -> float:
        """ω of the squared slopes: the loss's own."""
        return self.loss.robust_weight

    @property
    def scale(self) -> tuple[float, float]:
        """What f and the constant 1 are multiplied by in x."""
        length = math.hypot(1.0, self.constant)
        return 1 / (self.spread(self.radius) * length), self.constant / length

    @cached_property
    def mean_curvature(self) -> float:
        """h̄ = E[h(t)] for Gaussian features, by what the map itself says of them."""
        return gaussian_mean(lambda t: self.loss.slopes(t, 0.0)[1], *self.whitening.scores)

    @property
    def typical_square(self) -> float:
        """What a row is expected to add to Σppᵀ of each feature, where the model is true."""
        return self.mean_curvature * self.scale[0] ** 2

    def sensitivity(self, neighbours: Neighbours = "replace") -> float:
        """Δ of (ΣM, Σp), with Σppᵀ if it is sent, whatever the map is: the loss's own."""
        return self.loss.sensitivity(neighbours, robust=self.robust)

    def records(self, v: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(u, g, h) with u = x/max(1, ‖x‖) and g divided alike: (h·uuᵀ, −g·u) is sent."""
        f = self.whitening.features(v)
        of_features, constant = self.scale
        x = np.empty((*f.shape[:-1], f.shape[-1] + 1))
        x[..., :-1] = of_features * f
        x[..., -1] = constant
        length = np.hypot(of_features * norms(f), constant)
        g, h = self.loss.slopes(self.whitening.score(v), y)
        return into_ball(x, 1.0), g / np.maximum(1.0, length), h

    def columns(
        self, v: FloatArray, y: FloatArray, *, alone: bool = False
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """x (p + 1, n) of many finite rows (n, p), and g and h (n,) over max(1, ‖x‖²): (h·xxᵀ,
        −g·x) is sent. `alone` is that of `Whitening.columns`.
        """
        f, t = self.whitening.columns(v, alone=alone)
        of_features, constant = self.scale
        g, h = self.loss.slopes(t, y)
        x = np.empty((len(f) + 1, len(v)))
        np.multiply(f, of_features, out=x[:-1])
        x[-1] = constant
        if alone:
            squares = np.full(len(v), constant**2)
            for feature in x[:-1]:
                squares += feature * feature
        else:
            squares = np.einsum("ij,ij->j", x, x)
        weight = 1 / np.maximum(1.0, squares)
        return x, g * weight, h * weight

    def sums(
        self, v: FloatArray, y: FloatArray, weights: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """(ΣM, Σp, Σppᵀ) of many finite rows (n, p), the last only if it is sent; with weights (n,)
        each row counts so much, without its square, and is computed alone.
        """
        x, g, h = self.columns(v, y, alone=weights is not None)
        squares = x * g if self.robust and weights is None else None
        if weights is not None:
            g, h = g * weights, h * weights
        linear = -np.dot(x, g)
        x *= np.sqrt(h)
        return np.dot(x, x.T), linear, None if squares is None else np.dot(squares, squares.T)

    def to_dict(self) -> dict[str, Any]:
        """Write it as part of an agreement, with the numbers of its loss."""
        return super().to_dict() | {"kind": self.loss.kind, **asdict(self.loss)}


WaveMap = ResidualMap | NewtonMap  # what a later wave announces
