"""The store: submissions in SQLite or PostgreSQL, each counted once, and one release of each wave.

**Backups** are made while a store collects, and restored without a second release::

    store ── backup ──► a file that says it is a backup, and that no service opens
                              │ restore
                              ▼
                        a store, in which whatever could be released twice is closed for good

`restore` closes each course that had not ended when the backup was made, with what its waves had
released: the original may have released something since. If an operator declares that the original
was lost before it published or exported (`original_lost`), a collection with one database goes on,
in one store only: not if the original, or one that went on before, is at its place, or this account
knows a release of it. Never shares, of which the other database may have seen a fixed set, nor what
is released at quorum, nor what was being exported.

**Copies** have the identity of the original, under which each release is recorded
(`blurfit.release_record`), and another place: a store that is not where it was opened last is
refused (`_settle`), until its operator says whether it was put back or moved. What that prevents,
and what not: `docs/theory/one-release.md`.

What was published before stays published, to the last byte.
"""

import json
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from blurfit import private_files, release_record
from blurfit.agreement.agreement import Agreement
from blurfit.errors import InvalidValueError, StorageError
from blurfit.release_record import ReleaseRecord
from blurfit.wording import Message
from blurfit_server.store import blocks, collections, database, release
from blurfit_server.store.arrivals import Access
from blurfit_server.store.collections import Course
from blurfit_server.store.database import IDENTITY
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
                _settle(connection, self._file)
        except (StorageError, exc.DatabaseError) as error:
            self._engine.dispose()
            raise InvalidValueError(
                "Expected {engine_url!r} to be a store that can be opened: {error} "
                "Does its folder exist, and is the server running?",
                engine_url=str(self._engine.url),
                error=error,
            ) from error
        except BaseException:
            self._engine.dispose()
            raise


# Settings: the hour of a backup, since 1970; path, device and number of the file that was opened
# last.
_MARK, _LOCATION = "backup", "location"
RESTORED = Message(
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
            "Expected a store in SQLite, and {place!r} is not one. Back up PostgreSQL with "
            "pg_dump; after pg_restore, run `blurfit restore --in-place --store …`.",
            place=str(place),
        )
    with _unfinished(out) as part:
        with closing(_opened(source)) as connection:
            connection.execute("VACUUM INTO ?", (str(part),))
        with database.Transactions(part) as copied:
            if not copied.read(_has_tables):
                raise InvalidValueError(
                    "Expected {path!r} to be a store in SQLite.", path=str(source)
                )
            copied.write(database.migrate)  # or a sentence about another version
        with closing(_opened(part)) as copy, copy:
            now = str(int(time.time() // 3600)).encode()
            copy.execute("REPLACE INTO settings VALUES (?, ?)", (_MARK, now))
        return _checked(part)


def restore(source: Path, out: Path, *, original_lost: bool = False) -> Copied:
    """Make a store at `out`, which must be new, from a backup; see above for what is closed."""
    with _unfinished(out) as part:
        with closing(_opened(source)) as connection:
            connection.execute("VACUUM INTO ?", (str(part),))
        with database.Transactions(part) as store:
            store.write(database.migrate)  # or a sentence about another version
            if store.read(_setting, _MARK) is None:
                raise InvalidValueError(
                    "Expected {source!r} to be a file that `blurfit backup` wrote.",
                    source=str(source),
                )
            closed = store.write(_close, out, original_lost=original_lost)
            store.write(_set, _MARK, None)
        found = _checked(part)
    Store(out).close()
    return Copied(found.collections, found.submissions, closed)


def mark_restored(place: str | Path, *, original_lost: bool = False) -> tuple[str, ...]:
    """Close what could be released twice, in a store that was put back by other means: from a dump
    of PostgreSQL, or by a backup of files.

    The fingerprints of what was closed are returned. To do it again changes nothing
    but what was opened since.
    """
    with database.Transactions(place) as store:
        store.write(database.migrate)  # or a sentence about another version
        closed = store.write(_close, database.file_of(place), original_lost=original_lost)
    Store(place).close()
    return closed


def move_here(place: str | Path) -> None:
    """Let a store go on here, which was moved with all that it held, and is nowhere else."""
    if (file := database.file_of(place)) is not None:
        _opened(file).close()  # or a sentence: nothing is created
    with database.Transactions(place) as store:
        store.write(database.migrate)
        store.write(_move, file)
    Store(place).close()


def _settle(connection: Connection, file: Path | None) -> None:
    """Give a new store an identity; refuse a backup, and what may be a copy.

    A copy is another file. A file keeps its number when it is renamed on its device, whose own
    number may change when the machine starts: so path or device must be the same, too. Of
    PostgreSQL, server and database must be, and the number of a table, which a dump has anew.
    """
    now: list[Any] | None = None
    if file is not None:
        status = file.stat()
        now = [str(file.resolve()), status.st_dev, status.st_ino]
    elif connection.dialect.name == "postgresql":
        row = connection.exec_driver_sql(
            "SELECT (SELECT system_identifier FROM pg_control_system()), (SELECT oid FROM "
            "pg_database WHERE datname = current_database()), 'settings'::regclass::oid"
        ).one()
        now = [f"database {row[1]} of PostgreSQL {row[0]}", None, row[2]]
    if _setting(connection, _MARK) is not None:
        raise InvalidValueError(
            "Expected {file!r} to be a store, and it is a backup of one: the original may "
            "have published since. Make a store of it with `blurfit restore`.",
            file=str(file),
        )
    if _setting(connection, IDENTITY) is None:
        _set(connection, IDENTITY, secrets.token_bytes(16))
    before = json.loads(_setting(connection, _LOCATION) or "null")
    if now is None or now == before:
        return
    is_same_device = before is not None and before[1] is not None and before[1] == now[1]
    if before is not None and (before[2] != now[2] or not (before[0] == now[0] or is_same_device)):
        raise InvalidValueError(
            "Expected the store that was opened at {before!r}, and the one at {now!r} was "
            "copied or moved: of two copies each could publish, and the two would give away whom "
            "they differ in. If the original may have published since, as after a backup, run "
            "`blurfit restore --in-place`; if this is all of it, and it is nowhere else, run "
            "`blurfit restore --moved`.",
            before=before[0],
            now=now[0],
        )
    with suppress(OSError):
        if is_same_device and Path(before[0]).samefile(now[0]):
            return  # by another way to it
    _set(connection, _LOCATION, json.dumps(now).encode())


def _setting(connection: Connection, name: str) -> bytes | None:
    here = database.settings.c.name == name
    found: bytes | None = connection.scalar(sa.select(database.settings.c.value).where(here))
    return found


def _set(connection: Connection, name: str, value: bytes | None) -> None:
    connection.execute(sa.delete(database.settings).where(database.settings.c.name == name))
    if value is not None:
        connection.execute(sa.insert(database.settings).values(name=name, value=value))


def _move(connection: Connection, out: Path | None) -> None:
    """Let a store go on wherever it is opened next, which will be `out`; refuse while another one
    of its identity is there: the original, or one that was moved or restored to go on before.

    Of other machines, and of stores that were moved since, nothing is known here.
    """
    identity = _setting(connection, IDENTITY) or b""
    places = [release_record.place_of(identity)]
    if (known := _setting(connection, _LOCATION)) is not None:
        places.append(Path(json.loads(known)[0]))
    for place in places:
        if place is not None and place != (out and out.resolve()) and _is_store(place, identity):
            raise InvalidValueError(
                "Expected the original to be lost, and {place!r} is there, which could "
                "publish too: two releases could give away whoever came in between. Remove it, if "
                "it has published and exported nothing since; or close what both could publish: "
                "restore without --original-lost, or --in-place instead of --moved.",
                place=str(place),
            )
    _set(connection, _LOCATION, None)
    if out is not None:
        release_record.remember_place(identity, out.resolve())


def _close(connection: Connection, out: Path | None, *, original_lost: bool) -> tuple[str, ...]:
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
        _move(connection, out)
    else:  # what it opens from now on is its own
        _set(connection, IDENTITY, secrets.token_bytes(16))
        _set(connection, _LOCATION, None)
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
    identity = _setting(connection, IDENTITY) or b""
    if ReleaseRecord.of_store(course.fingerprint, identity).find() is not None:
        raise InvalidValueError(
            "Expected a collection of which nothing was released, and {course_fingerprint} has "
            "been released from the original, as {path!r} says. Restore "
            "without --original-lost.",
            course_fingerprint=course.fingerprint,
            path=str(release_record.path()),
        )
    return True


def _checked(part: Path) -> Copied:
    """Refuse a copy with which SQLite finds something wrong, or sums without their checksums."""
    with closing(_opened(part)) as connection:
        (verdict,) = connection.execute("PRAGMA integrity_check").fetchone()
    if verdict != "ok":
        raise StorageError("The copy is damaged, and was removed: {verdict}.", verdict=verdict)
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
        raise InvalidValueError("Expected {out!r} to be new: nothing is overwritten.", out=str(out))
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
        raise StorageError("The copy could not be made: {error}.", error=error) from error


def _has_tables(connection: Connection) -> bool:
    return sa.inspect(connection).has_table(database.migrations.name)


def _opened(path: Path) -> sqlite3.Connection:
    refusal = InvalidValueError("Expected {path!r} to be a store in SQLite.", path=str(path))
    if not path.is_file():
        raise refusal
    with path.open("rb") as stream:
        if stream.read(len(_SIGNATURE)) != _SIGNATURE:
            raise refusal
    return sqlite3.connect(path, timeout=30)


def _is_store(place: Path, identity: bytes) -> bool:
    """Whether a store is at a place, and is not known to be another one."""
    if not place.exists():
        return False
    try:
        with closing(_opened(place)) as there:
            row = there.execute("SELECT value FROM settings WHERE name = 'identity'").fetchone()
            return row is None or bytes(row[0]) == identity
    except (InvalidValueError, sqlite3.Error):
        return True  # damaged: whoever mends it would have a second store
