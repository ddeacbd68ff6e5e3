"""From wave to wave: a set is fixed, learned from, and what was found is kept, once.

    collecting ─ fix ─► fixed ─ keep ─► released, and the next wave collects
                          │        └──► released, or dropped, and the course has ended with a model
                          └─ hand over ─► exported (by hand alone)

`fix` and `keep` are short transactions. Adding up, learning, and the agreement that follows, which
take seconds where there are many columns, are worked out between them, beside whoever writes.

**One set.** Let S be the submissions of a wave when `fix` commits. Whatever changes a wave's
submissions holds its course's row and refuses unless the state that it then reads is `collecting`:
arrivals (which alone put blocks together) and withdrawals (`blurfit.store.arrivals`). `fix` holds
the row alone, checks that S has the quorum, and writes `fixed`; nothing leads from there back, a
restored store included (`blurfit.store.backup`). So every later transaction reads S, whichever
process it is in. Noise of the database itself, D, is drawn by the first `fix` and written with it.
What is learned is a function of S, D and the documents, so every publisher finds the same, but for
how its machine rounds, whether it comes second, runs beside the first, or continues after a kill; a
date that has passed, or a closing by hand, only fixes S earlier. `keep` holds the row and writes
only where nothing is written, and nothing is shown but what is written. So there is one release of
each wave, of one set. Two databases fix a set with each other as well: `blurfit.store.joint`.

Killed before `fix` commits, nothing happened. Killed between the two, the wave is fixed, and
whoever publishes, or finds the task in the outbox, continues with S; so too if the store failed, or
is damaged and is mended. `keep` writes the release together with what follows it, the next wave or
the end and the model: so nobody has ever seen a release whose wave takes submissions, and never do
two waves collect. Below the quorum `fix` changes nothing, and the wave goes on.

**No release, no loop.** If a wave's sums allow no further wave, or no model, the course ends there
and says so. What was released stays, and the model is the best that there is. Each release of a
wave is a function of the documents and of published sums beside S; that all of them together keep
the promise is the theorem of `blurfit.theory.planning`.

**Exports.** A collection that is exported before it is published is handed over: its one release
comes from the exported file, together with other files or alone (`blurfit.model.release` has the
proof that there is only one). That is written down before the file is, with the place where it is
written: killed in between, the export may be repeated to the same place. When the file is complete,
and before it takes its name, that is written down too, once: from then on there is a file, which
may be moved and learned from at any time, and the store never writes a second one. An export that
comes between `fix` and `keep` takes the release over, and what was learned is thrown away by
`keep`, unseen.

**Signatures** of what was published are kept beside it: made once, and served for ever. A key gives
the same bytes the same signature, so it does not matter who is first, nor who was killed before.
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
from blurfit.agreement.plan import Plan
from blurfit.arrays import BoolArray, ByteArray, WordArray
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
from blurfit.learning.sums import Totals
from blurfit.messages.signing import Signature
from blurfit.model.course import Course as Followed
from blurfit.model.course import follows, learn_plan
from blurfit.model.learner import refuse_below_quorum
from blurfit.model.moments import WITHOUT_PUBLIC_ROWS, PublishedMoments
from blurfit.model.published import PublishedModel
from blurfit.model.release import WITHOUT_A_MODEL, Release, is_model
from blurfit.randomness.database import blurred, words
from blurfit.store import blocks, identifiers, joint, outbox
from blurfit.store.arrivals import Intake
from blurfit.store.collections import (
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
    refuse_by_hand,
    shut,
    standing,
    update,
    update_wave,
)
from blurfit.store.halves import Comparison, compared
from blurfit.store.joint import News, Peer, TooFewError
from blurfit.store.outbox import Task
from blurfit.store.tables import insert_if_absent, signatures, waves

Signed = Literal["model", "moments"]
_log = logging.getLogger(__name__)
_WRONG = (BlurfitError, ArithmeticError, ValueError)  # what sums can be: too large, singular, …
_w, _s = waves.c, signatures.c


# ---- what follows from releases: pure, and worked out while no transaction is open


@dataclass(frozen=True)
class Outcome:
    """What has become of a wave: its release, if there is one, and what follows; else the course's
    end, with its model or the reason why there is none.
    """

    release: Release
    following: Agreement | None = None
    model: PublishedModel | None = None
    text: str | None = None  # of the model, where it came from elsewhere: digits may differ
    reason: str | None = None


@lru_cache(maxsize=8)
def _read(text: str) -> PublishedMoments:
    """Read what never changes once, although every step of a course asks for it."""
    return PublishedMoments.from_json(text)


def released_by(wave: Collection, totals: Totals) -> Release:
    """Return a wave's sums, or the model of a collection that shows no sums; or why there are none.

    Below the quorum an error is raised.
    """
    try:
        if wave.agreement.mechanism == "input":
            return Release.of(wave.agreement, totals)
        return replace(Release.of(wave.agreement, totals, sums_alone=True), refusal=None)
    except BelowQuorumError:
        raise
    except _WRONG as error:
        return Release(refusal=_unpublishable(wave, error))


def _unpublishable(wave: Collection, error: Exception) -> str:
    told = "" if wave.course.by_hand else "The sums of this wave cannot be published: "
    return f"{told}{error}"


def best_model(
    course: Course, published: Sequence[PublishedMoments]
) -> tuple[PublishedModel | None, str | None]:
    """Return the model of as many waves as allow one, or why there is none."""
    document, refusal = course.document, "no wave was released."
    if isinstance(document, Agreement) and document.sends != "everything":
        return None, WITHOUT_PUBLIC_ROWS
    if isinstance(document, Agreement) and document.is_later_wave:
        return None, WITHOUT_A_MODEL
    for count in range(len(published), 0, -1):
        try:
            if isinstance(document, Agreement):
                return published[0].fit(), None
            return learn_plan(document, published[:count]), None
        except _WRONG as error:
            refusal = str(error)
    return None, refusal


def following_of(
    plan: Plan, published: Sequence[PublishedMoments]
) -> tuple[Agreement | None, str | None]:
    """Return the next agreement, or why there is none."""
    try:
        found = Followed.of(plan, published).next_agreement()
        found.verify()
    except _WRONG as error:
        return None, f"No wave follows wave {len(published)} of {len(plan)}: {error}"
    return found, None


def outcome_of(now: Standing, release: Release, before: Sequence[str], *, end: bool) -> Outcome:
    """Work out what follows a release, which comes after the texts `before`."""
    course, document = now.course, now.course.document
    texts = [*before, *([] if release.moments is None else [release.moments])]
    published, reason = [_read(text) for text in texts], None
    if isinstance(document, Agreement) and release.moments is None:
        model = None if release.model is None else PublishedModel.from_json(release.model)
        return Outcome(release, model=model, text=release.model, reason=release.refusal)
    if isinstance(document, Plan) and len(published) < len(document):
        following, reason = None, release.refusal
        if now.past:
            reason = f"Its date came after {len(published)} of its {len(document)} waves."
        elif end:
            reason = f"Its administrator ended it after wave {len(published)} of {len(document)}."
        elif release.moments is not None:
            following, reason = following_of(document, published)
        if following is not None:
            return Outcome(release, following)
    model, refusal = best_model(course, published)
    if model is None:
        told = refusal if course.by_hand else f"There is no model: {refusal}"
        reason = " ".join(filter(None, (reason, told)))
    return Outcome(release, model=model, reason=reason)


# ---- transactions


@dataclass(frozen=True)
class Fixed:
    """A wave that is fixed, and how its course stood then; to be dropped if it is below its
    quorum, and then, or if the administrator wants it, the course ends.
    """

    now: Standing
    wave: Collection
    dropped: bool
    end: bool


def look(
    connection: Connection, course: Course, *, end: bool
) -> tuple[Standing, Collection] | None:
    """Return the open wave, if something is to be done with it now: it is full, fixed or past its
    date, or the course is to end.
    """
    now, wave = standing(connection, course), newest(connection, course)
    if now.state == "ended":
        return None
    if not end and course.by_hand:
        return (now, wave) if outbox.has(connection, course.key, "advance") else None
    if end or (now.state == "collecting" and _is_due(connection, now, wave)):
        return now, wave
    return None


def _is_due(connection: Connection, now: Standing, wave: Collection) -> bool:
    return now.past or now.is_fixed or come(connection, wave.key) >= wave.agreement.quorum


def fix(connection: Connection, course: Course, *, end: bool, drop: bool = False) -> Fixed | None:
    """Fix the set of the open wave; None if somebody was quicker, or the course is held.

    Below the quorum an error is raised and nothing changes, unless the course ends and has released
    something, or its date has come: then the wave will be dropped. So it is with `drop`, if the
    other database does not help.
    """
    now, wave = standing(connection, course, alone=True), newest(connection, course)
    if now.state == "ended" or (now.state != "collecting" and not end):
        return None
    if course.by_hand:
        refuse_if_handed_over(connection, wave)
    short = drop or come(connection, wave.key) < wave.agreement.quorum
    # Of several waves one is fixed below its quorum only to be dropped: go on with that.
    may_drop = not course.by_hand and (now.past or (end and now.released > 0) or now.is_fixed)
    if short and not may_drop:
        if not end:  # somebody was quicker, and another wave collects
            return None
        refuse_below_quorum(wave.agreement, come(connection, wave.key))
    if now.newest.state == "collecting":
        shut(connection, now)
    if not short and wave.role == "whole" and wave.agreement.database_noise:
        _draw(connection, wave)
    outbox.add(connection, course.key, "advance")
    return Fixed(now, wave, short, end or short)


def _draw(connection: Connection, wave: Collection) -> None:
    """Draw the noise of the database itself, unless it was drawn before."""
    noise = words(wave.agreement).astype("<u8").tobytes()
    absent = (_w.key == wave.key) & _w.noise.is_(None)
    connection.execute(sa.update(waves).where(absent).values(noise=noise))


def fix_with_the_other(
    connection: Connection, course: Course, theirs: ByteArray, *, end: bool
) -> tuple[Fixed, joint.Commitment, ByteArray]:
    """Fix the set of the open wave with the second database."""
    now, wave = standing(connection, course, alone=True), newest(connection, course)
    if now.state == "ended" or (now.state != "collecting" and not end):
        raise ClosedError("The course is held, or has ended: no wave is released.")
    outbox.add(connection, course.key, "advance")
    return Fixed(now, wave, dropped=False, end=end), *joint.fix(connection, now, wave, theirs)


def totals_of(connection: Connection, wave: Collection) -> tuple[Totals, WordArray | None]:
    """Return what the set that was fixed comes to, and the noise that was drawn for it, if any."""
    drawn = connection.scalar(sa.select(_w.noise).where(_w.key == wave.key))
    noise = None if drawn is None else np.frombuffer(drawn, "<u8").astype(np.uint64)
    return blocks.totals(connection, wave), noise


def keep(connection: Connection, fixed: Fixed, found: Outcome) -> None:
    """Write down what a wave has come to, and what follows; what was written before stays."""
    course, wave = fixed.now.course, fixed.wave
    now = standing(connection, course, alone=True)
    if now.state == "ended" or now.newest.key != wave.key:
        return
    if course.by_hand:
        refuse_if_handed_over(connection, wave)
    _write(connection, now, found)
    if course.role == "first":
        released = found.release.moments is not None
        outbox.add(connection, course.key, "tell", wave.number if released else 0)


def _write(connection: Connection, now: Standing, found: Outcome) -> None:
    """Release or drop the newest wave, and open the next, or end the course."""
    course, moments = now.course, found.release.moments
    if moments is not None:
        update_wave(connection, now.newest.key, state="released", moments=moments)
    if found.following is not None:
        open_wave(connection, course, now.newest.number + 1, found.following)
        call_when_due(connection, standing(connection, course), 0)
        return
    if moments is None and found.release.model is None and now.newest.state != "released":
        update_wave(connection, now.newest.key, state="dropped")
    update(connection, course, state="ended", reason=found.reason, closes=CLOSES_IF_PAST)
    if found.model is not None:
        here = (_w.course == course.key) & (_w.fingerprint == found.model.fingerprint)
        values = {"model": found.text or found.model.to_json(), "state": "released"}
        connection.execute(sa.update(waves).where(here).values(values))
    outbox.schedule(connection, course.key, None)


def end(connection: Connection, now: Standing, reason: str) -> None:
    """End a course, whose row the caller holds, with what its waves have released."""
    published = [_read(text) for text in release_texts(connection, now.course)]
    model = best_model(now.course, published)[0] if published else None
    _write(connection, now, Outcome(Release(), model=model, reason=reason))
    if now.course.role == "first" and not now.course.by_hand:
        outbox.add(connection, now.course.key, "tell")


def settle(connection: Connection, course: Course) -> None:
    """Write down when a course is to be taken forward next, after it was."""
    now = standing(connection, course, alone=True)
    if now.state == "ended" or (course.by_hand and not now.is_fixed):
        outbox.schedule(connection, course.key, None)
    call_when_due(connection, now, come(connection, now.newest.key))


# ---- two databases tell each other


def news_of(connection: Connection, course: Course, number: int) -> News:
    """Return what the second database is to be told: of one wave, or of the course."""
    now, told = standing(connection, course), News("collecting")
    if number:
        after = next((one for one in now.waves[number:] if one.state != "dropped"), None)
        wave = now.waves[number - 1]
        moments, following = (
            _text(connection, one, column)
            for one, column in ((wave, _w.moments), (after, _w.agreement))
        )
        told = replace(told, wave=wave.fingerprint, moments=moments, following=following)
        if after is not None and now.state == "ended":
            return told  # the end is told by itself
    ended = now.state == "ended"
    model = model_text(connection, course) if ended else None
    return replace(told, state=now.state, reason=now.reason if ended else None, model=model)


def _text(connection: Connection, wave: Any, column: sa.Column[Any]) -> str | None:
    if wave is None:
        return None
    found: str | None = connection.scalar(sa.select(column).where(_w.key == wave.key))
    return found


def told(connection: Connection, course: Course, task: Task) -> None:
    """Strike off what was told; what both have now can be signed by both."""
    outbox.done(connection, task)
    for one in standing(connection, course).waves:
        if course.first.signing_keys and (one.number == task.wave or one.model):
            outbox.add(connection, course.key, "sign", one.number)


def take(connection: Connection, course: Course, known: int, news: News, found: Outcome) -> None:
    """Write down what the first database has written down, which was checked beside the `known`
    releases; other sums, or another model, than before are a conflict, for ever.
    """
    now = standing(connection, course, alone=True)
    if news.moments is not None:
        row = next((one for one in now.waves if one.fingerprint == news.wave), None)
        if row is None or (now.state == "ended" and not row.sums):
            raise ClosedError(now.reason or "The collection has come to its end here.")
        if not row.sums or now.released != known:
            _refuse_unless_chosen(connection, now, row, known, news)
            _write(connection, now, found)
            update(connection, course, told=news.state)
            return
    if now.state == "ended":
        same = news.state == "ended" and news.model == model_text(connection, course)
        if not same and news.following is None:
            raise ConflictError("Expected the end, and the model, that are here.")
        return
    if news.state == "ended":
        _write(connection, now, replace(found, release=Release()))
    update(connection, course, told=news.state)


def _refuse_unless_chosen(
    connection: Connection, now: Standing, row: Any, known: int, news: News
) -> None:
    assert news.moments is not None
    wave, shown = find(connection, row.fingerprint), _read(news.moments)
    chosen = joint.recorded(connection, wave)
    is_next = row.key == now.newest.key and now.released == known
    stated = shown.fingerprint, shown.count
    if chosen is None or not is_next or stated != (wave.fingerprint, chosen.count):
        raise InvalidValueError(
            "Expected the sums of the set that was fixed here, and these are of others, or none "
            "was fixed: begin by asking whose shares are here."
        )


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
    published, document = [_read(text) for text in texts], course.document
    release = Release(moments=news.moments)
    if news.following is not None:
        if isinstance(document, Agreement) or news.moments is None:
            raise InvalidValueError("Expected no wave but after the sums of a plan's wave.")
        announced = Agreement.from_json(news.following)
        follows(document, published[: texts.index(news.moments) + 1], announced)
        return Outcome(release, announced)
    if news.state != "ended":
        return Outcome(release)
    again, _ = best_model(course, published)
    stated = None if news.model is None else PublishedModel.from_json(news.model)
    if (again is None) != (news.model is None) or (
        again is not None and news.model is not None and not is_model(news.model, again)
    ):
        raise InvalidValueError(
            "Expected the model that follows from the releases, and this one does not. Let both "
            "databases use releases of blurfit that learn alike."
        )
    return Outcome(release, model=stated, text=news.model, reason=news.reason)


# ---- what was published


def release_texts(connection: Connection, course: Course) -> list[str]:
    """Return the published sums, in the order of the waves, as the texts whose SHA-256 later waves
    carry.
    """
    here = (_w.course == course.key) & _w.moments.is_not(None)
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
            f"once, when at least {course.first.quorum:,} have contributed."
        )
    if now.state != "ended":
        raise NotPublishedError(
            "The plan goes on: its model is published after its last wave, or when its "
            "administrator ends it early. What its waves have published is in its releases."
        )
    raise NotPublishedError(now.reason or "The plan has ended, and there is no model.")


def _published(connection: Connection, wave: Collection, column: sa.Column[Any]) -> str:
    text = connection.scalar(sa.select(column).where(_w.key == wave.key))
    if text is None and (place := wave.agreement.wave) is not None:
        raise NotPublishedError(
            f"This is wave {place.number} of the plan {place.plan}. Its sums are published when "
            f"{wave.agreement.quorum:,} have contributed, and a model from all waves when the plan "
            "has come to its end."
        )
    return shown_at(connection, wave.course) if text is None else str(text)


# ---- exports


def refuse_if_handed_over(connection: Connection, wave: Collection) -> None:
    """Refuse to release a collection whose release was left to a file."""
    place = connection.scalar(sa.select(_w.handed_over).where(_w.key == wave.key))
    if place is not None:
        raise InfeasibleError(
            f"This collection was exported to {place!r}, and its model is learned from that file "
            "(`blurfit learn`). Another one from here could be of other people, and the two would "
            "give away whom they differ in."
        )


def hand_over(
    connection: Connection, wave: Collection, place: str
) -> tuple[Release | None, str | None]:
    """Return what was published, to be told in the exported file; None if the release is left to
    it. Beside it, the name of a complete file that an export was killed with before it was renamed.

    Refused while more may come; where a model was tried and could not be, which is for good; where
    it was left to a file before, unless that was never completed, at the same place; and before
    publication where the database adds noise of its own, which a second export could have drawn a
    second time.
    """
    wave.require_role("whole")
    refuse_by_hand(wave.course)
    now = standing(connection, wave.course, alone=True)
    row = connection.execute(sa.select(waves).where(_w.key == wave.key)).one()
    if row.state == "collecting" and not now.past:
        raise NotPublishedError(
            f"Expected a collection that is closed, and {wave.fingerprint} is still collecting. "
            "Close it first (`blurfit close`); that cannot be undone."
        )
    if row.model is not None:
        return Release(row.model, row.moments), None
    if now.state == "ended":
        raise InfeasibleError(now.reason or "There is no model.")
    if wave.agreement.database_noise:
        raise InfeasibleError(
            "This agreement has the database add noise of its own, once: publish here. Whoever "
            "learned from an exported file, and again from another export of it, would draw that "
            "noise twice for the same people."
        )
    if row.handed_over not in (None, place):
        raise ConflictError(
            f"Expected {place!r} to be {row.handed_over!r}, where this collection was exported "
            "before: models learned from two exports, each with other files, would give away whom "
            "they differ in. Learn from that file."
        )
    if row.handed_in is not None:
        if not Path(place).with_name(row.handed_in).exists():
            raise _handed_over(row.handed_over)
        return None, row.handed_in
    # For good, also where a date closed it.
    update_wave(connection, wave.key, handed_over=place, state="fixed")
    outbox.schedule(connection, wave.course.key, None)
    return None, None


def complete_handover(connection: Connection, wave: Collection, name: str) -> None:
    """Write down that the exported file is complete under this name: of several only the first."""
    standing(connection, wave.course, alone=True)
    row = connection.execute(sa.select(waves).where(_w.key == wave.key)).one()
    if row.handed_in is not None:
        raise _handed_over(row.handed_over)
    update_wave(connection, wave.key, handed_in=name)


def _handed_over(place: str) -> ConflictError:
    return ConflictError(
        f"This collection was exported to {place!r}, and is not exported again: models learned "
        "from two copies, each with other files, would give away whom they differ in. Learn from "
        "that file, wherever it is now."
    )


class Publishing(Intake):
    """What a store releases, alone or with the other database."""

    # ---- taking courses forward

    def publish(self, document: Agreement | Plan | str) -> PublishedModel:
        """End a course now, with its model: it is learned once, and is the same for ever."""
        self.publish_text(_name(document))
        try:
            return PublishedModel.from_json(self.model(_name(document)))
        except NotPublishedError as error:
            raise InfeasibleError(self._no_model(_name(document))) from error

    def publish_text(self, fingerprint: str, peer: Peer | None = None) -> str:
        """End a course now, with the open wave if it has its quorum: the text of its model, or of
        sums that have none of their own, always the same bytes.

        Below the quorum, if nothing was released, an error is raised and nothing changes. The
        second of two databases does not publish: by hand, this closes its side.
        """
        course = self.steered(fingerprint)
        if course.role == "second":
            return self._let_publish(course)
        self._step(course, peer, end=True)
        if course.role == "first" and peer is not None:
            self._tell(course, peer)
        try:
            return self.model(course.fingerprint)
        except NotPublishedError as error:
            sums = self.releases(course.fingerprint)
            if course.by_hand and sums:
                return sums[0]
            if course.by_hand:
                raise InfeasibleError(self._no_model(fingerprint)) from error
            raise

    def _no_model(self, fingerprint: str) -> str:
        status = self.status(fingerprint)
        shown = "The sums are published, and are not a model. " if status.sums else ""
        return shown + (status.reason or "There is no model.")

    def _let_publish(self, course: Course) -> str:
        """Close a second database's side; its model, or sums, if the first has sent them."""
        first = course.databases[0].name
        if course.by_hand:
            self.write(close, course)
        if (text := self.read(model_text, course)) is not None:
            return text
        if sums := course.by_hand and self.releases(course.fingerprint):
            return sums[0]
        if course.by_hand:
            raise NotPublishedError(
                f"The collection is closed here, and its shares may be summed. The next step is "
                f"{first}'s: once it publishes, the model appears here too."
            )
        if self.status(course.fingerprint).state == "ended":
            return self.read(shown_at, course)
        raise NotPublishedError(
            f"{first} leads this plan, and only there can it be ended. It can be held here: then "
            "no wave is released until it is resumed."
        )

    def advance(self, fingerprint: str, peer: Peer | None = None) -> None:
        """Take a course as far as it goes by itself now; nothing happens where nothing is due."""
        course = self.course(fingerprint)
        while self._step(course, peer, end=False) and not self._has_to_tell(course):
            pass
        self.write(settle, course)

    def _has_to_tell(self, course: Course) -> bool:
        return self.read(outbox.has, course.key, "tell")

    def _step(self, course: Course, peer: Peer | None, *, end: bool) -> bool:
        """Release or drop the open wave; whether there was anything to do is returned."""
        found = self.read(look, course, end=end)
        if found is None:
            return False
        if course.role == "first":
            done = self._fixed_with(_required(peer), course, *found, end=end)
        else:
            found[1].require_role("whole")
            done = self.write(fix, course, end=end), None
        fixed, totals = done
        if fixed is None:
            return False
        release = Release()
        if not fixed.dropped:
            release = self._released(fixed.wave, totals)
        before = self.read(release_texts, course)
        self.write(keep, fixed, outcome_of(fixed.now, release, before, end=fixed.end))
        return True

    def _released(self, wave: Collection, shared: tuple[int, WordArray] | None) -> Release:
        """Return the release of a set that was fixed. This may take long."""
        try:
            if shared is not None:
                return released_by(wave, joint.totals_of(wave.agreement, *shared))
            totals, drawn = self.read(totals_of, wave)
            return released_by(wave, blurred(wave.agreement, totals, drawn))
        except BelowQuorumError:
            raise
        except InfeasibleError as error:  # too many to add exactly, or no sums of people
            return Release(refusal=_unpublishable(wave, error))

    def _fixed_with(
        self, peer: Peer, course: Course, now: Standing, wave: Collection, *, end: bool
    ) -> tuple[Fixed | None, tuple[int, WordArray] | None]:
        """Fix the open wave with the second database, and add up with it; or drop the wave, where
        the course ends and the other does not help.
        """
        ending = not course.by_hand and (now.past or (end and now.released > 0))
        short = self.read(come, wave.key) < wave.agreement.quorum
        if short and ending and not now.newest.chosen:
            return self.write(fix, course, end=end, drop=True), None
        try:
            return self._summed_with(peer, course, wave, end=end)
        except ServiceError as error:
            if not (ending and now.state == "held"):
                remedy = (
                    "Nothing has ended. Ask again when it is back; or hold the plan, and end it "
                    "without the open wave."
                )
                told = f"{error} {remedy}" if end and not course.by_hand else str(error)
                raise ServiceError(told, error.status) from error
        except (InfeasibleError, InvalidValueError, NotCertifiedError) as refusal:
            if not ending:
                raise
            _log.info("%s ends without its open wave: %s", course.fingerprint, refusal)
        return self.write(fix, course, end=end, drop=True), None

    def _summed_with(
        self, peer: Peer, course: Course, wave: Collection, *, end: bool
    ) -> tuple[Fixed, tuple[int, WordArray]]:
        theirs = peer.identifiers(wave)
        if self.read(joint.recorded, wave) is None:
            self.read(joint.refuse_if_too_few, wave, theirs)
            peer.close(wave)
            theirs = peer.identifiers(wave)
            if wave.agreement.proofs:
                peer.verify(wave, theirs)
        fixed, chosen, left_out = self.write(fix_with_the_other, course, theirs, end=end)
        masks = peer.masks(wave, chosen.digest, chosen.count, left_out)
        return fixed, self.read(joint.together, wave, masks)

    # ---- the outbox

    def due(self) -> list[Task]:
        """Return what is to be done now."""
        return self.read(outbox.due)

    def seconds_to_next(self) -> float | None:
        """Return how long nothing is to be done; None if nothing is written down."""
        return self.read(outbox.seconds_to_next)

    def work(self, task: Task, peer: Peer | None = None) -> None:
        """Do a task, and strike it off; whatever goes wrong is raised."""
        course = self.course(task.course)
        if task.what == "advance":
            self.advance(task.course, peer)
        elif task.what == "tell":
            _required(peer).tell(course, self.read(news_of, course, task.wave))
            self.write(told, course, task)
        else:
            wave = self.status(task.course).waves[task.wave - 1].fingerprint
            assert wave is not None
            _required(peer).sign(self.collection(wave))
            self.write(outbox.done, task)

    def put_off(self, task: Task, seconds: float, error: BlurfitError | None = None) -> None:
        """Try a task again later; earlier, if more people were missing and have come by then."""
        wanted = None
        if isinstance(error, TooFewError):
            wanted = error.missing + self.status(task.course).count
        self.write(outbox.put_off, task, seconds, wanted)

    def _tell(self, course: Course, peer: Peer) -> None:
        """Tell the second database at once; what fails is told later."""
        try:
            while True:
                mine = [one for one in self.due() if one.course == course.fingerprint]
                telling = [one for one in mine if one.what == "tell"]
                if not telling:
                    return
                self.work(telling[0], peer)
        except BlurfitError as error:
            _log.warning("%s is not at the other database yet: %s", course.fingerprint, error)

    # ---- the answers of a second database

    def require_consent(self, wave: Collection) -> None:
        """Refuse what a second database does only if its administrator lets it."""
        self.read(joint.consenting, wave)

    def show_identifiers(self, wave: Collection, after: bytes, most: int) -> bytes:
        """Return the identifiers here, a part at a time."""
        self.require_consent(wave)
        return self.read(identifiers.page, wave.key, after, most)

    def close_for_first(self, wave: Collection) -> None:
        """Close a wave, for the first database, which has found enough people at both."""
        self.write(joint.close, wave)

    def sum_of_masks(
        self, wave: Collection, digest: bytes, count: int, bits: bytes
    ) -> tuple[bytes, int, WordArray]:
        """Commit to one set of contributors, for ever, and return the sum of their masks.

        `bits` has one for each of those who are here, in order: whether it is in the set.
        """
        self.require_consent(wave)
        self._accept(wave, digest, count, bits)  # what it takes of memory is given back
        chosen, found = self.read(joint.sums_over, wave)
        return chosen.digest, chosen.count, found

    def _accept(self, wave: Collection, digest: bytes, count: int, bits: bytes) -> None:
        here = self.read(identifiers.held, wave.key)
        left_out = identifiers.left_out_by(here, bits)
        self.write(joint.accept, wave, digest, count, left_out, here)

    def take_news(self, fingerprint: str, news: News) -> Status:
        """Write down what the first database tells, if it follows."""
        course = self.course(fingerprint)
        newest_wave = self.read(newest, course)
        newest_wave.require_role("second")
        before = self.read(release_texts, course)
        self.write(take, course, len(before), news, checked(course, before, news))
        return self.status(course.fingerprint)

    # ---- proofs

    def fix_verification_key(self, wave: Collection, key: bytes) -> None:
        """Write the verification key down, if there is none yet; another one is a conflict."""
        self.write(joint.fix_verification_key, wave, key)

    def verdicts(self, wave: Collection) -> ByteArray:
        """Return who has a verdict."""
        return self.read(joint.judged, wave)

    def record_verdicts(self, wave: Collection, names: ByteArray, good: BoolArray) -> BoolArray:
        """Write some verdicts down, and tell those that stand."""
        return self.write(joint.record_verdicts, wave, names, good)

    def block_keys(self, wave: Collection) -> list[int]:
        """Return the keys of a wave's blocks."""
        return self.read(blocks.keys, wave)

    def rows_of(self, wave: Collection, block: int) -> tuple[ByteArray, Any] | None:
        """Return the rows of a block; None if it was put together with others meanwhile."""
        return self.read(blocks.rows_of, wave, block)

    def rows_among(self, wave: Collection, names: ByteArray) -> tuple[ByteArray, Any]:
        """Return the rows of those of some contributors who are here, in order."""
        return self.read(blocks.rows_among, wave, names)

    # ---- what was published

    def release(self, agreement: Agreement | str) -> PublishedMoments:
        """Publish the sums of a `moment` collection, once, with its model if it has one of its own:
        a later wave has none.
        """
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
        shown = fingerprint
        if course.fingerprint == fingerprint:
            shown = self.read(shown_at, course)
        return self.read(_published, self.collection(shown), _w.model)

    def shown_at(self, fingerprint: str) -> str:
        """Return the fingerprint of the wave with which a course's model is shown."""
        return self.read(shown_at, self.course(fingerprint))

    def moments(self, agreement: Agreement | str) -> PublishedMoments:
        """Return the blurred sums of a wave; further models of them are free."""
        return PublishedMoments.from_json(self.moments_text(_name(agreement)))

    def moments_text(self, fingerprint: str) -> str:
        """Return the blurred sums of a wave as they were stored, always the same text."""
        wave = self.collection(fingerprint)
        if wave.agreement.mechanism != "moment":
            raise NotPublishedError(
                "The sums of an 'input' collection are never shown: a second model from them would "
                "undo the noise of the first. Use mechanism='moment' where they are needed."
            )
        return self.read(_published, wave, _w.moments)

    def compare_halves(self, fingerprint: str) -> Comparison:
        """Compare those who came first with those who came later, for the administrator alone."""
        return self.read(compared, self.collection(fingerprint))

    def hand_over(self, wave: Collection, place: str) -> tuple[Release | None, str | None]:
        """Leave a collection's release to an exported file, unless it was published."""
        return self.write(hand_over, wave, place)

    def complete_handover(self, wave: Collection, name: str) -> None:
        """Write down that the exported file is complete under this name."""
        self.write(complete_handover, wave, name)

    # ---- signatures

    def signatures(self, wave: Collection, document: Signed) -> tuple[Signature, ...]:
        """Return those of a document, in the order in which the agreement has their keys."""
        here = (_s.wave == wave.key) & (_s.document == document)
        query = sa.select(_s.key, _s.signature).where(here)
        rows = self.read(lambda connection: connection.execute(query).all())
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
            self.write(
                lambda connection: connection.execute(
                    insert_if_absent(connection, signatures), rows
                )
            )


def _required(peer: Peer | None) -> Peer:
    if peer is None:
        raise InfeasibleError(
            "Expected the other database: this course is published together with it, through the "
            "service."
        )
    return peer


def _name(document: Agreement | Plan | str) -> str:
    return document if isinstance(document, str) else document.fingerprint
