"""Tokens, backups, and files that vanish: nothing is ever released twice because of one."""

import shutil
import sqlite3
import threading
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from blurfit import ConflictError, InvalidValueError, StorageError
from blurfit import protocol as tokens
from blurfit.contributor.blur import perturb_table
from blurfit.errors import ClosedError, InfeasibleError
from blurfit_server.store.arrivals import RIGHTS, Bearer
from blurfit_server.store.store import Store, backup, mark_restored, move_here, restore
from server_support.sharing import drive
from server_support.stores import at_once
from support.plans import fill, plan
from support.proposals import PEOPLE, propose
from support.sharing import new_agreement

# ---- tokens


def test_one_token_of_two(place) -> None:
    with Store(place) as first, Store(place) as second:
        pairs = ((first, "one"), (second, "two"))
        made = at_once(*(partial(store.appoint, tokens.hashed(token)) for store, token in pairs))
        assert sorted(made) == [False, True]
        assert first.administrator() == second.administrator() is not None
        assert first.administrator() in (tokens.hashed("one"), tokens.hashed("two"))


def granted(store, name="mail office", right="invite") -> bytes:
    hashed = tokens.hashed(tokens.new_token())
    store.grant(name, right, hashed)
    return hashed


def test_a_token_is_good_for_what_it_was_made_for_until_it_is_revoked(place) -> None:
    with Store(place) as store:
        mail = granted(store)
        assert store.bearer(mail) == Bearer("mail office", ("invite",))
        store.revoke("mail office")
        assert store.bearer(mail) is None


def test_the_administrators_is_good_for_all(place) -> None:
    with Store(place) as store:
        first = tokens.hashed(tokens.new_token())
        store.appoint(first)
        assert store.bearer(first) == Bearer("administrator", RIGHTS)
        other = tokens.hashed(tokens.new_token())
        assert not store.appoint(other)
        assert store.appoint(other, replace=True)
        assert store.bearer(first) is None
        assert store.administrator() == other


@pytest.mark.parametrize("name", ["", "a" * 101, "two\nlines", "administrator"])
def test_a_name_that_could_mislead_is_refused(name) -> None:
    with Store() as store, pytest.raises(InvalidValueError, match="printable"):
        granted(store, name)


def test_a_name_is_taken_once_and_an_unknown_one_cannot_be_revoked() -> None:
    with Store() as store:
        granted(store)
        with pytest.raises(ConflictError, match="already"):
            granted(store)
        with pytest.raises(InvalidValueError, match="mail office"):
            store.revoke("nobody")
        with pytest.raises(InvalidValueError, match="right"):
            granted(store, "other", "everything")
        assert store.granted() == {"mail office": "invite"}


# ---- backups


@pytest.fixture
def folder(in_memory):
    return in_memory


def collected(path, agreement):
    store = Store(path)
    store.add(agreement, perturb_table(agreement, PEOPLE))
    return store


def test_a_backup_has_everything_is_its_owners_alone_and_no_store(agreement, folder) -> None:
    """Seen before: `cp` of the file held none of 26,100 that were acknowledged."""
    with collected(folder / "store.db", agreement):
        shutil.copy(folder / "store.db", folder / "copied.db")
        found = backup(folder / "store.db", folder / "backup.db")
        with pytest.raises(InvalidValueError, match="to be new"):
            backup(folder / "store.db", folder / "backup.db")
    assert (found.collections, found.submissions) == (1, 40), "also what is still in the log"
    with closing(sqlite3.connect(folder / "copied.db")) as connection:
        tables_there = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    assert tables_there == 0  # so the plain copy would have lost everything
    assert (folder / "backup.db").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in folder.glob("backup*")) == ["backup.db"]
    with pytest.raises(InvalidValueError, match="blurfit restore"):
        Store(folder / "backup.db")


def test_it_is_of_one_moment_while_others_write(folder) -> None:
    agreement = propose()
    ended = threading.Event()
    with collected(folder / "store.db", agreement) as store:

        def go_on() -> None:
            while not ended.is_set():
                store.add(agreement, perturb_table(agreement, PEOPLE))

        writer = threading.Thread(target=go_on)
        writer.start()
        try:
            found = [backup(folder / "store.db", folder / f"{n}.db") for n in range(3)]
        finally:
            ended.set()
            writer.join()
    assert all(one.submissions % 40 == 0 and one.submissions >= 40 for one in found)


def test_a_restored_collection_does_not_publish_again(agreement, folder) -> None:
    """Seen before: a second model, of 401 people and of 400."""
    with collected(folder / "store.db", agreement) as store:
        backup(folder / "store.db", folder / "backup.db")
        store.add(agreement, perturb_table(agreement, PEOPLE))
        store.publish(agreement)
    found = restore(folder / "backup.db", folder / "again.db")
    assert found.closed == (agreement.fingerprint,)
    with Store(folder / "again.db") as again:
        assert again.count(agreement) == 40
        with pytest.raises(InfeasibleError, match="restored from a backup"):
            again.publish(agreement)
        with pytest.raises(ClosedError):
            again.add(agreement, perturb_table(agreement, PEOPLE))


def test_what_was_published_stays_to_the_last_byte(agreement, folder) -> None:
    with collected(folder / "store.db", agreement) as store:
        model = store.publish(agreement).to_json()
        backup(folder / "store.db", folder / "backup.db")
    assert restore(folder / "backup.db", folder / "again.db").closed == ()
    with Store(folder / "again.db") as again:
        assert again.publish(agreement).to_json() == model


def test_where_the_original_is_lost_a_collection_goes_on(agreement, folder) -> None:
    with collected(folder / "store.db", agreement):
        backup(folder / "store.db", folder / "backup.db")
    (folder / "store.db").unlink()
    found = restore(folder / "backup.db", folder / "again.db", original_lost=True)
    with Store(folder / "again.db") as again:
        assert found.closed == ()
        again.add(agreement, perturb_table(agreement, PEOPLE))
        assert again.publish(agreement).count == 80


@pytest.mark.parametrize("original_lost", [False, True])
def test_a_restored_plan_ends_with_the_best_model_so_far(folder, original_lost) -> None:
    """The original may have released the open wave since; what it had released stays.

    Seen before: with `original_lost` the open wave was released a second time, of other people. A
    wave is released by itself, so nobody can say that it was not.
    """
    agreed = plan("label", waves=2, quorum=60)
    first, everyone = agreed.quorums[0], 60
    with Store(folder / "store.db") as store:
        store.open(agreed)
        fill(store, agreed.first(), 0, first)
        drive(store)
        second = store.current(agreed.fingerprint)
        fill(store, second, first, everyone)
        backup(folder / "store.db", folder / "backup.db")
        drive(store)
        released = store.releases(agreed.fingerprint)
    (folder / "store.db").unlink()
    found = restore(folder / "backup.db", folder / "again.db", original_lost=original_lost)
    assert found.closed == (agreed.fingerprint,)
    with Store(folder / "again.db") as again:
        assert again.due() == []
        assert again.releases(agreed.fingerprint) == released[:1]
        status = again.status(agreed.fingerprint)
        assert status.model == agreed.first().fingerprint
        assert [one.state for one in status.waves] == ["released", "dropped"]
        assert "restored from a backup" in status.reason


def test_shares_never_go_on(folder) -> None:
    agreement = new_agreement()
    with Store(folder / "store.db") as store:
        store.open(agreement, role="first")
    backup(folder / "store.db", folder / "backup.db")
    (folder / "store.db").unlink()
    found = restore(folder / "backup.db", folder / "again.db", original_lost=True)
    assert found.closed == (agreement.fingerprint,)


def test_damage_is_found_and_leaves_no_backup(folder) -> None:
    agreement = propose()
    with collected(folder / "store.db", agreement) as store:
        store.write(lambda c: c.exec_driver_sql("UPDATE blocks SET sums = zeroblob(length(sums))"))
    with pytest.raises(Exception, match="checksum"):
        backup(folder / "store.db", folder / "backup.db")
    assert not list(folder.glob("backup*"))


def test_a_backup_of_an_old_store_is_refused_as_serving_it_is(folder) -> None:
    """Seen before: "no such column: waves.fingerprint"."""
    with sqlite3.connect(folder / "old.db") as old:
        old.execute("CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT)")
        old.execute("INSERT INTO migrations VALUES (0, 'create the tables')")
        old.execute("CREATE TABLE settings (name TEXT PRIMARY KEY, value BLOB)")
    with sqlite3.connect(folder / "other.db") as other:
        other.execute("CREATE TABLE plants (name TEXT)")
    with pytest.raises(InvalidValueError, match="written before its first release"):
        backup(folder / "old.db", folder / "backup.db")
    with pytest.raises(InvalidValueError, match=r"other\.db' to be a store in SQLite"):
        backup(folder / "other.db", folder / "backup.db")
    assert not list(folder.glob("*backup*"))


@pytest.mark.parametrize("content", [b"", b"no store", None])
def test_what_is_no_store_or_no_backup_is_refused(content, folder) -> None:
    if content is not None:
        (folder / "some.db").write_bytes(content)
    with pytest.raises(InvalidValueError):
        backup(folder / "some.db", folder / "backup.db")
    with pytest.raises(InvalidValueError):
        restore(folder / "some.db", folder / "again.db")
    assert not list(folder.glob("*.part"))


def test_a_store_itself_is_no_backup(folder) -> None:
    Store(folder / "store.db").close()
    with pytest.raises(InvalidValueError, match="blurfit backup"):
        restore(folder / "store.db", folder / "again.db")


def test_a_restored_postgresql_is_marked_in_place(places) -> None:
    url, agreement = places.fresh(), propose()
    with collected(url, agreement):
        pass
    with pytest.raises(InvalidValueError, match="pg_dump"):
        backup(url, Path("never.db"))
    assert mark_restored(url) == (agreement.fingerprint,)
    assert mark_restored(url) == ()
    with Store(url) as again, pytest.raises(InfeasibleError, match="restored"):
        again.publish(agreement)


class TestAFileThatVanishes:
    @pytest.mark.parametrize(("how", "words"), [("removed", "gone"), ("replaced", "replaced")])
    def test_nothing_is_acknowledged_into_it(self, folder, how, words) -> None:
        """Seen before: 2,930 were, and lost."""
        agreement = propose()
        with collected(folder / "store.db", agreement) as store:
            store.check()
            for path in [*folder.glob("store.db*")] if how == "removed" else [folder / "store.db"]:
                path.rename(folder / f"old{path.suffix}")
            if how == "replaced":
                (folder / "store.db").write_bytes(b"")
            with pytest.raises(StorageError, match=words):
                store.add(agreement, perturb_table(agreement, PEOPLE))
            with pytest.raises(StorageError, match=words):
                store.check()

    def test_what_a_lost_log_held_is_saved(self, folder) -> None:
        """By the connection that has it open still, into the store's file."""
        agreement = propose()
        with collected(folder / "store.db", agreement) as store:
            (folder / "store.db-wal").unlink()
            for attempt in (store.check, store.tidy, lambda: store.count(agreement)):
                with pytest.raises(StorageError, match=r"store\.db-wal is gone"):
                    attempt()
            shutil.copy(folder / "store.db", folder / "saved.db")  # as a kill would leave it
        (folder / "store.db").unlink()
        move_here(folder / "saved.db")
        with Store(folder / "saved.db") as saved:
            assert saved.count(agreement) == 40

    def test_another_log_is_never_moved_into_the_store(self, folder) -> None:
        agreement = propose()
        with collected(folder / "store.db", agreement) as store:
            before = (folder / "store.db").read_bytes()
            (folder / "store.db-wal").unlink()
            (folder / "store.db-wal").write_bytes(bytes(2**20))
            for attempt in (store.check, store.tidy):
                with pytest.raises(StorageError, match=r"store\.db-wal was replaced"):
                    attempt()
            assert (folder / "store.db").read_bytes() == before

    def test_a_full_disk_is_not_well(self, folder, monkeypatch) -> None:
        with Store(folder / "store.db") as store:
            usage = shutil.disk_usage(folder)
            monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=2**20))
            with pytest.raises(StorageError, match="full"):
                store.check()
