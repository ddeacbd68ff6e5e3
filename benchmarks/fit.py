"""How fast a default fit is beside scikit-learn's, and how much memory it takes beside the data.

`python benchmarks/fit.py --json results.json`: numbers and labels, on the same table in one run.
Both sides have the same cores (one, unless `--cores` says otherwise) and as many threads; what is
compared is processor time, the best of some rounds in which they take turns. Memory is the highest
that a fit reaches above what the process holds with its data, in a process of its own.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import click
import numpy as np
import numpy.typing as npt
from measure import best_times, table
from rich.console import Console
from sklearn.linear_model import (  # type: ignore[import-untyped]
    LinearRegression,
    LogisticRegression,
)
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from blurfit.estimators import MomentPerturbationClassifier, MomentPerturbationRegressor

FloatArray = npt.NDArray[np.float64]
TARGET = (-8.0, 8.0)


class Case(NamedTuple):
    """What is fitted, and how many times as fast as scikit-learn it should be."""

    task: str
    rows: int
    columns: int
    goal: float


CASES = (
    Case("numbers", 2**20, 14, 2.5),
    Case("labels", 2**20, 14, 3.0),
    Case("numbers", 2**18, 200, 1.0),
    Case("labels", 2**18, 200, 1.0),
    Case("numbers", 2**16, 1000, 1.0),
    Case("labels", 2**16, 1000, 1.0),
)


def make_table(rows: int, columns: int) -> tuple[FloatArray, FloatArray]:
    """Features in [0, 1], and a target of variance 2 of which half is theirs."""
    generator = np.random.default_rng(0)
    X = generator.random((rows, columns))
    slope = generator.standard_normal(columns) * np.sqrt(12 / columns)
    y = X @ slope - slope.sum() / 2 + generator.standard_normal(rows)
    return X, y


def fits(task: str, X: FloatArray, y: FloatArray, waves: Any) -> list[Callable[[], object]]:
    """The fit of scikit-learn, and ours under defaults or in a given number of waves."""
    ours: Any
    if task == "numbers":
        ours = MomentPerturbationRegressor(bounds=(0, 1), target_bounds=TARGET, waves=waves)
        return [partial(LinearRegression().fit, X, y), partial(ours.fit, X, y)]
    labels = y > 0
    ours = MomentPerturbationClassifier(bounds=(0, 1), classes=[False, True], waves=waves)
    return [partial(LogisticRegression().fit, X, labels), partial(ours.fit, X, labels)]


def measured_memory(case: Case, waves: Any, side: int, cores: int) -> float:
    """MB above the data, in a process of its own: 0 is scikit-learn's side, 1 is ours."""
    with TemporaryDirectory() as folder:
        for name, array in zip("Xy", make_table(case.rows, case.columns), strict=True):
            np.save(Path(folder) / f"{name}.npy", array)
        command = [sys.executable, __file__, "--memory", folder, case.task, str(waves), str(side)]
        environment = {**os.environ, "OMP_NUM_THREADS": str(cores)}
        environment["OPENBLAS_NUM_THREADS"] = str(cores)
        return float(subprocess.check_output(command, env=environment, text=True))


def memory_of(folder: str, task: str, waves: str, side: str) -> float:
    """Fit once, and tell by how much the highest memory was above what the data takes."""
    X, y = (np.load(f"{folder}/{name}.npy") for name in "Xy")
    few = X[: 4 * X.shape[1]].copy(), y[: 4 * X.shape[1]]  # what is loaded with a first fit
    asked: Any = waves if waves == "auto" else int(waves)
    fits(task, *few, asked)[int(side)]()
    fit = fits(task, X, y, asked)[int(side)]
    Path("/proc/self/clear_refs").write_text("5")  # the highest begins anew
    before = _status("VmRSS")
    fit()
    return (_status("VmHWM") - before) / 1024


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(key)))


def measure(case: Case, waves: Any, rounds: int, cores: int) -> dict[str, Any]:
    """Times and memory of both, and their ratios."""
    with threadpool_limits(limits=cores):
        functions = fits(case.task, *make_table(case.rows, case.columns), waves)
        for one in functions:
            one()  # imports, calibrations and caches are not what is compared
        theirs, ours = best_times(*functions, rounds=rounds, processor=True)
    held = [measured_memory(case, waves, side, cores) for side in (0, 1)]
    return {
        **case._asdict(),
        "scikit-learn": theirs,
        "blurfit": ours,
        "times as fast": theirs / ours,
        "scikit-learn MB": held[0],
        "blurfit MB": held[1],
    }


@click.command()
@click.option("--case", "places", type=int, multiple=True, help="Only these of the six, from 0.")
@click.option("--waves", default="auto", show_default=True, help="Of ours.")
@click.option("--rounds", default=3, show_default=True, help="The best of so many counts.")
@click.option("--cores", default=1, show_default=True, help="For both.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write the rows here too.")
@click.option("--memory", hidden=True, nargs=4, help="Measure one fit: folder, task, waves, side.")
def main(
    places: tuple[int, ...],
    waves: str,
    rounds: int,
    cores: int,
    path: Path | None,
    memory: tuple[str, str, str, str] | None,
) -> None:
    """Measure, and print how many times as fast as scikit-learn a fit is."""
    if memory:
        click.echo(memory_of(*memory))
        return
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    asked: Any = waves if waves == "auto" else int(waves)
    with Console(stderr=True).status("Measuring …"):
        cases = [CASES[place] for place in places] if places else CASES
        found = [measure(case, asked, rounds, cores) for case in cases]
    rows = [
        [
            one["task"],
            f"{one['rows']:,}",
            str(one["columns"]),
            f"{one['scikit-learn']:.2f} s",
            f"{one['blurfit']:.2f} s",
            f"{one['times as fast']:.2f} (goal {one['goal']:g})",
            f"{one['scikit-learn MB']:.0f} MB",
            f"{one['blurfit MB']:.0f} MB",
        ]
        for one in found
    ]
    heads = ("task", "n", "d", "scikit-learn", "blurfit", "times as fast", "memory", "ours")
    table(f"Default fits, waves={waves}, cores={cores}", heads, rows)
    if path is not None:
        path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
