"""What public rows of the features would be worth: a collection with them beside one without.

The people are drawn as for every forecast (`blurfit.forecast.sweep`), and each collection is read
twice: as it would be without public rows, under an agreement with the usual weights, and beside
them, under one whose target has the weight that suits them. The rows that are read beside a release
must not be those that the people are drawn from, or they would tell more than public rows can: so
where nothing else is known, one half of the public rows says how features are distributed, with a
target that is made up, and the other half is read.

It assumes that contributors are like the people in the public rows. How far others differ, no
forecast knows; a fit finds out, and weights the rows (`blurfit.learning.public_features`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import FloatArray
from blurfit.errors import BlurfitError, InvalidValueError
from blurfit.forecast.population import CollectionSums, Population, Samples
from blurfit.forecast.results import plain
from blurfit.forecast.sweep import errors_of, fitting, propose_terms
from blurfit.progress import Progress, silent
from blurfit.schema.schema import Schema

DRAWS = 16  # collections that are simulated for each case
MOST_ROWS = 2000  # of the public ones are read: more take longer, and change little
ANY_FILE = "0" * 64  # the fingerprint that stands for a file which no agreement names yet


@dataclass(frozen=True)
class Beside:
    """One number of contributors, one promise: the mean error alone and with public rows.

    Where the terms cannot be had, or no draw gives a model, an error is NaN.
    """

    contributors: int
    epsilon: float
    local_epsilon: float | None
    alone: float
    with_public_rows: float
    without_privacy: float


@dataclass(frozen=True)
class PublicForecast:
    """Cases, with what to compare them with: the best constant, and everyone without privacy."""

    population: str
    is_label: bool
    rows: int
    constant: float
    best: float
    cases: tuple[Beside, ...]

    def way(self, error: float) -> float:
        """How far a model goes from a constant (0) to the best without privacy (1)."""
        return (self.constant - error) / (self.constant - self.best)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON; what is not known is None."""
        return asdict(self) | {"cases": [plain(asdict(one)) for one in self.cases]}


def people_and_rows(
    schema: Schema, rows: FloatArray, *, explained: float = 0.3, seed: int = 0
) -> tuple[Population, FloatArray]:
    """People like one half of the public rows, with a made-up target, and the other half to read.

    Args:
        schema: what would be asked.
        rows: the encoded columns of the features in the public rows, (rows, k).
        explained: R² of the made-up target.
        seed: which rows are in which half, and the target.
    """
    if len(rows) < 4:
        raise InvalidValueError(f"Expected at least 4 public rows to forecast with: {len(rows)}.")
    order = np.random.default_rng([seed, 4]).permutation(len(rows))
    half = len(rows) // 2
    people = Population.beside(schema, rows[order[:half]], explained=explained, seed=seed)
    return people, rows[order[half:]]


def forecast_beside(
    schema: Schema,
    population: Population,
    rows: FloatArray,
    *,
    contributors: Sequence[int],
    epsilons: Sequence[float] = (1.0,),
    local_epsilons: Sequence[float | None] = (None,),
    terms: Mapping[str, Any] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    progress: Progress = silent,
) -> PublicForecast:
    """Sweep over contributors × ε × local targets, the quorum met exactly, for `moment`."""
    samples = Samples(fitting(schema, population), draws, seed)
    cases = []
    for n in contributors:
        sums = samples.at(n)
        for epsilon in epsilons:
            for local in local_epsilons:
                asked = propose_terms(schema, "moment", epsilon, local, dict(terms or {}))
                sends = asked.pop("sends", "everything")
                asked.pop("public_rows", None)
                named = {"public_rows": ANY_FILE, "sends": sends}
                pair = [_proposed(schema, n, asked | more) for more in ({}, named)]
                cases.append(_case(pair, samples, sums, rows, (epsilon, local)))
                progress()
    return _found(population, rows, cases)


def forecast_agreement_beside(
    agreement: Agreement,
    population: Population,
    rows: FloatArray,
    *,
    contributors: Sequence[int],
    draws: int = DRAWS,
    seed: int = 0,
    progress: Progress = silent,
) -> PublicForecast:
    """Sizes under one agreement, whose release is read alone and beside the rows."""
    samples = Samples(fitting(agreement.schema, population), draws, seed)
    cases = []
    for n in contributors:
        usable = agreement if n >= agreement.quorum else None
        case = _case([usable, usable], samples, samples.at(n), rows, (agreement.epsilon, None))
        cases.append(case)
        progress()
    return _found(population, rows, cases)


def _proposed(schema: Schema, quorum: int, terms: Mapping[str, Any]) -> Agreement | None:
    try:
        return Agreement.propose(schema, quorum=quorum, **terms)
    except InvalidValueError:
        raise  # a mistake, and not a size that is too small
    except BlurfitError:
        return None


def _case(
    pair: Sequence[Agreement | None],
    samples: Samples,
    sums: CollectionSums,
    rows: FloatArray,
    promise: tuple[float, float | None],
) -> Beside:
    means = []
    for agreement, public in zip(pair, (None, rows[:MOST_ROWS]), strict=True):
        generator = np.random.default_rng([samples.seed, 3])  # the same luck for both
        errors = (
            np.empty(0)
            if agreement is None
            else errors_of(agreement, samples.population, sums, generator, public=public)
        )
        means.append(float(errors.mean()) if len(errors) else math.nan)
    free = float(samples.population.without_privacy(sums).mean())
    alone, with_public_rows = means
    return Beside(sums.count, *promise, alone, with_public_rows, free)


def _found(population: Population, rows: FloatArray, cases: Sequence[Beside]) -> PublicForecast:
    return PublicForecast(
        population.name,
        population.is_label,
        min(len(rows), MOST_ROWS),
        population.constant,
        population.best,
        tuple(cases),
    )
