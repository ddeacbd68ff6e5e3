"""Time to event in one process: hazards, survival curves and tests from blurred exits.

    y = np.array([(True, 3.5), (False, 24.0)], dtype=[("event", bool), ("time", float)])
    model = MomentPerturbationSurvival(bounds=bounds, horizon=24).fit(X, y)

y is what scikit-survival takes: a structured array of an event and a time. What is released are the
blurred sums of exits (`blurfit.theory.hazards`), and additive hazards follow from them.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from blurfit.agreement.agreement import Agreement
from blurfit.budget import tally
from blurfit.data import AnyArray, FloatArray
from blurfit.errors import InfeasibleError, InvalidValueError, positive
from blurfit.estimators.base import SEEDED, FitGuarantee, counted, warn_caller
from blurfit.estimators.moments import MomentEstimator, agree
from blurfit.estimators.passes import added, blurred
from blurfit.estimators.people import People
from blurfit.estimators.rows import read_rows, records, refuse_unless_binary
from blurfit.learning.inference import Errors, Estimate
from blurfit.learning.sums import Totals
from blurfit.model.release import moments_of
from blurfit.model.summary import Results, Summary
from blurfit.model.survival import SurvivalModel
from blurfit.schema.columns import Feature, TimeToEvent
from blurfit.schema.schema import Schema

_AT_ONCE = 2**11  # rows


@dataclass(kw_only=True, eq=False, repr=False)
class MomentPerturbationSurvival(MomentEstimator):
    """Hazards from blurred exits: who left when, promised to each of them.

    The hazard in band k is baseline_k + `X·coef_`, events per unit of time (Lin and Ying's model
    with a piecewise constant baseline, by least squares). Censoring must not look ahead. Everybody
    is observed from time 0 on: late entry and competing events are refused.

    Args:
        epsilon: ε of everything that a fit releases.
        delta: δ of everything that a fit releases.
        bounds: what is publicly known of the features, as for `MomentPerturbationRegressor`; or a
            `Schema` whose target is a `TimeToEvent`.
        horizon: the largest time, public; whoever is observed longer counts as observed without
            an event until then. A `Schema` has its own.
        bands: into how many bands of equal length it is divided.
        neighbours: what one person may change: "replace" their row by any other, or "zero-out".
        random_state: None for noise from the operating system. A seed is for experiments only.

    Attributes:
        coef_: how much one unit of each feature adds to the hazard, per unit of time; of
            a categorical, each level but the first.
        times_: the ends of bands.
        model_: the `SurvivalModel`: curves by group, tests, predictions from records, pictures.
        moments_: the release of exits.
        releases_: this release alone.
        guarantee_: a `FitGuarantee`, in numbers and in words.
        agreement_: the contract under which rows were blurred.

    >>> generator = np.random.default_rng(0)
    >>> age = generator.uniform(20, 60, 50_000)
    >>> time = generator.exponential(1 / (0.02 + 0.001 * (age - 20)))
    >>> y = np.rec.fromarrays([time <= 24, np.minimum(time, 24)], names="event,time")
    >>> model = MomentPerturbationSurvival(bounds=(20, 60), horizon=24).fit(age[:, None], y)
    >>> bool(abs(model.coef_[0] - 0.001) < 0.0002), model.guarantee_.private
    (True, True)
    """

    horizon: float | None = None
    bands: int = 8

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learn from rows X and y, a structured array of an event and a time for each.

        `groups` name the person of each row, where people may have several spells, each from its
        own time 0 on: these count as one together, and the promise is to the person. Errors
        count each person as one row: too wide where spells of a person are independent.
        """
        with np.errstate(all="ignore"):  # whatever the caller chose: no value raises or warns
            return self._fit_table(X, y, groups)

    def _fit_table(self, X: Any, y: Any, groups: Any) -> Self:
        event, time = exits_of(y)
        values, _, columns = read_rows(self, X, np.zeros(len(time)), reset=True)
        refuse_unless_binary(values, columns)
        schema = self._schema(columns)
        target = schema.target
        assert isinstance(target, TimeToEvent)
        if self.per_record:
            raise InvalidValueError("Expected per_record=False: exits are blurred as sums here.")
        people = self._people(X, None, groups, len(values))
        self._admit(values, columns, people)
        count, diaries = counted(values, people)
        event, time = event & (time <= target.horizon), np.minimum(time, target.horizon)
        table = {**records(values, columns), target.time: time, target.name: event}
        agreement = self.agreement_for(schema, count, diaries=diaries)
        # before anything is spent: what is wrong with the rows shows here at the latest
        clean = Totals(count, _sums(agreement, table, people), agreement.fingerprint)
        self._spend(agreement, count, None)
        caveats = () if self.random_state is None else (SEEDED,)
        for caveat in caveats:
            warn_caller(caveat)
        totals = blurred(agreement, clean, self._seeded())
        self.agreement_ = agreement
        self.moments_ = replace(moments_of(agreement, totals, held=True), caveats=caveats)
        self.releases_ = (self.moments_,)
        self.guarantee_ = FitGuarantee.of(self.moments_)
        try:
            self.model_ = SurvivalModel.of(self.moments_)
            model = self.model_
            self.times_ = model.times
            self.coef_ = np.array([one.value for one in model.estimates()])
        except InfeasibleError as error:
            raise InfeasibleError(
                f"{error} The release has been made and stands as moments_; moments_.survival() "
                "has the curves and tests that it can tell."
            ) from error
        return self

    def agreement_for(self, schema: Schema, rows: int, *, diaries: bool = False) -> Agreement:
        """Return the contract under which a fit to this many rows blurs them; to so many people,
        where each may have several.
        """
        return agree(schema, quorum=rows, diaries=diaries, **self._promise())

    def estimates(
        self, confidence: float = 0.95, output: str | None = None, *, errors: Errors = "robust"
    ) -> list[Estimate]:
        """Return each coefficient of the hazard with its errors, of one kind."""
        del output, errors
        return self._survival().estimates(confidence)

    def summary(self, confidence: float = 0.95, *, errors: Errors = "robust") -> Summary:
        """Return coefficients, the curve and the promise, as text, Markdown or HTML."""
        del errors
        found, fits = self._survival().summary(confidence), tally.in_words(self.delta)
        return replace(found, notes=(*found.notes, *([fits] if fits else [])))

    def results(self, output: str | None = None, *, errors: Errors = "robust") -> Results:
        """Refuse: hazards have no results in statsmodels' shape."""
        del output, errors
        raise InfeasibleError(
            "Expected estimates() or summary() of hazards, which have no results."
        )

    def plot(
        self,
        ax: Any = None,
        *,
        output: str | None = None,
        confidence: float = 0.95,
        by: str | None = None,
    ) -> Any:
        """Draw the survival curve, or that of each answer to a question, by matplotlib."""
        del output
        return self._survival().plot(ax, by, confidence)

    def predict(self, X: Any) -> FloatArray:
        """Return the mean hazard, in whose order people are at risk: the highest leave first."""
        return np.asarray(self.predict_hazard(X).mean(axis=1))

    def predict_hazard(self, X: Any) -> FloatArray:
        """Return the hazard of each row in each band, per unit of time."""
        return self._survival().predict_hazard(self._table(X))

    def predict_survival(self, X: Any) -> FloatArray:
        """Return the probability of no event until each of `times_`."""
        return self._survival().predict_survival(self._table(X))

    def _survival(self) -> SurvivalModel:
        check_is_fitted(self)
        found: SurvivalModel = self.model_
        return found

    def _table(self, X: Any) -> dict[str, AnyArray]:
        check_is_fitted(self)
        values, _, columns = read_rows(self, X, reset=False)
        return records(values, columns)

    def _schema(self, columns: tuple[Feature, ...]) -> Schema:
        if isinstance(self.bounds, Schema):
            if not isinstance(self.bounds.target, TimeToEvent) or self.horizon is not None:
                raise InvalidValueError(
                    "Expected the schema's target to be a TimeToEvent, and no horizon beside it."
                )
            return self.bounds
        if self.horizon is None:
            raise InvalidValueError(
                "Expected horizon=24, say: the public time at which observation ends. Never take "
                "the largest time of the data, which is somebody's."
            )
        positive(horizon=self.horizon)
        taken = {column.name for column in columns}
        names = ["event", "time"]
        while taken & set(names):
            names = [f"{name}_" for name in names]
        return Schema(columns, TimeToEvent(names[1], names[0], self.horizon, self.bands))


def exits_of(y: Any) -> tuple[AnyArray, FloatArray]:
    """Return events and times of a structured array, in scikit-survival's order of its fields."""
    given = np.asarray(y)
    names = given.dtype.names or ()
    if given.ndim != 1 or len(names) != 2:
        raise InvalidValueError(
            "Expected y to be a structured array with two fields, an event (True or False) and a "
            "time, as scikit-survival's Surv.from_arrays makes it. For late entry (a third field) "
            "or several kinds of events there is no method here: take people from their start on, "
            "and one kind of event at a time."
        )
    event, time = (given[name] for name in names)
    if event.dtype != np.bool_:
        if event.dtype.kind not in "biuf" or not np.isin(event, (0, 1)).all():
            raise InvalidValueError(
                f"Expected the first field of y, {names[0]!r}, to be True or False: several kinds "
                "of events have to be fitted one at a time, others counting as censored."
            )
        event = event.astype(np.bool_)
    if time.dtype.kind not in "biuf" or not np.isfinite(time).all() or (time < 0).any():
        raise InvalidValueError(
            f"Expected the second field of y, {names[1]!r}, to be finite times from 0 on, and some "
            "are not: did somebody leave before they came?"
        )
    return event, time.astype(np.float64)


def _sums(agreement: Agreement, table: dict[str, AnyArray], people: People | None) -> FloatArray:
    """Σ of what the rows, or the people, would send, some rows at a time: a row counts 1/m where
    its person has m.
    """
    rows = len(next(iter(table.values())))

    def sums_of(part: slice) -> FloatArray:
        sent = np.atleast_2d(agreement.exact({name: v[part] for name, v in table.items()}))
        return np.asarray(sent.sum(0) if people is None else people.weights[part] @ sent)

    return added(sums_of(slice(start, start + _AT_ONCE)) for start in range(0, rows, _AT_ONCE))
