"""One model from each collection: closed, learned and stored in one transaction.

    collecting ─► closed ─► published          and never back

A model from a collection that goes on growing would give away whoever came in between, so nothing
is learned before it is closed, and nothing is accepted afterwards. Whoever publishes holds the
collection's row from the first look to the end: groups of arrivals wait, and so does a second
publisher, who then finds the first one's model. Killed in the middle, the transaction never
happened.

If the sums allow no model (for `input` an event that the guarantee excludes), the collection is
closed for good: to try again with a few more would be a second look at the same people.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.errors import BelowQuorumError, BlurfitError, InfeasibleError, NotPublishedError
from blurfit.learning.learner import learn
from blurfit.store import blocks
from blurfit.store.blocks import Collection
from blurfit.store.tables import collections

HANDED_OVER = (
    "This collection was exported, and its model is learned from files (`blurfit learn`). A second "
    "one from here would undo the noise of that one."
)


def publish(connection: Connection, collection: Collection) -> str | InfeasibleError:
    """The model's text, now or from before; or why there will never be one.

    Below the quorum an error is raised, and the collection goes on. Shares are not for this: their
    sums mean nothing without the other database (`blurfit.store.joint_publication`).
    """
    if collection.role != "whole":
        raise InfeasibleError(
            "Expected a collection of whole submissions: this one holds shares, and is published "
            "together with the agreement's other database, through the service."
        )
    here = collections.c.key == collection.key
    row = connection.execute(
        sa.select(collections.c.model, collections.c.refusal).where(here).with_for_update()
    ).one()
    if row.model is not None:
        return str(row.model)
    if row.refusal is not None:
        return InfeasibleError(row.refusal)
    sums = blocks.statistics(connection, collection)
    outcome: str | InfeasibleError
    values: dict[str, Any]
    try:
        outcome = learn(collection.agreement, sums).to_json()
        values = {"state": "published", "model": outcome}
        if collection.agreement.mechanism == "moment":
            values["statistics"] = sums.to_json()
    except BelowQuorumError:
        raise
    except BlurfitError as error:
        outcome = InfeasibleError(str(error))
        values = {"state": "closed", "refusal": str(error)}
    connection.execute(sa.update(collections).where(here).values(values))
    return outcome


def stop(connection: Connection, collection: Collection) -> None:
    """Close a collection, if it is not: nothing more is accepted, and nothing is published yet."""
    c = collections.c
    connection.execute(
        sa.update(collections)
        .where((c.key == collection.key) & (c.state == "collecting"))
        .values(state="closed")
    )


def hand_over(connection: Connection, collection: Collection) -> str | None:
    """The model, if there is one; else leave it to files, and publish none from here.

    The latter for `input` alone: further models of blurred sums are free. Refused while more may
    come, and where a model was tried and could not be, which is for good.
    """
    here = collections.c.key == collection.key
    row = connection.execute(
        sa.select(collections.c.state, collections.c.model, collections.c.refusal)
        .where(here)
        .with_for_update()
    ).one()
    if row.state == "collecting":
        raise NotPublishedError(
            f"Expected a collection that is closed, and {collection.agreement.fingerprint} is "
            "still collecting. Close it first (`blurfit close`); that cannot be undone."
        )
    if row.model is not None or collection.agreement.mechanism == "moment":
        return row.model if row.model is None else str(row.model)
    if row.refusal not in (None, HANDED_OVER):
        raise InfeasibleError(row.refusal)
    connection.execute(sa.update(collections).where(here).values(refusal=HANDED_OVER))
    return None


def model(connection: Connection, collection: Collection) -> str:
    """The published model, always the same text."""
    return _published(connection, collection, collections.c.model)


def statistics(connection: Connection, collection: Collection) -> str:
    """The blurred sums that were published with a `moment` model; further models are free."""
    if collection.agreement.mechanism != "moment":
        raise NotPublishedError(
            "The sums of an 'input' collection are never shown: a second model from them would "
            "undo the noise of the first. Use mechanism='moment' where they are needed."
        )
    return _published(connection, collection, collections.c.statistics)


def _published(connection: Connection, collection: Collection, column: sa.Column[Any]) -> str:
    text = connection.scalar(sa.select(column).where(collections.c.key == collection.key))
    if text is None:
        raise NotPublishedError(
            "The model of this collection has not been published. Its administrator does that, "
            f"once, when at least {collection.agreement.quorum:,} have contributed."
        )
    return str(text)
