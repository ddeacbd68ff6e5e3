"""Do tables and effects cover? Answers of a release against the population of its people.

Three kinds of people answer a yes/no, two choices, a number with bands and another number. In each
trial n of them send once; `moments.table`, `mean`, `quantile` and `odds_ratio` tell intervals of
95 %, and tests of hypotheses that are true of these people reject them so often. Another n send
what models are asked of: the values of a curve at its knots, average marginal effects on a yes/no
(beside `PUBLIC` public rows), and whether a model needs a question that says nothing:

| people | what is special |
| --- | --- |
| even | pay is independent of all else and spread alike, hours follow age, members age and east |
| uneven | one region has 1.7 times the spread of pay and of hours of the others |
| skewed | pay and hours are skewed, and one level of each choice is rare |
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import product

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from scipy.special import expit

from blurfit import (
    Agreement,
    Bands,
    Binary,
    Categorical,
    Curve,
    Numeric,
    PublishedMoments,
    Schema,
)
from blurfit.data import AnyArray
from blurfit.errors import InfeasibleError, Progress, silent
from blurfit.model.release import moments_of
from blurfit.model.tables import Answers
from blurfit.simulation.sampler import exact_totals, sampler_for
from blurfit_lab.experiments.lines import measured

PEOPLE = ("even", "uneven", "skewed")
SCHEMA = Schema(
    [
        Binary("east"),
        Categorical("region", ["a", "b", "c", "d"]),
        Categorical("school", ["u", "v", "w", "x", "y"]),
        Bands("pay", edges=[20, 30, 35, 40, 45, 50, 55, 60, 70, 80]),
        Numeric("age", 18, 90),
    ],
    Numeric("pay", 0, 100),
)
MODELS = Schema(
    [
        Binary("east"),
        Categorical("region", ["a", "b", "c", "d"]),
        Numeric("age", 18, 90),
        Curve("age", knots=[18, 36, 54, 72, 90]),
        Numeric("hours", 0, 80),
    ],
    Binary("member"),
)
SLOPES = -0.5, 0.03, 0.6  # of members: the constant, a year of age from 54 on, and east
PUBLIC = 5000
POPULATION = 400_000
QUESTIONS: dict[str, Callable[[PublishedMoments], Answers]] = {
    "shares": lambda moments: moments.table("region"),
    "cells": lambda moments: moments.table("region", "east"),
    "means": lambda moments: moments.mean("pay", by="region"),
    "median": lambda moments: moments.quantile("pay", 0.5),
    "odds ratio": lambda moments: moments.odds_ratio("east", "region", others=("a", "b")),
}
REJECTED = "χ² rejects", "equal means rejects", "nested F rejects"
Table = dict[str, AnyArray]


def drawn(kind: str, count: int, generator: np.random.Generator) -> Table:
    """Draw people of one kind, whose answers are independent of each other."""
    rare = kind == "skewed"
    of_region = [0.5, 0.3, 0.17, 0.03] if rare else [0.4, 0.3, 0.2, 0.1]
    of_school = [0.1, 0.2, 0.3, 0.37, 0.03] if rare else [0.1, 0.2, 0.3, 0.25, 0.15]
    region = generator.choice(4, count, p=of_region)
    if kind == "skewed":
        pay = np.exp(generator.normal(3.7, 0.4, count))
    else:
        wide = 1.7 if kind == "uneven" else 1.0
        pay = 48 + 12 * np.where(region == 3, wide, 1.0) * generator.standard_normal(count)
    age, east = generator.uniform(18, 90, count), generator.random(count) < 0.45
    spread = 8 * np.where((region == 3) & (kind == "uneven"), 1.7, 1.0)
    error = generator.exponential(size=count) - 1 if rare else generator.standard_normal(count)
    constant, of_age, of_east = SLOPES
    likely = expit(constant + of_age * (age - 54) + of_east * east)
    return {
        "east": east,
        "region": np.array(["a", "b", "c", "d"])[region],
        "school": generator.choice(["u", "v", "w", "x", "y"], count, p=of_school),
        "age": age,
        "pay": np.clip(pay, 0, 100),
        "hours": np.clip(30 + 12 * np.sin(np.pi * (age - 18) / 72) + spread * error, 0, 80),
        "member": generator.random(count) < likely,
    }


def truths(people: Table) -> dict[str, AnyArray]:
    """Return what each question below should say of the whole population."""
    east, region, pay = people["east"], people["region"], people["pay"]
    levels = ["a", "b", "c", "d"]
    return {
        "shares": np.array([np.mean(region == one) for one in levels]),
        "cells": np.array(
            [np.mean((region == one) & (east == yes)) for one in levels for yes in (True, False)]
        ),
        "means": np.array([pay[region == one].mean() for one in levels]),
        "median": np.array([np.median(pay)]),
        "odds ratio": np.ones(1),  # of east, and the first region against the second
        "curve": _at_knots(people),
        "marginal effects": _on_average(people),
    }


def _at_knots(people: Table) -> AnyArray:
    """Return the curve that least squares gives to the population, at its knots."""
    hats = np.asarray(MODELS.question("curve(age)").scale(people["age"]))
    return np.linalg.solve(hats.T @ hats, hats.T @ people["hours"])


def _on_average(people: Table) -> AnyArray:
    """Return how much a year of age and east change the chance to be a member, on average."""
    constant, of_age, of_east = SLOPES
    base = constant + of_age * (people["age"] - 54)
    likely = expit(base + of_east * people["east"])
    change = expit(base + of_east) - expit(base)
    return np.array([change.mean(), of_age * (likely * (1 - likely)).mean()])


def contest(
    kinds: Sequence[str],
    sizes: Sequence[int],
    epsilons: Sequence[float],
    trials: int,
    watch: Progress = silent,
) -> pd.DataFrame:
    """Return coverage of each question and rejections of each true hypothesis, cell by cell."""
    true = {kind: truths(drawn(kind, POPULATION, np.random.default_rng(0))) for kind in kinds}

    def cell(kind: str, count: int, epsilon: float) -> dict[str, float]:
        return _cell(kind, count, epsilon, trials, true[kind])

    return measured(["people", "n", "epsilon"], product(kinds, sizes, epsilons), cell, watch)


def _cell(
    kind: str, count: int, epsilon: float, trials: int, true: dict[str, AnyArray]
) -> dict[str, float]:
    agreement = Agreement.propose(SCHEMA, epsilon=epsilon, delta=1e-6, quorum=count)
    models = Agreement.propose(MODELS, epsilon=epsilon, delta=1e-6, quorum=count)
    generator = np.random.default_rng([count, int(epsilon * 1000), PEOPLE.index(kind)])
    rows = drawn(kind, PUBLIC, np.random.default_rng(1))
    shown: dict[str, list[float]] = {name: [] for name in (*true, *REJECTED)}
    told = 0
    for _ in range(trials):
        release = sent(models, drawn(kind, count, generator), generator)
        told += _ask_models(release, rows, shown, true)
        moments = sent(agreement, drawn(kind, count, generator), generator)
        for name, ask in QUESTIONS.items():
            with suppress(InfeasibleError):
                shown[name] += inside(ask(moments), true[name])
        tests = moments.table("region", "school").test(), moments.mean("pay", by="region").test()
        for name, test in zip(REJECTED, tests, strict=False):
            shown[name].append(test.p_value < 0.05)
    means = {name: float(np.mean(one)) if one else np.nan for name, one in shown.items()}
    return means | {"models told": told / (3 * trials)}


def sent(agreement: Agreement, people: Table, generator: np.random.Generator) -> PublishedMoments:
    """Return the release of these people, all noise drawn at once."""
    clean = exact_totals(agreement, people)
    return moments_of(agreement, sampler_for(agreement, clean).draw(generator))


def _ask_models(
    release: PublishedMoments,
    rows: Table,
    shown: dict[str, list[float]],
    true: dict[str, AnyArray],
) -> int:
    """Ask a release three things of models, and return how many were told.

    `ridge=0` spares the search for the best shrinkage, which errors do not depend on.
    """
    told = 0
    for name in ("curve", "marginal effects", "nested F rejects"):
        try:
            if name == "curve":
                found = release.fit("hours ~ curve(age)", ridge=0).effect("age")
                shown[name] += inside(found, true[name])
            elif name == "marginal effects":
                model = release.fit("member ~ east + age", public=rows)
                shown[name] += inside(model.marginal_effects(rows), true[name])
            else:
                larger = release.fit("hours ~ curve(age) + region", ridge=0)
                test = larger.compare(release.fit("hours ~ curve(age)", ridge=0))
                shown[name].append(test.p_value < 0.05)
        except InfeasibleError:
            continue
        told += 1
    return told


def inside(found: Answers, true: AnyArray) -> list[float]:
    """Tell of each answer that has an interval whether it holds the truth: 1, or 0."""
    columns = found.to_dict()
    lower, upper = np.array(columns["lower"]), np.array(columns["upper"])
    holds = (lower <= true) & (true <= upper)
    return [float(one) for one in holds[np.isfinite(lower)]]
