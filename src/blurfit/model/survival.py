"""How long until: hazards, survival curves and tests, from a release of exits.

The hazard of a person in band k is λ_k + Σ coefficient·value, events per unit of time: additive, so
a coefficient of 0.01 per month is one more leaver a month among a hundred people at risk. All of it
is post-processing of sums that are private themselves (`blurfit.learning.hazards`). A hazard that
comes out negative is told as 0 in predictions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError, InvalidValueError, axes, optional
from blurfit.learning.hazards import Curve, EventSums, LogRank
from blurfit.learning.inference import Estimate, Inference
from blurfit.model.summary import Section, Summary, cells, facts_of, probability
from blurfit.schema.columns import Binary, Categorical, Question, TimeToEvent
from blurfit.schema.schema import Schema, titles, values
from blurfit.theory.hazards import EventForm

if TYPE_CHECKING:
    from blurfit.model.release import PublishedMoments

ASSUMED = (
    "Hazards add up, are constant in each band, and people who stop being observed are like those "
    "who do not: errors are for that. They count the sampling of people and the noise."
)


@dataclass(frozen=True, eq=False)
class SurvivalModel:
    """What a release of exits tells; make one with `PublishedMoments.survival`."""

    moments: "PublishedMoments"
    sums: EventSums

    @classmethod
    def of(cls, moments: "PublishedMoments") -> "SurvivalModel":
        """Read a release; refuse one of anything else than exits."""
        form = moments.agreement.form
        if not isinstance(form, EventForm):
            raise InfeasibleError(
                "Expected a release of exits: its target is no TimeToEvent. Ask it with fit()."
            )
        return cls(moments, EventSums(form, moments.sums, moments.count, moments.deviation))

    @property
    def _schema(self) -> Schema:
        return self.moments.agreement.schema

    @property
    def target(self) -> TimeToEvent:
        """What was asked: the event, the time and its horizon."""
        found = self._schema.target
        assert isinstance(found, TimeToEvent)
        return found

    @property
    def times(self) -> FloatArray:
        """The ends of bands in the user's units, from 0 on."""
        return np.linspace(0.0, self.target.horizon, self.target.bands + 1)

    @cached_property
    def _features(self) -> tuple[Question, ...]:
        named = {column.group or column.name for column in self.sums.form.inner.columns}
        return tuple(one for one in self._schema.features if one.name in named)

    @cached_property
    def _units(self) -> Inference:
        """(coefficients, hazards of bands at values of 0 and first levels), per unit of time.

        x_j = ω_j(slope·value + constant), so that β·x is Σβ_jω_j·slope·value and a constant, which
        goes into every band.
        """
        found, form, p = self.sums.model, self.sums.form, len(self.sums.used)
        affines = [affine for one in self._features for affine in one.affines]
        used = [(form.inner.columns[place].weight, *affines[place]) for place in self.sums.used]
        matrix = np.eye(len(found.coefficients))
        for place, (weight, slope, constant) in enumerate(used):
            matrix[place, place] = weight * slope
            matrix[p:, place] = weight * constant
        return found.through(matrix / self.target.horizon)

    @property
    def coefficients(self) -> dict[str, float]:
        """How much one unit of each feature adds to the hazard."""
        return {one.name: one.value for one in self.estimates()}

    def estimates(self, confidence: float = 0.95) -> list[Estimate]:
        """Return each coefficient with its errors; of a categorical, each level but the first."""
        return list(self._units.estimates(confidence)[: len(self.sums.used)])

    # ---- predictions

    def predict_hazard(self, records: Any) -> FloatArray:
        """Return the hazard of each record in each band, per unit of time: (n, bands)."""
        return np.asarray(np.maximum(self._scores(records), 0.0))

    def predict_survival(self, records: Any) -> FloatArray:
        """Return the probability of no event until each of `times`: (n, bands + 1), from 1 on."""
        hazards = self.predict_hazard(records) * (self.target.horizon / self.target.bands)
        cumulated = np.cumsum(hazards, axis=1)
        return np.exp(-np.hstack([np.zeros((len(hazards), 1)), cumulated]))

    def _scores(self, records: Any) -> FloatArray:
        """Return the sum of coefficients, and of a band's own: (n, bands)."""
        names, p = [one.name for one in self._features], len(self.sums.used)
        v, beta = np.atleast_2d(values(self._schema, records, names)), self._units.coefficients
        slopes, constants = np.array([pair for one in self._features for pair in one.affines]).T
        x = ((v - constants) / slopes)[:, self.sums.used]  # in the user's units
        return np.asarray(x @ beta[:p, None] + beta[p:])

    # ---- curves and tests

    def groups(self, by: str) -> dict[str, FloatArray]:
        """Return the combination of (1, x) that is 1 for each answer to a question, else 0."""
        one, columns = self._schema.question(by), self.sums.form.inner.columns
        first = 1 + next(
            (at for at, column in enumerate(columns) if by in (column.name, column.group)), -1
        )
        if first == 0 or one.optional or not isinstance(one, Binary | Categorical):
            raise InvalidValueError(
                "Expected by={by!r} to be a feature with levels, or of yes and no, that everybody "
                "answers. Of a number declare bands.",
                by=by,
            )
        weight, size = columns[first - 1].weight, 1 + len(columns)
        if isinstance(one, Categorical):
            each = np.eye(size)[first : first + len(one.levels)] / weight
            return dict(zip(one.levels, each, strict=True))
        half = np.eye(size)[0] / 2
        turn = np.eye(size)[first] / (2 * weight)
        return {one.wording.label("no"): half - turn, one.wording.label("yes"): half + turn}

    def curve(self, by: str | None = None) -> "Curves":
        """Return the survival curve of everybody, or of each answer to a question."""
        chosen: Mapping[str, Any] = {"everybody": None} if by is None else self.groups(by)
        return Curves(self, {name: self.sums.curve(one) for name, one in chosen.items()})

    def log_rank(self, by: str) -> LogRank:
        """Test whether people who answer a question differently have the same hazards."""
        return self.sums.log_rank(list(self.groups(by).values()))

    # ---- for people

    def summary(self, confidence: float = 0.95) -> Summary:
        """Return coefficients, the curve and the promise, as text, Markdown or HTML."""
        promise, target, called = self.moments.guarantee, self.target, titles(self._schema)
        notes, sections = [ASSUMED], []
        try:
            rows = tuple(
                (called.get(one.name, one.name), *cells(one), probability(one.p_value))
                for one in self.estimates(confidence)
            )
            interval = f"{100 * confidence:g} % interval"
            head = ("", "hazard", "std. error", "of it privacy", interval, "p")
            sections.append(Section(self._what, head, rows, ()))
        except InfeasibleError as error:
            notes.insert(0, f"No coefficients: {error}")
        try:
            sections.append(self.curve().section(confidence))
        except InfeasibleError as error:
            notes.append(f"No curve: {error}")
        notes.append(
            f"{promise.seen} {promise.condition}" if self.moments.held else promise.condition
        )
        title = f"{target.time} until {target.name} ~ {' + '.join(o.name for o in self._features)}"
        return Summary(title, tuple(sections), facts_of(promise), tuple(notes))

    @property
    def _what(self) -> str:
        return (
            f"additional events per person and unit of time ({self.target.time}), for one unit more"
        )

    def plot(self, ax: Any = None, by: str | None = None, confidence: float = 0.95) -> Any:
        """Draw survival curves with their intervals, by matplotlib; the axes are returned."""
        return self.curve(by).plot(ax, confidence)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"<{name} of {self.target.name!r}; count={self.moments.count:,}>"

    def _repr_html_(self) -> str:
        return self.summary().to_html()


@dataclass(frozen=True, eq=False)
class Curves:
    """Survival curves of some groups of people, at the ends of bands."""

    model: SurvivalModel
    curves: dict[str, Curve]

    def __getitem__(self, group: str) -> Curve:
        return self.curves[group]

    def rows(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """Return a dict for each group and time: survival, interval, events in the band before."""
        found: list[dict[str, Any]] = []
        names = ("time", "survival", "lower", "upper", "events")
        for group, one in self.curves.items():
            columns = self.model.times, one.survival, *one.interval(confidence), [0.0, *one.events]
            each = (map(float, row) for row in zip(*columns, strict=True))
            found += [{"group": group} | dict(zip(names, row, strict=True)) for row in each]
        return found

    def to_frame(self, confidence: float = 0.95) -> Any:
        """Return `rows` as a pandas DataFrame."""
        return optional("pandas").DataFrame(self.rows(confidence))

    def section(self, confidence: float = 0.95) -> Section:
        """Return them as a table of a summary."""
        rows = tuple(
            (
                f"{row['group']}, {row['time']:g}",
                f"{row['survival']:.4f}",
                f"{row['lower']:.4f} to {row['upper']:.4f}",
                f"{row['events']:,.0f}",
            )
            for row in self.rows(confidence)
        )
        target = self.model.target
        head = (f"until {target.time}", "survival", f"{100 * confidence:g} % interval", "events")
        return Section(f"share without {target.name!r}", head, rows, ())

    def plot(self, ax: Any = None, confidence: float = 0.95) -> Any:
        """Draw them with their intervals; the axes are returned."""
        ax, times = axes(ax, 6, 4), self.model.times
        for group, one in self.curves.items():
            (line,) = ax.plot(times, one.survival, label=group)
            lower, upper = one.interval(confidence)
            ax.fill_between(times, lower, upper, alpha=0.2, color=line.get_color(), linewidth=0)
        ax.set(xlabel=self.model.target.time, ylabel=f"share without {self.model.target.name!r}")
        ax.set_ylim(0, 1.02)
        if len(self.curves) > 1:
            ax.legend()
        return ax

    def __str__(self) -> str:
        return str(Summary("survival", (self.section(),), (), ()))
