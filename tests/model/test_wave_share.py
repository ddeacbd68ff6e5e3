"""A model of waves states what each of them needs, and the weakest submission."""

from dataclasses import replace

import numpy as np
import pytest

from blurfit import Agreement, PublishedModel
from blurfit.agreement.plan import Plan
from blurfit.errors import BlurfitError, InvalidValueError
from blurfit.model.model import WaveShare
from blurfit.theory.guarantees import local_guarantee
from blurfit.theory.maps import ResidualMap, Whitening
from support.joint_release import SCHEMA

AGREEMENT = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=200)
PLAN = Plan.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=1000, waves=2)
SIZE = len(PLAN.first().form.columns) - 2  # without the target, and a categorical's last level
MAP = ResidualMap(Whitening([0.0] * SIZE, np.eye(SIZE), [0.0] * SIZE, 0.0), 1.0, 1.0, 1.0)
LAST = PLAN.following(("ab" * 32,), MAP)
KEPT = local_guarantee(99.0, 1e-6)
FIRST_SHARE = WaveShare(400, PLAN.quorums[0], PLAN.honest[0], KEPT.mu, KEPT.epsilon)
LAST_SHARE = WaveShare(
    PLAN.quorums[1],
    PLAN.quorums[1],
    PLAN.honest[1],
    LAST.calibration.local.mu,
    LAST.calibration.local.epsilon,
)


def model(agreement: Agreement, *waves: WaveShare) -> PublishedModel:
    names = tuple(one.name for one in SCHEMA.features)
    count = sum(one.count for one in waves) or 1000
    return PublishedModel(
        agreement, "income", names, np.zeros((1, 7)), count, "by hand", waves=waves
    )


def test_the_weakest_wave_speaks_for_a_submission() -> None:
    found = model(LAST, FIRST_SHARE, LAST_SHARE)
    assert found.quorum_in_words == "300 in wave 1 and 700 in wave 2"
    assert found.honest_in_words == "270 in wave 1 and 630 in wave 2"
    assert found.local == KEPT
    assert PublishedModel.from_json(found.to_json()).waves == found.waves


def test_one_wave_is_the_agreements_own() -> None:
    assert model(AGREEMENT).quorum_in_words == "200"
    assert model(AGREEMENT).local == AGREEMENT.calibration.local


def test_waves_add_up() -> None:
    with pytest.raises(InvalidValueError, match="to sum to count=1000"):
        PublishedModel(LAST, "income", ("age",), np.zeros((1, 2)), 1000, "", waves=(FIRST_SHARE,))


@pytest.mark.parametrize("numbers", [(280, 300, 270), (400, 300, 301), (400, 300, 0)])
def test_no_wave_is_below_what_it_waited_for(numbers) -> None:
    """Also not between the honest ones and all of them."""
    with pytest.raises(InvalidValueError, match="Expected honest="):
        WaveShare(*numbers, 9.0, 80.0)


@pytest.mark.parametrize(
    "waves",
    [
        (),  # under the agreement of a second wave
        (FIRST_SHARE,),
        (FIRST_SHARE, LAST_SHARE, LAST_SHARE),
        (replace(FIRST_SHARE, quorum=299), LAST_SHARE),  # not what the agreement states
        (replace(FIRST_SHARE, local_epsilon=1.0), LAST_SHARE),  # which its μ does not keep
        (replace(FIRST_SHARE, local_mu=float("nan")), LAST_SHARE),
        (FIRST_SHARE, replace(LAST_SHARE, honest=1)),
        (FIRST_SHARE, replace(LAST_SHARE, local_mu=0.01, local_epsilon=0.01)),
    ],
)
def test_what_is_stated_of_waves_agrees_with_the_agreement(waves) -> None:
    with pytest.raises(BlurfitError):
        model(LAST, *waves)
