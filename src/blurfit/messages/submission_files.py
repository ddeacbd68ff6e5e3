"""Submissions in files: Parquet, or Arrow's own format, for those who move many at a time.

| column | type |
| --- | --- |
| `identifier` | fixed_size_binary(16) |
| `numbers` | fixed_size_list<float64>[k], for NumPy in place |

The file's metadata say what the numbers are:

| key | value |
| --- | --- |
| `blurfit.format`, `blurfit.version` | "blurfit-submissions", "1" |
| `blurfit.fingerprint` | the agreement's |
| `blurfit.released` | only where a model has been published from them: which one |
| `blurfit.held` | "yes", only where whoever wrote the file held the records themselves |

Row groups (Arrow: record batches) hold at most 8 MiB. Noise cannot be compressed, so nothing is;
Parquet pages carry a checksum, which is verified. A file is written under another name and renamed
when it is complete, so there are no half-written ones.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np

from blurfit.arrays import ByteArray, FloatArray
from blurfit.errors import BlurfitError, InvalidValueError
from blurfit.messages.layout import Layout
from blurfit.optional import optional

FORMAT, VERSION = "blurfit-submissions", "1"
GROUP_BYTES, MOST_ROWS = 8 * 2**20, 2**16
SUFFIXES = (".parquet", ".arrow")
_KEY = "blurfit."


def rows_at_once(layout: Layout) -> int:
    """How many rows a row group has at most."""
    return max(1, min(MOST_ROWS, GROUP_BYTES // (16 + 8 * layout.width)))


def arrow_schema(layout: Layout, released: str | None, *, held: bool = False) -> Any:
    """The columns of a file under an agreement, and its metadata."""
    pa = optional("pyarrow")
    item = pa.field("item", pa.float64(), nullable=False)
    words = {
        "format": FORMAT,
        "version": VERSION,
        "fingerprint": layout.fingerprint,
    }
    if released is not None:
        words["released"] = released
    if held:
        words["held"] = "yes"
    return pa.schema(
        [
            pa.field("identifier", pa.binary(16), nullable=False),
            pa.field("numbers", pa.list_(item, layout.width), nullable=False),
        ],
        metadata={_KEY + name: word for name, word in words.items()},
    )


class SubmissionFile:
    """A file of submissions under one agreement; anything else is refused, with its name.

    Args:
        name: what the file is called in messages.
        stream: the file, open for reading; it is closed with this object.
        layout: what the submissions must be of.
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
                    self.groups = self._file.num_row_groups
                elif start == b"ARROW1":
                    self._file = optional("pyarrow").ipc.open_file(stream)
                    self.groups = self._file.num_record_batches
                else:
                    _refuse(name, start)
            self.released, self.held = self._check(
                self._file.schema_arrow if self._is_parquet else self._file.schema
            )
        except BaseException:
            self.close()
            raise

    def rows(self, group: int) -> int:
        """How many rows a group has."""
        if self._is_parquet:
            return int(self._file.metadata.row_group(group).num_rows)
        with self._readable(f"row group {group}"):
            return int(self._file.get_batch(group).num_rows)

    def all_rows(self) -> int:
        """How many rows the file has."""
        if self._is_parquet:
            return int(self._file.metadata.num_rows)
        return sum(self.rows(group) for group in range(self.groups))

    def parts(self, group: int) -> Iterator[tuple[ByteArray, FloatArray]]:
        """The identifiers and numbers of a group's rows, as many at a time as fit
        one of ours.
        """
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
            table = self._file.read_row_group(group, use_threads=False)
            yield from table.to_batches()
        else:
            yield from self._file.iter_batches(most, row_groups=[group], use_threads=False)

    def _arrays(self, batch: Any, group: int) -> tuple[ByteArray, FloatArray]:
        rows, width = batch.num_rows, self._layout.width
        identifiers, listed = batch.column("identifier"), batch.column("numbers")
        numbers = listed.flatten()
        if identifiers.null_count or listed.null_count or numbers.null_count:
            raise InvalidValueError(
                f"Expected no empty values in row group {group} of {self.name!r}."
            )
        offset, data = identifiers.offset, identifiers.buffers()[1]
        flat = np.frombuffer(data, dtype=np.uint8, count=16 * (offset + rows))
        return (
            flat[16 * offset :].reshape(rows, 16),
            numbers.to_numpy(zero_copy_only=True).reshape(rows, width),
        )

    def _check(self, schema: Any) -> tuple[str | None, bool]:
        """Refuse a file of another kind, version or agreement; which model was released from it,
        and whether its writer held the records.
        """
        found = {
            key.decode().removeprefix(_KEY): value.decode(errors="replace")
            for key, value in (schema.metadata or {}).items()
            if key.startswith(_KEY.encode())
        }
        layout, named = self._layout, f"in the metadata of {self.name!r}"
        if (found.get("format"), found.get("version")) != (FORMAT, VERSION):
            raise InvalidValueError(
                f"Expected format={found.get('format')!r}, version={found.get('version')!r} "
                f"{named} to be {FORMAT!r}, {VERSION!r}: it holds no submissions, or those of "
                "another version of blurfit."
            )
        if found.get("fingerprint") != layout.fingerprint:
            raise InvalidValueError(
                f"Expected fingerprint={found.get('fingerprint')!r} {named} to be "
                f"{layout.fingerprint!r}: its submissions were made for another agreement."
            )
        expected = arrow_schema(layout, None)
        fits = all(
            schema.get_field_index(field.name) >= 0
            and _same_type(schema.field(field.name).type, field.type)
            for field in expected
        )
        if not fits:
            raise InvalidValueError(
                f"Expected submissions of {layout.width} numbers in {self.name!r}, with the "
                f"columns {_in_words(expected)}, and got {_in_words(schema)}."
            )
        return found.get("released"), "held" in found

    @contextmanager
    def _readable(self, what: str) -> Iterator[None]:
        pa = optional("pyarrow")
        try:
            yield
        except BlurfitError:
            raise
        except (OSError, pa.ArrowException, ValueError, OverflowError) as error:
            raise InvalidValueError(
                f"Cannot read {what}, in {self.name!r}: it was cut short or damaged "
                f"({' '.join(str(error).split())}). Get the file again from where it was made."
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
        f"Expected {name!r} to be a Parquet or Arrow file of submissions, and it begins with "
        f"{start!r}. `blurfit export` and `blurfit contribute --out` write such files."
    )


def open_submissions(path: Path, layout: Layout) -> SubmissionFile:
    """A file of this machine."""
    return SubmissionFile(str(path), optional("pyarrow").OSFile(str(path)), layout)


def _same_type(found: Any, expected: Any) -> bool:
    """Whether two types hold the same values: some writers do not say that none is missing."""
    pa = optional("pyarrow")
    if not pa.types.is_fixed_size_list(expected):
        return bool(found == expected)
    return bool(
        pa.types.is_fixed_size_list(found)
        and found.list_size == expected.list_size
        and found.value_type == expected.value_type
    )


def _in_words(schema: Any) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
