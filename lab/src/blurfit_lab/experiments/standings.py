"""Who wins a head to head: geometric means over all cells, and wins that more trials would keep.

In each cell (one set and one ε) the trials are paired: every line saw the same rows. A line beats
another there if the mean of its errors is smaller in 97.5% of 1,000 resamples of the trials (a
paired bootstrap), loses if it is larger in as many, and is even otherwise. Over cells that are not
even, the sign test says how likely that many wins are if both were equally good.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from blurfit.arrays import FloatArray
from blurfit.simulation.entropy import generator_for
from blurfit_lab.experiments.trials import Row

RESAMPLES, CONFIDENCE = 1000, 0.975


@dataclass(frozen=True)
class Cell:
    """One set under one relation, at one ε."""

    data: str
    neighbours: str
    epsilon: float


Errors = Mapping[Cell, Mapping[str, FloatArray]]  # of each line, by trial


@dataclass(frozen=True)
class Record:
    """Wins, losses and even cells of one line against another, and the sign test's p."""

    wins: int
    losses: int
    even: int

    @property
    def p_value(self) -> float:
        """The probability of at least this many wins by chance."""
        decided = self.wins + self.losses
        if not decided:
            return 1.0
        return float(binomtest(self.wins, decided, alternative="greater").pvalue)


def errors_of(rows: Sequence[Row]) -> dict[Cell, dict[str, FloatArray]]:
    """The rows of a CSV by cell and line, in the order of trials."""
    found: dict[Cell, dict[str, list[tuple[int, float]]]] = {}
    for row in rows:
        data, _, neighbours = row.variant.rpartition(", ")
        cell = found.setdefault(Cell(data, neighbours, row.epsilon), {})
        cell.setdefault(row.line, []).append((row.trial, row.value))
    return {
        cell: {line: np.array([v for _, v in sorted(values)]) for line, values in lines.items()}
        for cell, lines in found.items()
    }


def geometric_mean(errors: Errors, line: str, other: str) -> float:
    """Of the mean error of one line over that of another, over all cells."""
    logarithms = [math.log(lines[line].mean() / lines[other].mean()) for lines in errors.values()]
    return math.exp(float(np.mean(logarithms)))


def interval(errors: Errors, line: str, other: str) -> tuple[float, float]:
    """95% of that geometric mean when the trials of each cell are resampled, in pairs."""
    generator = generator_for(0)
    total = np.zeros(RESAMPLES)
    for lines in errors.values():
        chosen = generator.integers(len(lines[line]), size=(RESAMPLES, len(lines[line])))
        total += np.log(lines[line][chosen].mean(axis=1) / lines[other][chosen].mean(axis=1))
    low, high = np.quantile(np.exp(total / len(errors)), [0.025, 0.975])
    return float(low), float(high)


def against(errors: Errors, line: str, other: str) -> Record:
    """Wins and losses by the paired bootstrap in each cell."""
    generator = generator_for(0)
    wins = losses = 0
    for lines in errors.values():
        difference = lines[line] - lines[other]
        chosen = generator.integers(len(difference), size=(RESAMPLES, len(difference)))
        smaller = float((difference[chosen].mean(axis=1) < 0).mean())
        wins += smaller >= CONFIDENCE
        losses += smaller <= 1 - CONFIDENCE
    return Record(wins, losses, len(errors) - wins - losses)


def best_of(errors: Errors, lines: Sequence[str]) -> str:
    """The line of the least geometric mean."""
    return min(lines, key=lambda line: geometric_mean(errors, line, lines[0]))


def under(errors: Errors, neighbours: str) -> dict[Cell, Mapping[str, FloatArray]]:
    """The cells of one relation."""
    return {cell: lines for cell, lines in errors.items() if cell.neighbours == neighbours}


def having(errors: Errors, *lines: str) -> dict[Cell, Mapping[str, FloatArray]]:
    """The cells in which all of these lines were run."""
    return {cell: found for cell, found in errors.items() if all(one in found for one in lines)}


def worse(errors: Errors, line: str, others: Sequence[str], times: float) -> tuple[int, int]:
    """In how many cells the mean error is more than `times` that of whichever other line did best
    there, and in how many of them the paired bootstrap is sure of it.
    """
    generator = generator_for(0)
    seen = sure = 0
    for lines in errors.values():
        best = min((one for one in others if one in lines), key=lambda one: lines[one].mean())
        excess = lines[line] - times * lines[best]
        if excess.mean() <= 0:
            continue
        seen += 1
        chosen = generator.integers(len(excess), size=(RESAMPLES, len(excess)))
        sure += float((excess[chosen].mean(axis=1) > 0).mean()) >= CONFIDENCE
    return seen, sure
