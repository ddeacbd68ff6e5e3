"""`blurfit demo --waves --two-databases`: generated people are asked in waves, and share what they
send between two databases on this machine, which go from wave to wave together. Nothing here is
real data.
"""

import tempfile
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.agreement.terms import Terms
from blurfit.contributor.share import share
from blurfit.contributor.shared_plan import SharedPlanClient
from blurfit.datasets import Census, make_census
from blurfit.demo import in_waves
from blurfit.demo.one_database import CONTRIBUTORS, DELTA, EPSILON, HELD_OUT
from blurfit.demo.two_databases import NAMES, Running, open_at_both, running_service
from blurfit.errors import NotCertifiedError
from blurfit.model.published import PublishedModel
from blurfit.protocol import tokens


def main(out: Path, contributors: int = CONTRIBUTORS, console: Console | None = None) -> None:
    """Plan, ask one wave after the other at both, and compare with one database."""
    console = console or Console()
    people = make_census(contributors + HELD_OUT, seed=2026)
    inside, outside = people.head(contributors), people.take(HELD_OUT, start=contributors)
    schema = people.label_schema
    promise = {"epsilon": EPSILON, "delta": DELTA, "quorum": contributors, "admission": "anyone"}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        secret = tokens.new_token()
        first, second = (
            running.enter_context(running_service(Path(folder), name, secret)) for name in NAMES
        )
        # Everyone is played here, so nobody is invited; in earnest, keep the default.
        terms = Terms.of(databases=[(one.name, one.url) for one in (first, second)], **promise)
        plan = Plan.propose(schema, waves="auto", terms=terms)
        waves = ", ".join(f"{one:,}" for one in plan.quorums)
        console.print(
            f"[bold]{contributors:,} people of a {people.name}[/bold] say whether they earn much. "
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
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with SharedPlanClient(plan) as client, Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(people))
        for number, start, stop in in_waves.parts(plan):
            wave = _wave(client, number)
            progress.update(task, description=f"wave {number} of {len(plan)}")
            batch = people.take(stop - start, start=start)
            client.submit(share(wave, batch.table))
            progress.advance(task, stop - start)
    with first.administer() as here, second.administer() as there:
        model = here.publish(plan)
        if there.model(plan).to_json() != model.to_json():
            raise NotCertifiedError("Expected the same model from both databases.")
    return model


def _wave(client: SharedPlanClient, number: int) -> Agreement:
    """The wave of a number, once both databases have it open: checked to follow."""
    while (wave := client.current()).wave is None or wave.wave.number < number:
        client.wait()
    return wave
