"""A database's own noise: its law, its grid, and that it is there exactly once."""

from dataclasses import replace

import numpy as np
import pytest

from blurfit import Agreement, InfeasibleError, InvalidValueError
from blurfit import randomness as noise
from blurfit.learning.sums import Totals
from blurfit.model.release import moments_of
from blurfit.simulation import exact_totals, sampler_for
from support.proposals import PEOPLE, SCHEMA, propose

PROMISE = {"epsilon": 1.0, "delta": 1e-6, "quorum": 20}
NOISY = Agreement.propose(SCHEMA, **PROMISE, database_noise=True)
PLAIN = Agreement.propose(SCHEMA, **PROMISE)


def test_it_has_the_deviation_of_a_whole_quorum_on_each_number() -> None:
    drawn = noise.database_steps(NOISY, 20_000) * NOISY.step
    expected = NOISY.calibration.sigma / np.sqrt(NOISY.form.counts)
    assert drawn.std(axis=0) == pytest.approx(expected, rel=0.03)
    assert np.abs(drawn.mean(axis=0) / expected).max() < 0.05
    apart = np.corrcoef(drawn.T) - np.eye(drawn.shape[1])
    assert np.abs(apart).max() < 0.05


def test_sums_stay_on_the_grid_and_get_it_once() -> None:
    step = NOISY.step
    clean = exact_totals(NOISY, PEOPLE)
    whole = Totals(clean.count, np.rint(clean.sums / step) * step, NOISY.fingerprint)
    found = noise.with_database_noise(NOISY, whole)
    added = (found.sums - whole.sums) / step
    assert (added == np.rint(added)).all()
    assert added.any()
    assert found.draws == 1
    with pytest.raises(InvalidValueError, match="added once"):
        noise.with_database_noise(NOISY, found)


def test_nothing_is_learned_without_it_and_nothing_changes_where_it_is_not_agreed() -> None:
    totals = Totals(40, np.zeros(NOISY.width), NOISY.fingerprint)
    for draws in (0, 2):
        with pytest.raises(InvalidValueError, match="noise of 1 databases"):
            moments_of(NOISY, replace(totals, draws=draws))
    plain = Totals(40, np.zeros(PLAIN.width), PLAIN.fingerprint)
    assert noise.with_database_noise(PLAIN, plain) is plain
    assert not noise.database_words(PLAIN).any()
    with pytest.raises(InvalidValueError, match="noise of 0 databases"):
        moments_of(PLAIN, replace(plain, draws=1))


def test_more_than_add_exactly_are_refused_by_their_number_alone() -> None:
    totals = Totals(2**50, np.zeros(NOISY.width), NOISY.fingerprint)
    with pytest.raises(InfeasibleError, match="exact before"):
        noise.with_database_noise(NOISY, totals)


def test_errors_count_all_noise_and_the_promise_counts_one_part() -> None:
    shown = [
        moments_of(one, sampler_for(one, exact_totals(one, PEOPLE)).draw(np.random.default_rng(1)))
        for one in (PLAIN, NOISY)
    ]
    ratio = shown[1].deviation / shown[0].deviation
    assert ratio == pytest.approx((1 + 20 / 40) ** 0.5)  # N = 40, n = 20
    plain, noisy = (one.guarantee for one in shown)
    assert replace(plain, condition=noisy.condition) == noisy
    assert "even if every other contributor lies" in noisy.condition
    assert NOISY.calibration == PLAIN.calibration


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"epsilon": 600.0}, "at most 500"),
        ({"database_noise": 1}, "true or false"),
    ],
)
def test_where_it_cannot_be_kept_it_is_refused(terms, words) -> None:
    with pytest.raises((InfeasibleError, InvalidValueError), match=words):
        propose(**{"database_noise": True} | terms)
