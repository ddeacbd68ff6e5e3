"""How fast the mathematics is, each as a ratio to something measured in the same run.

`make bench`, or `python benchmarks/mathematics.py --json results.json`.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from measure import Row, best_times, show
from rich.console import Console

from blurfit import calibrate
from blurfit.learning.solver import minimise
from blurfit.learning.statistics import Statistics
from blurfit.simulation.sampler import sampler_for

UNIT: dict[str, Any] = {"q_bound": 1.0, "p_bound": 1.0, "weight_bound": 1.0}


def calibrations() -> Iterator[Row]:
    """`calibrate` with everything chosen, beside its goal of 200 ms."""
    local = {"local_epsilon": 5.0, "local_delta": 1e-6}
    for mechanism in ("input", "moment"):
        for dimension, quorum, target in (
            (14, 2**15, {}),
            (14, 2**21, {}),
            (1000, 10**6, {}),
            (14, 2**21, local),
        ):
            settings = {"dimension": dimension, "quorum": quorum, **target, **UNIT}
            (seconds,) = best_times(partial(calibrate, 1.0, 1e-6, mechanism=mechanism, **settings))
            name = f"calibrate {mechanism}, d = {dimension}, n = {quorum:,}"
            name += ", local target" if target else ""
            yield Row(name, seconds, "goal of 200 ms", seconds / 0.2)


def solver() -> Iterator[Row]:
    """The exact minimiser at d = 1000 beside `numpy.linalg.eigh` alone."""
    generator = np.random.default_rng(0)
    d = 1000
    noise, c = generator.standard_normal((d, d)), generator.standard_normal(d)
    for name, A in {
        "positive definite": noise @ noise.T / d + 0.1 * np.eye(d),
        "indefinite": (noise + noise.T) / 2,
    }.items():
        for bound in (0.5, 1e6):
            ours, alone = best_times(
                partial(minimise, A, c, weight_bound=bound), partial(np.linalg.eigh, A)
            )
            what = f"minimise, d = 1000, {name}, η = {bound:g}"
            yield Row(what, ours, "numpy.linalg.eigh", ours / alone)


def sampler() -> Iterator[Row]:
    """One simulated collection at d = 14, beside blurring 32,768 records one by one."""
    generator = np.random.default_rng(0)
    d = 14
    records = generator.standard_normal((2**15, d)) / d

    def blur_each() -> Statistics:
        return Statistics.of_records(records + generator.standard_normal(records.shape), records)

    (long_way,) = best_times(blur_each)
    for mechanism in ("input", "moment"):
        for count in (2**10, 2**15, 2**21, 10**9):
            settings = {"dimension": d, "quorum": count, "mechanism": mechanism, **UNIT}
            clean = Statistics(count, count / d * np.eye(d), np.zeros(d))
            draws = sampler_for(calibrate(1.0, 1e-6, **settings), clean)
            (seconds,) = best_times(partial(draws.draw, generator), number=500)
            what = f"sampler {mechanism}, d = 14, n = {count:,}"
            yield Row(what, seconds, "32,768 records each", seconds / long_way)


@click.command()
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write the rows here too.")
def main(path: Path | None) -> None:
    """Measure, and print a table."""
    rows = []
    for part in (calibrations, solver, sampler):
        with Console().status(f"Measuring {part.__name__} …"):
            rows += list(part())
    show(rows, title="the mathematics", path=path)


if __name__ == "__main__":
    main()
