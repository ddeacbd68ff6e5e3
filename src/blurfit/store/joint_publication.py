"""Two databases publish one model: what each of them does, and in which order.

::

    first                                            second
    ─────                                            ──────
                                                     is closed by its administrator
    asks whose shares it has                  ─────► says so, once it is closed
    fixes C = those whom both have (at least the
    quorum, and 9 of 10 here), writes it down
    sends C                                   ─────► all of C here, at least the quorum and half
                                                     of those here, and never another C:
                                              ◄───── writes it down, then gives Σ mask over C
    Σ shares over C − Σ mask = Σ v, learns,
    writes moments and model down, publishes
    sends both                                ─────► checks them against C, writes them down,
                                                     publishes the same bytes

Every step may be repeated: it finds what was written down and gives the same answer. Killed between
two steps, either database goes on where it was; killed within one, the step never happened, since
it is one transaction. Two results cannot come out, because the set is written down before the sum
over it is given away, the model before anyone sees it, and neither is ever written a second time.

**What the first learns** is Σ mask over one set of at least n, which with its shares gives Σv over
that set: the blurred sums that are published anyway. **What the second learns** is the same sums,
and which of the people it holds the first does not. (`blurfit.contributor.blur` has the proof.)

**Noise of their own** (`database_noise`): each draws D when it fixes the set, writes it down in the
same transaction, and adds it to its sum. So the first gets Σ mask + D₂ and never Σv without D₂, and
what is published has D₁ as well: the promise holds against either database as long as the other is
honest, even if it *invents* contributors (`blurfit.theory.moments`).

**A side that lies.** Another set than the one that was fixed is refused for ever, by either. What
protects the members of a set is that n of them are honest people. A database that *invents*
contributors knows their noise, so with n − 1 of them and one victim in the set the sums would be
the victim's submission. Two things stand against it: invitations, which each side gives out itself
and asks for, and the limit to how many of those whom it holds either side lets the other leave out
(`blurfit.store.commitment` derives it). Neither helps against a side that is believed to have as
many real people as it likes to make up: **against a database that invents contributors the promise
holds only as far as the other side's invitations keep them out.** A wrong sum spoils the model, as
a lie of one database would: it gives nothing away, since the sums of shares and of masks over C are
all that anyone ever gets.
"""

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.arrays import ByteArray, WordArray
from blurfit.errors import ConflictError, InfeasibleError, InvalidValueError
from blurfit.model.moments import WITHOUT_PUBLIC_ROWS
from blurfit.model.release import Release
from blurfit.store import (
    closing,
    commitment,
    identifier_sets,
    publication,
    shared_sums,
    verdicts,
)
from blurfit.store.collections import Collection
from blurfit.store.commitment import Commitment
from blurfit.store.roles import require_role
from blurfit.store.tables import collections, sharing


class Result(NamedTuple):
    """What a first database has come to, and whether the second has it too."""

    release: Release
    delivered: bool


# ---- the first database


def result(connection: Connection, collection: Collection) -> Result | None:
    """What was found, if anything was."""
    require_role(collection, "first")
    c = collections.c
    query = sa.select(c.model, c.moments, c.refusal, sharing.c.delivered)
    row = connection.execute(
        query.join(sharing, sharing.c.collection == c.key).where(c.key == collection.key)
    ).one()
    if row.model is None and row.refusal is None:
        return None
    return Result(Release(row.model, row.moments, row.refusal), row.delivered)


def fix(
    connection: Connection, collection: Collection, theirs: ByteArray, *, planned: bool = False
) -> tuple[Commitment, ByteArray]:
    """Close the collection and fix the common set; the set, and whom the second must leave out.

    Below the quorum an error is raised, nothing is fixed, and the collection goes on. `planned`
    says that the plan of a wave does this, which alone may.
    """
    require_role(collection, "first")
    if not planned:
        publication.refuse_if_planned(connection, collection)
    publication.held(connection, collection)
    theirs = identifier_sets.in_order(theirs)
    here = identifier_sets.identifiers_of(connection, collection)
    chosen = commitment.recorded(connection, collection)
    if chosen is None:
        publication.shut(connection, collection)
        both = here[identifier_sets.among(here, theirs)]
        if collection.agreement.proofs:
            proved = identifier_sets.in_order(verdicts.found(connection, collection, valid=True))
            both = both[identifier_sets.among(both, proved)]
        chosen = commitment.record(connection, collection, identifier_sets.minus(here, both), here)
    common = here[chosen.has(here)]
    if not identifier_sets.among(common, theirs).all():
        raise ConflictError(
            f"Expected the other database to hold all of the {chosen.count} contributors that were "
            "fixed, and it has fewer now: it lost some, or it is another one. Restore it."
        )
    return chosen, identifier_sets.minus(theirs, common)


def deliver(connection: Connection, collection: Collection) -> None:
    """Write down that the second database has the result."""
    here = sharing.c.collection == collection.key
    connection.execute(sa.update(sharing).where(here).values(delivered=True))


def release_of(collection: Collection, count: int, words: WordArray) -> Release:
    """What comes of Σv mod 2⁶⁴ over the set that was fixed: a model, or none for ever."""
    try:
        totals = shared_sums.totals_of(collection, count, words)
    except InfeasibleError as error:
        return Release(refusal=str(error))
    return Release.of(collection.agreement, totals)


# ---- the second database


def require_consent(connection: Connection, collection: Collection) -> None:
    """Refuse what a second database does only once its administrator has closed the collection."""
    require_role(collection, "second")
    _require_closed(connection, collection)


def shown_identifiers(
    connection: Connection, collection: Collection, after: bytes, most: int
) -> bytes:
    """The identifiers here, a part at a time, once the administrator has closed the collection."""
    require_consent(connection, collection)
    return identifier_sets.page(connection, collection, after, most)


def accept(
    connection: Connection,
    collection: Collection,
    digest: bytes,
    count: int,
    left_out: ByteArray,
    here: ByteArray | None = None,
) -> Commitment:
    """Fix the set that the first database has fixed, if it is one that may be summed over.

    `here` is who was read to be here since the collection was closed, if anybody did.
    """
    require_role(collection, "second")
    publication.held(connection, collection)
    _require_closed(connection, collection)
    before = commitment.recorded(connection, collection)
    if before is not None and before.digest == digest:
        return before
    chosen = commitment.record(connection, collection, left_out, here)
    if (chosen.digest, chosen.count) != (digest, count):
        raise InvalidValueError(
            f"Expected the set {digest.hex()} of {count} to be {chosen.digest.hex()} of "
            f"{chosen.count}, which is what is left here: it names somebody whose share is not "
            "here, or was damaged on its way."
        )
    return chosen


def take_result(
    connection: Connection, collection: Collection, model: str | None, moments: str
) -> None:
    """Write down the result and publish it; another one than before is a conflict, for ever."""
    require_role(collection, "second")
    publication.refuse_if_planned(connection, collection)
    before = publication.held(connection, collection)
    if before.moments is not None:
        if (before.model, before.moments) != (model, moments):
            raise ConflictError(
                "Expected the model that was published before: there is one for each collection."
            )
        return
    refusal = WITHOUT_PUBLIC_ROWS if model is None else None
    publication.record(connection, collection, Release(model, moments, refusal))


def check_result(
    collection: Collection, chosen: Commitment | None, model: str | None, moments: str
) -> None:
    """Refuse a result that is not the model of these moments over the set that was fixed.

    That the sums are right cannot be seen from here; that the model follows from them can.
    """
    if chosen is None:
        raise InfeasibleError(
            "Expected a set to be fixed before there is a result: begin by asking whose shares are "
            "here."
        )
    if not Release(model, moments).follows(collection.agreement, chosen.count):
        raise InvalidValueError(
            f"Expected the model of these sums, from the {chosen.count} contributors that were "
            "fixed: this one is of others, or does not follow. Let both databases use releases of "
            "blurfit that learn alike."
        )


def consent(connection: Connection, collection: Collection) -> str | None:
    """Close a second database's collection; its model, if the first has sent it already, or its
    sums where those have none of their own.
    """
    require_role(collection, "second")
    publication.close(connection, collection)
    c = collections.c
    query = sa.select(sa.func.coalesce(c.model, c.moments)).where(c.key == collection.key)
    found: str | None = connection.scalar(query)
    return found


def _require_closed(connection: Connection, collection: Collection) -> None:
    """Closed by its administrator, and not because the store was restored from a backup.

    The original may have answered for a set since: a second one would give away whom they differ
    in (`blurfit.store.backup`).
    """
    c = collections.c
    query = sa.select(closing.STATE, c.refusal).where(c.key == collection.key)
    state, refusal = connection.execute(query).one()
    if refusal is not None:
        raise InfeasibleError(refusal)
    if state in ("collecting", "paused"):
        raise InfeasibleError(
            f"Expected {collection.agreement.databases[1].name} to have closed the collection too: "
            "the administrators of both databases must agree. Ask the one there to run "
            "`blurfit close`."
        )
