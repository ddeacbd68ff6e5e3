"""Tables in files, a part at a time: CSV with Python alone, Parquet where pyarrow is installed.

A CSV file holds words. What a word means follows from the schema: a number where it says numeric, 0
or 1 (or false and true) where it says binary, the word itself where it says categorical.
"""

import csv
import gzip
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from blurfit.arrays import FloatArray
from blurfit.errors import BlurfitError, InvalidValueError
from blurfit.optional import optional
from blurfit.schema.columns import Binary, Categorical
from blurfit.schema.schema import Schema

_TRUTHS = {"0": 0, "1": 1, "false": 0, "true": 1}
_ROWS_AT_ONCE = 10_000


@dataclass(frozen=True)
class TableFile:
    """The columns of a file that a schema asks for, or some of them, for those who predict."""

    path: Path
    schema: Schema
    only: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not self.path.is_file():
            raise InvalidValueError(
                f"Expected {str(self.path)!r} to be a file with a column for each of "
                f"{', '.join(self.names)}."
            )

    @property
    def names(self) -> list[str]:
        """The columns that are read; others are left alone."""
        if self.only is None:
            return [one.name for one in self.schema.asked]
        chosen = [self.schema.question(name) for name in self.only]
        return list(dict.fromkeys(name for one in chosen for name in (one.of or (one.name,))))

    def chunks(self, rows: int = _ROWS_AT_ONCE, *, skip: int = 0) -> Iterator[dict[str, Any]]:
        """Read the table as dicts of columns, so many rows at a time."""
        if self.path.suffix.lower() == ".parquet":
            yield from self._parquet(rows, skip)
        else:
            yield from self._csv(rows, skip)

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
            raise InvalidValueError(f"Expected at least one row in {str(self.path)!r}.")

    @contextmanager
    def located(self, rows: int) -> Iterator[None]:
        """Say of a refusal in which file it is, and from which row its rows are counted."""
        try:
            yield
        except InvalidValueError as error:
            raise InvalidValueError(
                f"In {self.path.name!r}, counting from row {rows} (the first below the heading is "
                f"row 0): {error}"
            ) from None

    def digest(self) -> str:
        """Return SHA-256 of the file, to know it again."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def _csv(self, rows: int, skip: int) -> Iterator[dict[str, Any]]:
        try:
            with self._opened() as file:
                lines = csv.reader(file)
                heading = next(lines, [])
                self._require(heading)
                places = [heading.index(name) for name in self.names]
                rows_before = skip
                body = islice((line for line in lines if line), skip, None)
                while part := list(islice(body, rows)):
                    yield self._columns(part, places, len(heading), rows_before)
                    rows_before += len(part)
        except (csv.Error, UnicodeError, gzip.BadGzipFile, EOFError):
            raise InvalidValueError(
                f"Expected {str(self.path)!r} to be a CSV file in UTF-8."
            ) from None

    def _opened(self) -> TextIO:
        if self.path.suffix.lower() == ".gz":
            return gzip.open(self.path, "rt", newline="", encoding="utf-8-sig")
        return self.path.open(newline="", encoding="utf-8-sig")

    def _columns(
        self, lines: Sequence[Sequence[str]], places: Sequence[int], width: int, first: int
    ) -> dict[str, Any]:
        for row, line in enumerate(lines):
            if len(line) != width:
                raise InvalidValueError(
                    f"Expected {width} values in each row of {self.path.name!r}, as in its "
                    f"heading, and row {first + row} has {len(line)}."
                )
        kinds = {one.name: one for one in self.schema.questions}
        return {
            name: [_value(kinds[name], line[place].strip()) for line in lines]
            for name, place in zip(self.names, places, strict=True)
        }

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
        except (OSError, ValueError) as error:
            if isinstance(error, BlurfitError):
                raise
            raise InvalidValueError(
                f"Expected {str(self.path)!r} to be a Parquet file whose columns can be read."
            ) from None

    def _require(self, present: Iterable[str]) -> None:
        here = list(present)
        if twice := [name for name in self.names if here.count(name) > 1]:
            raise InvalidValueError(
                f"Expected the columns {', '.join(twice)} once in {self.path.name!r}; rename or "
                "drop the others."
            )
        if absent := [name for name in self.names if name not in here]:
            raise InvalidValueError(
                f"Expected the columns {', '.join(absent)} in {self.path.name!r}, and none of its "
                f"{len(here)} columns is called so. Does the first line name the columns?"
            )


def _value(column: object, word: str) -> Any:
    """Read a word as what the column holds; what cannot be read stays a word, which the schema
    refuses.
    """
    if not word:
        return None
    if isinstance(column, Categorical):
        return word
    if isinstance(column, Binary):
        return _TRUTHS.get(word.lower(), word)
    try:
        return word if "_" in word else float(word)  # Python's own digit groups are not CSV's
    except ValueError:
        return word
