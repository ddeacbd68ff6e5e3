"""Plan a collection from public facts: the weights of columns, the waves and their bounds.

Called when an agreement or a plan is proposed (`blurfit.agreement.mechanisms`,
`blurfit.agreement.plan`) and by the estimators. All choices are functions of the kinds of the
columns, the number of people n and the Gaussian privacy μ, so they reveal nothing and the guarantee
does not depend on them.

The rules are written in the signal ratio ψ = nμ/p^1.5 (`information`) for p coefficients: at equal
ψ the noise has the same size relative to the signal, exactly for large p.

* `public_weights`: ω ∝ sd^(−1/2) of a column with an assumed spread; c of the intercept and b of
  the target minimise a proxy of the excess risk.
* `choose_plan`: contributors are divided among waves, fractions of the people. `choose_shares`:
  every row is in every wave, fractions of μ².
* `reach_of` and `newton_radius`: clipping bounds.

Guarantees, proved in `docs/theory/waves.md` and tested in `tests/theory/test_waves.py`. *People
divided by a rule that does not look at answers, each in one wave:* if for every fixed past each
release is (ε, δ)-DP for the people of its wave, everything published is (ε, δ)-DP for every person.
*Every row in every wave:* if for every fixed past release k is μ_k-GDP, all together are
√(Σμ_k²)-GDP (Dong, Roth and Su 2022, Corollary 3.3). K releases reserve K thousandths of δ for
discrete noise (`shared_mu`):

    δ_GDP(ε; μ) ≤ (1 − K/1000)·δ.

Chosen, not derived: the tables and constants below, on the American Community Survey and on
generated people; `docs/theory/choosing-waves.md` has the reasons and the data.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from blurfit.data import FloatArray
from blurfit.errors import InvalidValueError, inside_unit_interval, one_of, positive, whole
from blurfit.theory.gaussian import epsilon_of, mu_of
from blurfit.theory.moments import Neighbours, sensitivity

Kind = Literal["numeric", "sign"] | int  # a whole number: a categorical with so many levels

_SPREAD, _EXPLAINED = 0.25, 0.4
_INTERCEPTS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0)
_LONG_INTERCEPTS = (1.4, 2.0, 3.0)
_OF_MEAN = 0.98  # b where only a mean is learned, whose noise is then 1.04 of the least
_TARGETS = (0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
_MOST = 2.0
_HALF_STEPS = 40

Task = Literal["number", "label", "count"]
TASKS: tuple[Task, ...] = ("number", "label", "count")
StageKind = Literal["joint", "residual", "newton"]
STAGES: tuple[StageKind, ...] = ("joint", "residual", "newton")

# ψ from which a second wave helps. Labels gain nothing before: at ψ of 3 to 6 accuracy was even on
# the survey, and 0.0026 ± 0.0012 and 0.0014 ± 0.0009 less on Adult (41 columns).
ENOUGH_FOR_TWO: dict[Task, float] = {"label": 8.0, "count": 3.0}
ENOUGH_FOR_MEANS = 100.0  # nμ, from which a first part of the people can teach a whitening
FEWEST = 10  # people who can be divided at all
ENOUGH_FOR_NEWTON = 30.0  # ψ from which the exact curve is worth its noise,
ENOUGH_FOR_CURVE = 1000.0  # if nμ is at least this
# ψ and nμ, of which one pair must be reached for a second Newton wave, as the first has a tenth
ENOUGH_FOR_FOUR = ((150.0, 0.0), (100.0, 5000.0))
ENOUGH_FOR_HELD = 50.0  # ψ of the same, where every row is in every wave
_MORE_NEWTON = 8.0  # times ψ: twice as far out is not cut, and one wave more comes back from there
_PEOPLE_OF_CURVE = (0.1, 0.15, 0.25, 0.5)  # of whom a joint, a residual and two Newton waves are
FEW = 3  # columns up to which labels and counts have one wave, until the exact curve can be told
# Fractions of the waves of a number: of the people, or of μ² where every row is in every wave
_NUMBERS: dict[int, tuple[float, ...]] = {
    1: (1.0,),
    2: (0.3, 0.7),
    3: (0.2, 0.3, 0.5),
    4: (0.1, 0.15, 0.25, 0.5),
    5: (0.2, 0.1, 0.15, 0.2, 0.35),
}
ENOUGH_FOR_THREE = 6.0  # ψ from which people are divided among three waves of numbers
RICH_INFORMATION = 200.0  # ψ from which a data holder's numbers need four waves, and not five
LEAST_FOR_WAVES = 1.0, 48.0  # ψ and nμ, below which a data holder's numbers have one wave
# Whoever holds all rows: shares of μ² for labels and counts (chosen; they are flat, ±0.1 of μ
# changes less than a tenth).
_CURVE_SHARES: dict[int, tuple[float, ...]] = {
    1: (1.0,),
    2: (0.25, 0.75),
    3: (0.16, 0.25, 0.59),
    4: (0.0625, 0.09, 0.16, 0.6875),
}
RADIUS, BOUND = (1.2, 0.45), (2.2, 0.6)  # r and R: the least, and times ψ^{1/3}; 28 populations
# Of these factors, for persons with several rows, whose root mean squares vary less than rows do:
# chosen on seven kinds of diaries (docs/theory/choosing-waves.md).
OF_PERSONS = 0.45
LEAST_INFORMATION, LEAST_REACH = 1.5, 60.0  # of ψ and nμ, below which only a mean can be learned
LEAST_FOR_LABELS, LEAST_FOR_A_SLOPE = 40.0, 3.5  # nμ, and nμ/p: below, labels tell their share


@dataclass(frozen=True)
class ChosenWeights:
    """c of the intercept, ω of each feature (one for all levels of a categorical), b of the target.

    Σω² + b² = 1, so that the vector of all weighted columns stays in the unit ball.
    """

    constant: float
    features: tuple[float, ...]
    target: float


def public_weights(
    features: Sequence[Kind],
    count: int,
    mu: float,
    *,
    neighbours: Neighbours = "replace",
    task: Task | None = None,
) -> ChosenWeights:
    """Return the default weights, which follow from the kinds of the features, n and μ alone.

    Args:
        features: "numeric" for a number in [−1, 1], "sign" for ±1, or how many levels there are.
        count: How many people will take part (the quorum).
        mu: The Gaussian privacy of the sums.
        neighbours: What one person may change.
        task: What is learned of the target, if its mean or share is all that a few people tell.

    Where nothing but a mean can be learned its noise is 1/b² times the variance of a mean's that is
    released alone: 1.04 at b = 0.98.

    >>> weights = public_weights(["numeric", "sign", 3], count=10_000, mu=1.0)
    >>> round(sum(w**2 for w in weights.features) + weights.target**2, 12)
    1.0
    """
    whole(count=count)
    positive(mu=mu)
    if not features:  # means are all there is to read: their noise, (c² + 1)/c, is least at c = 1
        return ChosenWeights(1.0, (), 1.0)
    shares = [_share(kind) for kind in features]
    coefficients = sum(kind - 1 if isinstance(kind, int) else 1 for kind in features)
    psi = information(count, mu, coefficients)
    if neighbours == "replace" and mean_alone(task, psi, coefficients):
        return _shared(shares, 1.0, _OF_MEAN)
    return _shared(shares, *_best_pair(coefficients, count, mu, neighbours))


def mean_alone(task: Task | None, psi: float, coefficients: int) -> bool:
    """Tell whether nothing but the mean of a number, or the share of a label, can be learned, by
    public facts.

    A label's products with its features stand above their noise as nμ/p does, and at the border
    that was found on 16 populations of 3 to 200 columns, slopes begin to help on average.
    """
    reach = psi * math.pow(coefficients, 1.5)
    if task == "label":
        return reach < max(LEAST_FOR_LABELS, LEAST_FOR_A_SLOPE * coefficients)
    return task == "number" and (psi < LEAST_INFORMATION or reach < LEAST_REACH)


@lru_cache(maxsize=256)  # each wave of a plan, and each reader of it, asks for the same pair
def _best_pair(
    coefficients: int, count: int, mu: float, neighbours: Neighbours
) -> tuple[float, float]:
    """Return the (c, b) of a grid at which the proxy is least."""
    constants = _INTERCEPTS + (_LONG_INTERCEPTS if neighbours == "zero-out" else ())
    pairs = np.array([(c, b) for c in constants for b in _TARGETS])
    best = int(np.argmin(excess_risks(coefficients, count, mu, pairs, neighbours)))
    constant, target = pairs[best]
    return float(constant), float(target)


def excess_risks(
    coefficients: int, count: int, mu: float, pairs: FloatArray, neighbours: Neighbours = "replace"
) -> FloatArray:
    """Return the module's proxy for p coefficients and n people, for each pair (c, b)."""
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
    """Give the features what c and b leave, in these proportions."""
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
            "Expected features to be 'numeric', 'sign' or a number of levels >= 2, got {kind!r}.",
            kind=kind,
        )
    return min(math.sqrt(kind), _MOST)


@dataclass(frozen=True)
class Stage:
    """One wave: what is blurred in it, and the share of the people that it takes, or of μ² where
    every row is in every wave.
    """

    kind: StageKind
    fraction: float

    def __post_init__(self) -> None:
        one_of(STAGES, kind=self.kind)
        if self.fraction != 1:
            inside_unit_interval(fraction=self.fraction)


@dataclass(frozen=True)
class Stages:
    """The waves in their order: the first is joint, then residual waves, then Newton's.

    >>> choose_plan("label", coefficients=13, count=2**17, mu=0.1).kinds
    ('joint', 'residual', 'newton', 'newton')
    """

    task: Task
    stages: tuple[Stage, ...]

    def __post_init__(self) -> None:
        one_of(TASKS, task=self.task)
        total = math.fsum(stage.fraction for stage in self.stages)
        if not self.stages or abs(total - 1) > 1e-9:
            raise InvalidValueError(
                "Expected the fractions of the waves to sum to 1, got {fractions}.",
                fractions=self.fractions,
            )
        if self.kinds != ("joint", *sorted(self.kinds[1:], key=STAGES.index)) or (
            "joint" in self.kinds[1:]
        ):
            raise InvalidValueError(
                "Expected a joint wave first, then residual ones, then Newton's; got {kinds}.",
                kinds=self.kinds,
            )
        if self.task == "number" and "newton" in self.kinds:
            raise InvalidValueError(
                "Expected residual waves alone for task='number', got {kinds}: Newton's are "
                "for labels and counts.",
                kinds=self.kinds,
            )

    @property
    def kinds(self) -> tuple[StageKind, ...]:
        """What is blurred in each wave."""
        return tuple(stage.kind for stage in self.stages)

    @property
    def fractions(self) -> tuple[float, ...]:
        """The share of the people in each wave, or of μ²."""
        return tuple(stage.fraction for stage in self.stages)

    def quorums(self, count: int) -> tuple[int, ...]:
        """Return how many people each wave waits for; they sum to `count`."""
        whole(count=count)
        ends = [0]
        for stage in self.stages:
            ends.append(min(count, round(ends[-1] + stage.fraction * count)))
        ends[-1] = count
        found = tuple(stop - start for start, stop in itertools.pairwise(ends))
        if min(found) < 2:
            raise InvalidValueError(
                "Expected at least 2 people in each wave, got {number}; plan fewer waves.",
                number=found,
            )
        return found


def choose_plan(
    task: Task, *, coefficients: int, count: int, mu: float, waves: int | None = None
) -> Stages:
    """Choose the plan from public facts: the table above, or as many waves as are asked for.

    For labels and counts a residual wave before Newton's gives it a better start.
    """
    one_of(TASKS, task=task)
    psi, reach = information(count, mu, coefficients), count * mu
    if task == "number":
        if waves is None:
            alone = count < FEWEST or mean_alone(task, psi, coefficients)
            waves = 1 if alone else 2 if psi < ENOUGH_FOR_THREE else 3
        return _stages_of_numbers(waves)
    curve = psi >= ENOUGH_FOR_NEWTON and reach >= ENOUGH_FOR_CURVE
    if waves is None:
        enough = psi >= ENOUGH_FOR_TWO[task] and reach >= ENOUGH_FOR_MEANS and count >= FEWEST
        plain = coefficients <= FEW and not curve
        four = any(psi >= least and reach >= most for least, most in ENOUGH_FOR_FOUR)
        best = (2 + _newtons(task, psi, ENOUGH_FOR_FOUR[0][0]) if four else 3) if curve else 2
        waves = 1 if plain or not enough else best
    whole(waves=waves)
    if waves == 1:
        return Stages(task, (Stage("joint", 1.0),))
    last: StageKind = "newton" if curve else "residual"
    if waves == 2:
        first = 0.25 if last == "newton" else 0.3
        return Stages(task, (Stage("joint", first), Stage(last, 1 - first)))
    if waves == 3 and curve:
        return Stages(task, (Stage("joint", 0.2), Stage("residual", 0.3), Stage("newton", 0.5)))
    if waves >= 4 and curve:
        return _curve_stages(task, _PEOPLE_OF_CURVE, waves - 2)
    # Each wave twice as large as the one before, so that the last, which decides, is the largest.
    kinds: list[StageKind] = ["joint", *[last] * (waves - 1)]
    return Stages(task, tuple(map(Stage, kinds, _doubling(waves))))


def _stages_of_numbers(waves: int) -> Stages:
    """Return a joint wave and residual ones; of many waves each is twice as large as the last."""
    whole(waves=waves)
    first, *rest = _NUMBERS.get(waves) or _doubling(waves)
    return Stages("number", (Stage("joint", first), *(Stage("residual", one) for one in rest)))


def choose_shares(
    task: Task, *, coefficients: int, count: int, mu: float, waves: int | None = None
) -> Stages:
    """Choose how a data holder's waves divide μ²: every row is in every wave; fractions sum to 1.

    The rules and their data are in `docs/theory/choosing-waves.md`.
    """
    one_of(TASKS, task=task)
    psi, reach = information(count, mu, coefficients), count * mu
    if task != "number":
        if waves is None and (count < FEWEST or mean_alone(task, psi, coefficients)):
            waves = 1
        return _shares_of_curve(task, psi, reach, waves)
    if waves is None:
        alone = count < FEWEST or psi < LEAST_FOR_WAVES[0] or reach < LEAST_FOR_WAVES[1]
        waves = 1 if alone else 5 if psi < RICH_INFORMATION else 4
    return _stages_of_numbers(waves)


def _doubling(waves: int) -> tuple[float, ...]:
    """Return shares of which each is twice the one before."""
    return tuple(2.0 ** (place - waves) / (1 - 2.0**-waves) for place in range(waves))


def _newtons(task: Task, psi: float, enough: float) -> int:
    """Return how many Newton waves there are: two from a ψ that is `enough`, and for counts one
    more whenever it is `_MORE_NEWTON` times as large.
    """
    more = math.floor(math.log(psi / enough, _MORE_NEWTON))
    return 2 + max(more, 0) if task == "count" else 2


def _curve_stages(task: Task, shares: tuple[float, ...], newtons: int) -> Stages:
    """Return stages of two Newton waves or more, of which those before the last share what the
    first of two has, each twice what the one before it has.
    """
    first, residual, between, last = shares
    newton = (*(between * one for one in _doubling(newtons - 1)), last)
    stages = (Stage("joint", first), Stage("residual", residual))
    return Stages(task, (*stages, *(Stage("newton", one) for one in newton)))


def _shares_of_curve(task: Task, psi: float, reach: float, waves: int | None) -> Stages:
    """Return the shares of labels and counts: two waves at least, unless one is asked for."""
    if waves is None:
        few = psi < 10 or reach < 250
        many = 2 + _newtons(task, psi, ENOUGH_FOR_HELD)
        waves = 2 if few else 3 if psi < ENOUGH_FOR_HELD else many
    whole(waves=waves)
    if waves >= 4:
        return _curve_stages(task, _CURVE_SHARES[4], waves - 2)
    kinds: tuple[StageKind, ...] = ("joint", "residual", "newton")
    return Stages(task, tuple(map(Stage, kinds, _CURVE_SHARES[waves])))


def stride_of_squares(count: int, size: float, noise: float) -> int:
    """Return of how many rows one sends the squares of a last wave, to whose sums a row adds this
    size, and which have this noise: it is at most a quarter of their sums.

    2¹⁵ rows at least send them, as few rows tell the spread of skewed columns badly; and one of 32,
    beyond which nothing is faster.
    """
    return min(max(int(min(count * size / (4 * noise), count / 2**15)), 1), 32)


def strides_of(
    kinds: Sequence[StageKind], mus: Sequence[float], count: int, coefficients: int
) -> tuple[int, ...]:
    """Return of how many rows each wave reads one, of 32 at most; the first and the last read all.

    Waves between them are starts. Of ψ they keep 200, the Newton wave before the last 20√ψ of ψ.
    Reasons: `docs/theory/choosing-waves.md`.
    """
    found = [1] * len(kinds)
    for place in range(1, len(kinds) - 1):
        psi = information(count, mus[place], coefficients)
        signal = psi / 200
        if place == len(kinds) - 2 and kinds[place] == "newton":
            signal = min(signal, math.sqrt(psi) / 20)
        found[place] = min(max(int(signal), 1), 32)
    return tuple(found)


def shared_mu(epsilon: float, delta: float, releases: int, kept_back: float) -> float:
    """Return μ that so many releases of the same rows share, if each of them keeps back this share
    of δ for its noise that is discrete: see the module's docstring.

    >>> shared_mu(1.0, 1e-6, 1, 1e-3) > shared_mu(1.0, 1e-6, 5, 1e-3)
    True
    """
    whole(releases=releases)
    if releases * kept_back >= 1:
        raise InvalidValueError(
            "Expected fewer releases than {releases}: nothing is left of δ.", releases=releases
        )
    return mu_of(epsilon, delta * (1 - releases * kept_back))


def promise_of_share(
    mu: float, delta: float, fraction: float, kept_back: float
) -> tuple[float, float]:
    """Return (ε_k, f·δ), which a release with the share f of μ² keeps by itself."""
    own = fraction * delta
    return epsilon_of(math.sqrt(fraction) * mu, own * (1 - kept_back)), own


def newton_radius(
    count: int, mu: float, coefficients: int, curvature: float, largest: float = 1.0
) -> float:
    """Return r = 0.62·(nμ/p²·h/0.15)^{1/3}, at least 1; for counts (G ≠ 1) 0.25 replaces 0.62.

    h is `curvature`, the mean curvature, over `largest`, the largest slope G. See
    `docs/theory/choosing-waves.md`.
    """
    positive(curvature=curvature, largest=largest)
    signal = count * mu / coefficients**2 * curvature / largest / 0.15
    return max((0.62 if largest == 1 else 0.25) * math.cbrt(signal), 1.0)


def reach_of(
    count: int, mu: float, coefficients: int, *, repeated: bool = False
) -> tuple[float, float]:
    """Return r and R of a residual wave, for its own `count` and `mu`.

    Args:
        count: How many people are summed, or rows.
        mu: The wave's own μ.
        coefficients: How many features there are.
        repeated: Whether people have several rows, which are clipped together.

    r = 0.45ψ^{1/3}, at least 1.2, and R = 0.6ψ^{1/3}, at least 2.2: noise grows with r·R and
    clipping falls with them, so that their best values grow as ψ^{1/3}. Between 0.3 and 0.7 times
    ψ^{1/3} errors change by less than 1 % on average. Reasons: `docs/theory/choosing-waves.md`.
    """
    root = math.cbrt(information(count, mu, coefficients)) * (OF_PERSONS if repeated else 1.0)
    return max(RADIUS[0], RADIUS[1] * root), max(BOUND[0], BOUND[1] * root)
