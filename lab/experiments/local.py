"""Local privacy on real data: n = 2²¹ people of the ACS, each submission (ε_l, 10⁻⁶)-private.

`python lab/experiments/local.py` finds the data by BLURFIT_DATA, and writes CSV into build/figures.
The first 2²¹ rows take part, the next 40,000 are what is publicly known (they choose the free
terms), the rest are the test. `--per-record` blurs every record of one collection by itself too.
"""

import csv
from pathlib import Path

import click
import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import track
from rich.table import Table

from blurfit import Agreement, learn, perturb_table
from blurfit.agreement.terms import MECHANISMS
from blurfit.forecast.choices import advise
from blurfit.forecast.population import Population
from blurfit.forecast.sweep import propose_terms
from blurfit.learning.sums import Totals, block_sums, total
from blurfit.schema.vectors import values
from blurfit.simulation import Census
from blurfit.simulation.sampler import sampler_for, totals_of_products
from blurfit_lab.datasets import load_acs

FloatArray = npt.NDArray[np.float64]
CONTRIBUTORS, PUBLIC = 2**21, 40_000
EPSILON, DELTA = 10.0, 1e-6  # of the model, which the local target then makes much smaller
TARGETS = (1.0, 2.0, 4.0, 8.0, 16.0)
AT_ONCE = 2**17


def products_of(people: Census) -> FloatArray:
    """Σ(1, v)(1, v)ᵀ of those who take part: what either mechanism sends follows from it."""
    found: list[FloatArray] = []
    for start in range(0, CONTRIBUTORS, AT_ONCE):
        v = values(people.schema, people.take(AT_ONCE, start=start).table)
        rows = np.column_stack([np.ones(len(v)), v])
        found.append(rows.T @ rows)
    return np.asarray(np.sum(found, axis=0))


def one_by_one(agreement: Agreement, people: Census) -> Totals:
    """The sums of one collection in which each record is blurred by itself."""
    parts = []
    for start in track(range(0, CONTRIBUTORS, AT_ONCE), description="Blurring each"):
        sent = perturb_table(agreement, people.take(AT_ONCE, start=start).table)
        parts.append((AT_ONCE, block_sums(agreement, sent.numbers)))
    return total(agreement, parts, exact_rows=1)


@click.command()
@click.option("--draws", default=50, show_default=True, help="Collections for each line.")
@click.option("--per-record", is_flag=True, help="Blur every record of one collection too.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build/figures"),
    show_default=True,
)
def main(draws: int, per_record: bool, out: Path) -> None:
    """Choose terms from public knowledge, collect, learn, and test."""
    acs = load_acs()
    public = acs.take(PUBLIC, start=CONTRIBUTORS)
    tested = acs.take(len(acs) - CONTRIBUTORS - PUBLIC, start=CONTRIBUTORS + PUBLIC)
    known = Population.of_table(acs.schema, public.table, "public rows")
    test = Population.of_table(acs.schema, tested.table, "test rows")
    products = products_of(acs)
    unblurred = np.asarray(np.linalg.solve(products[:-1, :-1], products[:-1, -1]), dtype=np.float64)
    best = float(test.error(unblurred)[0])
    constant, generator = test.constant, np.random.default_rng(2017)
    rows: list[list[str]] = []
    for mechanism in MECHANISMS:
        for target in track(TARGETS, description=mechanism):
            advice = advise(
                acs.schema,
                known,
                contributors=CONTRIBUTORS,
                epsilon=EPSILON,
                mechanism=mechanism,
                local_epsilon=target,
            )
            for name, chosen in (("default", {}), ("advised", advice.terms)):
                terms = propose_terms(acs.schema, mechanism, EPSILON, target, chosen)
                agreement = Agreement.propose(acs.schema, quorum=CONTRIBUTORS, **terms)
                clean = totals_of_products(agreement, CONTRIBUTORS, products)
                sampler = sampler_for(agreement, clean)
                weights = [learn(agreement, sampler.draw(generator)).weights for _ in range(draws)]
                errors = test.error(np.array(weights))
                error, half = float(errors.mean()), 1.645 * float(errors.std())
                way = (constant - error) / (constant - best)
                words = " ".join(f"{key}={value}" for key, value in chosen.items())
                numbers = [f"{error:.0f}", f"{half:.0f}", f"{way:.3f}"]
                rows.append([mechanism, f"{target:g}", name, *numbers, words])
                if per_record and name == "advised" and target == 8:
                    w = learn(agreement, one_by_one(agreement, acs)).weights
                    error = float(test.error(w)[0])
                    way = (constant - error) / (constant - best)
                    each = [f"{error:.0f}", "", f"{way:.3f}", "one collection"]
                    rows.append([mechanism, f"{target:g}", "each record", *each])
    header = ["mechanism", "local ε", "terms", "RMSE", "±", "way", "chosen"]
    out.mkdir(parents=True, exist_ok=True)
    with (out / "local.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    title = f"RMSE in dollars; a constant: {constant:.0f}, without privacy: {best:.0f}"
    table = Table(*header, title=title)
    for row in rows:
        table.add_row(*row)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
