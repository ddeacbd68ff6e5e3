"""A whole collection in waves without an agreement: who is in which, blurred sums, models.

Rows are divided by a random order that is drawn before anything is read, so no answer decides
anybody's wave. Each wave's sums get the noise of its own Δ at the full μ: a person is in one wave
only, so everybody keeps μ-GDP in all. Or every row is in every wave, and the waves share μ. Both
are proved in `blurfit.theory.planning`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blurfit.data import FloatArray, IntArray
from blurfit.errors import InvalidValueError, positive
from blurfit.estimators.people import one_of_each
from blurfit.learning.beliefs import Belief, first_belief
from blurfit.learning.shrinkage import Shrunk, linear_bayes, shrink
from blurfit.learning.sums import JointSums
from blurfit.learning.waves import WaveSums, learn_wave, next_map
from blurfit.theory import moments
from blurfit.theory.forms import ColumnKind, JointColumn
from blurfit.theory.maps import ResidualMap, WaveMap
from blurfit.theory.moments import Neighbours
from blurfit.theory.planning import Kind, Stages, public_weights
from support.joint_sums import clean_sums, draw_joint_sums

TARGET = "target"


@dataclass(frozen=True, eq=False)
class Collected:
    """The releases of all waves in their order, the maps between them, and what each taught.

    `beliefs[-1]` is the model; `kept` are the columns of v that it speaks of (a categorical's last
    level is the reference, and is left out).
    """

    first: JointSums
    maps: tuple[WaveMap, ...]
    later: tuple[WaveSums, ...]
    beliefs: tuple[Belief, ...]
    kept: IntArray

    @property
    def model(self) -> Belief:
        """What is believed after the last wave."""
        return self.beliefs[-1]

    @property
    def coefficients(self) -> FloatArray:
        """The model's for (1, v) with all columns of v; 0 for reference levels."""
        found = np.zeros(len(self.first.columns))  # the target's place is the constant's
        found[0], found[1 + self.kept] = self.model.coefficients[0], self.model.coefficients[1:]
        return found


def assign(count: int, plan: Stages, generator: np.random.Generator) -> list[IntArray]:
    """Which rows are in which wave: a random order, cut by the plan; no row is looked at."""
    ends = np.cumsum(plan.quorums(count))[:-1]
    return list(np.split(generator.permutation(count), ends))


def collect_in_waves(
    values: FloatArray,
    target: FloatArray,
    kinds: Sequence[Kind],
    *,
    plan: Stages,
    mu: float,
    generator: np.random.Generator,
    neighbours: Neighbours = "replace",
    count_bound: float | None = None,
    held: bool = False,
) -> Collected:
    """Everything, from encoded rows to the last model.

    Args:
        values: v in [−1, 1], a row for each person; K columns of zeros and ones for K levels.
        target: A number in [−1, 1], a label ±1, or a count.
        kinds: Of the features: "numeric", "sign", or how many levels.
        plan: The task and its waves, from `blurfit.theory.planning.choose_plan`.
        mu: μ; every person whose columns lie in [−1, 1] keeps μ-GDP in all.
        generator: Where noise and assignment are drawn from.
        neighbours: What one person may change.
        count_bound: The largest count; larger ones are cut to it.
        held: Whether every row is in every wave; the plan's fractions are shares of μ² then.
    """
    positive(mu=mu)
    task, encoded = plan.task, target
    if task == "count":
        positive(count_bound=count_bound)
        assert count_bound is not None
        encoded = 2 * np.clip(target, 0, count_bound) / count_bound - 1
    every = np.arange(len(target))
    waves = [every] * len(plan.stages) if held else assign(len(target), plan, generator)
    mus = [mu * math.sqrt(share) if held else mu for share in plan.fractions]
    names, columns, kept = _columns(kinds, values.shape[1])
    rows = waves[0]
    read = task if len(waves) == 1 else None
    weights = public_weights(kinds, len(rows), mus[0], neighbours=neighbours, task=read)
    per_column = [weights.features[feature] for feature, _ in columns]
    described = [
        JointColumn(name, weight, kind, f"{feature}" if kind == "level" else None)
        for name, weight, (feature, kind) in zip(names, per_column, columns, strict=True)
    ]
    goal = JointColumn(TARGET, weights.target, "sign" if task == "label" else "numeric")
    described.append(goal)
    first = draw_joint_sums(
        described,
        weights.constant,
        len(rows),
        clean_sums(described, weights.constant, np.column_stack([values[rows], encoded[rows]])),
        moments.sensitivity(weights.constant, 1.0, neighbours) / mus[0],
        generator,
    )
    sums = first.submodel(TARGET, [names[place] for place in kept])
    # The last wave's model is published, so it is read as well as can be; a first wave among
    # several is only a start, for which linear Bayes is quick and good enough.
    model = shrink(sums) if len(waves) == 1 else linear_bayes(sums)
    beliefs = [first_belief(sums, model, task, count_bound)]
    maps: list[WaveMap] = []
    later: list[WaveSums] = []
    for place in range(1, len(waves)):
        rows, kind, own = waves[place], plan.kinds[place], mus[place]
        last = place == len(waves) - 1
        maps.append(next_map(beliefs[-1], kind, len(rows), own, last=last))
        seen = target if kind == "newton" else encoded
        part = values[rows][:, kept]
        later.append(draw_wave(maps[-1], part, seen[rows], own, generator, neighbours))
        beliefs.append(learn_wave(beliefs[-1], maps[-1], later[-1]))
    return Collected(first, tuple(maps), tuple(later), tuple(beliefs), kept)


def draw_wave(
    chart: WaveMap,
    values: FloatArray,
    target: FloatArray,
    mu: float,
    generator: np.random.Generator,
    neighbours: Neighbours = "replace",
) -> WaveSums:
    """A later wave's blurred sums, μ-GDP for its records whatever the chart is."""
    deviation = chart.sensitivity(neighbours) / mu
    linear: FloatArray | None = None
    if isinstance(chart, ResidualMap):
        matrix, squares = chart.sums(values, target)
    else:
        matrix, linear, squares = chart.sums(values, target)
        linear = linear + generator.normal(size=len(linear)) * deviation * chart.loss.balance
    matrix = _blurred(matrix, deviation, generator)
    if squares is not None:
        some = one_of_each(len(values), chart.stride)
        squares = chart.sums(values[some], target[some])[-1]
        squares = _blurred(squares, deviation / chart.robust_weight, generator)
    return WaveSums(len(values), matrix, linear, deviation, squares)


def _blurred(matrix: FloatArray, deviation: float, generator: np.random.Generator) -> FloatArray:
    """The upper triangle + E, mirrored: deviation on the diagonal, deviation/√2 beside it."""
    size = len(matrix)
    upper = np.triu(matrix, 1)
    upper += np.triu(generator.normal(size=(size, size)), 1) * (deviation / np.sqrt(2))
    diagonal = np.diagonal(matrix) + generator.normal(size=size) * deviation
    return np.asarray(upper + upper.T + np.diag(diagonal))


def _columns(
    kinds: Sequence[Kind], width: int
) -> tuple[list[str], list[tuple[int, ColumnKind]], IntArray]:
    """A name for each column of v, its feature and kind; and the columns without last levels."""
    columns: list[tuple[int, ColumnKind]] = []
    kept: list[int] = []
    for feature, kind in enumerate(kinds):
        if isinstance(kind, int):
            kept += range(len(columns), len(columns) + kind - 1)
            columns += [(feature, "level")] * kind
        else:
            kept.append(len(columns))
            columns.append((feature, kind))
    if len(columns) != width:
        raise InvalidValueError(
            f"Expected values with {len(columns)} columns for these kinds, got {width}."
        )
    return [f"v{place}" for place in range(width)], columns, np.array(kept, dtype=np.int64)


def score(found: Belief | Shrunk, v: FloatArray) -> FloatArray:
    """Return β₀ + β·v of each row."""
    return np.asarray(found.coefficients[0] + v @ found.coefficients[1:])
