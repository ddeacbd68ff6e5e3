"""What a collection will achieve, before anyone is asked: the expected error, and its 90% band.

For each number of contributors and each promise, the noise is calibrated as it would be, the people
are drawn from what is publicly known (`blurfit.forecast.population`), their blurred sums come in
one exact draw (`blurfit.simulation.sampler`), and the database's own code learns from them. So the
band holds all of the chance there is, who takes part and how they are blurred, and a billion
contributors cost what a thousand do.

Where noise dominates, a `moment` collection publishes the posterior mean, which takes a tenth of a
second to sample (`blurfit.learning.shrinkage`). A forecast of thousands of collections reads their
sums by linear Bayes instead, which errs on the safe side there (on the generated census by 0 to 3 %
of the error), unless it is asked for what would be published to the last bit (`sampled=True`).

The band runs from the 5% to the 95% point of K errors, with the plotting position k/(K + 1): a new
collection's error then lies in it with probability 0.9 on average, however small K is. It is exact
for people like the public ones; how far others differ from them it cannot know.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.terms import INPUT_TERMS, MECHANISMS, MOMENT_TERMS, Mechanism
from blurfit.arrays import FloatArray
from blurfit.errors import BlurfitError, InfeasibleError, InvalidValueError
from blurfit.forecast import DRAWS
from blurfit.forecast.population import CollectionSums, Population, Samples
from blurfit.forecast.results import LEVEL, Case, Forecast
from blurfit.progress import Progress, silent
from blurfit.schema.schema import Numeric, Schema
from blurfit.simulation.sampler import sampler_for, totals_of_products
from blurfit.simulation.weights import weights_of
from blurfit.validate import whole


def forecast(
    schema: Schema,
    population: Population,
    *,
    contributors: Sequence[int],
    epsilons: Sequence[float] = (1.0,),
    mechanisms: Sequence[Mechanism] = MECHANISMS,
    local_epsilons: Sequence[float | None] = (None,),
    terms: Mapping[str, Any] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    sampled: bool = False,
    progress: Progress = silent,
) -> Forecast:
    """Sweep over contributors × ε × mechanisms × local targets, the quorum met exactly.

    Args:
        schema: what would be asked.
        population: what is publicly known of those who would answer.
        contributors: numbers of people.
        epsilons: promises for the model.
        mechanisms: "moment", "input", or both.
        local_epsilons: targets for a submission; None for none.
        terms: the rest of `Agreement.propose`: delta (else 1e-6), weight_bound (for `input` else √m
            for a number and 2√m for a label, m features and the intercept), weights and so on;
            those of the other mechanism are left out.
        draws: collections that are simulated for each cell.
        seed: the same seed gives the same numbers.
        sampled: whether to sample posterior means where they would be published, which takes
            minutes rather than seconds.
        progress: is called after each cell.
    """
    samples = Samples(fitting(schema, population), draws, seed)
    rest = dict(terms or {})
    cases = []
    for n in contributors:
        sums = samples.at(n)
        for mechanism in mechanisms:
            for epsilon in epsilons:
                for local in local_epsilons:
                    asked = propose_terms(schema, mechanism, epsilon, local, rest)
                    cases.append(forecast_case(schema, samples, sums, asked, sampled=sampled))
                    progress()
    return _forecast_of(population, cases)


def forecast_agreement(
    agreement: Agreement,
    population: Population,
    *,
    contributors: Sequence[int],
    draws: int = DRAWS,
    seed: int = 0,
    sampled: bool = False,
    progress: Progress = silent,
) -> Forecast:
    """Sizes under one agreement: its noise is fixed, and more than its quorum may come."""
    samples = Samples(fitting(agreement.schema, population), draws, seed)
    cases = []
    for n in contributors:
        cases.append(_under(agreement, samples, samples.at(n), sampled=sampled))
        progress()
    return _forecast_of(population, cases)


def errors_of(
    agreement: Agreement,
    population: Population,
    sums: CollectionSums,
    generator: np.random.Generator,
    *,
    sampled: bool = False,
    public: FloatArray | None = None,
) -> FloatArray:
    """The errors of the models that the collections would publish; fewer where some are refused.

    `public` are encoded rows of the features to read beside each release.
    """
    found = []
    for products in sums.products:
        clean = totals_of_products(agreement, sums.count, products)
        drawn = sampler_for(agreement, clean).draw(generator)
        try:
            found.append(weights_of(agreement, drawn, sampled=sampled, public=public))
        except InfeasibleError:  # this collection would publish nothing
            continue
    return population.error(np.array(found)) if found else np.empty(0)


def propose_terms(
    schema: Schema,
    mechanism: Mechanism,
    epsilon: float,
    local_epsilon: float | None,
    rest: Mapping[str, Any],
) -> dict[str, Any]:
    """The terms of `Agreement.propose` but the quorum, with public defaults for the rest."""
    terms = {"delta": 1e-6, **rest, "mechanism": mechanism, "epsilon": epsilon}
    if local_epsilon is not None:
        terms |= {"local_epsilon": local_epsilon}
        terms.setdefault("local_delta", terms["delta"])
    if mechanism == "input":
        blocks = len(schema.features) + schema.intercept
        terms.setdefault("weight_bound", (2 if schema.is_label else 1) * math.sqrt(blocks))
    for name in MOMENT_TERMS if mechanism == "input" else INPUT_TERMS:
        terms.pop(name, None)
    return terms


def whole_numbers(values: Iterable[float]) -> list[int]:
    """Numbers of people as whole numbers, each once, growing."""
    found = sorted({round(value) for value in values})
    whole(**{f"contributors[{place}]": value for place, value in enumerate(found)})
    return found


def band(errors: FloatArray) -> tuple[float, float]:
    """The points that a new error lies between with probability `LEVEL`, on average over draws."""
    tail = (1 - LEVEL) / 2
    lower, upper = np.quantile(errors, [tail, 1 - tail], method="weibull")
    return float(lower), float(upper)


def forecast_case(
    schema: Schema,
    samples: Samples,
    sums: CollectionSums,
    terms: Mapping[str, Any],
    *,
    sampled: bool = False,
) -> Case:
    """One cell: `terms` are those of `Agreement.propose`, the quorum is met exactly."""
    try:
        agreement = Agreement.propose(schema, quorum=sums.count, **terms)
    except BlurfitError as error:
        if isinstance(error, InvalidValueError):
            raise  # a mistake, and not a size that is too small
        fixed = terms["epsilon"], terms["mechanism"], terms.get("local_epsilon")
        return Case(sums.count, *fixed, reason=str(error))
    return _under(agreement, samples, sums, terms.get("local_epsilon"), sampled=sampled)


def _under(
    agreement: Agreement,
    samples: Samples,
    sums: CollectionSums,
    local_epsilon: float | None = None,
    *,
    sampled: bool = False,
) -> Case:
    fixed = agreement.epsilon, agreement.mechanism, local_epsilon
    if sums.count < agreement.quorum:
        return Case(sums.count, *fixed, reason=f"below the quorum {agreement.quorum:,}")
    generator = np.random.default_rng([samples.seed, 3])  # the same luck for every promise
    errors = errors_of(agreement, samples.population, sums, generator, sampled=sampled)
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
        without_privacy=float(samples.population.without_privacy(sums).mean()),
        submission_epsilon=agreement.calibration.local.epsilon,
        refused=refused,
    )


def fitting(schema: Schema, population: Population) -> Population:
    """The population itself, if it is one of the schema's."""
    columns = [name for one in schema.questions for name in one.columns]
    numeric = isinstance(schema.target, Numeric)
    if (population.columns, population.is_label) != (len(columns), not numeric):
        raise InvalidValueError(
            f"Expected a population of {len(columns)} columns for this schema, its target's among "
            f"them, and got one of {population.columns}. Make it with the same schema."
        )
    return population


def _forecast_of(population: Population, cases: Sequence[Case]) -> Forecast:
    return Forecast(
        population.name, population.is_label, population.constant, population.best, tuple(cases)
    )
