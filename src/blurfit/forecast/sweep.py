"""What a collection will achieve, before anyone is asked: the expected error, and its 90% band.

For each number of contributors and each promise, the noise is calibrated as it would be, the people
are drawn from what is publicly known (`blurfit.forecast.population`), their blurred sums come in
one exact draw (`blurfit.simulation.sampler`), and the database's own code learns from them. So the
band holds all of the chance there is, who takes part and how they are blurred, and a billion
contributors cost what a thousand do.

The band runs from the 5% to the 95% point of K errors, with the plotting position k/(K + 1): a new
collection's error then lies in it with probability 0.9 on average, however small K is. It is exact
for people like the public ones; how far others differ from them it cannot know.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from blurfit.agreement.agreement import Agreement
from blurfit.errors import BlurfitError, InfeasibleError, InvalidValueError
from blurfit.forecast import DRAWS
from blurfit.forecast.population import CollectionSums, Population, Samples
from blurfit.forecast.results import LEVEL, Forecast, Outlook
from blurfit.learning.learner import weights_of
from blurfit.progress import Progress, silent
from blurfit.schema.schema import Schema
from blurfit.simulation.sampler import clean_sums, sampler_for
from blurfit.theory.calibration import MECHANISMS, Mechanism
from blurfit.validate import inside_unit_interval, whole

FloatArray = npt.NDArray[np.float64]


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
            for a number and 2√m for a label, m features and the intercept), l2 and so on.
        draws: collections that are simulated for each cell.
        seed: the same seed gives the same numbers.
        progress: is called after each cell.
    """
    samples = Samples.of(fitting(schema, population), draws, seed)
    rest = dict(terms or {})
    outlooks = []
    for n in contributors:
        sums = samples.at(n)
        for mechanism in mechanisms:
            for epsilon in epsilons:
                for local in local_epsilons:
                    asked = propose_terms(schema, mechanism, epsilon, local, rest)
                    outlooks.append(outlook(schema, samples, sums, asked))
                    progress()
    return _forecast_of(population, outlooks)


def forecast_agreement(
    agreement: Agreement,
    population: Population,
    *,
    contributors: Sequence[int],
    draws: int = DRAWS,
    seed: int = 0,
    progress: Progress = silent,
) -> Forecast:
    """Sizes under one agreement: its noise is fixed, and more than its quorum may come."""
    samples = Samples.of(fitting(agreement.schema, population), draws, seed)
    outlooks = []
    for n in contributors:
        outlooks.append(_under(agreement, samples, samples.at(n)))
        progress()
    return _forecast_of(population, outlooks)


def errors_of(
    agreement: Agreement,
    population: Population,
    sums: CollectionSums,
    generator: np.random.Generator,
) -> FloatArray:
    """The errors of the models that the collections would publish; fewer where some are refused."""
    found = []
    for gram, moment in zip(sums.gram, sums.moment, strict=True):
        clean = clean_sums(agreement.loss, sums.count, gram, moment)
        drawn = sampler_for(agreement.calibration, clean).draw(generator)
        try:
            found.append(weights_of(agreement, drawn))
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
        terms.setdefault("local_delta", 1e-6)
    if mechanism == "input":
        blocks = len(schema.features) + schema.intercept
        terms.setdefault("weight_bound", (2 if schema.is_label else 1) * math.sqrt(blocks))
        terms.pop("balance", None)
    else:
        for name in ("split", "local_share"):
            terms.pop(name, None)
    return terms


def whole_numbers(values: Iterable[float]) -> list[int]:
    """Numbers of people as whole numbers, each once, growing."""
    found = sorted({round(value) for value in values})
    whole(**{f"contributors[{place}]": value for place, value in enumerate(found)})
    return found


def band(errors: FloatArray, level: float = LEVEL) -> tuple[float, float]:
    """The points that a new error lies between with probability `level`, on average over draws."""
    inside_unit_interval(level=level)
    tail = (1 - level) / 2
    lower, upper = np.quantile(errors, [tail, 1 - tail], method="weibull")
    return float(lower), float(upper)


def outlook(
    schema: Schema, samples: Samples, sums: CollectionSums, terms: Mapping[str, Any]
) -> Outlook:
    """One cell: `terms` are those of `Agreement.propose`, the quorum is met exactly."""
    try:
        agreement = Agreement.propose(schema, quorum=sums.count, **terms)
    except BlurfitError as error:
        if isinstance(error, InvalidValueError):
            raise  # a mistake, and not a size that is too small
        fixed = terms["epsilon"], terms["mechanism"], terms.get("local_epsilon")
        return Outlook(sums.count, *fixed, reason=str(error))
    return _under(agreement, samples, sums, terms.get("local_epsilon"))


def _under(
    agreement: Agreement, samples: Samples, sums: CollectionSums, local_epsilon: float | None = None
) -> Outlook:
    fixed = agreement.epsilon, agreement.mechanism, local_epsilon
    if sums.count < agreement.quorum:
        return Outlook(sums.count, *fixed, reason=f"below the quorum {agreement.quorum:,}")
    generator = np.random.default_rng([samples.seed, 3])  # the same luck for every promise
    errors = errors_of(agreement, samples.population, sums, generator)
    refused = 1 - len(errors) / samples.draws
    if not len(errors):
        return Outlook(sums.count, *fixed, refused=refused, reason="no draw gave a model")
    lower, upper = band(errors)
    return Outlook(
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
    if (population.dimension, population.is_label) != (schema.dimension, schema.is_label):
        raise InvalidValueError(
            f"Expected a population of dimension={schema.dimension} for this schema, and got one "
            f"of dimension={population.dimension}. Make it with the same schema."
        )
    return population


def _forecast_of(population: Population, outlooks: Sequence[Outlook]) -> Forecast:
    return Forecast(
        population.name,
        population.is_label,
        population.constant,
        population.best,
        tuple(outlooks),
    )
