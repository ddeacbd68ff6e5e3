"""What an attacker gets to see, by the code that contributors and databases really run.

The target's own submission is always blurred by the contributor's code
(`blurfit.contributor.perturb.blur`). So are all others where that is affordable; else their noise
comes from the exact sampler, which has the same law. Models are learned by the database's code.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blurfit.agreement.agreement import Agreement
from blurfit.contributor.noise import to_grid
from blurfit.contributor.perturb import blur
from blurfit.database.learner import weights_of
from blurfit.database.statistics import Statistics, pack
from blurfit.errors import InfeasibleError
from blurfit.simulation.sampler import sampler_for
from blurfit.theory.calibrated import InputCalibration

FloatArray = npt.NDArray[np.float64]

NUMBERS_AFFORDABLE = 4e7  # are blurred one by one; beyond, the others come from the sampler


@dataclass(frozen=True, eq=False)
class Record:
    """A record as the losses make it: q and p, each (d,)."""

    q: FloatArray
    p: FloatArray


@dataclass(frozen=True, eq=False)
class Crowd:
    """Everyone but the target: `honest` records that are zero, and colluders who pull at the sum.

    Colluders send what they like without noise, here q̃ = 0 and p̃ that sum to `pull`; they are not
    among the honest, so they do not count for the quorum.
    """

    honest: int
    pull: FloatArray


def submissions(agreement: Agreement, record: Record, trials: int) -> FloatArray:
    """The record blurred so many times: (trials, k + d)."""
    q, p = (np.tile(part, (trials, 1)) for part in (record.q, record.p))
    sent = blur(agreement, q, p)
    return np.hstack([sent.quadratic, sent.linear])


def sums(
    agreement: Agreement,
    record: Record,
    crowd: Crowd,
    trials: int,
    generator: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Σq̃q̃ᵀ or ΣM̃ (trials, d, d) and Σp̃ (trials, d) of the target and the crowd."""
    d, n = agreement.dimension, crowd.honest + 1
    own = submissions(agreement, record, trials)
    gram, moment = _matrices(agreement, own[:, :-d]), own[:, -d:] + crowd.pull
    if crowd.honest and n * trials * own.shape[1] <= NUMBERS_AFFORDABLE:
        nobody = Record(np.zeros(d), np.zeros(d))
        others = submissions(agreement, nobody, crowd.honest * trials)
        blurred = _matrices(agreement, others[:, :-d])
        gram = gram + blurred.reshape(trials, crowd.honest, d, d).sum(axis=1)
        moment = moment + others[:, -d:].reshape(trials, crowd.honest, d).sum(axis=1)
    elif crowd.honest:
        clean = Statistics(crowd.honest, np.zeros((d, d)), np.zeros(d))
        sampler = sampler_for(agreement.calibration, clean)
        for trial in range(trials):
            drawn = sampler.draw(generator)
            gram[trial] += drawn.gram
            moment[trial] += drawn.moment
        # The sampler draws floats, whose last bits would betray the target; contributors send
        # multiples of the grid, and so are their sums.
        grid = agreement.grid
        moment = to_grid(moment, grid.dither, toward_zero=False)
        if not isinstance(agreement.calibration, InputCalibration):
            gram = to_grid(gram, grid.quadratic, toward_zero=False)
    return gram, moment


def models(
    agreement: Agreement, record: Record, crowd: Crowd, trials: int, generator: np.random.Generator
) -> FloatArray:
    """The published weights (trials, d); a refusal to publish is told by weights of zero.

    (A refusal is an output too. Nothing else gives weights that are zero to the last bit.)
    """
    gram, moment = sums(agreement, record, crowd, trials, generator)
    found = np.zeros_like(moment)
    for trial in range(trials):
        try:
            statistics = Statistics(crowd.honest + 1, gram[trial], moment[trial])
            found[trial] = weights_of(agreement, statistics)
        except InfeasibleError:
            continue
    return found


def packed_sums(
    agreement: Agreement, record: Record, crowd: Crowd, trials: int, generator: np.random.Generator
) -> FloatArray:
    """The blurred sums as vectors: the triangle of ΣM̃, and Σp̃. (moment: they may be published)."""
    gram, moment = sums(agreement, record, crowd, trials, generator)
    return np.hstack([pack((gram + np.swapaxes(gram, 1, 2)) / 2), moment])


def noise_scales(agreement: Agreement) -> FloatArray:
    """The deviation of the noise on each number of one submission."""
    calibration, d = agreement.calibration, agreement.dimension
    if isinstance(calibration, InputCalibration):
        return np.repeat([calibration.q_noise, calibration.p_noise], d)
    rows, columns = np.triu_indices(d)
    beside = calibration.m_noise / math.sqrt(2)
    triangle = np.where(rows == columns, calibration.m_noise, beside)
    return np.concatenate([triangle, np.full(d, calibration.p_noise)])


def noiseless(agreement: Agreement, record: Record) -> FloatArray:
    """A submission without noise: q or the triangle of qqᵀ, and p."""
    if isinstance(agreement.calibration, InputCalibration):
        return np.concatenate([record.q, record.p])
    return np.concatenate([pack(np.outer(record.q, record.q)), record.p])


def _matrices(agreement: Agreement, quadratic: FloatArray) -> FloatArray:
    """q̃q̃ᵀ or M̃ of each submission."""
    if isinstance(agreement.calibration, InputCalibration):
        return np.asarray(quadratic[:, :, None] * quadratic[:, None, :])
    d = agreement.dimension
    if not len(quadratic):
        return np.zeros((0, d, d))
    rows, columns = np.triu_indices(d)
    full = np.empty((len(quadratic), d, d))
    full[:, rows, columns] = full[:, columns, rows] = quadratic
    return full
