"""How fast a table is blurred, beside drawing as many normals from the same generator.

`python benchmarks/blur.py`: 2²⁰ generated records of 14 numbers (synthetic).
"""

from collections.abc import Iterator
from functools import partial

import click
import numpy as np
from measure import Row, best_times, show
from randomgen import ChaCha  # type: ignore[import-untyped]

from blurfit import Agreement, perturb, perturb_table
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


@click.command()
@click.option("--rows", default=2**20, show_default=True)
def main(rows: int) -> None:
    """Measure, and print a table."""
    show(list(tables(rows)), title="blurring")


if __name__ == "__main__":
    main()
