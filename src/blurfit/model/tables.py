"""Tables of a release: means, shares, crosstabs, odds ratios and tests, for people to read.

    moments.describe()
    moments.mean("income", by="region")
    moments.table("sex", "region", shares="row").test()
    moments.odds_ratio("married", "owns_home")
    moments.calibrate({"region": {"north": 0.3, "south": 0.5, "west": 0.2}}).mean("income")

Everything here is computed from the published sums, so it costs no privacy
(`blurfit.theory.moments`); the mathematics is in `blurfit.learning.tables`. Each result prints as a
table, draws itself, has `to_frame()`, says what it assumes, and refuses what the noise hides.

**Weighting to a known population** (generalised regression, GREG). If the population's means x̄ of
some questions are known, the mean of y in the population is estimated by ȳ_s + (x̄ − x̄_s)·β, which
for least squares with a constant is the model's mean response at x̄: its value and its error are
those of `blurfit.learning.inference`. It removes the bias of who took part as far as the mean of y
is linear in x, or the reciprocal of the chance to take part is.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.linalg import block_diag
from scipy.special import ndtri

from blurfit.arrays import FloatArray
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.learning import tables
from blurfit.learning.denoise import Components, Correlations, components, correlations
from blurfit.learning.inference import infer
from blurfit.learning.sums import Blurred, JointSums
from blurfit.learning.synthesis import joint_law
from blurfit.learning.tables import Answer, Levels, Test
from blurfit.model.fitting import in_units
from blurfit.model.summary import number
from blurfit.notebook import html_table
from blurfit.optional import axes, optional
from blurfit.schema.columns import Categorical, Numeric, Question, is_unsaid
from blurfit.schema.derived import Bands
from blurfit.schema.table import listed
from blurfit.schema.vectors import units
from blurfit.validate import inside_unit_interval, one_of, whole

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.agreement.statement import Promise
    from blurfit.model.model import PublishedModel

Shares = Literal["counts", "total", "row", "column"]
POOLED = "Errors of means take the same spread within every level, as an analysis of variance does."
BOUNDED = "Errors of means allow for the largest spread that each mean leaves possible."
EVEN = "Within a band people are taken as evenly spread; intervals allow for what that can be off."
LINEAR = (
    "The population's mean assumes that the mean of the answer is linear in what is weighted by."
)
_NUMBERS = ("estimate", "standard_error", "privacy_error", "lower", "upper")


@dataclass(frozen=True, eq=False)
class Answers:
    """What was asked of a release: a row for each level, with errors.

    Attributes:
        title: what was asked.
        keys: the names of the columns that say which level a row is of.
        rows: those levels, row by row.
        answer: values with the two parts of their covariance.
        confidence: of the intervals.
        limits: what every value lies between, by its definition; intervals are cut there.
        shown: values for display, if not the unbiased ones: at least 0, and consistent.
        beyond: what is added to each interval on either side, for what is not random.
        assumes: sentences that say what the errors rest on.
        hypothesis: the test that `test()` gives, if there is one.
    """

    title: str
    keys: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    answer: Answer
    promise: str
    confidence: float = 0.95
    limits: tuple[float, float] = (-np.inf, np.inf)
    shown: FloatArray | None = None
    beyond: FloatArray | float = 0.0
    assumes: tuple[str, ...] = ()
    hypothesis: Test | None = None

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns: the levels, then estimate, errors and interval."""
        a = self.answer
        errors = np.sqrt(np.maximum(np.diag(a.covariance), 0.0))
        reach = ndtri((1 + self.confidence) / 2) * errors + self.beyond
        numbers = {
            "estimate": np.clip(a.values, *self.limits) if self.shown is None else self.shown,
            "standard_error": errors,
            "privacy_error": np.sqrt(np.maximum(np.diag(a.privacy), 0.0)),
            "lower": np.clip(a.values - reach, *self.limits),
            "upper": np.clip(a.values + reach, *self.limits),
        }
        keys = {key: [row[place] for row in self.rows] for place, key in enumerate(self.keys)}
        return keys | {name: numbers[name].tolist() for name in _NUMBERS}

    def to_facts(self) -> dict[str, Any]:
        """Return all of it for scripts: rows, the test, and what is assumed."""
        columns = self.to_dict()
        told = [[None if one != one else one for one in column] for column in columns.values()]
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*told, strict=True)]
        test = self.hypothesis
        return {
            "title": self.title,
            "rows": rows,
            "confidence": self.confidence,
            "test": None if test is None else asdict(test),
            "assumes": list(self.assumes),
            "promise": self.promise,
        }

    def to_frame(self) -> Any:
        """Return a pandas DataFrame: the levels, `estimate`, errors, `lower` and `upper`."""
        return optional("pandas").DataFrame(self.to_dict())

    def to_csv(self, path: str | Path) -> None:
        """Write the rows as CSV, for a spreadsheet."""
        self.to_frame().to_csv(path, index=False)

    def test(self) -> Test:
        """Return the test of what the table is usually asked: equal means, independent answers."""
        if self.hypothesis is None:
            raise InfeasibleError(
                "There is no test of this table: ask for means by a question with several levels, "
                "or for a table of two questions."
            )
        return self.hypothesis

    def plot(self, ax: Any = None) -> Any:
        """Draw each value with its interval, by matplotlib; return the axes."""
        columns = self.to_dict()
        ax = axes(ax, 7, 1.4 + 0.3 * len(self.rows))
        places = np.arange(len(self.rows))
        ax.hlines(places, columns["lower"], columns["upper"], linewidth=1.5)
        ax.plot(columns["estimate"], places, "o")
        ax.set_yticks(places, [", ".join(row) for row in self.rows])
        ax.set_ylim(len(self.rows) - 0.5, -0.5)
        ax.set_xlabel(f"{self.confidence:.0%} intervals; {self.promise}")
        ax.set_title(self.title)
        return ax

    @property
    def _cells(self) -> list[tuple[str, ...]]:
        columns = self.to_dict()
        errors = columns["standard_error"]
        cells = [
            [_told(value, error) for value, error in zip(columns[name], errors, strict=True)]
            if name in ("estimate", "lower", "upper")
            else [_told(value) for value in columns[name]]
            for name in _NUMBERS
        ]
        numbers = zip(*cells, strict=True)
        return [(*row, *rest) for row, rest in zip(self.rows, numbers, strict=True)]

    @property
    def _head(self) -> tuple[str, ...]:
        return (*self.keys, "estimate", "std. error", "of it privacy", "lower", "upper")

    def __str__(self) -> str:
        lines = [self._head, *self._cells]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        left = len(self.keys)
        text = [
            "  ".join(
                f"{cell:<{width}}" if place < left else f"{cell:>{width}}"
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        test = [] if self.hypothesis is None else ["", str(self.hypothesis)]
        return "\n".join([self.title, *text, *test, "", *self.assumes, self.promise])

    def _repr_html_(self) -> str:
        notes = [*([] if self.hypothesis is None else [str(self.hypothesis)]), *self.assumes]
        below = "".join(f"<p>{escape(note)}</p>" for note in (*notes, self.promise))
        return html_table(self._head, self._cells, caption=self.title) + below


class Asked:
    """What can be asked of sums: of a release, or of one of its groups."""

    if TYPE_CHECKING:  # fields of one, properties of the other

        @property
        def agreement(self) -> "Agreement": ...  # noqa: D102
        @property
        def guarantee(self) -> "Promise": ...  # noqa: D102
        @property
        def joint(self) -> JointSums: ...  # noqa: D102

    def describe(self, **options: Any) -> Answers:
        """Return every question's mean or shares, with errors: `describe`."""
        return describe(self, **options)

    def mean(self, name: str, by: str | None = None, **options: Any) -> Answers:
        """Return a mean, overall or at each level of a question: `mean`."""
        return mean(self, name, by, **options)

    def table(self, name: str, other: str | None = None, **options: Any) -> Answers:
        """Return shares or counts of one or two questions: `table`."""
        return table(self, name, other, **options)

    def quantile(self, name: str, share: float = 0.5, **options: Any) -> Answers:
        """Return a quantile of a number that has bands: `quantile`."""
        return quantile(self, name, share, **options)

    def odds_ratio(self, name: str, other: str, **options: Any) -> Answers:
        """Return the odds ratio of two questions: `odds_ratio`."""
        return odds_ratio(self, name, other, **options)

    def calibrate(self, totals: Any) -> "Calibrated":
        """Weight the release to a known population: `calibrate`."""
        return calibrate(self, totals)

    def synthesise(self, count: int, **options: Any) -> dict[str, list[str]]:
        """Draw rows, without errors, for other tools: `synthesise`."""
        return synthesise(self, count, **options)

    def correlations(self) -> Correlations:
        """Between all columns, with what the noise leaves uncertain."""
        return correlations(self.joint)

    def principal_components(self, count: int | None = None) -> Components:
        """Directions in which people differ most, of the standardised columns."""
        return components(self.joint, count)


def describe(moments: Asked, confidence: float = 0.95) -> Answers:
    """Return each question's mean, or the share of each of its levels, with errors."""
    sums, rows, parts = moments.joint, [], []
    for one in moments.agreement.questions:
        if isinstance(one, Numeric):
            rows.append((one.name, "mean"))
            parts.append(_overall(sums, one))
        else:
            levels = levels_of(sums, one)
            rows += [(one.name, name) for name in levels.names]
            parts.append(tables.shares(tables.counts(sums, levels)))
    return Answers(
        "Every question: means, and shares of levels",
        ("question", "level"),
        tuple(rows),
        _stacked(parts),
        promise_of(moments),
        confidence,
    )


def mean(
    moments: Asked,
    name: str,
    by: str | None = None,
    *,
    spread: Literal["pooled", "bounded"] = "pooled",
    confidence: float = 0.95,
) -> Answers:
    """Return the mean of a number, or the share of a yes, overall or at each level of a question.

    Args:
        moments: the release.
        name: the question whose mean is asked for.
        by: a question with levels.
        spread: of a number by level: one for all levels, or the largest that is possible.
        confidence: of the intervals.
    """
    one_of(("pooled", "bounded"), spread=spread)
    sums, schema = moments.joint, moments.agreement.schema
    one = schema.question(name)
    title = f"Mean of {name}" + ("" if by is None else f" by {by}")
    if isinstance(one, Categorical):
        raise InvalidValueError(
            f"Expected a number or a yes/no, and {name!r} has levels: ask for "
            f"moments.table({name!r}" + (")." if by is None else f", {by!r}).")
        )
    if by is None:
        rows: tuple[tuple[str, ...], ...] = ((name,),)
        found = _overall(sums, one) if isinstance(one, Numeric) else _share_of_yes(sums, one, None)
        within = (one.lower, one.upper) if isinstance(one, Numeric) else (0.0, 1.0)
        return Answers(title, ("question",), rows, found, promise_of(moments), confidence, within)
    levels = levels_of(sums, schema.question(by))
    rows = tuple((level,) for level in levels.names)
    if not isinstance(one, Numeric):
        found, limits, notes = _share_of_yes(sums, one, levels), (0.0, 1.0), []
    else:
        found = _means(sums, one, levels, bounded=spread == "bounded")
        notes = [POOLED if spread == "pooled" else BOUNDED]
        limits = (one.lower, one.upper)
    hidden = [
        level for level, value in zip(levels.names, found.values, strict=True) if np.isnan(value)
    ]
    if hidden:
        notes.append(f"The noise hides how many there are of: {', '.join(hidden)}.")
    test = None
    if len(levels) - len(hidden) > 1:
        freedom = sums.count - len(levels)
        test = tables.equal(found, f"{name} is equal at all levels of {by}", freedom)
    return Answers(
        title,
        (by,),
        rows,
        found,
        promise_of(moments),
        confidence,
        limits=limits,
        assumes=tuple(notes),
        hypothesis=test,
    )


def table(
    moments: Asked,
    name: str,
    other: str | None = None,
    *,
    shares: Shares = "total",
    confidence: float = 0.95,
) -> Answers:
    """Return how many people there are at each level, or at each pair of levels of two questions.

    `shares` says whether as counts, or as shares of all, of a row or of a column.
    """
    one_of(("counts", "total", "row", "column"), shares=shares)
    sums, schema = moments.joint, moments.agreement.schema
    one = levels_of(sums, schema.question(name))
    if other is None:
        if shares in ("row", "column"):
            raise InvalidValueError(f"Expected two questions with shares={shares!r}.")
        blurred, test = tables.counts(sums, one), None
        rows: tuple[tuple[str, ...], ...] = tuple((level,) for level in one.names)
        keys: tuple[str, ...] = (name,)
    else:
        if other == name:
            raise InvalidValueError(f"Expected two different questions, and got {name!r} twice.")
        two = levels_of(sums, schema.question(other))
        blurred = tables.table(sums, one, two)
        rows = tuple((level, second) for level in one.names for second in two.names)
        keys = (name, other)
        test = tables.independent(
            blurred, (len(one), len(two)), sums.count, f"{name} and {other} are independent"
        )
        if test.share_of_noise > 0.9 and test.p_value > 0.05:
            note = "The noise is most of the test's spread, so it could hardly have found anything."
            test = Test(**{**vars(test), "notes": (note,)})
    found = tables.shares(blurred)
    shown = tables.on_simplex(found.values)
    limits = (0.0, 1.0)
    if shares == "counts":
        found, shown, limits = found.scaled(sums.count), shown * sums.count, (0.0, sums.count)
        found = Answer(found.values, found.sampling, blurred.noise)
    elif shares != "total" and other is not None:
        row, column = np.arange(len(one)), np.arange(len(two))
        place = np.repeat(row, len(two)) if shares == "row" else np.tile(column, len(one))
        groups = np.eye(place.max() + 1)[:, place]
        found = tables.within(found, groups)
        shown = shown / np.maximum(groups.T @ (groups @ shown), np.finfo(float).tiny)
    what = {"counts": "People", "total": "Shares"}.get(shares, f"Shares of each {shares}")
    return Answers(
        f"{what}: " + " × ".join(keys),
        keys,
        rows,
        found,
        promise_of(moments),
        confidence,
        limits=limits,
        shown=shown,
        hypothesis=test,
    )


def quantile(
    moments: Asked,
    name: str,
    share: float = 0.5,
    by: str | None = None,
    *,
    confidence: float = 0.95,
) -> Answers:
    """Return the value below which this share of the people lies, from a number's bands.

    Within a band the density is taken as even, which is off by at most (h/8)·max|f_{k±1} − f_k|/f_k
    where it is nearly linear, h the band's width and f the density; intervals have that added on
    either side.
    """
    inside_unit_interval(share=share)
    schema, sums = moments.agreement.schema, moments.joint
    source = schema.question(name)
    declared = (one for one in schema.features if isinstance(one, Bands) and one.of == (name,))
    bands = next(declared, None)
    if bands is None or not isinstance(source, Numeric):
        raise InvalidValueError(
            f"Expected bands of {name!r} in the schema: declare Bands({name!r}, edges=…) before "
            "anything is collected."
        )
    own = levels_of(sums, bands)
    edges = np.array([source.lower, *bands.edges, source.upper])
    if by is None:
        rows: tuple[tuple[str, ...], ...] = ((name,),)
        groups = [tables.shares(tables.counts(sums, own))]
    else:
        levels = levels_of(sums, schema.question(by))
        whole = tables.shares(tables.table(sums, levels, own))
        place = np.repeat(np.arange(len(levels)), len(own))
        split = tables.within(whole, np.eye(len(levels))[:, place])
        groups, rows = [], tuple((level,) for level in levels.names)
        for at in range(len(levels)):
            groups.append(split.taken(np.flatnonzero(place == at)))
    found = [tables.quantile(one, edges, share) for one in groups]
    return Answers(
        f"Quantile {share:g} of {name}" + ("" if by is None else f" by {by}"),
        ("question",) if by is None else (by,),
        rows,
        _stacked([one for one, _ in found]),
        promise_of(moments),
        confidence,
        limits=(source.lower, source.upper),
        beyond=np.array([wide for _, wide in found]),
        assumes=(EVEN,),
    )


def odds_ratio(
    moments: Asked,
    name: str,
    other: str,
    *,
    levels: tuple[str, str] | None = None,
    others: tuple[str, str] | None = None,
    confidence: float = 0.95,
) -> Answers:
    """Return the odds ratio of two yes/no questions, or of two levels of each, with its interval.

    The interval is that of the logarithm, so it is not symmetric; the estimate's `standard_error`
    is the logarithm's.
    """
    sums, schema = moments.joint, moments.agreement.schema
    one, two = (levels_of(sums, schema.question(each)) for each in (name, other))
    chosen = []
    for part, asked in ((one, levels), (two, others)):
        names = asked or part.names[:2]
        if len(names) != 2 or len(set(names)) != 2 or not set(names) <= set(part.names):
            raise InvalidValueError(f"Expected two of {listed(part.names)}, and got {names!r}.")
        if asked is None and len(part) > 2:
            raise InvalidValueError(
                f"Expected two levels of {part.question!r} to be named, of {listed(part.names)}."
            )
        chosen.append([part.names.index(each) for each in names])
    cells = [row * len(two) + column for row in chosen[0] for column in chosen[1]]
    whole = tables.table(sums, one, two)
    four = Blurred(whole.values[cells], whole.noise[np.ix_(cells, cells)])
    return OddsRatio(
        f"Odds ratio of {name} and {other}",
        ("questions",),
        ((f"{name} × {other}",),),
        tables.log_odds_ratio(four),
        promise_of(moments),
        confidence,
    )


class OddsRatio(Answers):
    """An odds ratio, whose interval is found on the logarithmic scale."""

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the ratio and its interval; errors are the logarithm's."""
        found = super().to_dict()
        return found | {
            name: [float(np.exp(value)) for value in found[name]]
            for name in ("estimate", "lower", "upper")
        }


# ---- hypotheses about coefficients


def linear_test(model: "PublishedModel", hypotheses: str, output: str | None = None) -> Test:
    """Test linear hypotheses about a model's coefficients together, by Wald's F with the noise.

    Args:
        model: one with standard errors.
        hypotheses: as in "age = 0, hours = 2*education"; separated by commas.
        output: of several classes, which one.
    """
    found = model.inference_of(output)
    matrix, values = _equations(hypotheses, found.names)
    if np.linalg.matrix_rank(matrix) < len(matrix):
        raise InvalidValueError(
            f"Expected hypotheses that do not follow from each other, and got {hypotheses!r}."
        )
    asked = Answer(found.coefficients, found.sampling, found.privacy).through(matrix)
    moved = Answer(asked.values - values, asked.sampling, asked.privacy)
    freedom = found.count - len(found.names)
    return tables.wald(moved, np.eye(len(matrix)), hypotheses, freedom)


def _equations(text: str, names: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """Return R and c of the equations Rβ = c; names of levels have = in them, as in "region=south".

    >>> _equations("age = 0, 2*region=south - age = 3", ["(intercept)", "age", "region=south"])
    (array([[ 0.,  1.,  0.],
           [ 0., -1.,  2.]]), array([0., 3.]))
    """
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    number = r"\d+\.?\d*(?:e[-+]?\d+)?"
    term = re.compile(rf"\s*([-+]?)\s*(?:({number})\s*\*\s*)?(?:({known})|({number}))\s*")
    rows = []
    at, side = 0, 1.0
    row = np.zeros(len(names) + 1)
    while True:
        found = term.match(text, at)
        if found is None:
            break
        sign, factor, name, value = found.groups()
        size = side * (-1.0 if sign == "-" else 1.0) * float(factor or 1)
        row[names.index(name) if name else -1] += size if name else -size * float(value)
        at = found.end()
        if text[at : at + 1] == "=" and side > 0:
            at, side = at + 1, -1.0
        elif text[at : at + 1] in (",", "") and side < 0:
            rows.append(row)
            if at == len(text):
                matrix = np.array(rows)
                return matrix[:, :-1], matrix[:, -1]
            at, side, row = at + 1, 1.0, np.zeros(len(names) + 1)
        elif text[at : at + 1] not in ("+", "-"):
            break
    raise InvalidValueError(
        f"Expected equations like '2*{names[-1]} = 0', separated by commas, with coefficients "
        f"among {listed(names)}, and got {text!r}."
    )


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
            raise InvalidValueError(f"Expected another question than {name!r}, which is known.")
        told = units(schema, name, self.features)
        found = [in_units(infer(sums.submodel(each, told.names[1:])), told) for each in one.columns]
        at = np.array([1.0, *(self.known[each] for each in told.names[1:])])
        parts = [
            Answer(
                np.array([at @ each.coefficients]),
                np.array([[at @ each.sampling @ at]]),
                np.array([[at @ each.privacy @ at]]),
            )
            for each in found
        ]
        limits = (one.lower, one.upper) if isinstance(one, Numeric) else (0.0, 1.0)
        answer = _stacked(parts)
        levels = isinstance(one, Categorical)
        return Answers(
            f"{'Mean' if isinstance(one, Numeric) else 'Shares'} of {name} in the population",
            ("question",),
            tuple((each,) for each in (one.columns if levels else (name,))),
            answer,
            promise_of(self.moments),
            confidence,
            limits=limits,
            shown=tables.on_simplex(answer.values) if levels else None,
            assumes=(LINEAR,),
        )


def calibrate(moments: Asked, totals: Mapping[str, Any] | str | Path) -> Calibrated:
    """Weight a release to a population whose shares and means are known from elsewhere.

    Args:
        moments: the release.
        totals: for a question with levels the population's count or share at each, for a number
            its mean, for a yes/no the share of yes; or a JSON file with that.
    """
    if isinstance(totals, str | Path):
        totals = json.loads(Path(totals).read_text(encoding="utf-8"))
    if not isinstance(totals, Mapping) or not totals:
        raise InvalidValueError("Expected the population's totals by the name of each question.")
    schema = moments.agreement.schema
    known: dict[str, float] = {}
    for name, given in totals.items():
        known |= _known_of(schema.question(name), given)
    return Calibrated(moments, tuple(totals), known)


def _known_of(one: Question, given: Any) -> dict[str, float]:
    if any(map(is_unsaid, one.columns)):
        raise InvalidValueError(
            f"Expected a question that everybody answered, and {one.name!r} may be left unsaid: "
            "what the silent would have said is not known."
        )
    if isinstance(one, Categorical):
        if not isinstance(given, Mapping) or set(given) != set(one.levels):
            raise InvalidValueError(
                f"Expected a count or a share for each of {listed(one.levels)} of {one.name!r}."
            )
        parts = np.array([float(given[level]) for level in one.levels])
        if not np.isfinite(parts).all() or (parts < 0).any() or parts.sum() <= 0:
            raise InvalidValueError(f"Expected counts or shares of {one.name!r} of at least 0.")
        return dict(zip(one.columns, (parts / parts.sum()).tolist(), strict=True))
    lower, upper = (one.lower, one.upper) if isinstance(one, Numeric) else (0.0, 1.0)
    if isinstance(given, bool) or not isinstance(given, int | float) or not lower <= given <= upper:
        raise InvalidValueError(
            f"Expected the population's mean of {one.name!r} between {lower:g} and {upper:g}."
        )
    return {one.name: float(given)}


# ---- rows


def synthesise(
    moments: Asked,
    count: int,
    questions: Sequence[str] | None = None,
    *,
    seed: int | None = None,
) -> dict[str, list[str]]:
    """Draw rows whose tables of two are the release's, for tools that want rows.

    No standard errors can be computed from them: see `blurfit.learning.synthesis`.

    Args:
        moments: the release.
        count: how many rows.
        questions: those with levels that are wanted (default: all of them).
        seed: for the same rows again; nothing private rests on it.
    """
    whole(count=count)
    sums, schema = moments.joint, moments.agreement.schema
    asked = [one for one in moments.agreement.questions if not isinstance(one, Numeric)]
    chosen = asked if questions is None else [schema.question(name) for name in questions]
    if not chosen:
        raise InvalidValueError("Expected a question with levels: numbers are not drawn.")
    levels = [levels_of(sums, one) for one in chosen]
    law = joint_law(sums, levels)
    places = np.random.default_rng(seed).choice(law.size, size=count, p=law.ravel())
    each = np.unravel_index(places, law.shape)
    return {
        one.question: [one.names[place] for place in place_of]
        for one, place_of in zip(levels, each, strict=True)
    }


# ---- reading


def _told(value: float, error: float | None = None) -> str:
    """Return a number for people, or a dash where nothing is told."""
    return "–" if np.isnan(value) else number(value, error)


def levels_of(sums: JointSums, one: Question) -> Levels:
    """Return a question as levels; a number has none."""
    if isinstance(one, Numeric):
        raise InvalidValueError(
            f"Expected a question with levels, and {one.name!r} is a number: declare bands of it "
            "before anything is collected, or ask for its mean."
        )
    rows = tuple(sums.index(name) for name in one.columns)
    if isinstance(one, Categorical):
        return Levels(one.name, one.answers, rows, np.eye(len(rows)))
    values = np.array([[1.0, -1.0]])
    if len(rows) > 1:
        return Levels(
            one.name, ("yes", "no", "(not said)"), rows, np.array([[1.0, -1, 0], [0, 0, 1]])
        )
    return Levels(one.name, ("yes", "no"), rows, values)


def _said(sums: JointSums, one: Numeric) -> Levels | None:
    """Return who said a number at all, where it may be left unsaid."""
    if len(one.columns) == 1:
        return None
    return Levels(
        one.name, ("said", "(not said)"), (sums.index(one.columns[1]),), np.array([[0.0, 1.0]])
    )


def _means(sums: JointSums, one: Numeric, levels: Levels, *, bounded: bool) -> Answer:
    row = sums.index(one.columns[0])
    said = _said(sums, one)
    if said is None:
        people, count = tables.counts(sums, levels), float(sums.count)
    else:
        both = tables.table(sums, levels, said)
        first = np.arange(0, len(both.values), 2)
        people = Blurred(both.values[first], both.noise[np.ix_(first, first)])
        count = float(people.values.sum())
    squares = float(sums.matrix[row, row]) / sums.columns[row - 1].weight ** 2
    found = tables.means(tables.totals(sums, row, levels), people, squares, count, bounded=bounded)
    slope, constant = one.affine
    return found.scaled(1 / slope, -constant / slope)


def _overall(sums: JointSums, one: Numeric) -> Answer:
    """Return the mean of a number among those who say it."""
    everybody = Levels(one.name, ("all",), (), np.zeros((0, 1)))
    return _means(sums, one, everybody, bounded=False)


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


def promise_of(moments: Asked) -> str:
    """Return of how many people something is, and what is promised to them, in one line."""
    return f"{moments.guarantee.counted}, {moments.guarantee.numbers}"
