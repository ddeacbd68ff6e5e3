"""What is done with the rows of files, wherever it is done: looked at, added, told apart.

A task is some row groups of one file. These functions need nothing but a task and the agreement's
text, so any process of any machine that can open the file can run them, and run them again.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import BoolArray, ByteArray, FloatArray, WordArray
from blurfit.errors import ConflictError, InvalidValueError
from blurfit.files.sources import Identity, identify, open_stream
from blurfit.learning.sums import Screen, block_sums, merged, rows_that_add_exactly
from blurfit.messages.files import SubmissionFile

Parts = list[tuple[int, FloatArray]]

BYTES_AT_ONCE = 2**20  # rows that are looked at and added while they are in the cache

# One row that may have come before: its identifier, a digest of its numbers, and where it is.
RECORD = np.dtype([("identifier", "<u8", 2), ("digest", "<u8", 2), ("place", "<u4", 3)])
Records = npt.NDArray[np.void]


@dataclass(frozen=True)
class Stretch:
    """Row groups `first` to `last` − 1 of the file at a place, the `file`-th of all."""

    file: int
    place: str
    first: int
    last: int
    rows: int
    identity: Identity  # of the file that the release will be recorded for
    # by row group, a bit for each row that came before and is not counted again
    repeated: dict[int, ByteArray] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, eq=False)
class Scanned:
    """What a task found: counts and sums, and the first eight bytes of each identifier."""

    parts: Parts
    prefixes: WordArray


@lru_cache(maxsize=8)
def agreed(text: str) -> tuple[Agreement, Screen, int]:
    """An agreement, its screen, and how many rows add exactly, worked out once a process."""
    agreement = Agreement.from_json(text)
    screen = Screen.of(agreement)
    return agreement, screen, rows_that_add_exactly(agreement, screen.largest_steps())


def scan(text: str, task: Stretch) -> Scanned:
    """Check each row as the service would, add those that count, and keep all prefixes."""
    agreement, screen, exact_rows = agreed(text)
    parts: Parts = []
    prefixes = np.empty(task.rows, dtype="<u8")
    seen = 0
    at_once = min(exact_rows, max(1, BYTES_AT_ONCE // (8 * agreement.layout.width)))
    if exact_rows == 1:
        at_once = 4096  # nothing is exact, so nothing is gained by one at a time
    for group, start, identifiers, numbers in _rows(agreement, task):
        prefixes[seen : seen + len(identifiers)] = _prefixes(identifiers)
        seen += len(identifiers)
        counted = _counted(task, group, start, len(identifiers))
        for first in range(0, len(numbers), at_once):
            rows = numbers[first : first + at_once]
            good = screen.passes(rows)
            if not good.all():
                place = int(good.argmin())
                raise InvalidValueError(
                    f"In row group {group} of {task.place!r}: "
                    f"{screen.refuse(rows[place], start + first + place)}"
                )
            if counted is not None:
                rows = rows[counted[first : first + at_once]]
            if len(rows):
                parts = merged([*parts, (len(rows), block_sums(agreement, rows))], exact_rows)
    return Scanned(parts, prefixes[:seen])


def merge(text: str, several: list[Parts]) -> Parts:
    """A step of the tree: the parts of several as one."""
    _, _, exact_rows = agreed(text)
    return merged([part for parts in several for part in parts], exact_rows)


def apart(rows: npt.NDArray[Any], words: WordArray, partitions: int) -> list[npt.NDArray[Any]]:
    """Rows in so many partitions, so that those with equal words stay together."""
    if partitions == 1:
        return [rows]
    # An odd factor spreads identifiers that somebody counted up; random ones stay random.
    mixed = (words * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    which = ((mixed * np.uint64(partitions)) >> np.uint64(32)).astype(np.uint16)
    order = np.argsort(which, kind="stable")  # of small numbers: in linear time
    bounds = np.searchsorted(which[order], np.arange(1, partitions, dtype=np.uint16))
    return np.split(rows[order], bounds)


def repeated(prefixes: list[WordArray]) -> WordArray:
    """The prefixes that occur more than once, in order."""
    everything = np.concatenate(prefixes) if prefixes else np.empty(0, dtype="<u8")
    everything.sort()
    return np.unique(everything[1:][everything[1:] == everything[:-1]])


def records(text: str, task: Stretch, suspects: WordArray | None) -> Records:
    """Identifier, digest and place of each row whose prefix is among the suspects (None: all)."""
    agreement, _, _ = agreed(text)
    found = []
    for group, start, identifiers, numbers in _rows(agreement, task):
        rows = np.arange(len(identifiers))
        if suspects is not None:
            rows = rows[np.isin(_prefixes(identifiers), suspects)]
        made = np.empty(len(rows), dtype=RECORD)
        made["identifier"] = np.ascontiguousarray(identifiers[rows]).view("<u8")
        made["digest"] = np.frombuffer(
            b"".join(
                hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in numbers[rows]
            ),
            dtype="<u8",
        ).reshape(-1, 2)
        made["place"] = np.column_stack(
            [np.full(len(rows), task.file), np.full(len(rows), group), start + rows]
        )
        found.append(made)
    return np.concatenate(found) if found else np.empty(0, dtype=RECORD)


def _rows(agreement: Agreement, task: Stretch) -> Iterator[tuple[int, int, ByteArray, FloatArray]]:
    if identify(task.place) != task.identity:
        raise ConflictError(
            f"Expected {task.place!r} to be the same file wherever the work is done, and to stay "
            "as it was. Nothing was published; let workers see the files of whoever learns, and "
            "run the same command again when nobody writes to them."
        )
    with SubmissionFile(task.place, open_stream(task.place), agreement.layout) as file:
        for group in range(task.first, task.last):
            start = 0
            for identifiers, numbers in file.parts(group):
                yield group, start, identifiers, numbers
                start += len(identifiers)


def _counted(task: Stretch, group: int, start: int, rows: int) -> BoolArray | None:
    """Which rows of a group count; None if all do."""
    bits = task.repeated.get(group)
    if bits is None:
        return None
    counted = np.ones(rows, dtype=bool)
    came_before = np.unpackbits(bits, bitorder="little")[start : start + rows].astype(bool)
    counted[: len(came_before)] = ~came_before
    return counted


def _prefixes(identifiers: ByteArray) -> WordArray:
    return np.asarray(np.ascontiguousarray(identifiers[:, :8]).view("<u8").ravel())
