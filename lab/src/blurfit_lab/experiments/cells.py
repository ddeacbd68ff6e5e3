"""What experiments share: cells of one ε and one number of contributors each, and their seeds."""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from blurfit.simulation.entropy import Generator, generator_for
from blurfit_lab.experiments.cohort import Cohort
from blurfit_lab.experiments.trials import Row


class Untuned(ABC):
    """An experiment that tunes nothing: each cell is computed by itself."""

    @abstractmethod
    def rows(self, population: Cohort, cell: str) -> list[Row]:
        """The rows of one cell."""

    def compute(self, population: Cohort, cell: str, known: Mapping[str, list[Row]]) -> list[Row]:
        """The rows of one cell, whatever is known of others."""
        del known
        return self.rows(population, cell)


def seeded(seed: int, words: str, *numbers: int) -> Generator:
    """A generator for what these words and numbers name, under the seed of a run."""
    return generator_for([seed, zlib.crc32(words.encode()), *numbers])


class SweepCell(NamedTuple):
    """What is computed at once: "ε:n:trials" is its name.

    >>> str(SweepCell(0.1, 512, 20)), SweepCell.read("0.1:512:20") == (0.1, 512, 20)
    ('0.1:512:20', True)
    """

    epsilon: float
    n: int
    trials: int

    def __str__(self) -> str:
        return f"{self.epsilon}:{self.n}:{self.trials}"

    @classmethod
    def read(cls, name: str) -> "SweepCell":
        """The cell of a name."""
        epsilon, n, trials = name.split(":")
        return cls(float(epsilon), int(n), int(trials))


def cell_names(
    population: Cohort,
    epsilons: Sequence[float],
    quorums: Sequence[int],
    trials: int,
    largest_share: float = 0.97,
) -> list[str]:
    """The name of each cell that takes no larger share of the population to train on."""
    return [
        str(SweepCell(epsilon, n, trials))
        for epsilon in epsilons
        for n in quorums
        if n <= largest_share * len(population)
    ]
