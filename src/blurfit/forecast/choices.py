"""Choose by forecast, before anyone is asked: free terms.

**Free terms** cost no privacy to choose, as long as no record of the collection is read. These are
the public weights: the constant's, the target's, and those of numbers against those of other
features. All candidates meet the same luck (common random
numbers), and the winner is compared with the defaults on fresh luck: it is kept only if it is
better there too.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from blurfit import errors
from blurfit.agreement.agreement import Agreement
from blurfit.forecast import sweep
from blurfit.forecast.population import People, Samples
from blurfit.schema.schema import Numeric, Schema
from blurfit.theory.gaussian import Point, descend

EVALUATIONS = 70
TUNING_DRAWS = 48


@dataclass(frozen=True)
class Advice:
    """Terms for `Agreement.propose`, and what they gain: the forecast before and after.

    Both are on luck that the choice has not seen. Where the defaults were not beaten,
    `terms` is empty.
    """

    terms: dict[str, Any]
    before: sweep.Case
    after: sweep.Case


def advise(
    schema: Schema,
    population: People,
    *,
    contributors: int,
    epsilon: float,
    local_epsilon: float | None = None,
    terms: Mapping[str, Any] | None = None,
    seed: int = 0,
    progress: errors.Progress = errors.silent,
) -> Advice:
    """Return the terms that minimise the expected error.

    What is in `terms` is fixed. Searched are `constant` and `weights`.
    """
    fixed = dict(terms or {})

    luck = [Samples(sweep.fitting(schema, population), TUNING_DRAWS, seed + k) for k in range(2)]
    sums = [samples.at(contributors) for samples in luck]

    def tried(extra: Mapping[str, Any], fresh: bool) -> sweep.Case:
        asked = sweep.propose_terms(epsilon, local_epsilon, fixed | dict(extra))
        return sweep.forecast_case(schema, luck[fresh], sums[fresh], asked)

    asked = sweep.propose_terms(epsilon, local_epsilon, fixed)
    default = Agreement.propose(schema, quorum=contributors, **asked)
    start = {name: value for name, value in _start(default).items() if _owner(name) not in fixed}
    if not start:
        raise errors.InfeasibleError("Every free term is fixed: nothing is left to try.")

    def chosen(point: Point) -> dict[str, Any]:
        return _as_terms(default, _read(start, point))

    def value(point: Point) -> float:
        progress()
        try:
            seen = tried(chosen(point), fresh=False)
        except errors.BlurfitError:
            return math.inf
        missing = math.isnan(seen.error) or seen.refused > 0
        return math.inf if missing else math.log(seen.error)

    found = chosen(descend(value, _write(start), steps=EVALUATIONS, reach=0.6, tolerance=0.02))
    before, after = tried({}, fresh=True), tried(found, fresh=True)
    if math.isnan(before.error) and math.isnan(after.error):
        raise errors.InfeasibleError(
            f"Expected contributors={contributors} to give a model: {before.reason}. Take "
            "more contributors."
        )
    if not after.error < before.error:
        return Advice({}, before, before)
    return Advice(found, before, after)


def _start(agreement: Agreement) -> dict[str, float]:
    """Return where to begin: the defaults."""
    assert agreement.weights is not None
    found = {"constant": agreement.weights.constant, _TARGET: agreement.weights.columns[-1]}
    kinds = {isinstance(one, Numeric) for one in agreement.schema.features}
    return found | ({_NUMBERS: 1.0} if len(kinds) > 1 else {})


# Of the weights, only ratios matter: those of the other features stay as they are.
_TARGET, _NUMBERS = "weight of the target", "numbers over other features"


def _owner(name: str) -> str:
    """Return the term that what is searched belongs to."""
    return "weights" if name in (_TARGET, _NUMBERS) else name


def _as_terms(default: Agreement, found: dict[str, float]) -> dict[str, Any]:
    """Write what was found as terms of `Agreement.propose`: a weight for each question."""
    if default.weights is None or not {_TARGET, _NUMBERS} & set(found):
        return dict(found)
    asked = default.schema.questions
    weights = {
        one.name: weight * (found.get(_NUMBERS, 1.0) if isinstance(one, Numeric) else 1.0)
        for one, weight in zip(asked, default.weights.columns, strict=True)
    }
    weights[asked[-1].name] = found.pop(_TARGET)
    found.pop(_NUMBERS, None)
    return found | {"weights": {name: float(f"{value:.3g}") for name, value in weights.items()}}


def _write(terms: Mapping[str, float]) -> Point:
    """Write sizes by logarithm: any real number is allowed then."""
    return np.array([math.log(value) for value in terms.values()])


def _read(terms: Mapping[str, float], point: Point) -> dict[str, float]:
    """Invert `_write`, to three digits: people will write these numbers into a contract."""
    values = zip(terms, point.tolist(), strict=True)
    return {name: float(f"{math.exp(min(v, 700.0)):.3g}") for name, v in values}
