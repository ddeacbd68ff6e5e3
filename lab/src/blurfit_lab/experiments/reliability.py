"""Can probabilities be believed? Of all to whom a model gives 70 %, seven in ten should be +1.

Predicted probabilities are put into 15 bins of equal width. A bin's row of the CSV has the variant
"predicted 07", "observed 07" or "weight 07": the mean probability in it, the share of +1 among its
test rows, and the share of the test rows that it holds. "error" is the expected calibration error,
Σ weight·|observed − predicted|. The shares of a fit without privacy are off, too: by the sampling
of test rows, and because no curve is the truth.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from blurfit.arrays import FloatArray
from blurfit.simulation.entropy import Generator
from blurfit_lab.experiments.cells import SweepCell, Untuned, cell_names, seeded
from blurfit_lab.experiments.cohort import BLOCK, Cohort
from blurfit_lab.experiments.figures import DELTA
from blurfit_lab.experiments.methods import (
    MOMENT,
    NO_PRIVACY,
    WAVES,
    Promise,
    agreement,
    from_sums,
    in_waves,
    minimised,
    perturbed,
    plan,
)
from blurfit_lab.experiments.trials import Row

BINS = 15
PREDICTED, OBSERVED, WEIGHT, ERROR = "predicted", "observed", "weight", "error"


@dataclass(frozen=True, eq=False)
class Bins:
    """Of the bins that are not empty: their places, mean probabilities, shares of +1, weights."""

    places: npt.NDArray[np.int64]
    predicted: FloatArray
    observed: FloatArray
    weight: FloatArray

    @property
    def error(self) -> float:
        """The expected calibration error."""
        return float(self.weight @ np.abs(self.observed - self.predicted))


def binned(probability: FloatArray, label: FloatArray) -> Bins:
    """Put probabilities of +1 into bins of equal width.

    >>> found = binned(np.array([0.1, 0.1, 0.9, 0.9]), np.array([-1.0, 1.0, 1.0, 1.0]))
    >>> found.observed.tolist(), round(found.error, 3)
    ([0.5, 1.0], 0.25)
    """
    places = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
    counts = np.bincount(places, minlength=BINS)
    held = np.flatnonzero(counts)
    predicted, observed = (
        np.bincount(places, weights=values, minlength=BINS)[held] / counts[held]
        for values in (probability, label > 0)
    )
    return Bins(held, predicted, observed, counts[held] / len(label))


@dataclass(frozen=True)
class Reliability(Untuned):
    """Waves, one wave and no privacy, in cells of one ε and n each."""

    name: str = "reliability"
    epsilons: tuple[float, ...] = (0.1, 1.0)
    quorums: tuple[int, ...] = (2**13, 2**15, 2**17)

    def cells(self, population: Cohort, trials: int) -> list[str]:
        """ε:n:trials."""
        return cell_names(population, self.epsilons, self.quorums, trials, largest_share=0.75)

    def rows(self, population: Cohort, cell: str) -> list[Row]:
        """The bins of each line in each trial, and its calibration error."""
        epsilon, n, trials = SweepCell.read(cell)
        rows = []
        for trial in range(trials):
            for line in (NO_PRIVACY, MOMENT, WAVES):
                generator = seeded(population.seed, f"{self.name} {epsilon} {n} {line}", trial)
                found = self._bins(population, line, Promise(epsilon, DELTA), n, trial, generator)
                values = {
                    f"{word} {place:02d}": value
                    for word, column in (
                        (PREDICTED, found.predicted),
                        (OBSERVED, found.observed),
                        (WEIGHT, found.weight),
                    )
                    for place, value in zip(found.places, column, strict=True)
                }
                rows += [
                    Row(line, variant, epsilon, n, trial, float(value))
                    for variant, value in {**values, ERROR: found.error}.items()
                ]
        return rows

    def _bins(
        self,
        population: Cohort,
        line: str,
        promise: Promise,
        n: int,
        trial: int,
        generator: Generator,
    ) -> Bins:
        tested = min(2**16, (len(population) - n) // BLOCK * BLOCK)
        window = replace(population.window(n, trial), tested=tested)
        if line == NO_PRIVACY:
            risk = population.training_risk(window)
            (weights,) = minimised(risk, [perturbed(line, risk, promise, None, generator)])
        elif line == WAVES and len(waves := plan(population, promise, n, label=True)) > 1:
            weights = in_waves(waves, population, window, generator, label=True)
        else:
            contract = agreement(line, population, promise, n, label=True)
            sums = population.training_sums(window)
            weights = from_sums(contract, sums, None, generator, label=True)
        is_line = line == MOMENT or (line == WAVES and len(waves) == 1)
        parts = population.test_rows(window)
        score = np.concatenate([x @ weights for x, _ in parts])
        label = np.concatenate([one for _, one in parts])
        return binned(np.clip((score + 1) / 2, 0, 1) if is_line else expit(score), label)
