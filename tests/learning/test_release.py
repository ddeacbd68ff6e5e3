"""What a set comes to, once; and the mark by which a second release is known to show the same."""

import numpy as np
import pytest

from blurfit import BelowQuorumError, InfeasibleError, perturb_table
from blurfit.learning.release import Release
from blurfit.learning.statistics import Statistics
from support.stores import PEOPLE, propose


def sums(agreement, rows=slice(None)) -> Statistics:
    table = perturb_table(agreement, PEOPLE)
    add = Statistics.of_moments if agreement.mechanism == "moment" else Statistics.of_records
    return add(table.quadratic[rows], table.linear[rows]).under(agreement.fingerprint)


def test_the_same_sums_have_the_same_mark_and_others_another(agreement) -> None:
    some = sums(agreement)
    first, again = Release.of(agreement, some), Release.of(agreement, some)
    assert first == again
    assert first.mark() == again.mark()
    assert (first.statistics is None) == (agreement.mechanism == "input")
    late = sums(agreement, slice(0, 1))
    both = Release.of(agreement, some + late)
    assert both.mark() != first.mark()


def test_below_the_quorum_nothing_is_an_outcome(agreement) -> None:
    with pytest.raises(BelowQuorumError):
        Release.of(agreement, sums(agreement, slice(0, 19)))


def test_sums_that_allow_no_model_are_refused_for_ever() -> None:
    agreement = propose(mechanism="input")
    flat = Statistics(40, -1e9 * np.eye(2), np.zeros(2), agreement.fingerprint)
    release = Release.of(agreement, flat)
    assert release.model is None
    assert "without curvature" in str(release.refusal)
    for ask in (release.text, release.mark):
        with pytest.raises(InfeasibleError, match="without curvature"):
            ask()
