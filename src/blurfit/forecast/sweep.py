"""Forecast the error of a collection before anyone is asked, for many cases at once.

For each number of contributors and each promise, the noise is calibrated as it would be, the people
are drawn from what is publicly known (`blurfit.forecast.population`), their blurred sums come in
one exact draw (`blurfit.simulation`), and the database's own code learns from them. So the
band holds all of the chance there is, who takes part and how they are blurred.

The band runs from the 5% to the 95% point of K errors, with the plotting position k/(K + 1): a new
collection's error then lies in it with probability 0.9 on average, however small K is. It is exact
for people like the public ones; how far others differ from them it cannot know.

**Several rows of each person** (`rows_each`, diaries) lessen what sampling adds and not the noise.
So each case is also forecast with one row of each, by the same luck, and `Case.gain` is the share
that rows take away of what the error is above that of everybody's model.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.data import FloatArray, html_table
from blurfit.errors import (
    BlurfitError,
    InfeasibleError,
    InvalidValueError,
    Progress,
    optional,
    positive,
    silent,
    whole,
)
from blurfit.forecast import DRAWS, TOLERANCE
from blurfit.forecast.population import CollectionSums, Exits, People, Population, Samples, under
from blurfit.schema.columns import TimeToEvent
from blurfit.schema.schema import Numeric, Schema
from blurfit.simulation import sampler_for
from blurfit.theory.forms import JointForm

LEVEL = 0.9  # of the band
ALIKE = 0.5  # of what differs between rows, the share that stays the same in a person
LEAST_GAIN = 0.1  # of the error above the best, below which rows add next to nothing


@dataclass(frozen=True)
class Case:
    """One number of contributors, one promise: the error to expect of the published model.

    `error` is the mean over draws, `lower` and `upper` bound the band, `without_privacy` is the
    mean error of the same people's model without noise. `refused` is the share of draws in which no
    model could be published. Where the
    terms cannot be had at all, `reason` says why and the errors are NaN. Where each person has
    several rows, `one_row` is the error with one row of each, and `gain` what the others are worth.
    """

    contributors: int
    epsilon: float
    local_epsilon: float | None
    error: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    without_privacy: float = math.nan
    submission_epsilon: float = math.nan
    refused: float = 0.0
    reason: str | None = None
    one_row: float = math.nan
    gain: float = math.nan

    @property
    def rows_add_nothing(self) -> bool | None:
        """Whether several rows of each tell next to nothing beside one; None if that is unknown."""
        return None if math.isnan(self.gain) else self.gain < LEAST_GAIN

    @property
    def ratio(self) -> float:
        """The error over that without privacy."""
        return self.error / self.without_privacy

    @property
    def line(self) -> tuple[float, float | None]:
        """What is fixed along a curve over the contributors: ε and local ε."""
        return self.epsilon, self.local_epsilon


@dataclass(frozen=True)
class Forecast:
    """A sweep of cases, with what to compare them with, all in the same units.

    `constant` is the error of always guessing the mean (or the likelier label), `best` that of the
    whole population's model without privacy. `measure` says what an error is, and `rows_each` how
    many rows each person has.
    """

    population: str
    is_label: bool
    constant: float
    best: float
    cases: tuple[Case, ...] = field(repr=False)
    measure: str = ""
    rows_each: int = 1
    alike: float = ALIKE

    def lines(self) -> dict[tuple[float, float | None], list[Case]]:
        """Return the cases of each ε and local target, by growing number of contributors."""
        found: dict[tuple[float, float | None], list[Case]] = {}
        for case in sorted(self.cases, key=lambda one: one.contributors):
            found.setdefault(case.line, []).append(case)
        return found

    def contributors_needed(
        self, line: tuple[float, float | None], tolerance: float = TOLERANCE
    ) -> int | None:
        """Return how many people bring the error within `tolerance` of that without privacy.

        Between two sizes of the sweep the excess ratio − 1 is taken to fall as a power of n. None
        if even the largest does not suffice; the smallest size of the sweep if that does.
        """
        positive(tolerance=tolerance)
        known = [one for one in self.lines()[line] if math.isfinite(one.ratio)]
        enough = [one.ratio - 1 <= tolerance for one in known]
        if not enough or not enough[-1]:
            return None
        place = len(enough) - enough[::-1].index(False) if False in enough else 0
        if place == 0:
            return known[0].contributors
        below, above = known[place - 1], known[place]
        excess = [math.log(max(one.ratio - 1, 1e-12)) for one in (below, above)]
        sizes = [math.log(one.contributors) for one in (below, above)]
        share = (excess[0] - math.log(tolerance)) / (excess[0] - excess[1])
        return math.ceil(math.exp(sizes[0] + share * (sizes[1] - sizes[0])))

    def explained(self, case: Case) -> float:
        """Return the share of the target's variance that the published model would explain: the R²
        to expect, 1 − error²/constant²; for labels the share of the constant's mistakes that it
        avoids.

        Below 0 if always guessing the same is better.
        """
        ratio = case.error / self.constant
        return 1 - (ratio if self.is_label else ratio**2)

    def plot(self) -> Any:
        """Draw errors against contributors; return the figure."""
        plt = optional("matplotlib.pyplot")
        figure, axis = plt.subplots(figsize=(6, 4.5), layout="constrained")
        for (epsilon, local), cases in self.lines().items():
            known = [one for one in cases if math.isfinite(one.error)]
            sizes = [one.contributors for one in known]
            label = f"ε = {epsilon:g}" + (f", local {local:g}" if local else "")
            style = {"marker": "o", "ms": 3, "linestyle": "-" if local is None else "--"}
            (drawn,) = axis.plot(sizes, [one.error for one in known], label=label, **style)
            bounds = [one.lower for one in known], [one.upper for one in known]
            axis.fill_between(sizes, *bounds, color=drawn.get_color(), alpha=0.2, linewidth=0)
        axis.axhline(self.best, color="black", linewidth=1, label="no privacy")
        axis.axhline(self.constant, color="grey", linewidth=1, linestyle="--", label="a constant")
        axis.set(xscale="log", xlabel="contributors")
        axis.grid(alpha=0.3)
        axis.set_ylabel("share of wrong predictions" if self.is_label else "error")
        axis.set_ylim(bottom=0.9 * self.best, top=1.5 * self.constant)
        axis.legend(fontsize="small")
        figure.suptitle(f"{self.population}, {LEVEL:.0%} bands")
        return figure

    def _repr_html_(self) -> str:
        head = ["ε", "local ε", "contributors", "error", "over no privacy", "R²"]
        rows = [
            [
                f"{one.epsilon:g}",
                "" if one.local_epsilon is None else f"{one.local_epsilon:g}",
                f"{one.contributors:,}",
                one.reason or f"{one.error:,.4g} ({one.lower:,.4g} to {one.upper:,.4g})",
                "" if one.reason else f"{one.ratio:.3f}",
                "" if one.reason else f"{self.explained(one):.3f}",
            ]
            for one in self.cases
        ]
        title = (
            f"{self.population}; without privacy {self.best:,.4g}, constant {self.constant:,.4g}"
        )
        return html_table(head, rows, title)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON; what is not known is None."""
        rows = [
            plain(
                asdict(one)
                | {"ratio": one.ratio, "explained": self.explained(one)}
                | {"rows_add_nothing": one.rows_add_nothing}
            )
            for one in self.cases
        ]
        return asdict(self) | {"level": LEVEL, "cases": rows}


def plain(facts: dict[str, Any]) -> dict[str, Any]:
    """Return facts for JSON, with None for what is not known."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in facts.items()
    }


def forecast(
    schema: Schema,
    population: People,
    *,
    contributors: Sequence[int],
    epsilons: Sequence[float] = (1.0,),
    local_epsilons: Sequence[float | None] = (None,),
    terms: Mapping[str, Any] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    rows_each: int = 1,
    alike: float = ALIKE,
    progress: Progress = silent,
) -> Forecast:
    """Sweep over contributors × ε × local targets, the quorum met exactly.

    Args:
        schema: what would be asked.
        population: what is publicly known of those who would answer.
        contributors: numbers of people.
        epsilons: promises for the model.
        local_epsilons: targets for a submission; None for none.
        terms: the rest of `Agreement.propose`: delta (else 1e-6), weights and so on.
        draws: collections that are simulated for each cell.
        seed: the same seed gives the same numbers.
        rows_each: how many rows each person has, whose mean is sent (diaries).
        alike: the share of what differs between rows that stays the same in a person.
        progress: is called after each cell.
    """
    rest = dict(terms or {}) | ({"diaries": True} if rows_each > 1 else {})
    cells = [
        propose_terms(epsilon, local, rest) for epsilon in epsilons for local in local_epsilons
    ]
    samples = Samples(fitting(schema, population), draws, seed, left_of(rows_each, alike))
    cases = []
    for n in contributors:
        sums = samples.at(n)
        for asked in cells:
            cases.append(forecast_case(schema, samples, sums, asked))
            progress()
    return _forecast_of(population, cases, rows_each, alike)


def forecast_agreement(
    agreement: Agreement,
    population: People,
    *,
    contributors: Sequence[int],
    draws: int = DRAWS,
    seed: int = 0,
    rows_each: int = 1,
    alike: float = ALIKE,
    progress: Progress = silent,
) -> Forecast:
    """Sweep over sizes under one agreement: its noise is fixed, more than its quorum may come.

    Arguments as for `forecast`.
    """
    if rows_each > 1 and not agreement.diaries:
        raise InvalidValueError(
            f"Expected rows_each={rows_each} to be 1: this agreement is without diaries, so that "
            "each person has one row."
        )
    people = fitting(agreement.schema, population)
    samples = Samples(people, draws, seed, left_of(rows_each, alike))
    cases = []
    for n in contributors:
        cases.append(_under(agreement, samples, samples.at(n)))
        progress()
    return _forecast_of(population, cases, rows_each, alike)


def left_of(rows_each: int, alike: float) -> float:
    """Return α + (1 − α)/m, what is left of the variance of one row of each person.

    >>> left_of(1, 0.5), left_of(4, 0.5)
    (1.0, 0.625)
    """
    whole(rows_each=rows_each)
    if not 0 <= alike <= 1:
        raise InvalidValueError(f"Expected alike={alike!r} from 0 to 1.")
    return alike + (1 - alike) / rows_each


def errors_of(
    agreement: Agreement,
    population: People,
    sums: CollectionSums,
    generator: np.random.Generator,
) -> FloatArray:
    """Return the errors of the models that the collections would publish; fewer where some are
    refused.
    """
    found = []
    for clean in sums.totals(agreement):
        drawn = sampler_for(agreement, clean).draw(generator)
        try:
            found.append(population.weights(agreement, drawn))
        except InfeasibleError:  # this collection would publish nothing
            continue
    return population.error(np.array(found)) if found else np.empty(0)


def propose_terms(
    epsilon: float, local_epsilon: float | None, rest: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the terms of `Agreement.propose` but the quorum, with public defaults for the rest."""
    terms = {"delta": 1e-6, **rest, "epsilon": epsilon}
    if local_epsilon is not None:
        terms |= {"local_epsilon": local_epsilon}
        terms.setdefault("local_delta", terms["delta"])
    return terms


def whole_numbers(values: Iterable[float]) -> list[int]:
    """Round numbers of people to whole numbers, each once, growing."""
    found = sorted({round(value) for value in values})
    whole(**{f"contributors[{place}]": value for place, value in enumerate(found)})
    return found


def band(errors: FloatArray) -> tuple[float, float]:
    """Return the points that a new error lies between with probability `LEVEL`, on average over
    draws.
    """
    tail = (1 - LEVEL) / 2
    lower, upper = np.quantile(errors, [tail, 1 - tail], method="weibull")
    return float(lower), float(upper)


def forecast_case(
    schema: Schema, samples: Samples, sums: CollectionSums, terms: Mapping[str, Any]
) -> Case:
    """Forecast one cell: `terms` are those of `Agreement.propose`, the quorum is met exactly."""
    try:
        agreement = Agreement.propose(schema, quorum=sums.count, **terms)
    except BlurfitError as error:
        if isinstance(error, InvalidValueError):
            raise  # a mistake, and not a size that is too small
        fixed = terms["epsilon"], terms.get("local_epsilon")
        return Case(sums.count, *fixed, reason=str(error))
    return _under(agreement, samples, sums, terms.get("local_epsilon"))


def _under(
    agreement: Agreement,
    samples: Samples,
    sums: CollectionSums,
    local_epsilon: float | None = None,
) -> Case:
    fixed = agreement.epsilon, local_epsilon
    if sums.count < agreement.quorum:
        return Case(sums.count, *fixed, reason=f"below the quorum {agreement.quorum:,}")
    population, sums = _sent(agreement, samples, sums)
    generator = np.random.default_rng([samples.seed, 3])  # the same luck for every promise
    errors = errors_of(agreement, population, sums, generator)
    refused = 1 - len(errors) / samples.draws
    if not len(errors):
        return Case(sums.count, *fixed, refused=refused, reason="no draw gave a model")
    lower, upper = band(errors)
    return Case(
        sums.count,
        *fixed,
        error=float(errors.mean()),
        lower=lower,
        upper=upper,
        without_privacy=float(population.without_privacy(sums).mean()),
        submission_epsilon=agreement.calibration.local.epsilon,
        refused=refused,
        **_with_one_row(agreement, samples, sums.count, float(errors.mean())),
    )


def _sent(
    agreement: Agreement, samples: Samples, sums: CollectionSums
) -> tuple[People, CollectionSums]:
    """Return whom errors are about, and the sums of what they send."""
    if isinstance(agreement.form, JointForm):
        return samples.population, sums
    return under(agreement, samples, sums.count)


def _with_one_row(
    agreement: Agreement, samples: Samples, count: int, error: float
) -> dict[str, Any]:
    """Return the error with one row of each person, and what the others take away of it."""
    if samples.repeated == 1:
        return {}
    single = replace(samples, repeated=1.0)
    population, sums = _sent(agreement, single, single.at(count))
    generator = np.random.default_rng([samples.seed, 3])
    found = errors_of(agreement, population, sums, generator)
    if not len(found):
        return {}
    one_row, power = float(found.mean()), 1 if population.is_label else 2
    best = population.best**power
    above, of_rows = (max(one**power - best, 0.0) for one in (one_row, error))
    return {"one_row": one_row, "gain": 1 - of_rows / above if above > 0 else 0.0}


def fitting(schema: Schema, population: People) -> People:
    """Return the population, or refuse one that is not of this schema."""
    if isinstance(schema.target, TimeToEvent):
        if isinstance(population, Exits) and population.schema == schema:
            return population
        raise InvalidValueError(
            "Expected people of whom it is known when they left, for a schema with a time to an "
            "event: blurfit.forecast.population.Exits, made with the same schema."
        )
    columns = [name for one in schema.questions for name in one.columns]
    numeric = isinstance(schema.target, Numeric)
    if not isinstance(population, Population):
        raise InvalidValueError("Expected a Population for a schema without a time to an event.")
    if (population.columns, population.is_label) != (len(columns), not numeric):
        raise InvalidValueError(
            f"Expected a population of {len(columns)} columns for this schema, its target's among "
            f"them, and got one of {population.columns}. Make it with the same schema."
        )
    return population


def _forecast_of(people: People, cases: Sequence[Case], rows_each: int, alike: float) -> Forecast:
    compared = people.name, people.is_label, people.constant, people.best
    return Forecast(*compared, tuple(cases), people.measure, rows_each, alike)
