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
from blurfit.errors import InfeasibleError
from blurfit.learning.learner import weights_of
from blurfit.learning.statistics import Statistics
from blurfit.simulation.sampler import sampler_for
from blurfit.theory import triangle
from blurfit.theory.calibration import InputCalibration

FloatArray = npt.NDArray[np.float64]

NUMBERS_AFFORDABLE = 1e7  # are blurred one by one; beyond, the others come from the sampler


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
    d = agreement.dimension
    if not isinstance(agreement.calibration, InputCalibration):
        packed = packed_sums(agreement, record, crowd, trials, generator)
        return _matrices(agreement, packed[:, :-d]), packed[:, -d:]
    own = submissions(agreement, record, trials)
    gram, moment = _matrices(agreement, own[:, :-d]), own[:, -d:] + crowd.pull
    if _affordable(agreement, crowd, trials):
        others = _nobodies(agreement, crowd.honest * trials)
        rows = others[:, :-d].reshape(trials, crowd.honest, d)
        gram = gram + np.swapaxes(rows, 1, 2) @ rows
        moment = moment + others[:, -d:].reshape(trials, crowd.honest, d).sum(axis=1)
    elif crowd.honest:
        clean = Statistics(crowd.honest, np.zeros((d, d)), np.zeros(d))
        sampler = sampler_for(agreement.calibration, clean)
        for trial in range(trials):
            drawn = sampler.draw(generator)
            gram[trial] += drawn.gram
            moment[trial] += drawn.moment
        moment = to_grid(moment, agreement.grid.dither, toward_zero=False)
    return gram, moment


def packed_sums(
    agreement: Agreement, record: Record, crowd: Crowd, trials: int, generator: np.random.Generator
) -> FloatArray:
    """The blurred sums of `moment` as vectors: the triangle of ΣM̃, and Σp̃. They may be published.

    A crowd that is not blurred one by one is drawn at once: N(0, honest·s²) for each number, as
    `blurfit.simulation.sampler.MomentSampler` does. What it draws are floats, whose last bits would
    betray the target; contributors send multiples of the grid, so its sums are rounded to it.
    """
    d, grid = agreement.dimension, agreement.grid
    total = submissions(agreement, record, trials)
    total[:, -d:] += crowd.pull
    if _affordable(agreement, crowd, trials):
        others = _nobodies(agreement, crowd.honest * trials)
        return np.asarray(total + others.reshape(trials, crowd.honest, -1).sum(axis=1))
    if crowd.honest:
        scales = math.sqrt(crowd.honest) * noise_scales(agreement)
        drawn = generator.standard_normal(total.shape) * scales
        total[:, :-d] += to_grid(drawn[:, :-d], grid.quadratic, toward_zero=False)
        total[:, -d:] += to_grid(drawn[:, -d:], grid.linear, toward_zero=False)
    return total


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


def noise_scales(agreement: Agreement) -> FloatArray:
    """The deviation of the noise on each number of one submission."""
    calibration, d = agreement.calibration, agreement.dimension
    if isinstance(calibration, InputCalibration):
        return np.repeat([calibration.q_noise, calibration.p_noise], d)
    beside = calibration.m_noise / math.sqrt(2)
    upper = np.where(triangle.on_diagonal(d), calibration.m_noise, beside)
    return np.concatenate([upper, np.full(d, calibration.p_noise)])


def noiseless(agreement: Agreement, record: Record) -> FloatArray:
    """A submission without noise: q or the triangle of qqᵀ, and p."""
    if isinstance(agreement.calibration, InputCalibration):
        return np.concatenate([record.q, record.p])
    return np.concatenate([triangle.pack(np.outer(record.q, record.q)), record.p])


def _affordable(agreement: Agreement, crowd: Crowd, trials: int) -> bool:
    numbers = crowd.honest * trials * len(noise_scales(agreement))
    return 0 < numbers <= NUMBERS_AFFORDABLE


def _nobodies(agreement: Agreement, count: int) -> FloatArray:
    d = agreement.dimension
    return submissions(agreement, Record(np.zeros(d), np.zeros(d)), count)


def _matrices(agreement: Agreement, quadratic: FloatArray) -> FloatArray:
    """q̃q̃ᵀ or M̃ of each submission."""
    if isinstance(agreement.calibration, InputCalibration):
        return np.asarray(quadratic[:, :, None] * quadratic[:, None, :])
    return triangle.unpack(quadratic, agreement.dimension)
