"""The command `blurfit-lab`: one command for each experiment, from people to a page."""

import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

import blurfit
from blurfit.cli import Commands
from blurfit.cli._common import as_json, watched, wrote

Decorator = Callable[[Any], Any]
_FILE = click.Path(path_type=Path, dir_okay=False)
_KNOWN_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
_FOLDER = click.Path(path_type=Path, file_okay=False)
_FIGURES = ("fig1a", "fig1b", "fig2a", "fig2b", "risk", "noise", "target")
_option = partial(click.option, show_default=True)


def options(*decorators: Decorator) -> Decorator:
    """Combine several decorators into one."""

    def apply(command: Any) -> Any:
        for decorate in reversed(decorators):
            command = decorate(command)
        return command

    return apply


def _numbers(text: str) -> list[int]:
    """Read "512,8192", powers as "2^13", and a range of seeds as "0:20".

    >>> _numbers("2^9,1000"), _numbers("3:6")
    ([512, 1000], [3, 4, 5])
    """
    if ":" in text:
        return list(range(*map(int, text.split(":"))))
    words = (word.partition("^") for word in text.split(","))
    return [int(base) ** int(power or 1) for base, _, power in words]


def _listed(flag: str, name: str, default: str, help_text: str | None = None) -> Decorator:
    """An option for numbers: whole ones as `_numbers` reads them, and each ε as it is."""

    def read(_context: object, _option: object, text: str) -> list[Any]:
        return [float(one) for one in text.split(",")] if flag == "--epsilon" else _numbers(text)

    return _option(flag, name, default=default, help=help_text, callback=read)


@click.command(epilog="Example: blurfit-lab reproduce noise --trials 1 --rows 5000 --out build/try")
@click.argument("names", nargs=-1, type=click.Choice(_FIGURES))
@_option("--trials", default=100, help="Trials of each experiment.")
@_option("--workers", default=2, help="Processes; results do not depend on it.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="The ACS file or its folder, or an IPUMS extract; default: BLURFIT_DATA, else a generated "
    "population.",
)
@click.option("--rows", type=int, help="Size of the generated population; default: 2,162,688.")
@_option("--seed", default=0, help="Seed of everything random.")
@_option("--out", type=_FOLDER, default="build/figures", help="Where CSV files and pictures go.")
@click.option(
    "--table",
    "tables",
    multiple=True,
    type=_KNOWN_FILE,
    help="A table of your own (.csv, .xlsx, .parquet): compare methods on it instead of figures.",
)
@click.option(
    "--schema",
    "schemas",
    multiple=True,
    type=_KNOWN_FILE,
    help="Its schema (.toml), with public bounds; once for each --table, or once for all.",
)
@click.option(
    "--rival",
    "methods",
    multiple=True,
    help="A method beside ours: a rival of the laboratory by its name, or module:Class.",
)
@_listed("--epsilon", "epsilons", "0.3,1,3", "With --table.")
@click.option("--plot-only", is_flag=True, help="Only redraw, from existing CSV files.")
@click.option(
    "--page",
    type=_FILE,
    help="Write a Markdown page about all CSV files in --out, with their pictures.",
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
    **own: Any,
) -> None:
    """Run the paper's experiments, and what it claims and does not show: config → CSV → plot.

    NAMES are fig1a, fig1b, fig2a, fig2b (the paper's), risk, noise and target; all of them if none
    is given. An interrupted run continues where it stopped. With --table, methods are compared on
    tables of your own instead: ours by their defaults, and each --rival.
    """
    if own["tables"]:
        told = _own_tables(**own, out=out, trials=trials)
        click.echo(told.to_frame().to_json(orient="records") if as_json else str(told))
        return
    from blurfit_lab.experiments.cohort import Cohort
    from blurfit_lab.experiments.pages import EXPERIMENTS, PAPER, draw, write_page
    from blurfit_lab.experiments.runner import Provenance, read_csv, run

    chosen = names or tuple(EXPERIMENTS)
    facts = Provenance.read(out)
    if not plot_only:
        population = Cohort.load(data, rows=rows, seed=seed)
        known = facts if facts.population == population.name else Provenance()
        people = population.name, population.synthetic, len(population)
        facts = Provenance(*people, trials, workers, known.seconds, known.computing)
        for name in chosen:
            begin, used = time.perf_counter(), _computing()
            with watched(name) as watch:
                run(EXPERIMENTS[name], population, trials, workers, out, watch)
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
        write_page(page, out, facts)
        wrote(page)
    if as_json:
        files = {name: str(out / f"{name}.csv") for name in chosen}
        click.echo(json.dumps({"csv": files, "seconds": dict(facts.seconds)}, indent=2))


def _own_tables(
    tables: tuple[Path, ...],
    schemas: tuple[Path, ...],
    methods: tuple[str, ...],
    epsilons: list[float],
    out: Path,
    trials: int,
) -> Any:
    """Compare ours and other methods on tables, and write lines, a table and a picture."""
    from blurfit_lab.experiments.contest import contest, load
    from blurfit_lab.experiments.everywhere import METHODS

    if len(schemas) not in (1, len(tables)):
        raise click.UsageError("Give one --schema for all tables, or one for each --table.")
    each = schemas * len(tables) if len(schemas) == 1 else schemas
    crowds = [load(file, schema) for file, schema in zip(tables, each, strict=True)]
    out.mkdir(parents=True, exist_ok=True)
    lines, picture = out / "contest.jsonl", out / "contest.png"
    with watched("contest") as watch:
        chosen = [*METHODS, *methods]
        found = contest(crowds, chosen, epsilons, trials, out=lines, progress=watch)
    found.plot().savefig(picture, dpi=130)
    wrote(lines)
    wrote(picture)
    return found


_TASKS = {"numbers": "number", "labels": "label", "counts": "count"}


_cells_options = options(
    click.argument("task", type=click.Choice(list(_TASKS))),
    click.option("--population", "names", multiple=True, help="Names; default: all."),
    click.option("--aside", is_flag=True, help="Those kept aside: nobody tunes on them."),
    _listed("--d", "columns", "14", "As 3,14,40."),
    _listed("--epsilon", "epsilons", "1"),
    click.option("--method", "methods", multiple=True, help="Default: ours and the mean."),
    click.option("--out", type=_FILE, required=True),
    click.option("--table-only", is_flag=True, help="Only tell what --out holds."),
)


def _cells(
    task: Any,
    names: tuple[str, ...],
    aside: bool,
    columns: list[int],
    sizes: list[int],
    epsilons: list[float],
) -> list[Any]:
    from blurfit_lab.experiments.headtohead import cells_of
    from blurfit_lab.experiments.populations import ASIDE, CHOICES

    chosen = names or (ASIDE[task] if aside else CHOICES[task])
    return [one for name in chosen for one in cells_of(task, name, columns, sizes, epsilons)]


@click.command(epilog="Example: blurfit-lab everywhere numbers --n 2^13 --out build/numbers.jsonl")
@_cells_options
@_listed("--n", "sizes", "2^9,2^11,2^13,2^15")
@_listed("--seeds", "seeds", "0:20", "From the first to before last.")
@click.option("--rivals", is_flag=True, help="Beside the best of the laboratory's rivals.")
@_option("--neighbours", type=click.Choice(["replace", "zero-out"]), default="replace")
@click.option("--against", type=_KNOWN_FILE, help="The --out of another version, to divide by.")
def everywhere(
    task: str,
    methods: tuple[str, ...],
    out: Path,
    table_only: bool,
    seeds: list[int],
    rivals: bool,
    neighbours: Any,
    against: Path | None,
    **which: Any,
) -> None:
    """Measure public defaults on many populations: excess loss, verdicts, geometric means.

    What --out holds already is not computed again.
    """
    from blurfit_lab.experiments.everywhere import METHODS, RIVALS, report, run
    from blurfit_lab.experiments.lines import CELL, frame

    kind: Any = _TASKS[task]
    cells = _cells(kind, **which)
    if not table_only:
        with watched(task) as watch:
            chosen = [*(methods or METHODS), *(RIVALS[kind] if rivals else ())]
            run(kind, cells, seeds, chosen, out, watch, neighbours)
    asked = {tuple(cell) for cell in cells}
    lines = frame([out])
    lines = lines[[key in asked for key in lines[CELL].itertuples(index=False, name=None)]]
    click.echo(report(lines, kind, None if against is None else frame([against])))


@click.command(epilog="Example: blurfit-lab rivals --family 'twelve small sets' --out build/small")
@click.option("--family", "names", multiple=True, help="Families of populations; default: all.")
@click.option("--only", type=click.Choice(["ours", "rivals"]), help="Only these lines.")
@_option("--trials", default=8, help="Trials of every cell.")
@_option("--most", default=100, help="Trials where the verdict is open.")
@_option("--persons", default=20, help="Trials of diaries and exits.")
@_option(
    "--out",
    type=_FOLDER,
    default="build/rivals",
    help="Where results are kept; what is there already is not computed again.",
)
@click.option("--pages-only", is_flag=True, help="Only write the pages, from what --out holds.")
@click.option("--page", type=_FILE, help="Write the laboratory's page.")
@click.option("--headline", type=_FILE, help="Write the product's page.")
def rivals(
    names: tuple[str, ...],
    only: Any,
    trials: int,
    most: int,
    persons: int,
    out: Path,
    pages_only: bool,
    page: Path | None,
    headline: Path | None,
) -> None:
    """Compare public defaults with every rival and a private mean, over families of populations.

    Everybody has the same rows, bounds, ε and δ = 1/n², for neighbours that are replaced and that
    are zeroed out. Cells whose verdict is open get more trials. A run that was stopped goes on, if
    the commit is the same. Real people are found by BLURFIT_DATA.
    """
    from blurfit_lab.experiments import headtohead
    from blurfit_lab.experiments.histories import persons as compare_persons

    known = {one.name: one for one in headtohead.FAMILIES}
    if unknown := [one for one in names if one not in known]:
        raise click.UsageError(f"Expected families among {', '.join(known)}, and got {unknown}.")
    if not pages_only:
        chosen = [known[one] for one in names] if names else headtohead.FAMILIES
        with watched("rivals") as watch:
            parts = [only] if only else headtohead.PARTS
            headtohead.measure(out, chosen, trials=trials, most=most, parts=parts, progress=watch)
        if persons and not names and only != "rivals":
            with watched("persons") as watch:
                sizes, each = (2**13, 2**15), (0.1, 1.0)
                compare_persons(sizes, each, persons, out / "persons.jsonl", watch)
    headtohead.write(out, page, headline)
    for path in (page, headline):
        if path is not None:
            wrote(path)


@click.command(epilog="Example: blurfit-lab coverage numbers --d 12 --out build/coverage.jsonl")
@_cells_options
@_listed("--n", "sizes", "2^15")
@_option("--draws", default=200)
def coverage(
    task: str, methods: tuple[str, ...], out: Path, table_only: bool, draws: int, **which: Any
) -> None:
    """Measure how often 95 % intervals of public defaults hold the population's own model."""
    from blurfit_lab.experiments.coverage import GOAL, METHODS, run, table
    from blurfit_lab.experiments.lines import frame, markdown

    kind: Any = _TASKS[task]
    if not which["aside"]:
        which["names"] = which["names"] or GOAL[kind]
    cells = _cells(kind, **which)
    if not table_only:
        with watched(task) as watch:
            run(kind, cells, draws, methods or METHODS[kind], out, watch)
    click.echo(markdown(table(frame([out])), 3))


@click.command()
@_option("--draws", default=20, help="Collections for each cell.")
@click.option("--table", "only", help="One of local, labels and shifted.")
@click.option("--goals", is_flag=True, help="Only the cells that a goal is about.")
@_option("--out", type=_FOLDER, default="build/public")
def public(draws: int, only: str | None, goals: bool, out: Path) -> None:
    """Measure what public features are worth; with --draws 0, print what was measured."""
    from blurfit_lab.experiments.public import TABLES

    for name, one in TABLES.items():
        if only in (None, name):
            one.run(draws, out, goals=goals)
            click.echo(f"{name}\n\n{one.told(out)}\n")


_collections = options(
    _option("--trials", default=300, help="Collections for each cell."),
    _listed("--n", "sizes", "2^13,2^15", "People."),
    _listed("--epsilon", "epsilons", "0.1,1"),
)


def _told(name: str, contest: Callable[..., Any], *terms: Any, digits: int) -> None:
    """Run a contest, and print its table."""
    from blurfit_lab.experiments.lines import markdown

    with watched(name) as watch:
        found = contest(*terms, watch)
    click.echo(markdown(found, digits))


@click.command()
@_collections
def tables(trials: int, sizes: list[int], epsilons: list[float]) -> None:
    """Measure how often intervals of tables hold the truth, and tests reject what is true."""
    from blurfit_lab.experiments.answers import tables_contest

    _told("tables", tables_contest, sizes, epsilons, trials, digits=3)


@click.command()
@click.argument("what", type=click.Choice(["diaries", "intercepts", "survival", "hazards"]))
@_option("--trials", default=100, help="Of 2^13 people; fewer of more.")
@_listed("--n", "sizes", "2^13,2^15,2^17")
@_listed("--epsilon", "epsilons", "1,0.1")
def histories(what: str, trials: int, sizes: list[int], epsilons: list[float]) -> None:
    """Measure fixed effects or random intercepts of diaries, times until an event, or log-odds of
    one by waves.
    """
    from blurfit_lab.experiments import histories as module

    _told(what, getattr(module, what), sizes, epsilons, trials, digits=4)


@click.command()
@_collections
def groups(trials: int, sizes: list[int], epsilons: list[float]) -> None:
    """Measure how often intervals of groups, their differences and weighted answers hold."""
    from blurfit_lab.experiments.answers import groups_contest, weights_contest

    _told("weights", weights_contest, sizes, epsilons, trials, digits=4)
    _told("groups", groups_contest, sizes, epsilons, trials, digits=3)


@click.command()
@_option("--out", type=_FILE, default="lab/docs/errata.md")
def errata(out: Path) -> None:
    """Compute the numbers of the errata again, and write their page."""
    from blurfit_lab.experiments.errata import render

    out.write_text(render(), encoding="utf-8")
    wrote(out)


@click.group(
    cls=Commands,
    commands=[reproduce, rivals, everywhere, coverage, tables, groups, histories, public, errata],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(blurfit.__version__, prog_name="blurfit-lab")
def main() -> None:
    """Compare blurfit with its rivals, and run the paper's experiments again."""


def _computing() -> float:
    """Seconds that this process and its workers have computed."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
