"""`blurfit demo`: generated people agree, blur, send and get a model. Nothing here is real data."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.terms import Mechanism
from blurfit.arrays import FloatArray
from blurfit.contributor.blur import perturb_table
from blurfit.demo.stage import CONTRIBUTORS, DELTA, EPSILON, bar, people_of
from blurfit.model.model import PublishedModel
from blurfit.model.statement import as_markdown
from blurfit.optional import optional
from blurfit.schema.columns import Numeric
from blurfit.schema.vectors import Units, units, values
from blurfit.simulation import Census
from blurfit.store.store import Store

QUORUM, BATCH = 40_000, 2_500
MECHANISMS: dict[Mechanism, dict[str, Any]] = {"moment": {}, "input": {"weight_bound": 3.0}}


def main(out: Path, contributors: int = CONTRIBUTORS, console: Console | None = None) -> None:
    """Play all three parties, and show what each of them sees."""
    console = console or Console()
    people, outside = people_of(contributors)
    console.print(
        f"[bold]{contributors:,} people of a {people.name}[/bold] answer "
        f"{len(people.schema.features)} questions. The model of their income shall be "
        f"({EPSILON:g}, {DELTA:g})-differentially private, and nobody hands over a record.\n"
    )
    quorum = min(QUORUM, contributors)
    models = {name: _collect(console, name, people, quorum) for name in MECHANISMS}
    weights = {"no privacy": without_privacy(people)}
    weights |= {name: model.weights[0] for name, model in models.items()}
    console.print(coefficients(people, weights), "")
    console.print(errors(outside, weights), "")
    show(console, models["moment"])
    console.print(Markdown(as_markdown(models["moment"])), "")
    example = {name: values[0] for name, values in outside.table.items()}
    predicted = models["moment"].predict(example)
    console.print(f"The model's user predicts for one more person: an income of {predicted:,.0f}.")
    picture = out / "demo.png"
    _plot(people, weights, models["moment"], picture)
    models["moment"].save(out / "model.json")
    console.print(f"Wrote {picture} and {out / 'model.json'}.")


def _collect(console: Console, mechanism: Mechanism, people: Census, quorum: int) -> PublishedModel:
    """Agree; blur and send in batches, as devices would one by one; learn and publish."""
    agreement = Agreement.propose(
        people.schema,
        epsilon=EPSILON,
        delta=DELTA,
        quorum=quorum,
        mechanism=mechanism,
        **MECHANISMS[mechanism],
    )
    with Store() as store:
        with bar(console) as progress:
            task = progress.add_task(f"{mechanism}: blur and send", total=len(people))
            for start in range(0, len(people), BATCH):
                batch = people.take(min(BATCH, len(people) - start), start=start)
                store.add(agreement, perturb_table(agreement, batch.table))
                progress.advance(task, len(batch))
        return store.publish(agreement)


def without_privacy(people: Census) -> FloatArray:
    """The weights of (1, v) by least squares on the records themselves."""
    v = values(people.schema, people.table)
    found = np.linalg.lstsq(np.column_stack([np.ones(len(v)), v[:, :-1]]), v[:, -1], rcond=None)[0]
    return np.asarray(found)


def show(console: Console, model: PublishedModel) -> None:
    """The model's summary as it is, in lines of its own."""
    console.print(str(model.summary()), markup=False, highlight=False, soft_wrap=True)
    console.print("")


def coefficients(people: Census, weights: dict[str, FloatArray]) -> Table:
    """Several models side by side, in the units of the target."""
    table = Table(title="What each answer adds to the income", title_justify="left")
    table.add_column("coefficient")
    for name in weights:
        table.add_column(name, justify="right")
    told = _units(people)
    found = np.array([told.apply(w) for w in weights.values()])
    for name, row in zip(told.names, found.T, strict=True):
        table.add_row(name, *(f"{value:,.0f}" for value in row))
    return table


def errors(people: Census, weights: dict[str, FloatArray]) -> Table:
    """How far several models are off on average, and against no privacy."""
    v = values(people.schema, people.table)
    x, y = v[:, :-1], v[:, -1]
    found = {
        name: float(np.sqrt(np.mean((w[0] + x @ w[1:] - y) ** 2))) for name, w in weights.items()
    }
    found["always the mean"] = float(y.std())
    table = Table("model", "error", "over no privacy", title="Error on people who took no part")
    for name, error in found.items():
        told = error / _units(people).scale
        table.add_row(name, f"{told:,.0f}", f"{error / found['no privacy']:.3f}")
    return table


def _units(people: Census) -> Units:
    schema = people.schema
    return units(schema, schema.target.name, [feature.name for feature in schema.features])


def _plot(
    people: Census, weights: dict[str, FloatArray], model: PublishedModel, path: Path
) -> None:
    """Coefficients side by side, in thousands over each answer's whole range, with their errors."""
    optional("matplotlib").use("Agg")
    plt = optional("matplotlib.pyplot")

    told = _units(people)
    widths = {one.name: one.width for one in people.schema.features if isinstance(one, Numeric)}
    scale = np.array([widths.get(name, 1.0) for name in told.names[1:]]) / 1000
    figure, axis = plt.subplots(figsize=(9, 6))
    for index, (label, w) in enumerate(weights.items()):
        places = np.arange(len(scale)) + 0.25 * (index - 1)
        reach = None
        if label == "moment" and model.inference:
            reach = scale * [1.96 * one.standard_error for one in model.estimates()[1:]]
        axis.barh(places, scale * told.apply(w)[1:], height=0.24, label=label, xerr=reach)
    axis.set_yticks(range(len(scale)), told.names[1:])
    axis.invert_yaxis()
    axis.set_xlabel("effect of the answer's whole range on income, thousands (95 % intervals)")
    axis.set_title(f"{people.name}, {model.count:,} people, ε = {EPSILON:g}, δ = {DELTA:g}")
    axis.legend()
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
