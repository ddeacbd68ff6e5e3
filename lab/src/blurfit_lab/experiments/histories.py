"""Many rows of one person, and times until an event: errors against those without privacy.

| people | what they are |
| --- | --- |
| diary | 8 rows of 5 features; a level of their own of each, with which the intercept goes |
| exits | 5 features of ±1, the last yes or no; hazard 0.45 + β·v/√5; a fifth stops being observed |

Rows of a diary are independent, or follow each other (AR 0.7). Of hazards β is told.

Truth is what the estimator without privacy gives to 200,000 people (diary), or β itself (exits).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError, Progress, silent
from blurfit.estimators import MomentPerturbationRegressor, MomentPerturbationSurvival

ROWS, FEATURES, BANDS = 8, 5, 8
SLOPES = np.array([0.3, -0.2, 0.15, 0.1, 0.0])  # of hazards; the last, of yes and no, is none
_TRUTH = 200_000


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
    y = x @ np.linspace(-0.2, 0.5, FEATURES) + level[:, None] + 0.25 * series(people, ROWS)
    return x, np.clip(y, -1, 1)


def within(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return least squares of differences from people's means, without privacy."""
    dx, dy = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    X = dx.reshape(-1, x.shape[2])
    return np.asarray(np.linalg.solve(X.T @ X, X.T @ dy.ravel()))


def diaries(
    sizes: Sequence[int], epsilons: Sequence[float], trials: int, progress: Progress = silent
) -> pd.DataFrame:
    """Return a row for each number of people, ε and dependence of rows."""
    found = []
    for serial, spread in ((0.0, 1.0), (0.0, 0.5), (0.7, 1.0), (0.7, 0.5)):
        truth = within(*diary(_TRUTH, serial, 10**6))
        for n in sizes:
            for epsilon in epsilons:
                errors, plain, inside, refused = [], [], [], 0
                for trial in range(_fewer(trials, n)):
                    x, y = diary(n, serial, trial)
                    plain.append(within(x, y) - truth)
                    model = MomentPerturbationRegressor(
                        epsilon=epsilon,
                        bounds=(-1, 1),
                        target_bounds=(-1, 1),
                        effects="within",
                        spread=spread,
                        random_state=trial,
                    )
                    whose = np.repeat(np.arange(n), ROWS)
                    model.fit(x.reshape(-1, FEATURES), y.ravel(), groups=whose)
                    try:
                        told = model.estimates()[1:]
                    except InfeasibleError:
                        refused += 1
                        continue
                    miss = np.array([one.value for one in told]) - truth
                    error = np.array([one.standard_error for one in told])
                    inside.append(np.abs(miss) < 1.96 * error)
                    errors.append(miss)
                    progress(trial, trials)
                found.append(
                    {
                        "AR": serial,
                        "spread": spread,
                        "n": n,
                        "ε": epsilon,
                        "trials": len(errors),
                        "without privacy": _size(plain),
                        "private": _size(errors),
                        "ratio": _size(errors) / _size(plain),
                        "coverage": np.mean(inside) if inside else np.nan,
                        "refused": refused,
                    }
                )
    return pd.DataFrame(found)


def exits(
    people: int, seed: int, slopes: FloatArray = SLOPES
) -> tuple[FloatArray, Any, FloatArray]:
    """Return features of ±1, scikit-survival's y, and hazards."""
    generator = np.random.default_rng(seed)
    v = generator.uniform(-1, 1, (people, FEATURES))
    v[:, 4] = np.sign(v[:, 4])
    hazard = 0.45 + v @ slopes / np.sqrt(FEATURES)
    time = generator.exponential(size=people) / hazard
    until = np.where(generator.random(people) < 0.8, 1.0, generator.uniform(0, 1, people))
    y = np.zeros(people, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = time <= until, np.minimum(time, until)
    return v, y, hazard


def survival(
    sizes: Sequence[int], epsilons: Sequence[float], trials: int, progress: Progress = silent
) -> pd.DataFrame:
    """Return a row for each number of people and ε; the log-rank test is of a column that does
    nothing.
    """
    scale, found = np.sqrt(FEATURES), []
    for n in sizes:
        for epsilon in epsilons:
            cells: dict[str, list[Any]] = {name: [] for name in ("adds", "plain", "in", "curve")}
            cells |= {"curve in": [], "null": []}
            for trial in range(_fewer(trials, n)):
                v, y, hazard = exits(n, trial)
                plain = _lin_ying(v, y)
                model = MomentPerturbationSurvival(
                    epsilon=epsilon, bounds=_BOUNDS, horizon=1.0, bands=BANDS, random_state=trial
                )
                try:
                    model.fit(_frame(v), y)
                except InfeasibleError:
                    continue
                told = model.estimates()
                values = np.array([one.value for one in told]) / _UNITS
                error = np.array([one.standard_error for one in told]) / _UNITS
                cells["adds"].append(scale * (values - plain[0]))
                cells["plain"].append(scale * plain[0] - SLOPES)
                cells["in"].append(np.abs(scale * values - SLOPES) < 1.96 * scale * error)
                curve = model.model_.curve()["everybody"]  # type: ignore[union-attr]
                cells["curve"].append(curve.survival[1:] - plain[1])
                lower, upper = curve.interval()
                truth = np.exp(-hazard[:, None] * model.times_[1:]).mean(axis=0)
                cells["curve in"].append((lower[1:] < truth) & (truth < upper[1:]))
                cells["null"].append(model.model_.log_rank("x4").p_value < 0.05)  # type: ignore[union-attr]
                progress(trial, trials)
            found.append(
                {
                    "n": n,
                    "ε": epsilon,
                    "trials": len(cells["in"]),
                    "without privacy": _size(cells["plain"]),
                    "privacy adds": _size(cells["adds"]),
                    "coverage": np.mean(cells["in"]),
                    "curve adds": _size(cells["curve"]),
                    "its coverage": np.mean(cells["curve in"]),
                    "log-rank rejects": np.mean(cells["null"]),
                }
            )
    return pd.DataFrame(found)


_BOUNDS = {f"x{place}": (-1, 1) for place in range(FEATURES)} | {"x4": ["no", "yes"]}
_UNITS = np.array([1.0, 1.0, 1.0, 1.0, 2.0])  # from no to yes is from −1 to 1


def _frame(v: FloatArray) -> Any:
    frame = pd.DataFrame(v, columns=list(_BOUNDS))
    return frame.assign(x4=np.where(v[:, 4] > 0, "yes", "no"))


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
