"""Do the intervals of waves cover? Residual waves for numbers, Newton's for labels.

`python lab/experiments/coverage.py --trials 150` writes coverage.csv and coverage.md
into build/coverage; finds the survey by BLURFIT_DATA. In each trial n people are drawn with
replacement, so that the coefficients of the whole population are the truth, and collected in the
waves that are planned for them. "Width" is the median over coefficients and trials of the standard
error over the ideal one: that of the same people without privacy.

* generated: `make_census`; its errors are skewed (1.3) and uneven, and its label is no logistic
  curve, so for labels the truth is the population's own best curve.
* skewed: four exponential columns, two Gaussian and two rare signs; errors of a gamma law.
* survey: the American Community Survey.
* curve: eight columns and labels that are drawn from a logistic curve.

Newton's wave gives far-out people less weight. Where labels are of no logistic curve, the best
curve with these weights is another one than without: "own curve" counts the coefficients of that
one, found from 2¹⁸ people, in the first 40 trials.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from rich.progress import track
from scipy.special import expit
from waves import People, least_squares, logistic, write

from blurfit.arrays import AnyArray, FloatArray
from blurfit.errors import InfeasibleError
from blurfit.learning.wave_inference import wave_estimates
from blurfit.simulation import make_census
from blurfit.simulation.waves import collect_in_waves
from blurfit.theory.gaussian import mu_of
from blurfit.theory.maps import GaugeMap, LogisticNewton, NewtonMap
from blurfit.theory.planning import Kind, Stages, Task, choose_plan
from blurfit_lab.datasets import load_acs

DELTA, ROWS = 0.01, 2**20
SETTINGS = ((1.0, 2**11), (0.1, 2**13), (1.0, 2**13), (0.1, 2**15), (1.0, 2**15), (0.1, 2**17))
OWN = 40  # trials in which a wave's own curve is found
ASKED = 20  # people of whom a mean response and a prediction are told, in each trial
HEADER = (
    "population",
    "task",
    "epsilon",
    "n",
    "waves",
    "refused",
    "coefficients",
    "least",
    "constant",
    "mean response",
    "one more person",
    "own curve",
    "width",
)


@dataclass(frozen=True, eq=False)
class Crowd:
    """Rows, the target, the kinds of the columns, and the whole population's coefficients."""

    name: str
    values: FloatArray
    target: FloatArray
    kinds: tuple[Kind, ...]
    task: Task
    truth: FloatArray


def crowd(name: str, values: FloatArray, target: FloatArray, kinds: tuple[Kind, ...]) -> Crowd:
    """With its truth, which a label's curve or a number's line is."""
    task: Task = "label" if set(np.unique(target[:1000])) <= {-1.0, 1.0} else "number"
    fit = logistic if task == "label" else least_squares
    return Crowd(name, values, target, kinds, task, fit(values, target))


def skewed() -> Crowd:
    """Exponential columns, rare signs, and errors of a gamma law (skew 1.6, kurtosis 7)."""
    generator = np.random.default_rng(5)
    columns = [
        generator.exponential(0.15, size=(ROWS, 4)) - 0.3,
        generator.normal(size=(ROWS, 2)) * 0.3,
        np.where(generator.random((ROWS, 2)) < 0.2, 1, -1),
    ]
    v = np.clip(np.column_stack(columns), -1, 1)
    error = (generator.gamma(1.5, size=ROWS) - 1.5) / math.sqrt(1.5) * 0.12
    beta = np.array([0.3, -0.2, 0.1, 0, 0.2, -0.1, 0.05, 0])
    y = np.clip(-0.3 + v @ beta + error, -1, 1)
    return crowd("skewed", v, y, ("numeric",) * 6 + ("sign",) * 2)


def curve() -> Crowd:
    """Labels of a logistic curve of eight columns, half of them skewed."""
    generator = np.random.default_rng(6)
    parts = [
        generator.exponential(0.25, size=(ROWS, 4)) - 0.5,
        generator.normal(size=(ROWS, 4)) / 3,
    ]
    v = np.clip(np.column_stack(parts), -1, 1)
    score = 0.3 + v @ np.array([1.5, -1, 0.5, 0, 1, -0.5, 0.3, 0])
    label = np.where(generator.random(ROWS) < expit(score), 1.0, -1.0)
    return crowd("curve", v, label, ("numeric",) * 8)


def crowds(names: tuple[str, ...]) -> Iterator[Crowd]:
    """Those that are asked for."""
    made: dict[str, Callable[[], Crowd]] = {"skewed": skewed, "curve": curve}
    for name in names:
        if name in made:
            yield made[name]()
            continue
        census = make_census(ROWS, seed=1) if name == "generated" else load_acs()
        people = People.of(name, census)
        assert people.number is not None
        yield crowd(name, people.values, people.number, people.kinds)
        yield crowd(name, people.values, people.label, people.kinds)


def ideal_errors(one: Crowd, rows: AnyArray) -> FloatArray:
    """Of the fit without privacy to the same people: the sandwich that holds for uneven spread."""
    x = np.column_stack([np.ones(len(rows)), one.values[rows]])
    score = x @ one.truth
    if one.task == "number":
        g, h = score - one.target[rows], np.ones(len(rows))
    else:
        g, h = LogisticNewton().slopes(score, one.target[rows])
    inverse = np.linalg.inv((x * h[:, None]).T @ x)
    middle = (x * (g**2)[:, None]).T @ x
    return np.asarray(np.sqrt(np.diagonal(inverse @ middle @ inverse)))


def own_curve(one: Crowd, chart: NewtonMap) -> FloatArray:
    """The best curve with the weights that a Newton wave gives people, by Newton's method."""
    rows = np.random.default_rng(0).integers(len(one.target), size=2**18)
    v, label = one.values[rows], one.target[rows]
    x, of_features = np.column_stack([np.ones(len(v)), v]), chart.scale[0]
    square = of_features**2 * (chart.whitening.features(v) ** 2).sum(axis=1) + chart.scale[1] ** 2
    weight, beta = 1 / np.maximum(1, square), one.truth
    for _ in range(5):
        g, h = LogisticNewton().slopes(x @ beta, label)
        beta = beta - np.linalg.solve((x * (weight * h)[:, None]).T @ x, x.T @ (weight * g))
    return np.asarray(beta)


def measure(one: Crowd, epsilon: float, n: int, trials: int) -> list[object] | None:
    """One line of the table, or None where no such wave is planned."""
    mu, p = mu_of(epsilon, DELTA), one.values.shape[1]
    plan: Stages = choose_plan(one.task, coefficients=p, count=n, mu=mu)
    if plan.kinds[-1] != ("newton" if one.task == "label" else "residual"):
        return None
    inside, widths, means, persons, own = [], [], [], [], []
    for trial in range(trials):
        generator = np.random.default_rng([2025, trial, n, round(10 * epsilon)])
        rows = generator.integers(len(one.target), size=n)
        got = collect_in_waves(
            one.values[rows], one.target[rows], one.kinds, plan=plan, mu=mu, generator=generator
        )
        try:
            chart = got.maps[-1]
            assert not isinstance(chart, GaugeMap)  # which comes before a wave that ends a plan
            found = wave_estimates(got.beliefs[-2], chart, got.later[-1]).whole
        except InfeasibleError:
            continue
        told = found.estimates()
        inside.append([e.lower < truth < e.upper for e, truth in zip(told, one.truth, strict=True)])
        widths.append([e.standard_error for e in told] / ideal_errors(one, rows))
        last = got.maps[-1]
        if trial < OWN and isinstance(last, NewtonMap):
            truth = own_curve(one, last)
            own.append([e.lower < value < e.upper for e, value in zip(told, truth, strict=True)])
        for other in generator.integers(len(one.target), size=ASKED):
            v, y = one.values[other], one.target[other]
            mean = found.mean_response(v)
            means.append(mean.lower < one.truth[0] + v @ one.truth[1:] < mean.upper)
            if one.task == "number":
                person = found.prediction(v)
                persons.append(person.lower < y < person.upper)
    head = [one.name, one.task, epsilon, n, " ".join(plan.kinds), trials - len(inside)]
    if not inside:
        return [*head, *["–"] * 7]
    share = np.mean(inside, axis=0)
    return [
        *head,
        f"{share[1:].mean():.3f}",
        f"{share[1:].min():.3f}",
        f"{share[0]:.3f}",
        f"{np.mean(means):.3f}",
        f"{np.mean(persons):.3f}" if persons else "",
        f"{np.mean(own):.3f}" if own else "",
        f"{np.median(widths):.2f}",
    ]


@click.command()
@click.option("--trials", default=150, show_default=True, help="Collections for each line.")
@click.option(
    "--population",
    "names",
    type=click.Choice(["generated", "skewed", "survey", "curve"]),
    multiple=True,
    default=("generated", "skewed", "curve", "survey"),
)
@click.option(
    "--task",
    "tasks",
    type=click.Choice(["number", "label"]),
    multiple=True,
    default=("number", "label"),
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build/coverage"),
    show_default=True,
)
def main(trials: int, names: tuple[str, ...], tasks: tuple[str, ...], out: Path) -> None:
    """Measure, and write after each line."""
    out.mkdir(parents=True, exist_ok=True)
    lines: list[list[object]] = []
    for one in crowds(names):
        if one.task not in tasks:
            continue
        for epsilon, n in track(SETTINGS, description=f"{one.name}, {one.task}"):
            line = measure(one, epsilon, n, trials)
            if line is None:
                continue
            lines.append(line)
            write(out, "coverage", HEADER, lines, trials)


if __name__ == "__main__":
    main()
