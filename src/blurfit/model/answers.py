"""What was asked of a release or of a model: numbers with errors, for people and for other tools.

Each answer prints as a table, draws itself, becomes a DataFrame, CSV or a workbook, says what it
assumes, and has the test that belongs to it. Numbers that are told on a curve (an odds ratio is
e to a difference of log-odds, a probability the logistic curve of one) have intervals that are
found before the curve and then bent with it, which keeps them within its range; their standard
errors are those before it times its slope, to first order.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.special import expit, ndtri, stdtrit

from blurfit.data import FloatArray, html_table
from blurfit.errors import InfeasibleError, InvalidValueError, axes, optional
from blurfit.learning.tables import Answer, Test
from blurfit.model.summary import aligned, number

NUMBERS = ("estimate", "standard_error", "privacy_error", "lower", "upper")
Bend = Literal["", "exponential", "logistic"]


@dataclass(frozen=True, eq=False)
class Answers:
    """Numbers with errors, a row for each level, person or coefficient.

    Attributes:
        title: what was asked.
        keys: the names of the columns that say what a row is of.
        rows: those, row by row.
        answer: values with the two parts of their covariance, before the curve.
        promise: to whom what is promised.
        confidence: of the intervals.
        limits: what every value lies between, by its definition; intervals are cut there.
        shown: values for display, if not the unbiased ones: at least 0, and consistent.
        beyond: what is added to each interval on either side, for what is not random.
        assumes: sentences that say what the errors rest on.
        hypothesis: the test that `test()` gives, if there is one.
        curve: on which the numbers are told.
        freedom: of Student's law, that intervals are of; infinite for the normal law.
        line: where the rows lie on an axis, if they are points of a curve.
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
    curve: Bend = ""
    freedom: float = np.inf
    line: FloatArray | None = None

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
        numbers = {
            "estimate": middle if self.shown is None else self.shown,
            "standard_error": errors * slope,
            "privacy_error": of_noise * slope,
            "lower": lower,
            "upper": upper,
        }
        keys = {key: [row[place] for row in self.rows] for place, key in enumerate(self.keys)}
        return keys | {name: numbers[name].tolist() for name in NUMBERS}

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
        """Draw each value with its interval, or a curve with its band; return the axes."""
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

    @property
    def _cells(self) -> list[tuple[str, ...]]:
        columns = self.to_dict()
        errors = columns["standard_error"]
        cells = [
            [_told(value, error) for value, error in zip(columns[name], errors, strict=True)]
            if name in ("estimate", "lower", "upper")
            else [_told(value) for value in columns[name]]
            for name in NUMBERS
        ]
        numbers = zip(*cells, strict=True)
        return [(*row, *rest) for row, rest in zip(self.rows, numbers, strict=True)]

    @property
    def _head(self) -> tuple[str, ...]:
        return (*self.keys, "estimate", "std. error", "of it privacy", "lower", "upper")

    def __str__(self) -> str:
        text = aligned([self._head, *self._cells], len(self.keys))
        return "\n".join([self.title, *text, "", *self.notes])

    def _repr_html_(self) -> str:
        below = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return html_table(self._head, self._cells, caption=self.title) + below


def _told(value: float, error: float | None = None) -> str:
    """Return a number for people, or a dash where nothing is told."""
    return "–" if np.isnan(value) else number(value, error)


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
        raise InvalidValueError(f"Expected a path that ends in .csv or .xlsx, and got {path!s}.")
    optional("openpyxl")
    pandas = optional("pandas")
    with pandas.ExcelWriter(path, engine="openpyxl") as book:
        frame.to_excel(book, sheet_name="rows", index=False)
        pandas.DataFrame({"notes": [*([warning] if warning else []), *notes]}).to_excel(
            book, sheet_name="notes", index=False
        )
