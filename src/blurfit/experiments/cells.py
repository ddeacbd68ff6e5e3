"""Cells of one ε and one number of contributors each: "ε:n:trials" is the name of one."""

from collections.abc import Sequence
from typing import NamedTuple

from blurfit.experiments.cohort import Cohort


class SweepCell(NamedTuple):
    """What is computed at once.

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
