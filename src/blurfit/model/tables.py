"""Tables of a release: means, shares, crosstabs, odds ratios and tests, for people to read.

    moments.mean("income", by="region")
    moments.table("sex", "region", shares="row").test()
    moments.calibrate({"region": {"north": 0.3, "south": 0.5, "west": 0.2}}).mean("income")

Everything is computed from the published sums, so it costs no privacy (`blurfit.theory.moments`);
the mathematics is in `blurfit.learning.tables`. Numbers on a curve (odds ratios, probabilities)
have intervals from before the curve, mapped by it, and standard errors to first order. Weighting to
a known population (GREG) removes the bias of who took part as far as the mean of y is linear in x,
or the reciprocal of the chance to take part is: `docs/theory/questions.md`. Tested by
`tests/model/test_tables.py`.
"""

import csv
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.linalg import block_diag
from scipy.special import expit, ndtri, stdtrit

from blurfit.data import FloatArray, html_table
from blurfit.errors import (
    InfeasibleError,
    InvalidValueError,
    axes,
    inside_unit_interval,
    one_of,
    optional,
    separate_thousands,
    whole,
)
from blurfit.learning import tables
from blurfit.learning.inference import infer
from blurfit.learning.sums import Blurred, JointSums
from blurfit.learning.tables import (
    Answer,
    Components,
    Correlations,
    Levels,
    Test,
    components,
    correlations,
    joint_law,
)
from blurfit.model.summary import aligned, number
from blurfit.schema.columns import NOT_SAID, Categorical, Numeric, Question, is_unsaid
from blurfit.schema.derived import Bands, Cross, Curve, Poly, Product
from blurfit.schema.schema import Schema, units
from blurfit.schema.table import listed
from blurfit.wording import Message, Series

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.agreement.statement import Promise
    from blurfit.model.model import PublishedModel


NUMBERS = ("estimate", "standard_error", "privacy_error", "lower", "upper")
_HEAD = ("estimate", "std. error", "of it privacy", "lower", "upper")
Bend = Literal["", "exponential", "logistic"]


@dataclass(frozen=True, eq=False)
class Answers:
    """Numbers with errors, a row for each level, person or coefficient: for people, as a picture,
    a DataFrame, CSV or a workbook, with what they assume and the test that belongs to them.
    """

    title: str
    keys: tuple[str, ...]  # the names of the columns that say what a row is of
    rows: Sequence[str | tuple[str, ...]]
    answer: Answer  # before the curve
    promise: str
    confidence: float = 0.95
    limits: tuple[float, float] = (-np.inf, np.inf)  # of every value; intervals are cut there
    shown: FloatArray | None = None  # values for display: at least 0, and consistent
    beyond: FloatArray | float = 0.0  # added to each interval on either side, for what is no chance
    assumes: tuple[str, ...] = ()  # sentences that say what the errors rest on
    hypothesis: Test | None = None
    curve: Bend = ""
    freedom: float = np.inf  # of Student's law, that intervals are of; infinite: the normal law
    line: FloatArray | None = None  # where the rows lie on an axis, if they are points of a curve
    units: tuple[str, ...] = ()  # of each row, where they are not the same: no axis has two

    def __post_init__(self) -> None:
        inside_unit_interval(confidence=self.confidence)
        rows = tuple((row,) if isinstance(row, str) else tuple(row) for row in self.rows)
        object.__setattr__(self, "rows", rows)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns: the levels, then estimate, errors and interval."""
        a, part = self.answer, (1 + self.confidence) / 2
        errors = np.sqrt(np.maximum(np.diag(a.covariance), 0.0))
        of_noise = np.sqrt(np.maximum(np.diag(a.privacy), 0.0))
        reach = float(ndtri(part) if np.isinf(self.freedom) else stdtrit(self.freedom, part))
        ends = a.values + np.multiply.outer([-1.0, 0.0, 1.0], reach * errors + self.beyond)
        slope: Any = 1.0
        if self.curve == "exponential":
            ends = np.exp(ends)
            slope = ends[1]
        elif self.curve == "logistic":
            ends = expit(ends)
            slope = ends[1] * (1 - ends[1])
        lower, middle, upper = np.clip(ends, *self.limits)
        shown = middle if self.shown is None else self.shown
        numbers = shown, errors * slope, of_noise * slope, lower, upper
        keys = {key: [row[place] for row in self.rows] for place, key in enumerate(self.keys)}
        return keys | {name: one.tolist() for name, one in zip(NUMBERS, numbers, strict=True)}

    def to_facts(self) -> dict[str, Any]:
        """Return all of it for scripts: rows, the test, and what is assumed."""
        columns = self.to_dict()
        told = [[None if one != one else one for one in column] for column in columns.values()]
        return {
            "title": self.title,
            "rows": [dict(zip(columns, row, strict=True)) for row in zip(*told, strict=True)],
            "confidence": self.confidence,
            "test": None if self.hypothesis is None else asdict(self.hypothesis),
            "assumes": list(map(str, self.assumes)),
            "promise": self.promise,
        }

    def to_frame(self) -> Any:
        """Return a pandas DataFrame: the levels, `estimate`, errors, `lower` and `upper`."""
        found = optional("pandas").DataFrame(self.to_dict())
        found.attrs = {"title": self.title, "notes": list(self.notes)}
        return found

    def save(self, path: str | Path) -> None:
        """Write the rows as CSV or, by its ending, as a workbook (.xlsx) with a sheet of notes."""
        save_frame(self.to_frame(), path, (self.title, *self.notes))

    @property
    def notes(self) -> tuple[str, ...]:
        """The test, what is assumed, and what is promised."""
        test = () if self.hypothesis is None else (str(self.hypothesis),)
        return (*test, *self.assumes, self.promise)

    def test(self) -> Test:
        """Return the test of what such a table is usually asked: equal means, no effect."""
        if self.hypothesis is None:
            raise InfeasibleError(
                "There is no test of this table: ask for means by a question with several levels, "
                "or for a table of two questions."
            )
        return self.hypothesis

    def plot(self, ax: Any = None) -> Any:
        """Draw each value with its interval, or a curve with its band.

        Args:
            ax: The axes to draw in; default: new ones. Rows of several units need new ones.

        Returns:
            The axes, or an array of them, one for each unit.
        """
        if len(set(self.units)) > 1:
            return self._plot_units(ax)
        columns = self.to_dict()
        about = f"{self.confidence:.0%} intervals; {self.promise}"
        if self.line is not None:
            ax = axes(ax, 7, 4)
            ax.plot(self.line, columns["estimate"])
            ax.fill_between(self.line, columns["lower"], columns["upper"], alpha=0.25)
            ax.set_xlabel(f"{self.keys[0]}\n{about}")
        else:
            ax = axes(ax, 7, 1.4 + 0.3 * len(self.rows))
            places = np.arange(len(self.rows))
            ax.hlines(places, columns["lower"], columns["upper"], linewidth=1.5)
            ax.plot(columns["estimate"], places, "o")
            ax.set_yticks(places, [", ".join(row) for row in self.rows])
            ax.set_ylim(len(self.rows) - 0.5, -0.5)
            ax.set_xlabel(about)
        ax.set_title(self.title)
        return ax

    def _plot_units(self, ax: Any) -> Any:
        """Draw the rows of each unit in axes of their own, one above the other."""
        if ax is not None:
            raise InvalidValueError(
                "`ax` must be None: the rows have several units, and each unit has its own axes."
            )
        parts = [
            [at for at, unit in enumerate(self.units) if unit == each]
            for each in dict.fromkeys(self.units)
        ]
        _, panels = optional("matplotlib.pyplot").subplots(
            len(parts),
            figsize=(7, 1.4 + 0.6 * len(parts) + 0.3 * len(self.rows)),
            height_ratios=[len(part) + 0.5 for part in parts],
            layout="constrained",
        )
        for panel, part in zip(panels, parts, strict=True):
            separate_thousands(panel)
            rows = [self.rows[at] for at in part]
            replace(self, rows=rows, answer=self.answer.taken(np.array(part)), units=()).plot(panel)
            panel.set(title="", xlabel=self.units[part[0]])
        panels[0].set_title(self.title)
        panels[-1].set_xlabel(
            f"{panels[-1].get_xlabel()}\n{self.confidence:.0%} intervals; {self.promise}"
        )
        return panels

    @property
    def _cells(self) -> list[tuple[str, ...]]:
        """The table for people: the heading, then a dash wherever nothing is told."""
        cells: list[tuple[str, ...]] = [(*self.keys, *_HEAD)]
        columns = self.to_dict()
        for row, *values in zip(self.rows, *(columns[name] for name in NUMBERS), strict=True):
            error = values[1]
            pairs = zip(values, (error, None, None, error, error), strict=True)
            told = ("–" if np.isnan(one) else number(one, by) for one, by in pairs)
            cells.append((*row, *told))
        return cells

    def __str__(self) -> str:
        text = aligned(self._cells, len(self.keys))
        return "\n".join([self.title, *text, "", *self.notes])

    def _repr_html_(self) -> str:
        head, *cells = self._cells
        below = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return html_table(head, cells, caption=self.title) + below


def save_frame(frame: Any, path: str | Path, notes: Sequence[str] = ()) -> None:
    """Write a DataFrame as CSV, or as a workbook, whose second sheet has the notes.

    What a frame warns of, in `attrs["warning"]`, is the first line of a CSV, after a #.
    """
    ending, warning = Path(path).suffix.lower(), frame.attrs.get("warning")
    if ending == ".csv":
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            if warning is not None:
                file.write(f"# {warning}\n")
            frame.to_csv(file, index=False)
        return
    if ending != ".xlsx":
        raise InvalidValueError(
            "Expected a path that ends in .csv or .xlsx, and got {path!s}.", path=path
        )
    optional("openpyxl")
    pandas = optional("pandas")
    with pandas.ExcelWriter(path, engine="openpyxl") as book:
        frame.to_excel(book, sheet_name="rows", index=False)
        pandas.DataFrame({"notes": [*([warning] if warning else []), *notes]}).to_excel(
            book, sheet_name="notes", index=False
        )


NOT_PEOPLE = "Drawn from a release, nobody is in them: no standard errors from these rows."
Shares = Literal["counts", "total", "row", "column"]
NO_POWER = "The noise is most of the test's spread, so it could hardly have found anything."
POOLED = Message(
    "Errors of means take the same spread within every level, as an analysis of variance does."
)
BOUNDED = Message("Errors of means allow for the largest spread that each mean leaves possible.")
EVEN = Message(
    "Within a band people are taken as evenly spread; intervals allow for what that can be off."
)
LINEAR = Message(
    "The population's mean assumes that the mean of the answer is linear in what is weighted by."
)


UNKNOWN = Answer(*(np.full(shape, np.nan) for shape in ((1,), (1, 1), (1, 1))))


class Asked:
    """What can be asked of sums: of a release, or of one of its groups."""

    if TYPE_CHECKING:  # fields of one, properties of the other

        @property
        def agreement(self) -> "Agreement": ...  # noqa: D102
        @property
        def guarantee(self) -> "Promise": ...  # noqa: D102
        @property
        def joint(self) -> JointSums: ...  # noqa: D102

    @property
    def weights_in_words(self) -> str:
        """How much people count on average, where they have weights."""
        return ""

    def answers(
        self,
        title: str,
        keys: tuple[str, ...],
        rows: Sequence[str | tuple[str, ...]],
        answer: Answer,
        confidence: float,
        **more: Any,
    ) -> Answers:
        """Return numbers with what is promised to the people whose sums these are."""
        promise = f"{self.guarantee.counted}, {self.guarantee.numbers}{self.weights_in_words}"
        return Answers(title, keys, rows, answer, promise, confidence, **more)

    def describe(self, confidence: float = 0.95) -> Answers:
        """Return each question's mean, or the share of each of its levels, with errors.

        A question that few people answered may be hidden by the noise: it has no numbers then, and
        a note names it.
        """
        sums, parts = self.joint, []
        rows: list[tuple[str, ...]] = []
        units_of_rows: list[str] = []
        hidden: list[str] = []
        for one in self.agreement.questions:
            if isinstance(one, Curve | Poly | Product):
                continue  # which are for models
            if isinstance(one, Numeric):
                rows.append((one.name, "mean"))
                units_of_rows.append(str(one.wording.unit or one.name))
                try:
                    parts.append(_means(sums, one))
                except InfeasibleError:
                    hidden.append(one.name)
                    parts.append(UNKNOWN)
            else:
                levels = levels_of(sums, one)
                rows += [(one.name, name) for name in levels.names]
                units_of_rows += ["share"] * len(levels)
                parts.append(tables.shares(tables.counts(sums, levels)))
        title = "Every question: means, and shares of levels"
        notes = (
            (Message("The noise hides how many people answered: {hidden}.", hidden=Series(hidden)),)
            if hidden
            else ()
        )
        return self.answers(
            title,
            ("question", "level"),
            rows,
            _stacked(parts),
            confidence,
            units=tuple(units_of_rows),
            assumes=notes,
        )

    def mean(
        self,
        name: str,
        by: str | None = None,
        *,
        spread: Literal["pooled", "bounded"] = "pooled",
        confidence: float = 0.95,
    ) -> Answers:
        """Return the mean of a number, or the share of a yes, overall or at each level of another;
        `spread` of a number by level is one for all levels, or the largest that is possible.
        """
        one_of(("pooled", "bounded"), spread=spread)
        sums, schema = self.joint, self.agreement.schema
        one = schema.question(name)
        title = f"Mean of {name}" + ("" if by is None else f" by {by}")
        if isinstance(one, Curve | Product):
            raise InvalidValueError(
                "Expected a number or a yes/no, and {name!r} is for models.", name=name
            )
        if isinstance(one, Categorical):
            questions = Series(map(repr, filter(None, (name, by))))
            raise InvalidValueError(
                "Expected a number or a yes/no, and {name!r} has levels: ask for "
                "moments.table({questions}).",
                name=name,
                questions=questions,
            )
        levels = None if by is None else levels_of(sums, schema.question(by))
        notes, limits = [], limits_of(one)
        if isinstance(one, Numeric):
            found = _means(sums, one, levels, bounded=spread == "bounded")
            notes = [POOLED if spread == "pooled" else BOUNDED]
        else:
            found = _share_of_yes(sums, one, levels)
        if levels is None or by is None:
            return self.answers(title, ("question",), [name], found, confidence, limits=limits)
        told = zip(levels.names, found.values, strict=True)
        if hidden := [level for level, value in told if np.isnan(value)]:
            notes.append(
                Message("The noise hides how many there are of: {hidden}.", hidden=Series(hidden))
            )
        test = None
        if len(levels) - len(hidden) > 1:
            freedom = sums.count - len(levels)
            test = tables.equal(found, f"{name} is equal at all levels of {by}", freedom)
        more: dict[str, Any] = {"limits": limits, "assumes": tuple(notes), "hypothesis": test}
        return self.answers(title, (by,), levels.names, found, confidence, **more)

    def table(
        self,
        name: str,
        other: str | None = None,
        *,
        shares: Shares = "total",
        confidence: float = 0.95,
    ) -> Answers:
        """Return how many people there are at each level, or at each pair of levels of two.

        `shares` says whether as counts, or as shares of all, of a row or of a column.
        """
        one_of(("counts", "total", "row", "column"), shares=shares)
        sums, schema = self.joint, self.agreement.schema
        one = levels_of(sums, schema.question(name))
        if other is None:
            if shares in ("row", "column"):
                raise InvalidValueError(
                    "Expected two questions with shares={shares!r}.", shares=shares
                )
            blurred, test, rows = tables.counts(sums, one), None, list[Any](one.names)
        else:
            if other == name:
                raise InvalidValueError(
                    "Expected two different questions, and got {name!r} twice.", name=name
                )
            two = levels_of(sums, schema.question(other))
            blurred = tables.table(sums, one, two)
            rows = list(itertools.product(one.names, two.names))
            test = tables.independent(
                blurred, (len(one), len(two)), sums.count, f"{name} and {other} are independent"
            )
            if test.share_of_noise > 0.9 and test.p_value > 0.05:
                test = replace(test, notes=(NO_POWER,))
        found, limits = tables.shares(blurred), (0.0, 1.0)
        shown = tables.on_simplex(found.values)
        if shares == "counts":
            found, shown, limits = found.scaled(sums.count), shown * sums.count, (0.0, sums.count)
            found = replace(found, privacy=blurred.noise)
        elif shares != "total" and other is not None:
            row, column = np.arange(len(one)), np.arange(len(two))
            place = np.repeat(row, len(two)) if shares == "row" else np.tile(column, len(one))
            groups = np.eye(place.max() + 1)[:, place]
            found = tables.within(found, groups)
            shown = shown / np.maximum(groups.T @ (groups @ shown), np.finfo(float).tiny)
        what = {"counts": "People", "total": "Shares"}.get(shares, f"Shares of each {shares}")
        more: dict[str, Any] = {"limits": limits, "shown": shown, "hypothesis": test}
        keys = (name,) if other is None else (name, other)
        return self.answers(f"{what}: {' × '.join(keys)}", keys, rows, found, confidence, **more)

    def quantile(
        self, name: str, share: float = 0.5, by: str | None = None, *, confidence: float = 0.95
    ) -> Answers:
        """Return the value below which this share of the people lies, from a number's bands.

        Within a band the density f is taken as even, which is off by at most
        (h/8)·max|f_{k±1} − f_k|/f_k where it is nearly linear, h the band's width; intervals have
        that added on either side.
        """
        inside_unit_interval(share=share)
        schema, sums = self.agreement.schema, self.joint
        bands, edges = bands_of(schema, name)
        own, title = levels_of(sums, bands), f"Quantile {share:g} of {name}"
        key, rows = "question", [name]
        groups = [tables.shares(tables.counts(sums, own))]
        if by is not None:
            levels = levels_of(sums, schema.question(by))
            whole = tables.shares(tables.table(sums, levels, own))
            place = np.repeat(np.arange(len(levels)), len(own))
            split = tables.within(whole, np.eye(len(levels))[:, place])
            key, rows, title = by, list(levels.names), f"{title} by {by}"
            groups = [split.taken(np.flatnonzero(place == at)) for at in range(len(levels))]
        answers, wide = zip(*(tables.quantile(one, edges, share) for one in groups), strict=True)
        more: dict[str, Any] = {"limits": limits_of(schema.question(name)), "assumes": (EVEN,)}
        told = title, (key,), rows, _stacked(answers), confidence
        return self.answers(*told, beyond=np.array(wide), **more)

    def odds_ratio(
        self,
        name: str,
        other: str,
        *,
        levels: tuple[str, str] | None = None,
        others: tuple[str, str] | None = None,
        confidence: float = 0.95,
    ) -> Answers:
        """Return the odds ratio of two yes/no questions, or of two levels of each; its interval is
        that of the logarithm.
        """
        sums, schema = self.joint, self.agreement.schema
        one, two = (levels_of(sums, schema.question(each)) for each in (name, other))
        chosen = []
        for part, asked in ((one, levels), (two, others)):
            names = asked or part.names[:2]
            if len(names) != 2 or len(set(names)) != 2 or not set(names) <= set(part.names):
                raise InvalidValueError(
                    "Expected two of {listed}, and got {names!r}.",
                    listed=listed(part.names),
                    names=names,
                )
            if asked is None and len(part) > 2:
                raise InvalidValueError(
                    "Expected two levels of {question!r} to be named, of {listed}.",
                    question=part.question,
                    listed=listed(part.names),
                )
            chosen.append([part.names.index(each) for each in names])
        cells = [row * len(two) + column for row in chosen[0] for column in chosen[1]]
        whole = tables.table(sums, one, two)
        four = Blurred(whole.values[cells], whole.noise[np.ix_(cells, cells)])
        title, ratio = f"Odds ratio of {name} and {other}", tables.log_odds_ratio(four)
        told = title, ("questions",), [f"{name} × {other}"], ratio, confidence
        return self.answers(*told, curve="exponential")

    def calibrate(self, totals: Mapping[str, Any] | str | Path) -> "Calibrated":
        """Weight a release to a population whose shares and means are known from elsewhere.

        Args:
            totals: for a question with levels the population's count or share at each, for a number
                its mean, for a yes/no the share of yes; or a file with that: JSON, or CSV with the
                columns question, level (empty for a number or a yes/no) and value.
        """
        if isinstance(totals, str | Path):
            totals = _read_totals(Path(totals))
        if not isinstance(totals, Mapping) or not totals:
            raise InvalidValueError(
                "Expected the population's totals by the name of each question."
            )
        schema = self.agreement.schema
        known: dict[str, float] = {}
        for name, given in totals.items():
            known |= _known_of(schema.question(name), given)
        return Calibrated(self, tuple(totals), known)

    def synthesise(
        self, count: int, questions: Sequence[str] | None = None, *, seed: int | None = None
    ) -> Any:
        """Draw rows whose tables of two are the release's: a DataFrame, for tools that want rows.

        No standard errors can be computed from them (`blurfit.learning.tables`): so says
        `attrs["warning"]`, and the first line of what `save_frame` writes. `questions` are those
        with levels that are wanted (default: all); nothing private rests on the `seed`.
        """
        whole(count=count)
        sums, schema = self.joint, self.agreement.schema
        asked = [one for one in self.agreement.questions if not isinstance(one, Numeric | Curve)]
        chosen = asked if questions is None else [schema.question(name) for name in questions]
        if not chosen:
            raise InvalidValueError("Expected a question with levels: numbers are not drawn.")
        levels = [levels_of(sums, one) for one in chosen]
        law = joint_law(sums, levels)
        places = np.random.default_rng(seed).choice(law.size, size=count, p=law.ravel())
        each = zip(levels, np.unravel_index(places, law.shape), strict=True)
        columns = {one.question: [one.names[place] for place in drawn] for one, drawn in each}
        found = optional("pandas").DataFrame(columns)
        found.attrs["warning"] = NOT_PEOPLE
        return found

    def correlations(self) -> Correlations:
        """Between all columns, with what the noise leaves uncertain."""
        return correlations(self.joint)

    def principal_components(self, count: int | None = None) -> Components:
        """Directions in which people differ most, of the standardised columns."""
        return components(self.joint, count)


# ---- a known population


@dataclass(frozen=True, eq=False)
class Calibrated:
    """A release weighted to a population with known shares and means: see `calibrate`."""

    moments: Asked
    features: tuple[str, ...]
    known: Mapping[str, float]  # of the encoded columns but a reference level, in the user's units

    def mean(self, name: str, *, confidence: float = 0.95) -> Answers:
        """Return the mean of a number, or the shares of a question's levels, in the population."""
        schema, sums = self.moments.agreement.schema, self.moments.joint
        one = schema.question(name)
        if name in self.features:
            raise InvalidValueError(
                "Expected another question than {name!r}, which is known.", name=name
            )
        told = units(schema, name, self.features)
        found = [infer(sums.submodel(each, told.names[1:])).in_units(told) for each in one.columns]
        at = np.array([[1.0, *(self.known[each] for each in told.names[1:])]])
        answer = _stacked([each.answer.through(at) for each in found])
        levels = isinstance(one, Categorical)
        title = f"{'Mean' if isinstance(one, Numeric) else 'Shares'} of {name} in the population"
        return self.moments.answers(
            title,
            ("question",),
            one.columns if levels else (name,),
            answer,
            confidence,
            limits=limits_of(one),
            shown=tables.on_simplex(answer.values) if levels else None,
            assumes=(LINEAR,),
        )

    def table(self, name: str, other: str | None = None, *, confidence: float = 0.95) -> Answers:
        """Return the shares of one question's levels in the population, or of the pairs of two."""
        if other is None:
            return self.mean(name, confidence=confidence)
        schema = self.moments.agreement.schema
        crossed = (one for one in schema.features if isinstance(one, Cross))
        found = next((one for one in crossed if set(one.of) == {name, other}), None)
        if found is None:
            raise InfeasibleError(
                "The release has no products of three columns, which weighting a table of {name} "
                "and {other} needs: declare Cross({name!r}, {other!r}) before anything is "
                "collected.",
                name=name,
                other=other,
            )
        told = self.mean(found.name, confidence=confidence)
        levels = [levels_of(self.moments.joint, schema.question(one)).names for one in found.of]
        return replace(told, keys=found.of, rows=tuple(itertools.product(*levels)))

    def fit(self, formula: str, **options: Any) -> "PublishedModel":
        """Return a model that has what was weighted by among its features: given these, who took
        part makes no difference to its coefficients. Others are refused.
        """
        release: Any = self.moments  # a group's sums have no models of their own
        asked = release.formula(formula)
        if not set(self.features) <= {asked.target, *asked.features}:
            raise InfeasibleError(
                "Expected {listed} among the columns of {formula!r}: a model "
                "without them would need the products of three columns, which are not in the "
                "release. Add them, or collect with groups=…, whose sums can be weighted.",
                listed=listed(self.features),
                formula=formula,
            )
        model: PublishedModel = release.fit(formula, **options)
        return model


def _read_totals(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix.lower() != ".csv":
            return json.loads(text)
    except (OSError, ValueError) as error:
        raise InvalidValueError(
            "Expected {path!r} to be a file of known totals, in JSON or CSV: {error}.",
            path=str(path),
            error=error,
        ) from error
    found: dict[str, Any] = {}
    for line, row in enumerate(csv.DictReader(text.splitlines()), start=2):
        try:
            name, level, value = row["question"], row["level"], float(row["value"])
        except (KeyError, TypeError, ValueError):
            raise InvalidValueError(
                "Expected the columns question, level and value in {path!r}, the last a "
                "number, and row {line} is another one.",
                path=str(path),
                line=line,
            ) from None
        if level:
            found.setdefault(name, {})[level] = value
        else:
            found[name] = value
    return found


def _known_of(one: Question, given: Any) -> dict[str, float]:
    if any(map(is_unsaid, one.columns)):
        raise InvalidValueError(
            "Expected a question that everybody answered, and {name!r} may be left unsaid: "
            "what the silent would have said is not known.",
            name=one.name,
        )
    if isinstance(one, Categorical):
        if not isinstance(given, Mapping) or set(given) != set(one.levels):
            raise InvalidValueError(
                "Expected a count or a share for each of {listed} of {name!r}.",
                listed=listed(one.levels),
                name=one.name,
            )
        parts = np.array([float(given[level]) for level in one.levels])
        if not np.isfinite(parts).all() or (parts < 0).any() or parts.sum() <= 0:
            raise InvalidValueError(
                "Expected counts or shares of {name!r} of at least 0.", name=one.name
            )
        return dict(zip(one.columns, (parts / parts.sum()).tolist(), strict=True))
    lower, upper = limits_of(one)
    if isinstance(given, bool) or not isinstance(given, int | float) or not lower <= given <= upper:
        raise InvalidValueError(
            "Expected the population's mean of {name!r} between {lower:g} and {upper:g}.",
            name=one.name,
            lower=lower,
            upper=upper,
        )
    return {one.name: float(given)}


# ---- reading


def limits_of(one: Question) -> tuple[float, float]:
    """Return between what a number's mean lies, or a share."""
    return (one.lower, one.upper) if isinstance(one, Numeric) else (0.0, 1.0)


def bands_of(schema: Schema, name: str) -> tuple[Bands, FloatArray]:
    """Return the bands of a number, and all their edges; refuse one without."""
    source = schema.question(name)
    declared = (one for one in schema.features if isinstance(one, Bands) and one.of == (name,))
    bands = next(declared, None)
    if bands is None or not isinstance(source, Numeric):
        raise InvalidValueError(
            "Expected bands of {name!r} in the schema: declare Bands({name!r}, edges=…) before "
            "anything is collected.",
            name=name,
        )
    return bands, np.array([source.lower, *bands.edges, source.upper])


def levels_of(sums: JointSums, one: Question) -> Levels:
    """Return a question as levels; a number has none."""
    if isinstance(one, Numeric | Curve):
        raise InvalidValueError(
            "Expected a question with levels, and {name!r} is a number: declare bands of it "
            "before anything is collected, or ask for its mean.",
            name=one.name,
        )
    rows = tuple(sums.index(name) for name in one.columns)
    if isinstance(one, Categorical):
        return Levels(one.name, one.answers, rows, np.eye(len(rows)))
    size = 1 + len(rows)  # yes, no, and not said where that is allowed
    names, values = ("yes", "no", NOT_SAID), np.array([[1.0, -1, 0], [0, 0, 1]])
    return Levels(one.name, names[:size], rows, values[: len(rows), :size])


def _means(
    sums: JointSums, one: Numeric, by: Levels | None = None, *, bounded: bool = False
) -> Answer:
    """Return the mean of a number among those who say it, overall or at each level."""
    levels = by or Levels(one.name, ("all",), (), np.zeros((0, 1)))
    row = sums.index(one.columns[0])
    if len(one.columns) == 1:
        people, count = tables.counts(sums, levels), float(sums.count)
    else:
        unsaid = (sums.index(one.columns[1]),)
        said = Levels(one.name, ("said", NOT_SAID), unsaid, np.array([[0.0, 1.0]]))
        both = tables.table(sums, levels, said)
        first = np.arange(0, len(both.values), 2)
        people = Blurred(both.values[first], both.noise[np.ix_(first, first)])
        count = float(people.values.sum())
    squares = float(sums.matrix[row, row]) / sums.columns[row - 1].weight ** 2
    found = tables.means(tables.totals(sums, row, levels), people, squares, count, bounded=bounded)
    slope, constant = one.affine
    return found.scaled(1 / slope, -constant / slope)


def _share_of_yes(sums: JointSums, one: Question, levels: Levels | None) -> Answer:
    """Return the share of yes among those who say it, overall or at each level."""
    own = levels_of(sums, one)
    if levels is None:
        found = tables.shares(tables.counts(sums, own))
        place = np.zeros(len(own), dtype=np.intp)
    else:
        found = tables.shares(tables.table(sums, levels, own))
        place = np.repeat(np.arange(len(levels)), len(own))
    if len(own) == 3:  # the silent do not count
        said = np.tile([True, True, False], place[-1] + 1)
        found = found.taken(np.flatnonzero(said))
        place = place[said]
    whole = tables.within(found, np.eye(place[-1] + 1)[:, place])
    return whole.taken(np.arange(0, len(whole.values), 2))


def _stacked(parts: Sequence[Answer]) -> Answer:
    """Return several answers one below the other; how they go together is not told."""
    return Answer(
        np.concatenate([one.values for one in parts]),
        block_diag(*(one.sampling for one in parts)),
        block_diag(*(one.privacy for one in parts)),
    )
