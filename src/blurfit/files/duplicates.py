"""Who came twice: the same identifier in several files, or several times in one.

The same identifier with the same numbers counts once. With other numbers it is a conflict: a store
keeps what came first, and of files nobody knows which that was. To know this of any number of rows
in little memory:

1. The first eight bytes of all identifiers go to temporary files, apart by their value, some
   million in each. Sorted, one file at a time, they show which occur twice. Usually none does, and
   that is all: identifiers are 128 random bits.
2. Otherwise the rows whose prefix occurs twice are looked at again, with a digest of their numbers
   (BLAKE2b, 128 bits), again apart by their identifiers. Rows with the same
   identifier and another digest are a conflict; of those with the same, the first counts.

Memory does not grow with the number of rows but for one bit for each, and only if some repeat.
Whoever makes identifiers up can bring one file out of balance, which costs memory and changes no
result.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Self

import numpy as np
import numpy.typing as npt

from blurfit.arrays import ByteArray, WordArray
from blurfit.errors import ConflictError
from blurfit.files.scan import RECORD, Records, Stretch, apart

AT_ONCE = 2**20  # identifiers in one temporary file
MOST_FILES = 256
MOST_SUSPECTS = 2**20  # prefixes that are looked for one by one; if there are more, all rows are


class Spill:
    """Arrays in temporary files, one for each partition, which are removed at the end."""

    def __init__(self, partitions: int, kind: np.dtype[Any]) -> None:
        self.partitions, self._kind = partitions, kind
        self._folder = TemporaryDirectory(prefix="blurfit-")
        self._files: list[IO[bytes]] = [
            Path(self._folder.name, str(number)).open("w+b", buffering=0)  # noqa: SIM115
            for number in range(partitions)
        ]

    def append(self, partition: int, rows: npt.NDArray[Any]) -> None:
        """Some more rows for a partition."""
        if len(rows):
            self._files[partition].write(np.ascontiguousarray(rows).data.cast("B"))

    def read(self, partition: int) -> npt.NDArray[Any]:
        """All rows of a partition."""
        file = self._files[partition]
        file.seek(0)
        return np.fromfile(file, dtype=self._kind)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for file in self._files:
            file.close()
        self._folder.cleanup()


def partitions_for(rows: int) -> int:
    """In how many temporary files so many identifiers go; not in more than may be open at once."""
    return min(MOST_FILES, max(1, -(-rows // AT_ONCE)))


def suspects(found: Iterable[WordArray]) -> WordArray | None:
    """The prefixes that occur twice as one array in order; None if they are too many."""
    kept, many = [np.empty(0, dtype="<u8")], 0
    for prefixes in found:
        many += len(prefixes)
        if many <= MOST_SUSPECTS:
            kept.append(prefixes)
    return None if many > MOST_SUSPECTS else np.sort(np.concatenate(kept))


def tell_apart(
    batches: Iterable[Records], tasks: Sequence[Stretch], rows: int
) -> dict[tuple[int, int], ByteArray]:
    """By file and row group, a bit for each row that came before; a conflict is an error."""
    groups: dict[tuple[int, int], ByteArray] = {}
    partitions = partitions_for(rows)
    with Spill(partitions, RECORD) as spill:
        for batch in batches:
            words = np.ascontiguousarray(batch["identifier"][:, 0])
            for partition, part in enumerate(apart(batch, words, partitions)):
                spill.append(partition, part)
        for partition in range(partitions):
            again, before = _again(spill.read(partition))
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
    """Bits with those of some more rows set."""
    held = 0 if bits is None else len(bits)
    wider = np.zeros(max(held, int(rows.max()) // 8 + 1), dtype=np.uint8)
    if bits is not None:
        wider[:held] = bits
    np.bitwise_or.at(wider, rows // np.uint64(8), (1 << (rows % np.uint64(8))).astype(np.uint8))
    return wider


def _again(found: Records) -> tuple[Records, Records]:
    """The rows whose identifier came before, and beside each the one before it."""
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
