"""Head to head with the best of 2026, on their data and settings.

Twelve small UCI sets and two samples of the population; ε on six values from 0.1 to 10, δ = 1/n²,
each neighbouring relation by itself, everyone under the same one. A trial splits the rows 4 : 1 at
random, and every line trains and tests on the same rows: trials are paired. All have the same
public bounds and the same encoding, and all predictions are clipped to the target's bounds, which
costs no privacy.

A line is a name and a function from a `Task` and a generator to weights; `fitted` makes one of any
estimator that is fitted like scikit-learn's. To compare your own, add it to `LINES`.
"""

import math
import os
import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from blurfit.baselines import (
    AdaSSPRegressor,
    BinAggRegressor,
    BoostedAdaSSPRegressor,
    GaussMixRegressor,
    GeneralisedObjectivePerturbationRegressor,
    GradientPerturbationRegressor,
    IterativeHessianMixingRegressor,
    TukeyRegressor,
)
from blurfit.datasets import UCI_SETS, load_uci
from blurfit.datasets.reading import VARIABLE
from blurfit.datasets.uci import FOLDER
from blurfit.errors import NotPrivateWarning
from blurfit.estimators import InputPerturbationRegressor, MomentPerturbationRegressor
from blurfit.experiments.cohort import Population
from blurfit.experiments.methods import INPUT, MOMENT, NO_PRIVACY
from blurfit.experiments.rivals import ADASSP, EXACT_ADASSP, GRADIENT
from blurfit.experiments.trials import Row
from blurfit.simulation.entropy import Generator, generator_for
from blurfit.theory.gaussian import mu_of
from blurfit.theory.setting import NEIGHBOURS, Neighbours

FloatArray = npt.NDArray[np.float64]

PRIVATE_MEAN = "private mean"
PUBLISHED_IHM, IHM, GAUSSMIX = "IHM", "IHM (exact)", "GaussMix (exact)"
BOOSTED, BINAGG, TUKEY = "BoostedAdaSSP (20 rounds)", "BinAgg", "TukeyEM"
GENERALISED = "objective (generalised)"
EPSILONS = tuple(float(f"{value:.4g}") for value in np.logspace(-1, 1, 6))
PEOPLE = {"people 2¹⁰": 2**10, "people 2¹³": 2**13}  # rows for training
TESTED = 2**12  # people to test on
TRAINING = 0.8


@dataclass(frozen=True, eq=False)
class Task:
    """Encoded rows, ‖x‖ ≤ 1 with the constant last, targets |y| ≤ 1, and the promise to keep."""

    x: FloatArray
    y: FloatArray
    epsilon: float
    delta: float
    neighbours: Neighbours


Line = Callable[[Task, Generator], FloatArray]


def fitted(family: type[Any], **terms: Any) -> Line:
    """The line of an estimator: fitted to columns that are scaled to [−1, 1], which is public."""

    def line(task: Task, generator: Generator) -> FloatArray:
        root = math.sqrt(task.x.shape[1])
        model = family(
            epsilon=task.epsilon,
            delta=task.delta,
            neighbours=task.neighbours,
            bounds=(-1, 1),
            target_bounds=(-1, 1),
            random_state=int(generator.integers(2**31)),
            **terms,
        )
        with warnings.catch_warnings():  # seeds are meant here: nobody is protected by a comparison
            warnings.simplefilter("ignore", NotPrivateWarning)
            model.fit(task.x[:, :-1] * root, task.y)
        return np.asarray(np.append(model.coef_, model.intercept_) * root)

    return line


def no_privacy(task: Task, generator: Generator) -> FloatArray:
    """Least squares: the floor."""
    del generator
    return np.asarray(np.linalg.lstsq(task.x, task.y, rcond=None)[0])


def private_mean(task: Task, generator: Generator) -> FloatArray:
    """The mean target with Gaussian noise that spends all of (ε, δ): what features have to beat."""
    reach = 2.0 if task.neighbours == "replace" else 1.0
    noise = reach / mu_of(task.epsilon, task.delta) * float(generator.standard_normal())
    weights = np.zeros(task.x.shape[1])
    mean = min(1.0, max(-1.0, (float(task.y.sum()) + noise) / len(task.y)))
    weights[-1] = mean * math.sqrt(len(weights))
    return weights


OURS: dict[str, Line] = {
    MOMENT: fitted(MomentPerturbationRegressor, waves=1),
    INPUT: fitted(InputPerturbationRegressor),
}
RIVAL_LINES: dict[str, Line] = {
    ADASSP: fitted(AdaSSPRegressor),
    EXACT_ADASSP: fitted(AdaSSPRegressor, accounting="exact"),
    BOOSTED: fitted(BoostedAdaSSPRegressor, rounds=20),
    GAUSSMIX: fitted(GaussMixRegressor, accounting="exact"),
    PUBLISHED_IHM: fitted(IterativeHessianMixingRegressor),
    IHM: fitted(IterativeHessianMixingRegressor, accounting="exact"),
    BINAGG: fitted(BinAggRegressor),
    TUKEY: fitted(TukeyRegressor),
    GENERALISED: fitted(GeneralisedObjectivePerturbationRegressor),
    GRADIENT: fitted(GradientPerturbationRegressor, steps=100),
}
REFERENCES: dict[str, Line] = {NO_PRIVACY: no_privacy, PRIVATE_MEAN: private_mean}
LINES: dict[str, Line] = {**REFERENCES, **RIVAL_LINES, **OURS}


@lru_cache(maxsize=16)
def _uci(name: str) -> tuple[FloatArray, FloatArray]:
    census = load_uci(name)
    x, y = census.schema.encode(census.table)
    return x, y


def _has_uci() -> bool:
    place = os.environ.get(VARIABLE)
    return bool(place) and all(
        (Path(str(place)) / FOLDER / f"{name}.parquet").is_file() for name in UCI_SETS
    )


@dataclass(frozen=True)
class HeadToHead:
    """Cells of one set, one relation and one ε each."""

    name: str = "rivals2026"

    def cells(self, population: Population, trials: int) -> list[str]:
        """set:relation:ε:trials; the UCI sets only where their files are."""
        sets = [*(UCI_SETS if _has_uci() else ())]
        sets += [name for name, n in PEOPLE.items() if n + TESTED <= len(population)]
        return [
            f"{name}:{neighbours}:{epsilon}:{trials}"
            for name in sets
            for neighbours in NEIGHBOURS
            for epsilon in EPSILONS
        ]

    def compute(
        self,
        population: Population,
        cell: str,
        known: Mapping[str, list[Row]],  # noqa: ARG002 (nothing is tuned)
    ) -> list[Row]:
        """The test error of every line in every trial: its mean square, of a target in [0, 1]."""
        name, neighbours, *numbers = cell.split(":")
        epsilon, trials = float(numbers[0]), int(numbers[1])
        rows = []
        for trial in range(trials):
            (x, y), (test_x, test_y) = self._split(population, name, trial)
            relation: Neighbours = "replace" if neighbours == "replace" else "zero-out"
            task = Task(x, y, epsilon, 1 / len(y) ** 2, relation)
            for line, release in LINES.items():
                words = zlib.crc32(f"{self.name} {cell} {line}".encode())
                weights = release(task, generator_for([population.seed, words, trial]))
                error = np.clip(test_x @ weights, -1, 1) - test_y
                value = float(np.mean(error**2)) / 4
                rows.append(Row(line, f"{name}, {neighbours}", epsilon, len(y), trial, value))
        return rows

    def _split(
        self, population: Population, name: str, trial: int
    ) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """Rows to train on and rows to test on: the same for every ε, relation and line."""
        if name in PEOPLE:
            n, x, y = PEOPLE[name], population.x, population.y
            start = generator_for([population.seed, n, trial]).integers(len(y) - n - TESTED + 1)
            order = np.arange(start, start + n + TESTED)
        else:
            x, y = _uci(name)
            words = zlib.crc32(name.encode())
            order = generator_for([population.seed, words, trial]).permutation(len(y))
            n = int(TRAINING * len(y))
        train, test = order[:n], order[n:]
        return (x[train], y[train]), (x[test], y[test])


RIVALS_2026 = HeadToHead()
