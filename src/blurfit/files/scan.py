"""Find the rows of files, check them, add them, and tell who came twice.

**Where files are.** A pattern (`lake/*.parquet`) and a folder stand for files of this machine. URLs
are those that pyarrow knows (file, s3, gs, hdfs), and http and https, of which only what is needed
is fetched: the service must answer requests for a range of bytes.

**Tasks.** A task is some row groups of one file. What is done with it needs nothing but the task
and the agreement's text, so any process of any machine that can open the file can do it, and do it
again.

**Who came twice.** The same identifier with the same numbers counts once. With other numbers it is
a conflict: a store keeps what came first, and of files nobody knows which that was. To know this of
any number of rows in little memory:

1. The first eight bytes of all identifiers go to temporary files, apart by their value, some
   million in each. Sorted, one file at a time, they show which occur twice. Usually none does, and
   that is all: identifiers are 128 random bits.
2. Otherwise the rows whose prefix occurs twice are looked at again, with a digest of their numbers
   (BLAKE2b, 128 bits), again apart by their identifiers. Rows with the same identifier and another
   digest are a conflict; of those with the same, the first counts.

Memory does not grow with the number of rows, except by one bit for each row, and only if rows
repeat. A contributor who chooses identifiers can make one file larger than the others, which costs
memory and changes no result.

Every function of a task is pure: run again, on another machine, it gives the same. Sums are exact
(`blurfit.learning.sums`), so the order in which they are merged does not show. Any engine
(`blurfit.files.engines`) therefore gives the same bytes.
"""

import glob
import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Self
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx2 as httpx
import numpy as np
import numpy.typing as npt

from blurfit.agreement.agreement import Agreement
from blurfit.data import BoolArray, ByteArray, FloatArray, WordArray
from blurfit.errors import ConflictError, InvalidValueError, optional
from blurfit.learning.sums import Screen, merged, rows_that_add_exactly
from blurfit.messages.files import SUFFIXES, SubmissionFile
from blurfit.release_record import Identity

_HEAD, _TAIL = 2**16, 2**20
_AT_ONCE = 2**24  # bytes of a file over HTTP


def find(words: Iterable[str]) -> list[str]:
    """Return the files that paths, folders, patterns and URLs stand for, each once."""
    found: dict[str, None] = {}
    for word in words:
        if word.startswith("file://"):  # a file of this machine, whatever it is called
            word = url2pathname(urlsplit(word).path)
        if "://" in word:
            found[word] = None
            continue
        path = Path(word)
        if path.is_dir():
            here = sorted(str(p) for p in path.iterdir() if p.suffix.lower() in SUFFIXES)
        else:
            here = [word] if path.is_file() else sorted(glob.glob(word, recursive=True))  # noqa: PTH207
        if not here:
            raise InvalidValueError(
                f"Expected {word!r} to be a file, a folder of .parquet or .arrow files, a pattern "
                "that some match, or a URL."
            )
        found |= dict.fromkeys(os.path.realpath(one) for one in here)
    return list(found)


def open_stream(place: str) -> Any:
    """Open a place for reading."""
    pa = optional("pyarrow")
    try:
        if place.startswith(("http://", "https://")):
            return io.BufferedReader(_Ranges(place), 2**20)
        if "://" in place:
            system, path = optional("pyarrow.fs").FileSystem.from_uri(place)
            return system.open_input_file(path)
        return pa.OSFile(place)
    except (OSError, pa.ArrowException, httpx.HTTPError) as error:
        raise InvalidValueError(
            f"Cannot open {place!r}: {' '.join(str(error).split())}."
        ) from error


def identify(place: str) -> Identity:
    """Tell a file from another without reading all of it.

    Its digest is SHA-256 of its first 64 KiB and its last MiB: random names, noise, and where
    everything lies.
    """
    with open_stream(place) as stream:
        size = stream.seek(0, os.SEEK_END)
        size = stream.tell() if size is None else size
        digest = hashlib.sha256()
        for start, length in ((0, _HEAD), (max(0, size - _TAIL), _TAIL)):
            stream.seek(start)
            digest.update(stream.read(length))
    return Identity(place.rstrip("/").rpartition("/")[2], int(size), digest.hexdigest())


class _Ranges(io.RawIOBase):
    """Read a file behind HTTP by ranges of bytes."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._client = httpx.Client(follow_redirects=True, timeout=60.0)
        self._url, self._at = url, 0
        try:
            answer = self._fetch(0, 1)
            self._size = int(answer.headers["content-range"].rpartition("/")[2])
        except BaseException:
            self._client.close()
            raise

    def _fetch(self, start: int, length: int) -> Any:
        wanted = {"range": f"bytes={start}-{start + length - 1}"}
        with self._client.stream("GET", self._url, headers=wanted) as answer:
            if answer.status_code != 206:  # before a whole file comes that nobody asked for
                raise OSError(
                    f"expected 206 (Partial Content) in answer to a range of bytes, and got "
                    f"{answer.status_code}"
                )
            answer.read()
        return answer

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), self._size - self._at)
        if length <= 0:
            return 0
        try:
            data = self._fetch(self._at, length).content
        except httpx.HTTPError as error:
            raise OSError(str(error)) from error
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def readall(self) -> bytes:
        """Read the rest, in large pieces; a server may send less of each than it is asked for."""
        parts = []
        while part := self.read(min(_AT_ONCE, max(0, self._size - self._at))):
            parts.append(part)
        return b"".join(parts)

    def close(self) -> None:
        self._client.close()
        super().close()


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

    def without(self, repeated: dict[tuple[int, int], ByteArray]) -> "Stretch":
        """Leave out the rows that came before, by file and row group."""
        groups = range(self.first, self.last)
        here = {one: repeated[self.file, one] for one in groups if (self.file, one) in repeated}
        return replace(self, repeated=here)


@dataclass(frozen=True, eq=False)
class Scanned:
    """What a task found: counts and sums, and the first eight bytes of each identifier."""

    parts: Parts
    prefixes: WordArray


@lru_cache(maxsize=8)
def agreed(text: str) -> tuple[Agreement, Screen, int]:
    """Return an agreement, its screen, and how many rows add exactly, worked out once a process."""
    agreement = Agreement.from_json(text)
    screen = Screen.of(agreement)
    return agreement, screen, rows_that_add_exactly(screen.largest_steps())


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
                parts = merged([*parts, (len(rows), rows.sum(axis=0))], exact_rows)
    return Scanned(parts, prefixes[:seen])


def merge(text: str, *several: Parts) -> Parts:
    """Merge the parts of several tasks."""
    _, _, exact_rows = agreed(text)
    return merged([part for parts in several for part in parts], exact_rows)


def apart(rows: npt.NDArray[Any], words: WordArray, partitions: int) -> list[npt.NDArray[Any]]:
    """Split rows into so many partitions, so that those with equal words stay together."""
    if partitions == 1:
        return [rows]
    # An odd factor spreads identifiers that somebody counted up; random ones stay random.
    mixed = (words * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    which = ((mixed * np.uint64(partitions)) >> np.uint64(32)).astype(np.uint16)
    order = np.argsort(which, kind="stable")  # of small numbers: in linear time
    bounds = np.searchsorted(which[order], np.arange(1, partitions, dtype=np.uint16))
    return np.split(rows[order], bounds)


def repeated(prefixes: WordArray) -> WordArray:
    """Return the prefixes that occur more than once, in order."""
    ordered = np.sort(prefixes)
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


def records(text: str, task: Stretch, suspects: WordArray | None) -> Records:
    """Return identifier, digest and place of each row with a suspect prefix (None: of all)."""
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
    """Tell which rows of a group count; None if all do."""
    bits = task.repeated.get(group)
    if bits is None:
        return None
    counted = np.ones(rows, dtype=bool)
    came_before = np.unpackbits(bits, bitorder="little")[start : start + rows].astype(bool)
    counted[: len(came_before)] = ~came_before
    return counted


def _prefixes(identifiers: ByteArray) -> WordArray:
    return np.asarray(np.ascontiguousarray(identifiers[:, :8]).view("<u8").ravel())


AT_ONCE = 2**20  # identifiers in one temporary file
MOST_FILES = 256
MOST_SUSPECTS = 2**20  # prefixes that are looked for one by one; if there are more, all rows are


class Spill:
    """Keep arrays in temporary files, one for each partition, which are removed at the end."""

    def __init__(self, partitions: int, kind: np.dtype[Any]) -> None:
        self.partitions, self._kind = partitions, kind
        self._folder = TemporaryDirectory(prefix="blurfit-")
        self._files: list[IO[bytes]] = [
            Path(self._folder.name, str(number)).open("w+b", buffering=0)  # noqa: SIM115
            for number in range(partitions)
        ]

    def add(self, rows: npt.NDArray[Any], words: WordArray) -> None:
        """Add rows, each to the partition of its word."""
        for file, part in zip(self._files, apart(rows, words, self.partitions), strict=True):
            if len(part):
                file.write(np.ascontiguousarray(part).data.cast("B"))

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        """Read the partitions, one at a time."""
        for file in self._files:
            file.seek(0)
            yield np.fromfile(file, dtype=self._kind)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for file in self._files:
            file.close()
        self._folder.cleanup()


def partitions_for(rows: int) -> int:
    """Return in how many temporary files so many identifiers go: not more than may be open."""
    return min(MOST_FILES, max(1, -(-rows // AT_ONCE)))


def suspects(partitions: Iterable[WordArray]) -> WordArray | None:
    """Collect the prefixes that occur twice, in order; None if they are too many."""
    kept, many = [np.empty(0, dtype="<u8")], 0
    for prefixes in map(repeated, partitions):
        many += len(prefixes)
        if many <= MOST_SUSPECTS:
            kept.append(prefixes)
    return None if many > MOST_SUSPECTS else np.sort(np.concatenate(kept))


def tell_apart(
    batches: Iterable[Records], tasks: Sequence[Stretch], rows: int
) -> dict[tuple[int, int], ByteArray]:
    """Mark, by file and row group, each row that came before with a bit; refuse conflicts."""
    groups: dict[tuple[int, int], ByteArray] = {}
    with Spill(partitions_for(rows), RECORD) as spill:
        for batch in batches:
            spill.add(batch, np.ascontiguousarray(batch["identifier"][:, 0]))
        for partition in spill:
            again, before = _again(partition)
            if not len(again):
                continue
            _refuse_conflicts(again, before, tasks)
            for where, rows_there in _by_group(again["place"]):
                groups[where] = _with_bits(groups.get(where), rows_there)
    return groups


def _by_group(places: npt.NDArray[np.uint32]) -> Iterator[tuple[tuple[int, int], WordArray]]:
    wide = places.astype(np.uint64)
    keys = (wide[:, 0] << np.uint64(32)) | wide[:, 1]
    order = np.argsort(keys, kind="stable")
    different, starts = np.unique(keys[order], return_index=True)
    for key, part in zip(different.tolist(), np.split(wide[order, 2], starts[1:]), strict=True):
        yield (key >> 32, key & 0xFFFFFFFF), part


def _with_bits(bits: ByteArray | None, rows: WordArray) -> ByteArray:
    """Set the bits of some more rows."""
    held = 0 if bits is None else len(bits)
    wider = np.zeros(max(held, int(rows.max()) // 8 + 1), dtype=np.uint8)
    if bits is not None:
        wider[:held] = bits
    np.bitwise_or.at(wider, rows // np.uint64(8), (1 << (rows % np.uint64(8))).astype(np.uint8))
    return wider


def _again(found: Records) -> tuple[Records, Records]:
    """Return the rows whose identifier came before, and beside each the one before it."""
    place, key = found["place"], found["identifier"]
    order = np.lexsort((place[:, 2], place[:, 1], place[:, 0], key[:, 1], key[:, 0]))
    found = found[order]
    same = (found["identifier"][1:] == found["identifier"][:-1]).all(axis=1)
    return found[1:][same], found[:-1][same]


def _refuse_conflicts(again: Records, before: Records, tasks: Sequence[Stretch]) -> None:
    other = (again["digest"] != before["digest"]).any(axis=1)
    if not other.any():
        return
    one = int(other.argmax())
    names = {task.file: task.place for task in tasks}

    def where(record: Any) -> str:
        file, group, row = (int(number) for number in record["place"])
        return f"row {row} of row group {group} of {names[file]!r}"

    twice = again[one]["identifier"].tobytes().hex()
    raise ConflictError(
        f"Expected identifier={twice!r} to carry the same numbers wherever it occurs, but "
        f"{where(again[one])} has others than {where(before[one])}: an identifier is for one "
        "submission. Find out which file is wrong, and leave it out."
    )
