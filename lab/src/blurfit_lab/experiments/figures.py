"""The paper's four figures: error against n for each method, tuned as in the paper, and not.

"With each method we found the best parameter for the largest size of training dataset, then used it
for other sizes": variant "tuned", which reads the test scores of private data and so is not
private. Variant "default" uses public defaults only.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from blurfit.simulation.entropy import Generator
from blurfit_lab.experiments.cells import seeded
from blurfit_lab.experiments.cohort import Cohort, Window
from blurfit_lab.experiments.methods import (
    CONSTANT,
    FROM_MINIMISERS,
    FROM_SUMS,
    LINES,
    MOMENT,
    TUNED,
    WAVES,
    Promise,
    agreement,
    constant,
    from_sums,
    in_waves,
    minimised,
    perturbed,
    plan,
    squared_risk,
)
from blurfit_lab.experiments.trials import Row

QUORUMS = tuple(2**k for k in range(7, 22, 2))
DELTA = 0.01
RIDGES = (0.0, 10.0, 100.0, 1e3, 1e4)
TUNING_TRIALS = 3
TRIALS_AT_ONCE = 5


@dataclass(frozen=True)
class PaperFigure:
    """One of the four: linear or logistic, at one ε."""

    name: str
    label: bool
    epsilon: float
    quorums: tuple[int, ...] = QUORUMS

    @property
    def promise(self) -> Promise:
        """(ε, δ), with the paper's δ."""
        return Promise(self.epsilon, DELTA)

    def cells(self, population: Cohort, trials: int) -> list[str]:
        """First "tuning", which the others need, then n:first:last, the largest n first."""
        last = self._quorums(population)
        blocks = [
            f"{n}:{first}:{min(first + TRIALS_AT_ONCE, trials)}"
            for n in reversed(last)
            for first in range(0, trials, TRIALS_AT_ONCE)
        ]
        return ["tuning", *blocks]

    def compute(self, population: Cohort, cell: str, known: Mapping[str, list[Row]]) -> list[Row]:
        """The rows of one cell."""
        if cell == "tuning":
            return self._tune(population)
        ridges = {row.line: row.value for row in known["tuning"]}
        n, first, last = map(int, cell.split(":"))
        rows = []
        for trial in range(first, last):
            asked: list[tuple[str, float | None]] = [(line, None) for line in LINES]
            asked += [(line, ridges[line]) for line in TUNED]
            values = self.scores(population, population.window(n, trial), asked, trial)
            rows += [
                Row(line, "default" if ridge is None else "tuned", self.epsilon, n, trial, value)
                for (line, ridge), value in zip(asked, values, strict=True)
            ]
        return rows

    def scores(
        self,
        population: Cohort,
        window: Window,
        asked: Iterable[tuple[str, float | None]],
        trial: int,
    ) -> list[float]:
        """RMSE or accuracy of each (line, ridge) on the window's test rows."""
        asked, sums = list(asked), population.training_sums(window)
        risk = population.training_risk(window) if self.label else squared_risk(sums)
        problems, weights = {}, np.zeros((len(asked), len(sums.moment)))
        waves = plan(population, self.promise, window.count, label=self.label)
        one_wave = (MOMENT, None)
        for k, (line, ridge) in enumerate(asked):
            generator = self._generator(population, window, trial, line)
            if line == CONSTANT:
                weights[k] = constant(population, sums, label=self.label)
            elif line in FROM_MINIMISERS:
                problems[k] = perturbed(line, risk, self.promise, ridge, generator)
            elif line == WAVES and len(waves) > 1:
                weights[k] = in_waves(waves, population, window, generator, label=self.label)
            elif line == WAVES and one_wave in asked:  # moment itself, with its own noise
                weights[k] = weights[asked.index(one_wave)]
            else:
                contract = agreement(line, population, self.promise, window.count, label=self.label)
                weights[k] = from_sums(contract, sums, ridge, generator, label=self.label)
        weights[list(problems)] = minimised(risk, list(problems.values()))
        return population.scores(window, weights, label=self.label)

    def _tune(self, population: Cohort) -> list[Row]:
        """The best ridge of each line, on average over a few trials at the largest n."""
        n = max(self._quorums(population))
        asked = [(line, ridge) for line in TUNED for ridge in RIDGES]
        total = np.zeros(len(asked))
        for trial in range(TUNING_TRIALS):
            total += self.scores(population, population.window(n, trial), asked, trial)
        best: dict[str, tuple[float, float]] = {}
        for (line, ridge), score in zip(asked, total if self.label else -total, strict=True):
            if line not in best or score > best[line][0]:
                best[line] = (float(score), ridge)
        return [Row(line, "ridge", self.epsilon, n, 0, ridge) for line, (_, ridge) in best.items()]

    def _quorums(self, population: Cohort) -> list[int]:
        return [n for n in self.quorums if n <= 0.97 * len(population)]

    def _generator(self, population: Cohort, window: Window, trial: int, line: str) -> Generator:
        """One and the same for all ridges of a line, so that tuning compares ridges alone."""
        return seeded(population.seed, f"{self.name} {line}", window.count, trial)


FIGURES = (
    PaperFigure("fig1a", label=False, epsilon=0.1),
    PaperFigure("fig1b", label=False, epsilon=1.0),
    PaperFigure("fig2a", label=True, epsilon=0.1),
    PaperFigure("fig2b", label=True, epsilon=1.0),
)
assert set(FROM_SUMS) < set(TUNED)
