"""Do groups and weights cover? Models of groups, decompositions and weighted answers of one release
against what people were drawn from.

*Groups.* Four answers and a number that is linear in them, in two or six groups whose intercepts,
slopes and answers differ; the first group has 40 % of the people. Asked are each group's
coefficients, their differences from the first group's, and Oaxaca and Blinder's two parts of the
gap between the second group and the first. Groups of which no model is told are left out, and
`told` is the share of differences that are.

| people | what is special |
| --- | --- |
| even | everybody spreads alike around the line |
| by group | the spread of the last group is 1.7 times that of the others, which its own sums show |
| uneven | the spread grows threefold with the first answer, which second moments cannot show |

*Weights.* Whoever answers is selected by the first answer: with a probability p between 0.2 and 1,
so that the mean of those who answer is off. Everybody's weight is 0.2/p, a number that the device
knows. Asked are the mean and the coefficients of the population.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from scipy.special import expit

from blurfit import Agreement, Categorical, Numeric, PublishedMoments, Schema
from blurfit.data import AnyArray, FloatArray
from blurfit.errors import InfeasibleError, Progress, silent
from blurfit_lab.experiments.lines import measured
from blurfit_lab.experiments.tables import inside, sent

PEOPLE = ("even", "by group", "uneven")
DESIGNS = ((2, 0.0), (6, 0.0), (6, 0.5))  # groups, and the overlap of their codes
NAMES = ("a", "b", "c", "d")
FORMULA = "y ~ a + b + c + d"
_SPREAD = 0.3
Table = dict[str, AnyArray]


def levels(groups: int) -> list[str]:
    """Return the names of the groups."""
    return [f"g{place}" for place in range(groups)]


def truth(groups: int) -> tuple[FloatArray, FloatArray]:
    """Return each group's coefficients, the constant first, and its means of the answers."""
    place = np.linspace(0, 1, groups)
    slopes = [-0.2 + 0.7 * place, np.full(groups, 0.1), 0.1 - 0.2 * place, np.full(groups, -0.1)]
    coefficients = np.column_stack([0.11 * (place > 0), *slopes])
    means = np.column_stack([0.15 * place, np.zeros(groups), -0.1 * place, np.zeros(groups)])
    return coefficients, means


def drawn(kind: str, groups: int, count: int, generator: np.random.Generator) -> Table:
    """Draw people of one kind, of whom the line is true in each group."""
    coefficients, means = truth(groups)
    shares = np.array([0.4, *[0.6 / (groups - 1)] * (groups - 1)])
    group = generator.choice(groups, count, p=shares)
    x = means[group] + 0.8 * generator.uniform(-1, 1, (count, 4))
    spread = np.full(count, _SPREAD)
    if kind == "by group":
        spread = np.where(group == groups - 1, 1.7, 1.0) * _SPREAD
    elif kind == "uneven":
        spread = (1 + 0.5 * x[:, 0] / 0.95) * _SPREAD
    line = coefficients[group, 0] + np.sum(coefficients[group, 1:] * x, axis=1)
    y = line + spread * generator.uniform(-1, 1, count)
    return {**dict(zip(NAMES, x.T, strict=True)), "group": np.array(levels(groups))[group], "y": y}


def groups_contest(
    kinds: Sequence[str],
    sizes: Sequence[int],
    epsilons: Sequence[float],
    trials: int,
    watch: Progress = silent,
) -> pd.DataFrame:
    """Return coverage of models, differences and decompositions, cell by cell."""
    rows: list[dict[str, Any]] = []
    for kind in kinds:
        for groups, overlap in DESIGNS:
            for count in sizes:
                found = _groups_cell(kind, groups, overlap, count, epsilons, trials)
                for epsilon, told in zip(epsilons, found, strict=True):
                    cell = {"people": kind, "G": groups, "κ": overlap, "n": count, "ε": epsilon}
                    rows.append(cell | told)
                watch(len(rows), len(kinds) * len(DESIGNS) * len(sizes) * len(epsilons))
    return pd.DataFrame(rows)


def _groups_cell(
    kind: str, groups: int, overlap: float, count: int, epsilons: Sequence[float], trials: int
) -> list[dict[str, float]]:
    features = [Numeric(name, -1, 1) for name in NAMES]
    schema = Schema([*features, Categorical("group", levels(groups))], Numeric("y", -1.5, 1.5))
    terms: dict[str, Any] = {
        "delta": 1e-6, "quorum": count, "groups": "group", "overlap": overlap,
    }  # fmt: skip
    agreements = [Agreement.propose(schema, epsilon=epsilon, **terms) for epsilon in epsilons]
    generator = np.random.default_rng([count, groups, int(10 * overlap), PEOPLE.index(kind)])
    hits: list[dict[str, list[float]]] = [{} for _ in epsilons]
    for _ in range(trials):
        people = drawn(kind, groups, count, generator)
        for place, agreement in enumerate(agreements):
            moments = sent(agreement, people, generator)
            for name, holds in _asked_of_groups(moments, groups).items():
                hits[place].setdefault(name, []).extend(holds)
    names = ("coefficients", "differences", "explained", "unexplained", "told")
    return [
        {name: float(np.mean(one[name])) if one.get(name) else float("nan") for name in names}
        for one in hits
    ]


def _asked_of_groups(moments: PublishedMoments, groups: int) -> dict[str, list[float]]:
    """Return which intervals of one release hold the truth."""
    coefficients, means = truth(groups)
    by_group, names = moments.by_group(), levels(groups)
    found: dict[str, list[float]] = {"told": [0.0] * (groups - 1)}
    try:
        models = by_group.fit(FORMULA)
    except InfeasibleError:
        return found
    places = [names.index(name) for name in models.models]
    found["coefficients"] = inside(models.coefficients, coefficients[places].ravel())
    if 0 in places and len(places) > 1:
        others = [place for place in places if place]
        apart = (coefficients[others] - coefficients[0]).ravel()
        found["differences"] = inside(models.differences(names[0]), apart)
        found["told"] = [float(place in others) for place in range(1, groups)]
    if {0, 1} <= set(places):
        split = by_group.decompose(FORMULA, names[1], names[0])
        explained = (means[1] - means[0]) @ coefficients[0, 1:]
        at = np.append(1.0, means[1])
        rest = at @ (coefficients[1] - coefficients[0])
        holds = inside(split, np.array([np.nan, explained, *[np.nan] * 4, rest]))
        found["explained"], found["unexplained"] = [holds[1]], [holds[-1]]
    return found


# ---- weights


MEAN = 0.067
COEFFICIENTS = np.array([MEAN, 0.4, 0.2])


def selected(count: int, generator: np.random.Generator) -> Table:
    """Draw people who answer, each with a probability that grows with the first answer."""
    parts: list[AnyArray] = []
    while sum(map(len, parts)) < count:
        x = generator.uniform(-1, 1, (2 * count, 2))
        chance = np.clip(expit(0.5 + 1.6 * x[:, 0]), 0.2, 1.0)
        error = 0.3 * generator.uniform(-1, 1, len(x))
        answers = generator.random(len(x)) < chance
        parts.append(
            np.column_stack([x, 0.2 / chance, COEFFICIENTS[0] + x @ COEFFICIENTS[1:] + error])[
                answers
            ]
        )
    rows = np.vstack(parts)[:count]
    return dict(zip(("a", "b", "weight", "y"), rows.T, strict=True))


def weights_contest(
    sizes: Sequence[int], epsilons: Sequence[float], trials: int, watch: Progress = silent
) -> pd.DataFrame:
    """Return the bias that weights take away, errors and coverage, cell by cell."""

    def cell(count: int, epsilon: float) -> dict[str, float]:
        return _weights_cell(count, epsilon, trials)

    return measured(["n", "ε"], product(sizes, epsilons), cell, watch)


def _weights_cell(count: int, epsilon: float, trials: int) -> dict[str, float]:
    schema = Schema(
        [Numeric("a", -1, 1), Numeric("b", -1, 1), Numeric("weight", 0, 1)], Numeric("y", -1, 1)
    )
    agreement = Agreement.propose(
        schema, epsilon=epsilon, delta=1e-6, quorum=count, weighting="weight"
    )
    generator = np.random.default_rng([count, int(1000 * epsilon)])
    means, plain, hits, slopes, refused = [], [], [], [], 0
    for _ in range(trials):
        people = selected(count, generator)
        plain.append(people["y"].mean())
        moments = sent(agreement, people, generator)
        found = moments.mean("y")
        means.append(float(found.answer.values[0]))
        hits += inside(found, np.array([MEAN]))
        model = moments.fit("y ~ a + b")
        if not model.inference:
            refused += 1
            continue
        each = zip(model.estimates(), COEFFICIENTS, strict=True)
        slopes += [float(one.lower <= true <= one.upper) for one, true in each]
    bias = float(np.mean(plain) - MEAN)
    errors = np.array(means) - MEAN
    return {
        "bias without": bias,
        "bias": float(np.mean(means) - MEAN),
        "gone": float(1 - abs((np.mean(means) - MEAN) / bias)),
        "rms": float(np.sqrt(np.mean(errors**2))),
        "mean": float(np.mean(hits)),
        "coefficients": float(np.mean(slopes)) if slopes else float("nan"),
        "refused": refused / trials,
    }
