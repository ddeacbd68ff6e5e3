"""For which of two databases the other waits, once all that it does itself is done.

The first publishes and tells the second, which cannot make it do so: a second database that has
closed its side, and is never told of a model, would wait for ever. Whoever looks at it is told for
whom it waits, and so is whoever looks at a first that has published what the second does not have.
Nothing is done here: these are reads, of what the steps of `blurfit.store.joint_publication` and
`blurfit.store.joint_plans` have written down.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.agreement.databases import Database
from blurfit.store import closing, tables
from blurfit.store.collections import Collection

_c, _sharing, _plans, _joint = (
    table.c for table in (tables.collections, tables.sharing, tables.plans, tables.joint_plans)
)
_IN_COLLECTION = (
    sa.select(closing.STATE.label("state"), _c.moments, _c.refusal, _sharing.delivered)
    .join(tables.sharing, _sharing.collection == _c.key)
    .where(_c.key == sa.bindparam("key"))
)


def in_collection(connection: Connection, collection: Collection) -> str | None:
    """Whose turn it is in a collection that two databases share and no plan takes forward."""
    if collection.role == "whole" or collection.agreement.wave is not None:
        return None
    row = connection.execute(_IN_COLLECTION, {"key": collection.key}).one()
    first, second = (one.name for one in collection.agreement.databases)
    if collection.role == "second":
        return first if row.state == "closed" and row.refusal is None else None
    return second if row.moments is not None and not row.delivered else None


def in_plan(connection: Connection, fingerprint: str, databases: Sequence[Database]) -> str | None:
    """Whose turn it is in a plan between two databases, if not this one's."""
    query = tables.of_waves(fingerprint, _c.state, _c.moments, _sharing.role, _sharing.delivered)
    waves = connection.execute(query.join(tables.sharing, _sharing.collection == _c.key)).all()
    state, learned, told = connection.execute(
        sa.select(_plans.state, _plans.learned, _joint.told)
        .join(tables.joint_plans, _joint.plan == _plans.fingerprint)
        .where(_plans.fingerprint == fingerprint)
    ).one()
    if waves[0].role == "second":
        between = waves[-1].state == "closed" and waves[-1].moments is None
        return databases[0].name if not learned and (state == "ended" or between) else None
    behind = any(one.moments is not None and not one.delivered for one in waves)
    return databases[1].name if behind or (learned and told != state) else None
