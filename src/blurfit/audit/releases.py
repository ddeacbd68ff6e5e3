"""What an attacker gets to see, by the code that contributors and databases really run.

A record is the numbers that it would send without noise (`Agreement.exact`). The target's own
submission is always blurred by the contributor's code (`blurfit.contributor.blur.blur`). So are
all others where that is affordable; else their noise comes from the exact sampler, which has the
same law. Models are learned by the database's code; those of `moment` by linear Bayes throughout
(`blurfit.simulation.weights`): whichever reading is published, it is made of the sums alone, which
are attacked themselves.
"""

import math
from dataclasses import dataclass

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import FloatArray
from blurfit.contributor.blur import blur
from blurfit.contributor.noise import to_grid
from blurfit.errors import InfeasibleError
from blurfit.learning.sums import Statistics, Totals
from blurfit.randomness import database
from blurfit.simulation.sampler import input_totals, sampler_for
from blurfit.simulation.weights import weights_of
from blurfit.theory import forms

NUMBERS_AFFORDABLE = 1e7  # are blurred one by one; beyond, the others come from the sampler


@dataclass(frozen=True, eq=False)
class Crowd:
    """Everyone but the target: `honest` records that are zero, and colluders who pull at the sum.

    Colluders send what they like without noise, here numbers that sum to `pull` (of `input` q̃ = 0,
    and a pull of p̃); they are not among the honest, so they do not count for the quorum.
    """

    honest: int
    pull: FloatArray


def submissions(agreement: Agreement, record: FloatArray, trials: int) -> FloatArray:
    """The record, blurred anew in each trial: (trials, width). Nobody asks for identifiers."""
    nameless = np.zeros((trials, 16), dtype=np.uint8)
    return blur(agreement, np.tile(record, (trials, 1)), nameless).numbers


def sums(
    agreement: Agreement,
    record: FloatArray,
    crowd: Crowd,
    trials: int,
    generator: np.random.Generator,
) -> FloatArray:
    """What the database adds up of the target and the crowd: the sums of `Totals`, in each trial.

    Those of `moment` may be published, those of `input` not. A crowd that is not blurred one by one
    is drawn at once. What the sampler draws are floats, whose last bits would betray the target;
    contributors send multiples of the grid, so its sums are rounded to it.
    """
    own = submissions(agreement, record, trials)
    affordable = 0 < crowd.honest * trials * agreement.width <= NUMBERS_AFFORDABLE
    if agreement.mechanism == "moment":
        total = own + crowd.pull
        for _ in range(agreement.database_draws):
            total += database.steps(agreement, trials) * agreement.grid.quadratic
        if affordable:
            others = _nobodies(agreement, crowd.honest * trials)
            return np.asarray(total + others.reshape(trials, crowd.honest, -1).sum(axis=1))
        if crowd.honest:
            scales = math.sqrt(crowd.honest) * noise_scales(agreement)
            drawn = generator.standard_normal(total.shape) * scales
            total += to_grid(drawn, agreement.grid.quadratic, toward_zero=False)
        return total
    d = agreement.schema.dimension
    if affordable:
        others = _nobodies(agreement, crowd.honest * trials).reshape(trials, crowd.honest, 2 * d)
        everyone = np.concatenate([own[:, None], others], axis=1)
    else:
        everyone = own[:, None]
    q, p = everyone[..., :d], everyone[..., d:].sum(axis=1) + crowd.pull[d:]
    total = np.hstack([forms.pack(np.swapaxes(q, 1, 2) @ q), p])
    if crowd.honest and not affordable:
        clean = Statistics(crowd.honest, np.zeros((d, d)), np.zeros(d))
        sampler = sampler_for(agreement, input_totals(agreement, clean))
        total += np.array([sampler.draw(generator).sums for _ in range(trials)])
        total[:, -d:] = to_grid(total[:, -d:], agreement.grid.dither, toward_zero=False)
    return total


def models(
    agreement: Agreement,
    record: FloatArray,
    crowd: Crowd,
    trials: int,
    generator: np.random.Generator,
) -> FloatArray:
    """The published weights, a row for each trial; a refusal to publish is told by zeros.

    (A refusal is an output too. Nothing else gives weights that are zero to the last bit.)
    """
    found: list[FloatArray | None] = []
    for one in sums(agreement, record, crowd, trials, generator):
        count, draws = max(crowd.honest + 1, agreement.quorum), agreement.database_draws
        totals = Totals(count, one, agreement.fingerprint, draws)
        try:
            found.append(weights_of(agreement, totals, sampled=False).ravel())
        except InfeasibleError:
            found.append(None)
    width = next((len(weights) for weights in found if weights is not None), 1)
    return np.array([np.zeros(width) if weights is None else weights for weights in found])


def noise_scales(agreement: Agreement) -> FloatArray:
    """The deviation of the noise on each number of one submission."""
    return np.concatenate([part.deviations for part in agreement.parts])


def nobody(agreement: Agreement) -> FloatArray:
    """The record of which all numbers are zero."""
    return np.zeros(agreement.width)


def _nobodies(agreement: Agreement, count: int) -> FloatArray:
    return submissions(agreement, nobody(agreement), count)
