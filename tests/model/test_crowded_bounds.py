"""Bounds that clip most people are betrayed by the release itself, and warned of; no others are."""

import warnings

import numpy as np
import pytest

from blurfit import AdviceWarning, Agreement, Numeric, Schema
from blurfit.estimators import MomentPerturbationRegressor
from blurfit.learning.sums import crowded_bound
from blurfit.model.release import PublishedMoments, moments_of
from blurfit.simulation import exact_totals, sampler_for

COUNT = 20_000
GENERATOR = np.random.default_rng(0)
SCHOOL = GENERATOR.uniform(0, 24, COUNT)
PAY = 31_000 + 1000 * SCHOOL + GENERATOR.normal(0, 12_000, COUNT)
SKEWED = GENERATOR.exponential(30_000, COUNT)
MOSTLY_NONE = np.where(GENERATOR.random(COUNT) < 0.6, 0.0, PAY)


def release(pay: np.ndarray, lower: float, upper: float, seed: int = 0) -> PublishedMoments:
    schema = Schema([Numeric("school", 0, 24)], Numeric("pay", lower, upper))
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=COUNT)
    totals = exact_totals(agreement, {"school": SCHOOL, "pay": pay})
    return moments_of(agreement, sampler_for(agreement, totals).draw(np.random.default_rng(seed)))


@pytest.mark.parametrize(
    ("pay", "lower", "upper", "crowded"),
    [
        (PAY, 0, 30_000, "upper"),
        (PAY, 0, 40_000, "upper"),
        (PAY, 45_000, 90_000, "lower"),
        (PAY, 0, 60_000, None),
        (PAY, 0, 200_000, None),
        (PAY, 0, 10_000_000, None),
        (SKEWED, 0, 100_000, None),
        (SKEWED, -1, 100_000_000, None),
        (MOSTLY_NONE, 0, 100_000, None),  # 0 is where many numbers end
    ],
)
def test_the_bound_that_clips_most_is_named(pay, lower, upper, crowded) -> None:
    for seed in range(5):
        model = release(pay, lower, upper, seed).fit()
        assert model.crowded == crowded
        assert type(model).from_json(model.to_json()).crowded == crowded
        caution = "Many people seem to be at the" in " ".join(str(model.summary()).split())
        assert caution == (crowded is not None)


def test_noise_alone_names_no_bound() -> None:
    """Where hardly anything is known, nothing is said, whatever the noise makes of the sums."""
    schema = Schema([Numeric("school", 0, 24)], Numeric("pay", 10, 20))
    agreement = Agreement.propose(schema, epsilon=0.01, delta=1e-6, quorum=200)
    people = {"school": SCHOOL[:200], "pay": np.linspace(10, 20, 200)}
    sampler = sampler_for(agreement, exact_totals(agreement, people))
    for seed in range(200):
        sums = moments_of(agreement, sampler.draw(np.random.default_rng(seed))).joint
        assert crowded_bound(sums, schema.target) is None


@pytest.mark.parametrize("waves", [1, "auto"])
def test_a_fit_warns(waves) -> None:
    """It says so of a mean of 43,000 within (0, 30,000), and nothing of (0, 200,000)."""
    for upper, warned in ((30_000, 1), (200_000, 0)):
        model = MomentPerturbationRegressor(
            epsilon=1, bounds=(0, 24), target_bounds=(0, upper), waves=waves
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(SCHOOL[:, None], PAY)
        words = [str(one.message) for one in caught if one.category is AdviceWarning]
        assert len(words) == warned
        assert all("upper bound of target, 30,000" in one for one in words)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"epsilon": 50.0}, "ε = 50 promises little"),
        ({"delta": 0.1}, "δ = 0.1 is more than one in"),
    ],
)
def test_terms_that_promise_little_are_warned_of_as_agree_does(terms, words) -> None:
    model = MomentPerturbationRegressor(
        **terms, bounds=(0, 24), target_bounds=(0, 200_000), waves=1
    )
    with pytest.warns(AdviceWarning, match=words) as caught:
        model.fit(SCHOOL[:, None], PAY)
    assert len(caught) == 1
    assert caught[0].filename == __file__
