"""What is still to be done, or to be told to the other database: rows with attempts and a time.

    advance   take a course forward: its open wave is full or fixed, or its date has come
    tell      let the second database know of a wave's release, or of the course's state
    sign      exchange the signatures of what both have published

A row is written in the transaction that causes it, and struck off when it is done: so a crash
forgets nothing, and a service that starts finds here all that there is to do. What fails is put
off, by whoever drives (`blurfit.service`). Every task may be done twice, or by two services at
once: it finds what was written down, and changes nothing.

**Order.** Releases are told one after the other, then how the course stands, and all of that before
the next wave is summed: a course with something to tell does not advance. What has changed while it
was told is told again. The exception is a date that has come: a course ends then even
if the other database cannot be reached, or does not take what it is told. Signatures wait for
nobody, since no promise depends on them.

**No lost call.** A group of arrivals that fills a wave writes `advance` while it holds the course's
row, shared; whoever strikes `advance` off holds the row alone, and looks again
(`blurfit.store.release`) whether the wave is full. So either finds what the other did.
"""

import math
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from blurfit.store.tables import Clock, courses, insert_if_absent, outbox

What = Literal["advance", "tell", "sign"]
_o = outbox.c
_PENDING = (
    sa.select(
        _o.key,
        _o.what,
        courses.c.fingerprint,
        _o.wave,
        _o.attempts,
        (_o.next - Clock()).label("seconds"),
        sa.func.coalesce(courses.c.closes <= Clock(), sa.false()).label("past"),
    )
    .join(courses, courses.c.key == _o.course)
    .order_by(_o.wave == 0, _o.key)  # how a course stands now is told after what led to it
)


class Task(NamedTuple):
    """Something to do for a course, or for one of its waves; it was tried so often in vain."""

    key: int
    what: What
    course: str  # its fingerprint
    wave: int  # its number, or 0
    attempts: int


def add(connection: Connection, course: int, what: What, wave: int = 0) -> None:
    """Write down something to do now, unless it is written already."""
    row = {"course": course, "wave": wave, "what": what, "attempts": 0, "next": 0}
    connection.execute(insert_if_absent(connection, outbox).values(row))


def call(connection: Connection, course: int, come: int | None = None) -> None:
    """Let a course advance now, whose open wave is full or fixed; of one that waits for its date or
    for more people, if so many have come as were wanted, or in any case.
    """
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    insert: Any = dialect.insert(outbox)
    row = {"course": course, "wave": 0, "what": "advance", "attempts": 0, "next": 0}
    again = insert.values(row).on_conflict_do_update(
        index_elements=[_o.course, _o.wave, _o.what],
        set_={"next": 0, "wanted": None},
        where=_o.wanted.is_not(None) if come is None else _o.wanted <= come,
    )
    connection.execute(again)


def schedule(
    connection: Connection, course: int, at: int | None, wanted: int | None = None
) -> None:
    """Let a course advance at a moment, or as soon as so many have come; None for never."""
    here = (_o.course == course) & (_o.what == "advance")
    connection.execute(sa.delete(outbox).where(here))
    if at is not None:
        add(connection, course, "advance")
        connection.execute(sa.update(outbox).where(here).values(next=at, wanted=wanted))


def strike(connection: Connection, course: int, *whats: What) -> None:
    """Forget what was to be done for a course."""
    connection.execute(sa.delete(outbox).where((_o.course == course) & _o.what.in_(whats)))


def has(connection: Connection, course: int, what: What) -> bool:
    """Tell whether there is something of a kind to do for a course."""
    query = sa.select(_o.key).where((_o.course == course) & (_o.what == what)).limit(1)
    return connection.scalar(query) is not None


def due(connection: Connection) -> list[Task]:
    """Return what is to be done now: of what a course has to tell, the first."""
    return [task for task, seconds in _next(connection) if seconds <= 0]


def seconds_to_next(connection: Connection) -> float | None:
    """Return how long nothing is to be done; None if nothing is written down."""
    found = [seconds for _, seconds in _next(connection)]
    return max(0.0, min(found)) if found else None


def _next(connection: Connection) -> list[tuple[Task, float]]:
    """Return the tasks that no other is before, and in how many seconds each is to be done."""
    found, telling = [], set()
    for row in connection.execute(_PENDING):
        if row.what != "tell" or row.fingerprint not in telling:
            found.append((Task(*row[:5]), float(row.seconds), bool(row.past)))
        if row.what == "tell":
            telling.add(row.fingerprint)
    return [
        (task, seconds)
        for task, seconds, past in found
        if task.what != "advance" or past or task.course not in telling
    ]


def done(connection: Connection, task: Task) -> None:
    """Strike a task off."""
    connection.execute(sa.delete(outbox).where(_o.key == task.key))


def put_off(connection: Connection, task: Task, seconds: float, wanted: int | None = None) -> None:
    """Try a task again after so many seconds, or as soon as so many have come."""
    later = Clock() + max(0, math.ceil(seconds))
    values = {"attempts": task.attempts + 1, "next": later, "wanted": wanted}
    connection.execute(sa.update(outbox).where(_o.key == task.key).values(values))
