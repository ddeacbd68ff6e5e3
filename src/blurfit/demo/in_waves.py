"""`blurfit demo --waves`: generated people are asked in waves by a real service on this machine.

The first wave sends blurred products, as in any collection; the later ones help with what it
taught, and the last gives the logistic model itself instead of a parabola. Everybody sends one
message, in the wave that a coin has put them into. Nothing here is real data.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from blurfit.agreement.plan import Plan
from blurfit.agreement.terms import Terms
from blurfit.arrays import FloatArray
from blurfit.contributor.blur import perturb_table
from blurfit.contributor.client import Client
from blurfit.contributor.noise import new_groups
from blurfit.demo.stage import CONTRIBUTORS, DELTA, EPSILON, bar, people_of, running_service
from blurfit.model.model import PublishedModel
from blurfit.optional import optional
from blurfit.schema.schema import Schema
from blurfit.schema.vectors import values
from blurfit.simulation import Census

BATCH = 1000


def main(out: Path, contributors: int = CONTRIBUTORS, console: Console | None = None) -> None:
    """Plan, ask one wave after the other, and compare with one wave and with no privacy."""
    console = console or Console()
    inside, outside = people_of(contributors)
    schema = inside.label_schema
    terms = Terms(epsilon=EPSILON, delta=DELTA, quorum=contributors, admission="anyone")
    plan = Plan.propose(schema, waves="auto", terms=terms)
    waves = ", ".join(f"{one:,}" for one in plan.quorums)
    console.print(
        f"[bold]{contributors:,} people of a {inside.name}[/bold] say whether they earn much. Each "
        f"is asked once, in {len(plan)} waves of at least {waves}, and everything that is ever "
        f"published is ({EPSILON:g}, {DELTA:g})-differentially private.\n"
    )
    in_waves = collect(console, plan, inside)
    one = collect(console, Plan.propose(schema, waves=1, terms=terms), inside)
    console.print(str(in_waves.summary()), markup=False, highlight=False, soft_wrap=True)
    show(console, inside, outside, {"in waves": in_waves, "in one wave": one})
    out.mkdir(parents=True, exist_ok=True)
    plan.save(out / "plan.json")
    in_waves.save(out / "waves-model.json")
    console.print(f"Wrote {out / 'plan.json'} and {out / 'waves-model.json'}.")


def show(
    console: Console, inside: Census, outside: Census, models: dict[str, PublishedModel]
) -> None:
    """How models do for people who took no part, beside no privacy and no model."""
    schema = inside.label_schema
    truth = np.asarray(values(schema, outside.table)[:, -1] > 0)
    told = {
        "no privacy": without_privacy(schema, inside, outside),
        **{name: model.predict_proba(outside.table)[:, -1] for name, model in models.items()},
        "always the same": np.full(len(truth), truth.mean()),
    }
    console.print(compared(told, truth), "")


def collect(console: Console, plan: Plan, people: Census) -> PublishedModel:
    """Open the plan at a service, and send until everyone has; the model is then published."""
    with (
        running_service("this machine") as service,
        service.administer() as database,
        Client(service.url) as client,
        bar(console) as progress,
    ):
        database.open(plan)
        task = progress.add_task("", total=len(people))
        for number, table in parts(plan, people):
            wave = client.current(plan)  # checked to follow, before anything is blurred
            progress.update(task, description=f"wave {number} of {len(plan)}")
            progress.advance(task, client.submit(perturb_table(wave, table)))
        return database.publish(plan)


def without_privacy(schema: Schema, inside: Census, outside: Census) -> FloatArray:
    """The probabilities of a logistic regression that sees all records."""
    fitted = optional("sklearn.linear_model").LogisticRegression(C=np.inf, max_iter=1000)
    v = values(schema, inside.table)
    fitted.fit(v[:, :-1], v[:, -1] > 0)
    found: FloatArray = fitted.predict_proba(values(schema, outside.table)[:, :-1])[:, 1]
    return found


def compared(told: dict[str, FloatArray], truth: np.ndarray) -> Table:
    """How often several models are right, and how good their probabilities are."""
    table = Table("model", "right", "log loss", title="People who took no part")
    for name, probability in told.items():
        p = np.clip(probability, 1e-9, 1 - 1e-9)
        right = float(np.mean((p > 0.5) == truth))
        loss = float(-np.mean(np.where(truth, np.log(p), np.log1p(-p))))
        table.add_row(name, f"{right:.2%}", f"{loss:.4f}")
    return table


def parts(plan: Plan, people: Census) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    """Batches of people, wave by wave, as their own coins have fallen: its number, their table."""
    groups = new_groups(plan.lot, len(people))
    for number in range(1, len(plan) + 1):
        members = np.flatnonzero(groups == number)
        for rows in np.array_split(members, -(-len(members) // BATCH)):
            yield number, {name: column[rows] for name, column in people.table.items()}
