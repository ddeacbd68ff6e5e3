"""How fast the mathematics is, each as a ratio to something measured in the same run.

`make bench`, or `python benchmarks/mathematics.py --json results.json`.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from measure import Row, best_times, show
from rich.console import Console

from blurfit import Agreement, Numeric, Schema
from blurfit.input_perturbation.algorithms import Sampler, Sums, enclose
from blurfit.input_perturbation.calibration import calibrate
from blurfit.learning.solver import minimise
from blurfit.simulation import sampler_for, totals_of_products

UNIT: dict[str, Any] = {"q_bound": 1.0, "p_bound": 1.0, "weight_bound": 1.0}


def numbers(columns: int) -> Schema:
    """So many numbers, the target among them."""
    return Schema([Numeric(f"x{k}", -1, 1) for k in range(columns - 1)], Numeric("y", -1, 1))


def calibrations() -> Iterator[Row]:
    """`calibrate` with everything chosen, and a whole proposal of joint moments with its public
    weights, beside the goal of 200 ms.
    """
    local: dict[str, Any] = {"local_epsilon": 5.0, "local_delta": 1e-6}
    chosen: Callable[[], object]
    for mechanism in ("input", "moment"):
        for size, quorum, target in (
            (14, 2**15, {}),
            (14, 2**21, {}),
            (1000, 10**6, {}),
            (14, 2**21, local),
        ):
            if mechanism == "input":
                settings = {"dimension": size, "quorum": quorum, **target, **UNIT}
                chosen = partial(calibrate, 1.0, 1e-6, **settings)
            else:
                terms: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "quorum": quorum, **target}
                chosen = partial(Agreement.propose, numbers(size), **terms)
            (seconds,) = best_times(chosen)
            what = "calibrate input, d" if mechanism == "input" else "propose moment, columns"
            name = f"{what} = {size}, n = {quorum:,}"
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


def released() -> Iterator[Row]:
    """Weights with a proved error beside the minimiser in floating point alone."""
    generator = np.random.default_rng(0)
    for d in (14, 100):
        noise, c = generator.standard_normal((2 * d, d)), generator.standard_normal(d)
        A = noise.T @ noise * 1e4
        start = minimise(A, 1e5 * c, weight_bound=1.0)
        proved = partial(
            enclose, Sums(1, A, 1e5 * c), start, ridge=0.0, radius=1.0, allowed=2.0**-60
        )
        ours, alone = best_times(proved, partial(minimise, A, 1e5 * c, weight_bound=1.0))
        yield Row(f"enclose, d = {d}", ours, "minimise", ours / alone)


def sampler() -> Iterator[Row]:
    """One simulated collection at d = 14, beside blurring 32,768 records one by one."""
    generator = np.random.default_rng(0)
    d = 14
    records = generator.standard_normal((2**15, d)) / d

    def blur_each() -> Sums:
        q = records + generator.standard_normal(records.shape)
        return Sums(len(q), q.T @ q, records.sum(axis=0))

    (long_way,) = best_times(blur_each)
    for count in (2**10, 2**15, 2**21, 10**9):
        products = count / d * np.eye(d + 1)  # of the constant and d columns
        agreement = Agreement.propose(numbers(d), epsilon=1.0, delta=1e-6, quorum=count)
        clean = Sums(count, products[1:, 1:], np.zeros(d))
        for what, draws in (
            ("input", Sampler.of(clean, q_noise=1.0, p_noise=1.0)),
            ("moment", sampler_for(agreement, totals_of_products(agreement, count, products))),
        ):
            (seconds,) = best_times(partial(draws.draw, generator), number=500)
            name = f"sampler {what}, d = 14, n = {count:,}"
            yield Row(name, seconds, "32,768 records each", seconds / long_way)


@click.command()
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write the rows here too.")
def main(path: Path | None) -> None:
    """Measure, and print a table."""
    rows = []
    for part in (calibrations, solver, released, sampler):
        with Console().status(f"Measuring {part.__name__} …"):
            rows += list(part())
    show(rows, title="the mathematics", path=path)


if __name__ == "__main__":
    main()
