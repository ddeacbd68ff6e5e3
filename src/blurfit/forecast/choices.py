"""Choose by forecast, before anyone is asked: free terms, and public rows.

**Free terms** cost no privacy to choose, as long as no record of the collection is read. For
`moment` these are the public weights: the constant's, the target's, and those of numbers against
those of other features. For `input` they are the weight bound η, the split of ε, the share of a
local budget that q gets, and the ridge l2. All candidates meet the same luck (common random
numbers), and the winner is compared with the defaults on fresh luck: it is kept only if it is
better there too.

**Public rows.** Each collection is read twice: without public rows, under an agreement with the
usual weights, and beside them, under one whose target has the weight that suits them. The rows that
are read beside a release must not be those that the people are drawn from, or they would tell more
than public rows can: so where nothing else is known, one half of the public rows says how features
are distributed, with a target that is made up, and the other half is read. It assumes that
contributors are like the people in the public rows; a fit finds out, and weights the rows
(`blurfit.learning.public_features`).

"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from blurfit import errors
from blurfit.agreement.agreement import Agreement
from blurfit.agreement.terms import Mechanism
from blurfit.data import FloatArray
from blurfit.forecast import sweep
from blurfit.forecast.population import People, Population, Samples
from blurfit.schema.schema import Numeric, Schema
from blurfit.theory.gaussian import Point, descend
from blurfit.theory.input_calibration import InputCalibration

EVALUATIONS = 70
TUNING_DRAWS = 48
GOALS = ("error", "upper")


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
    mechanism: Mechanism,
    local_epsilon: float | None = None,
    terms: Mapping[str, Any] | None = None,
    goal: str = "error",
    seed: int = 0,
    progress: errors.Progress = errors.silent,
) -> Advice:
    """Return the terms that minimise the expected error (or, goal="upper", the band's upper end).

    What is in `terms` is fixed. Searched are `constant` and `weights` for moment; l2,
    `weight_bound`, `split` and, with a local target, `local_share` for input.
    """
    errors.one_of(GOALS, goal=goal)
    fixed = dict(terms or {})

    luck = [Samples(sweep.fitting(schema, population), TUNING_DRAWS, seed + k) for k in range(2)]
    sums = [samples.at(contributors) for samples in luck]

    def tried(extra: Mapping[str, Any], fresh: bool) -> sweep.Case:
        asked = sweep.propose_terms(schema, mechanism, epsilon, local_epsilon, fixed | dict(extra))
        return sweep.forecast_case(schema, luck[fresh], sums[fresh], asked)

    asked = sweep.propose_terms(schema, mechanism, epsilon, local_epsilon, fixed)
    default = Agreement.propose(schema, quorum=contributors, **asked)
    start = {name: value for name, value in _start(default).items() if _owner(name) not in fixed}
    if local_epsilon is None:
        start.pop("local_share", None)
    if not start:
        raise errors.InfeasibleError(
            f"Every free term of {mechanism!r} is fixed: nothing is left to try."
        )

    def chosen(point: Point) -> dict[str, Any]:
        return _as_terms(default, _read(start, point))

    def value(point: Point) -> float:
        progress()
        try:
            seen = tried(chosen(point), fresh=False)
        except errors.BlurfitError:
            return math.inf
        missing = math.isnan(seen.error) or seen.refused > 0
        return math.inf if missing else math.log(float(getattr(seen, goal)))

    found = chosen(descend(value, _write(start), steps=EVALUATIONS, reach=0.6, tolerance=0.02))
    before, after = tried({}, fresh=True), tried(found, fresh=True)
    if math.isnan(before.error) and math.isnan(after.error):
        raise errors.InfeasibleError(
            f"Expected contributors={contributors} to give a model: {before.reason}. Take "
            "more contributors, or mechanism='moment'."
        )
    if not getattr(after, goal) < getattr(before, goal):
        return Advice({}, before, before)
    return Advice(found, before, after)


def _start(agreement: Agreement) -> dict[str, float]:
    """Return where to begin: the defaults, and for `input` a ridge of a twentieth of the noise."""
    calibration = agreement.calibration
    if not isinstance(calibration, InputCalibration):
        assert agreement.weights is not None
        found = {"constant": agreement.weights.constant, _TARGET: agreement.weights.columns[-1]}
        kinds = {isinstance(one, Numeric) for one in agreement.schema.features}
        return found | ({_NUMBERS: 1.0} if len(kinds) > 1 else {})
    d, setting = agreement.schema.dimension, calibration.setting
    edge = calibration.sigma_u**2 * math.sqrt(2 * d / setting.quorum) + calibration.sigma_u
    found = {"weight_bound": setting.ball, "split": calibration.split or 0.2, "l2": 0.05 * edge}
    reach = 2 * math.sqrt(setting.quorum) * setting.q_bound / calibration.sigma_u
    share = (reach / calibration.local.mu) ** 2
    return found | {"local_share": min(max(share, 0.01), 0.99)}


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


_SHARES = ("split", "local_share")


def _write(terms: Mapping[str, float]) -> Point:
    """Write shares by log-odds and sizes by logarithm: any real number is allowed then."""
    return np.array(
        [float(logit(v)) if name in _SHARES else math.log(v) for name, v in terms.items()]
    )


def _read(terms: Mapping[str, float], point: Point) -> dict[str, float]:
    """Invert `_write`, to three digits: people will write these numbers into a contract."""
    values = zip(terms, point.tolist(), strict=True)
    return {
        name: float(f"{expit(v) if name in _SHARES else math.exp(min(v, 700.0)):.3g}")
        for name, v in values
    }


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
        """Return how far a model goes from a constant (0) to the best without privacy (1)."""
        return (self.constant - error) / (self.constant - self.best)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON; what is not known is None."""
        return asdict(self) | {"cases": [sweep.plain(asdict(one)) for one in self.cases]}


def people_and_rows(
    schema: Schema, rows: FloatArray, *, explained: float = 0.3, seed: int = 0
) -> tuple[Population, FloatArray]:
    """Make people of one half of the public rows, encoded, and return the other half to read.

    `explained` is R² of the made-up target; the seed decides which rows are in which half.
    """
    if len(rows) < 4:
        raise errors.InvalidValueError(
            f"Expected at least 4 public rows to forecast with: {len(rows)}."
        )
    order = np.random.default_rng([seed, 4]).permutation(len(rows))
    half = len(rows) // 2
    people = Population.beside(schema, rows[order[:half]], explained=explained, seed=seed)
    return people, rows[order[half:]]


def forecast_beside(
    schema: Schema,
    population: People,
    rows: FloatArray,
    *,
    terms: Mapping[str, Any] | None = None,
    progress: errors.Progress = errors.silent,
    **asked: Any,
) -> PublicForecast:
    """Sweep over contributors × ε × local targets, the quorum met exactly, for `moment`; what else
    is asked for as in `forecast`.
    """
    read, rest = rows[:MOST_ROWS], dict(terms or {}) | {"public_rows": None}
    named = {"public_rows": ANY_FILE, "sends": rest.pop("sends", "everything")}
    asked |= {"mechanisms": ["moment"], "draws": asked.get("draws", DRAWS)}
    alone = sweep.forecast(schema, population, terms=rest, **asked)
    more: dict[str, Any] = {"terms": rest | named, "public": read, "progress": progress}
    return _beside(alone, sweep.forecast(schema, population, **asked, **more), len(read))


def forecast_agreement_beside(
    agreement: Agreement,
    population: People,
    rows: FloatArray,
    *,
    progress: errors.Progress = errors.silent,
    **asked: Any,
) -> PublicForecast:
    """Sweep over sizes under one agreement, whose release is read alone and beside the rows; what
    is asked for as in `forecast_agreement`.
    """
    read, asked = rows[:MOST_ROWS], {"draws": DRAWS} | asked
    alone = sweep.forecast_agreement(agreement, population, **asked)
    beside = sweep.forecast_agreement(
        agreement, population, **asked, public=read, progress=progress
    )
    return _beside(alone, beside, len(read))


def _beside(alone: sweep.Forecast, beside: sweep.Forecast, rows: int) -> PublicForecast:
    """Join two forecasts of the same people with the same luck."""
    cases = tuple(
        Beside(
            *(one.contributors, one.epsilon, one.local_epsilon, one.error, other.error),
            other.without_privacy if math.isnan(one.without_privacy) else one.without_privacy,
        )
        for one, other in zip(alone.cases, beside.cases, strict=True)
    )
    return PublicForecast(alone.population, alone.is_label, rows, alone.constant, alone.best, cases)
