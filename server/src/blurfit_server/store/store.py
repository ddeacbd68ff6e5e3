"""The store: submissions in SQLite or PostgreSQL, each counted once, and one release of each wave.

**Backups** are made while a store collects, and restored without a second release::

    store ── backup ──► a file that says it is a backup, and that no service opens
                              │ restore
                              ▼
                        a store, in which whatever could be released twice is closed for good

**Why a copy of the file is no backup.** SQLite's newest pages are in its log, so `cp` of the file
may hold nothing of what was acknowledged. `VACUUM INTO` copies one state, as of one moment, while
others write, without anything that was deleted: a used invitation is not in it.

**Why a restored store must not simply go on.** The promise of an agreement is for one release from
one set of people (`blurfit.model.release`). After the backup the original may have taken more
people and published. If the restored store published too, there would be two releases, of sets that
differ in whoever came in between. So every course that had not ended when the backup was made is
ended, with what its waves had released, and says why. Only where the original is known to have been
lost before it published or exported, which nobody but its operator can say (`original_lost`), does
a collection with one database go on; and in one store only: that is refused as long as the
original, or one that went on from a backup before, is still on this machine. Shares never go on, of
which the other database may have seen a fixed set; nor does what is released at quorum, whether or
not anybody looks, so that not even the operator can say that it was not; nor what was being
exported.

What was published before stays published, to the last byte.
"""

import json
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from blurfit import private_files, release_record
from blurfit.agreement.agreement import Agreement
from blurfit.errors import InvalidValueError, StorageError
from blurfit.release_record import ReleaseRecord
from blurfit_server.store import blocks, collections, database, release
from blurfit_server.store.arrivals import Access
from blurfit_server.store.collections import Course
from blurfit_server.store.release import Publishing


class Store(Publishing, Access):
    """Any number of courses, each under its document's fingerprint.

    Args:
        place: a file for SQLite, a URL (sqlite:///collection.db, postgresql://user@host/name), or
            ":memory:" for one that lasts as long as this object.
        connections: how many there may be at once to PostgreSQL.
    """

    def __init__(
        self, place: str | Path = ":memory:", *, connections: int = database.CONNECTIONS
    ) -> None:
        super().__init__(place, connections)
        try:
            with self._writing() as connection:
                database.migrate(connection)
                refuse_backup(connection, str(place))
                self.identity = _settled(connection, self._file)
        except (StorageError, exc.DatabaseError) as error:
            self._engine.dispose()
            raise InvalidValueError(
                f"Expected {str(self._engine.url)!r} to be a store that can be opened: {error} "
                "Does its folder exist, and is the server running?"
            ) from error
        except BaseException:
            self._engine.dispose()
            raise


# Settings: what is a backup (since 1970, the hour); random bytes that a store has in common with its
# copies and backups; and where it was opened last, as `_located` says.
_MARK, _IDENTITY, _LOCATION = "backup", "identity", "location"
RESTORED = (
    "This store was restored from a backup, and the original may have published since: a second "
    "release could give away whoever came in between. Its people can be asked again under a new "
    "agreement."
)
_SIGNATURE = b"SQLite format 3\x00"


@dataclass(frozen=True)
class Copied:
    """What a backup or a restored store holds, counted in it and not in the original."""

    collections: int
    submissions: int
    closed: tuple[str, ...] = ()  # fingerprints that a restore has closed for good


def backup(place: str | Path, out: Path) -> Copied:
    """Copy an SQLite store at one moment, check it, and put it at `out`, which must be new."""
    if (source := database.file_of(place)) is None:
        raise InvalidValueError(
            f"Expected a store in SQLite, and {str(place)!r} is not one. Back up PostgreSQL with "
            "pg_dump; after pg_restore, run `blurfit restore --in-place --store …`."
        )
    with _unfinished(out) as part:
        with closing(_opened(source)) as connection:
            connection.execute("VACUUM INTO ?", (str(part),))
        with closing(_opened(part)) as copy, copy:
            now = str(int(time.time() // 3600)).encode()
            copy.execute("REPLACE INTO settings VALUES (?, ?)", (_MARK, now))
        return _checked(part)


def restore(source: Path, out: Path, *, original_lost: bool = False) -> Copied:
    """Make a store at `out`, which must be new, from a backup; see above for what is closed."""
    with _unfinished(out) as part:
        with closing(_opened(source)) as connection:
            if _setting(connection, _MARK) is None:
                raise InvalidValueError(
                    f"Expected {str(source)!r} to be a file that `blurfit backup` wrote."
                )
            connection.execute("VACUUM INTO ?", (str(part),))
        with database.Transactions(part) as store:
            closed = store.write(_close, part, out.resolve(), original_lost=original_lost)
            store.write(_set, _MARK, None)
        found = _checked(part)
    return Copied(found.collections, found.submissions, closed)


def mark_restored(place: str | Path, *, original_lost: bool = False) -> tuple[str, ...]:
    """Close what could be released twice, in a store that was put back by other means than
    `restore`: from a dump of PostgreSQL, or a backup of files.

    The fingerprints of what was closed are returned. To do it again changes nothing
    but what was opened since.
    """
    file = database.file_of(place)
    with database.Transactions(place) as store:
        store.write(database.migrate)  # or a sentence about another version
        return store.write(_close, file, file and file.resolve(), original_lost=original_lost)


def move_here(place: str | Path) -> None:
    """Let a store go on here, which was moved with all that it held, and is nowhere else."""
    if (file := database.file_of(place)) is not None:
        _opened(file).close()  # or a sentence: nothing is created
    with database.Transactions(place) as store:
        store.write(database.migrate)
        store.write(_move, file, file and file.resolve())


def refuse_backup(connection: Connection, place: str) -> None:
    """Refuse to open a backup, in which nothing may be collected or published."""
    query = sa.select(database.settings.c.value).where(database.settings.c.name == _MARK)
    if connection.scalar(query) is not None:
        raise InvalidValueError(
            f"Expected {place!r} to be a store, and it is a backup of one: the original may have "
            "published since. Make a store of it with `blurfit restore`."
        )


def _settled(connection: Connection, file: Path | None) -> bytes:
    """Return the identity of a store, new for a new one; refuse one that is not where it was.

    The number of the file tells it from a copy. A file keeps its number if it is renamed, on its
    device, whose own number may change when the machine starts; so one of path and device must stay
    as well. A copy at the same path may get the number that was free.
    """
    here, identity = _located(connection, file), _value(connection, _IDENTITY)
    if identity is None:
        _set(connection, _IDENTITY, identity := secrets.token_bytes(16))
    elif here is not None and (known := _value(connection, _LOCATION)) is not None:
        before, now = json.loads(known), json.loads(here)
        if before[2] != now[2] or (before[0] != now[0] and before[1] != now[1]):
            raise InvalidValueError(
                f"Expected the store that was opened at {before[0]!r}, and the one at {now[0]!r} "
                "is a copy of it, or was moved: of two copies each could publish, and the two "
                "would give away whom they differ in. If it may be older than the original, as "
                "from a backup, run `blurfit restore --in-place`; if it was moved, and is nowhere "
                "else, `blurfit restore --moved`."
            )
    if here is not None and here != _value(connection, _LOCATION):
        _set(connection, _LOCATION, here)
    return identity


def _located(connection: Connection, file: Path | None, out: Path | None = None) -> bytes | None:
    """Return path (or the one that it will have), device and number of a store's file; for PostgreSQL server and database, twice,
    and the number of a table, which a restored dump has anew.
    """
    if file is not None:
        found = file.stat()
        return json.dumps([str((out or file).resolve()), found.st_dev, found.st_ino]).encode()
    if connection.dialect.name != "postgresql":
        return None
    numbers = (
        "SELECT (SELECT system_identifier FROM pg_control_system()), (SELECT oid FROM pg_database "
        "WHERE datname = current_database()), 'settings'::regclass::oid"
    )
    system, base, table = connection.exec_driver_sql(numbers).one()
    server = f"database {base} of PostgreSQL {system}"
    return json.dumps([server, server, table]).encode()


def _value(connection: Connection, name: str) -> bytes | None:
    query = sa.select(database.settings.c.value).where(database.settings.c.name == name)
    return connection.scalar(query)


def _set(connection: Connection, name: str, value: bytes | None) -> None:
    connection.execute(sa.delete(database.settings).where(database.settings.c.name == name))
    if value is not None:
        connection.execute(sa.insert(database.settings).values(name=name, value=value))


def _move(connection: Connection, file: Path | None, out: Path | None) -> None:
    """Let a store go on, and no other of its origin: the original, or one that was moved or
    restored to go on before.

    Where it will be, `out`, this account remembers. Of other machines nothing is known.
    """
    identity = _value(connection, _IDENTITY) or secrets.token_bytes(16)
    known = _value(connection, _LOCATION)
    original = None if known is None else Path(json.loads(known)[0])
    for place in {original, release_record.place_of(identity)} - {None, out}:
        assert place is not None
        if _is_same_store(place, identity):
            raise InvalidValueError(
                f"Expected the original to be lost, and {str(place)!r} is there, which could "
                "publish too: two releases could give away whoever came in between. Remove it, if "
                "it has published and exported nothing since the copy was made; or close what both "
                "could publish: restore without --original-lost, or --in-place instead of --moved."
            )
    _set(connection, _IDENTITY, identity)
    _set(connection, _LOCATION, _located(connection, file, out))
    if out is not None:
        release_record.remember_place(identity, out)


def _close(
    connection: Connection, file: Path | None, out: Path | None, *, original_lost: bool
) -> tuple[str, ...]:
    """Close what could be released twice; without `original_lost` that is everything, and so this
    is another store from then on.
    """
    c, closed = database.courses.c, []
    query = sa.select(c.fingerprint).where(c.state != "ended").order_by(c.key)
    for fingerprint in connection.scalars(query).all():
        course = collections.find_course(connection, fingerprint)
        if original_lost and _may_go_on(connection, course):
            continue
        now = collections.standing(connection, course, alone=True)
        release.end(connection, now, RESTORED)
        closed.append(fingerprint)
    if original_lost:
        _move(connection, file, out)
    else:
        _set(connection, _IDENTITY, secrets.token_bytes(16))
        _set(connection, _LOCATION, _located(connection, file, out))
    return tuple(closed)


def _may_go_on(connection: Connection, course: Course) -> bool:
    """Tell whether a course can be released here alone, if the original is lost; refuse what was
    released from it, as far as this account knows.
    """
    agreement, w = course.document, database.waves.c
    if not (isinstance(agreement, Agreement) and course.role == "whole"):
        return False
    place = connection.scalar(sa.select(w.handed_over).where(w.course == course.key))
    # An export may have been completed since.
    if agreement.wave is not None or place is not None:
        return False
    identity = _value(connection, _IDENTITY) or b""
    if ReleaseRecord.of_store(course.fingerprint, identity).find() is not None:
        raise InvalidValueError(
            f"Expected a collection of which nothing was released, and {course.fingerprint} has "
            f"been released from the original, as {str(release_record.path())!r} says. Restore "
            "without --original-lost."
        )
    return True


def _checked(part: Path) -> Copied:
    """Refuse a copy with which SQLite finds something wrong, or sums without their checksums."""
    with closing(_opened(part)) as connection:
        (verdict,) = connection.execute("PRAGMA integrity_check").fetchone()
    if verdict != "ok":
        raise StorageError(f"The copy is damaged, and was removed: {verdict}.")
    with database.Transactions(part) as store:
        return store.read(_counted)


def _counted(connection: Connection) -> Copied:
    names = connection.scalars(sa.select(database.waves.c.fingerprint)).all()
    rows = 0
    for wave in (collections.find(connection, one) for one in names):
        rows += sum(count for count, _ in blocks.parts(connection, wave))  # compares checksums
    return Copied(len(names), rows)


@contextmanager
def _unfinished(out: Path) -> Iterator[Path]:
    """Yield a file beside `out`, for its owner alone, that takes its name when all went well."""
    if out.exists():
        raise InvalidValueError(f"Expected {str(out)!r} to be new: nothing is overwritten.")
    try:
        with private_files.replacing(out) as part:
            try:
                yield part  # `VACUUM INTO` takes an empty file
                with closing(_opened(part)) as connection:  # all of it into the one file
                    connection.execute("PRAGMA journal_mode = DELETE")
            finally:
                for log in ("-wal", "-shm", "-journal"):
                    Path(f"{part}{log}").unlink(missing_ok=True)
    except sqlite3.Error as error:
        raise StorageError(f"The copy could not be made: {error}.") from error


def _opened(path: Path) -> sqlite3.Connection:
    refusal = InvalidValueError(f"Expected {str(path)!r} to be a store in SQLite.")
    if not path.is_file():
        raise refusal
    with path.open("rb") as stream:
        if stream.read(len(_SIGNATURE)) != _SIGNATURE:
            raise refusal
    return sqlite3.connect(path, timeout=30)


def _is_same_store(place: Path, identity: bytes) -> bool:
    """Whether a store is at a place, and is not known to be another one."""
    if not place.exists():
        return False
    try:
        with closing(_opened(place)) as there:
            return _setting(there, _IDENTITY) in (None, identity)
    except (InvalidValueError, sqlite3.Error):
        return True  # damaged: whoever mends it would have a second store


def _setting(connection: sqlite3.Connection, name: str) -> bytes | None:
    try:
        query = "SELECT value FROM settings WHERE name = ?"
        row = connection.execute(query, (name,)).fetchone()
    except sqlite3.OperationalError:  # no such table
        return None
    return None if row is None else bytes(row[0])
