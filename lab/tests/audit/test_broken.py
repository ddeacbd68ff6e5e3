"""Every mechanism that is broken on purpose is caught; its honest twin is not."""

import pytest

from blurfit import NotCertifiedError

from .broken import MECHANISMS, louder, small_agreement


@pytest.mark.statistical
@pytest.mark.parametrize("name", MECHANISMS)
def test_what_is_broken_is_caught_and_its_honest_twin_is_not(name: str) -> None:
    found = MECHANISMS[name]().audit()
    assert found.audited > 1.05 * found.promised
    assert not MECHANISMS[name]().audit(honest=True).broken


def test_all_kinds_that_were_asked_for_are_there() -> None:
    assert len(MECHANISMS) == 12
    assert MECHANISMS["float noise, no grid"]().audit().attack == "lowest bit"


def test_a_broken_agreement_is_refused_by_whoever_verifies_it() -> None:
    for terms in ({}, {"mechanism": "input", "weight_bound": 1.0, "quorum": 50}):
        agreement = small_agreement(2, **terms)
        agreement.verify()
        with pytest.raises(NotCertifiedError):
            louder(agreement, 0.25).verify()
