"""Every mechanism that is broken on purpose is caught; its honest twin is not."""

import pytest

from blurfit import NotCertifiedError

from .broken import MECHANISMS, louder, louder_input, small_agreement, small_input


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
    agreement, public = small_agreement(2), small_input(weight_bound=1.0, quorum=50, delta=1e-5)
    for honest, broken in (
        (agreement, louder(agreement, 0.25)),
        (public, louder_input(public, 1 / 4)),
    ):
        honest.verify()
        with pytest.raises(NotCertifiedError):
            broken.verify()
