"""Groups of arrivals, each in one transaction, withdrawals, and the tokens of administrators.

    bytes of several requests ─ join ─► one table ─ screen ─► transaction

An arrival is accepted as a whole, or refused and nothing of it kept. A group is screened before the
transaction begins, so nothing that no honest contributor sends is ever stored
(`blurfit.learning.sums`). Most groups are all new, so one statement takes all the identifiers; if
it fails, each arrival is looked at in turn in another transaction:

| every identifier | then |
| --- | --- |
| is taken | acknowledged again, counted once: even after closing |
| is taken or new | the new ones are accepted, if the wave takes any and they are invited |
| is taken, and one was withdrawn | refused: it is not stored, and cannot come again |

What came first under an identifier stays, and whatever comes later under it is ignored: an answer
that told equal numbers from others would let whoever knows an identifier, as each of two databases
does, test guesses of what the other one holds.

**Withdrawals.** Whoever withdraws proves that she sent it (`blurfit.messages.submissions`). One
transaction takes her row out of its block and writes her identifier down; it stays taken, and the
invitation stays used. Rows of one receipt are taken out of `BLOCKS_AT_ONCE` blocks at a time. It is
possible while the wave takes submissions or is paused, but not in a wave of two databases that is
released at its quorum and has that. Reasons, and what stays: `docs/theory/one-release.md`.

**Tokens.** The administrator's, made at the first start, is good for everything. Further ones, each
with a name, are good for what they were made for; the store keeps their SHA-256, and what was asked
for with each and its outcome. Nothing that contributors do is there.

    open      propose, open, pause, resume and close collections and plans
    invite    keep invitations
    publish   publish, which also closes
    read      the audit log
"""

import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit import errors
from blurfit.agreement.agreement import Agreement
from blurfit.agreement.mechanisms import require_group
from blurfit.data import ByteArray
from blurfit.messages.submissions import Submission, Submissions
from blurfit_server.store import blocks, database
from blurfit_server.store.blocks import MOST_SHARES, Found
from blurfit_server.store.collections import (
    Collection,
    Courses,
    Numbers,
    come,
    looked_at,
    refuse_if_past,
    taking,
)
from blurfit_server.store.database import invitations, settings, tokens

Outcome = int | errors.BlurfitError  # how many were new, or why nothing was kept
Receiver = Callable[[Connection, Collection, "Group", Any], tuple[list[Outcome], int]]
WITHDRAWN = (
    "A submission that was withdrawn cannot be sent again: nothing of it is stored here, and it "
    "will not be. Nothing was kept of this request."
)
MOST_RECENT = 2**15  # identifiers that wait to be put in order
BLOCKS_AT_ONCE = 8  # in one transaction: others who write wait no longer than for these
_LOOKS = 8  # for rows that are moved again and again, before whoever asks is sent away


@dataclass(frozen=True, eq=False)
class Arrival:
    """What one request brings: messages of the wave's layout, one after the other."""

    rows: bytes | memoryview
    invitations: Sequence[bytes] = ()  # hashes
    vouched: bool = False  # by the holder of the store, instead of invitations

    @property
    def size(self) -> int:
        """Return how many bytes there are."""
        return memoryview(self.rows).nbytes


@dataclass(frozen=True, eq=False)
class Span:
    """Where an arrival's rows are in its group, and what lets them in."""

    rows: slice
    invitations: Sequence[bytes]
    vouched: bool


@dataclass(frozen=True, eq=False)
class Group:
    """The arrivals that pass the screen, as one table; and why the others do not, by place."""

    names: ByteArray
    numbers: Numbers
    spans: Sequence[Span]
    refusals: dict[int, errors.BlurfitError]

    @classmethod
    def of(cls, wave: Collection, arrivals: Sequence[Arrival]) -> "Group":
        """Join what came, and screen it."""
        layout, screen = wave.layout, wave.screen
        joined = b"".join([arrival.rows for arrival in arrivals])
        rows = np.frombuffer(joined, dtype=np.uint8).reshape(-1, layout.size)
        names, numbers = layout.identifiers(rows), wave.numbers(rows)
        spans, stop = [], 0
        for arrival in arrivals:
            start, stop = stop, stop + arrival.size // layout.size
            spans.append(Span(slice(start, stop), arrival.invitations, arrival.vouched))
        if screen is None or (passes := screen.passes(numbers)).all():
            return cls(names, numbers, spans, {})
        refusals: dict[int, errors.BlurfitError] = {}
        kept: list[Span] = []
        good, stop = np.ones(len(rows), dtype=np.bool_), 0
        for place, span in enumerate(spans):
            if (passed := passes[span.rows]).all():
                start, stop = stop, stop + len(passed)
                kept.append(replace(span, rows=slice(start, stop)))
            else:
                wrong = int(passed.argmin())
                refusals[place] = screen.refuse(numbers[span.rows][wrong], wrong)
                good[span.rows] = False
        return cls(names[good], numbers[good], kept, refusals)

    def outcomes(self, stored: Sequence[Outcome]) -> list[Outcome]:
        """Return those of all arrivals, from those of the ones that passed."""
        rest = iter(stored)
        places = range(len(self.spans) + len(self.refusals))
        return [self.refusals[one] if one in self.refusals else next(rest) for one in places]


class SomeAreKnownError(Exception):
    """Not all identifiers were new: the transaction must be undone, and each arrival looked at."""


def receive_new(
    connection: Connection, wave: Collection, group: Group, now: Any
) -> tuple[list[Outcome], int]:
    """Take a group that needs no invitations, if the wave takes any and all are new; else raise.

    How many were new in each arrival, and how many small blocks were written.
    """
    is_open = now.wave == "collecting" and now.state in ("collecting", "held") and not now.past
    if not is_open or _is_full(connection, wave):
        raise SomeAreKnownError  # each arrival is told by itself
    if blocks.take_identifiers(connection, wave.key, group.names) < len(group.names):
        raise SomeAreKnownError
    small = blocks.append(connection, wave, group.names, group.numbers)
    return [span.rows.stop - span.rows.start for span in group.spans], small


def receive_one_by_one(
    connection: Connection, wave: Collection, group: Group, now: Any
) -> tuple[list[Outcome], int]:
    """Return what becomes of each arrival, and how many small blocks were written."""
    while True:
        trial = connection.begin_nested()
        known = blocks.known_among(connection, wave.key, group.names)
        gone = blocks.withdrawn_among(connection, wave.key, known)
        outcomes: list[Outcome] = []
        accepted: list[int] = []  # rows of the group
        for span in group.spans:
            try:
                if gone and any(one.tobytes() in gone for one in group.names[span.rows]):
                    raise errors.ConflictError(WITHDRAWN)
                if new := _new(group, span, known):
                    _refuse_unless_taken(connection, wave, now)
                    _use_invitations(connection, wave, span, len(new))
                    accepted += new.values()
                    known |= new.keys()
                outcomes.append(len(new))
            except errors.BlurfitError as refusal:
                outcomes.append(refusal)
        if not accepted:
            trial.commit()
            return outcomes, 0
        names, numbers = group.names[accepted], group.numbers[accepted]
        if blocks.take_identifiers(connection, wave.key, names) == len(names):
            trial.commit()
            return outcomes, blocks.append(connection, wave, names, numbers)
        trial.rollback()  # another service took one of the identifiers meanwhile: look again


def is_known(connection: Connection, wave: Collection, arrival: Arrival) -> bool:
    """Tell whether every identifier of an arrival is taken; raise if one of them was withdrawn.

    A few are looked up first: of a batch that is new, none of them is taken.
    """
    rows = np.frombuffer(arrival.rows, dtype=np.uint8).reshape(-1, wave.layout.size)
    everyone = wave.layout.identifiers(rows)
    few = everyone[:: max(1, len(everyone) // 8)]
    for some in (few, everyone):
        names = {one.tobytes() for one in some}
        if len(blocks.known_among(connection, wave.key, some) & names) < len(names):
            return False
    if blocks.withdrawn_among(connection, wave.key, names):
        raise errors.ConflictError(WITHDRAWN)
    return True


def _is_full(connection: Connection, wave: Collection) -> bool:
    """Tell whether MOST_SHARES is reached."""
    return wave.role != "whole" and come(connection, wave.key) >= MOST_SHARES


def _new(group: Group, span: Span, known: set[bytes]) -> dict[bytes, int]:
    """Return an arrival's identifiers that are not taken, each with its first row in the group."""
    new: dict[bytes, int] = {}
    for row, identifier in enumerate(group.names[span.rows], start=span.rows.start):
        if (key := identifier.tobytes()) not in known:
            new.setdefault(key, row)
    return new


def _refuse_unless_taken(connection: Connection, wave: Collection, now: Any) -> None:
    is_open = now.wave == "collecting"
    if now.past and (is_open or (wave.course.by_hand and now.wave == "fixed")):
        refuse_if_past(now.closes)
    if is_open and now.state == "paused":
        raise errors.PausedError(
            "The collection is paused, and nothing was kept. Send the same request again later: it "
            "will be counted once."
        )
    if not is_open and (place := wave.agreement.wave) is not None:
        raise errors.WaveClosedError(
            "Wave {place_number} has closed, and its sums are published: what comes late is left "
            "out. Nothing was kept. The plan {plan} tells whether another wave collects; a "
            "record that was sent for this one must not be blurred again for another.",
            place_number=place.number,
            plan=place.plan,
        )
    if not is_open:
        raise errors.ClosedError("No more answers are taken, and nothing of this was stored.")
    if _is_full(connection, wave):
        raise errors.ClosedError(
            "This collection holds {most_shares:,} shares, and takes no more.",
            most_shares=MOST_SHARES,
        )


def _use_invitations(connection: Connection, wave: Collection, span: Span, needed: int) -> None:
    """Use up as many of an arrival's invitations as it needs, unless it needs none."""
    if span.vouched or not wave.invited:
        return
    here = invitations.c.course == wave.course.key
    given = list(dict.fromkeys(span.invitations))
    good = connection.scalars(
        sa.select(invitations.c.hash).where(here & invitations.c.hash.in_(given)).with_for_update()
    ).all()
    if len(good) < needed:
        raise errors.NotInvitedError(
            "Expected an invitation for each of {needed} submissions, and {good_count} of those "
            "given are good: each works once, and the others were never given out, or have been "
            "used. Open the whole link that you were sent, or ask whoever invited you for another.",
            needed=needed,
            good_count=len(good),
        )
    if (place := wave.agreement.wave) is not None:
        good = [one for one in good if place.lot.group_of(one) == place.number]
        if len(good) < needed:
            require_group(place, [place.lot.group_of(one) for one in given])
    connection.execute(sa.delete(invitations).where(here & invitations.c.hash.in_(good[:needed])))


# ---- withdrawals


@dataclass(frozen=True)
class Withdrawn:
    """How many are withdrawn, and how many of them just now."""

    withdrawn: int
    new: int
    unknown: tuple[bytes, ...] = ()  # identifiers that were never here
    staying: tuple[bytes, ...] = ()  # and those that the wave closed before they were reached


def where(connection: Connection, wave: Collection, names: ByteArray) -> list[Found]:
    """Return the blocks that hold what was sent under some identifiers, if it can be withdrawn."""
    wanted = _still_here(connection, wave, names)
    if not len(wanted):
        return []
    _refuse_unless_leaving(connection, wave, looked_at(connection, wave))
    found = blocks.holding(connection, wave, wanted)
    absent = blocks.minus(wanted, np.concatenate([wanted[:0], *(some for _, some in found)]))
    # PostgreSQL shows each statement what others have committed: they may be withdrawn by now.
    if len(absent) and len(lost := _still_here(connection, wave, absent)):
        raise errors.NotCertifiedError(
            "Expected {wanted_count} submissions in the blocks of collection {wave_fingerprint}, "
            "and {lost_count} are not there: the storage is damaged. Restore it from a backup.",
            wanted_count=len(wanted),
            wave_fingerprint=wave.fingerprint,
            lost_count=len(lost),
        )
    return found


def remove(connection: Connection, wave: Collection, found: Sequence[Found]) -> int:
    """Take rows out of the blocks in which they were found, write that down, and count them.

    Whatever was moved meanwhile is in no block here, and is left to whoever searches again.
    """
    now = taking(connection, wave, alone=True)
    gone = [blocks.as_identifiers(b"")]
    with _overwriting(connection):
        for key, whose in found:
            wanted = _still_here(connection, wave, whose)
            if len(wanted):
                _refuse_unless_leaving(connection, wave, now)
                gone.append(blocks.remove(connection, wave, key, wanted))
    if len(names := np.concatenate(gone)):
        blocks.withdraw_identifiers(connection, wave.key, names)
    return len(names)


def _outcome(connection: Connection, wave: Collection, some: ByteArray, new: int) -> Withdrawn:
    """Return what has become of some identifiers."""
    names = dict.fromkeys(one.tobytes() for one in some)
    known = blocks.known_among(connection, wave.key, some)
    out = blocks.withdrawn_among(connection, wave.key, known)
    unknown = tuple(one for one in names if one not in known)
    staying = tuple(one for one in names if one in known and one not in out)
    return Withdrawn(len(out), new, unknown, staying)


def _still_here(connection: Connection, wave: Collection, names: ByteArray) -> ByteArray:
    """Return those of some identifiers that are taken and not withdrawn."""
    known = blocks.known_among(connection, wave.key, names)
    rest = known - blocks.withdrawn_among(connection, wave.key, known)
    return blocks.as_identifiers(b"".join(sorted(rest)))


def _refuse_unless_leaving(connection: Connection, wave: Collection, now: Any) -> None:
    """Refuse once the set is fixed; or, at two databases and at quorum, once the wave is full."""
    place, quorum = wave.agreement.wave, wave.agreement.quorum
    if now.wave != "collecting" or now.past:
        if place is not None:
            raise errors.WaveClosedError(
                "Wave {number} is closed, and whose submissions are in it is fixed: nothing can be "
                "withdrawn any more. What is published protects whoever is in it as agreed.",
                number=place.number,
            )
        raise errors.ClosedError(
            "The collection is closed, and whose submissions are in it is fixed: nothing can be "
            "withdrawn any more. What is published protects whoever is in it as agreed."
        )
    if wave.role == "whole" or wave.course.by_hand:
        return
    if come(connection, wave.key) >= quorum:
        raise errors.WaveClosedError(
            "Wave {wave_number} has the {quorum:,} people that it waits for, and the two "
            "databases are about to publish its sums: nobody can leave it any more. They protect "
            "whoever is in them as agreed.",
            wave_number=wave.number,
            quorum=quorum,
        )


@contextmanager
def _overwriting(connection: Connection) -> Iterator[None]:
    if connection.dialect.name != "sqlite":
        yield
        return
    connection.exec_driver_sql("PRAGMA secure_delete = ON")
    try:
        yield
    finally:
        connection.exec_driver_sql("PRAGMA secure_delete = FAST")


class Intake(Courses):
    """What a store takes, and gives back."""

    def __init__(self, place: Any, connections: int) -> None:
        super().__init__(place, connections)
        # How much has come since it was last put in order; what came before this process waits.
        self._small: dict[int, int] = {}
        self._recent = 0

    def receive(self, wave: Collection, arrivals: Sequence[Arrival]) -> list[Outcome]:
        """Take a group of arrivals in one transaction; each succeeds or fails on its own.

        Raises StorageError if the transaction as a whole failed: they may be given again.
        """
        group = Group.of(wave, arrivals)
        if not group.spans:
            return group.outcomes([])
        if not wave.invited or all(span.vouched for span in group.spans):
            try:
                return group.outcomes(self._receive(receive_new, wave, group))
            except SomeAreKnownError:
                pass
        return group.outcomes(self._receive(receive_one_by_one, wave, group))

    def _receive(self, take: Receiver, wave: Collection, group: Group) -> list[Outcome]:
        with self._writing() as connection:
            now = taking(connection, wave)
            outcomes, small = take(connection, wave, group, now)
            new = sum(one for one in outcomes if isinstance(one, int))
            waiting = self._small.get(wave.key, 0) + small
            if waiting >= blocks.MANY:
                blocks.put_together(connection, wave)
                waiting = 0
            recent = self._recent + new
            if recent >= MOST_RECENT and connection.dialect.name == "sqlite":
                blocks.settle_identifiers(connection)
                recent = 0
            leads = not wave.course.by_hand and wave.role != "second" and now.state == "collecting"
            if new and leads and (here := come(connection, wave.key)) >= wave.agreement.quorum:
                database.call_to_advance(connection, wave.course.key, here)
        self._small[wave.key], self._recent = waiting, recent
        return outcomes

    def is_known(self, wave: Collection, arrival: Arrival) -> bool:
        """Tell whether everything in an arrival was taken before."""
        return self.read(is_known, wave, arrival)

    def add(self, agreement: Agreement, received: Submission | Submissions) -> int:
        """Keep what was received, all of it or nothing, and return how many were new.

        The collection is opened if it is not there yet. No invitation is needed: whoever holds the
        store, and calls this, vouches for what is added.
        """
        if not isinstance(received, Submission | Submissions):
            raise errors.InvalidValueError(
                "Expected a Submission or Submissions, and got {name}: "
                "records are blurred by their contributors, with perturb.",
                name=type(received).__name__,
            )
        batch = received if isinstance(received, Submissions) else Submissions.gather([received])
        rows = batch.rows(agreement.layout)
        try:
            wave = self.collection(agreement.fingerprint)
        except errors.UnknownCollectionError:
            self.open(agreement)
            wave = self.collection(agreement.fingerprint)
        (outcome,) = self.receive(wave, [Arrival(rows.data, vouched=True)])
        if isinstance(outcome, errors.BlurfitError):
            raise outcome
        return outcome

    def count(self, agreement: Agreement) -> int:
        """Return how many different submissions there are under the agreement."""
        try:
            return self.read(come, self.collection(agreement.fingerprint).key)
        except errors.UnknownCollectionError:
            return 0

    def submissions(self, fingerprint: str) -> Iterator[Submissions]:
        """Yield everything that a wave holds: for an export, or to check its sums."""
        wave = self.collection(fingerprint)
        with self._reading() as connection:
            yield from blocks.submissions(connection, wave)

    def history(self, fingerprint: str) -> list[tuple[int, int]]:
        """Return how many came to a wave in which hour since 1970."""
        return self.read(blocks.history, self.collection(fingerprint))

    def blocks(self, wave: Collection) -> int:
        """Return how many blocks a wave has."""
        return len(self.read(blocks.keys, wave))

    def withdraw(self, wave: Collection, names: ByteArray) -> Withdrawn:
        """Take what was sent under some identifiers out of a wave.

        The blocks are searched before anything is written, so that nobody waits for that, and again
        only for rows of blocks that were put together meanwhile.
        """
        new = 0
        refusal: errors.BlurfitError = errors.StorageError(
            "The blocks of the collection were put together again and again while they were "
            "searched. Ask for the same again: what is withdrawn stays so."
        )
        try:
            for _ in range(_LOOKS):
                if not (found := self.read(where, wave, names)):
                    break
                for start in range(0, len(found), BLOCKS_AT_ONCE):
                    new += self.write(remove, wave, found[start : start + BLOCKS_AT_ONCE])
        except errors.ClosedError as error:
            refusal = error
        done = self.read(_outcome, wave, names, new)
        if done.staying and not (done.withdrawn and isinstance(refusal, errors.ClosedError)):
            raise refusal
        return done


# ---- tokens

Right = Literal["open", "invite", "publish", "read"]
RIGHTS: tuple[Right, ...] = ("open", "invite", "publish", "read")
ADMINISTRATOR = "administrator"
_LONGEST_NAME = 100
_t, _l = tokens.c, database.audit_log.c


@dataclass(frozen=True)
class Bearer:
    """Whoever has a token, and what it is good for."""

    name: str
    rights: tuple[Right, ...]


@dataclass(frozen=True)
class LogEntry:
    """Something that was asked for with a token: `outcome` is the status of the answer."""

    second: int  # since 1970
    name: str
    what: str
    fingerprint: str | None
    outcome: int


def _administrator(connection: Connection) -> bytes | None:
    found = connection.scalar(sa.select(settings.c.value).where(settings.c.name == ADMINISTRATOR))
    return None if found is None else bytes(found)


class Access(database.Transactions):
    """The tokens of a store."""

    def administrator(self) -> bytes | None:
        """Return the hash of the administrator's token, if there is one."""
        return self.read(_administrator)

    def appoint(self, token_hash: bytes, *, replace: bool = False) -> bool:
        """Keep the hash of the administrator's token, if there is none or it is to be replaced."""
        with self._writing() as connection:
            if connection.dialect.name == "postgresql":  # two services may start at one moment
                connection.exec_driver_sql("LOCK TABLE settings IN EXCLUSIVE MODE")
            if _administrator(connection) is not None and not replace:
                return False
            connection.execute(sa.delete(settings).where(settings.c.name == ADMINISTRATOR))
            connection.execute(sa.insert(settings).values(name=ADMINISTRATOR, value=token_hash))
            return True

    def grant(self, name: str, right: Right, token_hash: bytes) -> None:
        """Keep the hash of a token, under a name that nobody has."""
        errors.one_of(RIGHTS, right=right)
        alike = unicodedata.normalize("NFKC", name)
        is_plain = name == alike.strip() and name.isprintable()
        if not (0 < len(name) <= _LONGEST_NAME and is_plain) or alike.casefold() == ADMINISTRATOR:
            raise errors.InvalidValueError(
                "Expected name={name!r} of 1 to {longest_name} printable characters in Unicode's "
                "form NFKC, without space around it, other than {administrator!r}.",
                name=name,
                longest_name=_LONGEST_NAME,
                administrator=ADMINISTRATOR,
            )
        row = {"name": name, "right": right, "hash": token_hash}
        with self._writing() as connection:
            insert = database.insert_if_absent(connection, tokens).values(row).returning(_t.name)
            if connection.scalar(insert) is None:
                raise errors.ConflictError(
                    "There is a token for {name!r} already: revoke it, or choose another.",
                    name=name,
                )

    def revoke(self, name: str) -> None:
        """Forget a token, which is good for nothing from now on."""
        known = sorted(self.granted())
        with self._writing() as connection:
            gone = sa.delete(tokens).where(_t.name == name).returning(_t.name)
            if connection.scalar(gone) is None:
                raise errors.InvalidValueError(
                    "Expected one of {known}, not {name!r}.", known=known, name=name
                )

    def granted(self) -> dict[str, str]:
        """Return what each name may do."""
        query = sa.select(_t.name, _t.right).order_by(_t.name)
        with self._reading() as connection:
            return {str(name): str(right) for name, right in connection.execute(query)}

    def bearer(self, token_hash: bytes) -> Bearer | None:
        """Return whose token it is, and what it is good for; None if it is nobody's.

        Hashes are looked up by an index; the time that takes could tell about the SHA-256 alone,
        from which no token follows.
        """
        with self._reading() as connection:
            if token_hash == _administrator(connection):
                return Bearer(ADMINISTRATOR, RIGHTS)
            query = sa.select(_t.name, _t.right).where(_t.hash == token_hash)
            row = connection.execute(query).first()
        return None if row is None else Bearer(str(row.name), (row.right,))

    def log(self, name: str, what: str, fingerprint: str | None, outcome: int) -> LogEntry:
        """Keep what somebody asked for, and how it ended."""
        entry = LogEntry(int(time.time()), name, what, fingerprint, outcome)
        with self._writing() as connection:
            connection.execute(sa.insert(database.audit_log).values(**vars(entry)))
        return entry

    def audit_log(self, most: int = 1000) -> list[LogEntry]:
        """Return so many entries, newest first."""
        query = sa.select(_l.second, _l.name, _l.what, _l.fingerprint, _l.outcome)
        with self._reading() as connection:
            rows = connection.execute(query.order_by(_l.key.desc()).limit(most))
            return [LogEntry(*row) for row in rows]
