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

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from blurfit import private_files
from blurfit.agreement.agreement import Agreement
from blurfit.errors import InvalidValueError, StorageError
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
        except (StorageError, exc.DatabaseError) as error:
            self._engine.dispose()
            raise InvalidValueError(
                f"Expected {str(self._engine.url)!r} to be a store that can be opened: {error} "
                "Does its folder exist, and is the server running?"
            ) from error
        except BaseException:
            self._engine.dispose()
            raise


_MARK = "backup"  # a setting: since 1970, the hour
_IDENTITY, _ORIGINAL = "identity", "original"  # settings: random bytes of a store; where it was
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
            with connection:
                named = "INSERT OR IGNORE INTO settings VALUES (?, randomblob(16))"
                connection.execute(named, (_IDENTITY,))
            connection.execute("VACUUM INTO ?", (str(part),))
        with closing(_opened(part)) as copy, copy:
            now = str(int(time.time() // 3600)).encode()
            marks = [(_MARK, now), (_ORIGINAL, bytes(source.resolve()))]
            copy.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", marks)
        return _checked(part)


def restore(source: Path, out: Path, *, original_lost: bool = False) -> Copied:
    """Make a store at `out`, which must be new, from a backup; see above for what is closed."""
    with _unfinished(out) as part:
        with closing(_opened(source)) as connection:
            if _setting(connection, _MARK) is None:
                raise InvalidValueError(
                    f"Expected {str(source)!r} to be a file that `blurfit backup` wrote."
                )
            heir = _refuse_unless_lost(connection) if original_lost else None
            connection.execute("VACUUM INTO ?", (str(part),))
        closed = mark_restored(part, original_lost=original_lost)
        with closing(_opened(part)) as copy, copy:
            copy.execute("DELETE FROM settings WHERE name IN (?, ?)", (_MARK, _ORIGINAL))
        found = _checked(part)
        if heir is not None:  # before it can be opened
            heir.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            private_files.write(heir, bytes(out.resolve()))
    return Copied(found.collections, found.submissions, closed)


def mark_restored(place: str | Path, *, original_lost: bool = False) -> tuple[str, ...]:
    """Close what could be released twice; for a PostgreSQL database that was filled from a dump.

    The fingerprints of what was closed are returned. To do it again changes nothing
    but what was opened since.
    """
    with database.Transactions(place) as store:
        store.write(database.migrate)  # or a sentence about another version
        return store.write(_close, original_lost)


def refuse_backup(connection: Connection, place: str) -> None:
    """Refuse to open a backup, in which nothing may be collected or published."""
    query = sa.select(database.settings.c.value).where(database.settings.c.name == _MARK)
    if connection.scalar(query) is not None:
        raise InvalidValueError(
            f"Expected {place!r} to be a store, and it is a backup of one: the original may have "
            "published since. Make a store of it with `blurfit restore`."
        )


def _close(connection: Connection, original_lost: bool) -> tuple[str, ...]:
    c, found = database.courses.c, []
    query = sa.select(c.fingerprint).where(c.state != "ended").order_by(c.key)
    for fingerprint in connection.scalars(query).all():
        course = collections.find_course(connection, fingerprint)
        if original_lost and _may_go_on(connection, course):
            continue
        now = collections.standing(connection, course, alone=True)
        release.end(connection, now, RESTORED)
        found.append(fingerprint)
    return tuple(found)


def _may_go_on(connection: Connection, course: Course) -> bool:
    """Tell whether a course can be released here alone, if the original is lost."""
    agreement, w = course.document, database.waves.c
    if not (isinstance(agreement, Agreement) and course.role == "whole"):
        return False
    place = connection.scalar(sa.select(w.handed_over).where(w.course == course.key))
    # An export may have been completed since.
    return agreement.wave is None and place is None


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


def _refuse_unless_lost(connection: sqlite3.Connection) -> Path:
    """Refuse to go on where another store of the same origin is still there: the original, or one
    that was restored to go on before, from this or another backup.

    Where this account remembers the latter is returned. Of other machines nothing is known.
    """
    identity = _setting(connection, _IDENTITY) or b""
    heir = private_files.home() / "restored" / identity.hex()
    known = [_setting(connection, _ORIGINAL), heir.read_bytes() if heir.exists() else None]
    for place in (Path(os.fsdecode(one)) for one in known if one is not None):
        if _is_same_store(place, identity):
            raise InvalidValueError(
                f"Expected the original to be lost, and {str(place)!r} is there, which could "
                "publish too: two releases could give away whoever came in between. Remove it, if "
                "it has published and exported nothing since the backup; or restore without "
                "--original-lost."
            )
    return heir


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
