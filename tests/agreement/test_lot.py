"""Which wave somebody is in: in proportion, by nobody's choice, and with a margin for colluders."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.agreement.waves import Lot, honest_among
from blurfit.errors import InvalidValueError, NotCertifiedError
from blurfit.schema.schema import Schema
from support.plans import FEATURES, TARGETS, plan

LOT = Lot("ab" * 32, (4000, 6000, 10_000))
TERMS = {"epsilon": 1.0, "delta": 1e-6, "quorum": 20_000, "waves": 3}


def hashes(count: int) -> list[bytes]:
    return [number.to_bytes(32) for number in range(count)]


def test_invitations_fall_into_groups_in_proportion() -> None:
    found = Counter(map(LOT.group_of, hashes(20_000)))
    for group, expected in enumerate(LOT.people, start=1):
        assert abs(found[group] - expected) < 4 * expected**0.5
    assert set(found) == {1, 2, 3}


def test_another_plan_draws_another_lot() -> None:
    other = Lot("cd" * 32, LOT.people)
    same = sum(LOT.group_of(one) == other.group_of(one) for one in hashes(2000))
    assert 600 < same < 900, "0.2² + 0.3² + 0.5² = 0.38 of them by chance"


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 3))
def test_shares_are_as_close_to_proportion_as_whole_numbers_are(count, seed, first) -> None:
    open_ones = LOT.in_all(first)
    shares = LOT.shares(count, seed % open_ones, first)
    assert sum(shares) == count
    assert shares[: first - 1] == [0] * (first - 1)
    for one, people in list(zip(shares, LOT.people, strict=True))[first - 1 :]:
        assert abs(one - count * people / open_ones) < 1


def test_one_person_s_coin_is_fair_over_all_offsets() -> None:
    small = Lot("ab" * 32, (2, 3, 5))
    drawn = Counter(small.shares(1, offset).index(1) + 1 for offset in range(10))
    assert drawn == {1: 2, 2: 3, 3: 5}


@given(st.integers(2, 10**9), st.integers(0, 500))
def test_as_many_are_honest_as_are_left_when_the_stated_share_colludes(people, thousandths) -> None:
    share = thousandths / 1000
    (honest,) = honest_among([people], share)
    colluding = people * thousandths // 1000  # a whole number of people, no more than the share
    assert people - colluding >= honest > (people * (1000 - thousandths)) / 1000 - 1


# ---- the margin


def test_a_wave_waits_for_more_than_its_noise_needs() -> None:
    made = plan(waves=2)
    assert made.terms.colluders == 0.1
    assert (made.quorums, made.honest) == ((12_000, 28_000), (10_800, 25_200))
    first = made.first()
    assert (first.quorum, first.honest) == (12_000, 10_800)
    assert first.calibration.guarantee(count=10_800).epsilon <= 1
    assert first.calibration.guarantee(count=10_700).epsilon > 1


@pytest.mark.parametrize("share", [-0.1, 0.51, float("nan")])
def test_no_other_share_is_covered(share: float) -> None:
    schema = Schema(FEATURES, TARGETS["number"])
    with pytest.raises(InvalidValueError, match="colluders"):
        Plan.propose(schema, colluders=share, **TERMS)


def test_without_waves_the_quorum_is_of_honest_people() -> None:
    terms = {name: value for name, value in TERMS.items() if name != "waves"}
    schema = Schema(FEATURES, TARGETS["number"])
    with pytest.raises(InvalidValueError, match="without waves"):
        Agreement.propose(schema, colluders=0.1, **terms)
    made = Agreement.propose(schema, colluders=0.0, **terms)
    assert made.quorum == made.honest == 20_000


def test_a_wave_with_noise_for_more_than_it_waits_for_is_refused() -> None:
    document = plan(waves=2).first().to_dict()
    document["wave"]["people"] = [10_000, 28_000]
    with pytest.raises(NotCertifiedError, match="sized for 10800"):
        Agreement.from_dict(document).verify()


def test_colluders_learn_no_more_than_without_waves() -> None:
    """The referee's table: ε of what they can learn, if 10 % of all collude.

    Before, they came first and were in one wave: 2,000 of its 4,000, ε = 1.455. Now the lot spreads
    them, and noise for a tenth fewer covers the mean; the worst that a lot does in 10¹² collections
    (Hoeffding) still is no more than what 10 % of a single wave learn.
    """
    schema = Schema(FEATURES, TARGETS["label"])
    alone = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=20_000)
    one_wave = alone.calibration.guarantee(count=18_000).epsilon
    assert one_wave == pytest.approx(1.058, abs=2e-3)
    first = Plan.propose(schema, **TERMS).first()
    assert first.quorum == 4000
    by_arrival = Plan.propose(schema, colluders=0.0, **TERMS).first()
    assert by_arrival.calibration.guarantee(count=2000).epsilon > 1.45
    assert first.calibration.guarantee(count=3600).epsilon <= 1
    unlucky = 400 + 240  # P ≤ exp(−2·240²/4000) = 3·10⁻¹³
    assert first.calibration.guarantee(count=4000 - unlucky).epsilon <= one_wave
