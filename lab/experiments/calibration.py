"""Certified excess risk of `input` against n, by the paper's rule and its repair, and what a
submission's own ε is, that of joint moments too.

`make figures`: config → CSV → plot, into build/figures. Public facts only, no data.
"""

import csv
from pathlib import Path
from typing import Any

import click
import matplotlib as mpl
from rich.progress import track

from blurfit import calibrate, calibrate_moment
from blurfit.theory.gaussian import mu_of
from blurfit.theory.moments import Reach, sensitivity
from blurfit.theory.planning import public_weights

mpl.use("Agg")
import matplotlib.pyplot as plt

EPSILONS = (0.1, 1.0)
DELTA, DIMENSION = 0.01, 14
QUORUMS = tuple(2**k for k in range(7, 22, 2))
MOMENT = "moment"
LINES: dict[str, dict[str, Any]] = {
    "input, published (not proved)": {"rule": "published"},
    "input, certified": {},
    MOMENT: {},
}


def compute(path: Path) -> None:
    """One row for each line, ε and n."""
    cases = [(line, epsilon, n) for line in LINES for epsilon in EPSILONS for n in QUORUMS]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["line", "epsilon", "quorum", "excess_risk", "local_epsilon"])
        for line, epsilon, quorum in track(cases, description="Calibrating"):
            if line == MOMENT:  # whose models are chosen afterwards: no bound holds for all
                weights = public_weights(
                    ["numeric"] * (DIMENSION - 1), quorum, mu_of(epsilon, DELTA)
                )
                reach = Reach(*[sensitivity(weights.constant, 1.0)] * 2)
                local = calibrate_moment(epsilon, DELTA, reach=reach, quorum=quorum).local
                writer.writerow([line, epsilon, quorum, "", local.epsilon])
                continue
            found = calibrate(
                epsilon,
                DELTA,
                dimension=DIMENSION,
                quorum=quorum,
                q_bound=1.0,
                p_bound=1.0,
                weight_bound=1.0,
                **LINES[line],
            )
            writer.writerow([line, epsilon, quorum, found.excess_risk, found.local.epsilon])


def plot(source: Path, target: Path) -> None:
    """Excess risk above, a submission's ε below, one column for each ε."""
    with source.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    figure, axes = plt.subplots(2, len(EPSILONS), figsize=(10, 7), sharex=True, sharey="row")
    for column, epsilon in enumerate(EPSILONS):
        for line in LINES:
            chosen = [r for r in rows if r["line"] == line and float(r["epsilon"]) == epsilon]
            for row, quantity in enumerate(("excess_risk", "local_epsilon")):
                known = [r for r in chosen if r[quantity]]
                if not known:
                    continue
                quorums = [int(r["quorum"]) for r in known]
                values = [float(r[quantity]) for r in known]
                axes[row, column].loglog(quorums, values, marker="o", markersize=4, label=line)
        axes[0, column].set_title(f"model ε = {epsilon:g}, δ = {DELTA:g}, d = {DIMENSION}")
        axes[1, column].set_xlabel("quorum n")
    axes[0, 0].set_ylabel("certified excess risk (probability 0.9)")
    axes[1, 0].set_ylabel(f"exact ε of one submission, δ = {DELTA:g}")
    axes[1, 0].legend()
    for axis in axes.flat:
        axis.grid(alpha=0.3, which="both")
    figure.tight_layout()
    figure.savefig(target, dpi=150)


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build/figures"),
    show_default=True,
)
@click.option("--plot-only", is_flag=True, help="Draw again from the CSV that is there.")
def main(out: Path, plot_only: bool) -> None:
    """Compute and draw."""
    out.mkdir(parents=True, exist_ok=True)
    table, picture = out / "calibration.csv", out / "calibration.png"
    if not plot_only:
        compute(table)
    plot(table, picture)
    click.echo(f"Wrote {table} and {picture}.")


if __name__ == "__main__":
    main()
