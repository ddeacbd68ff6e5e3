"""Do tables cover? Answers of one release against the population that people were drawn from.

Three kinds of people answer a yes/no, two choices, a number with bands and another number. In each
trial n of them send once; `moments.table`, `mean`, `quantile` and `odds_ratio` tell intervals of
95 %, and tests of hypotheses that are true of these people reject them so often:

| people | what is special |
| --- | --- |
| even | every answer is independent of every other, and pay is spread alike everywhere |
| uneven | one region has 1.7 times the spread of pay of the others |
| skewed | pay is lognormal, and one level of each choice is rare |
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from blurfit import Agreement, Bands, Binary, Categorical, Numeric, PublishedMoments, Schema
from blurfit.arrays import AnyArray
from blurfit.errors import InfeasibleError
from blurfit.model.answers import Answers
from blurfit.model.release import moments_of
from blurfit.progress import Progress, silent
from blurfit.simulation.sampler import exact_totals, sampler_for

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
POPULATION = 400_000
QUESTIONS: dict[str, Callable[[PublishedMoments], Answers]] = {
    "shares": lambda moments: moments.table("region"),
    "cells": lambda moments: moments.table("region", "east"),
    "means": lambda moments: moments.mean("pay", by="region"),
    "median": lambda moments: moments.quantile("pay", 0.5),
    "odds ratio": lambda moments: moments.odds_ratio("east", "region", others=("a", "b")),
}
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
    return {
        "east": generator.random(count) < 0.45,
        "region": np.array(["a", "b", "c", "d"])[region],
        "school": generator.choice(["u", "v", "w", "x", "y"], count, p=of_school),
        "age": generator.uniform(18, 90, count),
        "pay": np.clip(pay, 0, 100),
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
    }


def contest(
    kinds: Sequence[str],
    sizes: Sequence[int],
    epsilons: Sequence[float],
    trials: int,
    watch: Progress = silent,
) -> pd.DataFrame:
    """Return coverage of each question and rejections of each true hypothesis, cell by cell."""
    rows = []
    for kind in kinds:
        true = truths(drawn(kind, POPULATION, np.random.default_rng(0)))
        for count in sizes:
            for epsilon in epsilons:
                rows.append(
                    {
                        "people": kind,
                        "n": count,
                        "epsilon": epsilon,
                        **_cell(kind, count, epsilon, trials, true),
                    }
                )
                watch(len(rows), len(kinds) * len(sizes) * len(epsilons))
    return pd.DataFrame(rows)


def _cell(
    kind: str, count: int, epsilon: float, trials: int, true: dict[str, AnyArray]
) -> dict[str, float]:
    agreement = Agreement.propose(SCHEMA, epsilon=epsilon, delta=1e-6, quorum=count)
    generator = np.random.default_rng([count, int(epsilon * 1000), PEOPLE.index(kind)])
    inside: dict[str, list[float]] = {name: [] for name in true}
    rejected: dict[str, list[bool]] = {"χ² rejects": [], "equal means rejects": []}
    for _ in range(trials):
        clean = exact_totals(agreement, drawn(kind, count, generator))
        moments = moments_of(agreement, sampler_for(agreement, clean).draw(generator))
        for name, ask in QUESTIONS.items():
            try:
                found = ask(moments)
            except InfeasibleError:
                continue
            inside[name] += _inside(found, true[name])
        rejected["χ² rejects"].append(moments.table("region", "school").test().p_value < 0.05)
        rejected["equal means rejects"].append(
            moments.mean("pay", by="region").test().p_value < 0.05
        )
    shown = {name: float(np.mean(hits)) if hits else float("nan") for name, hits in inside.items()}
    return shown | {name: float(np.mean(one)) for name, one in rejected.items()}


def _inside(found: Answers, true: AnyArray) -> list[float]:
    columns = found.to_dict()
    lower, upper = np.array(columns["lower"]), np.array(columns["upper"])
    told = np.isfinite(lower)
    found_inside: list[float] = ((lower <= true) & (true <= upper))[told].astype(float).tolist()
    return found_inside
