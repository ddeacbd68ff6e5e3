"""Learn from the files of a plan: one wave's submissions after the other's.

    wave 1's files ─► release 1 ─► wave 2's agreement is checked ─► wave 2's files ─► release 2 ─► …

Each wave is released once, as any collection of files is (`blurfit.files.learn`): a receipt beside
its files holds the release, so to run the same again gives the same, and other files are refused.
A wave's agreement is the announced one, which its files carry; it is checked to follow from the
plan and the releases before (`blurfit.model.course`).
"""

from collections.abc import Iterable, Sequence
from typing import Any

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.files.engines import Engine
from blurfit.files.learn import release_files
from blurfit.model.course import Course, learn_plan
from blurfit.model.model import PublishedModel
from blurfit.model.moments import PublishedMoments


def release_plan(
    plan: Plan,
    collected: Sequence[tuple[Agreement, Iterable[str]]],
    engine: Engine,
    **options: Any,
) -> tuple[PublishedMoments, ...]:
    """The release of each wave, in their order.

    Args:
        plan: what everyone agreed on.
        collected: for each wave so far its announced agreement, and paths, folders, patterns or
            URLs of its files.
        engine: who does the work.
        options: those of `blurfit.files.learn.release_files`.

    Nothing of a wave is released if its agreement does not follow, or below its quorum; what was
    released of the waves before stays.
    """
    if not collected:
        raise InvalidValueError("Expected the agreement and the files of the first wave at least.")
    course = Course.of(plan, ())
    for agreement, words in collected:
        agreement.verify()
        course.require(agreement)
        found = release_files(agreement, words, engine, **options)
        if found.moments is None:
            raise InfeasibleError(found.refusal or "This wave has no sums.")
        course = course.then(PublishedMoments.from_json(found.moments))
    return course.releases


def learn_plan_files(
    plan: Plan,
    collected: Sequence[tuple[Agreement, Iterable[str]]],
    engine: Engine,
    **options: Any,
) -> PublishedModel:
    """The model of the waves so far; arguments as for `release_plan`."""
    return learn_plan(plan, release_plan(plan, collected, engine, **options))
