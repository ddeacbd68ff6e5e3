"""Closing at a date: from a moment on, by the clock of the database, nothing is taken any more.

    collecting ─ the date comes ─► closed          without anybody doing anything

No timer closes a collection. Its row holds the date, and whoever asks for the state, above all the
transaction that takes submissions, compares that with the clock of the database in the same
statement: a service that was stopped, hangs or has a wrong clock takes nothing late, and several
services on one PostgreSQL have one clock. (SQLite's is the machine's.)

While a collection takes submissions its date may be moved, earlier or later, or be taken away. Once
it has come the collection is closed for good, as if by hand; and where one was closed by hand
before its date, the date is forgotten. So a date that is past is when it closed.

**Two databases** have a date each. Their administrators set them, and thereby consent to publish,
as they would by closing by hand. Whoever comes between the two dates reaches one database alone and
is left out: the earlier date ends the collection, and the two should be the same.

**A plan's** date is kept with each of its waves. When it comes, the open wave is released if it has
its quorum, and dropped otherwise; the plan ends with the best model of what was released
(`blurfit.store.advance`). A plan that is held ends when it is resumed.

A date depends on nobody's answers, and nothing is published before a collection has closed, so no
promise changes with one.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from blurfit.dates import in_words
from blurfit.errors import ClosedError, ConflictError, DateClosedError, InvalidValueError
from blurfit.store.tables import collections, of_waves, plans, waves

_c = collections.c
OPEN = ("collecting", "paused")


class Clock(FunctionElement[int]):
    """The second since 1970, by the database's clock, when the statement is carried out."""

    inherit_cache = True
    type = sa.BigInteger()


@compiles(Clock, "sqlite")
def _in_sqlite(_element: Any, _compiler: Any, **_options: Any) -> str:
    return "CAST(strftime('%s', 'now') AS INTEGER)"


@compiles(Clock, "postgresql")
def _in_postgresql(_element: Any, _compiler: Any, **_options: Any) -> str:
    return "CAST(floor(extract(epoch FROM clock_timestamp())) AS BIGINT)"


# What a collection is in now; `collections.c.state` is what was last written down.
STATE = sa.case((_c.state.in_(OPEN) & (_c.closes <= Clock()), "closed"), else_=_c.state)
_PAST = sa.func.coalesce(_c.closes <= Clock(), sa.false())
# For whoever closes a collection by hand: a date that has not come means nothing any more.
CLOSES_IF_PAST = sa.case((_c.closes <= Clock(), _c.closes), else_=None)


_STANDING = (
    sa.select(STATE, _c.closes, _PAST)
    .where(_c.key == sa.bindparam("key"))
    .with_for_update(read=True)
)


@dataclass(frozen=True)
class Standing:
    """The state of a collection, when it will close, and whether its date has come."""

    state: str | None
    closes: int | None
    past: bool


def standing(connection: Connection, key: int) -> Standing:
    """What a transaction that takes submissions looks at, and lets nobody change meanwhile.

    The lock is shared: groups of arrivals need not wait for each other, but whoever publishes, or
    moves the date, waits for them, and they for it.
    """
    row = connection.execute(_STANDING, {"key": key}).first()
    return (
        Standing(None, None, past=False) if row is None else Standing(row[0], row[1], bool(row[2]))
    )


def refuse_if_past(now: Standing) -> None:
    """Refuse whoever comes after the date, and say when it was."""
    if now.past and now.closes is not None and now.state != "published":
        raise DateClosedError(
            f"This collection took submissions until {in_words(now.closes)}, and that has passed. "
            "Nothing was kept; what was acknowledged before then counts."
        )


def move(connection: Connection, key: int, closes: int | None) -> None:
    """Close a collection at another moment, or at none, as long as it takes submissions."""
    row = connection.execute(
        sa.select(STATE.label("state"), _c.closes, Clock().label("now"))
        .where(_c.key == key)
        .with_for_update()
    ).one()
    if row.state not in OPEN:
        raise ClosedError(
            "The collection is closed for good: only the date of one that still takes submissions "
            "can be moved."
        )
    if closes is not None and closes <= row.now:
        raise InvalidValueError(
            f"Expected a moment in the future, and {in_words(closes)} is past by the database's "
            f"clock ({in_words(row.now)}). To close now, use `blurfit close`."
        )
    connection.execute(sa.update(collections).where(_c.key == key).values(closes=closes))


def begin(connection: Connection, key: int, closes: int | None, *, new: bool) -> None:
    """Give a collection that is opened its date; one that was open before keeps its own."""
    if closes is None:
        return
    if new:
        move(connection, key, closes)
    elif (before := moment(connection, key)) != closes:
        until = "at no date" if before is None else f"at {in_words(before)}"
        raise ConflictError(
            f"This was opened before, and closes {until}, not at {in_words(closes)}: move the date "
            "with `blurfit until`."
        )


def moment(connection: Connection, key: int) -> int | None:
    """When a collection closes, or closed by its date."""
    found: int | None = connection.scalar(sa.select(_c.closes).where(_c.key == key))
    return found


class PlanDate(NamedTuple):
    """When a plan ends, and whether that has come."""

    closes: int | None
    past: bool


def of_plan(connection: Connection, plan: str) -> PlanDate:
    """When a plan ends at the latest: the date of its newest wave."""
    row = connection.execute(_newest(plan, _c.closes, _PAST)).first()
    return PlanDate(None, past=False) if row is None else PlanDate(row[0], bool(row[1]))


def begin_plan(connection: Connection, plan: str, closes: int | None, *, new: bool) -> None:
    """Give a plan that is opened its date; one that was open before keeps its own."""
    begin(connection, _newest_key(connection, plan), closes, new=new)


def move_plan(connection: Connection, plan: str, closes: int | None) -> None:
    """Let a plan end at another moment, or at none; waves that open later have the same date."""
    held = sa.select(plans.c.fingerprint).where(plans.c.fingerprint == plan).with_for_update()
    connection.execute(held)  # first the plan and then its wave, as whoever advances it does
    move(connection, _newest_key(connection, plan), closes)


def refuse_if_plan_is_past(connection: Connection, plan: str) -> None:
    """Let nobody blur for a plan whose date has come."""
    closes, past = of_plan(connection, plan)
    refuse_if_past(Standing("closed" if past else "collecting", closes, past=past))


def _newest_key(connection: Connection, plan: str) -> int:
    key: int | None = connection.scalar(_newest(plan, _c.key))
    assert key is not None
    return key


def _newest(plan: str, *columns: Any) -> sa.Select[Any]:
    """Something of the newest wave of a plan."""
    return of_waves(plan, *columns).order_by(None).order_by(waves.c.number.desc()).limit(1)
