"""Public weights: how much of the one vector z each column gets, before anybody has answered.

All columns of a record share the ball ‖u‖ ≤ 1 of `blurfit.theory.joint`, and the noise on entry
(j, k) is σ/(√2ωⱼωₖ). The weights of the columns, of the intercept (c) and of the target (b) are
part of the agreement, so they may depend only on what is public: the kinds of the columns, how many
people there are (n), and the promise (μ).

**Columns.** With the noise standardised by the spread of its column, minimise Σ 1/(ω²sd²) subject
to Σω² fixed: ω ∝ sd^(−1/2). A column of signs ±1 has a spread near 1, and g = 1. A number in
[−1, 1] is taken to have sd ½: g = √2. A categorical with K levels, one-hot with one ω, has K − 1
coefficients of sd √((1/K)(1 − 1/K)) if the levels are equally frequent, so Σ 1/sd² = K² and g = √K
(two levels: √2, as a {0, 1} column of sd ½). Of many levels most are rare, and nothing can be
learned about them at any weight, so g is at most 2.

**Intercept and target.** (c, b) minimise a proxy of the expected excess risk of a shrunk fit: the
prior variance V of the target's mean against the noise e₀ on it, plus, for each of p directions,
the signal g against the noise N_i,

    e₀V/(e₀ + V) + Σ_i gN_i/(g + N_i),      g = R²V/p,
    e = s²/(2n²b²),  a² = (1 − b²)/p,  e₀ = e(1 + ½f·b²/a²)/c²,
    N_i = e(1 + b²(¼/c² + ½f/a²))/(a²ℓ_i) + 0.6V/n,

where s = Δ(c, 1)/μ is the noise on the diagonal, ℓ_i the spectrum of the standardised features,
and f = mean g/(g + N) how much of the signal is kept, and with it the noise on the matrix of
features that multiplies it. Choices, not derivations: V = ¼, R² = 0.4, ℓ geometric from 0.03 to 1,
0.6 = 1 − R² of residual variance, and the grid. They were set with the American Community Survey
in view; twelve small sets and a second census gave the same picture.

**c beyond 1.** Where noise dominates, only the mean is learned, whose noise is Δ/(√2·cbnμ). Under
`replace` that is 2/(bnμ) for every c ≥ 1 (Δ = 2√2·c there): as if the mean alone were released,
and no larger c is tried. Under `zero-out` Δ = √(2c² + 1), so it is √(1 + 1/(2c²))/(bnμ): 22 % more
than the mean alone would take at c = 1, and 3 % at c = 3.

**ψ = nμ/p^1.5.** For many columns N_i/g → s²n⁻²·p³·f/(4R²V(1−b²)²ℓ_i) + 0.6p/(R²n): at equal
ψ the noise bears the same relation to the signal. That is why rules for estimators are written in
ψ; the exponent follows from this proxy, and is exact only for large p.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError
from blurfit.theory.joint import sensitivity
from blurfit.theory.setting import Neighbours
from blurfit.validate import positive, whole

Kind = Literal["numeric", "sign"] | int  # a whole number: a categorical with so many levels

_SPREAD, _EXPLAINED = 0.25, 0.4
_INTERCEPTS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0)
_LONG_INTERCEPTS = (1.4, 2.0, 3.0)
_TARGETS = (0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
_MOST = 2.0
_HALF_STEPS = 40


@dataclass(frozen=True)
class ChosenWeights:
    """c of the intercept, ω of each feature (one for all levels of a categorical), b of the target.

    Σω² + b² = 1, so that the vector of all weighted columns stays in the unit ball.
    """

    constant: float
    features: tuple[float, ...]
    target: float


def public_weights(
    features: Sequence[Kind], count: int, mu: float, *, neighbours: Neighbours = "replace"
) -> ChosenWeights:
    """The default weights, which follow from the kinds of the features, n and μ alone.

    Args:
        features: "numeric" for a number in [−1, 1], "sign" for ±1, or how many levels there are.
        count: How many people will take part (the quorum).
        mu: The Gaussian privacy of the sums.
        neighbours: What one person may change.

    >>> weights = public_weights(["numeric", "sign", 3], count=10_000, mu=1.0)
    >>> round(sum(w**2 for w in weights.features) + weights.target**2, 12)
    1.0
    """
    whole(count=count)
    positive(mu=mu)
    if not features:
        raise InvalidValueError(
            "Expected features to be at least one kind of column, got none: without features there "
            "is nothing to weigh."
        )
    shares = [_share(kind) for kind in features]
    coefficients = sum(kind - 1 if isinstance(kind, int) else 1 for kind in features)
    return _shared(shares, *_best_pair(coefficients, count, mu, neighbours))


def weights_beside_public_rows(features: Sequence[Kind], constant: float = 0.4) -> ChosenWeights:
    """Weights where rows of the features are public, and only the target's products matter.

    The noise on Σyx, beside a target of weight b and everything else of length R, is
    (R² + b²)/(bμ) for x of unit length: least at b = R, where it is that of releasing Σyx alone.
    With R² = c² + Σω² and Σω² + b² = 1 that is b² = (1 + c²)/2. The features share the rest as
    before. c = 0.4 is a choice: the means must be known as well, to match the public rows.
    """
    positive(constant=constant)
    target = math.sqrt((1 + constant**2) / 2)
    if not features or target >= 1:
        raise InvalidValueError(
            f"Expected features, and constant={constant!r} below 1: otherwise nothing is left for "
            "them."
        )
    return _shared([_share(kind) for kind in features], constant, target)


@lru_cache(maxsize=256)  # each wave of a plan, and each reader of it, asks for the same pair
def _best_pair(
    coefficients: int, count: int, mu: float, neighbours: Neighbours
) -> tuple[float, float]:
    """The (c, b) of a grid at which the proxy is least."""
    constants = _INTERCEPTS + (_LONG_INTERCEPTS if neighbours == "zero-out" else ())
    pairs = np.array([(c, b) for c in constants for b in _TARGETS])
    best = int(np.argmin(excess_risks(coefficients, count, mu, pairs, neighbours)))
    constant, target = pairs[best]
    return float(constant), float(target)


def excess_risks(
    coefficients: int, count: int, mu: float, pairs: FloatArray, neighbours: Neighbours = "replace"
) -> FloatArray:
    """The proxy of the module's docstring for p coefficients and n people, for each pair (c, b)."""
    reach = {c: sensitivity(c, 1.0, neighbours) for c in set(pairs[:, 0].tolist())}
    noise = np.array([[reach[c] / mu] for c in pairs[:, 0].tolist()])
    constant, target = pairs[:, :1], pairs[:, 1:]
    signal = _EXPLAINED * _SPREAD / coefficients
    spectrum = np.geomspace(0.03, 1.0, coefficients) if coefficients > 1 else np.ones(1)
    weight = (1 - target**2) / coefficients
    error = noise**2 / (2 * count**2 * target**2)
    kept, lost = np.ones_like(target), np.zeros((len(pairs), coefficients))
    for _ in range(_HALF_STEPS):  # to the only fixed point of f: lost grows with kept
        on_matrix = target**2 * (0.25 / constant**2 + 0.5 * kept / weight)
        lost = error * (1 + on_matrix) / (weight * spectrum) + 0.6 * _SPREAD / count
        kept = (kept + np.mean(signal / (signal + lost), axis=1, keepdims=True)) / 2
    of_mean = (error * (1 + 0.5 * kept * target**2 / weight) / constant**2)[:, 0]
    slopes = np.sum(signal * lost / (signal + lost), axis=1)
    found: FloatArray = of_mean * _SPREAD / (of_mean + _SPREAD) + slopes
    return found


def information(count: int, mu: float, coefficients: int) -> float:
    """ψ = nμ/p^1.5: how far the signal stands above the noise, whatever the columns are."""
    whole(count=count, coefficients=coefficients)
    positive(mu=mu)
    return count * mu / math.pow(coefficients, 1.5)


def _shared(proportions: Sequence[float], constant: float, target: float) -> ChosenWeights:
    """What c and b leave for the features, in these proportions."""
    shares = np.array(proportions)
    weights = shares * math.sqrt((1 - target**2) / float(shares @ shares))
    return ChosenWeights(constant, tuple(weights.tolist()), target)


def _share(kind: Kind) -> float:
    if kind == "sign":
        return 1.0
    if kind == "numeric":
        return math.sqrt(2)
    if isinstance(kind, bool) or not isinstance(kind, int) or kind < 2:
        raise InvalidValueError(
            f"Expected features to be 'numeric', 'sign' or a number of levels >= 2, got {kind!r}."
        )
    return min(math.sqrt(kind), _MOST)
