"""Two halves of honest people differ by chance alone, whatever they send; liars who come together
differ by more.
"""

import itertools
import math

import numpy as np
import pytest

from blurfit.learning.inference import Difference, Inference, estimates_apart, halves_apart, limit


def spiky(count):
    """Nearly everybody sends 0, and a few send a lot."""
    found = np.zeros((count, 2))
    found[0], found[1, 0] = (1000.0, -1000.0), 1e6
    return found


@pytest.mark.parametrize("rows", [np.eye(14), spiky(14), np.arange(28.0).reshape(14, 2) ** 3])
def test_chance_passes_the_limit_as_rarely_as_is_said_whatever_is_sent(rows) -> None:
    """All 2¹⁴ ways in which pairs may fall into the two halves, each as likely as any other."""
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=len(rows))))
    squares = np.linalg.pinv(rows.T @ rows)
    sums = signs @ rows
    sizes = np.einsum("ij,jk,ik->i", sums, squares, sums)
    rank = np.linalg.matrix_rank(rows)
    for false_alarm in (0.5, 0.1, 0.01, 0.001):
        assert np.mean(sizes > limit(rank, false_alarm)) <= false_alarm


def test_the_limit_is_above_that_of_normal_numbers_and_not_far() -> None:
    rng = np.random.default_rng(1)
    for k in (1, 5, 40):
        point = np.quantile(rng.chisquare(k, 400_000), 0.999)
        assert point < limit(k, 0.001) < 2 * point


def test_honest_pairs_and_pairs_with_liars() -> None:
    rng = np.random.default_rng(2)
    pairs = rng.normal(size=(5000, 6)) @ rng.normal(size=(6, 6))
    honest = halves_apart(np.array_split(pairs, 7))
    whole = pairs.sum(axis=0)
    expected = whole @ np.linalg.solve(pairs.T @ pairs, whole)
    assert honest.size == pytest.approx(expected, rel=1e-9)
    assert honest == Difference(honest.size, limit(6), 10_000)
    assert not honest.alarms
    pairs[-50:, 0] += 20.0
    assert halves_apart([pairs]).alarms


def test_columns_always_the_same_and_too_few_people_do_no_harm() -> None:
    rng = np.random.default_rng(3)
    one = rng.normal(size=(400, 2))
    found = halves_apart([np.column_stack([one, np.zeros(400), one[:, 0] * 1e9])])
    assert found.limit == limit(2)
    assert found.size == pytest.approx(halves_apart([one]).size, rel=1e-6)
    assert halves_apart([]) is None
    assert halves_apart([np.ones((math.floor(limit(3)), 3))]) is None
    assert halves_apart([np.ones((math.floor(limit(1)) + 1, 1))]).alarms


def told(coefficients) -> Inference:
    cov = np.diag([0.01, 0.04])
    names = ("(intercept)", "age")
    return Inference(names, 100, np.array(coefficients), cov, cov, None, None, 0.0, False)


def test_estimates_are_compared_with_their_errors() -> None:
    found = estimates_apart(told([1.0, 2.0]), told([1.0, 2.8]))
    assert found.size == pytest.approx(0.8**2 / (2 * (3 + 1) * 0.04))
    assert not found.alarms
    assert estimates_apart(told([1.0, 2.0]), told([1.0, 8.0])).alarms
