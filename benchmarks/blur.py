"""How fast a table is blurred, beside drawing as many normals from the same generator.

`python benchmarks/blur.py`: 2²⁰ generated records of 14 numbers (synthetic).
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import click
import numpy as np
from measure import Row, best_times, show
from randomgen import ChaCha  # type: ignore[import-untyped]

from blurfit import Agreement, perturb, perturb_table
from blurfit.chacha import Stream
from blurfit.simulation import make_census


def tables(rows: int) -> Iterator[Row]:
    """`perturb_table`, from raw columns to submissions, on all cores; normals on one."""
    census = make_census(rows, seed=1)
    generator = np.random.Generator(ChaCha(key=1, rounds=20))
    agreement = Agreement.propose(census.schema, epsilon=1, delta=1e-6, quorum=rows)
    room = np.empty((rows, agreement.width))
    ours, alone = best_times(
        partial(perturb_table, agreement, census.table),
        partial(generator.standard_normal, out=room),
        rounds=3,
    )
    what = f"perturb_table, {rows:,} × {agreement.width} numbers"
    yield Row(what, ours, "ChaCha20 normals, one core", ours / alone)
    record = {name: column[0] for name, column in census.table.items()}
    (single,) = best_times(partial(perturb, agreement, record))
    yield Row("perturb, one record, exact", single, "a table's, each", single * rows / ours)


def streams(count: int = 10**6) -> Iterator[Row]:
    """One stream of ChaCha20, fed to NumPy from Python and by randomgen."""
    sources: tuple[Any, ...] = (Stream(1), ChaCha(key=1, rounds=20))
    fed, compiled = map(np.random.Generator, sources)
    for what in ("random", "standard_normal"):
        ours, theirs = best_times(*(partial(getattr(one, what), count) for one in (fed, compiled)))
        yield Row(f"{what}, {count:,} numbers, fed from Python", ours, "randomgen", ours / theirs)


@click.command()
@click.option("--rows", default=2**20, show_default=True)
def main(rows: int) -> None:
    """Measure, and print a table."""
    show([*tables(rows), *streams()], title="blurring")


if __name__ == "__main__":
    main()
