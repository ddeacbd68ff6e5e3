"""How fast `fit` is beside others' linear and logistic regression, on the same table in one run.

`python benchmarks/fit.py --diffprivlib --json results.json`. IBM's diffprivlib does not run
with this project's scikit-learn, so it gets an environment of its own under build/.
"""

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep

import click
import numpy as np
import numpy.typing as npt
from measure import Row, best_times, show
from rich.console import Console
from sklearn.linear_model import (  # type: ignore[import-untyped]
    LinearRegression,
    LogisticRegression,
)

from blurfit.estimators import (
    InputPerturbationRegressor,
    MomentPerturbationClassifier,
    MomentPerturbationRegressor,
)

FloatArray = npt.NDArray[np.float64]

ENVIRONMENT = Path(__file__).parent.parent / "build" / "diffprivlib"
REQUIREMENTS = ("diffprivlib==0.6.6", "scikit-learn==1.7.2")
RIVAL = """
import sys, warnings
from time import perf_counter
import numpy as np
from diffprivlib.models import LinearRegression, LogisticRegression
warnings.simplefilter("ignore")
X, y = (np.load(f"{sys.argv[1]}/{name}.npy") for name in "Xy")
models = (
    (LinearRegression(epsilon=1.0, bounds_X=(0, 1), bounds_y=(-20, 20)), y, int(sys.argv[2])),
    (LogisticRegression(epsilon=1.0, data_norm=X.shape[1] ** 0.5), y > 0, 2),
)
for model, target, rounds in models:
    best = float("inf")
    for _ in range(rounds):
        start = perf_counter()
        model.fit(X, target)
        best = min(best, perf_counter() - start)
    print(best)
"""


def make_table(rows: int, columns: int) -> tuple[FloatArray, FloatArray]:
    """Features in [0, 1], and a noisy linear target within ±20."""
    generator = np.random.default_rng(0)
    X = generator.uniform(0, 1, (rows, columns))
    y = X @ generator.standard_normal(columns) + generator.standard_normal(rows)
    return X, y


def fits(X: FloatArray, y: FloatArray, rounds: int, rival: float | None) -> Iterator[Row]:
    """Each estimator, where its noise is calibrated anew and where it was before."""
    moment = MomentPerturbationRegressor(bounds=(0, 1), target_bounds=(-20, 20), waves=1)
    by_input = InputPerturbationRegressor(bounds=(0, 1), target_bounds=(-20, 20))
    fresh = count(1)

    def first_fit(estimator: MomentPerturbationRegressor | InputPerturbationRegressor) -> object:
        """With a promise that nobody has asked for yet."""
        return estimator.set_params(epsilon=1 + 1e-9 * next(fresh)).fit(X, y)

    measured = (
        partial(LinearRegression().fit, X, y),
        partial(first_fit, moment),
        partial(moment.fit, X, y),
        partial(first_fit, by_input),
        partial(by_input.fit, X, y),
    )
    # The threads of BLAS spin for a while after their work, at the cost of whoever is next.
    rest = partial(sleep, 0.1)
    turns = [turn for function in measured for turn in (rest, function)]
    plain, *ours = best_times(*turns, rounds=rounds)[1::2]
    yield Row("scikit-learn LinearRegression", plain, "itself", 1.0)
    others = {"scikit-learn": plain}
    if rival is not None:
        others["diffprivlib"] = rival
        yield Row("diffprivlib LinearRegression", rival, "scikit-learn", plain / rival)
    names = (
        "MomentPerturbationRegressor, first fit",
        "MomentPerturbationRegressor, again",
        "InputPerturbationRegressor, first fit",
        "InputPerturbationRegressor, again",
    )
    for name, seconds in zip(names, ours, strict=True):
        for other, time in others.items():
            yield Row(name, seconds, other, time / seconds)


def classifier_fits(
    X: FloatArray, y: FloatArray, rounds: int, rival: float | None
) -> Iterator[Row]:
    """The same for labels; scikit-learn and diffprivlib iterate, so two rounds must do for them."""
    labels = y > 0
    model = MomentPerturbationClassifier(bounds=(0, 1), classes=[False, True], waves=1)
    (plain,) = best_times(partial(LogisticRegression().fit, X, labels), rounds=2)
    yield Row("scikit-learn LogisticRegression", plain, "itself", 1.0)
    others = {"scikit-learn": plain}
    if rival is not None:
        others["diffprivlib"] = rival
        yield Row("diffprivlib LogisticRegression", rival, "scikit-learn", plain / rival)
    ours, _ = best_times(partial(model.fit, X, labels), partial(sleep, 0.1), rounds=rounds)
    for other, time in others.items():
        yield Row(type(model).__name__, ours, other, time / ours)


def diffprivlib_seconds(X: FloatArray, y: FloatArray, rounds: int) -> list[float]:
    """diffprivlib's best times, in an environment that is made if it is not there."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *REQUIREMENTS], check=True)
    with TemporaryDirectory() as folder:
        for name, array in (("X", X), ("y", y)):
            np.save(Path(folder) / f"{name}.npy", array)
        command = [str(python), "-c", RIVAL, folder, str(rounds)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return [float(line) for line in said.split()]


@click.command()
@click.option("--rows", default=2**20, show_default=True)
@click.option("--columns", default=14, show_default=True)
@click.option("--rounds", default=7, show_default=True, help="The best of so many counts.")
@click.option("--diffprivlib", is_flag=True, help="Measure it too, in its own environment.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write the rows here too.")
def main(rows: int, columns: int, rounds: int, diffprivlib: bool, path: Path | None) -> None:
    """Measure, and print how many times faster each is."""
    with Console().status("Measuring …"):
        X, y = make_table(rows, columns)
        linear, logistic = diffprivlib_seconds(X, y, rounds) if diffprivlib else (None, None)
        measured = [*fits(X, y, rounds, linear), *classifier_fits(X, y, rounds, logistic)]
    title = f"fit, n = {rows:,}, d = {columns}"
    show(measured, title=title, path=path, columns=("what", "time", "faster than", "times"))


if __name__ == "__main__":
    main()
