"""Submissions in files, Parquet or Arrow, for those who move many at a time.

| column | type |
| --- | --- |
| `identifier` | fixed_size_binary(16) |
| `numbers` | fixed_size_list<float64>[k], for NumPy in place |

| metadata | value |
| --- | --- |
| `blurfit.format`, `blurfit.version` | "blurfit-submissions", "1" |
| `blurfit.fingerprint` | the agreement's |
| `blurfit.released` | only where a model has been published from them: which one |
| `blurfit.held` | "yes", only where whoever wrote the file held the records themselves |

Row groups (Arrow: record batches) hold at most 8 MiB, uncompressed. Parquet pages carry a checksum,
which is verified. A file takes its name when it is complete.

**Files of strangers** take memory in proportion to their size, whatever they claim. Identifiers are
16 random bytes, so a file has at most a sixteenth as many rows as bytes. What its two columns
unpack to is bounded by their rows, and other columns are not read. A compressed Arrow file is
refused, because only Parquet states its unpacked size. Tested by
`tests/messages/test_submission_files.py`.
"""

import os
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from blurfit.data import ByteArray, FloatArray
from blurfit.errors import BlurfitError, InvalidValueError, optional
from blurfit.messages.submissions import Layout, Submissions
from blurfit.private_files import replacing
from blurfit.wording import Series

FORMAT, VERSION = "blurfit-submissions", "1"
GROUP_BYTES, MOST_ROWS = 8 * 2**20, 2**16
SUFFIXES = (".parquet", ".arrow")
_KEY = "blurfit."
_COLUMNS = ["identifier", "numbers"]
_LEVELS_BYTES = 2**20  # of Parquet's own, beside the values of a row group


def rows_at_once(layout: Layout) -> int:
    """Return how many rows a row group has at most."""
    return max(1, min(MOST_ROWS, GROUP_BYTES // (16 + 8 * layout.width)))


def arrow_schema(layout: Layout, released: str | None, *, held: bool = False) -> Any:
    """Return the columns of a file under an agreement, and its metadata."""
    pa = optional("pyarrow")
    item = pa.field("item", pa.float64(), nullable=False)
    words = {"format": FORMAT, "version": VERSION, "fingerprint": layout.fingerprint}
    words |= {} if released is None else {"released": released}
    words |= {"held": "yes"} if held else {}
    return pa.schema(
        [
            pa.field("identifier", pa.binary(16), nullable=False),
            pa.field("numbers", pa.list_(item, layout.width), nullable=False),
        ],
        metadata={_KEY + name: word for name, word in words.items()},
    )


class SubmissionFile:
    """A file of submissions of one layout; anything else is refused, with the file's name.

    The stream is open for reading, and is closed with this object.
    """

    def __init__(self, name: str, stream: Any, layout: Layout) -> None:
        self.name, self._layout, self._stream = name, layout, stream
        try:
            with self._readable("its end, which describes it"):
                start = stream.read(6)
                stream.seek(0)
                self._is_parquet = start[:4] == b"PAR1"
                if self._is_parquet:
                    self._file = optional("pyarrow.parquet").ParquetFile(
                        stream, page_checksum_verification=True
                    )
                    about = self._file.metadata
                    groups = [about.row_group(one) for one in range(about.num_row_groups)]
                    self._rows = [group.num_rows for group in groups]
                elif start == b"ARROW1":
                    self._rows = _batch_rows(name, stream)
                    stream.seek(0)
                    self._file = optional("pyarrow").ipc.open_file(stream)
                else:
                    _refuse(name, start)
                self.groups = len(self._rows)
                size = stream.seek(0, os.SEEK_END)
            self.released, self.held = self._check(
                self._file.schema_arrow if self._is_parquet else self._file.schema
            )
            self._refuse_more_than_fits(size)
        except BaseException:
            self.close()
            raise

    def rows(self, group: int) -> int:
        """Return how many rows a group has."""
        return int(self._rows[group])

    def all_rows(self) -> int:
        """Return how many rows the file has."""
        return sum(self._rows)

    def parts(self, group: int) -> Iterator[tuple[ByteArray, FloatArray]]:
        """Yield identifiers and numbers of a group's rows, as many at a time as fit one of ours."""
        most = rows_at_once(self._layout)
        with self._readable(f"row group {group}"):
            for batch in self._batches(group, most):
                for start in range(0, batch.num_rows, most):
                    yield self._arrays(batch.slice(start, most), group)

    def _batches(self, group: int, most: int) -> Iterator[Any]:
        if not self._is_parquet:
            batch = self._file.get_batch(group)
            batch.validate(full=True)
            yield batch
        elif self.rows(group) <= most:
            table = self._file.read_row_group(group, _COLUMNS, use_threads=False)
            yield from table.to_batches()
        else:
            yield from self._file.iter_batches(
                most, row_groups=[group], columns=_COLUMNS, use_threads=False
            )

    def _arrays(self, batch: Any, group: int) -> tuple[ByteArray, FloatArray]:
        rows, width = batch.num_rows, self._layout.width
        identifiers, listed = batch.column("identifier"), batch.column("numbers")
        numbers = listed.flatten()
        if identifiers.null_count or listed.null_count or numbers.null_count:
            raise InvalidValueError(
                "Expected no empty values in row group {group} of {name!r}.",
                group=group,
                name=self.name,
            )
        offset, data = identifiers.offset, identifiers.buffers()[1]
        flat = np.frombuffer(data, dtype=np.uint8, count=16 * (offset + rows))
        return (
            flat[16 * offset :].reshape(rows, 16),
            numbers.to_numpy(zero_copy_only=True).reshape(rows, width),
        )

    def _check(self, schema: Any) -> tuple[str | None, bool]:
        """Refuse a file of another kind, version or agreement; return which model was released from
        it, and whether its writer held the records.
        """
        found = {
            key.decode().removeprefix(_KEY): value.decode(errors="replace")
            for key, value in (schema.metadata or {}).items()
            if key.startswith(_KEY.encode())
        }
        layout, named = self._layout, f"in the metadata of {self.name!r}"
        if (found.get("format"), found.get("version")) != (FORMAT, VERSION):
            raise InvalidValueError(
                "Expected format={number!r}, version={number_2!r} "
                "{named} to be {format!r}, {version!r}: it holds no submissions, or those of "
                "another version of blurfit.",
                number=found.get("format"),
                number_2=found.get("version"),
                named=named,
                format=FORMAT,
                version=VERSION,
            )
        if found.get("fingerprint") != layout.fingerprint:
            raise InvalidValueError(
                "Expected fingerprint={number!r} {named} to be "
                "{layout_fingerprint!r}: its submissions were made for another agreement.",
                number=found.get("fingerprint"),
                named=named,
                layout_fingerprint=layout.fingerprint,
            )
        expected = arrow_schema(layout, None)
        fits = all(
            schema.get_field_index(field.name) >= 0
            and _same_type(schema.field(field.name).type, field.type)
            for field in expected
        )
        if not fits:
            wanted, got = (
                ", ".join(f"{field.name}: {field.type}" for field in one)
                for one in (expected, schema)
            )
            raise InvalidValueError(
                "Expected submissions of {width} numbers in {name!r}, with the "
                "columns {wanted}, and got {got}.",
                width=layout.width,
                name=self.name,
                wanted=wanted,
                got=got,
            )
        return found.get("released"), "held" in found

    def _refuse_more_than_fits(self, size: int) -> None:
        """Refuse a file that says it holds more than a file of its size can hold honestly."""
        if min(self._rows, default=0) < 0 or 16 * self.all_rows() > size:
            raise InvalidValueError(
                "Expected at most {size:,} rows in {name!r}, and it says "
                "{all_rows:,}: so many different submissions do not fit into its "
                "{size_2:,} bytes.",
                size=size // 16,
                name=self.name,
                all_rows=self.all_rows(),
                size_2=size,
            )
        if not self._is_parquet:
            return
        for group, rows in enumerate(self._rows):
            about = self._file.metadata.row_group(group)
            columns = [about.column(place) for place in range(about.num_columns)]
            read = [one for one in columns if one.path_in_schema.split(".")[0] in _COLUMNS]
            unpacked = sum(one.total_uncompressed_size for one in read)
            if not 0 <= unpacked <= 2 * rows * (16 + 8 * self._layout.width) + _LEVELS_BYTES:
                raise InvalidValueError(
                    "Expected row group {group} of {name!r} to unpack to what its {rows:,} "
                    "rows take, and it says {unpacked:,} bytes.",
                    group=group,
                    name=self.name,
                    rows=rows,
                    unpacked=unpacked,
                )

    @contextmanager
    def _readable(self, what: str) -> Iterator[None]:
        pa = optional("pyarrow")
        try:
            yield
        except BlurfitError:
            raise
        except (OSError, pa.ArrowException, ValueError, OverflowError, struct.error) as error:
            raise InvalidValueError(
                "Cannot read {what}, in {name!r}: it was cut short or damaged "
                "({split}). Get the file again from where it was made.",
                what=what,
                name=self.name,
                split=Series(str(error).split(), " "),
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _refuse(name: str, start: bytes) -> None:
    raise InvalidValueError(
        "Expected {name!r} to be a Parquet or Arrow file of submissions, and it begins with "
        "{start!r}. `blurfit export` and `blurfit contribute --out` write such files.",
        name=name,
        start=start,
    )


def open_submissions(path: Path, layout: Layout) -> SubmissionFile:
    """Open a file of this machine."""
    return SubmissionFile(str(path), optional("pyarrow").OSFile(str(path)), layout)


def _batch_rows(name: str, stream: Any) -> list[int]:
    """Return how many rows each batch of an Arrow file has, by its descriptions alone.

    The file ends with its footer, whose fourth field lists the batches: where the description of
    each begins, and how long it is. A description's third field is the batch: its first field says
    how many rows it has, its fourth that it is compressed. (Arrow's Message.fbs and File.fbs.)
    """
    size = stream.seek(0, os.SEEK_END)
    footer = _bytes_at(stream, size - 10, 10)
    (length,) = struct.unpack_from("<i", footer)
    footer = _bytes_at(stream, size - 10 - length, length)
    blocks = _followed(footer, _field(footer, _followed(footer, 0), 3))
    (count,) = struct.unpack_from("<I", footer, blocks)
    found = []
    for block in range(count):
        start, length = struct.unpack_from("<qi", footer, blocks + 4 + 24 * block)
        message = _bytes_at(stream, start + 8, length - 8)
        batch = _followed(message, _field(message, _followed(message, 0), 2))
        if _field(message, batch, 3):
            raise InvalidValueError(
                "Expected {name!r} not to be compressed: write it as Parquet to compress it.",
                name=name,
            )
        rows = _field(message, batch, 0)
        found.append(struct.unpack_from("<q", message, rows)[0] if rows else 0)
    return found


def _bytes_at(stream: Any, start: int, length: int) -> bytes:
    if start < 0 or not 0 <= length <= GROUP_BYTES:
        raise ValueError("a description of impossible length")
    stream.seek(start)
    return bytes(stream.read(length))


def _followed(data: bytes, place: int) -> int:
    """Return where an offset of FlatBuffers points to."""
    return place + int(struct.unpack_from("<I", data, place)[0])


def _field(data: bytes, table: int, number: int) -> int:
    """Return where a field of a table of FlatBuffers is; 0 if it has its default."""
    fields = table - struct.unpack_from("<i", data, table)[0]
    (size,) = struct.unpack_from("<H", data, fields)
    if 4 + 2 * number >= size:
        return 0
    (offset,) = struct.unpack_from("<H", data, fields + 4 + 2 * number)
    return table + int(offset) if offset else 0


def _same_type(found: Any, expected: Any) -> bool:
    """Tell whether two types hold the same values: some writers do not say that none is missing."""
    pa = optional("pyarrow")
    if not pa.types.is_fixed_size_list(expected):
        return bool(found == expected)
    return bool(
        pa.types.is_fixed_size_list(found)
        and found.list_size == expected.list_size
        and found.value_type == expected.value_type
    )


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

    def __enter__(self) -> Self:
        if self.path.suffix.lower() not in SUFFIXES:
            raise InvalidValueError(
                "Expected {path!r} to end in one of {suffixes}.",
                path=str(self.path),
                suffixes=Series(SUFFIXES),
            )
        pa = optional("pyarrow")
        self._schema = arrow_schema(self.layout, self.released, held=self.held)
        self._open = ExitStack()
        part = self._open.enter_context(replacing(self.path, before=self.before))
        stream = self._open.enter_context(pa.OSFile(str(part), "wb"))
        self._is_parquet = self.path.suffix.lower() == ".parquet"
        if self._is_parquet:
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
        """Add rows; they are written when there are enough for a row group."""
        most, start = rows_at_once(self.layout), 0
        while start < len(identifiers):
            part = slice(start, start + most - self.rows % most)
            self._waiting.append((identifiers[part], numbers[part]))
            self.rows += len(identifiers[part])
            start = part.stop
            if self.rows % most == 0:
                self._write()

    def add(self, table: Submissions) -> None:
        """Add submissions."""
        self.append(table.identifiers, table.numbers)

    def _write(self) -> None:
        identifiers, numbers = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        self._waiting = []
        options = {"row_group_size": len(identifiers)} if self._is_parquet else {}
        self._file.write_batch(_batch(self._schema, identifiers, numbers), **options)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None and self._waiting:
                self._write()
            self._file.close()
        except BaseException as other:
            self._open.__exit__(type(other), other, other.__traceback__)
            raise
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
