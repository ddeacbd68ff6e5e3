"""Who came twice, beside a dictionary in memory."""

import numpy as np
import pytest

from blurfit import ConflictError
from blurfit.files import scan as duplicates
from blurfit.files.scan import (
    RECORD,
    Identity,
    Spill,
    Stretch,
    partitions_for,
    suspects,
    tell_apart,
)

TASKS = [
    Stretch(number, name, 0, 3, 300, Identity(name, 1, name))
    for number, name in enumerate(("a.parquet", "b.parquet"))
]


def made(identifiers, digests, places):
    found = np.zeros(len(identifiers), dtype=RECORD)
    found["identifier"][:, 0], found["digest"][:, 0] = identifiers, digests
    found["place"] = places
    return found


def everything(generator, different: int):
    """600 rows of two files and three groups each, under few identifiers, each with its digest."""
    identifiers = generator.integers(0, different, 600)
    places = [(file, group, row) for file in (0, 1) for group in range(3) for row in range(100)]
    return made(identifiers, identifiers + 7, places)


@pytest.mark.parametrize("different", [3, 200, 10**9])
@pytest.mark.parametrize("at_once", [2**20, 50])
def test_all_but_the_first_are_told(different, at_once, monkeypatch) -> None:
    monkeypatch.setattr(duplicates, "AT_ONCE", at_once)
    found = everything(np.random.default_rng(different), different)
    bits = tell_apart(np.array_split(found, 5), TASKS, 600)
    seen, expected = set(), set()
    for record in found:
        name, place = record["identifier"].tobytes(), tuple(record["place"].tolist())
        (expected if name in seen else seen).add(place if name in seen else name)
    told = {
        (*where, int(row))
        for where, packed in bits.items()
        for row in np.flatnonzero(np.unpackbits(packed, bitorder="little"))
    }
    assert told == expected


def test_a_conflict_names_both_places() -> None:
    found = made([5, 6, 5], [1, 1, 2], [(0, 1, 4), (0, 2, 0), (1, 2, 9)])
    name = (5).to_bytes(8, "little").hex() + "00" * 8
    second, first = "row 9 of row group 2 of 'b.parquet'", "row 4 of row group 1 of 'a.parquet'"
    with pytest.raises(ConflictError, match=f"{name}.*{second}.*{first}"):
        tell_apart([found], TASKS, 3)


def test_spilled_rows_come_back(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with Spill(2, np.dtype("<u8")) as spill:
        for number in range(4):
            spill.append(number % 2, np.arange(number, dtype="<u8"))
        assert spill.read(0).tolist() == [0, 1]
        assert spill.read(1).tolist() == [0, 0, 1, 2]
        assert len(list(tmp_path.iterdir())) == 1
    assert not list(tmp_path.iterdir())


def test_too_many_suspects_are_not_listed(monkeypatch) -> None:
    monkeypatch.setattr(duplicates, "MOST_SUSPECTS", 4)
    parts = [np.array([3, 9], dtype="<u8"), np.array([1, 4], dtype="<u8")]
    found = suspects(parts)
    assert found is not None
    assert found.tolist() == [1, 3, 4, 9]
    assert suspects([*parts, parts[0]]) is None
    assert len(suspects([])) == 0


def test_partitions_hold_a_bounded_number() -> None:
    rows = (0, 1, 2**20, 2**20 + 1, 2**25, 2**40)
    assert [partitions_for(number) for number in rows] == [1, 1, 1, 2, 32, 256]
