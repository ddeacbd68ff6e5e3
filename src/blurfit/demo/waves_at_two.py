"""`blurfit demo --waves --two-databases`: generated people are asked in waves, and share what they
send between two databases on this machine, which go from wave to wave together. Nothing here is
real data.
"""

from pathlib import Path

from rich.console import Console

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.agreement.terms import Terms
from blurfit.contributor.blur import share
from blurfit.contributor.client import PAUSE, Client
from blurfit.demo import in_waves
from blurfit.demo.stage import CONTRIBUTORS, DELTA, EPSILON, Running, bar, people_of
from blurfit.demo.two_databases import both_running, open_at_both, published_by_both
from blurfit.model.model import PublishedModel
from blurfit.simulation import Census


def main(out: Path, contributors: int = CONTRIBUTORS, console: Console | None = None) -> None:
    """Plan, ask one wave after the other at both, and compare with one database."""
    console = console or Console()
    inside, outside = people_of(contributors)
    schema = inside.label_schema
    promise = {"epsilon": EPSILON, "delta": DELTA, "quorum": contributors, "admission": "anyone"}
    with both_running() as (first, second):
        # Everyone is played here, so nobody is invited; in earnest, keep the default.
        terms = Terms.of(databases=[(one.name, one.url) for one in (first, second)], **promise)
        plan = Plan.propose(schema, waves="auto", terms=terms)
        waves = ", ".join(f"{one:,}" for one in plan.quorums)
        console.print(
            f"[bold]{contributors:,} people of a {inside.name}[/bold] say whether they earn much. "
            f"Each is asked once, in {len(plan)} waves of at least {waves}, and shares what she "
            f"sends between {first.name} ({first.url}) and {second.name} ({second.url}).\n"
        )
        model = _collect(console, plan, inside, first, second)
    console.print(
        f"Both databases have published the same sums of each wave, and the same model, from "
        f"{model.count:,} people. Neither has seen a record.\n"
    )
    alone = in_waves.collect(
        console, Plan.propose(schema, waves="auto", terms=Terms.of(**promise)), inside
    )
    models = {"waves, two databases": model, "waves, one database": alone}
    in_waves.show(console, inside, outside, models)
    out.mkdir(parents=True, exist_ok=True)
    plan.save(out / "plan.json")
    model.save(out / "waves-model.json")
    console.print(f"Wrote {out / 'plan.json'} and {out / 'waves-model.json'}.")


def _collect(
    console: Console, plan: Plan, people: Census, first: Running, second: Running
) -> PublishedModel:
    """Open the plan at both, and send until everyone has; the model that both have published."""
    open_at_both(plan, first, second)
    with Client.of(plan) as client, bar(console) as progress:
        task = progress.add_task("", total=len(people))
        for number, table in in_waves.parts(plan, people):
            progress.update(task, description=f"wave {number} of {len(plan)}")
            sent = share(_wave(client, plan, number), table)
            client.submit(sent)
            progress.advance(task, len(sent))
    return published_by_both(plan, first, second)


def _wave(client: Client, plan: Plan, number: int) -> Agreement:
    """The wave of a number, once both databases have it open: checked to follow."""
    while (wave := client.current(plan)).wave is None or wave.wave.number < number:
        client.pause(PAUSE)
    return wave
