"""Courses and their waves: what was opened, how far it is, until when, and who is invited.

A **course** is what was opened under one document: an agreement is the course of one wave, released
*by hand*; a plan that of several, each released *at quorum*, by itself.

::

    course  collecting ⇄ paused          paused: nothing is taken, and nothing released by itself
                 ⇅                       held: the open wave goes on collecting, also beyond its
               held ──► ended            quorum, and is not released (at quorum alone)

    wave    collecting ─► fixed ─► released, or dropped                  and never back

At most one wave collects, the last one. A *fixed* wave takes nothing more. An *ended* course
releases nothing more, and has a model or a reason why there is none.

**One row.** Whatever changes a course, its waves or their submissions holds the course's row until
it commits, shared (arrivals) or alone (everything else), and reads their state after that.

**Dates.** From a moment on, by the database's clock, nothing is taken. The transaction that takes
submissions compares the date, so no timer, and no service's clock, matters. The date may be moved
or removed while submissions are taken. Once it has come a course by hand is closed for good; one at
quorum ends, its open wave released if it has its quorum and dropped otherwise; a paused or held one
ends when it is resumed. A course that was closed before its date forgets the date. Two databases
have a date each, which should be the same: whoever comes between the two is left out. Pauses and
dates depend on nobody's answers, and nothing is published of a wave before it is fixed, so no
guarantee changes.

**Invitations** belong to the course; each is good once, in one wave, which a random draw decides
(`blurfit.agreement.mechanisms`). **Roles** never change: "whole", or of two databases the first
(masked numbers) and the second (seeds). Tests: `server/tests/store/test_collections.py`.
"""

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit import errors
from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Agreed, read_agreed
from blurfit.agreement.terms import require_together
from blurfit.data import AnyArray, ByteArray
from blurfit.learning.sums import Screen, rows_that_add_exactly
from blurfit.messages.submissions import KIND_OF, ROLES, Layout, Role, ShareLayout, sum_of_masks
from blurfit.theory.planning import StageKind
from blurfit.wording import Message
from blurfit_server.store import database
from blurfit_server.store.database import courses, invitations, joined, waves

Numbers = AnyArray  # float64, or uint64 for shares
CourseState = Literal["collecting", "paused", "held", "ended"]
State = Literal["collecting", "paused", "held", "closed", "published", "ended"]
WaveState = Literal["planned", "collecting", "fixed", "released", "dropped"]

LARGEST = 4096  # rows of a block
LARGEST_PROVED = 1024  # where rows have proofs, of 11 to 18 kB each
_FINGERPRINT = re.compile("[0-9a-f]{64}")
_c, _w, _i = courses.c, waves.c, invitations.c


# ---- what never changes


@dataclass(frozen=True, eq=False)
class Course:
    """What never changes about a course: the document that was opened, and in which role."""

    key: int
    fingerprint: str
    text: str  # of the document
    role: Role

    @property
    def document(self) -> Agreed:
        """Return the agreement, or the plan."""
        return _read(self.text)

    @property
    def by_hand(self) -> bool:
        """Tell whether it is released by hand, and not at quorum by itself."""
        return self.document.release == "by hand"


@dataclass(frozen=True, eq=False)
class Collection:
    """What never changes about the submissions of one wave."""

    key: int
    number: int
    course: Course
    agreement: Agreement
    screen: Screen | None  # of shares nothing can be told
    exact_rows: int
    layout: Layout

    @classmethod
    def of(cls, key: int, number: int, course: Course, agreement: Agreement) -> "Collection":
        """Return the collection of an agreement, with what follows from it worked out once."""
        if course.role != "whole":
            layout = agreement.share_layout(KIND_OF[course.role])
            most = LARGEST_PROVED if agreement.proofs else LARGEST
            return cls(key, number, course, agreement, None, most, layout)
        screen = Screen.of(agreement)
        exact_rows = rows_that_add_exactly(screen.largest_steps())
        return cls(key, number, course, agreement, screen, exact_rows, agreement.layout)

    @property
    def fingerprint(self) -> str:
        """Return the agreement's fingerprint."""
        return self.agreement.fingerprint

    @property
    def role(self) -> Role:
        """Return which of an agreement's databases this store is."""
        return self.course.role

    @property
    def invited(self) -> bool:
        """Tell whether each submission needs an invitation, as the agreement says."""
        return self.agreement.admission == "invited"

    def numbers(self, rows: ByteArray) -> Numbers:
        """Return what some rows hold: blurred numbers, or the words of shares."""
        layout = self.layout
        return layout.words(rows) if isinstance(layout, ShareLayout) else layout.numbers(rows)

    def sums(self, numbers: Numbers) -> Numbers:
        """Add up some rows: shares mod 2⁶⁴, of seeds their masks.

        Of shares with proofs the words are added as they are, so that damage is seen.
        """
        if self.role == "first" or self.agreement.proofs:
            return np.asarray(numbers.sum(axis=0, dtype=np.uint64))
        if isinstance(self.layout, ShareLayout):
            return sum_of_masks(numbers, self.layout.mask_width)
        return np.asarray(numbers.sum(axis=0))

    @property
    def block_rows(self) -> int:
        """Return how many rows a block may have: so that its sums are exact, where that can be."""
        return min(LARGEST, self.exact_rows) if self.exact_rows > 1 else LARGEST

    def require_role(self, role: Role) -> None:
        """Refuse what is for another database."""
        if self.role != role and role == "whole":
            raise errors.InfeasibleError(
                "Expected a collection of whole submissions: this one holds shares, and is "
                "published together with the agreement's other database, through the service."
            )
        if self.role != role:
            raise errors.InfeasibleError(
                "Expected the {role} of an agreement's two databases, and this one was opened as "
                "{role_2!r}. Is the address right?",
                role=role,
                role_2=self.role,
            )


@lru_cache(maxsize=64)
def _read(text: str) -> Agreed:
    """Read what never changes once, although everybody asks for it."""
    return read_agreed(text)


def find_course(connection: Connection, fingerprint: str) -> Course:
    """Return the course that was opened under a fingerprint, or that one of its waves has."""
    query = sa.select(_c.key, _c.fingerprint, _c.document, _c.role)
    of_wave = query.join(waves, _w.course == _c.key).where(_w.fingerprint == fingerprint)
    if _FINGERPRINT.fullmatch(fingerprint):  # others are no text that every database takes
        for one in (query.where(_c.fingerprint == fingerprint), of_wave):
            if (row := connection.execute(one).first()) is not None:
                return Course(*row)
    raise errors.UnknownCollectionError(
        "Nothing is collected under fingerprint={fingerprint!r} here. Is this the service that "
        "you were invited to, is the link whole, and has the collection been opened?",
        fingerprint=fingerprint,
    )


def find(connection: Connection, fingerprint: str) -> Collection:
    """Return the wave whose agreement has a fingerprint."""
    return _wave(connection, find_course(connection, fingerprint), _w.fingerprint == fingerprint)


def newest(connection: Connection, course: Course) -> Collection:
    """Return the newest wave of a course."""
    return _wave(connection, course, _w.course == course.key)


def _wave(connection: Connection, course: Course, where: sa.ColumnElement[bool]) -> Collection:
    query = sa.select(_w.key, _w.number, _w.agreement).where(where).order_by(_w.number.desc())
    row = connection.execute(query.limit(1)).first()
    if row is None:
        raise errors.UnknownCollectionError(
            "{course_fingerprint} is a plan, and submissions are for one of its waves.",
            course_fingerprint=course.fingerprint,
        )
    return Collection.of(row.key, row.number, course, _read(row.agreement).first())


# ---- how a course stands

_PAST = sa.func.coalesce(_c.closes <= database.Clock(), sa.false()).label("past")
# For whoever closes a course: a date that has not come means nothing any more.
CLOSES_IF_PAST = sa.case((_c.closes <= database.Clock(), _c.closes), else_=None)
_THIS = _c.key == sa.bindparam("course")
_ALONE = sa.select(_c.key).where(_THIS).with_for_update()
_SHARED = sa.select(_c.key).where(_THIS).with_for_update(read=True)
_COURSE = sa.select(
    _c.state, _c.told, _c.reason, _c.opened, _c.closes, _PAST, database.Clock().label("now")
).where(_THIS)
_WAVES = (
    sa.select(
        *(_w.key, _w.number, _w.fingerprint, _w.state),
        _w.moments.is_not(None).label("sums"),
        _w.model.is_not(None).label("model"),
        _w.digest.is_not(None).label("chosen"),
    )
    .where(_w.course == sa.bindparam("course"))
    .order_by(_w.number)
)
_WAVE = (
    sa.select(_w.state.label("wave"), _c.state, _c.closes, _PAST)
    .join(courses, _c.key == _w.course)
    .where(_w.key == sa.bindparam("wave"))
)
_COUNT = sa.select(sa.func.coalesce(sa.func.sum(database.blocks.c.count), 0)).where(
    database.blocks.c.wave == sa.bindparam("wave")
)


@dataclass(frozen=True)
class Standing:
    """How a course stands at one moment, by the clock of the database; with its waves' rows."""

    course: Course
    state: CourseState
    told: CourseState | None
    reason: Message | None
    opened: int
    closes: int | None
    past: bool
    now: int
    waves: Sequence[Any]

    @property
    def newest(self) -> Any:
        """Return the row of the newest wave."""
        return self.waves[-1]

    @property
    def is_fixed(self) -> bool:
        """Tell whether the newest wave takes nothing any more, and nothing has become of it."""
        at_date = self.course.by_hand and self.past and self.newest.state == "collecting"
        return self.state != "ended" and (self.newest.state == "fixed" or at_date)

    @property
    def takes(self) -> bool:
        """Tell whether submissions are taken, or will be when the course is resumed."""
        return self.state != "ended" and self.newest.state == "collecting" and not self.past

    @property
    def shown(self) -> State:
        """Return the state that everybody is told."""
        if self.course.by_hand:
            if self.newest.model:
                return "published"
            return "closed" if self.is_fixed or self.state == "ended" else self.state
        leads = self.course.role != "second" or self.state != "collecting"
        return self.state if leads else self.told or self.state

    @property
    def released(self) -> int:
        """Return how many waves were released."""
        return sum(one.state == "released" for one in self.waves)


def standing(connection: Connection, course: Course, *, alone: bool = False) -> Standing:
    """Return how a course stands; with `alone` nobody else changes that until this commits."""
    given = {"course": course.key}
    if alone:  # by a statement of its own: PostgreSQL shows each what was committed before it began
        connection.execute(_ALONE, given)
    row = connection.execute(_COURSE, given).one()
    found = connection.execute(_WAVES, given).all()
    return Standing(course=course, waves=found, **row._mapping)


def taking(connection: Connection, wave: Collection, *, alone: bool = False) -> Any:
    """Return how a wave stands, for a transaction that takes submissions, or takes some out.

    The lock is shared by arrivals, which need not wait for each other, and excludes all else.
    """
    connection.execute(_ALONE if alone else _SHARED, {"course": wave.course.key})
    return looked_at(connection, wave)


def looked_at(connection: Connection, wave: Collection) -> Any:
    """Return how a wave stands at this moment."""
    return connection.execute(_WAVE, {"wave": wave.key}).one()


def come(connection: Connection, wave: int) -> int:
    """Return how many submissions a wave holds."""
    return int(connection.scalar(_COUNT, {"wave": wave}) or 0)


def refuse_if_past(closes: int | None) -> None:
    """Refuse whoever comes after the date, which is past, and say when it was."""
    if closes is not None:
        raise errors.DateClosedError(
            "This collection took submissions until {closes}, and that has "
            "passed. Nothing was kept; what was acknowledged before then counts.",
            closes=errors.in_words(closes),
        )


def require_open(now: Standing) -> None:
    """Refuse once a course takes nothing any more."""
    if now.state == "ended":
        raise errors.ClosedError(
            "The plan has come to its end, and nothing more is collected. {reason}",
            reason=now.reason or Message("All of its waves have been released."),
        )
    refuse_if_past(now.closes if now.past else None)


def require_by_hand(course: Course) -> None:
    """Refuse what is done to a course that is released by hand, where it is at quorum."""
    if not course.by_hand:
        raise errors.InfeasibleError(
            "The plan {plan} publishes each wave when its quorum is reached. Hold the plan, or end "
            "it early (`blurfit hold`, `blurfit publish` with the plan).",
            plan=course.fingerprint,
        )


# ---- changing it: the caller holds the course's row


def update(connection: Connection, course: Course, **values: Any) -> None:
    """Write something into a course's row."""
    connection.execute(sa.update(courses).where(_c.key == course.key).values(values))


def update_wave(connection: Connection, wave: int, **values: Any) -> None:
    """Write something into a wave's row."""
    connection.execute(sa.update(waves).where(_w.key == wave).values(values))


def call_when_due(connection: Connection, course: Course) -> None:
    """Write down when a course at quorum is to be taken forward."""
    now = standing(connection, course)
    if course.by_hand or course.role == "second":
        return
    quorum = course.document.quorums[now.newest.number - 1]
    if now.state != "collecting":
        database.schedule(connection, course.key, None)
    elif now.past or now.is_fixed or come(connection, now.newest.key) >= quorum:
        database.schedule(connection, course.key, 0)
    else:
        database.schedule(connection, course.key, now.closes, quorum)


def shut(connection: Connection, now: Standing) -> None:
    """Fix whose submissions the open wave has. A date of several waves outlasts each of them."""
    update_wave(connection, now.newest.key, state="fixed")
    if now.course.by_hand:
        update(connection, now.course, closes=CLOSES_IF_PAST)


def close(connection: Connection, course: Course) -> None:
    """Accept nothing more, and publish nothing yet."""
    require_by_hand(course)
    now = standing(connection, course, alone=True)
    if now.state != "ended" and now.newest.state == "collecting":
        shut(connection, now)


def move_date(connection: Connection, course: Course, closes: int | None) -> None:
    """Let a course end, or close, at another moment, or at none, while it takes submissions."""
    now = standing(connection, course, alone=True)
    if not now.takes:
        raise errors.ClosedError(
            "The collection is closed for good: only the date of one that still takes submissions "
            "can be moved."
        )
    if closes is not None and closes <= now.now:
        raise errors.InvalidValueError(
            "Expected a moment in the future, and {closes} is past by the "
            "database's clock ({now}). To close now, use `blurfit close`.",
            closes=errors.in_words(closes),
            now=errors.in_words(now.now),
        )
    update(connection, course, closes=closes)
    call_when_due(connection, course)


def begin(connection: Connection, document: Agreed, role: Role, closes: int | None) -> bool:
    """Keep a course, and open its first wave, unless it is open already; tell whether it is new."""
    name = document.fingerprint
    values: dict[str, Any] = {"fingerprint": name, "document": document.to_json(), "role": role}
    values |= {"state": "collecting", "opened": int(time.time() // 3600)}
    by_plan = connection.scalar(sa.select(_w.number).where(_w.fingerprint == name))
    insert = database.insert_if_absent(connection, courses)
    if is_new := by_plan is None:
        is_new = connection.scalar(insert.values(values).returning(_c.key)) is not None
    course = find_course(connection, name)
    if course.role != role:
        raise errors.ConflictError(
            "Expected role={role!r} to be {role_2!r}, as when the collection was opened: "
            "that cannot be changed afterwards.",
            role=role,
            role_2=course.role,
        )
    if is_new:
        open_wave(connection, course, 1, document.first())
        if closes is not None:
            move_date(connection, course, closes)
    elif closes is not None and (before := standing(connection, course).closes) != closes:
        until = Message("at no date")
        if before is not None:
            until = Message("at {date}", date=errors.in_words(before))
        raise errors.ConflictError(
            "This was opened before, and closes {until}, not at {closes}: "
            "move the date with `blurfit until`.",
            until=until,
            closes=errors.in_words(closes),
        )
    return is_new


def open_wave(connection: Connection, course: Course, number: int, agreement: Agreement) -> None:
    """Collect under the agreement of a course's next wave, which was verified."""
    name, text = agreement.fingerprint, agreement.to_json()
    values = {"course": course.key, "number": number, "fingerprint": name, "agreement": text}
    insert = database.insert_if_absent(connection, waves).values(values | {"state": "collecting"})
    if connection.scalar(insert.returning(_w.key)) is None:
        # It may have been published or exported: a second release, of another set.
        raise errors.ConflictError(
            "Expected wave {number} to be opened by its plan, and {name} is collected here by "
            "itself. Begin the plan in a store of its own, or propose another.",
            number=number,
            name=name,
        )


# ---- what anyone may know


@dataclass(frozen=True)
class WaveStatus:
    """One wave of a course. `fingerprint` is its agreement's, once it is open.

    A wave that was open when the course ended, below its quorum, is dropped: never released.
    """

    number: int
    kind: StageKind
    quorum: int
    state: WaveState = "planned"
    count: int = 0
    fingerprint: str | None = None


@dataclass(frozen=True)
class Status:
    """What anyone may know of a course. `count` and `quorum` are those of its newest wave.

    By hand it is closed, then published; at quorum it may be held, by either of two databases, and
    has ended. `reason` says why it ended early, or has no model; `model` is the fingerprint of the
    wave that shows the model, once there is one.
    """

    fingerprint: str
    state: State
    count: int
    quorum: int
    invited: bool
    opened: int | None = None  # the hour since 1970
    closes: int | None = None  # the second since 1970 from which nothing is taken, if one was set
    awaits: str | None = None  # the other of two databases, if it has the next step
    sums: bool = False  # whether blurred sums are published, beside a model or without one
    waves: tuple[WaveStatus, ...] = ()
    reason: str | None = None
    model: str | None = None


def status(connection: Connection, course: Course, fingerprint: str | None = None) -> Status:
    """Return how far a course is; or, under the fingerprint of one of its waves, how far that is.

    A wave is shown as a collection is: collecting, paused, closed, or published with its model.
    """
    now, document = standing(connection, course), course.document
    opened: list[Any] = [
        (one.state, come(connection, one.key), one.fingerprint) for one in now.waves
    ]
    opened += [()] * (len(document) - len(opened))
    stages = enumerate(zip(document.kinds, document.quorums, opened, strict=True), start=1)
    known = tuple(WaveStatus(n, kind, quorum, *one) for n, (kind, quorum, one) in stages)
    shown = [one.fingerprint for one in now.waves if one.model]
    last = known[now.newest.number - 1]
    whole = Status(
        course.fingerprint,
        now.shown,
        last.count,
        last.quorum,
        document.first().admission == "invited",
        now.opened,
        now.closes,
        _awaits(connection, now),
        any(one.sums for one in now.waves),
        known,
        now.reason,
        shown[-1] if shown else None,
    )
    if fingerprint in (None, course.fingerprint):
        return whole
    ((row, wave),) = (
        both for both in zip(now.waves, known, strict=False) if both[1].fingerprint == fingerprint
    )
    is_open = row.state == "collecting" and not now.past
    state: State = ("paused" if now.state == "paused" else "collecting") if is_open else "closed"
    return replace(
        whole,
        fingerprint=fingerprint,
        state="published" if row.model else state,
        count=wave.count,
        quorum=wave.quorum,
        awaits=None,
        sums=bool(row.sums),
        waves=(wave,),
        model=fingerprint if row.model else None,
    )


def _awaits(connection: Connection, now: Standing) -> str | None:
    """Return whose turn it is, if it is the other database's: a second that has closed its side
    waits for the first to publish, and a first may have something to tell the second.
    """
    course = now.course
    if course.role == "second":
        return course.document.databases[0].name if now.is_fixed else None
    behind = course.role == "first" and database.has_task(connection, course.key, "tell")
    return course.document.databases[1].name if behind else None


def _refuse_pairs(connection: Connection, course: Course, pairs: list[bytes]) -> None:
    """Refuse to join invitations that are this database's own, to any of its collections, as the
    other database is asked about these next; or that are in links already.
    """

    def count(here: sa.ColumnElement[bool]) -> int:
        return int(connection.scalar(sa.select(sa.func.count()).where(here)) or 0)

    if own := count(_i.course.in_(sa.select(_c.key)) & _i.hash.in_(pairs)):
        raise errors.ConflictError(
            "Invitations to join must be the other database's, and {own:,} of these are this "
            "database's own. Join the file that the other database's administrator made.",
            own=own,
        )
    if again := count((joined.c.course == course.key) & joined.c.hash.in_(pairs)):
        raise errors.ConflictError(
            "An invitation of the other database can be joined once, and {again:,} of these were "
            "joined before. Ask the other database's administrator for new ones.",
            again=again,
        )


class Courses(database.Transactions):
    """The courses of a store: open them, look at them, steer them."""

    def __init__(self, place: Any, connections: int) -> None:
        super().__init__(place, connections)
        self._collections: dict[str, Collection] = {}
        self._courses: dict[str, Course] = {}

    def open(self, document: Agreed, *, role: Role = "whole", closes: int | None = None) -> bool:
        """Start collecting under a document, which is verified; tell whether it is new.

        To open it again changes nothing. `role` says which of two databases this is. From the
        second `closes` since 1970 on nothing is taken any more.
        """
        first = document.first()
        first.verify()
        require_together(first, served=True)
        errors.one_of(ROLES, role=role)
        if not first.databases and role != "whole":
            raise errors.InvalidValueError(
                "Expected role={role!r} to be 'whole': the agreement names no second database.",
                role=role,
            )
        if first.databases and role == "whole":
            raise errors.InvalidValueError(
                "Expected role={role!r} to be first or second, because the agreement is between "
                "two databases: say which of them this is, like `--as first`.",
                role=role,
            )
        is_new = self.write(begin, document, role, closes)
        self.collection(first.fingerprint)  # worked out before anybody sends
        return is_new

    def collection(self, fingerprint: str) -> Collection:
        """Return what never changes about a wave, read once."""
        if (found := self._collections.get(fingerprint)) is None:
            found = self._collections[fingerprint] = self.read(find, fingerprint)
        return found

    def known(self, fingerprint: str) -> Collection | None:
        """Return a wave that was read before, without a wait; None if it was not."""
        return self._collections.get(fingerprint)

    def course(self, fingerprint: str) -> Course:
        """Return what never changes about the course under a fingerprint, its own or a wave's."""
        if (found := self._courses.get(fingerprint)) is None:
            found = self._courses[fingerprint] = self.read(find_course, fingerprint)
        return found

    def steered(self, fingerprint: str) -> Course:
        """Return the course under its own fingerprint: a wave of a plan is steered by its plan."""
        course = self.course(fingerprint)
        if course.fingerprint != fingerprint:
            raise errors.InfeasibleError(
                "This is a wave of the plan {plan}, which publishes each wave when its quorum is "
                "reached. Hold the plan, or end it early (`blurfit hold`, `blurfit publish` with "
                "the plan).",
                plan=course.fingerprint,
            )
        return course

    def status(self, fingerprint: str) -> Status:
        """Return how far a course is; given the fingerprint of a plan's wave, how far that is."""
        return self.read(status, self.course(fingerprint), fingerprint)

    def statuses(self) -> list[Status]:
        """Return those of all courses, in the order of their opening."""
        query = sa.select(_c.fingerprint).order_by(_c.key)
        with self._reading() as connection:
            names = connection.scalars(query).all()
        return [self.status(one) for one in names]

    def current(self, fingerprint: str) -> Agreement:
        """Return the agreement of the wave that collects."""
        course = self.course(fingerprint)
        with self._reading() as connection:
            now, wave = standing(connection, course), newest(connection, course)
        require_open(now)
        if now.newest.state == "collecting":
            return wave.agreement
        if course.by_hand:
            raise errors.ClosedError("The collection is closed, and nothing more is collected.")
        raise errors.BetweenWavesError(
            "Wave {wave_number} is being published, and the next one opens in a moment. Ask again "
            "soon; blur nothing before.",
            wave_number=wave.number,
        )

    def pause(self, fingerprint: str) -> Status:
        """Take nothing for a while; whoever is refused meanwhile may send the same again."""
        return self._changed(fingerprint, "paused")

    def hold(self, fingerprint: str) -> Status:
        """Release no wave until the course is resumed; the open one goes on collecting."""
        return self._changed(fingerprint, "held")

    def resume(self, fingerprint: str) -> Status:
        """Let a course that was paused or held go on."""
        return self._changed(fingerprint, "collecting")

    def _changed(self, fingerprint: str, state: CourseState) -> Status:
        course = self.steered(fingerprint)
        if state == "held" and course.by_hand:
            raise errors.InfeasibleError(
                "Nothing of this collection is released before its administrator publishes it, so "
                "there is nothing to hold. To take nothing for a while, pause it (`blurfit pause`)."
            )
        with self._writing() as connection:
            now = standing(connection, course, alone=True)
            if now.state == "ended" or (course.by_hand and not now.takes):
                raise errors.ClosedError(
                    "The collection has come to its end: there is nothing to pause, to hold or to "
                    "resume."
                )
            update(connection, course, state=state)
            call_when_due(connection, course)
            if course.role == "first" and not course.by_hand:
                database.add_task(connection, course.key, "tell")
            return status(connection, course)

    def close_collection(self, fingerprint: str) -> Status:
        """Accept nothing more, and publish nothing yet; for courses that are released by hand."""
        self.write(close, self.steered(fingerprint))
        return self.status(fingerprint)

    def move_date(self, fingerprint: str, closes: int | None) -> Status:
        """Let an open course close or end at another moment, or at none."""
        self.write(move_date, self.steered(fingerprint), closes)
        return self.status(fingerprint)

    # ---- invitations

    def invite(self, fingerprint: str, hashes: Iterable[bytes], pairs: Iterable[bytes] = ()) -> int:
        """Keep the hashes of new invitations, unless the other database's are not good.

        Args:
            fingerprint: of the course, or of one of its waves.
            hashes: of invitations to this database; without any, only `pairs` are checked.
            pairs: hashes of the other database's, each in one link with one of these.

        Returns:
            How many invitations to this database were new.

        Raises:
            ConflictError: if `pairs` has some of this database's own, or some that are in links.
        """
        course, wanted = self.course(fingerprint), list(dict.fromkeys(hashes))
        theirs = list(dict.fromkeys(pairs))
        if course.document.first().admission != "invited":
            raise errors.InfeasibleError(
                "The agreement lets anyone take part, so nobody needs an invitation. To admit only "
                "people who are invited, make a new agreement without --anyone."
            )
        with self._writing() as connection:
            if not course.by_hand:
                require_open(standing(connection, course))
            here = (_i.course == course.key) & _i.hash.in_(wanted)
            known = set(connection.scalars(sa.select(_i.hash).where(here)))
            new = [{"course": course.key, "hash": one} for one in wanted if one not in known]
            if theirs and (new or not wanted):  # else the same request has come again
                _refuse_pairs(connection, course, theirs)
            if new:
                connection.execute(database.insert_if_absent(connection, invitations), new)
            if theirs and wanted:
                rows = [{"course": course.key, "hash": pair} for pair in theirs]
                connection.execute(database.insert_if_absent(connection, joined), rows)
        return len(new)

    def unused_invitations(self, fingerprint: str) -> int:
        """Return how many invitations nobody has used yet."""
        query = sa.select(sa.func.count()).where(_i.course == self.course(fingerprint).key)
        with self._reading() as connection:
            return int(connection.scalar(query) or 0)

    def is_unused(self, wave: Collection, invitation: bytes) -> bool:
        """Tell whether an invitation, of which this is the hash, is good for a wave and unused."""
        place, here = wave.agreement.wave, _i.course == wave.course.key
        if place is not None and place.lot.group_of(invitation) != place.number:
            return False
        query = sa.select(_i.hash).where(here & (_i.hash == invitation))
        with self._reading() as connection:
            return connection.scalar(query) is not None
