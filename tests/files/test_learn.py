"""The same model from stores and files, whatever the files and who did the work."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from blurfit import (
    BelowQuorumError,
    ConflictError,
    InvalidValueError,
    Store,
    Submissions,
    perturb_table,
)
from blurfit.files import learn, scan
from blurfit.files.engines import Threads
from blurfit.files.learn import Work, export, learn_files, totals
from blurfit.messages import files
from blurfit.messages.files import Writer
from support.stores import either_mechanism, propose

ROWS = 600


@pytest.fixture
def table(agreement) -> Submissions:
    generator = np.random.default_rng(5)
    return perturb_table(agreement, {c: generator.uniform(0, 100, ROWS) for c in ("age", "income")})


def part(table: Submissions, rows) -> Submissions:
    return replace(
        table,
        identifiers=table.identifiers[rows],
        numbers=table.numbers[rows],
    )


def write(path: Path, agreement, table: Submissions) -> str:
    path.parent.mkdir(exist_ok=True)
    with Writer(path, agreement.layout) as writer:
        writer.add(table)
    return str(path)


@pytest.fixture
def small(monkeypatch) -> None:
    """Row groups, tasks and partitions of a few rows: many of each."""
    monkeypatch.setattr(files, "MOST_ROWS", 37)
    monkeypatch.setattr(learn, "GROUPS_AT_ONCE", 2)
    monkeypatch.setattr(scan, "AT_ONCE", 100)


@pytest.mark.parametrize(
    ("place", "agreement"),
    [("sqlite", "moment"), ("postgresql", "moment"), ("sqlite", "input")],
    indirect=True,
)
def test_the_same_model_from_everywhere(
    place, agreement, table, tmp_path, small, cluster, monkeypatch
) -> None:
    """SQLite or PostgreSQL, one file or many that overlap, threads or a cluster: the same bytes."""
    whole = tmp_path / "whole" / "all.parquet"
    whole.parent.mkdir()
    if agreement.mechanism == "input":  # which no store collects
        write(whole, agreement, table)
        first = write(tmp_path / "first" / "all.parquet", agreement, table)
        published = learn_files(agreement, [first], Threads(1)).to_json()
    else:
        with Store(place) as store:
            store.open(agreement)
            for rows in np.array_split(np.arange(ROWS), 7):
                store.add(agreement, part(table, rows))
            published = store.publish_text(agreement.fingerprint)
            assert export(store, agreement.fingerprint, whole) == ROWS
    shuffled = np.random.default_rng(1).permutation(ROWS)
    pieces = tmp_path / "pieces"
    for number, rows in enumerate(np.array_split(shuffled, 3)):
        write(pieces / f"{number}.parquet", agreement, part(table, rows))
    write(pieces / "again.arrow", agreement, part(table, np.arange(100, 400)))
    for number, engine in enumerate((Threads(1), Threads(2), cluster)):
        for source, pattern in ((whole.parent, "*"), (pieces, "*"), (pieces, "*.parquet")):
            copy = tmp_path / f"{number}-{source.name}-{len(pattern)}"
            shutil.copytree(source, copy)
            monkeypatch.setenv("BLURFIT_HOME", str(copy / "home"))  # of somebody new
            model = learn_files(agreement, [f"{copy}/{pattern}"], engine)
            assert model.to_json() == published


def test_a_second_run_does_not_look_again(agreement, table, tmp_path) -> None:
    file = write(tmp_path / "a.parquet", agreement, table)
    looked: list[tuple[int, int]] = []

    def progress(done: int, of: int) -> None:
        looked.append((done, of))

    first = learn_files(agreement, [file], Threads(2), progress=progress)
    assert looked[-1] == (ROWS, ROWS)
    looked.clear()
    second = learn_files(agreement, [str(tmp_path)], Threads(2), progress=progress)
    assert first.to_json() == second.to_json()
    assert not looked
    write(tmp_path / "b.parquet", agreement, part(table, slice(0, 5)))
    with pytest.raises(ConflictError, match=r"added: b\.parquet"):
        learn_files(agreement, [str(tmp_path)], Threads(2))


@either_mechanism
def test_below_the_quorum_nothing_is_recorded(agreement, table, tmp_path) -> None:
    write(tmp_path / "a.parquet", agreement, part(table, slice(0, 19)))
    write(tmp_path / "b.parquet", agreement, part(table, slice(0, 19)))
    with pytest.raises(BelowQuorumError, match=r"count=19 .*1 more"):
        learn_files(agreement, [str(tmp_path)], Threads(2))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]
    write(tmp_path / "c.parquet", agreement, part(table, slice(18, 20)))
    assert learn_files(agreement, [str(tmp_path)], Threads(2)).count == 20


@pytest.mark.parametrize("engine", ["threads", "cluster"])
def test_the_same_identifier_with_other_numbers_is_a_conflict(
    agreement, table, tmp_path, small, engine, request
) -> None:
    chosen = Threads(2) if engine == "threads" else request.getfixturevalue("cluster")
    write(tmp_path / "a.parquet", agreement, table)
    changed = part(table, np.arange(500, 600))
    numbers = changed.numbers.copy()
    numbers[50] = changed.numbers[51]
    write(tmp_path / "b.parquet", agreement, replace(changed, numbers=numbers))
    with pytest.raises(ConflictError, match=r"row 13 of row group 1 .*b\.parquet.*a\.parquet"):
        learn_files(agreement, [str(tmp_path)], chosen)
    assert len(list(tmp_path.iterdir())) == 2


def test_many_repeats_are_told_without_a_list_of_them(
    agreement, table, tmp_path, small, monkeypatch
) -> None:
    monkeypatch.setattr(scan, "MOST_SUSPECTS", 10)
    files = [write(tmp_path / name / "a.parquet", agreement, table) for name in ("x", "y", "z")]
    once = totals(agreement, Work.of(agreement, files[:1]), Threads(2))
    assert once.count == ROWS
    assert totals(agreement, Work.of(agreement, files), Threads(2)) == once


@either_mechanism
@pytest.mark.parametrize("engine", ["threads", "cluster"])
def test_wrong_files_are_named_and_nothing_is_published(
    agreement, table, tmp_path, small, engine, request
) -> None:
    chosen = Threads(2) if engine == "threads" else request.getfixturevalue("cluster")
    write(tmp_path / "a.parquet", agreement, table)
    bad = tmp_path / "b.parquet"
    numbers = table.numbers.copy()
    numbers[100, 0] += 1e-30 if agreement.mechanism == "moment" else 2.0**-80
    numbers[100, 0] = 2.0**-90
    write(bad, agreement, replace(table, numbers=numbers))
    with pytest.raises(InvalidValueError, match=r"row group 2 of .*b\.parquet.*no multiple"):
        learn_files(agreement, [str(tmp_path)], chosen)
    bad.write_bytes(bad.read_bytes()[:-1000])
    with pytest.raises(InvalidValueError, match=r"b\.parquet.*cut short"):
        learn_files(agreement, [str(tmp_path)], chosen)
    other = propose(epsilon=3, mechanism=agreement.mechanism)
    people = {c: np.linspace(0, 100, 30) for c in ("age", "income")}
    write(bad, other, perturb_table(other, people))
    with pytest.raises(InvalidValueError, match=r"b\.parquet.*another agreement"):
        learn_files(agreement, [str(tmp_path)], chosen)
    bad.write_bytes(b"PAR1")
    with pytest.raises(InvalidValueError, match=r"b\.parquet.*cut short"):
        learn_files(agreement, [str(tmp_path)], chosen)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]


def test_a_file_that_is_written_to_meanwhile(agreement, table, tmp_path) -> None:
    path = tmp_path / "a.parquet"
    write(path, agreement, table)
    with pytest.raises(ConflictError, match=r"a\.parquet.*written to meanwhile"):
        learn_files(
            agreement,
            [str(path)],
            Threads(1),
            progress=lambda _done, _of: write(path, agreement, part(table, slice(0, 50))) and None,
        )
    assert [p.name for p in tmp_path.iterdir()] == ["a.parquet"]
