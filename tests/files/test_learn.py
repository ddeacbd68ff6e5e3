"""The same model from stores and files, whatever the files and who did the work; one noise."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa

from blurfit import (
    BelowQuorumError,
    ConflictError,
    InfeasibleError,
    InvalidValueError,
    NotPublishedError,
    PublishedModel,
    PublishedMoments,
    Submissions,
    perturb_table,
)
from blurfit.contributor.sending import blur_table
from blurfit.errors import NotCertifiedError
from blurfit.files import learn, scan
from blurfit.files.engines import Threads
from blurfit.files.learn import Work, release_files, scanned
from blurfit.messages import files
from blurfit.messages.files import open_submissions
from blurfit.model.course import Course, learn_plan, next_agreement
from blurfit_server import Store
from blurfit_server.store import database
from blurfit_server.store.export import export
from support.plans import people, plan, rows, written
from support.proposals import PEOPLE, propose, totals_of, write_file

ROWS = 600


@pytest.fixture
def table(agreement) -> Submissions:
    generator = np.random.default_rng(5)
    return perturb_table(agreement, {c: generator.uniform(0, 100, ROWS) for c in ("age", "income")})


def learn_files(agreement, words, engine, **options) -> PublishedModel:
    found = release_files(agreement, words, engine, **options)
    return PublishedModel.from_json(found.text())


def part(table: Submissions, rows) -> Submissions:
    return replace(table, identifiers=table.identifiers[rows], numbers=table.numbers[rows])


@pytest.fixture
def small(monkeypatch) -> None:
    """Row groups, tasks and partitions of a few rows: many of each."""
    monkeypatch.setattr(files, "MOST_ROWS", 37)
    monkeypatch.setattr(learn, "GROUPS_AT_ONCE", 2)
    monkeypatch.setattr(scan, "AT_ONCE", 100)


@pytest.mark.parametrize(
    "place",
    ["sqlite", "postgresql"],
    indirect=True,
)
def test_the_same_model_from_everywhere(
    place, agreement, table, tmp_path, small, cluster, monkeypatch
) -> None:
    """SQLite or PostgreSQL, one file or many that overlap, threads or a cluster: the same bytes."""
    whole = tmp_path / "whole" / "all.parquet"
    whole.parent.mkdir()
    with Store(place) as store:
        store.open(agreement)
        for rows in np.array_split(np.arange(ROWS), 7):
            store.add(agreement, part(table, rows))
        published = store.publish_text(agreement.fingerprint)
        assert export(store, agreement.fingerprint, whole) == ROWS
    shuffled = np.random.default_rng(1).permutation(ROWS)
    pieces = tmp_path / "pieces"
    for number, rows in enumerate(np.array_split(shuffled, 3)):
        write_file(pieces / f"{number}.parquet", agreement, part(table, rows))
    write_file(pieces / "again.arrow", agreement, part(table, np.arange(100, 400)))
    for number, engine in enumerate((Threads(1), Threads(2), cluster)):
        for source, pattern in ((whole.parent, "*"), (pieces, "*"), (pieces, "*.parquet")):
            copy = tmp_path / f"{number}-{source.name}-{len(pattern)}"
            shutil.copytree(source, copy)
            monkeypatch.setenv("BLURFIT_HOME", str(copy / "home"))  # of somebody new
            model = learn_files(agreement, [f"{copy}/{pattern}"], engine)
            assert model.to_json() == published


def test_a_second_run_does_not_look_again(agreement, table, tmp_path) -> None:
    file = write_file(tmp_path / "a.parquet", agreement, table)
    looked: list[tuple[int, int]] = []

    def progress(done: int, of: int) -> None:
        looked.append((done, of))

    first = learn_files(agreement, [file], Threads(2), progress=progress)
    assert looked[-1] == (ROWS, ROWS)
    looked.clear()
    second = learn_files(agreement, [str(tmp_path)], Threads(2), progress=progress)
    assert first.to_json() == second.to_json()
    assert not looked
    write_file(tmp_path / "b.parquet", agreement, part(table, slice(0, 5)))
    with pytest.raises(ConflictError, match=r"added: b\.parquet"):
        learn_files(agreement, [str(tmp_path)], Threads(2))


def test_below_the_quorum_nothing_is_recorded(agreement, table, tmp_path) -> None:
    write_file(tmp_path / "a.parquet", agreement, part(table, slice(0, 19)))
    write_file(tmp_path / "b.parquet", agreement, part(table, slice(0, 19)))
    with pytest.raises(BelowQuorumError, match=r"count=19 .*1 more"):
        learn_files(agreement, [str(tmp_path)], Threads(2))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]
    write_file(tmp_path / "c.parquet", agreement, part(table, slice(18, 20)))
    assert learn_files(agreement, [str(tmp_path)], Threads(2)).count == 20


@pytest.mark.parametrize("engine", ["threads", "cluster"])
def test_the_same_identifier_with_other_numbers_is_a_conflict(
    agreement, table, tmp_path, small, engine, request
) -> None:
    chosen = Threads(2) if engine == "threads" else request.getfixturevalue("cluster")
    write_file(tmp_path / "a.parquet", agreement, table)
    changed = part(table, np.arange(500, 600))
    numbers = changed.numbers.copy()
    numbers[50] = changed.numbers[51]
    write_file(tmp_path / "b.parquet", agreement, replace(changed, numbers=numbers))
    with pytest.raises(ConflictError, match=r"row 13 of row group 1 .*b\.parquet.*a\.parquet"):
        learn_files(agreement, [str(tmp_path)], chosen)
    assert len(list(tmp_path.iterdir())) == 2


def test_many_repeats_are_told_without_a_list_of_them(
    agreement, table, tmp_path, small, monkeypatch
) -> None:
    monkeypatch.setattr(scan, "MOST_SUSPECTS", 10)
    files = [
        write_file(tmp_path / name / "a.parquet", agreement, table) for name in ("x", "y", "z")
    ]
    with (
        scanned(agreement, Work.of(agreement, files[:1]), Threads(2)) as (once, _),
        scanned(agreement, Work.of(agreement, files), Threads(2)) as (again, _),
    ):
        assert once.count == ROWS
        assert again == once


@pytest.mark.parametrize("engine", ["threads", "cluster"])
def test_wrong_files_are_named_and_nothing_is_published(
    agreement, table, tmp_path, small, engine, request
) -> None:
    chosen = Threads(2) if engine == "threads" else request.getfixturevalue("cluster")
    write_file(tmp_path / "a.parquet", agreement, table)
    bad = tmp_path / "b.parquet"
    numbers = table.numbers.copy()
    numbers[100, 0] = 2.0**-90
    write_file(bad, agreement, replace(table, numbers=numbers))
    with pytest.raises(InvalidValueError, match=r"row group 2 of .*b\.parquet.*no multiple"):
        learn_files(agreement, [str(tmp_path)], chosen)
    bad.write_bytes(bad.read_bytes()[:-1000])
    with pytest.raises(InvalidValueError, match=r"b\.parquet.*cut short"):
        learn_files(agreement, [str(tmp_path)], chosen)
    other = propose(epsilon=3)
    people = {c: np.linspace(0, 100, 30) for c in ("age", "income")}
    write_file(bad, other, perturb_table(other, people))
    with pytest.raises(InvalidValueError, match=r"b\.parquet.*another agreement"):
        learn_files(agreement, [str(tmp_path)], chosen)
    bad.write_bytes(b"PAR1")
    with pytest.raises(InvalidValueError, match=r"b\.parquet.*cut short"):
        learn_files(agreement, [str(tmp_path)], chosen)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]


def test_a_file_that_is_written_to_meanwhile(agreement, table, tmp_path) -> None:
    path = tmp_path / "a.parquet"
    write_file(path, agreement, table)
    with pytest.raises(ConflictError, match=r"a\.parquet.*written to meanwhile"):
        learn_files(
            agreement,
            [str(path)],
            Threads(1),
            progress=lambda _done, _of: (
                write_file(path, agreement, part(table, slice(0, 50))) and None
            ),
        )
    assert [p.name for p in tmp_path.iterdir()] == ["a.parquet"]


# ---- a plan


PLAN = plan("label", waves=2, quorum=600)
NAMES = ("age", "education", "region", "married", "income")


def test_files_give_the_model_of_their_releases(tmp_path) -> None:
    """Each wave's people blur a table into a file; each wave is released from its own file."""
    everyone, course, at = people(600, 4), Course.of(PLAN, ()), 0
    for number, quorum in enumerate(PLAN.quorums, start=1):
        agreement = next_agreement(PLAN, course.releases)
        folder = tmp_path / f"wave{number}"
        folder.mkdir()
        table = written(folder / "people.csv", rows(everyone, at, at + quorum), NAMES)
        assert blur_table(agreement, table, folder / "blurred.parquet") == quorum
        found = release_files(agreement, [str(folder)], Threads())
        course = course.then(PublishedMoments.from_json(found.moments))
        at += quorum
    model = learn_plan(PLAN, course.releases)
    assert tuple(one.count for one in model.waves) == PLAN.quorums
    clean = agreement.exact(rows(everyone, PLAN.quorums[0], 600)).sum(axis=0)
    noise = (course.releases[1].sums - clean) / np.sqrt(len(clean))
    (part,) = agreement.parts
    assert np.abs(noise / part.deviations).max() < 6 * np.sqrt(PLAN.quorums[1] / len(clean))


# ---- export


def read(path, agreement):
    with open_submissions(path, agreement.layout) as file:
        parts = [part for group in range(file.groups) for part in file.parts(group)]
        return file.released, [np.concatenate(column) for column in zip(*parts, strict=True)]


def test_a_closed_collection_is_written_whole(place, agreement, tmp_path) -> None:
    table = perturb_table(agreement, PEOPLE)
    told: list[tuple[int, int]] = []
    with Store(place) as store:
        store.add(agreement, table)
        with pytest.raises(NotPublishedError, match="still collecting"):
            export(store, agreement.fingerprint, tmp_path / "a.parquet")
        assert not (tmp_path / "a.parquet").exists()
        store.close_collection(agreement.fingerprint)
        rows = export(
            store,
            agreement.fingerprint,
            tmp_path / "a.parquet",
            lambda done, of: told.append((done, of)),
        )
    assert rows == 40
    assert told[-1] == (40, 40)
    released, (identifiers, numbers) = read(tmp_path / "a.parquet", agreement)
    assert released is None
    order = np.lexsort(table.identifiers.T[::-1])  # no order of arrival is kept
    np.testing.assert_array_equal(identifiers, table.identifiers[order])
    np.testing.assert_array_equal(numbers, table.numbers[order])


def test_a_closed_collection_is_handed_over(place, agreement, tmp_path) -> None:
    """Its model comes from that file from then on."""
    with Store(place) as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        store.close_collection(agreement.fingerprint)
        export(store, agreement.fingerprint, tmp_path / "a.parquet")
        with pytest.raises(InfeasibleError, match=r"a\.parquet.*nor exported again"):
            export(store, agreement.fingerprint, tmp_path / "a.parquet")
        with pytest.raises(InfeasibleError, match=r"a\.parquet.*nor exported again"):
            export(store, agreement.fingerprint, tmp_path / "b.parquet")
        assert learn_files(agreement, [str(tmp_path)], Threads(1)).count == 40
        with pytest.raises(InfeasibleError, match=r"was exported to .*a\.parquet"):
            store.publish(agreement)


def test_an_empty_collection(agreement, tmp_path) -> None:
    with Store() as store:
        store.open(agreement)
        store.close_collection(agreement.fingerprint)
        with pytest.raises(NotPublishedError, match="Nobody"):
            export(store, agreement.fingerprint, tmp_path / "a.parquet")


def test_damaged_numbers_are_noticed(agreement, tmp_path) -> None:
    place = f"sqlite:///{tmp_path / 'c.db'}"
    with Store(place) as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        store.close_collection(agreement.fingerprint)
        engine = sa.create_engine(place)
        with engine.begin() as connection:
            rows = bytearray(connection.scalar(sa.select(database.blocks.c.rows)))
            rows[23] ^= 0x40
            connection.execute(sa.update(database.blocks).values(rows=bytes(rows)))
        engine.dispose()
        with pytest.raises(NotCertifiedError, match="storage is damaged"):
            export(store, agreement.fingerprint, tmp_path / "a.parquet")
    assert not (tmp_path / "a.parquet").exists()


# ---- database noise


def test_one_noise_for_a_set_of_files(tmp_path) -> None:
    agreement = propose(database_noise=True)
    sent, file = perturb_table(agreement, PEOPLE), tmp_path / "all.parquet"
    write_file(file, agreement, sent)
    first = release_files(agreement, [str(file)], Threads(1))
    assert release_files(agreement, [str(file)], Threads(1)) == first
    shown = PublishedMoments.from_json(first.moments)
    added = (shown.sums - totals_of(agreement, sent).sums) / agreement.step
    assert (added == np.rint(added)).all()
    assert (added != 0).all()


def test_what_a_store_published_is_not_learned_again_with_other_noise(tmp_path) -> None:
    agreement = propose(database_noise=True)
    with Store() as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        store.publish(agreement)
        export(store, agreement.fingerprint, tmp_path / "all.parquet")
    with pytest.raises(ConflictError, match="with other noise"):
        release_files(agreement, [str(tmp_path / "all.parquet")], Threads(1))


def test_a_folder_without_a_receipt_gets_the_one_that_there_is(tmp_path) -> None:
    """Seen before: noise was drawn again where the first folder's receipt was lost, or where a file
    was moved to a folder that is now the first; the mean of both releases has less of it.
    """
    agreement = propose(database_noise=True)
    files = [tmp_path / name / f"{name}.parquet" for name in ("one", "two")]
    for file in files:
        file.parent.mkdir()
        write_file(file, agreement, perturb_table(agreement, PEOPLE))
    first = release_files(agreement, map(str, files), Threads(1))
    (receipt,) = files[0].parent.glob("*.release.json")
    receipt.unlink()
    assert release_files(agreement, map(str, files), Threads(1)) == first
    moved = tmp_path / "another" / "two.parquet"
    moved.parent.mkdir()
    files[1].rename(moved)
    assert release_files(agreement, map(str, [files[0], moved]), Threads(1)) == first
    assert len(list(moved.parent.glob("*.release.json"))) == 1


def test_an_unpublished_collection_is_not_exported_as_its_noise_could_be_drawn_twice(
    tmp_path,
) -> None:
    agreement = propose(database_noise=True)
    with Store() as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        store.close_collection(agreement.fingerprint)
        with pytest.raises(InfeasibleError, match="publish here"):
            export(store, agreement.fingerprint, tmp_path / "all.parquet")
        assert store.publish(agreement).count == 40
    assert not list(tmp_path.iterdir())
