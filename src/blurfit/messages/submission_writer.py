"""Write submissions to a Parquet or Arrow file, as `messages.submission_files` reads them."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from blurfit.arrays import ByteArray, FloatArray
from blurfit.errors import InvalidValueError
from blurfit.messages.layout import Layout
from blurfit.messages.submission_files import SUFFIXES, arrow_schema, rows_at_once
from blurfit.messages.submissions import Submissions
from blurfit.optional import optional
from blurfit.private_files import replacing


@dataclass
class Writer:
    """Writes submissions to a new file, and gives it its name at the end.

    If an error leaves it, nothing remains. `path` ends in .parquet or .arrow, and is for its owner
    alone; `before` is told when all is written and nothing has that name yet
    (`blurfit.private_files.replacing`).
    """

    path: Path
    layout: Layout
    released: str | None = None
    held: bool = False
    before: Callable[[str], object] | None = None
    rows: int = 0
    _waiting: list[tuple[ByteArray, FloatArray]] = field(default_factory=list)
    _kept: int = 0

    def __enter__(self) -> Self:
        if self.path.suffix.lower() not in SUFFIXES:
            raise InvalidValueError(
                f"Expected {str(self.path)!r} to end in one of {', '.join(SUFFIXES)}."
            )
        pa = optional("pyarrow")
        self._schema = arrow_schema(self.layout, self.released, held=self.held)
        self._open = ExitStack()
        part = self._open.enter_context(replacing(self.path, before=self.before))
        stream = self._open.enter_context(pa.OSFile(str(part), "wb"))
        if self.path.suffix.lower() == ".parquet":
            self._file = optional("pyarrow.parquet").ParquetWriter(
                stream,
                self._schema,
                compression="none",
                use_dictionary=False,
                write_statistics=False,
                write_page_checksum=True,
            )
        else:
            self._file = pa.ipc.new_file(stream, self._schema)
        return self

    def append(self, identifiers: ByteArray, numbers: FloatArray) -> None:
        """Some more rows; they are written when there are enough for a row group."""
        most = rows_at_once(self.layout)
        start = 0
        while start < len(identifiers):
            part = slice(start, start + most - self._kept)
            self._waiting.append((identifiers[part], numbers[part]))
            self._kept += len(identifiers[part])
            start += len(identifiers[part])
            if self._kept == most:
                self._write()
        self.rows += len(identifiers)

    def add(self, table: Submissions) -> None:
        """Some more submissions."""
        self.append(table.identifiers, table.numbers)

    def _write(self) -> None:
        identifiers, numbers = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        self._waiting, self._kept = [], 0
        batch = _batch(self._schema, identifiers, numbers)
        if self.path.suffix.lower() == ".parquet":
            self._file.write_batch(batch, row_group_size=len(identifiers))
        else:
            self._file.write_batch(batch)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            with self._open:
                if self._waiting:
                    self._write()
                self._file.close()
            return
        try:
            self._file.close()
        finally:
            self._open.__exit__(kind, error, trace)


def _batch(schema: Any, identifiers: ByteArray, numbers: FloatArray) -> Any:
    pa = optional("pyarrow")
    rows = len(identifiers)
    numbers = np.ascontiguousarray(numbers, dtype=np.float64)
    identifier = pa.FixedSizeBinaryArray.from_buffers(
        schema.field(0).type, rows, [None, pa.py_buffer(np.ascontiguousarray(identifiers))]
    )
    items = pa.Array.from_buffers(
        pa.float64(), numbers.size, [None, pa.py_buffer(numbers)], null_count=0
    )
    listed = pa.FixedSizeListArray.from_arrays(items, type=schema.field(1).type)
    return pa.record_batch([identifier, listed], schema=schema)
