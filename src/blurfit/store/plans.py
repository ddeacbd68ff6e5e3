"""A plan in a store: from wave to wave, each step in one transaction.

    wave k collects ─► quorum reached ─ advance ─► its sums are published, wave k + 1 collects

`advance` publishes the sums of the open wave, computes the next agreement from the plan and the
published releases, opens it and hands over the invitations that nobody has used: all of it or
nothing. So, killed anywhere, either wave k still collects, or wave k + 1 does, and never both or
neither. Whoever advances holds the plan's row, so a second one waits, and then finds the new wave
below its quorum. Below the quorum nothing happens.

**Invitations belong to the plan.** One that was used is gone, and cannot be used in a later wave:
who was invited once takes part once.
"""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.errors import InfeasibleError, UnknownCollectionError
from blurfit.model.moments import PublishedMoments
from blurfit.model.waves import Course
from blurfit.store import collections, publication, tables

_plans, _waves = tables.plans.c, tables.waves.c


def begin(connection: Connection, plan: Plan) -> Agreement:
    """Keep a plan, and open its first wave; to begin it again changes nothing."""
    if plan.terms.databases:
        raise InfeasibleError(
            "Expected a plan for one database: where trust is shared, both open each wave and "
            "publish it together."
        )
    insert = tables.insert_if_absent(connection, tables.plans)
    row = {"fingerprint": plan.fingerprint, "document": plan.to_json()}
    connection.execute(insert.values(row))
    _held(connection, plan.fingerprint)
    if not _agreements(connection, plan.fingerprint):
        _open(connection, plan.first())
    return _agreements(connection, plan.fingerprint)[-1]


def current(connection: Connection, fingerprint: str) -> Agreement:
    """The agreement of the newest wave: the one that collects, unless the plan is at its end."""
    return _known(_agreements(connection, fingerprint), fingerprint)[-1]


def releases(connection: Connection, fingerprint: str) -> list[PublishedMoments]:
    """What the waves so far have published, in their order."""
    c = tables.collections.c
    query = (
        sa.select(c.moments)
        .join(tables.waves, _waves.collection == c.key)
        .where((_waves.plan == fingerprint) & c.moments.is_not(None))
        .order_by(_waves.number)
    )
    return [PublishedMoments.from_json(text) for text in connection.scalars(query)]


def advance(connection: Connection, fingerprint: str) -> Agreement | None:
    """Publish the open wave and open the next one; None if it was the last.

    Raises BelowQuorumError, and changes nothing, while too few have come.
    """
    plan = _held(connection, fingerprint)
    before = _agreements(connection, fingerprint)
    published = releases(connection, fingerprint)
    if len(published) == len(plan):
        return None
    course = Course.of(plan, published)
    now = collections.find(connection, before[-1].fingerprint)
    release = publication.publish(connection, now)
    if release.moments is None:
        raise InfeasibleError(release.refusal or "This wave has no sums.")
    course = course.then(PublishedMoments.from_json(release.moments))
    if len(course.releases) == len(plan):
        return None
    following = course.next_agreement()
    key = _open(connection, following)
    here = tables.invitations.c.collection
    connection.execute(sa.update(tables.invitations).where(here == now.key).values(collection=key))
    return following


def _open(connection: Connection, agreement: Agreement) -> int:
    agreement.verify()
    wave = agreement.wave
    assert wave is not None
    key, _ = collections.begin(connection, agreement)
    row = {"plan": wave.plan, "number": wave.number, "collection": key}
    connection.execute(sa.insert(tables.waves).values(row))
    return key


def _held(connection: Connection, fingerprint: str) -> Plan:
    """The plan, whose row is held until the transaction ends."""
    query = sa.select(_plans.document).where(_plans.fingerprint == fingerprint)
    row = connection.execute(query.with_for_update()).first()
    if row is None:
        raise UnknownCollectionError(f"No plan with fingerprint={fingerprint!r} was begun here.")
    return Plan.from_json(row.document)


def _agreements(connection: Connection, fingerprint: str) -> list[Agreement]:
    c = tables.collections.c
    query = (
        sa.select(c.agreement)
        .join(tables.waves, _waves.collection == c.key)
        .where(_waves.plan == fingerprint)
        .order_by(_waves.number)
    )
    return [Agreement.from_json(text) for text in connection.scalars(query)]


def _known(agreements: list[Agreement], fingerprint: str) -> list[Agreement]:
    if not agreements:
        raise UnknownCollectionError(f"No plan with fingerprint={fingerprint!r} was begun here.")
    return agreements
