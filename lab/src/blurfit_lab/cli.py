"""The command `blurfit-lab`: the paper's figures and ours, from a population to a page."""

import json
import os
import time
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

import blurfit
from blurfit.cli import Commands
from blurfit.cli._common import as_json, watched, wrote


class ExperimentName(click.ParamType):  # type: ignore[type-arg]
    """The name of an experiment; which there are is read when one is asked for."""

    name = "experiment"

    def _choice(self) -> "click.Choice[str]":
        from blurfit_lab.experiments.page import EXPERIMENTS

        return click.Choice(list(EXPERIMENTS))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name itself, if there is such an experiment."""
        return self._choice().convert(value, param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The names that begin so."""
        return self._choice().shell_complete(ctx, param, incomplete)


@click.command(epilog="Example: blurfit-lab reproduce noise --trials 1 --rows 5000 --out build/try")
@click.argument("names", nargs=-1, type=ExperimentName())
@click.option("--trials", default=100, show_default=True, help="Trials of each experiment.")
@click.option(
    "--workers", default=2, show_default=True, help="Processes; results do not depend on it."
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="The ACS file or its folder, Adult's file, or an IPUMS extract; default: BLURFIT_DATA, "
    "else a generated population.",
)
@click.option("--rows", type=int, help="Size of the generated population; default: 2,162,688.")
@click.option("--seed", default=0, show_default=True, help="Seed of everything random.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build/figures"),
    show_default=True,
    help="Where CSV files and pictures go.",
)
@click.option("--plot-only", is_flag=True, help="Only redraw, from existing CSV files.")
@click.option(
    "--page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write Markdown pages about all CSV files in --out, with their pictures.",
)
@click.option(
    "--beside",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    multiple=True,
    help="With --page: the --out of a run on another population, to report as well.",
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
    beside: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Run the paper's experiments and ours: config → CSV → plot.

    NAMES are fig1a, fig1b, fig2a, fig2b (the paper's), risk, noise, target, rivals, utility and
    reliability; all of them if none is given. rivals2026 is a head-to-head with the best methods of
    2026, with a page of its own. An interrupted run continues where it stopped.
    """
    from blurfit_lab.experiments.cohort import Cohort
    from blurfit_lab.experiments.page import EXPERIMENTS, ONE_PAGE, PAPER, write_page
    from blurfit_lab.experiments.plots import NAME, draw, write_rivals_page
    from blurfit_lab.experiments.runner import Provenance, read_csv, run

    chosen = names or ONE_PAGE
    facts = Provenance.read(out)
    if not plot_only:
        population = Cohort.load(data, rows=rows, seed=seed)
        known = facts if facts.population == population.name else Provenance()
        facts = Provenance(
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
            with watched(name) as watch:
                run(
                    EXPERIMENTS[name],
                    population,
                    trials=trials,
                    workers=workers,
                    out=out,
                    progress=watch,
                )
            facts = facts.took(name, time.perf_counter() - begin, _computing() - used)
            facts.write(out)
    for name in chosen:
        draw(name, read_csv(out / f"{name}.csv"), out / f"{name}.png", f"{name} · {facts.title}")
    click.echo(f"Wrote {', '.join(chosen)}, as .csv and .png, into {out}.", err=True)
    if not plot_only and set(PAPER) <= set(chosen):
        spent = sum(facts.seconds[name] for name in PAPER)
        computing = sum(facts.computing[name] for name in PAPER)
        click.echo(
            f"The paper's four figures took {spent:.0f} seconds, and {computing:.0f} seconds of "
            "computing time.",
            err=True,
        )
    if page is not None:
        if chosen == (NAME,):
            write_rivals_page(page, out, facts)
        else:
            write_page(page, out, facts, beside)
        wrote(page)
    if as_json:
        files = {name: str(out / f"{name}.csv") for name in chosen}
        click.echo(json.dumps({"csv": files, "seconds": dict(facts.seconds)}, indent=2))


def _numbers(text: str) -> list[int]:
    """Read "512,8192", powers as "2^13", and a range of seeds as "0:20".

    >>> _numbers("2^9,1000"), _numbers("3:6")
    ([512, 1000], [3, 4, 5])
    """
    if ":" in text:
        first, last = text.split(":")
        return list(range(int(first), int(last)))
    return [
        int(base) ** int(power) if power else int(base)
        for base, _, power in (word.partition("^") for word in text.split(","))
    ]


_TASKS = {"numbers": "number", "labels": "label", "counts": "count"}


def _cells_options(command: Any) -> Any:
    """The options that `everywhere` and `coverage` share."""
    for option in reversed(
        [
            click.argument("task", type=click.Choice(list(_TASKS))),
            click.option("--population", "names", multiple=True, help="Names; default: all."),
            click.option("--aside", is_flag=True, help="Those kept aside: nobody tunes on them."),
            click.option("--d", "columns", default="14", show_default=True, help="As 3,14,40."),
            click.option("--epsilon", "epsilons", default="1", show_default=True),
            click.option("--method", "methods", multiple=True, help="Default: ours and the mean."),
            click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True),
            click.option("--table-only", is_flag=True, help="Only tell what --out holds."),
        ]
    ):
        command = option(command)
    return command


def _cells(
    task: Any, names: tuple[str, ...], aside: bool, columns: str, sizes: str, epsilons: str
) -> list[Any]:
    from blurfit_lab.experiments.everywhere import Cell
    from blurfit_lab.experiments.populations import ASIDE, CHOICES, REAL

    made = ASIDE[task] if aside else CHOICES[task]
    return [
        Cell(name, d, n, float(epsilon))
        for name in names or made
        for d in ([REAL[task][name]] if name in REAL[task] else _numbers(columns))
        for n in _numbers(sizes)
        for epsilon in epsilons.split(",")
    ]


@click.command(epilog="Example: blurfit-lab everywhere numbers --n 2^13 --out build/numbers.jsonl")
@_cells_options
@click.option("--n", "sizes", default="2^9,2^11,2^13,2^15", show_default=True)
@click.option("--seeds", default="0:20", show_default=True, help="From the first to before last.")
@click.option(
    "--against",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The --out of another version, whose losses are divided by.",
)
def everywhere(
    task: str,
    names: tuple[str, ...],
    aside: bool,
    columns: str,
    epsilons: str,
    methods: tuple[str, ...],
    out: Path,
    table_only: bool,
    sizes: str,
    seeds: str,
    against: Path | None,
) -> None:
    """Measure public defaults on many populations: excess loss, verdicts, geometric means.

    What --out holds already is not computed again.
    """
    from blurfit_lab.experiments.everywhere import CELL, METHODS, frame, report, run

    kind: Any = _TASKS[task]
    cells = _cells(kind, names, aside, columns, sizes, epsilons)
    if not table_only:
        with watched(task) as watch:
            run(kind, cells, _numbers(seeds), methods or METHODS, out, watch)
    asked = {tuple(cell) for cell in cells}
    lines = frame([out])
    lines = lines[[key in asked for key in lines[CELL].itertuples(index=False, name=None)]]
    click.echo(report(lines, kind, None if against is None else frame([against])))


@click.command(epilog="Example: blurfit-lab coverage numbers --d 12 --out build/coverage.jsonl")
@_cells_options
@click.option("--n", "sizes", default="2^15", show_default=True)
@click.option("--draws", default=200, show_default=True)
def coverage(
    task: str,
    names: tuple[str, ...],
    aside: bool,
    columns: str,
    epsilons: str,
    methods: tuple[str, ...],
    out: Path,
    table_only: bool,
    sizes: str,
    draws: int,
) -> None:
    """Measure how often 95 % intervals of public defaults hold the population's own model."""
    from blurfit_lab.experiments.coverage import GOAL, METHODS, run, table
    from blurfit_lab.experiments.everywhere import frame, markdown

    kind: Any = _TASKS[task]
    chosen = names if names or aside else GOAL[kind]
    cells = _cells(kind, chosen, aside, columns, sizes, epsilons)
    if not table_only:
        with watched(task) as watch:
            run(kind, cells, draws, methods or METHODS[kind], out, watch)
    click.echo(markdown(table(frame([out])), 3))


@click.group(
    cls=Commands,
    commands=[reproduce, everywhere, coverage],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(blurfit.__version__, prog_name="blurfit-lab")
def main() -> None:
    """Compare blurfit with its rivals, and run the paper's experiments again."""


def _computing() -> float:
    """Seconds that this process and its workers have computed."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
