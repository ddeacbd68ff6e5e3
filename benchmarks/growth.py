"""How the time of each step grows with n and with d, and with which exponent.

`python benchmarks/growth.py --out docs/images/growth.svg`: generated people (synthetic). The
exponent is the slope of log t over log n (or d), by least squares over the upper half of the range,
where what is fixed no longer shows.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import matplotlib as mpl
import numpy as np
from measure import best_times
from scale import agreement, learn, people, store_full, write

from blurfit import perturb_table
from blurfit.estimators import MomentPerturbationRegressor
from blurfit.files.engines import Threads
from blurfit_server import Store
from blurfit_server.store import blocks

mpl.use("svg")
from matplotlib import pyplot as plt

Timer = Callable[[Path, int, int], float]


def files(folder: Path, n: int, d: int) -> float:
    """Statistics from a Parquet file."""
    agreed = agreement(n, d)
    path = write(folder / "a.parquet", agreed, n)
    return min(best_times(partial(learn, agreed, path, Threads()), rounds=3))


def blur(_folder: Path, n: int, d: int) -> float:
    """A table blurred in memory."""
    agreed, table = agreement(n, d), people(n, d)
    return min(best_times(partial(perturb_table, agreed, table), rounds=3))


def fit(_folder: Path, n: int, d: int) -> float:
    """The estimator on a table in memory."""
    generator = np.random.default_rng(0)
    X, y = generator.random((n, d)), generator.random(n)
    model = MomentPerturbationRegressor(bounds=(0, 1), target_bounds=(0, 1), waves=1)
    return min(best_times(partial(model.fit, X, y), rounds=3))


def publish(folder: Path, n: int, d: int) -> float:
    """The sums of a stored collection, as publishing reads them."""
    agreed = agreement(n, d)
    place = store_full(folder / f"{n}-{d}.db", agreed, n)
    with Store(place) as store:
        collection = store.collection(agreed.fingerprint)
        return min(best_times(partial(store.read, blocks.totals, collection), rounds=3))


MEASURED: dict[str, Timer] = {
    "statistics from Parquet": files,
    "blur a table": blur,
    "estimator fit": fit,
    "publish: sums of a store": publish,
}


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope over the upper half."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(seconds[half:]), 1)[0])


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("build/figures/growth.svg"))
@click.option("--most", default=21, show_default=True, help="n up to 2 to this.")
def main(out: Path, most: int) -> None:
    """Measure, print the exponents, and draw."""
    out.parent.mkdir(parents=True, exist_ok=True)
    axes_of = {
        "n, at d = 14": [(2**k, 14) for k in range(13, most + 1, 2)],
        "d, at n = 65,536": [(2**16, d) for d in (4, 8, 16, 32, 64)],
    }
    figure, plots = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
    for axes, (name, settings) in zip(plots, axes_of.items(), strict=True):
        sizes = [n if name.startswith("n") else d for n, d in settings]
        for what, measure in MEASURED.items():
            with TemporaryDirectory() as folder:
                seconds = [measure(Path(folder), n, d) for n, d in settings]
            slope = exponent(sizes, seconds)
            axes.loglog(sizes, seconds, "o-", label=f"{what}: {slope:.2f}")
            click.echo(
                f"{what}, {name}: exponent {slope:.2f}; {seconds[-1]:.3g} s at {sizes[-1]:,}"
            )
        axes.set_xlabel(name)
        axes.legend(title="exponent", fontsize=8)
        axes.grid(alpha=0.3)
    plots[0].set_ylabel("seconds")
    mpl.rcParams["svg.hashsalt"] = "growth"
    figure.savefig(out, metadata={"Date": None})
    click.echo(f"Wrote {out}.")


if __name__ == "__main__":
    main()
