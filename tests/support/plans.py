"""Plans of waves with people whose truth is known, and their releases."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.contributor.blur import perturb_table
from blurfit.model.course import next_agreement
from blurfit.model.release import PublishedMoments, moments_of
from blurfit.schema.schema import Binary, Categorical, Numeric, Schema
from blurfit.simulation import exact_totals, sampler_for

FEATURES = (
    Numeric("age", 18, 90),
    Numeric("education", 0, 20),
    Categorical("region", ["north", "south", "west"]),
    Binary("married"),
)
TARGETS = {
    "number": Numeric("income", 0, 100_000),
    "label": Numeric("income", 0, 100_000).above(45_000),
    "count": Numeric("visits", 0, 12),
}


def people(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Incomes that are linear in the features, and visits whose logarithm is."""
    generator = np.random.default_rng(seed)
    age, education = generator.uniform(18, 90, count), generator.integers(0, 21, count)
    region = generator.choice(["north", "south", "west"], count)
    married = generator.integers(0, 2, count)
    income = 8000 + 300 * age + 1500 * education + 5000 * (region == "west") + 3000 * married
    rate = np.exp(-0.7 + 0.02 * (age - 18) + 0.4 * married)
    return {
        "age": age,
        "education": education,
        "region": region,
        "married": married,
        "income": np.clip(income + generator.normal(0, 8000, count), 0, 100_000),
        "visits": np.minimum(generator.poisson(rate), 12),
    }


@cache
def plan(
    task: str = "number",
    *,
    quorum: int = 40_000,
    waves: int | str = "auto",
    admission: str = "invited",
) -> Plan:
    """A plan at ε = 1, δ = 1e-6."""
    schema = Schema(FEATURES, TARGETS[task])
    return Plan.propose(
        schema,
        waves=waves,
        counts=task == "count",
        epsilon=1.0,
        delta=1e-6,
        quorum=quorum,
        admission=admission,
    )


def release(agreement: Agreement, records: Any, generator: np.random.Generator) -> PublishedMoments:
    """What a wave of these people publishes."""
    clean = exact_totals(agreement, records)
    return moments_of(agreement, sampler_for(agreement, clean).draw(generator))


@cache
def releases(given: Plan, seed: int = 1) -> tuple[PublishedMoments, ...]:
    """All waves of a plan, one after the other."""
    everyone, generator = people(given.terms.quorum, seed), np.random.default_rng(seed)
    found: list[PublishedMoments] = []
    at = 0
    for quorum in given.quorums:
        part = rows(everyone, at, at + quorum)
        found.append(release(next_agreement(given, found), part, generator))
        at += quorum
    return tuple(found)


def rows(table: dict[str, np.ndarray], start: int, stop: int) -> dict[str, np.ndarray]:
    """Some rows of a table."""
    return {name: column[start:stop] for name, column in table.items()}


def written(path: Any, table: dict[str, np.ndarray], names: Sequence[str]) -> Any:
    """A table as a CSV file."""
    lines = [",".join(names), *(",".join(map(str, row)) for row in zip(*(table[n] for n in names)))]  # noqa: B905
    path.write_text("\n".join(lines) + "\n")
    return path


def fill(store: Any, agreement: Agreement, start: int, stop: int) -> None:
    """Some of sixty people contribute to a wave."""
    store.add(agreement, perturb_table(agreement, rows(people(60, 4), start, stop)))
