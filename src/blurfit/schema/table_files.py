"""Tables in files as people have them: CSV, Excel's workbooks, Parquet, a part at a time.

A file holds words, and what a word means follows from the schema. An answer may be written as the
schema writes it (0 and 1, a level), or as the survey calls it in any of its languages ("nein").

**CSV.** Spreadsheets write it as their country does. Which character separates columns is seen from
the heading, in which the schema's names must be found. Between commas, decimals have a point;
otherwise they may have a comma, and then points separate thousands. Which of the two is meant is
decided once, for all numbers of a file; where both readings are possible, the file is refused.

**Workbooks** (.xlsx): the first sheet, whose first row names the columns; needs openpyxl.

Rows are named as a spreadsheet counts them: the heading is row 1.
"""

import csv
import gzip
import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, TextIO
from zipfile import BadZipFile, ZipFile

from blurfit.data import FloatArray
from blurfit.errors import BlurfitError, InvalidValueError, optional
from blurfit.schema.columns import NO, YES, Binary, Categorical
from blurfit.schema.schema import Schema
from blurfit.schema.table import RowError
from blurfit.wording import Series

WORKBOOKS = (".xlsx", ".xlsm")
SEPARATORS = ",;\t|"
UTF8 = "utf-8-sig"  # with or without a byte-order mark
_ROWS_AT_ONCE = 10_000
_MOST_BYTES = 2**28  # that a workbook of people may unpack to
_FIRST_ROW = 2  # below the heading, as spreadsheets count
_TRUTHS = {"0": 0, "1": 1, "false": 0, "true": 1, NO: 0, YES: 1}
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+")  # 1.030, which may be 1030
_WITH_COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:[. ' ]\d{3})+|\d+)(?:,\d+)?")  # 1.030,63
# What a broken workbook may end in, somewhere below openpyxl; expat's ParseError is a SyntaxError.
_UNREADABLE = (
    *(ArithmeticError, AttributeError, BadZipFile, EOFError, LookupError, OSError, RuntimeError),
    *(SyntaxError, TypeError, ValueError, zlib.error),
)
Row = Sequence[Any]


@dataclass(frozen=True)
class TableFile:
    """The columns of a file that a schema asks for, or some of them, for those who predict."""

    path: Path
    schema: Schema
    only: tuple[str, ...] | None = None
    person: str | None = None  # the column that says whose row it is, where a person has several
    encoding: str = UTF8  # of a CSV file, by Python's name

    def __post_init__(self) -> None:
        if not self.path.is_file():
            raise InvalidValueError(
                "Expected {path!r} to be a file with a column for each of {names}.",
                path=str(self.path),
                names=Series(self.names),
            )

    @property
    def names(self) -> list[str]:
        """The columns that are read; others are left alone."""
        if self.only is None:
            whose = [] if self.person is None else [self.person]
            return list(dict.fromkeys([*(one.name for one in self.schema.asked), *whose]))
        chosen = [self.schema.question(name) for name in self.only]
        return list(dict.fromkeys(name for one in chosen for name in (one.of or (one.name,))))

    def chunks(self, rows: int = _ROWS_AT_ONCE, *, skip: int = 0) -> Iterator[dict[str, Any]]:
        """Read the table as dicts of columns, so many rows at a time."""
        if self.path.suffix.lower() == ".parquet":
            yield from self._parquet(rows, skip)
            return
        with lines_of(self.path, self._separator, self.encoding) as lines:
            heading = list(next(lines, ()))
            self._require(heading)
            places = [heading.index(name) for name in self.names]
            body, before = islice(lines, skip, None), skip
            while part := list(islice(body, rows)):
                yield self._columns(part, places, len(heading), before)
                before += len(part)

    def encoded(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Encode all rows, some at a time; refuse any that the schema refuses.

        Nothing is sent of a file before all of it has been looked at.
        """
        rows = 0
        for part in self.chunks():
            with self.located(rows):
                x, y = self.schema.encode(part)
            yield x, y
            rows += len(x)
        if not rows:
            raise InvalidValueError("Expected at least one row in {path!r}.", path=str(self.path))

    @contextmanager
    def located(self, rows: int) -> Iterator[None]:
        """Say of a refusal in which file and row it is, `rows` rows having been read before."""
        try:
            yield
        except RowError as error:
            heading = self.path.suffix.lower() != ".parquet"
            row = rows + error.row + (_FIRST_ROW if heading else 1)
            first = "heading" if heading else "first"
            raise InvalidValueError(
                "Row {row} of {path_name!r} (the {first} is row 1) has {wrong}",
                row=row,
                path_name=self.path.name,
                first=first,
                wrong=error.wrong,
            ) from None
        except InvalidValueError as error:
            raise InvalidValueError(
                "In {path_name!r}: {error}", path_name=self.path.name, error=error
            ) from None

    def digest(self) -> str:
        """Return SHA-256 of the file, to know it again."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @cached_property
    def _separator(self) -> str:
        """What separates columns: with it, most of the names are in the heading."""
        names = set(self.names)
        return separator_of(self.path, lambda one: len(set(one) & names), self.encoding)

    @cached_property
    def _decimal_comma(self) -> bool:
        """Tell whether decimals have a comma; refuse a file in which nobody could tell."""
        if self.path.suffix.lower() in WORKBOOKS or self._separator == ",":
            return False
        kinds = {one.name: one for one in self.schema.asked}
        words = Binary | Categorical | None
        numeric = [name for name in self.names if not isinstance(kinds.get(name), words)]
        grouped = plain = False
        with lines_of(self.path, self._separator, self.encoding) as lines:
            heading = list(next(lines, ()))
            places = [heading.index(name) for name in numeric if name in heading]
            for line in lines:
                for word in (line[place].strip() for place in places if place < len(line)):
                    if "," in word:
                        return True
                    grouped |= bool(_GROUPED.fullmatch(word))
                    plain |= "." in word and not _GROUPED.fullmatch(word)
        if grouped and not plain:
            raise InvalidValueError(
                "Expected numbers of one meaning in {path_name!r}: each point in them stands "
                "before three digits, so it may separate thousands, or decimals. Save the numbers "
                "without separators of thousands.",
                path_name=self.path.name,
            )
        return False

    def _columns(
        self, lines: Sequence[Row], places: Sequence[int], width: int, first: int
    ) -> dict[str, Any]:
        for row, line in enumerate(lines):
            if len(line) != width:
                raise InvalidValueError(
                    "Expected {width} values in each row of {path_name!r}, as in its "
                    "heading, and row {first} has {line_count}.",
                    width=width,
                    path_name=self.path.name,
                    first=first + row + _FIRST_ROW,
                    line_count=len(line),
                )
        kinds = {one.name: one for one in self.schema.asked}
        readers = [self._reader(kinds.get(name)) for name in self.names]
        return {
            name: [None if line[place] == "" else read(line[place]) for line in lines]
            for name, place, read in zip(self.names, places, readers, strict=True)
        }

    def _reader(self, column: Any) -> Callable[[Any], Any]:
        """Return how a word of a column is read; the schema refuses what cannot be."""
        if column is None:  # a person's name
            return word_of
        if isinstance(column, Binary):
            known = {**_called(column, {NO: 0, YES: 1}), **_TRUTHS}
            return lambda cell: known.get(word_of(cell).casefold(), cell) if word_of(cell) else None
        if isinstance(column, Categorical):
            called = _called(column, {level: level for level in column.levels})
            levels = set(column.levels)

            def level(cell: Any) -> Any:
                word = word_of(cell)
                return word if word in levels else called.get(word.casefold(), word or None)

            return level
        return _with_comma if self._decimal_comma else _number

    def _parquet(self, rows: int, skip: int) -> Iterator[dict[str, Any]]:
        parquet = optional("pyarrow.parquet")
        try:
            with parquet.ParquetFile(self.path) as file:
                self._require(file.schema_arrow.names)
                for batch in file.iter_batches(batch_size=rows, columns=self.names):
                    dropped = min(skip, batch.num_rows)
                    skip -= dropped
                    if dropped < batch.num_rows:
                        part = batch.slice(dropped)
                        yield {name: part.column(name) for name in self.names}
        except BlurfitError:
            raise
        except (OSError, ValueError):
            raise InvalidValueError(
                "Expected {path!r} to be a Parquet file whose columns can be read.",
                path=str(self.path),
            ) from None

    def _require(self, present: Iterable[Any]) -> None:
        here = list(present)
        if twice := [name for name in self.names if here.count(name) > 1]:
            raise InvalidValueError(
                "Expected the columns {twice} once in {path_name!r}; rename or drop the others.",
                twice=Series(twice),
                path_name=self.path.name,
            )
        if absent := [name for name in self.names if name not in here]:
            raise InvalidValueError(
                "Expected the columns {absent} in {path_name!r}, and none of its "
                "{here_count} columns is called so. Does the first row name the columns?",
                absent=Series(absent),
                path_name=self.path.name,
                here_count=len(here),
            )


@contextmanager
def lines_of(path: Path, separator: str, encoding: str = UTF8) -> Iterator[Iterator[Row]]:
    """Open a CSV file or a workbook, and yield its rows, blank ones left out: the heading first."""
    if path.suffix.lower() in WORKBOOKS:
        with workbook(path, _MOST_BYTES) as book:
            rows = book.worksheets[0].iter_rows(values_only=True)
            cells = ([_plain(cell) for cell in row] for row in rows)
            yield (row for row in cells if any(cell != "" for cell in row))
        return
    with _opened(path, encoding) as file:
        yield (line for line in csv.reader(file, delimiter=separator) if line)


def separator_of(path: Path, worth: Callable[[list[str]], int], encoding: str = UTF8) -> str:
    """Return what separates a file's columns: with it, the heading is worth most."""
    if path.suffix.lower() in WORKBOOKS:
        return ","
    with _opened(path, encoding) as file:
        first = next((line for line in file if line.strip()), "")
        read = {one: next(csv.reader([first], delimiter=one), []) for one in SEPARATORS}
    return max(read, key=lambda one: worth([word.strip() for word in read[one]]))


@contextmanager
def _opened(path: Path, encoding: str) -> Iterator[TextIO]:
    """Open a text, which may be compressed; refuse what is none."""
    try:
        "".encode(encoding)
    except (LookupError, ValueError):
        raise InvalidValueError(
            "`encoding` must name an encoding of texts, such as cp1252, got {encoding!r}.",
            encoding=encoding,
        ) from None
    packed = path.suffix.lower() == ".gz"
    try:
        with (gzip.open if packed else open)(path, "rt", newline="", encoding=encoding) as file:
            yield file
    except (csv.Error, UnicodeError, gzip.BadGzipFile, EOFError):
        raise InvalidValueError(
            "Expected {path!r} to be a CSV file in UTF-8, an Excel workbook (.xlsx) or a "
            "Parquet file (.parquet). Spreadsheets save the first as “CSV UTF-8”; of older ones, "
            "`init`, `contribute` and `predict` take the encoding, often `--encoding cp1252`.",
            path=str(path),
        ) from None


@contextmanager
def workbook(path: Path, most_bytes: int) -> Iterator[Any]:
    """Open an Excel workbook from anywhere: a zip archive of XML.

    What it says to unpack to is bounded first, and no more than that is ever unpacked.
    """
    openpyxl = optional("openpyxl")
    try:
        with path.open("rb") as file:
            size = sum(one.file_size for one in ZipFile(file).infolist())
            if size > most_bytes:
                raise InvalidValueError(
                    "Expected {path_name!r} to unpack to at most {most_bytes:,} bytes, and it "
                    "says {size:,}. Leave out pictures and other sheets, or save it as CSV.",
                    path_name=path.name,
                    most_bytes=most_bytes,
                    size=size,
                )
            yield openpyxl.load_workbook(file, read_only=True, data_only=True)
    except BlurfitError:
        raise
    except _UNREADABLE as error:
        raise InvalidValueError(
            "Expected {path_name!r} to be a workbook that can be read ({name}).",
            path_name=path.name,
            name=type(error).__name__,
        ) from None


def _plain(cell: Any) -> Any:
    """Return a cell as a number, a truth value or a word; "" where it is empty."""
    if isinstance(cell, bool | int | float):
        return cell
    return "" if cell is None else str(cell).strip()


def _called(column: Any, answers: dict[str, Any]) -> dict[str, Any]:
    """Return what each answer is called, in any language; what two are called, neither is."""
    found: dict[str, set[Any]] = {}
    for answer, text in column.wording.labels:
        for _, words in text.languages:
            found.setdefault(words.strip().casefold(), set()).add(answers[answer])
    return {words: next(iter(meant)) for words, meant in found.items() if len(meant) == 1}


def word_of(cell: Any) -> str:
    """Return how a level writes a cell: 7 and 7.0 as "7"."""
    whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell) if whole else cell).strip()


def _number(cell: Any) -> Any:
    """Read a number as programs write it; Python's own digit groups (1_000) are not CSV's."""
    word = cell.strip() if isinstance(cell, str) else cell
    if word == "":
        return None
    try:
        return word if isinstance(word, str) and "_" in word else float(word)
    except ValueError:
        return word


def _with_comma(cell: str) -> Any:
    """Read a number whose decimals have a comma: 1.030,63."""
    word = cell.strip()
    if not _WITH_COMMA.fullmatch(word):
        return _number(word)
    return float(re.sub("[. ' ]", "", word).replace(",", "."))
