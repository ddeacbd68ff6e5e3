"""What the second of a plan's two databases, which follows, does and writes down in each wave.

The steps, their order, and why they are safe are in `blurfit.store.joint_plans`. It answers the
first, never asks it, and does nothing while its administrator holds the plan.
"""

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.arrays import ByteArray
from blurfit.errors import BelowQuorumError, ConflictError, InfeasibleError, InvalidValueError
from blurfit.model.course import follows
from blurfit.model.model import PublishedModel
from blurfit.model.moments import PublishedMoments
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
)
from blurfit.store.advance import best_model, dropped, newest_wave
from blurfit.store.collections import Collection
from blurfit.store.commitment import Commitment
from blurfit.store.joint_plans import News, plan_of, tell
from blurfit.store.roles import require_role


def shown_identifiers(
    connection: Connection, collection: Collection, after: bytes, most: int
) -> bytes:
    """The identifiers here, a part at a time: of a wave, as long as its plan goes on here; else
    once the administrator has closed the collection.
    """
    if not publication.is_planned(connection, collection):
        return joint_publication.shown_identifiers(connection, collection, after, most)
    require_role(collection, "second")
    held = plan_rows.hold_row(connection, plan_of(collection), update=False)
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
    does not follow from the plan and the releases (`blurfit.model.course.follows`). `following` is
    the next wave's agreement, as the first database has announced it.
    """
    held = _require_wave(connection, wave)
    plan, row = held.plan, publication.held(connection, wave)
    if row.moments is not None:
        if row.moments != moments:
            raise ConflictError("Expected the sums that were published before: a wave has one.")
        return
    held.refuse_if_ended()
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
    announced = Agreement.from_json(following)
    follows(plan, published, announced)
    plan_rows.open_wave(connection, announced, "second", closes)


def check_model(plan: Plan, releases: Sequence[PublishedMoments], model: str | None) -> None:
    """Refuse a model that does not follow from the releases, but for the rounding of machines."""
    found, _ = best_model(plan, releases)
    if (found is None) != (model is None) or (
        found is not None
        and model is not None
        and not alike(PublishedModel.from_json(model), found)
    ):
        raise InvalidValueError(
            "Expected the model that follows from the plan's releases, and this one does not. Let "
            "both databases use releases of blurfit that learn alike."
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
        wave = newest_wave(connection, fingerprint)
        row = publication.held(connection, wave)
        if row.moments is None and row.refusal is None:
            publication.record(connection, wave, dropped(wave))
        plan_rows.end(connection, fingerprint, told.reason)
        found = None if told.model is None else PublishedModel.from_json(told.model)
        plan_rows.learned(connection, fingerprint, found, told.model)
    else:
        held.refuse_if_ended()
    tell(connection, fingerprint, told.state)


def _require_wave(connection: Connection, wave: Collection) -> plan_rows.Held:
    """The plan of a wave here, held until the transaction ends."""
    require_role(wave, "second")
    held = plan_rows.hold_row(connection, plan_of(wave))
    if not publication.is_planned(connection, wave):
        raise InfeasibleError("Expected a wave of a plan that was opened here.")
    return held


def _require_consent(held: plan_rows.Held, wave: Collection) -> None:
    """Refuse while this side's administrator holds the plan, and when it has ended here."""
    held.refuse_if_ended()
    if held.state == "held":
        name = wave.agreement.databases[1].name
        raise InfeasibleError(f"{name} holds the plan: no wave is released until it is resumed.")
