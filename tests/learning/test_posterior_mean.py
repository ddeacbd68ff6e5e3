"""The gradient by differences, the sampler by a case with a known answer, and what it is worth."""

import numpy as np
import pytest
from joint_people import TRUTH, collected, people

from blurfit.learning import shrinkage as module
from blurfit.learning.shrinkage import linear_bayes, posterior_mean
from blurfit.learning.sums import JointColumn, JointSums
from support.joint_sums import clean_sums
from support.waves_by_hand import score


def test_the_gradient_is_that_of_the_energy() -> None:
    generator = np.random.default_rng(1)
    sums = collected(500, 0.5, generator).submodel("y")
    law = module._Moments(sums)
    x = law.point(linear_bayes(sums)) + 0.1 * generator.normal(size=(2, law.size))
    slope = law.slope(x)
    for i in range(law.size):
        up, down = x.copy(), x.copy()
        up[:, i] += 1e-5
        down[:, i] -= 1e-5
        measured = (law.energy(up) - law.energy(down)) / 2e-5
        np.testing.assert_allclose(slope[:, i], measured, rtol=1e-5, atol=1e-4)


def test_the_chains_start_at_linear_bayes_and_repeat_themselves() -> None:
    sums = collected(3000, 0.5, np.random.default_rng(2)).submodel("y")
    begin = linear_bayes(sums)
    law = module._Moments(sums)
    moments = law.moments(law.point(begin)[None])[0]
    found = np.linalg.solve(moments[:-1, :-1], moments[:-1, -1])
    np.testing.assert_allclose(found, begin.coefficients, atol=1e-8)
    sums = collected(1000, 0.3, np.random.default_rng(6)).submodel("y")
    assert np.array_equal(posterior_mean(sums).theta, posterior_mean(sums).theta)
    other = collected(1000, 0.3, np.random.default_rng(7)).submodel("y")
    assert module._seed(other) != module._seed(sums)


def test_one_feature_agrees_with_a_sum_over_a_grid() -> None:
    """One feature, ȳ and v̄ nearly known: E[T_vv] and E[T_vy] by brute force over three numbers."""
    columns = (JointColumn("v", 0.6), JointColumn("y", 0.6))
    values = np.random.default_rng(3).uniform(-1, 1, (400, 2))
    sums = JointSums(columns, 0.5, 400, clean_sums(columns, 0.5, values), 20.0).submodel("y")
    law = module._Moments(sums)
    generator = np.random.default_rng(4)
    # Importance sampling from the prior: the second route to the same posterior mean.
    x = law.centre + law.spread * generator.normal(size=(200_000, len(law.centre)))
    diagonal = np.log(np.sqrt(generator.chisquare(law.degrees[0], 200_000)))
    x = np.column_stack([x, diagonal])
    moments = law.moments(x)
    gap = moments * np.outer(law.weights, law.weights) - law.seen
    gap[:, 0, 0] = 0
    log = -law.precision / 2 * np.sum(gap**2, axis=(1, 2))
    weight = np.exp(log - log.max())
    expected = np.tensordot(weight / weight.sum(), moments, 1)
    found = module._sample(law, law.point(linear_bayes(sums)), np.random.default_rng(5))
    np.testing.assert_allclose(found, expected, atol=0.03)


@pytest.mark.statistical
def test_where_noise_rules_it_is_as_good_as_linear_bayes_and_better_than_a_constant() -> None:
    generator = np.random.default_rng(8)
    test = people(3000, generator)
    truth = TRUTH[0] + test[:, :7] @ TRUTH[1:]
    linear, sampled = [], []
    for _ in range(12):
        sums = collected(400, 0.3, generator).submodel("y")
        begin = linear_bayes(sums)
        linear.append(np.mean((score(begin, test[:, :7]) - truth) ** 2))
        found = posterior_mean(sums, begin)
        sampled.append(np.mean((score(found, test[:, :7]) - truth) ** 2))
        assert np.linalg.eigvalsh(found.features.covariance).min() > 0
    assert np.mean(sampled) < np.mean(linear) * 1.05
    assert np.mean(sampled) < truth.var() * 0.75
