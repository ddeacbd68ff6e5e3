"""How far off a model will be, before anybody is asked: an estimate from public facts alone.

A forecast draws people and simulates collections (`blurfit.forecast`); it takes seconds, and needs
people to draw. Here is a closed formula for those who choose an agreement's terms. Linear Bayes
says how large the error of its coefficients is for *any* blurred sums
(`blurfit.learning.beliefs.posterior_covariance`, by which waves are weighed against each other), so
it says so for the sums that typical people would give. With C that covariance and A = E[zzᵀ],
predictions for such people lie

    off = √tr(A·C)

from those of the best line, as a root mean square: privacy noise, the sampling of n people, and
what shrinkage takes off. `without_privacy` is the same without noise.

**Assumed of people**, as `blurfit.learning.shrinkage` expects of columns that nobody has seen: a
number spreads by 0.59 of half its range (variance 0.35), a yes is as likely as a no, and so are all
levels; answers are independent of each other; and the features explain 0.3 of the target's variance
in equal parts. Where people differ less than that, noise weighs more: it is an estimate, not a
promise.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.mechanisms import kept_columns
from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError, positive
from blurfit.learning.beliefs import posterior_covariance
from blurfit.learning.shrinkage import linear_bayes
from blurfit.learning.sums import JointSums, Submodel
from blurfit.schema.columns import Numeric
from blurfit.theory.forms import JointColumn, JointForm

SPREAD = 0.35  # the variance of a number in [−1, 1]
EXPLAINED = 0.3  # of the target's variance, by the features together
UNSAID = 0.1  # the share of people who do not say a number that need not be said
MOST_PEOPLE = 2**33


@dataclass(frozen=True)
class Outlook:
    """What to expect of a model from `count` people, in units of the target.

    `off` is how far predictions lie from those of the best line, and `without_privacy` how far they
    would lie with the same people and no noise; `spread` is how far people lie from their average.
    For a label, and for classes, all three are shares between 0 and 1.
    """

    count: int
    off: float
    without_privacy: float
    spread: float


def outlook(agreement: Agreement) -> Outlook:
    """Return the outlook of a collection, or of a plan's first wave, at its quorum."""
    form = agreement.form
    if not isinstance(form, JointForm):
        raise InfeasibleError(
            "Expected no groups, no weights and no later wave: there is no such estimate for "
            "others."
        )
    schema, n = agreement.schema, agreement.quorum
    noise = agreement.calibration.total_noise
    deviation, found = noise(n, agreement.database_draws), []
    features = [schema.columns[place] for place in kept_columns(schema)]
    for name in schema.target.columns:
        moments = _typical(form.columns, name)
        matrix = n * moments * np.outer(form.scale, form.scale)
        sums = [
            JointSums(form.columns, form.constant, n, matrix, noise).submodel(name, features)
            for noise in (deviation, 0.0)
        ]
        place = 1 + [one.name for one in form.columns].index(name)
        spread = math.sqrt(moments[place, place] - moments[0, place] ** 2)
        found.append((*map(_off, sums), spread))
    target, unit = schema.target, 0.5 if schema.is_label else 1.0  # half a yes, or a whole class
    if isinstance(target, Numeric):
        unit = (target.upper - target.lower) / 2
    means = np.sqrt(np.mean(np.square(found), axis=0)) * unit
    return Outlook(n, *means.tolist())


def people_needed(propose: Callable[[int], Agreement], off: float) -> int | None:
    """Find how many people it takes until predictions are off by at most `off`; None if too many.

    `propose` gives the agreement for a quorum. The answer is within two percent.
    """
    positive(off=off)

    def suffices(count: int) -> bool:
        return outlook(propose(count)).off <= off

    low, high = 1, 64
    while not suffices(high):
        low, high = high, high * 4
        if high > MOST_PEOPLE:
            return None
    while high > low * 1.02 + 1:
        middle = round(math.sqrt(low * high))
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def epsilon_needed(propose: Callable[[float], Agreement], off: float) -> float | None:
    """Find the smallest ε at which predictions are off by at most `off`, rounded up to two digits.

    `propose` gives the agreement for an ε. None if 100 is too little.
    """
    positive(off=off)
    low, high = math.log(1e-3), math.log(100.0)
    if outlook(propose(math.exp(high))).off > off:
        return None
    while high - low > 0.02:
        middle = (low + high) / 2
        suffices = outlook(propose(math.exp(middle))).off <= off
        low, high = (low, middle) if suffices else (middle, high)
    power = 10.0 ** (math.floor(math.log10(math.exp(high))) - 1)
    return float(f"{math.ceil(math.exp(high) / power) * power:.2g}")


def _typical(columns: tuple[JointColumn, ...], target: str) -> FloatArray:
    """Return E[(1, v)(1, v)ᵀ] of typical people, the target a line of the others plus noise."""
    mean = np.array([_share(one, columns) if one.is_share else 0.0 for one in columns])
    second = np.outer(mean, mean)
    for i, one in enumerate(columns):
        # people spread evenly between two knots have E[v²] = ⅔·E[v], E[v_iv_{i+1}] = ⅙·E[v]
        kinds = {"numeric": SPREAD, "sign": 1.0, "level": mean[i], "hat": mean[i] * 2 / 3}
        second[i, i] = kinds[one.kind]
        for j, other in enumerate(columns):
            if i != j and one.group is not None and one.group == other.group:
                second[i, j] = mean[i] / 6 if one.kind == "hat" and abs(i - j) == 1 else 0.0
    place = [one.name for one in columns].index(target)
    covariance = second - np.outer(mean, mean)
    own = columns[place].group
    beside = {i for i, one in enumerate(columns) if own is not None and one.group == own}
    others = [i for i in np.flatnonzero(np.diag(covariance) > 0) if i not in {place, *beside}]
    inner = covariance[np.ix_(others, others)]
    slope = np.where(np.arange(len(others)) % 2, -1.0, 1.0) / np.sqrt(np.diagonal(inner))
    explained = float(slope @ inner @ slope)
    if explained > 0:
        slope *= math.sqrt(EXPLAINED * covariance[place, place] / explained)
    cross = inner @ slope + mean[others] * mean[place]
    second[place, others] = second[others, place] = cross
    return np.block([[np.ones((1, 1)), mean[None, :]], [mean[:, None], second]])


def _share(level: JointColumn, columns: tuple[JointColumn, ...]) -> float:
    """Return a level's share: all levels alike, but few people leave a number unsaid."""
    group = [one for one in columns if one.group == level.group]
    return UNSAID if any(one.kind == "numeric" for one in group) else 1 / len(group)


def _off(sums: Submodel) -> float:
    """Return √tr(A·C) in units of the encoded target."""
    model = linear_bayes(sums)
    error = posterior_covariance(sums, model)
    gram = sums.gram / sums.count
    return math.sqrt(max(float(np.sum(gram * error)), 0.0)) / sums.target.weight
