"""One trial of the paper's experiment at n = 2²¹: as the paper did it, and from shared sums.

Naively, each record is blurred by itself, and a general convex solver minimises the sum of all
blurred losses over the ball. Here, the window's sums are had from running sums, the noise of all
records is drawn at once, and the minimiser is exact. Both have the same distribution
(tests/input_perturbation/test_algorithms.py). `make bench`.
"""

from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np
from measure import Row, best_times, show
from scipy.optimize import minimize

from blurfit.input_perturbation.calibration import PublicInput
from blurfit.simulation import make_census
from blurfit_lab.experiments.cohort import Cohort, Window
from blurfit_lab.experiments.figures import INPUT, agreement, from_sums

TRIALS = 100


def naive(people: Cohort, window: Window, contract: PublicInput, seed: int) -> float:
    """Noise for each record, SLSQP over the records, and the test rows predicted one by one."""
    generator, calibration = np.random.default_rng(seed), contract.calibration
    places = (window.start + np.arange(window.count + window.tested)) % len(people)
    train, test = places[: window.count], places[window.count :]
    n, d = window.count, people.x.shape[1]
    q = people.x[train] + calibration.sigma_u / np.sqrt(n) * generator.standard_normal((n, d))
    p = people.x[train] * people.y[train][:, None]
    p += calibration.sigma_b / np.sqrt(n) * generator.standard_normal((n, d))
    total = p.sum(axis=0)
    bound = calibration.setting.ball

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        z = q @ w
        value = z @ z / 2 - total @ w + calibration.ridge * w @ w / 2
        return value / n, (q.T @ z - total + calibration.ridge * w) / n

    inside: Any = {"type": "ineq", "fun": lambda w: bound**2 - w @ w, "jac": lambda w: -2 * w}
    found = minimize(
        objective, np.zeros(d), jac=True, constraints=[inside], method="SLSQP", tol=1e-12
    )
    errors = people.y[test] - people.x[test] @ found.x
    return float(np.sqrt(np.mean(errors**2)) / 2)


def shared(people: Cohort, window: Window, contract: PublicInput, seed: int) -> float:
    """From running sums, by the exact sampler and the exact minimiser."""
    sums = people.training_sums(window)
    weights = from_sums(contract, sums, None, np.random.default_rng(seed))
    return people.test_sums(window).rmse(weights)


@click.command()
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write the rows as JSON.")
@click.option("--rounds", default=3, show_default=True)
def main(path: Path | None, rounds: int) -> None:
    """Measure."""
    people = Cohort.of(make_census(2**21 + 2**16, seed=1))
    start = perf_counter()
    people.prepare()
    pass_over_data = perf_counter() - start
    window = people.window(2**21, 0)
    contract = agreement(INPUT, people, 1.0, 2**21)
    assert isinstance(contract, PublicInput)
    # The two agree up to noise, which at this n is small.
    assert abs(naive(people, window, contract, 0) - shared(people, window, contract, 0)) < 1e-3
    slow, _ = best_times(
        lambda: naive(people, window, contract, 1), lambda: None, number=1, rounds=rounds
    )
    fast, _ = best_times(
        lambda: shared(people, window, contract, 1), lambda: None, number=50, rounds=rounds
    )
    spread = fast + pass_over_data / TRIALS
    rows = [
        Row("a trial at n = 2²¹, naively", slow, "itself", 1.0),
        Row("the same from shared sums", fast, "naively", slow / fast),
        Row("with its share of the pass, of 100 trials", spread, "naively", slow / spread),
    ]
    show(rows, title="The paper's experiment (input, linear)", path=path)
    if slow / spread < 100:
        raise SystemExit(f"Expected at least 100 times, and got {slow / spread:.0f}.")


if __name__ == "__main__":
    main()
