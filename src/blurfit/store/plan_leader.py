"""What the first of a plan's two databases, which leads, does and writes down in each wave.

The steps, their order, and why they are safe are in `blurfit.store.joint_plans`.
"""

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.arrays import ByteArray, WordArray
from blurfit.errors import BelowQuorumError, ClosedError, InfeasibleError
from blurfit.model.release import Release
from blurfit.store import (
    blocks,
    closing,
    commitment,
    identifier_sets,
    joint_publication,
    plan_rows,
    plans,
    publication,
    shared_sums,
    tables,
)
from blurfit.store.advance import dropped, go_on, newest_wave, sums_of
from blurfit.store.collections import Collection, find, state
from blurfit.store.commitment import Commitment
from blurfit.store.joint_plans import News, plan_of

_joint, _sharing, _c = tables.joint_plans.c, tables.sharing.c, tables.collections.c


class Delivery(NamedTuple):
    """A release that the second database may not have, and the agreement of the wave that follows
    it, if any does.
    """

    wave: Collection
    moments: str
    following: str | None


def leading(connection: Connection) -> list[str]:
    """The plans that this database leads, and for which there is something to do."""
    query = (
        sa.select(tables.plans, _joint.told)
        .join(tables.joint_plans, _joint.plan == tables.plans.c.fingerprint)
        .where(sa.not_(tables.plans.c.learned) | (_joint.told != "ended"))
    )
    found = []
    for row in connection.execute(query).all():
        name = row.fingerprint
        if plans.role_in(connection, name) == "first" and (
            row.state != row.told
            or undelivered(connection, name)
            or ready(connection, name) is not None
        ):
            found.append(name)
    return found


def ready(connection: Connection, fingerprint: str, *, end: bool = False) -> Collection | None:
    """The open wave, if as many have come here as it waits for, or if it is closed already."""
    held = plan_rows.hold_row(connection, fingerprint, update=False)
    if held.state == "ended" or (held.state == "held" and not end):
        return None
    wave = newest_wave(connection, fingerprint)
    is_closed = state(connection, wave) != "collecting"
    is_full = blocks.count(connection, wave) >= wave.agreement.quorum
    return wave if is_closed or is_full else None


def is_past(connection: Connection, fingerprint: str) -> bool:
    """Whether the plan's date has come, and the plan is not held: one that is held ends later."""
    held = plan_rows.hold_row(connection, fingerprint, update=False)
    return held.state == "collecting" and closing.of_plan(connection, fingerprint).past


def missing(connection: Connection, wave: Collection, theirs: ByteArray) -> int:
    """How many more must be at both databases before the wave may close; none or fewer if enough.

    Nothing is closed for this look, so that nobody who sends one share alone can end a plan; nor is
    a wave closed of which the set would be refused (`blurfit.store.commitment`).
    """
    here = identifier_sets.identifiers_of(connection, wave)
    common = int(identifier_sets.among(here, identifier_sets.in_order(theirs)).sum())
    agreement = wave.agreement
    if common < agreement.quorum:
        return agreement.quorum - common
    for held, most in (
        (len(here), commitment.most_left_out(agreement, "first", len(here))),
        (len(theirs), commitment.most_left_out(agreement, "second", len(theirs))),
    ):
        if held - common > most:
            raise InfeasibleError(
                f"Expected almost all shares to be at both databases, and of {held} at one of them "
                f"{held - common} are not at the other, where at most {most} may be: the wave goes "
                "on collecting. Find out who sends one share alone."
            )
    return agreement.quorum - common


def fix(
    connection: Connection, wave: Collection, theirs: ByteArray, *, end: bool = False
) -> tuple[Commitment, ByteArray]:
    """Close the wave and fix the common set; the set, and whom the second must leave out."""
    held = plan_rows.hold_row(connection, plan_of(wave))
    if held.state == "ended" or (held.state == "held" and not end):
        raise ClosedError("The plan is held, or has ended: no wave is released.")
    return joint_publication.fix(connection, wave, theirs, planned=True)


def release_of(wave: Collection, count: int, words: WordArray) -> Release:
    """What comes of Σv mod 2⁶⁴ over the set that was fixed: sums, or none for ever."""
    try:
        totals = shared_sums.totals_of(wave, count, words)
    except InfeasibleError as error:
        return Release(refusal=f"The sums of this wave cannot be published: {error}")
    return sums_of(wave, totals)


def publish(
    connection: Connection, wave: Collection, release: Release, *, end: bool = False
) -> None:
    """Publish a wave's sums and open the next one, or end the plan; what was done before stays."""
    held = plan_rows.hold_row(connection, plan_of(wave))
    row = publication.held(connection, wave)
    if held.state == "ended" or row.moments is not None or row.refusal is not None:
        return
    if commitment.recorded(connection, wave) is None:
        raise InfeasibleError("Expected a set to be fixed before a wave is published.")
    go_on(connection, held.plan, wave, release, end=end)


def end_without_the_open_wave(connection: Connection, fingerprint: str) -> None:
    """End a plan with the waves that were released; with none an error is raised, unless the plan's
    date has come.
    """
    held = plan_rows.hold_row(connection, fingerprint)
    if held.state == "ended":
        return
    wave = newest_wave(connection, fingerprint)
    past = closing.of_plan(connection, fingerprint).past
    if not past and not plans.release_texts(connection, fingerprint):
        raise BelowQuorumError(
            f"Expected at least the quorum {wave.agreement.quorum} of the first wave at both "
            "databases before the plan ends: nothing has been released, so there is no model."
        )
    publication.held(connection, wave)
    go_on(connection, held.plan, wave, dropped(wave), end=True)


def undelivered(connection: Connection, fingerprint: str) -> list[Delivery]:
    """The releases that the second database may not have, in their order."""
    held = plan_rows.hold_row(connection, fingerprint, update=False)
    query = tables.of_waves(
        fingerprint, _c.fingerprint, _c.agreement, _c.moments, _sharing.delivered
    )
    rows = connection.execute(query.join(tables.sharing, _sharing.collection == _c.key)).all()
    found = []
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        if row.moments is None or row.delivered:
            continue
        goes_on = after is not None and (held.state != "ended" or after.moments is not None)
        following = after.agreement if after is not None and goes_on else None
        found.append(Delivery(find(connection, row.fingerprint), row.moments, following))
    return found


def news(connection: Connection, fingerprint: str) -> News | None:
    """What the second database is still to be told: the end once there is a model, or none."""
    held = plan_rows.hold_row(connection, fingerprint, update=False)
    told = connection.scalar(sa.select(_joint.told).where(_joint.plan == fingerprint))
    if told == held.state or (held.state == "ended" and not held.learned):
        return None
    if held.state != "ended":
        return News(held.state)
    return News("ended", held.reason, plans.model_text(connection, fingerprint))
