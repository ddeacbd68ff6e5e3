"""Plans in a store: which waves there are, which of them collects, and how far each one is.

    collecting ⇄ held          the open wave takes submissions; held, no wave is released
        └───────┴──► ended     nothing is taken any more, and never again

A plan is begun once, with its first wave; `blurfit.store.advance` takes it from wave to wave. While
it is **held** the open wave goes on collecting, also beyond its quorum, which does no harm: noise
for n honest people is enough for more. An **ended** plan has a model from the waves that were
released, or a reason why there is none.

**Two databases.** Where trust is shared, a wave has one more state between `collecting` and
`released`: *closing*, when the two fix whom they sum over and no share is taken any more
(`blurfit.store.joint_plans`). Nobody is then told to blur for a wave: whoever asks for the current
one is asked to come back in a moment.

**Invitations belong to the plan.** They are kept with its first wave, for all waves, and each is
good in one wave alone, which a lot decides (`blurfit.agreement.waves`). One that was used is gone:
whoever was invited once takes part once.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.errors import BetweenWavesError, ClosedError, NotPublishedError
from blurfit.messages.shares import Role
from blurfit.model.moments import PublishedMoments
from blurfit.store import awaited, closing, collections, roles, tables
from blurfit.store.plan_rows import (
    State,
    agreements,
    change_state,
    hold_row,
    open_wave,
    plan_in,
    row_of,
)
from blurfit.theory.planning import StageKind

WaveState = Literal["planned", "collecting", "closing", "released", "dropped"]

_waves, _c, _joint = tables.waves.c, tables.collections.c, tables.joint_plans.c
_COME = sa.select(sa.func.coalesce(sa.func.sum(tables.blocks.c.count), 0)).where(
    tables.blocks.c.collection == _c.key
)
# Of every wave that was opened, in order: how many came, and what has become of it.
_STANDING = tables.of_waves(
    sa.bindparam("plan"),
    _COME.scalar_subquery().label("come"),
    _c.fingerprint,
    _c.state,
    _c.moments.is_not(None).label("released"),
    _c.model.is_not(None).label("has_model"),
    _waves.number,
)
_IS_RELEASED = tables.of_waves(sa.bindparam("plan"), _waves.number).where(_c.moments.is_not(None))
_RELEASED = tables.of_waves(sa.bindparam("plan"), _c.moments).where(_c.moments.is_not(None))


@dataclass(frozen=True)
class WaveStatus:
    """One wave of a plan. `fingerprint` is its agreement's, once it is open.

    A wave that was open when the plan ended, below its quorum, is dropped: never released.
    """

    number: int
    kind: StageKind
    quorum: int
    state: WaveState = "planned"
    count: int = 0
    fingerprint: str | None = None


@dataclass(frozen=True)
class PlanStatus:
    """What anyone may know of a plan. It is held if either of its databases holds it.

    `reason` says why it ended before its last wave, or has no model; `model` is the fingerprint of
    the collection that shows the plan's model, once there is one.
    """

    fingerprint: str
    state: State
    invited: bool
    waves: tuple[WaveStatus, ...]
    reason: str | None = None
    model: str | None = None
    closes: int | None = None  # the second since 1970 at which it ends, if one was set
    awaits: str | None = None  # the other of two databases, if it has the next step


def begin(
    connection: Connection, plan: Plan, closes: int | None = None, *, role: Role = "whole"
) -> Agreement:
    """Keep a plan, and open its first wave; beginning it again changes nothing.

    `closes` is when it is to end at the latest (`blurfit.store.closing`); `role` says which of the
    two databases this is, where trust is shared.
    """
    first = plan.first()
    roles.refuse_unless_fitting(first, role)
    insert = tables.insert_if_absent(connection, tables.plans)
    row = {
        "fingerprint": plan.fingerprint,
        "document": plan.to_json(),
        "state": "collecting",
        "learned": False,
    }
    connection.execute(insert.values(row))
    hold_row(connection, plan.fingerprint)
    if role != "whole":
        joint = tables.insert_if_absent(connection, tables.joint_plans)
        connection.execute(joint.values(plan=plan.fingerprint, told="collecting"))
    if is_new := not agreements(connection, plan.fingerprint):
        open_wave(connection, first, role)
    elif role != "whole":  # another one than before is a conflict
        roles.take_role(connection, collections.find(connection, first.fingerprint).key, role)
    closing.begin_plan(connection, plan.fingerprint, closes, new=is_new)
    return agreements(connection, plan.fingerprint)[-1]


def document(connection: Connection, fingerprint: str) -> str:
    """The plan's text."""
    return str(row_of(connection, fingerprint).document)


def plan_of(connection: Connection, fingerprint: str) -> Plan:
    """The plan itself."""
    return plan_in(document(connection, fingerprint))


def fingerprints(connection: Connection) -> list[str]:
    """Those of all plans, in the order in which they were begun."""
    first = _waves.number == 1
    return list(connection.scalars(sa.select(_waves.plan).where(first).order_by(_waves.collection)))


def status(connection: Connection, fingerprint: str) -> PlanStatus:
    """How far a plan is."""
    row = row_of(connection, fingerprint)
    plan = plan_in(row.document)
    found = list(connection.execute(_STANDING, {"plan": fingerprint}))
    stages = zip(plan.kinds, plan.quorums, strict=True)
    over = row.state == "ended"
    opened = [(_wave_state(one, over=over), int(one.come), one.fingerprint) for one in found]
    opened += [("planned", 0, None)] * (len(plan) - len(found))
    known = [
        WaveStatus(number, kind, quorum, *state)
        for number, ((kind, quorum), state) in enumerate(zip(stages, opened, strict=True), start=1)
    ]
    shown = [one.fingerprint for one in found if one.has_model]
    state: State = row.state
    if state == "collecting" and _is_held_there(connection, fingerprint):
        state = "held"
    return PlanStatus(
        fingerprint,
        state,
        plan.terms.admission == "invited",
        tuple(known),
        row.reason,
        shown[-1] if shown else None,
        closing.of_plan(connection, fingerprint).closes,
        awaited.in_plan(connection, fingerprint, plan.databases) if plan.databases else None,
    )


def _is_held_there(connection: Connection, fingerprint: str) -> bool:
    """Whether the first database, which leads, holds a plan whose second database this is."""
    told = connection.scalar(sa.select(_joint.told).where(_joint.plan == fingerprint))
    return told == "held" and role_in(connection, fingerprint) == "second"


def role_in(connection: Connection, fingerprint: str) -> Role:
    """Which of a plan's databases this is: "whole" if there is one."""
    query = (
        sa.select(tables.sharing.c.role)
        .join(tables.waves, _waves.collection == tables.sharing.c.collection)
        .where((_waves.plan == fingerprint) & (_waves.number == 1))
    )
    found: Role | None = connection.scalar(query)
    return found or "whole"


def still_open(connection: Connection, fingerprint: str) -> Agreement:
    """The agreement of the newest wave; an error if the plan has ended."""
    row = row_of(connection, fingerprint)
    if row.state == "ended":
        raise ClosedError(
            "The plan has come to its end, and nothing more is collected. "
            + (row.reason or "All of its waves have been released.")
        )
    closing.refuse_if_plan_is_past(connection, fingerprint)
    return agreements(connection, fingerprint)[-1]


def current(connection: Connection, fingerprint: str) -> Agreement:
    """The agreement of the wave that collects."""
    newest = still_open(connection, fingerprint)
    *_, last = connection.execute(_STANDING, {"plan": fingerprint})
    if last.state != "collecting":
        raise BetweenWavesError(
            f"Wave {last.number} is being published by the plan's two databases, and the next one "
            "opens in a moment. Ask again soon; blur nothing before."
        )
    return newest


def releases(connection: Connection, fingerprint: str) -> list[PublishedMoments]:
    """What the waves so far have published, in their order."""
    return [_release(text) for text in release_texts(connection, fingerprint)]


@lru_cache(maxsize=8)
def _release(text: str) -> PublishedMoments:
    """What never changes is read once, although every step of a plan asks for it."""
    return PublishedMoments.from_json(text)


def release_texts(connection: Connection, fingerprint: str) -> list[str]:
    """What the waves so far have published, as the texts whose SHA-256 later waves carry."""
    row_of(connection, fingerprint)
    return [str(text) for text in connection.scalars(_RELEASED, {"plan": fingerprint})]


def released(connection: Connection, fingerprint: str) -> int:
    """How many waves have published their sums."""
    row_of(connection, fingerprint)
    return len(connection.execute(_IS_RELEASED, {"plan": fingerprint}).all())


def shown_at(connection: Connection, fingerprint: str) -> str:
    """The fingerprint of the wave with which the model of a plan that has ended is shown."""
    row = row_of(connection, fingerprint)
    if shown := [
        one.fingerprint
        for one in connection.execute(_STANDING, {"plan": fingerprint})
        if one.has_model
    ]:
        return str(shown[-1])
    if row.state != "ended":
        raise NotPublishedError(
            "The plan goes on: its model is published after its last wave, or when its "
            "administrator ends it early. What its waves have published is in its releases."
        )
    if not row.learned:
        reason = f"{row.reason} " if row.reason else ""
        first = status(connection, fingerprint).awaits
        coming = "is being learned" if first is None else f"comes from {first}"
        raise NotPublishedError(
            f"The plan has ended. {reason}Its model {coming}: ask again in a moment."
        )
    raise NotPublishedError(row.reason or "The plan has ended, and there is no model.")


def model_text(connection: Connection, fingerprint: str) -> str | None:
    """The plan's model, if there is one."""
    found = connection.scalars(tables.of_waves(fingerprint, _c.model)).all()
    return next((one for one in reversed(found) if one is not None), None)


def hold(connection: Connection, fingerprint: str) -> None:
    """Release no wave until the plan is resumed; the open one goes on collecting."""
    change_state(connection, fingerprint, "held")


def resume(connection: Connection, fingerprint: str) -> None:
    """Let a plan that was held go on."""
    change_state(connection, fingerprint, "collecting")


def newest(connection: Connection, fingerprint: str) -> tuple[int, int]:
    """How many have come to the newest wave, and its number."""
    *_, last = connection.execute(_STANDING, {"plan": fingerprint})
    return int(last.come), int(last.number)


def _wave_state(row: Any, *, over: bool) -> WaveState:
    if row.released:
        return "released"
    if row.state == "collecting":
        return "collecting"
    return "dropped" if over else "closing"
