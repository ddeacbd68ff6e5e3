r"""A plan of waves between two databases: what each of them does from wave to wave.

::

    first, which leads                               second
    ──────────────────                               ──────
    wave k has its quorum here
    asks whose shares it has                  ─────► says so, unless the plan is held there
    enough are at both? else it waits
    asks it to close wave k                   ─────► closes it: from now on no seed is taken
    asks again, fixes C, closes wave k, and
    writes C down
    sends C                                   ─────► writes it down, then gives Σ mask over C
    Σ shares over C − Σ mask = Σ v
    publishes Σ v and opens wave k + 1,
    or ends the plan
    sends Σ v, and which wave follows         ─────► the same one follows here? publishes the same
                                                     Σ v and opens it
    tells if it is held, resumed or ended     ─────► is so too, with the same model at the end

Every arrow is one transaction at whoever writes something down, and may be repeated: it finds what
was written, and gives the same answer. Both hold the plan's row first and the wave's second.

**One wave, one set, one sum.** For each wave this is `blurfit.store.joint_publication`, whose
argument holds word for word: a set's digest is written down before anything that depends on the set
is given away, and never a second one, by either side (`blurfit.store.commitment`); the digest is
over the wave's fingerprint, so a set of one wave is none of another. Σv is a function of the set,
and is written down by the first in the transaction that opens the next wave, and never again; the
second takes no other text for that wave. So a wave has one release, and by the theorem of
`blurfit.theory.waves` everything that is ever published keeps (ε, δ) for a person of one wave,
against readers and, as far as the masks hide, against either database: what it sees of wave j can
be made up from Σv of wave j (`blurfit.contributor.share`), for every j, one after the other.

**Killed anywhere** the plan is in one of these states, and the first goes on from each:

| at the first, wave k | at the second, wave k | then |
| --- | --- | --- |
| collects | collects | it begins |
| collects | closed | asking again changes nothing; it goes on to fix C |
| C is fixed | closed, or C is fixed | C is sent again; the second gives the same sum for it |
| released, k + 1 collects | C is fixed | the release is sent again |
| released, k + 1 collects | released, k + 1 collects | nothing is missing |

Nobody has blurred for wave k + 1 before it is open at both: a contributor asks both, and they must
name the same agreement (`blurfit.contributor.shared_plan`). A wave is closed at the second *first*:
whoever comes late is refused where her seed goes, which says nothing of her record, and her share
never leaves her. That enough are at both is seen before anything is closed, and shares and seeds
are never lost, so a wave that is closed has its quorum.

**Nobody needs to trust the other about the map.** Each side computes the next agreement itself, and
the second refuses a wave that does not follow (`blurfit.model.course`). A first that lies about its
sums makes a useless map; the noise of wave k + 1 suffices for any map whatever.

**Consent.** The second's administrator consents to all waves by opening the plan, and takes that
back for as long as she holds it. A store that was restored from a backup has ended its plans
(`blurfit.store.backup`), so that neither side sums a wave a second time.
"""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blurfit.agreement.plan import Plan
from blurfit.arrays import ByteArray, WordArray
from blurfit.errors import (
    BelowQuorumError,
    ClosedError,
    ConflictError,
    InfeasibleError,
    InvalidValueError,
)
from blurfit.model.moments import PublishedMoments
from blurfit.model.published import PublishedModel
from blurfit.model.release import WITHOUT_A_MODEL, Release, alike
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
from blurfit.store.advance import best_model, dropped, following_of, go_on, open_wave, sums_of
from blurfit.store.collections import Collection, find, state
from blurfit.store.commitment import Commitment
from blurfit.store.plan_rows import State
from blurfit.store.roles import require_role

_joint, _sharing, _waves, _c = (
    table.c for table in (tables.joint_plans, tables.sharing, tables.waves, tables.collections)
)


class Delivery(NamedTuple):
    """A release that the second database may not have, and which wave follows it, if any does."""

    wave: Collection
    moments: str
    following: str | None


class News(NamedTuple):
    """How the leading database's plan stands; when it has ended, why, and with which model."""

    state: State
    reason: str | None = None
    model: str | None = None


# ---- the first database


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
    wave = open_wave(connection, fingerprint)
    is_closed = state(connection, wave) != "collecting"
    is_full = blocks.count(connection, wave) >= wave.agreement.quorum
    return wave if is_closed or is_full else None


def is_past(connection: Connection, fingerprint: str) -> bool:
    """Whether the plan's date has come, and it goes on: one that is held waits with its end."""
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
    held = plan_rows.hold_row(connection, _plan_of(wave))
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
    held = plan_rows.hold_row(connection, _plan_of(wave))
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
    wave = open_wave(connection, fingerprint)
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
    query = (
        sa.select(_c.fingerprint, _c.moments, _sharing.delivered)
        .join(tables.waves, _waves.collection == _c.key)
        .join(tables.sharing, _sharing.collection == _c.key)
        .where(_waves.plan == fingerprint)
        .order_by(_waves.number)
    )
    rows = connection.execute(query).all()
    found = []
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        if row.moments is None or row.delivered:
            continue
        goes_on = after is not None and (held.state != "ended" or after.moments is not None)
        following = after.fingerprint if after is not None and goes_on else None
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


def tell(connection: Connection, fingerprint: str, state: State) -> None:
    """Write down what the second database knows of the first's plan."""
    here = _joint.plan == fingerprint
    connection.execute(sa.update(tables.joint_plans).where(here).values(told=state))


# ---- the second database


def shown_identifiers(
    connection: Connection, collection: Collection, after: bytes, most: int
) -> bytes:
    """The identifiers here, a part at a time: of a wave, as long as its plan goes on here; else
    once the administrator has closed the collection.
    """
    if not publication.is_planned(connection, collection):
        return joint_publication.shown_identifiers(connection, collection, after, most)
    require_role(collection, "second")
    held = plan_rows.hold_row(connection, _plan_of(collection), update=False)
    _require_consent(held, collection)
    return identifier_sets.page(connection, collection, after, most)


def close(connection: Connection, wave: Collection) -> None:
    """Close a wave that has its quorum here, for the first database, which has found it at both."""
    _require_consent(_require_wave(connection, wave), wave)
    publication.held(connection, wave)
    count = blocks.count(connection, wave)
    if count < wave.agreement.quorum:
        raise BelowQuorumError(
            f"Expected at least the quorum {wave.agreement.quorum} of shares here before the wave "
            f"is closed, and there are {count}."
        )
    publication.shut(connection, wave)


def accept(
    connection: Connection,
    collection: Collection,
    digest: bytes,
    count: int,
    left_out: ByteArray,
    here: ByteArray | None = None,
) -> Commitment:
    """Fix the set that the first database has fixed; of a wave, as long as its plan goes on."""
    if publication.is_planned(connection, collection):
        _require_consent(_require_wave(connection, collection), collection)
    return joint_publication.accept(connection, collection, digest, count, left_out, here)


def take_release(
    connection: Connection, wave: Collection, moments: str, following: str | None
) -> None:
    """Publish what the first database has published, and open the wave that follows it, if any.

    Refused are other sums than before, sums of others than the set that was fixed, and a wave that
    does not follow from the plan and the releases.
    """
    held = _require_wave(connection, wave)
    plan, row = held.plan, publication.held(connection, wave)
    if row.moments is not None:
        if row.moments != moments:
            raise ConflictError("Expected the sums that were published before: a wave has one.")
        return
    if held.state == "ended":
        raise ClosedError(held.reason or "The plan has come to its end here.")
    chosen = commitment.recorded(connection, wave)
    shown = PublishedMoments.from_json(moments)
    if chosen is None or (shown.fingerprint, shown.count) != (wave.fingerprint, chosen.count):
        raise InvalidValueError(
            "Expected the sums of the set that was fixed here, and these are of others, or none "
            "was fixed: begin by asking whose shares are here."
        )
    if shown.to_json() != moments:
        raise InvalidValueError("Expected the text of moments as blurfit writes it.")
    published = [*plans.releases(connection, plan.fingerprint), shown]
    closes = closing.of_plan(connection, plan.fingerprint).closes
    publication.record(connection, wave, Release(moments=moments, refusal=WITHOUT_A_MODEL))
    if following is None:  # the last one, or the first database has ended the plan
        plan_rows.end(connection, plan.fingerprint, None)
        return
    found, reason = following_of(plan, published)
    if found is None or found.fingerprint != following:
        raise ConflictError(
            f"Expected wave {len(published) + 1} to have the fingerprint "
            f"{found.fingerprint if found else None}, and the first database announces "
            f"{following}. {reason or 'Let both use the same release of blurfit.'}"
        )
    plan_rows.open_wave(connection, found, "second", closes)


def check_model(plan: Plan, releases: Sequence[PublishedMoments], model: str | None) -> None:
    """Refuse a model that does not follow from the releases, but for the rounding of machines."""
    found, _ = best_model(plan, releases)
    if (found is None) != (model is None) or (
        found is not None
        and model is not None
        and not alike(PublishedModel.from_json(model).to_dict(), found.to_dict())
    ):
        raise InvalidValueError(
            "Expected the model that follows from the plan's releases, and this one does not. Let "
            "both databases use the same release of blurfit."
        )


def take_news(connection: Connection, fingerprint: str, told: News) -> None:
    """Be held, go on, or end as the first database does; whoever holds it here holds it still.

    A model was checked (`check_model`).
    """
    held = plan_rows.hold_row(connection, fingerprint)
    if plans.role_in(connection, fingerprint) != "second":
        raise InfeasibleError("Expected the second of a plan's two databases: this one is not.")
    if held.learned:
        if told.state != "ended" or told.model != plans.model_text(connection, fingerprint):
            raise ConflictError("Expected the plan to have ended, with the model that is here.")
        return
    if told.state == "ended":
        wave = open_wave(connection, fingerprint)
        row = publication.held(connection, wave)
        if row.moments is None and row.refusal is None:
            publication.record(connection, wave, dropped(wave))
        plan_rows.end(connection, fingerprint, told.reason)
        found = None if told.model is None else PublishedModel.from_json(told.model)
        plan_rows.learned(connection, fingerprint, found)
    elif held.state == "ended":
        raise ClosedError(held.reason or "The plan has come to its end here.")
    tell(connection, fingerprint, told.state)


def _plan_of(wave: Collection) -> str:
    if wave.agreement.wave is None:
        raise InfeasibleError("Expected a wave of a plan, and this collection is none.")
    return wave.agreement.wave.plan


def _require_wave(connection: Connection, wave: Collection) -> plan_rows.Held:
    """The plan of a wave here, held until the transaction ends."""
    require_role(wave, "second")
    held = plan_rows.hold_row(connection, _plan_of(wave))
    if not publication.is_planned(connection, wave):
        raise InfeasibleError("Expected a wave of a plan that was opened here.")
    return held


def _require_consent(held: plan_rows.Held, wave: Collection) -> None:
    """Refuse while this side's administrator holds the plan, and when it has ended here."""
    if held.state == "ended":
        raise ClosedError(held.reason or "The plan has come to its end here.")
    if held.state == "held":
        name = wave.agreement.databases[1].name
        raise InfeasibleError(f"{name} holds the plan: no wave is released until it is resumed.")
