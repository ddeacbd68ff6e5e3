"""Many rows of one person, and times until an event: errors against those without privacy.

lab/docs/everywhere.md says who the people are and what the truth is. `persons` compares by public
defaults with the nearest published methods: *slopes* are fixed effects of diaries, *curve* is the
share that survives, at the end of each band. Errors are root mean squares over trials and
coordinates; a method *leads* where its squared errors are surely (paired, 99 %) below those of
every other private one. What is refused is not *told*, and left out.
"""

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError, NotPrivateWarning, Progress, silent
from blurfit.estimators import MomentPerturbationRegressor, MomentPerturbationSurvival
from blurfit.learning.inference import Estimate
from blurfit_lab.experiments.lines import Collections, measured, surely
from blurfit_lab.rivals.histories import noisy_curve, own_regressions, persons_adassp

ROWS, FEATURES, BANDS = 8, 5, 8
KINDS = "diary", "AR 0.7", "unequal", "uneven", "skewed"
BETA = np.linspace(-0.2, 0.5, FEATURES)  # of rows
SLOPES = np.array([0.3, -0.2, 0.15, 0.1, 0.0])  # of hazards; the last, of yes and no, is none
_TRUTH = 200_000
Rows = tuple[FloatArray, FloatArray, Any]  # rows, targets, and whose they are


def diary(people: int, serial: float, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return rows (people, 8, 5) and targets (people, 8)."""
    generator = np.random.default_rng(seed)

    def series(*shape: int) -> FloatArray:
        z = generator.normal(size=shape)
        for t in range(1, shape[1]):
            z[:, t] = serial * z[:, t - 1] + np.sqrt(1 - serial**2) * z[:, t]
        return z

    own = 0.3 * generator.normal(size=(people, FEATURES))
    x = np.clip(own[:, None] + 0.3 * series(people, ROWS, FEATURES), -1, 1)
    level = 0.2 * generator.normal(size=people) + 0.6 * own[:, 0]
    y = x @ BETA + level[:, None] + 0.25 * series(people, ROWS)
    return x, np.clip(y, -1, 1)


def differences(rows: Rows) -> FloatArray:
    """Return least squares of differences from each person's mean. Each person has one vote."""
    x, y, whose = rows
    each = np.bincount(whose)
    table = np.column_stack([x, y])
    means = np.column_stack([np.bincount(whose, one) / each for one in table.T])
    own = (table - means[whose]) * each[whose, None] ** -0.5
    found: FloatArray = np.linalg.lstsq(own[:, :-1], own[:, -1], rcond=None)[0]
    return found


def days(kind: str, people: int, seed: int) -> Rows:
    """Return the rows of people of one kind."""
    if kind in ("diary", "AR 0.7"):
        x, y = diary(people, 0.7 if kind == "AR 0.7" else 0.0, seed)
        return x.reshape(-1, FEATURES), y.ravel(), np.repeat(np.arange(people), ROWS)
    generator = np.random.default_rng(seed)
    rows = generator.integers(1, 13, people) if kind == "unequal" else np.full(people, 4)
    whose = np.repeat(np.arange(people), rows)
    shape = len(whose), FEATURES
    own = 0.3 * generator.normal(size=(people, FEATURES))
    sizes = np.array([0.05, 0.1, 0.2, 0.3, 0.4]) if kind == "uneven" else 0.25
    change, error = generator.normal(size=shape), 0.2 * generator.normal(size=len(whose))
    if kind == "uneven":
        restless = np.exp(0.4 * generator.normal(size=people))[whose]
        change, error = change * restless[:, None], error * restless
    if kind == "skewed":
        change = generator.exponential(size=shape) - 1
        error = 0.2 * (generator.exponential(size=len(whose)) - 1)
    x = np.clip(own[whose] + sizes * change, -1, 1)
    if kind == "skewed":  # and a yes or no that changes rarely
        x[:, 4] = np.where(generator.random(len(whose)) < 0.1, 1.0, -1.0) * np.sign(own[whose, 4])
    level = 0.2 * generator.normal(size=people) + 0.6 * own[:, 0]
    y = x @ BETA + level[whose] + error
    return x, np.clip(y, -2, 2), whose


def diaries(asked: Collections, progress: Progress = silent) -> pd.DataFrame:
    """Return a row for each kind of people, their number and ε, of fixed effects."""

    def cell(kind: str, spread: float, n: int, epsilon: float) -> dict[str, Any]:
        told, truth = _Told(), _within_of(kind, _TRUTH)
        most = 1 if kind in KINDS[:2] else 2
        for trial in range(_fewer(asked.trials, n)):
            rows = days(kind, n, trial)
            told.plain.append(differences(rows) - truth)
            model = _regressor(epsilon, trial, most, spread=spread)
            told.add(model.fit(*rows).estimates, truth)
        return told.row("trials", *_OF_ROWS)

    kinds = (*((kind, 1.0) for kind in KINDS), ("diary", 0.5), ("AR 0.7", 0.5))
    cells = [(*kind, *rest) for kind, *rest in asked.cells(kinds)]
    return measured(["people", "spread", "n", "ε"], cells, cell, progress)


@lru_cache
def _within_of(kind: str, people: int) -> FloatArray:
    return differences(days(kind, people, 10**6))


def _regressor(
    epsilon: float, seed: int, most: int, **parameters: Any
) -> MomentPerturbationRegressor:
    parameters |= {"epsilon": epsilon, "effects": "within", "random_state": seed}
    return MomentPerturbationRegressor(bounds=(-1, 1), target_bounds=(-most, most), **parameters)


class _Told:
    """Errors of what some fits tell, with and without privacy."""

    def __init__(self) -> None:
        self.plain, self.errors, self.adds = (list[FloatArray]() for _ in range(3))
        self.inside, self.refused = list[Any](), 0

    def add(
        self,
        ask: Callable[[], Sequence[Estimate]],
        truth: FloatArray,
        plain: FloatArray | None = None,
        units: FloatArray | float = 1.0,
    ) -> bool:
        """Add the errors of one fit, beside those of the plain one; say whether it tells any."""
        try:
            told = list(ask())[-len(truth) :]  # without an intercept
        except InfeasibleError:
            self.refused += 1
            return False
        values = units * np.array([one.value for one in told])
        wide = 1.96 * units * np.array([one.standard_error for one in told])
        self.errors.append(values - truth)
        self.inside.append(np.abs(values - truth) < wide)
        if plain is not None:
            self.plain.append(plain - truth)
            self.adds.append(values - plain)
        return True

    def row(self, *names: str) -> dict[str, Any]:
        """Return what is told of all of them, by name."""
        told = {
            "trials": len(self.errors),
            "without privacy": _size(self.plain),
            "private": _size(self.errors),
            "privacy adds": _size(self.adds),
            "ratio": _size(self.errors) / _size(self.plain),
            "coverage": np.mean(self.inside) if self.inside else np.nan,
            "worst": np.mean(self.inside, axis=0).min() if self.inside else np.nan,
            "refused": self.refused,
        }
        return {name: told[name] for name in names}


_OF_ROWS = "without privacy", "private", "ratio", "coverage", "worst", "refused"


def exits(
    people: int, seed: int, slopes: FloatArray = SLOPES
) -> tuple[FloatArray, Any, FloatArray]:
    """Return features of ±1, scikit-survival's y, and hazards."""
    generator = np.random.default_rng(seed)
    v = generator.uniform(-1, 1, (people, FEATURES))
    v[:, 4] = np.sign(v[:, 4])
    hazard = 0.45 + v @ slopes / np.sqrt(FEATURES)
    return v, _observed(generator.exponential(size=people) / hazard, generator), hazard


def _observed(time: FloatArray, generator: np.random.Generator) -> Any:
    """Return scikit-survival's y of people of whom a fifth stops being observed."""
    people = len(time)
    until = np.where(generator.random(people) < 0.8, 1.0, generator.uniform(0, 1, people))
    y = np.zeros(people, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = time <= until, np.minimum(time, until)
    return y


def survival(asked: Collections, progress: Progress = silent) -> pd.DataFrame:
    """Return a row for each number of people and ε; the log-rank test is of a column that does
    nothing.
    """
    units = np.sqrt(FEATURES) / _UNITS

    def cell(n: int, epsilon: float) -> dict[str, Any]:
        told = _Told()
        curves, held, rejects = [], [], []
        for trial in range(_fewer(asked.trials, n)):
            v, y, hazard = exits(n, trial)
            slopes, survived = _lin_ying(v, y)
            model: Any = MomentPerturbationSurvival(
                epsilon=epsilon, bounds=_BOUNDS, horizon=1.0, bands=BANDS, random_state=trial
            )
            plain = np.sqrt(FEATURES) * slopes
            X = _columns(v).assign(x4=np.where(v[:, 4] > 0, "yes", "no"))
            if not told.add(partial(_estimated, model, X, y), SLOPES, plain, units):
                continue
            curve = model.model_.curve()["everybody"]
            curves.append(curve.survival[1:] - survived)
            lower, upper = curve.interval()
            truth = np.exp(-hazard[:, None] * model.times_[1:]).mean(axis=0)
            held.append((lower[1:] < truth) & (truth < upper[1:]))
            rejects.append(model.model_.log_rank("x4").p_value < 0.05)
        of_curves = {"curve adds": _size(curves), "its coverage": np.mean(held)}
        found = told.row("trials", "without privacy", "privacy adds", "coverage")
        return found | of_curves | {"log-rank rejects": np.mean(rejects)}

    return measured(["n", "ε"], asked.cells(), cell, progress)


def _estimated(model: Any, X: pd.DataFrame, y: Any) -> Sequence[Estimate]:
    found: Sequence[Estimate] = model.fit(X, y).estimates()
    return found


_BOUNDS = {f"x{place}": (-1, 1) for place in range(FEATURES)} | {"x4": ["no", "yes"]}
_UNITS = np.array([1.0, 1.0, 1.0, 1.0, 2.0])  # from no to yes is from −1 to 1


def _columns(v: FloatArray) -> pd.DataFrame:
    return pd.DataFrame(v, columns=list(_BOUNDS))


def _lin_ying(v: FloatArray, y: Any) -> tuple[FloatArray, FloatArray]:
    """Return slopes and the curve at the ends of bands, without privacy."""
    A, b, hazard = np.zeros((FEATURES, FEATURES)), np.zeros(FEATURES), []
    for start in np.arange(BANDS) / BANDS:
        at_risk = np.clip(y["time"] - start, 0, 1 / BANDS)
        mean = at_risk @ v / at_risk.sum()
        A += ((v - mean) * at_risk[:, None]).T @ (v - mean)
        now = y["event"] & (y["time"] > start) & (y["time"] <= start + 1 / BANDS)
        b += (v[now] - mean).sum(axis=0)
        hazard.append(now.sum() / at_risk.sum() / BANDS)
    return np.asarray(np.linalg.solve(A, b)), np.exp(-np.cumsum(hazard))


def _size(errors: Sequence[FloatArray]) -> float:
    return float(np.sqrt(np.mean(np.square(errors)))) if len(errors) else float("nan")


def _fewer(trials: int, people: int) -> int:
    """As many trials as small collections have, fewer of large ones."""
    return max(4, trials * 2**13 // max(people, 2**13))


# ---- beside the nearest published methods


DELTA = 1e-6
PLAIN, OURS = "no privacy", "holder"


def persons(asked: Collections, out: Path, progress: Progress = silent) -> None:
    """Write a line for each number of people, ε and method."""
    cells, trials = list(asked.cells((_slopes, _curves))), asked.trials
    found: list[dict[str, Any]] = []
    for place, (ask, n, epsilon) in enumerate(cells):
        with warnings.catch_warnings():  # seeds are meant: nobody is protected by a comparison
            warnings.simplefilter("ignore", NotPrivateWarning)
            misses = [ask(n, epsilon, seed) for seed in range(trials)]
        errors = pd.DataFrame(misses).map(lambda miss: float(np.mean(miss**2)))
        for method, squares in errors.items():
            others = errors.drop(columns=[PLAIN, method], errors="ignore")
            gaps = others.sub(squares, axis=0).dropna()
            leads = method != PLAIN and all(surely(gaps[one].to_numpy()) for one in gaps)
            line = {"what": ask.__name__[1:].replace("curves", "curve"), "n": n, "ε": epsilon}
            line |= {"method": method, "told": f"{squares.count()} of {trials}"}
            found.append({**line, "error": float(np.sqrt(squares.mean())), "leads": leads})
        progress(place + 1, len(cells))
    out.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(found).to_json(out, orient="records", lines=True, force_ascii=False)


def _slopes(n: int, epsilon: float, seed: int) -> dict[str, FloatArray]:
    """Return how far each method's fixed effects are off, from one draw of people."""
    x, y = diary(n, 0.0, seed)
    model = _regressor(epsilon, seed, 1, delta=DELTA)
    rows = x.reshape(-1, FEATURES), y.ravel(), np.repeat(np.arange(n), ROWS)
    model.fit(*rows)
    terms = (epsilon, DELTA, np.random.default_rng(seed))
    found = {
        PLAIN: differences(rows),
        OURS: np.asarray(model.coef_),
        "own regressions": own_regressions(x, y, *terms),
        "AdaSSP of persons": persons_adassp(x, y, *terms),
    }
    return {method: one - _within_of("diary", _TRUTH) for method, one in found.items()}


def _curves(n: int, epsilon: float, seed: int) -> dict[str, FloatArray]:
    """Return each method's curve less the true one, from one draw of people."""
    v, y, hazard = exits(n, seed)
    model: Any = MomentPerturbationSurvival(
        epsilon=epsilon, delta=DELTA, bounds=(-1, 1), horizon=1.0, bands=BANDS, random_state=seed
    )
    truth = np.exp(-hazard[:, None] * np.arange(1, BANDS + 1) / BANDS).mean(axis=0)
    generator = np.random.default_rng(seed)
    plain, noisy = (
        noisy_curve(y["time"], y["event"], BANDS, one, DELTA, generator) - truth
        for one in (1e6, epsilon)
    )
    ours = np.full(BANDS, np.nan)
    with suppress(InfeasibleError):  # of coefficients; the release may still tell the curve
        model.fit(v, y)
    with suppress(InfeasibleError):
        ours = model.moments_.survival().curve()["everybody"].survival[1:] - truth
    return {PLAIN: plain, OURS: ours, "noisy counts": noisy}
