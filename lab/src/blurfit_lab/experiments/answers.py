"""Do answers cover? Tables, effects, models of groups and weighted answers of a release against the
people that they are of: intervals of 95 %, and tests of hypotheses that are true of these people.

lab/docs/everywhere.md says who they are, what they are asked, and what was found.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from scipy.special import expit

from blurfit import Agreement, Bands, Binary, Categorical, Curve, Numeric, PublishedMoments, Schema
from blurfit.data import AnyArray, FloatArray
from blurfit.errors import InfeasibleError, Progress, silent
from blurfit.model.release import moments_of
from blurfit.model.tables import Answers
from blurfit.simulation import exact_totals, sampler_for
from blurfit_lab.experiments.lines import Collections, measured

Table = dict[str, AnyArray]
Holds = dict[str, list[float]]  # of each question, whether intervals hold the truth


def sent(agreement: Agreement, people: Table, generator: np.random.Generator) -> PublishedMoments:
    """Return the release of these people, all noise drawn at once."""
    clean = exact_totals(agreement, people)
    return moments_of(agreement, sampler_for(agreement, clean).draw(generator))


def inside(found: Answers, true: AnyArray) -> list[float]:
    """Tell of each answer that has an interval whether it holds the truth: 1, or 0."""
    columns = found.to_dict()
    lower, upper = np.array(columns["lower"]), np.array(columns["upper"])
    holds = (lower <= true) & (true <= upper)
    return [float(one) for one in holds[np.isfinite(lower)]]


def _means(shown: Mapping[str, Sequence[float]], names: Sequence[str]) -> dict[str, float]:
    return {name: float(np.mean(shown[name])) if shown.get(name) else np.nan for name in names}


# ---- tables


KINDS = ("even", "uneven", "skewed")
REGIONS, SCHOOLS = ["a", "b", "c", "d"], ["u", "v", "w", "x", "y"]
SCHEMA = Schema(
    [
        Binary("east"),
        Categorical("region", REGIONS),
        Categorical("school", SCHOOLS),
        Bands("pay", edges=[20, 30, 35, 40, 45, 50, 55, 60, 70, 80]),
        Numeric("age", 18, 90),
    ],
    Numeric("pay", 0, 100),
)
MODELS = Schema(
    [
        Binary("east"),
        Categorical("region", REGIONS),
        Numeric("age", 18, 90),
        Curve("age", knots=[18, 36, 54, 72, 90]),
        Numeric("hours", 0, 80),
    ],
    Binary("member"),
)
SLOPES = -0.5, 0.03, 0.6  # of members: the constant, a year of age from 54 on, and east
POPULATION = 400_000
QUESTIONS: dict[str, Callable[[PublishedMoments], Answers]] = {
    "shares": lambda moments: moments.table("region"),
    "cells": lambda moments: moments.table("region", "east"),
    "means": lambda moments: moments.mean("pay", by="region"),
    "median": lambda moments: moments.quantile("pay", 0.5),
    "odds ratio": lambda moments: moments.odds_ratio("east", "region", others=("a", "b")),
}
REJECTED = "χ² rejects", "equal means rejects", "nested F rejects"


def drawn(kind: str, count: int, generator: np.random.Generator) -> Table:
    """Draw people of one kind, whose answers are independent of each other."""
    rare = kind == "skewed"
    of_region = [0.5, 0.3, 0.17, 0.03] if rare else [0.4, 0.3, 0.2, 0.1]
    of_school = [0.1, 0.2, 0.3, 0.37, 0.03] if rare else [0.1, 0.2, 0.3, 0.25, 0.15]
    region = generator.choice(4, count, p=of_region)
    wide = np.where((region == 3) & (kind == "uneven"), 1.7, 1.0)
    if rare:
        pay = np.exp(generator.normal(3.7, 0.4, count))
    else:
        pay = 48 + 12 * wide * generator.standard_normal(count)
    age, east = generator.uniform(18, 90, count), generator.random(count) < 0.45
    error = generator.exponential(size=count) - 1 if rare else generator.standard_normal(count)
    constant, of_age, of_east = SLOPES
    likely = expit(constant + of_age * (age - 54) + of_east * east)
    return {
        "east": east,
        "region": np.array(REGIONS)[region],
        "school": generator.choice(SCHOOLS, count, p=of_school),
        "age": age,
        "pay": np.clip(pay, 0, 100),
        "hours": np.clip(30 + 12 * np.sin(np.pi * (age - 18) / 72) + 8 * wide * error, 0, 80),
        "member": generator.random(count) < likely,
    }


def truths(people: Table) -> dict[str, AnyArray]:
    """Return what each question should say of the whole population; of a curve, least squares' at
    its knots.
    """
    east, region, pay = people["east"], people["region"], people["pay"]
    hats = np.asarray(MODELS.question("curve(age)").scale(people["age"]))
    cells = [(region == one) & (east == yes) for one in REGIONS for yes in (True, False)]
    return {
        "shares": np.array([np.mean(region == one) for one in REGIONS]),
        "cells": np.mean(cells, axis=1),
        "means": np.array([pay[region == one].mean() for one in REGIONS]),
        "median": np.array([np.median(pay)]),
        "odds ratio": np.ones(1),  # of east, and the first region against the second
        "curve": np.linalg.solve(hats.T @ hats, hats.T @ people["hours"]),
    }


def tables_contest(
    asked: Collections, watch: Progress = silent, kinds: Sequence[str] = KINDS
) -> pd.DataFrame:
    """Return coverage of each question and rejections of each true hypothesis, cell by cell."""
    true = {kind: truths(drawn(kind, POPULATION, np.random.default_rng(0))) for kind in kinds}

    def cell(kind: str, count: int, epsilon: float) -> dict[str, float]:
        terms: dict[str, Any] = {"epsilon": epsilon, "delta": 1e-6, "quorum": count}
        contract, models = (Agreement.propose(one, **terms) for one in (SCHEMA, MODELS))
        generator = np.random.default_rng([count, int(epsilon * 1000), KINDS.index(kind)])
        shown: Holds = {name: [] for name in (*true[kind], *REJECTED)}
        told = 0
        for _ in range(asked.trials):
            release = sent(models, drawn(kind, count, generator), generator)
            for name, ask in _of_models(release, true[kind]):
                with suppress(InfeasibleError):
                    shown[name] += ask()
                    told += 1
            moments = sent(contract, drawn(kind, count, generator), generator)
            for name, question in QUESTIONS.items():
                with suppress(InfeasibleError):
                    shown[name] += inside(question(moments), true[kind][name])
            tests = moments.table("region", "school"), moments.mean("pay", by="region")
            for name, test in zip(REJECTED, tests, strict=False):
                shown[name].append(test.test().p_value < 0.05)
        return _means(shown, list(shown)) | {"models told": told / (2 * asked.trials)}

    return measured(["people", "n", "epsilon"], asked.cells(kinds), cell, watch)


def _of_models(
    release: PublishedMoments, true: dict[str, AnyArray]
) -> Iterator[tuple[str, Callable[[], list[float]]]]:
    """Yield two things to ask of models; `ridge=0` spares the search for the best shrinkage,
    which errors do not depend on.
    """

    def curve(more: str = "") -> Any:
        return release.fit(f"hours ~ curve(age){more}", ridge=0)

    yield "curve", lambda: inside(curve().effect("age"), true["curve"])
    yield "nested F rejects", lambda: [curve(" + region").compare(curve()).p_value < 0.05]


# ---- groups


PEOPLE = ("even", "by group", "uneven")
DESIGNS = ((2, 0.0), (6, 0.0), (6, 0.5))  # groups, and the overlap of their codes
LEVELS = [f"g{place}" for place in range(6)]  # the first of them, where there are fewer groups
NAMES = ("a", "b", "c", "d")
FORMULA = "y ~ a + b + c + d"
ASKED = ("coefficients", "differences", "explained", "unexplained", "told")
_SPREAD = 0.3


def truth(groups: int) -> tuple[FloatArray, FloatArray]:
    """Return each group's coefficients, the constant first, and its means of the answers."""
    place = np.linspace(0, 1, groups)
    slopes = [-0.2 + 0.7 * place, np.full(groups, 0.1), 0.1 - 0.2 * place, np.full(groups, -0.1)]
    coefficients = np.column_stack([0.11 * (place > 0), *slopes])
    means = np.column_stack([0.15 * place, np.zeros(groups), -0.1 * place, np.zeros(groups)])
    return coefficients, means


def grouped(kind: str, groups: int, count: int, generator: np.random.Generator) -> Table:
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
    return {**dict(zip(NAMES, x.T, strict=True)), "group": np.array(LEVELS)[group], "y": y}


def groups_contest(
    asked: Collections, watch: Progress = silent, kinds: Sequence[str] = PEOPLE
) -> pd.DataFrame:
    """Return coverage of models, differences and decompositions, cell by cell."""

    @lru_cache
    def of_all(kind: str, groups: int, overlap: float, count: int) -> dict[float, Holds]:
        """Under every ε the same people."""
        features = [Numeric(name, -1, 1) for name in NAMES]
        schema = Schema([*features, Categorical("group", LEVELS[:groups])], Numeric("y", -1.5, 1.5))
        terms: dict[str, Any] = {"delta": 1e-6, "quorum": count}
        propose = partial(Agreement.propose, schema, groups="group", overlap=overlap, **terms)
        agreements = {one: propose(epsilon=one) for one in asked.epsilons}
        generator = np.random.default_rng([count, groups, int(10 * overlap), PEOPLE.index(kind)])
        hits: dict[float, Holds] = {one: {} for one in asked.epsilons}
        for _ in range(asked.trials):
            people = grouped(kind, groups, count, generator)
            for epsilon, agreement in agreements.items():
                told = _asked_of_groups(sent(agreement, people, generator), groups)
                for name, holds in told.items():
                    hits[epsilon].setdefault(name, []).extend(holds)
        return hits

    def cell(*of: Any) -> dict[str, float]:
        *people, epsilon = of
        return _means(of_all(*people)[epsilon], ASKED)

    each = [(kind, *design, *rest) for kind, design, *rest in asked.cells(kinds, DESIGNS)]
    return measured(["people", "G", "κ", "n", "ε"], each, cell, watch)


def _asked_of_groups(moments: PublishedMoments, groups: int) -> Holds:
    """Return which intervals of one release hold the truth."""
    coefficients, means = truth(groups)
    by_group = moments.by_group()
    found: Holds = {"told": [0.0] * (groups - 1)}
    try:
        models = by_group.fit(FORMULA)
    except InfeasibleError:
        return found
    places = [LEVELS.index(name) for name in models.models]
    found["coefficients"] = inside(models.coefficients, coefficients[places].ravel())
    if 0 in places and len(places) > 1:
        others = [place for place in places if place]
        apart = (coefficients[others] - coefficients[0]).ravel()
        found["differences"] = inside(models.differences(LEVELS[0]), apart)
        found["told"] = [float(place in others) for place in range(1, groups)]
    if {0, 1} <= set(places):
        split = by_group.decompose(FORMULA, LEVELS[1], LEVELS[0])
        explained = (means[1] - means[0]) @ coefficients[0, 1:]
        rest = np.append(1.0, means[1]) @ (coefficients[1] - coefficients[0])
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
        y = MEAN + x @ COEFFICIENTS[1:] + 0.3 * generator.uniform(-1, 1, len(x))
        answers = generator.random(len(x)) < chance
        parts.append(np.column_stack([x, 0.2 / chance, y])[answers])
    rows = np.vstack(parts)[:count]
    return dict(zip(("a", "b", "weight", "y"), rows.T, strict=True))


def weights_contest(asked: Collections, watch: Progress = silent) -> pd.DataFrame:
    """Return the bias that weights take away, errors and coverage, cell by cell."""
    features = [Numeric("a", -1, 1), Numeric("b", -1, 1), Numeric("weight", 0, 1)]
    schema = Schema(features, Numeric("y", -1, 1))

    def cell(count: int, epsilon: float) -> dict[str, float]:
        terms: dict[str, Any] = {"delta": 1e-6, "quorum": count, "weighting": "weight"}
        agreement = Agreement.propose(schema, epsilon=epsilon, **terms)
        generator = np.random.default_rng([count, int(1000 * epsilon)])
        means, plain, hits, slopes, refused = [], [], [], [], 0
        for _ in range(asked.trials):
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
        without, bias = (float(np.mean(one) - MEAN) for one in (plain, means))
        return {
            "bias without": without,
            "bias": bias,
            "gone": 1 - abs(bias / without),
            "rms": float(np.sqrt(np.mean((np.array(means) - MEAN) ** 2))),
            "mean": float(np.mean(hits)),
            "coefficients": float(np.mean(slopes)) if slopes else np.nan,
            "refused": refused / asked.trials,
        }

    return measured(["n", "ε"], asked.cells(), cell, watch)
