"""Many rows of one person, and times until an event: errors against those without privacy.

| people | what they are |
| --- | --- |
| diary | 8 rows of 5 features; a level of their own of each, with which the intercept goes |
| exits | 5 features of ±1, the last yes or no; hazard 0.45 + β·v/√5; a fifth stops being observed |
| leavers | 5 features of ±1; log-odds of leaving in each of 6 bands; a fifth stops being observed |

Rows of a diary are independent, or follow each other (AR 0.7). Of hazards β is told. Leavers have
log-odds α_k + β·v ("true"), or leave for reasons that are no sum ("bent").

Truth is what the estimator without privacy gives to 200,000 people (diary) or to a million (bent
leavers), or β itself (exits, true leavers).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from scipy.special import expit

from blurfit import Numeric, Plan, Schema, TimeToEvent
from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError, Progress, silent
from blurfit.estimators import MomentPerturbationRegressor, MomentPerturbationSurvival
from blurfit.learning.inference import Estimate
from blurfit.schema.vectors import values
from blurfit.simulation.waves import course_in_waves

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


PERIODS = 6
MANY = 2**20  # people whose estimate without privacy is the truth
LOG_ODDS = np.array([0.6, -0.4, 0.3, 0.2, 0.0])


def leavers(people: int, seed: int, *, bent: bool = False) -> tuple[FloatArray, Any]:
    """Return features of ±1 and scikit-survival's y, by discrete-time hazards."""
    generator = np.random.default_rng(seed)
    v = generator.uniform(-1, 1, (people, FEATURES))
    score = v @ LOG_ODDS
    if bent:
        score = 1.5 * np.where(v[:, 0] > 0.3, v[:, 1], -0.5) + v[:, 2] ** 2 + 0.3 * v[:, 3]
    p = expit(score[:, None] - 2.6 + 0.1 * np.arange(PERIODS))
    happened = generator.random(p.shape) < p
    event, band = happened.any(axis=1), happened.argmax(axis=1)
    time = np.where(event, (band + generator.random(people)) / PERIODS, 1.0)
    until = np.where(generator.random(people) < 0.8, 1.0, generator.uniform(0, 1, people))
    y = np.zeros(people, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = event & (time <= until), np.minimum(time, until)
    return v, y


def hazards(
    sizes: Sequence[int], epsilons: Sequence[float], trials: int, progress: Progress = silent
) -> pd.DataFrame:
    """Return a row for each law, number of people, ε, and way of spending: waves of different
    people, as a plan has them, or of all rows, as whoever holds them.
    """
    found = []
    for bent in (False, True):
        truth = likelihood(*leavers(MANY, 10**6, bent=True)) if bent else LOG_ODDS
        for n in sizes:
            for epsilon in epsilons:
                for way in (_one_send, _held):
                    cells: dict[str, list[Any]] = {name: [] for name in ("adds", "plain", "all")}
                    cells |= {"in": []}
                    for trial in range(_fewer(trials, n)):
                        v, y = leavers(n, trial, bent=bent)
                        plain = likelihood(v, y)
                        progress(trial, trials)
                        try:
                            told = way(v, y, epsilon, trial)
                        except InfeasibleError:
                            continue
                        slopes = np.array([one.value for one in told])
                        error = np.array([one.standard_error for one in told])
                        cells["plain"].append(plain - truth)
                        cells["adds"].append(slopes - plain)
                        cells["all"].append(slopes - truth)
                        cells["in"].append(np.abs(slopes - truth) < 1.96 * error)
                    found.append(
                        {
                            "law": "bent" if bent else "true",
                            "waves": "of people" if way is _one_send else "of all rows",
                            "n": n,
                            "ε": epsilon,
                            "trials": len(cells["in"]),
                            "without privacy": _size(cells["plain"]),
                            "private": _size(cells["all"]),
                            "privacy adds": _size(cells["adds"]),
                            "coverage": np.mean(cells["in"]) if cells["in"] else np.nan,
                            "refused": _fewer(trials, n) - len(cells["in"]),
                        }
                    )
    return pd.DataFrame(found)


_LEAVERS = Schema(
    [Numeric(f"x{place}", -1, 1) for place in range(FEATURES)],
    TimeToEvent("time", "event", horizon=1.0, bands=PERIODS),
)


def _one_send(v: FloatArray, y: Any, epsilon: float, seed: int) -> list[Estimate]:
    """Everybody sends once, in one of three waves."""
    plan = Plan.propose(_LEAVERS, waves=3, epsilon=epsilon, delta=1e-6, quorum=len(v))
    table = {f"x{place}": v[:, place] for place in range(FEATURES)}
    rows = values(_LEAVERS, {**table, "time": y["time"], "event": y["event"]})
    course = course_in_waves(plan, rows, np.random.default_rng(seed))
    return course.survival().estimates()


def _held(v: FloatArray, y: Any, epsilon: float, seed: int) -> list[Estimate]:
    """All rows are in every wave."""
    model = MomentPerturbationSurvival(
        epsilon=epsilon, bounds=_LEAVERS, model="logistic", random_state=seed
    )
    frame = pd.DataFrame(v, columns=[one.name for one in _LEAVERS.features[:FEATURES]])
    return model.fit(frame, y).estimates()


def likelihood(v: FloatArray, y: Any) -> FloatArray:
    """Return slopes of the discrete-time logistic likelihood without privacy, by Newton's steps.

    Whoever stops being observed within a band counts there with the part that they were seen in.
    """
    at = y["time"] * PERIODS
    here = np.minimum(at.astype(int), PERIODS - 1)[:, None] == np.arange(PERIODS)
    happened = here & y["event"][:, None]
    seen = np.where(happened, 1.0, np.clip(at[:, None] - np.arange(PERIODS), 0, 1))
    found, size = np.full(PERIODS + FEATURES, -2.0), PERIODS
    found[size:] = 0.0
    for _ in range(12):
        p = expit(found[:size] + (v @ found[size:])[:, None])
        h, left = seen * p * (1 - p), happened - seen * p
        cross = h.T @ v
        slopes = (v * h.sum(axis=1)[:, None]).T @ v
        A = np.block([[np.diag(h.sum(axis=0)), cross], [cross.T, slopes]])
        found += np.linalg.solve(A, np.append(left.sum(axis=0), left.sum(axis=1) @ v))
    return found[size:]


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
