"""From wave to wave: each step in one transaction, and the model when the plan is at its end.

    wave k collects ─► quorum reached ─ advance ─► its sums are published, wave k + 1 collects
                                           └─────► or the plan has ended ─ learn_model ─► a model

`advance` adds up the open wave, publishes its sums, computes the next agreement from the plan and
the published releases, and opens it: all of it or nothing. So, killed anywhere, either wave k
collects, or wave k + 1 does, and never both or neither; and nobody has ever seen a release whose
wave still takes submissions. Whoever advances holds the plan's row, and then the wave's: groups of
arrivals wait, and so does a second one who advances, who then finds the new wave below its quorum.
Below the quorum nothing happens.

The model of a plan is a function of published releases, so it is learned outside any
transaction, and written down once, with the last wave that it is from. Killed in between, the plan
has ended and its model is learned at the next start.

**No release, no loop.** If a wave's sums allow no further wave, or no model, the plan ends there
and says so. What was released stays, and the model is the best that there is.
"""

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.errors import BelowQuorumError, BlurfitError
from blurfit.learning.sums import Totals
from blurfit.model.course import Course, learn_plan
from blurfit.model.model import PublishedModel
from blurfit.model.moments import PublishedMoments
from blurfit.model.release import Release
from blurfit.randomness.database import blurred
from blurfit.store import blocks, closing, collections, plan_rows, plans, publication
from blurfit.store.collections import Collection
from blurfit.store.transactions import Transactions

_WRONG = (BlurfitError, ArithmeticError, ValueError)  # what sums can be: too large, singular, …


def advance(connection: Connection, fingerprint: str, *, end: bool = False) -> Agreement | None:
    """Publish the open wave and open the next one; None if there is none, or the plan is held.

    For plans of one database; two go on together (`blurfit.store.joint_plans`). `end` ends the plan
    now, held or not: with the open wave if that has its quorum, else without. So does the plan's
    date, when it has come, unless the plan is held (`blurfit.store.closing`).

    Raises BelowQuorumError, and changes nothing, while too few have come: to the open wave, or, to
    end the plan, to the first.
    """
    held = plan_rows.hold_row(connection, fingerprint)
    if held.state == "ended" or (held.state == "held" and not end):
        return None
    now = newest_wave(connection, fingerprint)
    publication.require_whole(now)
    past = closing.of_plan(connection, fingerprint).past
    try:
        release = _release(connection, now)
    except BelowQuorumError:
        if not past and not (end and plans.release_texts(connection, fingerprint)):
            raise
        release = dropped(now)
    return go_on(connection, held.plan, now, release, end=end)


def newest_wave(connection: Connection, fingerprint: str) -> Collection:
    """The newest wave of a plan."""
    newest = plan_rows.agreements(connection, fingerprint)[-1]
    return collections.find(connection, newest.fingerprint)


def dropped(wave: Collection) -> Release:
    """What becomes of a wave that was open when its plan ended, below its quorum."""
    number = 1 if wave.agreement.wave is None else wave.agreement.wave.number
    return Release(refusal=f"The plan ended before wave {number} had its quorum.")


def go_on(
    connection: Connection, plan: Plan, now: Collection, release: Release, *, end: bool = False
) -> Agreement | None:
    """Write down what the open wave has come to, and open the next one, or end the plan.

    The caller holds the plan's row, and the wave's.
    """
    closes, past = closing.of_plan(connection, plan.fingerprint)
    published = plans.releases(connection, plan.fingerprint)
    publication.record(connection, now, release)
    if release.moments is not None:
        published.append(PublishedMoments.from_json(release.moments))
    following, reason = None, None
    if len(published) < len(plan):
        if past:
            reason = f"Its date came after {len(published)} of its {len(plan)} waves."
        elif end:
            reason = f"Its administrator ended it after wave {len(published)} of {len(plan)}."
        elif release.moments is None:
            reason = release.refusal
        else:
            following, reason = following_of(plan, published)
    if following is not None:
        plan_rows.open_wave(connection, following, now.role, closes)
    else:
        plan_rows.end(connection, plan.fingerprint, reason)
    return following


def learn_model(store: Transactions, fingerprint: str) -> str | None:
    """Learn the model of a plan that has ended, and write it down, once; None where there is none.

    The newest waves may say nothing that a model can be learned from: then it is from those before.
    """
    if dict(store.read(plan_rows.unfinished)).get(fingerprint) != "ended":
        return store.read(plans.model_text, fingerprint)
    plan = Plan.from_json(store.read(plans.document, fingerprint))
    found, refusal = best_model(plan, store.read(plans.releases, fingerprint))
    return store.write(_write_down, fingerprint, found, refusal)


def due(connection: Connection) -> list[str]:
    """The plans of one database for which there is something to do: a full wave, a date that has
    come, or a model to be learned.
    """
    return [
        fingerprint
        for fingerprint, state in plan_rows.unfinished(connection)
        if plans.role_in(connection, fingerprint) == "whole"
        and (state == "ended" or (state == "collecting" and _is_due(connection, fingerprint)))
    ]


def _is_due(connection: Connection, fingerprint: str) -> bool:
    return missing(connection, fingerprint) <= 0 or closing.of_plan(connection, fingerprint).past


def missing(connection: Connection, fingerprint: str) -> int:
    """How many the newest wave waits for; none or fewer if its quorum is reached."""
    plan = Plan.from_json(plans.document(connection, fingerprint))
    count, number = plans.newest(connection, fingerprint)
    return plan.quorums[number - 1] - count


def _release(connection: Connection, wave: Collection) -> Release:
    """What the wave comes to, of which nothing is written down yet."""
    publication.held(connection, wave)
    totals = blocks.totals(connection, wave)  # damaged blocks are an error, and not the plan's end
    return sums_of(wave, blurred(wave.agreement, totals))


def sums_of(wave: Collection, totals: Totals) -> Release:
    """A wave's sums, to be published without a model; or why there will be none."""
    try:
        return Release.of(wave.agreement, totals, sums_alone=True)
    except BelowQuorumError:
        raise
    except _WRONG as error:
        return Release(refusal=f"The sums of this wave cannot be published: {error}")


def following_of(
    plan: Plan, published: Sequence[PublishedMoments]
) -> tuple[Agreement | None, str | None]:
    """The next agreement, or why there is none."""
    try:
        found = Course.of(plan, published).next_agreement()
        found.verify()
    except _WRONG as error:
        return None, f"No wave follows wave {len(published)} of {len(plan)}: {error}"
    return found, None


def best_model(
    plan: Plan, published: Sequence[PublishedMoments]
) -> tuple[PublishedModel | None, str | None]:
    """The model of as many waves as allow one, or why there is none."""
    refusal = "no wave was released."
    for waves in range(len(published), 0, -1):
        try:
            return learn_plan(plan, published[:waves]), None
        except _WRONG as error:
            refusal = str(error)
    return None, refusal


def _write_down(
    connection: Connection, fingerprint: str, model: PublishedModel | None, refusal: str | None
) -> str | None:
    """Keep what was learned, unless the plan goes on, or somebody else was quicker."""
    held = plan_rows.hold_row(connection, fingerprint)
    if held.state != "ended" or held.learned:
        return plans.model_text(connection, fingerprint)
    plan_rows.learned(connection, fingerprint, model)
    if model is None:
        reason = " ".join(filter(None, (held.reason, f"There is no model: {refusal}")))
        plan_rows.end(connection, fingerprint, reason)
    return None if model is None else model.to_json()
