"""Plan a collection from public facts: the weights of columns, and who comes in which wave.

**Public weights** say how much of the one vector z each column gets, before anybody has answered.
All columns of a record share the ball ‖u‖ ≤ 1 of `blurfit.theory.moments`, and the noise on entry
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

**Waves**: everyone sends once, and later people help with what earlier ones taught.
Divide the contributors into waves 1, …, K by a rule that does not look at answers. Wave k's blurred
sums R_k are published, and the public map from record to numbers of wave k + 1 may depend on R_1,
…, R_k.

**Theorem (parallel, adaptive).** If for *every fixed* past r_{<k} the release R_k is (ε, δ)-DP for
the records of wave k, then everything that is published, (R_1, …, R_K), is (ε, δ)-DP for every
person. If R_k is μ_k-GDP for every fixed past, a person of wave k has μ_k-GDP in all.

Proof. Neighbouring collections differ in one record of one wave k; who is in which wave, and how
many, is public and equal. R_{<k} is computed from other waves' records, so it has the same law
under both. Fix R_{<k} = r. Under r, R_k has the law of a release that is (ε, δ)-DP, and R_{>k} is
drawn from (r, R_k) and from records that are equal in both collections: by a kernel, which is
post-processing. So for every set S of outcomes P(S | r) ≤ e^ε·P'(S | r) + δ. Integrate over r,
whose law is common: P(S) ≤ e^ε·P'(S) + δ. For GDP: let f be the trade-off curve of N(0, 1) against
N(μ_k, 1). Any test of level α has levels α(r) given r with mean α, and its type II error given r is
at least f(α(r)); f is convex, so by Jensen the mean is at least f(α). ∎

No privacy is composed: nobody is in two waves.

**Theorem (whoever holds all rows: every row in every wave).** If for every fixed past r_{<k} the
release R_k, made of *all* rows, is μ_k-GDP, then (R_1, …, R_K) is √(Σμ_k²)-GDP. So a fit may spend
μ as μ_k = √f_k·μ with Σf_k = 1: nothing is divided by lot, and no sampling error is added.

Proof. Adaptive composition of trade-off functions (Dong, Roth and Su 2022, Theorem 3.2), whose
Gaussian case (Corollary 3.3) is exact: given the past, telling the two laws of R_k apart is no
easier than telling N(0, 1) from N(μ_k, 1), so all of them together are no easier than N(0, I) from
N((μ_1, …, μ_K), I), which differ in one direction by √Σμ_k². ∎

*Discrete noise.* A wave's noise is discrete. Its law differs from that of a rounded Gaussian by a
factor between e^{−η} and e^{η}, but for an event of probability ρ, whatever the past is
(`blurfit.agreement.numbers`; a thousandth of δ pays for both of one wave, ten times over).
By induction over the waves the laws of all releases differ by a factor between e^{−Kη} and e^{Kη},
but for an event of probability Kρ: K waves pay K times, and (ε, δ) is kept if

    δ_GDP(ε; μ) ≤ (1 − K/1000)·δ                                                  (`shared_mu`).

A wave by itself keeps (ε_k, f_kδ) with δ_GDP(ε_k; μ_k) = 0.999·f_kδ, which is what its own release
states. ε_k > 0: erf is concave on x ≥ 0, so δ_GDP(0; √f·μ) = erf(√f·μ/√8) ≥ √f·erf(μ/√8), which is
above √f(1 − K/1000)δ, and that is above 0.999·fδ as long as √f < 1 − K/1000. A wave that reads
only one of each k rows, k public, spends no more than one that reads all of them.

What waves of different people need, and what breaks it:

| situation | holds? | what follows |
| --- | --- | --- |
| wave by a lot, of the invitation or one's own | yes | |
| wave by arrival | yes, but | who colludes comes first, and is many in a small wave |
| σ_k, r, number of waves chosen from releases | yes | |
| joining or not after seeing releases | yes | that decision is not protected, as in one wave |
| an assignment by answers | no | forbidden; nothing is refused because of a value |
| a map that saw its own wave's submissions | no | a map follows from published releases alone |
| a wave below its honest quorum n_k | no | never released |
| a late submission, released again | no | refused: a wave is released once |
| one person in two waves | composes | √(μ₁² + μ₂²) |
| `input` waves | (ε, δ), no GDP | only w_k and N_k may feed the next map |

**Which waves.** ψ = nμ/p^1.5 (`information`) says how far signal stands above
noise. `choose_plan` is a table over ψ, from the American Community Survey (the laboratory),
and checked on other numbers of columns, other people and generated ones: a choice, not a
derivation.

| ψ | labels | counts |
| --- | --- | --- |
| below 3 | one wave | one wave |
| 3 to 8 | one wave | 0.3, then residuals |
| 8 to 30 | 0.3, then residuals | 0.3, then residuals |
| 30 to 150 | 0.2, residuals 0.3, Newton | as labels |
| from 150 on, or 100 if nμ ≥ 5000 | 0.1, residuals 0.15, Newton 0.25, Newton | as labels |
| from 1200, 9600, … on | the same | one more Newton wave each, of the 0.25 |

Numbers (`_waves_of_numbers`): one wave where the mean is all that can be learned, ψ < 1.5 or nμ <
60. Below ψ = 6 two, of which the first learns the mean alone, ψ₁ < 1.5, and so where slopes are
looked for in the second. Then three (0.3, 0.3, 0.4), four from ψ = 12 and nμ = 250 on (0.2, 0.2,
0.25, 0.35), and five from ψ = 150 and nμ = 5000 on (0.08, 0.12, 0.15, 0.25, 0.4). Chosen on 15
generated populations of 3, 14 and 40 columns.

Whoever holds all rows, labels and counts, shares of μ²: joint 0.25 and residuals below ψ = 10;
joint 0.16, residuals 0.25 and Newton to ψ = 50; then joint 0.0625, residuals 0.09, Newton 0.16 and
Newton again, which makes errors honest: one step leaves the square of its length; and for counts
from 400, 3200, … on one more each, of the 0.16.

**How many of Newton's waves.** For counts a start that is too far out comes back slowly: where the
rate e^t is far above the count, e^t − y over e^t is 1, so that a step lowers the score by 1 at
most, however small the noise is. A line's start follows whoever is not cut, and r ∝ ψ^{1/3}
(below): from 8ψ people are within reach who are twice as far out, and there is one more wave to
come back from there. Steps are quadratic once they are close, and so what is left vanishes as ψ
grows.

Labels and counts have one wave where nμ < 100, too, and with up to three columns where no curve can
be told: one wave knows the line well already. Newton's wave needs nμ ≥ 1000 as well. Ask for more
waves where the exact curve is wanted all the same.

**How far out.** A residual wave cuts white features to ‖f‖ ≤ r√p and residuals to ±R standard
deviations. The noise then adds about 4.5p²r²R²/(nμ)² to the relative squared error, which is
proportional to r²R²/(p·ψ²), and cutting adds a bias that falls with r, the faster the more columns
there are, as ‖f‖/√p is then closer to 1. With R ∝ r and a bias ∝ 1/(p·r²) the sum is least at r
∝ ψ^{1/3}. The best r for 2, 4, 7 and 13 columns of the survey lie on r = 0.3ψ^{1/3} (ψ of that
wave): 0.7 at ψ = 13, 1.05 at 32 to 50, 1.5 at 150 to 200, 2.4 at 425. So the exponent 1.5 of ψ
stands there; 0.3 is a choice. Whether numbers, labels or counts, all have one rule (`reach_of`).
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
StageKind = Literal["joint", "gauge", "mean", "residual", "newton"]
STAGES: tuple[StageKind, ...] = ("joint", "gauge", "mean", "residual", "newton")

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
# ψ and nμ from which numbers have three, four and five waves
_MORE_OF_NUMBERS = {3: (6.0, 0.0), 4: (12.0, 250.0), 5: (150.0, 5000.0)}
_PEOPLE_OF_NUMBERS = {
    2: (0.3, 0.7),
    3: (0.3, 0.3, 0.4),
    4: (0.2, 0.2, 0.25, 0.35),
    5: (0.08, 0.12, 0.15, 0.25, 0.4),
}
# Whoever holds all rows: shares of μ² for labels and counts (chosen; they are flat, ±0.1 of μ
# changes less than a tenth), and for numbers the ψ and nμ from which more waves help.
_CURVE_SHARES: dict[int, tuple[float, ...]] = {
    1: (1.0,),
    2: (0.25, 0.75),
    3: (0.16, 0.25, 0.59),
    4: (0.0625, 0.09, 0.16, 0.6875),
}
LEAST_INFORMATION, LEAST_REACH = 1.5, 60.0  # of ψ and nμ, below which only a mean can be learned
LEAST_FOR_LABELS, LEAST_FOR_A_SLOPE = 40.0, 3.5  # nμ, and nμ/p: below, labels tell their share
MOST_FOR_MEANS = 200  # columns, beyond which looking for the mean in rounds takes too long
ENOUGH_FOR_SLOPES = 4.0  # ψ from which slopes need not wait for the target's place and spread
ENOUGH_FOR_LAST = 12.0  # nμ from which slopes are looked for after waves of the mean
RICH_INFORMATION, RICH_REACH = 100.0, 5000.0
# ψ and nμ, of which one pair must be reached for more than one wave of slopes, where one holds all
# rows
_SLOPES_OF_HELD = ((LEAST_INFORMATION, 48.0), (1.0, LEAST_REACH))


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
    followed: bool = False,
) -> ChosenWeights:
    """Return the default weights, which follow from the kinds of the features, n and μ alone.

    Args:
        features: "numeric" for a number in [−1, 1], "sign" for ±1, or how many levels there are.
        count: How many people will take part (the quorum).
        mu: The Gaussian privacy of the sums.
        neighbours: What one person may change.
        task: What is learned of the target, if its mean or share is all that a few people tell.
        followed: Whether waves of other people follow.

    Where nothing but a mean can be learned its noise is 1/b² times the variance of a mean's that is
    released alone: 1.04 at b = 0.98. A first wave of the mean tells waves that follow how features
    spread, too, and has b = 0.95.

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
    if neighbours == "replace" and mean_alone(task, psi, coefficients, followed=followed):
        return _shared(shares, 1.0, 0.95 if followed else _OF_MEAN)
    return _shared(shares, *_best_pair(coefficients, count, mu, neighbours))


def mean_alone(task: Task | None, psi: float, coefficients: int, *, followed: bool = False) -> bool:
    """Tell whether nothing but the mean of a number, or the share of a label, can be learned, by
    public facts; or should be, of a first wave that is `followed` by others of other people.

    A label's products with its features stand above their noise as nμ/p does, and at the border
    that was found on 16 populations of 3 to 200 columns, slopes begin to help on average.
    """
    reach = psi * math.pow(coefficients, 1.5)
    if task == "label":
        return not followed and reach < max(LEAST_FOR_LABELS, LEAST_FOR_A_SLOPE * coefficients)
    small = reach < LEAST_REACH
    return task == "number" and (psi < LEAST_INFORMATION or (small and not followed))


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
            f"Expected features to be 'numeric', 'sign' or a number of levels >= 2, got {kind!r}."
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
    """The waves in their order: the first is joint, then those of the mean alone, then residual
    waves, then Newton's.

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
                f"Expected the fractions of the waves to sum to 1, got {self.fractions}."
            )
        later = [kind for kind in self.kinds[1:] if kind != "gauge"]
        gauged = [after for kind, after in itertools.pairwise(self.kinds) if kind == "gauge"]
        if (
            (self.kinds[0], *later) != ("joint", *sorted(later, key=STAGES.index))
            or "joint" in later
            or len(gauged) < self.kinds.count("gauge")
            or not {"mean", "residual"}.issuperset(gauged)
            or gauged.count("mean") < later.count("mean")
        ):
            raise InvalidValueError(
                "Expected a joint wave first, then those of the mean, each after a gauge, then "
                f"residual ones, each after a gauge or none, then Newton's; got {self.kinds}."
            )
        if self.task != "number" and "mean" in later:
            raise InvalidValueError(
                f"Expected waves of the mean for task='number' alone, got {self.kinds}."
            )
        if self.task == "number" and "newton" in later:
            raise InvalidValueError(
                f"Expected residual waves alone for task='number', got {self.kinds}: Newton's are "
                "for labels and counts."
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
                f"Expected at least 2 people in each wave, got {found}; plan fewer waves."
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
    if task == "number" and waves is None:
        waves = 1 if count < FEWEST else _waves_of_numbers(psi, reach, coefficients)
    if task == "number" and waves in _PEOPLE_OF_NUMBERS:
        start, *rest = _PEOPLE_OF_NUMBERS[waves]
        if waves == 2 and psi < _MORE_OF_NUMBERS[3][0]:
            start = min(0.4, 0.9 * LEAST_INFORMATION / psi)
            rest = [1 - start]
        return Stages(task, (Stage("joint", start), *(Stage("residual", one) for one in rest)))
    curve = task != "number" and psi >= ENOUGH_FOR_NEWTON and reach >= ENOUGH_FOR_CURVE
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


def _waves_of_numbers(psi: float, reach: float, coefficients: int) -> int:
    if mean_alone("number", psi, coefficients):
        return 1
    enough = [k for k, (least, most) in _MORE_OF_NUMBERS.items() if psi >= least and reach >= most]
    return max(enough, default=2)


def choose_shares(
    task: Task, *, coefficients: int, count: int, mu: float, waves: int | None = None
) -> Stages:
    """Choose how whoever holds all rows spends μ: fractions are shares of μ², and sum to 1.

    `waves` counts all but gauges, each of which belongs to the wave after it. Labels and counts:
    `_CURVE_SHARES`. Numbers: where nμ < 48 or ψ < 1, or nμ < 60 and ψ < 1.5, three waves after the
    first, in bounds that fit the target's mean better and better: they learn the mean alone, but
    from nμ = `ENOUGH_FOR_LAST` on the last, with half of μ², looks for slopes, if what was released
    before says that the bounds are not far too wide (`blurfit.learning.waves.next_map`). Else
    seven waves, in which the noise falls as the map improves, each after a gauge; of these the
    second finds the target's mean and spread, before any slope, where ψ < `ENOUGH_FOR_SLOPES` or nμ
    < `ENOUGH_FOR_MEANS`. With very many people four, of which the last, whose noise is what
    remains, takes half. Beyond `MOST_FOR_MEANS` columns a mean is not looked for in rounds, which
    took five times as long as one wave at 1,000 columns. (Chosen on generated populations of 3 to
    40 columns; more than seven waves gained 1 % at most.)
    """
    one_of(TASKS, task=task)
    psi, reach = information(count, mu, coefficients), count * mu
    if task != "number":
        if waves is None and (count < FEWEST or mean_alone(task, psi, coefficients)):
            waves = 1
        return _shares_of_curve(task, psi, reach, waves)
    rich = psi >= RICH_INFORMATION and reach >= RICH_REACH
    alone = not any(psi >= least and reach >= most for least, most in _SLOPES_OF_HELD)
    if waves is None:
        long = alone and coefficients > MOST_FOR_MEANS
        waves = 1 if count < FEWEST or long else 4 if rich or alone else 7
    whole(waves=waves)
    if waves == 1:
        return Stages(task, (Stage("joint", 1.0),))
    later = waves - 1
    poor = psi < ENOUGH_FOR_SLOPES or reach < ENOUGH_FOR_MEANS
    single = alone and later > 1 and reach >= ENOUGH_FOR_LAST
    first = later - int(single) if alone else int(poor and later > 2)
    kinds: list[StageKind] = ["mean" if place < first else "residual" for place in range(later)]
    if rich:  # each wave has twice the share of the one before
        steps = 2.0 ** np.arange(waves)
        gauges, start = 0.1 * steps[:-1] / math.fsum(steps[:-1]), 0.9 * steps[0] / steps.sum()
    else:
        start, last, looked = (0.1, 0.5, 0.1) if single else (0.2, 0.3, 0.05)
        gauges = np.full(later, looked / later)
        even = single or later <= 2
        between = np.ones(later - 1) if even else np.linspace(1.0, 2.0, later - 1)
        steps = np.array([0.0, *between, 0.0])
        steps[-1] = steps.sum() * last / (1 - looked - start - last) if later > 1 else 1.0
    shares = (1 - start - gauges.sum()) * steps[1:] / steps[1:].sum()
    stages = [Stage("joint", float(start))]
    for gauge, kind, share in zip(gauges.tolist(), kinds, shares.tolist(), strict=True):
        stages += [Stage("gauge", gauge), Stage(kind, share)]
    return Stages(task, tuple(stages))


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
    """Return of how many rows each wave reads one, of 32 at most.

    The first reads all, as its release is for other questions too, and the last, which decides.
    Waves between them are only starts, and where ψ is large their noise is small with fewer rows
    too: they leave them ψ = 200, and gauges, whose counts have noise √2/μ, nμ = 2000. But what a
    start leaves is to vanish beside the last wave's errors, which shrink like 1/√n. A step leaves
    the square of the start's error, which is largest where an answer is rare: Newton's wave before
    the last leaves 20√ψ of ψ. And by what the last gauge sees the last wave cuts: its noise is at
    most a tenth of √n. (20 and a tenth: so that intervals covered, on generated people, of whom one
    in a hundred gave an answer.)
    """
    found = [1] * len(kinds)
    for place in range(1, len(kinds) - 1):
        kind, mu, before_last = kinds[place], mus[place], place == len(kinds) - 2
        psi = information(count, mu, coefficients)
        signal = count * mu / 2000 if kind == "gauge" else psi / 200
        if before_last and kind == "gauge":
            signal = min(signal, math.sqrt(count) * mu / 14)
        elif before_last and kind == "newton":
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
        raise InvalidValueError(f"Expected fewer releases than {releases}: nothing is left of δ.")
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
    """r = 0.62·(nμ/p²·h/0.15)^{1/3}, at least 1: h is the mean curvature over the largest slope G.

    The noise adds about 2.2p²r²/((nμ)²h) to the loss, and what far-out records count less a bias
    whose square is proportional to h/(p²r⁴), as their share is: the sum is least at r ∝
    (h·nμ/p²)^{1/3}. 0.62 was chosen on generated people; for counts (G ≠ 1), 0.25. Below 1 nothing
    is gained.
    """
    positive(curvature=curvature, largest=largest)
    signal = count * mu / coefficients**2 * curvature / largest / 0.15
    return max((0.62 if largest == 1 else 0.25) * math.cbrt(signal), 1.0)


def reach_of(count: int, mu: float, coefficients: int) -> tuple[float, float]:
    """Return r and R of a residual wave where nobody has looked at where people are; `count` and
    `mu` are the wave's own.

    r = 0.3ψ^{1/3}, at least 0.6, and from ψ = 50 on ∝ ψ^0.42: it reaches every public bound, while
    the noise's share falls like r⁴/ψ² ∝ ψ^(−0.3). R, of s·g, is 2.5r, and where s is about r < 1
    for everybody, r times 1.7. (Chosen on generated populations.)
    """
    psi = information(count, mu, coefficients)
    radius = max(0.3 * math.cbrt(psi) * math.pow(max(psi / 50, 1.0), 0.09), 0.6)
    return radius, max(2.5 * radius, 1.7) * min(radius, 1.0)
