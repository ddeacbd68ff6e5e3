"""How long a full forecast takes, beside its goal of 10 seconds.

`make bench`, or `python benchmarks/sweep.py`: 13 sizes from 10³ to 10⁹, 5 values of ε, both
mechanisms, 64 collections for each of the 130 cells, 14 columns.
"""

import click
import numpy as np
from measure import Row, best_times, show

from blurfit.forecast.population import Population
from blurfit.forecast.sweep import forecast, whole_numbers
from blurfit.simulation import make_census

GOAL = 10.0


@click.command()
@click.option("--rounds", default=1, show_default=True, help="The best of so many counts.")
def main(rounds: int) -> None:
    """Measure."""
    census = make_census(100_000, seed=1)
    people = Population.of_table(census.schema, census.table, census.name)
    sizes = whole_numbers(np.geomspace(1e3, 1e9, 13))
    (seconds,) = best_times(
        lambda: forecast(
            census.schema, people, contributors=sizes, epsilons=(0.1, 0.3, 1.0, 3.0, 10.0)
        ),
        rounds=rounds,
    )
    show(
        [Row("a full forecast, 130 cells", seconds, "goal of 10 s", seconds / GOAL)], title="Sweep"
    )


if __name__ == "__main__":
    main()
