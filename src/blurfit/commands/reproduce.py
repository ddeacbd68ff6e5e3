"""`blurfit reproduce`: the paper's figures and ours, from a population to a page."""

import json
import os
import time
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from blurfit.commands.common import as_json
from blurfit.experiments.catalogue import EXPERIMENTS, PAPER
from blurfit.experiments.cohort import Population
from blurfit.experiments.facts import Facts
from blurfit.experiments.page import write_page
from blurfit.experiments.plots import draw
from blurfit.experiments.runner import run
from blurfit.experiments.trials import read_csv

CONSOLE = Console(stderr=True)


@click.command(epilog="Example: blurfit reproduce noise --trials 1 --rows 5000 --out build/example")
@click.argument("names", nargs=-1, type=click.Choice(list(EXPERIMENTS)))
@click.option("--trials", default=100, show_default=True, help="Trials of each experiment.")
@click.option("--workers", default=2, show_default=True, help="Processes; they change only time.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="The ACS file or its folder, or an IPUMS extract; default: BLURFIT_DATA, else a generated "
    "population.",
)
@click.option("--rows", type=int, help="Of the generated population; default: 2,162,688.")
@click.option("--seed", default=0, show_default=True, help="Of everything that is random.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build/figures"),
    show_default=True,
    help="Where CSV and pictures go.",
)
@click.option("--plot-only", is_flag=True, help="Draw again from the CSV that are there.")
@click.option(
    "--page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a Markdown page of all CSV in --out, and its pictures beside it.",
)
@as_json
def reproduce(
    names: tuple[str, ...],
    trials: int,
    workers: int,
    data: Path | None,
    rows: int | None,
    seed: int,
    out: Path,
    plot_only: bool,
    page: Path | None,
    as_json: bool,
) -> None:
    """Run the paper's experiments and ours: config → CSV → plot.

    NAMES are fig1a, fig1b, fig2a, fig2b (the paper's), risk, noise, target, rivals and utility; all
    of them if none is given. A run that was stopped goes on where it was.
    """
    chosen = names or tuple(EXPERIMENTS)
    facts = Facts.read(out)
    if not plot_only:
        population = Population.load(data, rows=rows, seed=seed)
        known = facts if facts.population == population.name else Facts()
        facts = Facts(
            population.name,
            population.synthetic,
            len(population),
            trials,
            workers,
            known.seconds,
            known.computing,
        )
        for name in chosen:
            begin, used = time.perf_counter(), _computing()
            _run(name, population, trials, workers, out)
            facts = facts.took(name, time.perf_counter() - begin, _computing() - used)
            facts.write(out)
    for name in chosen:
        draw(name, read_csv(out / f"{name}.csv"), out / f"{name}.png", f"{name} · {facts.title}")
    CONSOLE.print(f"Wrote {', '.join(chosen)}, as .csv and .png, into {out}.")
    if not plot_only and set(PAPER) <= set(chosen):
        spent = sum(facts.seconds[name] for name in PAPER)
        computing = sum(facts.computing[name] for name in PAPER)
        CONSOLE.print(
            f"The paper's four figures took {spent:.0f} seconds, of {computing:.0f} seconds of "
            "computing time."
        )
    if page is not None:
        write_page(page, out, facts)
        CONSOLE.print(f"Wrote {page}.")
    if as_json:
        files = {name: str(out / f"{name}.csv") for name in chosen}
        click.echo(json.dumps({"csv": files, "seconds": dict(facts.seconds)}, indent=2))


def _run(name: str, population: Population, trials: int, workers: int, out: Path) -> None:
    with Progress(console=CONSOLE, transient=True) as bar:
        task = bar.add_task(name, total=None)
        run(
            EXPERIMENTS[name],
            population,
            trials=trials,
            workers=workers,
            out=out,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )


def _computing() -> float:
    """Seconds that this process and its workers have computed."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
