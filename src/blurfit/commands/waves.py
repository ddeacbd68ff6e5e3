"""Waves on the command line: a plan, the next wave's agreement, and a check that it follows."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blurfit.commands.common import EXISTING_FILE, answer, as_json, next_step, options, out_file
from blurfit.errors import InvalidValueError

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.agreement.plan import Plan
    from blurfit.model.course import Course


def course_options(plan_help: str) -> Callable[[Any], Any]:
    """A plan, and the releases of its waves so far."""
    return options(
        click.option("--plan", "plan_file", type=EXISTING_FILE, help=plan_help),
        click.option(
            "--release",
            "releases",
            type=EXISTING_FILE,
            multiple=True,
            help="With --plan: the published moments of each earlier wave, in order.",
        ),
    )


def read_course(
    agreement: "Agreement", plan_file: Path | None, releases: tuple[Path, ...]
) -> "Course | None":
    """The plan's waves so far, after checking that the agreement is the next one; None without a
    plan.

    Raises:
        NotCertifiedError: the agreement does not follow from the plan and the releases.
    """
    if plan_file is None:
        if releases:
            raise InvalidValueError(
                "Expected --plan PLAN with --release: the rule for the next wave is in the plan."
            )
        return None
    from blurfit.agreement.plan import Plan

    course = _course(Plan.load(plan_file), releases)
    agreement.verify()
    course.require(agreement)
    return course


def plan_facts(plan: "Plan") -> dict[str, Any]:
    """A plan's facts for scripts."""
    return {
        "plan_fingerprint": plan.fingerprint,
        "waves": [
            {"kind": kind, "quorum": quorum, "honest": honest}
            for kind, quorum, honest in zip(plan.kinds, plan.quorums, plan.honest, strict=True)
        ],
        "colluders": plan.terms.colluders,
    }


def plan_in_words(plan: "Plan") -> str:
    """How many waves there are, how many people each waits for, and how many may collude."""
    from blurfit.agreement.conditions import LOT_IN_WORDS, margin_in_words

    margin = margin_in_words(list(zip(plan.quorums, plan.honest, strict=True)))
    if len(plan) == 1:
        alone = " Without --waves contributors would prove that what they send is short."
        return (
            f"One wave of {plan.quorums[0]:,} people: more would not help."
            f"{alone if plan.databases else ''} {margin}"
        )
    listed = ", ".join(
        f"{quorum:,} ({kind})" for kind, quorum in zip(plan.kinds, plan.quorums, strict=True)
    )
    return (
        f"{len(plan)} waves, which wait for {listed} people. Each person takes part in one of "
        f"them. {LOT_IN_WORDS[plan.terms.admission]} {margin}"
    )


def after_wave(course: "Course", plan: Path | None, releases: tuple[Path, ...]) -> str:
    """What to do when a wave has been released."""
    number = len(course.releases) + 1
    if number > len(course.plan):
        return "`blurfit predict` and `blurfit statement`; the plan has no further wave."
    given = " ".join(map(str, releases))
    return f"`blurfit next {plan} {given} --out agreement{number}.json`, for wave {number}."


@click.command("next", epilog="Example: blurfit next plan.json release1.json --out agreement2.json")
@click.argument("plan", type=EXISTING_FILE)
@click.argument("releases", type=EXISTING_FILE, nargs=-1)
@out_file("Where the agreement is written.", default=Path("agreement.json"), show_default=True)
@as_json
def next_wave(plan: Path, releases: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Write the agreement of a PLAN's next wave, which follows from the RELEASES so far.

    Give the published moments of all earlier waves, in order; none for the first wave. Whoever
    collects runs this and hands the file on; all others check it (`blurfit contribute --plan`).
    """
    from blurfit.agreement.plan import Plan
    from blurfit.commands.facts import agreement_facts

    agreed = Plan.load(plan)
    agreement = _course(agreed, releases).next_agreement()
    agreement.save(out)
    number = len(releases) + 1
    answer(
        {"agreement": str(out), "wave": number, **agreement_facts(agreement)},
        f"Wrote {out}, wave {number} of {len(agreed)}, for {agreement.quorum:,} people; "
        f"fingerprint {agreement.fingerprint}.",
        as_json=as_json,
    )
    shown = "".join(f" --release {one}" for one in releases)
    next_step(f"`blurfit contribute {out} TABLE --out FILE --plan {plan}{shown}`.", quiet=as_json)


def _course(plan: "Plan", releases: tuple[Path, ...]) -> "Course":
    from blurfit.model.course import Course
    from blurfit.model.moments import PublishedMoments

    return Course.of(plan, [PublishedMoments.load(path) for path in releases])
