"""A model of waves states what each of them needs, and the weakest submission."""

import numpy as np
import pytest

from blurfit import Agreement, PublishedModel
from blurfit.agreement.plan import Plan
from blurfit.errors import InvalidValueError
from blurfit.model.wave_share import WaveShare
from support.joint_release import SCHEMA

AGREEMENT = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=200)


def model(*waves: WaveShare) -> PublishedModel:
    names = tuple(one.name for one in SCHEMA.features)
    return PublishedModel(
        AGREEMENT, "income", names, np.zeros((1, 7)), 1000, "by hand", waves=waves
    )


def test_the_weakest_wave_speaks_for_a_submission() -> None:
    found = model(WaveShare(400, 300, 270, 9.0, 80.0), WaveShare(600, 500, 450, 4.0, 20.0))
    assert found.quorum_in_words == "300 in wave 1 and 500 in wave 2"
    assert found.honest_in_words == "270 in wave 1 and 450 in wave 2"
    assert (found.local.mu, found.local.epsilon) == (9.0, 80.0)
    assert PublishedModel.from_json(found.to_json()).waves == found.waves


def test_one_wave_is_the_agreements_own() -> None:
    assert model().quorum_in_words == "200"
    assert model().local == AGREEMENT.calibration.local


def test_waves_add_up() -> None:
    with pytest.raises(InvalidValueError, match="to sum to count=1000"):
        model(WaveShare(400, 300, 270, 9.0, 80.0))


@pytest.mark.parametrize("numbers", [(280, 300, 270), (400, 300, 301), (400, 300, 0)])
def test_no_wave_is_below_what_it_waited_for(numbers) -> None:
    """Also not between the honest ones and all of them."""
    with pytest.raises(InvalidValueError, match="Expected honest="):
        WaveShare(*numbers, 9.0, 80.0)


def test_waves_waited_for_what_the_agreement_states() -> None:
    plan = Plan.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=1000, waves=2)
    names, (first, second) = tuple(one.name for one in SCHEMA.features), plan.quorums
    shares = [
        WaveShare(first - 1, first - 1, 1, 9.0, 80.0),
        WaveShare(second + 1, second, 1, 4, 20),
    ]
    with pytest.raises(InvalidValueError, match="as the agreement states"):
        PublishedModel(
            plan.first(), "income", names, np.zeros((1, 7)), 1000, "by hand", waves=tuple(shares)
        )
