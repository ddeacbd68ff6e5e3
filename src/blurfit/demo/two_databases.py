"""`blurfit demo --two-databases`: generated people share blurred records between two databases
on this machine, which publish one model together. Nothing here is real data.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markdown import Markdown

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.arrays import ByteArray, FloatArray
from blurfit.contributor.blur import perturb_table, share
from blurfit.contributor.client import Client
from blurfit.demo.one_database import BATCH, QUORUM, coefficients, errors, show, without_privacy
from blurfit.demo.stage import (
    CONTRIBUTORS,
    DELTA,
    EPSILON,
    Running,
    bar,
    people_of,
    running_service,
)
from blurfit.errors import NotCertifiedError
from blurfit.messages.shares import Role
from blurfit.model.model import PublishedModel
from blurfit.model.statement import as_markdown
from blurfit.optional import optional
from blurfit.protocol import tokens
from blurfit.simulation import Census
from blurfit.store import blocks
from blurfit.store.store import Store

NAMES = "Statistics Office", "University"


def main(out: Path, contributors: int = CONTRIBUTORS, console: Console | None = None) -> None:
    """Play contributors, two databases and a model's user, and show what each of them sees."""
    console = console or Console()
    people, outside = people_of(contributors)
    quorum = min(QUORUM, contributors)
    promise: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA, "quorum": quorum}
    with both_running() as (first, second):
        # Everyone is played here, so nobody is invited, and nobody lies: their proofs would take
        # minutes to make on one machine. In earnest, keep the defaults.
        shared = Agreement.propose(
            people.schema,
            databases=[(one.name, one.url) for one in (first, second)],
            admission="anyone",
            proofs=False,
            **promise,
        )
        console.print(
            f"[bold]{contributors:,} people of a {people.name}[/bold] share their blurred answers "
            f"between {first.name} ({first.url}) and {second.name} ({second.url}).\n"
        )
        identifiers = _collect(console, shared, people, first, second)
        model = _publish(shared, first, second)
        console.print(f"Both databases serve the same model, from {model.count:,} people.\n")
        masked, seeds = (_seen(database, shared, identifiers) for database in (first, second))
    whole = Agreement.propose(people.schema, **promise)
    blurred = perturb_table(whole, people.table)
    with Store() as store:
        store.add(whole, blurred)
        one = store.publish(whole)
    weights = {"no privacy": without_privacy(people)}
    weights |= {"one database": one.weights[0], "two databases": model.weights[0]}
    console.print(coefficients(people, weights), "")
    console.print(errors(outside, weights), "")
    show(console, model)
    console.print(Markdown(as_markdown(model)), "")
    out.mkdir(parents=True, exist_ok=True)
    _plot(people, blurred.numbers[:, -1], masked, seeds, out / "two-databases.png")
    model.save(out / "two-databases-model.json")
    console.print(f"Wrote {out / 'two-databases.png'} and {out / 'two-databases-model.json'}.")


@contextmanager
def both_running() -> Iterator[tuple[Running, Running]]:
    """Two services that share a secret."""
    secret = tokens.new_token()
    with running_service(NAMES[0], secret) as first, running_service(NAMES[1], secret) as second:
        yield first, second


def open_at_both(agreed: Agreement | Plan, first: Running, second: Running) -> None:
    """Each administrator opens it, in the role that it names her database for."""
    roles: tuple[tuple[Running, Role], ...] = ((first, "first"), (second, "second"))
    for database, role in roles:
        with database.administer() as remote:
            remote.open(agreed, role=role)


def _collect(
    console: Console, agreement: Agreement, people: Census, first: Running, second: Running
) -> ByteArray:
    """Open both, blur, share and send in batches; the identifiers, in the order of the people."""
    open_at_both(agreement, first, second)
    identifiers = []
    with Client.of(agreement) as client, bar(console) as progress:
        task = progress.add_task("blur, share and send", total=len(people))
        for start in range(0, len(people), BATCH):
            batch = people.take(min(BATCH, len(people) - start), start=start)
            shared = share(agreement, batch.table)
            client.submit(shared)
            identifiers.append(shared.first.identifiers)
            progress.advance(task, len(batch))
    return np.concatenate(identifiers)


def _publish(agreement: Agreement, first: Running, second: Running) -> PublishedModel:
    """The administrators of both agree: one closes, the other publishes."""
    with second.administer() as there:
        there.close_collection(agreement)
    return published_by_both(agreement, first, second)


def published_by_both(agreed: Agreement | Plan, first: Running, second: Running) -> PublishedModel:
    """The model that the first publishes, and the second has too."""
    with second.administer() as there, first.administer() as here:
        model = here.publish(agreed)
        if there.model(agreed).to_json() != model.to_json():
            raise NotCertifiedError("Expected the same model from both databases.")
    return model


def _seen(database: Running, agreement: Agreement, identifiers: ByteArray) -> FloatArray:
    """The last number that a database has of each person, as a share of 2⁶⁴."""
    found: dict[bytes, int] = {}
    store, collection = database.store, database.store.collection(agreement.fingerprint)
    for rows, words in store.read(lambda connection: list(blocks.rows(connection, collection))):
        found |= dict(zip(rows.view("S16").ravel().tolist(), words[:, -1].tolist(), strict=True))
    return np.array([found[one] for one in identifiers.view("S16").ravel().tolist()]) / 2.0**64


def _plot(
    people: Census, blurred: FloatArray, masked: FloatArray, seeds: FloatArray, path: Path
) -> None:
    """One of the numbers that people send, of the poorer and of the richer half: as one database
    has it, and as each of two has it.
    """
    optional("matplotlib").use("Agg")
    plt = optional("matplotlib.pyplot")

    income = np.asarray(people.table[people.schema.target.name], dtype=np.float64)
    rich = income > np.median(income)
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.8))
    panels = (
        ("one database: a blurred number", blurred),
        (f"{NAMES[0]}: share / 2⁶⁴", masked),
        (f"{NAMES[1]}: seed / 2⁶⁴", seeds),
    )
    for axis, (title, values) in zip(axes, panels, strict=True):
        bins = np.linspace(values.min(), values.max(), 41)
        for label, who in (("lower half of incomes", ~rich), ("upper half", rich)):
            axis.hist(values[who], bins=bins, density=True, alpha=0.55, label=label)
        axis.set_title(title)
        axis.set_yticks([])
    axes[0].legend()
    figure.suptitle("What a database holds of the same people, by income (synthetic)")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
