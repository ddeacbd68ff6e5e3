"""Do public defaults hold everywhere? Errors above the best model's, population by population.

    population × columns × n × ε × seed ─ methods ─► JSON lines ─► cells, verdicts

Only public names are used: the estimators with their defaults, `Plan` and a simulated collection.
So the same experiment runs on any version; `blurfit-lab coverage --against` compares two.
lab/docs/everywhere.md says what methods, losses, floors and verdicts are.
"""

import inspect
import math
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from scipy.special import expit, gammaln

from blurfit import Categorical, NotPrivateWarning, Plan, estimators
from blurfit.data import AnyArray, FloatArray
from blurfit.errors import InvalidValueError, Progress, silent
from blurfit.schema.schema import values as encoded
from blurfit.simulation import fit_in_waves
from blurfit.theory.gaussian import mu_of
from blurfit.theory.moments import Neighbours
from blurfit_lab.experiments import lines
from blurfit_lab.experiments.lines import CELL, Cell, both, judgeable, markdown, surely, worded
from blurfit_lab.experiments.populations import People, Rows, Task, ends, people

HOLDER, SEND, TWO, ONE, MEAN, INPUT = "holder", "send", "two", "one", "mean", "input"
METHODS = (HOLDER, SEND, ONE, MEAN)
RIVALS: dict[Task, tuple[str, ...]] = {  # those that keep (ε, δ) on any table, as good as they get
    "number": (
        *("AdaSSPRegressor", "BoostedAdaSSPRegressor", "GaussMixRegressor"),
        *("IterativeHessianMixingRegressor", "BinAggRegressor", "TukeyRegressor"),
        *("GeneralisedObjectivePerturbationRegressor", "GradientPerturbationRegressor"),
    ),
    "label": (
        *("GeneralisedObjectivePerturbationClassifier", "GradientPerturbationClassifier"),
        "ObjectivePerturbationClassifier",
    ),
    "count": (),
}
DATABASES = [("first", "https://first.example"), ("second", "https://second.example")]
BETTER: dict[str, Any] = {"accounting": "exact", "rule": "certified", "rounds": 20}
BINS = 15
LEAST_PROBABILITY, LEAST_RATE = 1e-4, 1e-2
TOLERANCE: dict[Task, float] = {"number": 0.05, "label": 0.001, "count": 0.001}


# ---- fitting


Promise = dict[str, Any]  # ε, δ and neighbours, as estimators and plans take them


class Fitted(NamedTuple):
    """What a method learned: predictions of the tested rows, and the model if it has one."""

    predicted: FloatArray
    model: Any = None


def fit(
    method: str,
    crowd: People,
    rows: Rows,
    epsilon: float,
    seed: int,
    neighbours: Neighbours = "replace",
) -> Fitted:
    """Fit by one method under (ε, 1/n²); a method's own refusal is a `BlurfitError`."""
    promise = {"epsilon": epsilon, "delta": len(rows.y) ** -2.0, "neighbours": neighbours}
    with warnings.catch_warnings():  # seeds are meant: nobody is protected by a comparison
        warnings.simplefilter("ignore", NotPrivateWarning)
        if method == MEAN:
            return _private_mean(crowd, rows, promise, seed)
        if method not in (HOLDER, SEND, TWO, ONE, INPUT):
            return _rival(method, crowd, rows, promise, seed)
        learn = _one_send if method in (SEND, TWO) else _held
        model = learn(method, crowd, rows, promise, seed)
    if crowd.task == "label":
        return Fitted(np.asarray(model.predict_proba(crowd.tested.X))[:, 1], model)
    return Fitted(np.asarray(model.predict(crowd.tested.X), dtype=float), model)


def _held(method: str, crowd: People, rows: Rows, promise: Promise, seed: int) -> Any:
    terms: dict[str, Any] = {**promise, "bounds": crowd.schema, "random_state": seed}
    if method == ONE:
        terms["waves"] = 1
    if crowd.task == "count" and method == HOLDER:
        terms["family"] = "poisson"
    mechanism = "Input" if method == INPUT else "Moment"
    kind = "Classifier" if crowd.task == "label" else "Regressor"
    family = getattr(estimators, f"{mechanism}Perturbation{kind}")
    return family(**terms).fit(rows.X, rows.y)


def _one_send(method: str, crowd: People, rows: Rows, promise: Promise, seed: int) -> Any:
    """Sent to one database all people are honest, and the noise is that of everybody together; two
    find the same sums, but by default their noise suffices if a tenth of the people collude.
    """
    other: dict[str, Any] = {"databases": DATABASES} if method == TWO else {"colluders": 0.0}
    terms: dict[str, Any] = {**promise, "quorum": len(rows.y), **other}
    plan = Plan.propose(crowd.schema, counts=crowd.task == "count", **terms)
    table = {str(name): np.asarray(column) for name, column in rows.X.items()}
    values = encoded(crowd.schema, {**table, crowd.schema.target.name: rows.y})
    return fit_in_waves(plan, values, np.random.default_rng(seed)).model


def _private_mean(crowd: People, rows: Rows, promise: Promise, seed: int) -> Fitted:
    low, high = ends(crowd.schema.target)
    reach = high - low if promise["neighbours"] == "replace" else (high - low) / 2
    mu = mu_of(promise["epsilon"], promise["delta"])
    noise = reach / mu * np.random.default_rng(seed).standard_normal()
    mean = (float(np.clip(rows.y, low, high).sum()) + noise) / len(rows.y)
    return Fitted(np.full(len(crowd.tested.y), min(high, max(low, mean))))


def _rival(method: str, crowd: People, rows: Rows, promise: Promise, seed: int) -> Fitted:
    """Rivals take numbers: each level but the first is a column of 0 and 1."""
    from blurfit_lab.experiments.contest import family_of

    family = family_of(method)
    if family is None:
        raise InvalidValueError(f"Expected a method or a rival, and {method!r} is none.")
    known = inspect.signature(family).parameters
    terms = {**promise, **BETTER, "random_state": seed, "bounds": _bounds(crowd)}
    if crowd.task == "number":
        terms["target_bounds"] = ends(crowd.schema.target)
    taken = {name: value for name, value in terms.items() if name in known}
    model = family(**taken).fit(design(crowd, rows.X)[:, 1:], rows.y)
    tested = _tested_design(crowd)[:, 1:]
    if crowd.task != "label":  # nobody would keep a prediction beyond the target's bounds
        low, high = ends(crowd.schema.target)
        return Fitted(np.clip(np.asarray(model.predict(tested), dtype=float), low, high), model)
    if ":" in method:
        return Fitted(np.asarray(model.predict_proba(tested))[:, 1], model)
    return Fitted(expit(tested @ np.ravel(model.coef_) + np.ravel(model.intercept_)), model)


def design(crowd: People, X: pd.DataFrame) -> FloatArray:
    """(1, v) in the user's own units, a column for each level but the first."""
    parts: list[AnyArray] = [np.ones((len(X), 1))]
    for one in crowd.schema.features:
        column = X[one.name].to_numpy()[:, None]
        if isinstance(one, Categorical):
            column = column == np.array(one.levels[1:])
        parts.append(column)
    return np.hstack(parts).astype(float)


def _bounds(crowd: People) -> tuple[list[float], list[float]]:
    found: list[tuple[float, float]] = []
    for one in crowd.schema.features:
        found += [ends(one)] * (len(one.levels) - 1 if isinstance(one, Categorical) else 1)
    return [low for low, _ in found], [high for _, high in found]


# ---- scoring


def loss_of(task: Task, predicted: FloatArray, y: AnyArray) -> float:
    """Mean squared error, log loss, or half the Poisson deviance up to a constant of y."""
    if task == "number":
        return float(np.mean((predicted - y) ** 2))
    if task == "label":
        p = np.clip(predicted, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        return float(-np.mean(np.log(np.where(y, p, 1 - p))))
    rate = np.maximum(predicted, LEAST_RATE)
    return float(np.mean(rate - y * np.log(rate) + gammaln(y + 1)))


def best_fit(task: Task, x: FloatArray, y: AnyArray) -> FloatArray:
    """Coefficients of (1, v) by least squares or maximum likelihood, without privacy."""
    if task == "number":
        return np.asarray(np.linalg.lstsq(x, y, rcond=None)[0])
    found = np.zeros(x.shape[1])
    found[0] = math.log(y.mean() / (1 - y.mean())) if task == "label" else math.log(y.mean())
    for _ in range(50):  # Newton's steps, halved while the likelihood falls
        score = x @ found
        rate, weight = curve(task, score)
        step = np.linalg.lstsq((x * weight[:, None]).T @ x, x.T @ (y - rate), rcond=None)[0]
        before, move, share = _deviance(task, score, y), x @ step, 1.0
        while share > 1e-3 and _deviance(task, score + share * move, y) > before:
            share /= 2
        found = found + share * step
        if np.linalg.norm(step) <= 1e-9 * (1 + np.linalg.norm(found)):
            break
    return found


def curve(task: Task, score: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What is expected at a score, a number, a probability or a rate; and how fast it grows."""
    if task == "number":
        return score, np.ones(len(score))
    rate = np.asarray(expit(score) if task == "label" else np.exp(np.minimum(score, 50)))
    return rate, rate * (1 - rate) if task == "label" else rate


def _deviance(task: Task, score: FloatArray, y: AnyArray) -> float:
    """−log likelihood a row, up to what y alone decides."""
    grown = np.logaddexp(0, score) if task == "label" else np.exp(np.minimum(score, 50))
    return float(np.mean(grown - y * score))


def calibration_error(probability: FloatArray, label: AnyArray) -> float:
    """Σ weight·|share of +1 − mean probability| over bins of equal width.

    >>> calibration_error(np.array([0.1, 0.1, 0.9, 0.9]), np.array([False, True, True, True]))
    0.25
    """
    places = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
    gaps = np.bincount(places, weights=label - probability, minlength=BINS)
    return round(float(np.abs(gaps).sum() / len(label)), 12)


class Floor(NamedTuple):
    """The best that a model can do on the tested rows."""

    loss: float
    variance: float
    accuracy: float


@lru_cache(maxsize=8)
def floor_of(crowd: People) -> Floor:
    """Fit the tested rows themselves."""
    y, x = crowd.tested.y, _tested_design(crowd)
    predicted, _ = curve(crowd.task, x @ best_fit(crowd.task, x, y))
    right = float(np.mean((predicted > 0.5) == y)) if crowd.task == "label" else math.nan
    return Floor(loss_of(crowd.task, predicted, y), float(np.var(y)), right)


@lru_cache(maxsize=8)
def _tested_design(crowd: People) -> FloatArray:
    return design(crowd, crowd.tested.X)


# ---- running


def run(
    task: Task,
    cells: Sequence[Cell],
    seeds: Iterable[int],
    methods: Sequence[str],
    out: Path,
    tell: Progress = silent,
    neighbours: Neighbours = "replace",
    find: Callable[[Cell, Task], People] = lambda cell, task: people(cell.population, task, cell.d),
) -> None:
    """Compute what is missing in `out`, all cells of one seed before the next seed."""

    def prepare(cell: Cell, seed: int) -> lines.Measured:
        crowd, rows = find(cell, task).split(cell.n, seed)
        return lambda method: _scored(method, crowd, rows, cell.epsilon, seed, neighbours)

    wanted = [(cell, seed) for seed in seeds for cell in cells]
    lines.run(task, wanted, methods, out, prepare, tell)


def _scored(
    method: str, crowd: People, rows: Rows, epsilon: float, seed: int, neighbours: Neighbours
) -> dict[str, Any]:
    """Return the seconds and the errors of one fit."""
    floor, task, begin = floor_of(crowd), crowd.task, time.process_time()
    found = fit(method, crowd, rows, epsilon, seed, neighbours)
    seconds = round(time.process_time() - begin, 4)
    loss = loss_of(task, found.predicted, crowd.tested.y)
    excess = (loss - floor.loss) / (floor.variance if task == "number" else 1.0)
    told = {"seconds": seconds, "loss": loss, "floor": floor.loss, "excess": excess}
    if task == "label":
        right = float(np.mean((found.predicted > 0.5) == crowd.tested.y))
        told["accuracy"] = floor.accuracy - right
        told["calibration"] = calibration_error(found.predicted, crowd.tested.y)
    return told


# ---- tables


def excess_table(fits: pd.DataFrame, value: str = "excess") -> pd.DataFrame:
    """The mean over seeds for each cell and method."""
    return fits.pivot_table(index=CELL, columns="method", values=value, sort=False)


def verdicts(
    fits: pd.DataFrame, method: str, references: Sequence[str], task: Task
) -> pd.DataFrame:
    """Each cell: the better reference, the ratio of mean losses to it, and a paired verdict.

    For labels and counts `ratio` is the difference.
    """
    found = []
    for cell, part, known in judgeable(fits, method, references):
        best = min(known, key=lambda one: part[one].mean())
        mine, theirs = both(part, method, best)
        gaps, (start, size) = mine - theirs, unit(task, theirs)
        verdict = worded(surely(gaps - size * TOLERANCE[task]), gaps)
        found.append([*cell, best, start + gaps.mean() / size, len(gaps), verdict])
    return pd.DataFrame(found, columns=[*CELL, "best", "ratio", "seeds", "verdict"])


def unit(task: Task, losses: FloatArray) -> tuple[float, float]:
    """What a gap is added to and divided by: numbers are told as ratios, others as differences."""
    return (1.0, float(losses.mean())) if task == "number" else (0.0, 1.0)


def report(fits: pd.DataFrame, task: Task) -> str:
    """The tables of one task: all cells, and verdicts with the cells that lose."""
    parts = [markdown(excess_table(fits).reset_index())]
    more = {"accuracy": "Accuracy below the maximum likelihood's:"}
    for value, words in (more | {"calibration": "Expected calibration error:"}).items():
        if task == "label" and value in fits:
            parts += [words, markdown(excess_table(fits, value).reset_index())]
    if "refused" in fits:
        refused = fits[fits.refused.notna()].groupby([*CELL, "method"], sort=False).size()
        if len(refused):
            parts.append(markdown(refused.rename("refused").reset_index()))
    for method in (HOLDER, SEND):
        for others in ((ONE, MEAN), sorted(set(fits.method) - {*METHODS, TWO, INPUT})):
            found = verdicts(fits, method, others, task)
            if len(found):
                parts.append(_told(found, method, others, task))
    return "\n\n".join(parts)


def _told(found: pd.DataFrame, method: str, others: Sequence[str], task: Task) -> str:
    words = found.verdict.value_counts()
    counts = ", ".join(f"{name} {words.get(name, 0)}" for name in ("wins", "even", "loses"))
    whole = f"mean difference {found.ratio.mean():+.4f}"
    if task == "number":
        whole = f"geometric mean of ratios {math.exp(np.log(found.ratio).mean()):.3f}"
    text = f"**{method}** against the better of {', '.join(others)}: {counts}; {whole}."
    limit = 1 + TOLERANCE[task] if task == "number" else TOLERANCE[task]
    worse = found[(found.ratio > limit) | (found.verdict == "loses")]
    return text if worse.empty else f"{text} Above the tolerance:\n\n{markdown(worse)}"
