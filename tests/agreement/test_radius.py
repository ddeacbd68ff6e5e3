"""How long an honest submission can be; what the screen makes of it is in test_admission.py."""

import math

import numpy as np
import pytest
from scipy import stats

from blurfit.agreement.radius import radii, refusal_probability
from support.sharing import propose

AGREEMENT = propose(proofs=True, quorum=400)


def test_the_radius_is_that_of_one_database_and_the_steps() -> None:
    (radius,), (part,) = radii(AGREEMENT), AGREEMENT.parts
    gamma = refusal_probability(AGREEMENT)
    scale = AGREEMENT.calibration.noise
    quantile = stats.ncx2.isf(gamma, len(part.counts), (part.bound / scale) ** 2)
    steps = part.step * math.sqrt(part.counts.sum())
    expected = scale * math.sqrt(quantile) + 1.5 * steps
    assert radius == pytest.approx(expected, rel=1e-3)
    assert radius >= expected
    assert 1.5 * steps < 0.05 * radius


@pytest.mark.parametrize("ratio", [2**4.5, 100.0])
def test_discrete_noise_is_hardly_more_probable_anywhere_than_rounded_normal_noise(ratio) -> None:
    steps = np.arange(-round(30 * ratio), round(30 * ratio) + 1)
    law = np.exp(-(steps**2) / (2 * ratio**2))
    law /= law.sum()
    upper = np.abs(steps) + 0.5  # by the upper tail, which is exact far out
    rounded = stats.norm.sf((upper - 1) / ratio) - stats.norm.sf(upper / ratio)
    assert (law <= rounded * math.exp(1 / (24 * ratio**2)) * (1 + 1e-9)).all()
