"""The best free terms of an agreement, from public knowledge alone.

Some terms cost no privacy to choose, as long as no record of the collection is read: the weight
bound η, the split of ε, the balance τ of the noise between p and qqᵀ, the share of a local budget
that q gets, and the ridge l2. `calibrate` chooses by worst-case bounds; here the forecast itself
chooses, on people like those who are publicly known. All candidates meet the same luck (common
random numbers), and the winner is compared with the defaults on fresh luck: it is kept only if it
is better there too.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from blurfit.agreement.agreement import Agreement
from blurfit.errors import BlurfitError, InfeasibleError
from blurfit.forecast.population import Population, Samples
from blurfit.forecast.results import Outlook
from blurfit.forecast.sweep import fitting, outlook, propose_terms
from blurfit.progress import Progress, silent
from blurfit.schema.schema import Schema
from blurfit.theory.calibration import InputCalibration, Mechanism
from blurfit.theory.simplex import Point, descend
from blurfit.validate import one_of

EVALUATIONS = 70
DRAWS = 48
GOALS = ("error", "upper")


@dataclass(frozen=True)
class Advice:
    """Terms for `Agreement.propose`, and what they gain: the outlook before and after.

    Both outlooks are on luck that the choice has not seen. Where the defaults were not beaten,
    `terms` is empty.
    """

    terms: dict[str, float]
    before: Outlook
    after: Outlook


def advise(
    schema: Schema,
    population: Population,
    *,
    contributors: int,
    epsilon: float,
    mechanism: Mechanism,
    local_epsilon: float | None = None,
    terms: Mapping[str, Any] | None = None,
    goal: str = "error",
    seed: int = 0,
    progress: Progress = silent,
) -> Advice:
    """The terms that minimise the expected error (or, goal="upper", the band's upper end).

    What is in `terms` is fixed. Searched are l2 and `balance` for moment; l2, `weight_bound`,
    `split` and, with a local target, `local_share` for input.
    """
    one_of(GOALS, goal=goal)
    fixed = dict(terms or {})

    luck = [Samples.of(fitting(schema, population), DRAWS, seed + k) for k in range(2)]
    sums = [samples.at(contributors) for samples in luck]

    def look(extra: Mapping[str, float], fresh: bool) -> Outlook:
        asked = propose_terms(schema, mechanism, epsilon, local_epsilon, fixed | dict(extra))
        return outlook(schema, luck[fresh], sums[fresh], asked)

    asked = propose_terms(schema, mechanism, epsilon, local_epsilon, fixed)
    default = Agreement.propose(schema, quorum=contributors, **asked)
    start = {name: value for name, value in _start(default).items() if name not in fixed}
    if local_epsilon is None:
        start.pop("local_share", None)

    def value(point: Point) -> float:
        progress()
        try:
            seen = look(_read(start, point), fresh=False)
        except BlurfitError:
            return math.inf
        missing = math.isnan(seen.error) or seen.refused > 0
        return math.inf if missing else math.log(float(getattr(seen, goal)))

    found = _read(
        start, descend(value, _write(start), steps=EVALUATIONS, reach=0.6, tolerance=0.02)
    )
    before, after = look({}, fresh=True), look(found, fresh=True)
    if math.isnan(before.error) and math.isnan(after.error):
        raise InfeasibleError(
            f"Expected contributors={contributors} to give a model: {before.reason}. More "
            "contributors, or mechanism='moment', do."
        )
    if not getattr(after, goal) < getattr(before, goal):
        return Advice({}, before, before)
    return Advice(found, before, after)


def _start(agreement: Agreement) -> dict[str, float]:
    """Where to begin: what the calibration chose, and a ridge of a twentieth of the noise."""
    calibration, d = agreement.calibration, agreement.dimension
    setting = calibration.setting
    if not isinstance(calibration, InputCalibration):
        edge = calibration.sigma_m * math.sqrt(2 * d)
        return {"balance": calibration.balance, "l2": 0.05 * edge}
    edge = calibration.sigma_u**2 * math.sqrt(2 * d / setting.quorum) + calibration.sigma_u
    found = {"weight_bound": setting.ball, "split": calibration.split or 0.2, "l2": 0.05 * edge}
    reach = 2 * math.sqrt(setting.quorum) * setting.q_bound / calibration.sigma_u
    share = (reach / calibration.local.mu) ** 2
    return found | {"local_share": min(max(share, 0.01), 0.99)}


_SHARES = ("split", "local_share")


def _write(terms: Mapping[str, float]) -> Point:
    """Shares by their log-odds, sizes by their logarithm: any real number is allowed then."""
    return np.array(
        [float(logit(v)) if name in _SHARES else math.log(v) for name, v in terms.items()]
    )


def _read(terms: Mapping[str, float], point: Point) -> dict[str, float]:
    """The inverse, to three digits: these are numbers that people will write into a contract."""
    values = zip(terms, point.tolist(), strict=True)
    return {
        name: float(f"{expit(v) if name in _SHARES else math.exp(min(v, 700.0)):.3g}")
        for name, v in values
    }
