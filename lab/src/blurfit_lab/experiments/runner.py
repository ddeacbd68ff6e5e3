"""Cells to workers, results to a journal, journal to CSV.

Every cell draws from a seed of its own and computes with one BLAS thread, so that the CSV does not
depend on how many workers there are, which of them was first, or whether the run was killed.
"""

import multiprocessing
import os
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import blurfit
from blurfit.progress import Progress, silent
from blurfit.validate import whole
from blurfit_lab.experiments.cohort import Cohort
from blurfit_lab.experiments.trials import Row, TrialLog, write_csv


class Experiment(Protocol):
    """What can be run: named, cut into cells, each of which can be computed by itself."""

    @property
    def name(self) -> str:
        """Of its CSV and its picture."""
        ...  # pragma: no cover

    def cells(self, population: Cohort, trials: int) -> list[str]:
        """All of it, in the order of the CSV; "tuning" is computed before all others."""
        ...  # pragma: no cover

    def compute(self, population: Cohort, cell: str, known: Mapping[str, list[Row]]) -> list[Row]:
        """The rows of one cell, given those of "tuning" if there is such a cell."""
        ...  # pragma: no cover


@dataclass(frozen=True)
class _Shared:
    """What workers inherit when they are forked: a table of gigabytes is not sent to them."""

    experiment: Experiment
    population: Cohort


_shared: _Shared | None = None


def run(
    experiment: Experiment,
    population: Cohort,
    *,
    trials: int,
    workers: int,
    out: Path,
    progress: Progress = silent,
) -> Path:
    """The CSV of an experiment; goes on where a killed run of the same question was."""
    whole(trials=trials, workers=workers)
    path, cells = out / f"{experiment.name}.csv", experiment.cells(population, trials)
    question = {
        "version": blurfit.__version__,
        "experiment": repr(experiment),
        "population": population.name,
        "rows": len(population),
        "seed": population.seed,
        "trials": trials,
    }
    journal = TrialLog(out / f"{experiment.name}.journal", question)
    done = {cell: rows for cell, rows in journal.read().items() if cell in cells}
    journal.start(done)
    with threadpool_limits(limits=1):
        population.prepare()
        for cell, rows in _computed(experiment, population, cells, done, workers):
            journal.add(cell, rows)
            done[cell] = rows
            progress(len(done), len(cells))
    write_csv(path, [row for cell in cells for row in done[cell]])
    journal.path.unlink()
    return path


def _computed(
    experiment: Experiment,
    population: Cohort,
    cells: list[str],
    done: dict[str, list[Row]],
    workers: int,
) -> Iterator[tuple[str, list[Row]]]:
    global _shared  # which forked workers inherit
    if "tuning" in cells and "tuning" not in done:
        yield "tuning", experiment.compute(population, "tuning", {})
    missing = [cell for cell in cells if cell not in done]
    known = {cell: rows for cell, rows in done.items() if cell == "tuning"}
    if workers == 1 or len(missing) < 2:
        for cell in missing:
            yield cell, experiment.compute(population, cell, known)
        return
    _shared = _Shared(experiment, population)
    try:
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(
            workers, mp_context=context, initializer=_end_with, initargs=(os.getpid(),)
        ) as pool:
            futures = {pool.submit(_work, cell, known): cell for cell in missing}
            for future in as_completed(futures):
                yield futures[future], future.result()
    finally:
        _shared = None


def _end_with(parent: int) -> None:
    """Let a worker end when the run is killed: it would wait for ever for its next cell."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _work(cell: str, known: Mapping[str, list[Row]]) -> list[Row]:
    assert _shared is not None
    with threadpool_limits(limits=1):
        return _shared.experiment.compute(_shared.population, cell, known)
