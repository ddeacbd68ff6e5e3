"""Your own table, your own rival: a contest on any table with a schema.

    tables × ε × trials ─ methods ─► lines ─► errors, paired verdicts, a picture

A method is `holder`, `send`, `one`, `mean` or `input` (`blurfit_lab.experiments.everywhere`), a
rival of `blurfit_lab.rivals` by its name, or a class of yours, as itself or as "module:Class":
lab/docs/own.md says what it is called with, and what it says of its promise.
"""

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd  # type: ignore[import-untyped]

from blurfit import Categorical, Numeric, Schema
from blurfit.errors import InvalidValueError, Progress, silent
from blurfit.schema.table_files import TableFile
from blurfit.theory.moments import Neighbours
from blurfit_lab import rivals
from blurfit_lab.experiments.everywhere import METHODS, excess_table, report, run, verdicts
from blurfit_lab.experiments.lines import Cell, frame, markdown
from blurfit_lab.experiments.populations import People, Task, ends, rows_of

Method = str | type
SHARE_TESTED = 0.2


def load(path: str | PathLike[str], schema: str | PathLike[str] | Schema) -> People:
    """Read a table and its schema (a .toml file) as people whom methods learn from."""
    file = Path(path)
    known = schema if isinstance(schema, Schema) else Schema.from_toml(schema)
    parts = [pd.DataFrame(part) for part in TableFile(file, known).chunks()]
    return of(pd.concat(parts, ignore_index=True), known, file.stem)


def of(table: pd.DataFrame, schema: Schema, name: str, *, counts: bool = False) -> People:
    """Return a table as people whom methods learn from; `counts` if the target is a count."""
    if unsaid := [one.name for one in schema.features if one.optional]:
        raise InvalidValueError(
            f"Expected questions that everybody answers, and {unsaid} may be left unsaid: rivals "
            "take numbers. Fill the gaps by a public rule, or drop the columns from the schema."
        )
    schema.encode(table)  # or it says which row is wrong
    if isinstance(schema.target, Categorical):
        words = f"and {schema.target.name!r} has classes."
        raise InvalidValueError(f"Expected a number or a label, {words}")
    numeric = [one for one in schema.features if isinstance(one, Numeric)]
    cut = {one.name: table[one.name].astype(float).clip(*ends(one)) for one in numeric}
    whole, rows = rows_of(table.assign(**cut), schema)
    numbers: Task = "count" if counts else "number"
    task: Task = numbers if isinstance(schema.target, Numeric) else "label"
    kept = len(rows.y) - round(SHARE_TESTED * len(rows.y))
    return People.of_all(name, task, whole, rows, kept)


@dataclass(frozen=True, eq=False)
class Contest:
    """What came of it: a line for each fit."""

    lines: pd.DataFrame
    task: Task
    promises: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """Return the mean excess error of each method, by table and ε."""
        return excess_table(self.lines).reset_index()

    def verdicts(self, method: str, others: Sequence[str]) -> pd.DataFrame:
        """Return in which cells a method surely wins or loses against the best of others."""
        return verdicts(self.lines, method, others, self.task)

    def __str__(self) -> str:
        return f"{markdown(self.promises)}\n\n{report(self.lines, self.task)}"

    def plot(self) -> Any:
        """Draw the excess error of each method against ε, one picture for each table."""
        from matplotlib import pyplot

        means = self.to_frame()
        names = list(means.population.unique())
        figure, axes = pyplot.subplots(
            1, len(names), figsize=(4.5 * len(names), 3.6), layout="constrained", squeeze=False
        )
        for axis, name in zip(axes[0], names, strict=True):
            part = means[means.population == name].set_index("epsilon").drop(columns=["d", "n"])
            part.drop(columns="population").plot(ax=axis, marker="o", logx=True, logy=True)
            axis.set(title=name, xlabel="ε", ylabel="error above the best fit's")
        return figure


def contest(
    tables: Mapping[str, People] | Sequence[People],
    methods: Sequence[Method] = METHODS,
    epsilons: Sequence[float] = (0.3, 1.0, 3.0),
    trials: int = 20,
    *,
    neighbours: Neighbours = "replace",
    out: Path | None = None,
    progress: Progress = silent,
) -> Contest:
    """Fit every method to every table (from `load` or `of`), under every ε, in so many trials.

    Args:
        tables: all with a target of one kind.
        methods: names, or classes of your own.
        epsilons: privacy budgets; δ is 1/n².
        trials: how often rows are divided into learned from and tested on.
        neighbours: the relation that all are run under, where they take it.
        out: a file of JSON lines, from which an interrupted contest goes on.
        progress: is told how much of how much is done.
    """
    crowds = list(tables.values()) if isinstance(tables, Mapping) else list(tables)
    kinds = {one.task for one in crowds}
    if len(kinds) != 1:
        raise InvalidValueError(f"Expected tables with targets of one kind, and got {kinds}.")
    (task,) = kinds
    names = [
        one if isinstance(one, str) else f"{one.__module__}:{one.__qualname__}" for one in methods
    ]
    families = [one if isinstance(one, type) else family_of(one) for one in methods]
    known = {one.name: one for one in crowds}
    cells = [
        Cell(one.name, len(one.schema.features), one.rows or 0, float(epsilon))
        for one, epsilon in product(crowds, epsilons)
    ]
    with TemporaryDirectory() as folder:
        place = out or Path(folder) / "contest.jsonl"
        run(
            *(task, cells, range(trials), names, place, progress, neighbours),
            find=lambda cell, _: known[cell.population],
        )
        lines = frame([place])
    said = {"trust": "trust", "neighbours": "published_neighbours", "proved": "proved"}
    told = [
        {"method": name} | {word: getattr(one, what, "not said") for word, what in said.items()}
        for name, one in zip(names, families, strict=True)
        if one is not None
    ]
    return Contest(lines, task, pd.DataFrame(told, columns=["method", *said]))


def family_of(method: str) -> type | None:
    """Return the class that a name stands for; None for what blurfit itself does."""
    module, _, name = method.rpartition(":")
    if not module:
        return getattr(rivals, method, None)
    if "" not in sys.path:
        sys.path.insert(0, "")  # a file beside which the command was called
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidValueError(
            f"Expected a rival as module:Class, got {method!r}: {error}."
        ) from error
    if not all(hasattr(found, one) for one in ("fit", "predict")):
        raise InvalidValueError(f"Expected {method!r} to have fit(X, y) and predict(X).")
    assert isinstance(found, type)
    return found
