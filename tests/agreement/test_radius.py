"""How long an honest submission can be; what the screen makes of it is in test_admission.py."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from blurfit import Agreement
from blurfit.agreement.numbers import radii, records_worth, refusal_probability
from support.exact import noncentral_tail
from support.sharing import SCHEMA, propose

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


@pytest.mark.parametrize("epsilon", [1.0, 300.0, 350.0, 400.0, 600.0])
@pytest.mark.parametrize("mechanism", ["moment", "input"])
def test_refusals_cost_no_more_than_their_share_of_delta(epsilon: float, mechanism: str) -> None:
    """(1 + e^ε)·nγ ≤ 10⁻⁴·δ, by a closed form of γ: also where it is too small for a library."""
    more = {"weight_bound": 1.0} if mechanism == "input" else {}
    agreement = Agreement.propose(
        SCHEMA, epsilon=epsilon, delta=1e-6, quorum=2000, mechanism=mechanism, **more
    )
    refused = mpmath.mpf(0)
    with mpmath.workdps(30):
        for part, radius in zip(agreement.parts, radii(agreement), strict=True):
            scale = mpmath.mpf(part.deviations[0]) * mpmath.sqrt(int(part.counts[0]))
            reach = radius - part.step * math.sqrt(part.counts.sum())
            ratio = (part.bound / scale) ** 2
            refused += noncentral_tail((reach / scale) ** 2, len(part.counts), ratio)
        assert 0 < refused * (1 + mpmath.exp(epsilon)) * 2000 <= 1e-4 * 1e-6


@pytest.mark.parametrize("ratio", [2**4.5, 100.0])
def test_discrete_noise_is_hardly_more_probable_anywhere_than_rounded_normal_noise(ratio) -> None:
    steps = np.arange(-round(30 * ratio), round(30 * ratio) + 1)
    law = np.exp(-(steps**2) / (2 * ratio**2))
    law /= law.sum()
    upper = np.abs(steps) + 0.5  # by the upper tail, which is exact far out
    rounded = stats.norm.sf((upper - 1) / ratio) - stats.norm.sf(upper / ratio)
    assert (law <= rounded * math.exp(1 / (24 * ratio**2)) * (1 + 1e-9)).all()


def test_how_many_records_one_liar_can_stand_for() -> None:
    """Few where the noise is small, many where a single submission is protected."""
    promise = {"epsilon": 1, "delta": 1e-6, "quorum": 2000}
    plain = Agreement.propose(SCHEMA, **promise)
    (radius,), (part,) = radii(plain), plain.parts
    assert records_worth(plain) == pytest.approx(radius / part.bound)
    assert 1 < records_worth(plain) < 3
    local = Agreement.propose(SCHEMA, **promise, local_epsilon=1.0, local_delta=1e-6)
    assert records_worth(local) > 20
    two = (("Office", "http://127.0.0.1:8001"), ("University", "http://127.0.0.1:8002"))
    blind = Agreement.propose(SCHEMA, **promise, databases=two, proofs=False)
    assert records_worth(blind) == math.inf
    proved = Agreement.propose(SCHEMA, **promise, databases=two)
    assert 1 < records_worth(proved) < 5
