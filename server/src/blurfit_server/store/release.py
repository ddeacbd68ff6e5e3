"""From wave to wave: a set is fixed, learned from, and what was found is kept, once.

    collecting ─ fix ─► fixed ─ keep ─► released, and the next wave collects
                          │        └──► released, or dropped, and the course has ended with a model
                          └─ hand over ─► exported (by hand alone)

`fix` and `keep` are short transactions that hold the course's row. Sums, models and the next
agreement, which take seconds where there are many columns, are computed between them, beside
whoever writes. Nothing leads back from `fixed`, noise of the database is drawn and written with the
set, `keep` writes only where nothing is written, and nothing is shown but what is written: so each
wave has one release, of one set, whichever process publishes and wherever it is killed. If sums
allow no further wave or no model, the course ends there with what was released. An export that
comes between the two takes the release over.

Proof, conditions and exports: `docs/theory/one-release.md`; two databases fix a set with each other
as well: `blurfit_server.store.joint`. Tests: `server/tests/store/test_release.py`, `test_walks.py`.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Agreed
from blurfit.data import ByteArray, WordArray
from blurfit.errors import (
    BelowQuorumError,
    BlurfitError,
    ClosedError,
    ConflictError,
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
    NotPublishedError,
    ServiceError,
)
from blurfit.messages.signing import Signature
from blurfit.model.course import WRONG_SUMS
from blurfit.model.course import Course as Followed
from blurfit.model.model import PublishedModel
from blurfit.model.release import (
    PublishedMoments,
    Release,
    is_model,
    moments_of,
    refuse_below_quorum,
)
from blurfit.randomness import database_words, with_database_noise
from blurfit.release_record import ReleaseRecord
from blurfit.wording import Message, Quote, join_messages
from blurfit_server.store import blocks, database, joint
from blurfit_server.store.collections import (
    CLOSES_IF_PAST,
    Collection,
    Course,
    Standing,
    Status,
    call_when_due,
    close,
    come,
    find,
    newest,
    open_wave,
    require_by_hand,
    shut,
    standing,
    update,
    update_wave,
)
from blurfit_server.store.database import Task, insert_if_absent, signatures, waves
from blurfit_server.store.joint import News, Peer, Sharing, TooFewError

Signed = Literal["model", "moments"]
Shared = tuple[int, WordArray]  # how many are in a common set, and Σv over it
COPIED = Message(
    "Something else was released from this store, or a copy of it: a second release could give "
    "away whom the two differ in. Its people can be asked again under a new agreement."
)
_log = logging.getLogger(__name__)
_w, _s = waves.c, signatures.c


# ---- what follows from releases: pure, and worked out while no transaction is open


@dataclass(frozen=True)
class Outcome:
    """What has become of a wave, and what follows it; or the course's end."""

    moments: str | None = None  # the text that is published
    following: Agreement | None = None
    model: str | None = None  # its text
    reason: Message | None = None


@lru_cache(maxsize=8)
def _read(text: str) -> PublishedMoments:
    """Read what never changes once, although every step of a course asks for it."""
    return PublishedMoments.from_json(text)


@lru_cache(maxsize=8)
def _followed(document: Agreed, texts: tuple[str, ...]) -> Followed:
    """Learn what a release teaches once, although later steps of its course start from it."""
    if not texts:
        return Followed.of(document)
    return _followed(document, texts[:-1]).then(_read(texts[-1]))


def followed(course: Course, texts: Sequence[str]) -> Followed:
    """Follow a course through its releases."""
    return _followed(course.document, tuple(texts))


def outcome_of(
    now: Standing, moments: str | None, reason: Message | None, before: Sequence[str], *, end: bool
) -> Outcome:
    """Work out what follows a wave's sums, or their absence, after the texts `before`."""
    document = now.course.document
    taught = followed(now.course, [*before, *filter(None, [moments])])
    done, of = len(taught.releases), len(document)
    if done < of and not now.course.by_hand:
        if now.past:
            reason = Message("Its date came after {done} of its {of} waves.", done=done, of=of)
        elif end:
            reason = Message(
                "Its administrator ended it after wave {done} of {of}.", done=done, of=of
            )
        elif moments is not None:
            try:
                following = taught.next_agreement()
                following.verify()
                return Outcome(moments, following)
            except WRONG_SUMS as error:
                reason = Message(
                    "No wave follows wave {done} of {of}: {error}", done=done, of=of, error=error
                )
    model, refusal = taught.best_model()
    if model is not None:
        return Outcome(moments, model=model.to_json(), reason=reason)
    if now.course.by_hand:
        return Outcome(moments, reason=reason or refusal)
    without = Message("There is no model: {refusal}", refusal=refusal)
    return Outcome(moments, reason=without if reason is None else join_messages([reason, without]))


def checked(course: Course, before: Sequence[str], news: News) -> Outcome:
    """Refuse what does not follow from the documents and the releases; return what it comes to.

    That the sums are right cannot be seen from here; that what follows does so from them can.
    """
    texts = list(before)
    if any(_read(one).fingerprint == news.wave and one != news.moments for one in before):
        raise ConflictError("Expected the sums that were published before: a wave has one.")
    if news.moments is not None and news.moments not in texts:
        if _read(news.moments).to_json() != news.moments:
            raise InvalidValueError("Expected the text of moments as blurfit writes it.")
        texts.append(news.moments)
    ends = news.state == "ended"
    if not ends and (news.model is not None or (news.moments and news.following is None)):
        raise InvalidValueError("Expected a wave that follows these sums, or the course's end.")
    if news.following is not None:
        if course.by_hand or news.moments is None or ends:
            raise InvalidValueError("Expected no wave but after the sums of a plan's wave.")
        announced = Agreement.from_json(news.following)
        so_far = texts[: texts.index(news.moments) + 1]
        announced.verify()
        followed(course, so_far).require(announced)
        return Outcome(news.moments, announced)
    if ends:
        again = followed(course, texts).best_model()[0]
        told, follows_here = news.model is not None, again is not None
        if follows_here and not told and news.moments is None:  # as a restored first ends
            raise ConflictError("Expected a model, which follows from what was released here.")
        if told != follows_here or (again and not is_model(news.model or "", again)):
            fewer = (followed(course, texts[:end]).best_model()[0] for end in range(len(texts)))
            if told and any(one and is_model(news.model or "", one) for one in fewer):
                raise ConflictError(
                    "Expected the model of all waves that were released here, and this one is of "
                    "fewer: the first database was restored from an earlier backup."
                )
            raise InvalidValueError(
                "Expected the model that follows from the releases, and this one does not. Let "
                "both databases use releases of blurfit that learn alike."
            )
    reason = None if news.reason is None else Message("{words}", words=Quote(news.reason))
    return Outcome(news.moments, model=news.model, reason=reason)


# ---- transactions


@dataclass(frozen=True)
class Fixed:
    """A wave that is fixed, and how its course stood then."""

    now: Standing
    wave: Collection
    dropped: bool  # below its quorum
    end: bool  # because of that, or because the administrator wants it


def look(connection: Connection, course: Course, *, end: bool) -> Standing | None:
    """Return how a course stands, if something is to be done with its open wave now."""
    now = standing(connection, course)
    if _rests(now, end=end):
        return None
    if end or database.has_task(connection, course.key, "advance"):
        return now
    wave = newest(connection, course)
    full = come(connection, wave.key) >= wave.agreement.quorum
    return now if not course.by_hand and (now.past or now.is_fixed or full) else None


def _rests(now: Standing, *, end: bool) -> bool:
    """Tell whether nothing is released: the course has ended, or is held and is not to end."""
    held = not now.course.by_hand and now.state != "collecting"
    return now.state == "ended" or (held and not end)


def fix(connection: Connection, course: Course, *, end: bool, drop: bool = False) -> Fixed | None:
    """Fix the set of the open wave; None if nothing is to be done with it by now.

    Below the quorum an error is raised and nothing changes, unless the course ends and has released
    something, or its date has come: then the wave will be dropped. So it is with `drop`, if the
    other database does not help.
    """
    now, wave = standing(connection, course, alone=True), newest(connection, course)
    if _rests(now, end=end):
        return None
    refuse_if_handed_over(connection, wave)
    count = come(connection, wave.key)
    short = drop or count < wave.agreement.quorum
    # Of several waves one is fixed below its quorum only to be dropped: go on with that.
    may_drop = not course.by_hand and (now.past or (end and now.released > 0) or now.is_fixed)
    if short and not may_drop:
        if end:
            refuse_below_quorum(wave.agreement, count)
        return None
    if now.newest.state == "collecting":
        shut(connection, now)
    if not short and wave.role == "whole" and wave.agreement.database_noise:
        noise = database_words(wave.agreement).astype("<u8").tobytes()
        absent = (_w.key == wave.key) & _w.noise.is_(None)
        connection.execute(sa.update(waves).where(absent).values(noise=noise))
    database.call_to_advance(connection, course.key)
    return Fixed(now, wave, short, end or short)


def fix_with_the_other(
    connection: Connection, wave: Collection, theirs: ByteArray, *, end: bool
) -> tuple[Fixed, joint.Commitment, ByteArray] | None:
    """Fix the set of a wave with the second database; None if it is not to be released by now."""
    course = wave.course
    now = standing(connection, course, alone=True)
    if _rests(now, end=end) or now.newest.key != wave.key:
        return None
    database.call_to_advance(connection, course.key)
    return Fixed(now, wave, dropped=False, end=end), *joint.fix(connection, now, wave, theirs)


def keep(connection: Connection, fixed: Fixed, found: Outcome, record: ReleaseRecord) -> None:
    """Write down what a wave has come to, and what follows; what was written before stays.

    What is released is in the record before, so that no copy of the store releases something else.
    """
    course, wave = fixed.now.course, fixed.wave
    now = standing(connection, course, alone=True)
    if now.state == "ended" or now.newest.key != wave.key:
        return
    refuse_if_handed_over(connection, wave)
    if not fixed.dropped and found.reason != COPIED:
        released = Release(
            moments=found.moments, refusal=None if found.moments else str(found.reason)
        )
        if record.record(released).moments != found.moments:
            raise ConflictError(COPIED)
    _write(connection, now, found)
    if course.role == "first":
        database.add_task(connection, course.key, "tell", wave.number if found.moments else 0)


def _write(connection: Connection, now: Standing, found: Outcome) -> None:
    """Release or drop the newest wave, and open the next, or end the course."""
    course, wave = now.course, now.newest
    if found.moments is not None:
        update_wave(connection, wave.key, state="released", moments=found.moments)
    elif wave.state != "released":
        update_wave(connection, wave.key, state="dropped")
    if found.following is not None:
        open_wave(connection, course, wave.number + 1, found.following)
        call_when_due(connection, course)
        return
    update(connection, course, state="ended", reason=found.reason, closes=CLOSES_IF_PAST)
    if found.model is not None:  # with the last wave that it is from
        shown = PublishedModel.from_json(found.model).fingerprint
        here = (_w.course == course.key) & (_w.fingerprint == shown)
        connection.execute(sa.update(waves).where(here).values(model=found.model))
    database.schedule(connection, course.key, None)


def end(connection: Connection, now: Standing, reason: Message) -> None:
    """End a course, whose row the caller holds, with what its waves have released."""
    model = followed(now.course, release_texts(connection, now.course)).best_model()[0]
    text = None if model is None else model.to_json()
    _write(connection, now, Outcome(model=text, reason=reason))
    if now.course.role == "first" and not now.course.by_hand:
        database.add_task(connection, now.course.key, "tell")


# ---- two databases tell each other


def news_of(connection: Connection, course: Course, number: int) -> News:
    """Return what the second database is to be told: of one wave, or of the course."""
    now, told = standing(connection, course), News("collecting")
    if number:
        wave, *later = now.waves[number - 1 :]
        moments = _text(connection, wave.key, _w.moments)
        told = replace(told, wave=wave.fingerprint, moments=moments)
        if later and later[0].state != "dropped":
            told = replace(told, following=_text(connection, later[0].key, _w.agreement))
            if now.state == "ended":
                return told  # the end is told by itself
    if now.state != "ended":
        return replace(told, state=now.state)
    reason = None if now.reason is None else str(now.reason)
    return replace(told, state="ended", reason=reason, model=model_text(connection, course))


def _text(connection: Connection, wave: int, column: sa.Column[Any]) -> str | None:
    found: str | None = connection.scalar(sa.select(column).where(_w.key == wave))
    return found


def take(connection: Connection, course: Course, known: int, news: News, found: Outcome) -> None:
    """Write down what the first database has written down, which was checked beside the `known`
    releases; another end than before is a conflict, for ever.

    What was written down before, perhaps since it was checked, changes nothing.
    """
    now = standing(connection, course, alone=True)
    row = next((one for one in now.waves if one.fingerprint == news.wave), None)
    here = None if row is None else _text(connection, row.key, _w.moments)
    if news.moments not in (None, here):
        if now.state == "ended" or row is None:
            raise ClosedError(now.reason or "The collection has come to its end here.")
        chosen = joint.recorded(connection, find(connection, row.fingerprint))
        stated, is_next = _read(news.moments), now.released == known and row.key == now.newest.key
        of_set = chosen is not None and (row.fingerprint, chosen.count)
        if not is_next or of_set != (stated.fingerprint, stated.count):
            raise InvalidValueError(
                "Expected the sums of the set that was fixed here, and these are of others, or "
                "none was fixed: begin by asking whose shares are here."
            )
        _write(connection, now, found)
    elif now.state == "ended":
        same = news.state == "ended" and news.model == model_text(connection, course)
        if not same and news.following is None:
            raise ConflictError("Expected the end, and the model, that are here.")
        return
    elif news.state == "ended":
        _write(connection, now, replace(found, moments=None))
    update(connection, course, told=news.state)


# ---- what was published


def release_texts(connection: Connection, course: Course, before: int | None = None) -> list[str]:
    """Return the published sums, in the order of the waves, as the texts whose SHA-256 later waves
    carry; or those that came before a wave.
    """
    here = (_w.course == course.key) & _w.moments.is_not(None)
    if before is not None:
        here &= _w.number < before
    query = sa.select(_w.moments).where(here).order_by(_w.number)
    return [str(text) for text in connection.scalars(query)]


def model_text(connection: Connection, course: Course) -> str | None:
    """Return a course's model, if there is one."""
    here = (_w.course == course.key) & _w.model.is_not(None)
    found: str | None = connection.scalar(sa.select(_w.model).where(here))
    return found


def shown_at(connection: Connection, course: Course) -> str:
    """Return the fingerprint of the wave with which a course's model is shown."""
    now = standing(connection, course)
    for one in now.waves:
        if one.model:
            return str(one.fingerprint)
    if course.by_hand:
        raise NotPublishedError(
            "The model of this collection has not been published. Its administrator does that, "
            "once, when at least {quorums:,} have contributed.",
            quorums=course.document.quorums[0],
        )
    if now.state != "ended":
        raise NotPublishedError(
            "The plan goes on: its model is published after its last wave, or when its "
            "administrator ends it early. What its waves have published is in its releases."
        )
    raise NotPublishedError(now.reason or "The plan has ended, and there is no model.")


def _published(connection: Connection, wave: Collection, column: sa.Column[Any]) -> str:
    text = _text(connection, wave.key, column)
    if text is None and (place := wave.agreement.wave) is not None:
        raise NotPublishedError(
            "This is wave {place_number} of the plan {plan}. Its sums are published when "
            "{quorum:,} have contributed, and a model from all waves when the plan "
            "has come to its end.",
            place_number=place.number,
            plan=place.plan,
            quorum=wave.agreement.quorum,
        )
    return shown_at(connection, wave.course) if text is None else text


# ---- exports


def refuse_if_handed_over(connection: Connection, wave: Collection) -> None:
    """Refuse to release a collection whose release was left to a file."""
    if (place := _text(connection, wave.key, _w.handed_over)) is not None:
        raise _handed_over(place)


def _handed_over(place: str | None) -> InfeasibleError:
    return InfeasibleError(
        "This collection was exported to {place!r}, and is neither published nor exported again: "
        "models from here and from there, each with other files, would give away whom they differ "
        "in. Learn from that file, wherever it is now (`blurfit learn`).",
        place=place,
    )


def _record_export(record: ReleaseRecord, name: str) -> None:
    """Record that the release comes from this file: a copy of the store writes none."""
    left = Release(refusal=f"The release was left to the exported file {name}.")
    if record.record(left) != left:
        raise ConflictError(COPIED)


def _as_recorded(
    record: ReleaseRecord, moments: str | None, reason: Message | None
) -> tuple[str | None, Message | None]:
    """Return a release as it was recorded, if it was: by a store that was killed before it wrote it
    down, or by a copy of it, of which another release is refused.
    """
    if (known := record.find()) is None or (moments, known.moments) == (None, None):
        return moments, reason
    if moments is not None and known.moments is not None:
        here, there = _read(moments), _read(known.moments)
        if here.count == there.count and np.array_equal(here.sums, there.sums):
            return known.moments, reason
    return None, COPIED


class Publishing(Sharing):
    """What a store releases, alone or with the other database."""

    # ---- taking courses forward

    def publish(self, document: Agreed | str) -> PublishedModel:
        """End a course now, with its model: it is learned once, and is the same for ever."""
        self.publish_text(_name(document))
        if (text := self.read(model_text, self.course(_name(document)))) is None:
            raise InfeasibleError(self._no_model(_name(document)))
        return PublishedModel.from_json(text)

    def publish_text(self, fingerprint: str, peer: Peer | None = None) -> str:
        """End a course now, with the open wave if it has its quorum: the text of its model, or of
        sums that have none of their own, always the same bytes.

        Below the quorum, if nothing was released, an error is raised and nothing changes. The
        second of two databases does not publish: by hand, this closes its side.
        """
        course = self.steered(fingerprint)
        if course.role != "second":
            # Somebody else may release the wave meanwhile, and open another one.
            while self.read(standing, course).state != "ended":
                self._step(course, peer, end=True)
            self._tell(course, peer)
        elif course.by_hand:
            self.write(close, course)
        if (text := self.read(model_text, course)) is not None:
            return text
        if sums := course.by_hand and self.releases(fingerprint):
            return sums[0]
        if self.read(standing, course).state == "ended":
            if course.by_hand:
                raise InfeasibleError(self._no_model(fingerprint))
            return self.read(shown_at, course)  # which says why there is none
        first = course.document.databases[0].name
        if course.by_hand:
            raise NotPublishedError(
                "The collection is closed here, and its shares may be summed. The next step is "
                "{first}'s: once it publishes, the model appears here too.",
                first=first,
            )
        raise NotPublishedError(
            "{first} leads this plan, and only there can it be ended. It can be held here: then "
            "no wave is released until it is resumed.",
            first=first,
        )

    def _no_model(self, fingerprint: str) -> Message:
        status = self.status(fingerprint)
        reason = Message(status.reason or "There is no model.")
        if not status.sums:
            return reason
        return join_messages([Message("The sums are published, and are not a model."), reason])

    def advance(self, fingerprint: str, peer: Peer | None = None) -> None:
        """Take a course as far as it goes by itself now; nothing happens where nothing is due.

        What the second database has to be told comes before its next wave is summed.
        """
        course = self.course(fingerprint)
        while self._step(course, peer, end=False):
            if self.read(database.has_task, course.key, "tell"):
                break
        with self._writing() as connection:
            now = standing(connection, course, alone=True)
            if course.by_hand and not now.is_fixed:
                database.schedule(connection, course.key, None)
            call_when_due(connection, course)

    def _step(self, course: Course, peer: Peer | None, *, end: bool) -> bool:
        """Release or drop the open wave; whether there was anything to do is returned."""
        if (now := self.read(look, course, end=end)) is None:
            return False
        fixed: Fixed | None
        shared: Shared | None = None
        if course.role == "first":
            fixed, shared = self._fixed_with(_required(peer), now, end=end)
        else:
            fixed = self.write(fix, course, end=end)
        if fixed is None:
            return False
        record, moments, reason = self.record_of(fixed.wave), None, None
        if not fixed.dropped:
            moments, reason = _as_recorded(record, *self._released(fixed.wave, shared))
        before = self.read(release_texts, course, fixed.wave.number)
        found = outcome_of(fixed.now, moments, reason, before, end=fixed.end)
        self.write(keep, fixed, found, record)
        return True

    def _released(
        self, wave: Collection, shared: Shared | None
    ) -> tuple[str | None, Message | None]:
        """Add up a set that was fixed: the text of its sums, or why there are none."""
        agreement = wave.agreement
        if shared is None:
            with self._reading() as connection:
                found = blocks.totals(connection, wave)  # damage is an error, and not the end
                noise = connection.scalar(sa.select(_w.noise).where(_w.key == wave.key))
            drawn = None if noise is None else np.frombuffer(noise, "<u8").astype(np.uint64)
        try:
            if shared is not None:
                totals = joint.totals_of(agreement, *shared)
            else:
                totals = with_database_noise(agreement, found, drawn)
            return moments_of(agreement, totals).to_json(), None
        except BelowQuorumError:
            raise
        except WRONG_SUMS as error:
            wrong = Message("{error}", error=error)
            if not wave.course.by_hand:
                wrong = Message("The sums of this wave cannot be published: {error}", error=error)
            return None, wrong

    def _fixed_with(
        self, peer: Peer, now: Standing, *, end: bool
    ) -> tuple[Fixed | None, Shared | None]:
        """Fix the open wave with the second database, and add up with it; or drop the wave, where
        the course ends and the other does not help.
        """
        course = now.course
        ending = not course.by_hand and (now.past or (end and now.released > 0))
        short = self.read(come, now.newest.key) < course.document.quorums[now.newest.number - 1]
        # One that was fixed without a set was fixed to be dropped: go on with that.
        dropped = not course.by_hand and (now.is_fixed or (short and ending))
        if now.newest.chosen or not dropped:
            try:
                return self._summed_with(peer, course, end=end)
            except ServiceError as error:
                if end and not course.by_hand and now.state != "held":
                    raise ServiceError(
                        "{error} Nothing has ended. Ask again when it is back; or hold the plan, "
                        "and end it without the open wave.",
                        error.status,
                        error=error,
                    ) from error
                if not (ending and now.state == "held"):
                    raise
            except (InfeasibleError, InvalidValueError, NotCertifiedError) as refusal:
                if self.read(look, course, end=end) is None:
                    return None, None  # somebody else has released it meanwhile
                if not ending:
                    raise
                _log.info("%s ends without its open wave: %s", course.fingerprint, refusal)
        return self.write(fix, course, end=end, drop=True), None

    def _summed_with(
        self, peer: Peer, course: Course, *, end: bool
    ) -> tuple[Fixed | None, Shared | None]:
        wave = self.read(newest, course)
        theirs = peer.identifiers(wave)
        if self.read(joint.recorded, wave) is None:
            self.read(joint.refuse_if_too_few, wave, theirs)
            peer.close(wave)
            theirs = peer.identifiers(wave)
            if wave.agreement.proofs:
                peer.verify(wave, theirs)
        if (found := self.write(fix_with_the_other, wave, theirs, end=end)) is None:
            return None, None
        fixed, chosen, left_out = found
        masks = peer.masks(wave, chosen.digest, chosen.count, left_out)
        return fixed, self.read(joint.together, wave, masks)

    # ---- the outbox

    def due(self) -> list[Task]:
        """Return what is to be done now: of what a course has to tell, the first."""
        return [task for task, seconds in self.read(database.next_tasks) if seconds <= 0]

    def work(self, task: Task, peer: Peer | None = None) -> None:
        """Do a task, and strike it off; whatever goes wrong is raised.

        What contradicts what the other database has written down is told once: it never takes it.
        """
        course = self.course(task.course)
        if task.what == "advance":
            self.advance(task.course, peer)
            return
        before = self.read(standing, course)
        rows = before.waves
        if task.what == "sign":
            _required(peer).sign(self.collection(rows[task.wave - 1].fingerprint))
        else:
            try:
                _required(peer).tell(course, self.read(news_of, course, task.wave))
            except ConflictError:  # as after a restore from a backup
                self.write(database.task_done, task)
                raise
        with self._writing() as connection:
            now = standing(connection, course, alone=True)
            if (now.state, now.waves) == (before.state, rows):  # else there is more to tell
                database.task_done(connection, task)
            for one in rows:  # what both have now can be signed by both
                signed = task.what == "tell" and (one.number == task.wave or one.model)
                if signed and course.document.first().signing_keys:
                    database.add_task(connection, course.key, "sign", one.number)

    def put_off(self, task: Task, seconds: float, error: BlurfitError | None = None) -> None:
        """Try a task again later; earlier, if more people were missing and have come by then."""
        wanted = None
        if isinstance(error, TooFewError):
            wanted = error.missing + self.status(task.course).count
        self.write(database.put_off, task, seconds, wanted)

    def _tell(self, course: Course, peer: Peer | None) -> None:
        """Tell the second database at once; what fails is told later."""
        try:
            while telling := [
                one for one in self.due() if one.course == course.fingerprint and one.what == "tell"
            ]:
                self.work(telling[0], peer)
        except BlurfitError as error:
            _log.warning("%s is not at the other database yet: %s", course.fingerprint, error)

    def take_news(self, fingerprint: str, news: News) -> Status:
        """Write down what the first database tells, if it follows."""
        course = self.course(fingerprint)
        self.read(newest, course).require_role("second")
        if "\0" in (news.reason or ""):
            raise InvalidValueError("Expected a reason without NUL, which no database can keep.")
        before = self.read(release_texts, course)
        self.write(take, course, len(before), news, checked(course, before, news))
        return self.status(course.fingerprint)

    # ---- what was published

    def release(self, agreement: Agreement | str) -> PublishedMoments:
        """Publish the sums of a collection, once, with its model if it has one of its own."""
        self.publish_text(_name(agreement))
        return self.moments(agreement)

    def releases(self, fingerprint: str) -> list[str]:
        """Return the published sums, in the order of the waves, always the same texts."""
        return self.read(release_texts, self.course(fingerprint))

    def released(self, fingerprint: str) -> int:
        """Return how many waves have published their sums."""
        return self.read(standing, self.course(fingerprint)).released

    def model(self, fingerprint: str) -> str:
        """Return the model of a course, or the one that is shown with a wave; always the same."""
        course = self.course(fingerprint)
        if course.fingerprint == fingerprint:
            fingerprint = self.read(shown_at, course)
        return self.read(_published, self.collection(fingerprint), _w.model)

    def shown_at(self, fingerprint: str) -> str:
        """Return the fingerprint of the wave with which a course's model is shown."""
        return self.read(shown_at, self.course(fingerprint))

    def moments(self, agreement: Agreement | str) -> PublishedMoments:
        """Return the blurred sums of a wave; further models of them are free."""
        return PublishedMoments.from_json(self.moments_text(_name(agreement)))

    def moments_text(self, fingerprint: str) -> str:
        """Return the blurred sums of a wave as they were stored, always the same text."""
        return self.read(_published, self.collection(fingerprint), _w.moments)

    # ---- exports

    def hand_over(self, wave: Collection, place: str) -> tuple[Release | None, str | None]:
        """Return what was published, to be told in the exported file; None if the release is left
        to it. Beside it, the name of a complete file that an export was killed with before it was
        renamed.

        Refused while more may come; where a model was tried and could not be, which is for good;
        where it was left to a file before, unless that was never completed, at the same place; and
        before publication where the database adds noise of its own, which a second export could
        have drawn a second time.
        """
        wave.require_role("whole")
        require_by_hand(wave.course)
        record = self.record_of(wave)
        with self._writing() as connection:
            now = standing(connection, wave.course, alone=True)
            row = connection.execute(sa.select(waves).where(_w.key == wave.key)).one()
            if now.takes:
                raise NotPublishedError(
                    "Expected a collection that is closed, and {wave_fingerprint} is still "
                    "collecting. Close it first (`blurfit close`); that cannot be undone.",
                    wave_fingerprint=wave.fingerprint,
                )
            if row.model is not None:
                return Release(row.model, row.moments), None
            if now.state == "ended":
                raise InfeasibleError(now.reason or "There is no model.")
            if wave.agreement.database_noise:
                raise InfeasibleError(
                    "This agreement has the database add noise of its own, once: publish here. "
                    "Whoever learned from an exported file, and again from another export of it, "
                    "would draw that noise twice for the same people."
                )
            is_there = not row.handed_in or Path(place).with_name(row.handed_in).exists()
            if row.handed_over not in (None, place) or not is_there:
                raise _handed_over(row.handed_over)
            if row.handed_in is not None:
                _record_export(record, row.handed_in)
                return None, row.handed_in
            if record.find() is not None:
                raise InfeasibleError(
                    "A release of {wave_fingerprint} is recorded, of this store or a copy of it. "
                    "Publish here: that gives the same one, or says why there is none.",
                    wave_fingerprint=wave.fingerprint,
                )
            # For good, also where a date closed it.
            update_wave(connection, wave.key, handed_over=place, state="fixed")
            database.schedule(connection, wave.course.key, None)
            return None, None

    def complete_handover(self, wave: Collection, name: str) -> None:
        """Write down that the exported file is complete under this name, of several the first."""
        with self._writing() as connection:
            now = standing(connection, wave.course, alone=True)
            if now.state == "ended":  # the store was marked as restored meanwhile
                raise InfeasibleError(now.reason or "There is no model.")
            if _text(connection, wave.key, _w.handed_in) is not None:
                raise _handed_over(_text(connection, wave.key, _w.handed_over))
            update_wave(connection, wave.key, handed_in=name)
        _record_export(self.record_of(wave), name)

    # ---- signatures

    def signatures(self, wave: Collection, document: Signed) -> tuple[Signature, ...]:
        """Return those of a document, in the order in which the agreement has their keys."""
        here = (_s.wave == wave.key) & (_s.document == document)
        with self._reading() as connection:
            rows = connection.execute(sa.select(_s.key, _s.signature).where(here)).all()
        found = {row.key: row.signature for row in rows}
        keys = wave.agreement.signing_keys
        return tuple(Signature(key, found[key]) for key in keys if key in found)

    def keep_signatures(
        self, wave: Collection, document: Signed, some: Iterable[Signature]
    ) -> None:
        """Keep signatures, which the caller has checked; those that are kept already stay."""
        place = {"wave": wave.key, "document": document}
        rows = [place | {"key": one.key, "signature": one.signature} for one in some]
        if rows:
            with self._writing() as connection:
                connection.execute(insert_if_absent(connection, signatures), rows)


def _required(peer: Peer | None) -> Peer:
    if peer is None:
        raise InfeasibleError(
            "Expected the other database: this course is published together with it, through the "
            "service."
        )
    return peer


def _name(document: Agreed | str) -> str:
    return document if isinstance(document, str) else document.fingerprint
