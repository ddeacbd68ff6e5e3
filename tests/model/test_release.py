"""What a set comes to, once; and the mark by which a second release is known to show the same."""

from dataclasses import replace

import numpy as np
import pytest

from blurfit import BelowQuorumError, InfeasibleError, PublishedMoments, Submissions, perturb_table
from blurfit.learning.sums import Totals
from blurfit.model.release import Release
from support.stores import PEOPLE, propose, totals_of


def part(table: Submissions, rows: slice) -> Submissions:
    return Submissions(table.identifiers[rows], table.fingerprint, table.numbers[rows])


def test_the_same_sums_have_the_same_mark_and_others_another(agreement) -> None:
    table = perturb_table(agreement, PEOPLE)
    some = totals_of(agreement, table)
    first, again = Release.of(agreement, some), Release.of(agreement, some)
    assert first == again
    assert first.mark() == again.mark()
    assert (first.moments is None) == (agreement.mechanism == "input")
    late = perturb_table(agreement, {name: values[:1] for name, values in PEOPLE.items()})
    both = Release.of(agreement, totals_of(agreement, table, late))
    assert both.mark() != first.mark()


def test_below_the_quorum_nothing_is_an_outcome(agreement) -> None:
    few = part(perturb_table(agreement, PEOPLE), slice(0, 19))
    with pytest.raises(BelowQuorumError):
        Release.of(agreement, totals_of(agreement, few))


def test_sums_that_allow_no_model_are_refused_for_ever() -> None:
    agreement = propose(mechanism="input")
    flat = Totals(40, np.array([-1e9, 0.0, -1e9, 0.0, 0.0]), agreement.fingerprint)
    release = Release.of(agreement, flat)
    assert release.model is None
    assert "without curvature" in str(release.refusal)
    for ask in (release.text, release.mark):
        with pytest.raises(InfeasibleError, match="without curvature"):
            ask()


def test_a_release_follows_from_its_moments_up_to_rounding_alone() -> None:
    agreement = propose(mechanism="moment")
    release = Release.of(agreement, totals_of(agreement, perturb_table(agreement, PEOPLE)))
    assert release.follows(agreement, 40)
    assert not release.follows(agreement, 39)
    assert not release.follows(propose(mechanism="moment", epsilon=90), 40)
    moments = PublishedMoments.from_json(release.moments)
    model = moments.fit()
    rounded = replace(model, weights=model.weights * (1 + 1e-9))
    assert Release(rounded.to_json(), release.moments).follows(agreement, 40)
    moved = replace(model, weights=model.weights * (1 + 1e-4))
    other = replace(moments, sums=moments.sums * (1 + 1e-4))
    for wrong in (
        Release(moved.to_json(), release.moments),
        Release(release.model, other.to_json()),
        Release(replace(model, caveats=("Nothing.",)).to_json(), release.moments),
        Release(moments.fit(target="age").to_json(), release.moments),
        Release(release.model),
        Release(refusal="No."),
    ):
        assert not wrong.follows(agreement, 40)
