"""The whole sequence of releases keeps the promise of one; what breaks it is caught."""

import pytest

from blurfit.audit.agreements import farthest_under_a_map
from support.broken_waves import Sequence, broken_waves

KINDS = ("residual", "newton")
WAYS = ("a person in two waves", "a map that peeks", "no cut to the ball")
BROKEN = {kind: broken_waves(kind) for kind in KINDS}


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_what_is_broken_is_caught(kind: str, way: str) -> None:
    found = BROKEN[kind][way].audit()
    assert found.audited > 1.05 * found.promised


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_its_honest_twin_is_not(kind: str, way: str) -> None:
    """In wave 1 and in wave 2, under hostile maps that follow what wave 1 published."""
    found = BROKEN[kind][way].audit(honest=True)
    assert not found.broken
    assert found.audited > 0.1 * found.promised  # the attack sees something


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_maps_bring_people_as_far_apart_as_the_reach(kind: str) -> None:
    for agreement in Sequence(kind).later:
        agreement.verify()
        one, other = farthest_under_a_map(agreement.form)
        apart = ((one - other) ** 2 @ agreement.form.counts) ** 0.5
        reach = agreement.form.reach("replace").sums
        assert 0.7 * reach < apart <= reach * (1 + 1e-12)
