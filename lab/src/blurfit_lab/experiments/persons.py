"""Diaries and times until an event beside the nearest published methods, by public defaults.

People are those of `blurfit_lab.experiments.histories`. *Slopes* are fixed effects, against what
least squares of differences gives to 200,000 people; *curve* is the share that survives, at the end
of each band, against the truth. Errors are root mean squares over trials and coordinates; a method
*leads* where its squared errors are surely (paired, 99 %) below those of every other private one.
What is refused is not *told*, and left out.
"""

import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError, NotPrivateWarning, Progress, silent
from blurfit.estimators import MomentPerturbationRegressor, MomentPerturbationSurvival
from blurfit_lab.experiments.histories import BANDS, FEATURES, ROWS, diary, exits, within
from blurfit_lab.experiments.lines import surely
from blurfit_lab.rivals.histories import noisy_curve, own_regressions, persons_adassp

DELTA = 1e-6
PLAIN, OURS = "no privacy", "holder"


def slopes(n: int, epsilon: float, seed: int) -> dict[str, FloatArray]:
    """Return each method's fixed effects from one draw of people."""
    x, y = diary(n, 0.0, seed)
    model = MomentPerturbationRegressor(
        epsilon=epsilon,
        delta=DELTA,
        bounds=(-1, 1),
        target_bounds=(-1, 1),
        effects="within",
        random_state=seed,
    )
    model.fit(x.reshape(-1, FEATURES), y.ravel(), groups=np.repeat(np.arange(n), ROWS))
    generator = np.random.default_rng(seed)
    terms = (epsilon, DELTA, generator)
    return {
        PLAIN: within(x, y),
        OURS: np.asarray(model.coef_),
        "own regressions": own_regressions(x, y, *terms),
        "AdaSSP of persons": persons_adassp(x, y, *terms),
    }


def curves(n: int, epsilon: float, seed: int) -> dict[str, FloatArray]:
    """Return each method's curve less the true one, from one draw of people."""
    v, y, hazard = exits(n, seed)
    model: Any = MomentPerturbationSurvival(
        epsilon=epsilon, delta=DELTA, bounds=(-1, 1), horizon=1.0, bands=BANDS, random_state=seed
    )
    truth = np.exp(-hazard[:, None] * np.arange(1, BANDS + 1) / BANDS).mean(axis=0)
    generator = np.random.default_rng(seed)
    counted = (
        noisy_curve(y["time"], y["event"], BANDS, *terms, generator) - truth
        for terms in ((1e6, DELTA), (epsilon, DELTA))
    )
    plain, noisy = counted
    ours = np.full(BANDS, np.nan)
    with suppress(InfeasibleError):  # of coefficients; the release may still tell the curve
        model.fit(v, y)
    with suppress(InfeasibleError):
        ours = model.moments_.survival().curve()["everybody"].survival[1:] - truth
    return {PLAIN: plain, OURS: ours, "noisy counts": noisy}


def persons(
    sizes: Sequence[int],
    epsilons: Sequence[float],
    trials: int,
    out: Path,
    progress: Progress = silent,
) -> None:
    """Write a line for each number of people, ε and method."""
    truth = within(*diary(200_000, 0.0, 10**6))
    cells = [(what, n, e) for what in ("slopes", "curve") for n in sizes for e in epsilons]
    found: list[dict[str, Any]] = []
    for place, (what, n, epsilon) in enumerate(cells):
        errors: dict[str, list[float]] = {}
        for seed in range(trials):
            with warnings.catch_warnings():  # seeds are meant: nobody is protected by a comparison
                warnings.simplefilter("ignore", NotPrivateWarning)
                told = slopes(n, epsilon, seed) if what == "slopes" else curves(n, epsilon, seed)
            for method, value in told.items():
                miss = value - truth if what == "slopes" else value
                errors.setdefault(method, []).append(float(np.mean(miss**2)))
        told_of = pd.DataFrame(errors)
        for method, squares in told_of.items():
            others = told_of.drop(columns=[PLAIN, method], errors="ignore")
            gaps = (others.sub(squares, axis=0)).dropna()
            leads = method != PLAIN and all(surely(gaps[one].to_numpy()) for one in gaps)
            line = {"what": what, "n": n, "ε": epsilon, "method": method}
            line |= {"told": f"{squares.count()} of {trials}"}
            found.append({**line, "error": float(np.sqrt(squares.mean())), "leads": leads})
        progress(place + 1, len(cells))
    out.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(found).to_json(out, orient="records", lines=True, force_ascii=False)
