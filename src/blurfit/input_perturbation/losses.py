"""The paper's losses: a record as a quadratic, ℓ(w) = ½wᵀqqᵀw − pᵀw + s.

Section "Loss Function for Input Perturbation". A loss turns (x, y) into (q, p, s); Algorithm 1
blurs q and p, and Algorithm 2 learns from the sums of what contributors send.

| loss | of | q | p |
| --- | --- | --- | --- |
| `SquaredLoss` | ½(y − w·x)² | x | yx |
| `LogisticLoss` | ln(1 + e^{−y w·x}) by a parabola | √c·x | ½yx |

| here | paper | meaning |
| --- | --- | --- |
| `q_bound` | √λ | R_q ≥ ‖q‖ for every record that may occur |
| `p_bound` | ≤ ζ | R_p ≥ ‖p‖ for every record that may occur |

Privacy rests on the bounds, so `terms` rejects a record outside them. Any object with `terms`,
`q_bound` and `p_bound` is a loss; `check_bounds` tries it on data that might occur.

**A parabola** a + ½cz² stands in place of the even part f of a loss, over |z| = |w·x| ≤ Z = ηR:

| approximation | the parabola | its curvature c |
| --- | --- | --- |
| taylor | osculates f at 0 | f''(0) |
| chebyshev | has the least largest error over [−Z, Z] | 2∫₀¹(1 − t)f''(Zt)dt |
| least-squares | has the least mean squared error there | 15/16·∫₋₁¹(1 − t²)²f''(Zt)dt |

Each c is a mean of f'' over the interval: c > 0 where f is convex, so √c exists.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from blurfit.data import FloatArray
from blurfit.errors import InvalidValueError, nonnegative, one_of, positive
from blurfit.theory.gaussian import brent

Approximation = Literal["taylor", "chebyshev", "least-squares"]
APPROXIMATIONS: tuple[Approximation, ...] = ("taylor", "chebyshev", "least-squares")

TOLERANCE = 1e-9  # by how much, relatively, rounding may carry an honest record beyond a bound
_ROUNDING = 16 * float(np.finfo(float).eps)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_PANEL = 2.0
_FADED = 48.0  # e⁻⁴⁸ is less than half a unit in the last place of 1


def read(
    features: ArrayLike, target: ArrayLike, feature_bound: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return x, y and the shrink of each x; refuse the first row outside the ball or no number.

    A row that rounding has carried over the sphere is put back onto it by shrink = R/max(R, ‖x‖),
    so R holds for what is sent and not only up to a tolerance. The product is never formed: each q
    and p is some multiple of x, and so takes its shrink along with its own coefficient, without a
    second n × d array.
    """
    x, y = paired(features, target)
    norm = row_norms(x)
    refuse_first(
        ~(norm <= feature_bound * (1 + TOLERANCE)),  # so that NaN is refused as well
        "features",
        f"whose norm is not within feature_bound={feature_bound:g}, and privacy rests upon that "
        "bound; fill in what is missing, and scale features by public bounds or agree on a larger "
        "one",
    )
    return x, y, np.asarray(feature_bound / np.maximum(norm, feature_bound))


def along(x: FloatArray, coefficients: FloatArray) -> FloatArray:
    """Return each record's x times its own coefficient."""
    return np.asarray(coefficients)[..., None] * x


def paired(features: ArrayLike, target: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """(d,) with a number, or (n, d) with (n,); anything else is refused."""
    x, y = numbers(features=features), numbers(target=target)
    if x.ndim not in (1, 2) or x.shape[-1] == 0 or y.shape != x.shape[:-1]:
        raise InvalidValueError(
            "Expected features of shape (d,) with one number as target, or (n, d) with (n,), "
            f"and got {x.shape} with {y.shape}."
        )
    return x, y


def numbers(**named: ArrayLike) -> FloatArray:
    """Return the one named array as float64, without a copy where it is that already."""
    ((name, given),) = named.items()
    try:
        array = np.asarray(given)
    except ValueError:
        raise InvalidValueError(f"Expected {name} to be an array of numbers.") from None
    if array.dtype.kind not in "biuf":
        raise InvalidValueError(
            f"Expected {name} to be an array of real numbers, and got dtype {array.dtype}; "
            "encode words as numbers first."
        )
    return array.astype(np.float64, copy=False)


def row_norms(x: FloatArray) -> FloatArray:
    """‖x‖ of each row, without the n × d array of squares that `numpy.linalg.norm` makes."""
    return np.asarray(np.sqrt(np.einsum("...i,...i->...", x, x)))


def refuse_first(bad: Any, what: str, remedy: str) -> None:
    """Raise for the first bad row, naming it but not its value (one record is row 0)."""
    bad = np.atleast_1d(bad)
    if bad.any():
        row = int(bad.argmax())
        raise InvalidValueError(f"Row {row} has {what} {remedy}.")


class Quadratic(NamedTuple):
    """½wᵀqqᵀw − pᵀw + s of one record (q and p of shape (d,)) or of n ((n, d), and s (n,))."""

    q: FloatArray
    p: FloatArray
    s: FloatArray


@runtime_checkable
class QuadraticLoss(Protocol):
    """Turns records into quadratics within public bounds; nothing need inherit it."""

    @property
    def q_bound(self) -> float:
        """R_q ≥ ‖q‖ for every record that may occur."""
        ...

    @property
    def p_bound(self) -> float:
        """R_p ≥ ‖p‖ for every record that may occur."""
        ...

    def terms(self, features: ArrayLike, target: ArrayLike) -> Quadratic:
        """(q, p, s) of one record (x of shape (d,), y a number) or of n (X (n, d), y (n,))."""
        ...


def value(terms: Quadratic, weights: ArrayLike) -> FloatArray:
    """½(q·w)² − p·w + s, which is ½wᵀqqᵀw − pᵀw + s without the d × d matrix.

    >>> value(SquaredLoss().terms([[0.6, 0.8], [0.0, 0.5]], [1.0, -0.5]), [1.0, 0.5]).tolist()
    [0.0, 0.28125]
    """
    w = numbers(weights=weights)
    if w.shape != terms.q.shape[-1:]:
        raise InvalidValueError(
            f"Expected weights of shape {terms.q.shape[-1:]}, one per feature, and got {w.shape}."
        )
    result: FloatArray = (terms.q @ w) ** 2 / 2 - terms.p @ w + terms.s
    return result


def check_bounds(loss: QuadraticLoss, features: ArrayLike, target: ArrayLike) -> None:
    """Reject a loss that breaks its own bounds on these records, naming the row and the bound.

    A bound may be missed by a rounding error of 10⁻⁹. Data can refute a bound and cannot prove it:
    try records at the edge of what may occur.
    """
    positive(q_bound=loss.q_bound)
    nonnegative(p_bound=loss.p_bound)
    x, _ = paired(features, target)
    q, p, s = (np.asarray(term, dtype=float) for term in loss.terms(features, target))
    for name, term, shape in (("q", q, x.shape), ("p", p, x.shape), ("s", s, x.shape[:-1])):
        if term.shape != shape:
            raise InvalidValueError(
                f"Expected {name} of shape {shape}, and terms() gave {term.shape}."
            )
    for name, term, bound in (("q", q, loss.q_bound), ("p", p, loss.p_bound)):
        refuse_first(
            ~(row_norms(np.atleast_2d(term)) <= bound * (1 + TOLERANCE)),
            f"a ‖{name}‖",
            f"above {name}_bound={bound:g}; raise the bound, or refuse such records in terms()",
        )


@dataclass(frozen=True)
class Parabola:
    """a + bz + ½cz²."""

    constant: float
    slope: float
    curvature: float

    def __call__(self, z: float) -> float:
        """Return the height at z."""
        return self.constant + z * (self.slope + self.curvature * z / 2)


def reach_of(feature_bound: float, weight_bound: float | None) -> float:
    """Z = ηR ≥ |w·x|."""
    if weight_bound is None:
        raise InvalidValueError(
            "Expected weight_bound, because an error is known within ‖w‖ <= weight_bound only; "
            "give it to approximation_error(weight_bound=1.0), say, or when the loss is made."
        )
    positive(weight_bound=weight_bound)
    reach = weight_bound * feature_bound
    positive(**{"weight_bound * feature_bound": reach})
    return reach


@dataclass(frozen=True)
class SquaredLoss:
    """½(y − w·x)² = ½wᵀxxᵀw − (yx)ᵀw + ½y², so q = x, p = yx and s = ½y².

    With ‖x‖ ≤ R (`feature_bound`) and |y| ≤ B (`target_bound`): R_q = R and R_p = RB.

    >>> SquaredLoss().terms([0.6, 0.8], 0.5).p.tolist()
    [0.3, 0.4]
    """

    feature_bound: float = 1.0
    target_bound: float = 1.0

    def __post_init__(self) -> None:
        positive(feature_bound=self.feature_bound, target_bound=self.target_bound)

    @property
    def q_bound(self) -> float:
        """R_q = R."""
        return self.feature_bound

    @property
    def p_bound(self) -> float:
        """R_p = RB."""
        return self.feature_bound * self.target_bound

    def terms(self, features: ArrayLike, target: ArrayLike) -> Quadratic:
        """(x, yx, ½y²) of each record."""
        x, y, shrink = read(features, target, self.feature_bound)
        bound = self.target_bound
        refuse_first(
            ~(np.abs(y) <= bound + TOLERANCE * bound),
            "a target",
            f"which is not within target_bound={bound:g} of 0; scale targets by public bounds, or "
            "agree on a larger target_bound",
        )
        y = np.clip(y, -bound, bound)  # what rounding has carried over an end is put back
        return Quadratic(q=along(x, shrink), p=along(x, shrink * y), s=y**2 / 2)


@dataclass(frozen=True)
class LogisticLoss:
    """ln(1 + e^{−yz}) = −yz/2 + g(z) ≈ −yz/2 + a + ½cz²; so q = √c·x, p = ½yx and s = a.

    Here z = w·x and g(z) = ln(2cosh(z/2)), since 1 + e^{−yz} = e^{−yz/2}·(e^{yz/2} + e^{−yz/2}) and
    |y| = 1. The label enters by the odd part only, and that part is linear: p is exact whichever
    parabola is chosen, and only the even part is approximated.

    With ‖x‖ ≤ R: R_q = √c·R and R_p = R/2. Since c ≤ ¼, which is Taylor's, the other
    approximations need less noise too.

    >>> LogisticLoss().q_bound, LogisticLoss().p_bound
    (0.5, 0.5)
    >>> round(LogisticLoss(approximation="chebyshev", weight_bound=2.0).approximation_error(), 4)
    0.0074
    >>> round(LogisticLoss().approximation_error(weight_bound=2.0), 4)
    0.0662
    """

    feature_bound: float = 1.0  # R, the bound on ‖x‖; records outside are refused
    approximation: Approximation = "taylor"  # at z = 0; the others are over |z| ≤ ηR
    weight_bound: float | None = None  # η; needed except for "taylor"

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
        x, y, shrink = read(features, target, self.feature_bound)
        refuse_first(
            np.abs(y) != 1,
            "a label",
            "which is neither -1 nor +1; map labels 0 and 1 by 2 * label - 1",
        )
        q = along(x, shrink * math.sqrt(self.parabola.curvature))
        return Quadratic(q, along(x, shrink * (y / 2)), np.full_like(y, self.parabola.constant))

    def approximation_error(self, weight_bound: float | None = None) -> float:
        """Return the largest |g(z) − a − ½cz²| over |z| ≤ ηR, never rounded down.

        The odd part −yz/2 is exact, so this is the error of the loss.
        """
        eta = self.weight_bound if weight_bound is None else weight_bound
        return _worst(self.parabola, reach_of(self.feature_bound, eta))


def even_part(z: float) -> float:
    """g(z) = ln(2cosh(z/2)) = |z|/2 + ln(1 + e^{−|z|}), which cannot overflow."""
    return abs(z) / 2 + math.log1p(math.exp(-abs(z)))


def _worst(parabola: Parabola, reach: float) -> float:
    """Return the largest |e(z)|, e(z) = g(z) − a − ½cz², over |z| ≤ Z, never too small.

    It is at 0, at Z, where 4cosh²(z/2) = 1/c, or where e' = 0 (docs/theory/parabolas.md).
    """

    def slope(z: float) -> float:
        return math.tanh(z / 2) / 2 - parabola.curvature * z

    turn = 2 * math.acosh(max(1.0, 0.5 / math.sqrt(parabola.curvature)))
    points = [0.0, min(turn, reach), reach]
    for low, high in pairwise(tuple(points)):
        if slope(low) * slope(high) < 0:
            points.append(brent(slope, low, high))
    largest = max(abs(even_part(z) - parabola(z)) for z in points)
    return largest + _ROUNDING * max(largest, even_part(reach) + parabola(reach))


def _chebyshev(reach: float) -> Parabola:
    """The best uniform one: c = 2(g(Z) − g(0))/Z², a = g(0) + D/2, D = max(g(z) − g(0) − ½cz²).

    As c = 2∫₀¹(1 − t)g''(Zt)dt no digits are lost as Z → 0 (docs/theory/parabolas.md).
    """
    c = _faded_mean(lambda z: 2 * (1 - z / reach) * _curvature(z), reach)
    chord = Parabola(math.log(2), 0.0, c)
    return Parabola(math.log(2) + _worst(chord, reach) / 2, 0.0, c)


def _least_squares(reach: float) -> Parabola:
    """The L² projection (docs/theory/parabolas.md): c = 15/16·∫₋₁¹(1 − t²)²g''(Zt)dt and
    a = ½∫₋₁¹g(Zt)dt − cZ²/6, where |z|/2 has the mean Z/4.
    """
    c = _faded_mean(lambda z: 15 / 8 * (1 - (z / reach) ** 2) ** 2 * _curvature(z), reach)
    mean = reach / 4 + _faded_mean(lambda z: np.log1p(np.exp(-z)), reach)
    return Parabola(mean - c * reach / 6 * reach, 0.0, c)


def _curvature(z: FloatArray) -> FloatArray:
    """The second derivative g'' = σ' = σ(z)σ(−z)."""
    return np.asarray(expit(z) * expit(-z))


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
