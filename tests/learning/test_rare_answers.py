"""What a step leaves for the few with a rare answer is put on, or is said to be unknown."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from blurfit.learning.inference import Inference
from blurfit.learning.rare_answers import rare_answers
from blurfit.learning.wave_inference import newton_estimates, wave_estimates
from blurfit.theory.maps import LogisticNewton, NewtonMap, Whitening
from support.beliefs import belief_of, labels
from support.waves_by_hand import draw_wave

ROWS = 400_000


def told(v, y, kinds, start, groups=(), mu: float = 1e7) -> tuple[Inference, Inference]:
    """The estimates after one step from this start, and what they are without anything put on."""
    generator = np.random.default_rng(3)
    root = np.linalg.cholesky(np.cov(v.T))
    white = Whitening(v.mean(axis=0), np.linalg.inv(root), start[1:], start[0])
    chart = NewtonMap(white, LogisticNewton(), radius=10.0, robust=True)
    belief = replace(belief_of(v, y, "label"), kinds=kinds, groups=groups or (None,) * len(kinds))
    sums = draw_wave(chart, v, y, mu, generator)
    return wave_estimates(belief, chart, sums), newton_estimates(chart, sums)


@pytest.mark.parametrize("answer", [1.0, -1.0])
@pytest.mark.parametrize("off", [0.0, -0.3, 2.0, -1.5])
def test_the_log_odds_of_a_rare_yes_are_found_from_afar(answer, off) -> None:
    """One in fifty; from a start that is far from their log-odds, and one that is not."""
    generator = np.random.default_rng(6)
    v, rare = generator.normal(size=(ROWS, 3)) * 0.3, generator.random(ROWS) < 0.02
    v[:, 2] = np.where(rare, answer, -answer)
    slope = -2.5 * answer / 2
    truth = np.array([slope * answer, 1.0, -0.5, slope])  # 0 for all others
    y = labels(generator, v, truth)
    start = truth + off / 2 * np.array([1.0, 0.0, 0.0, answer])
    found, bare = told(v, y, ("numeric", "numeric", "sign"), start)
    errors = np.sqrt(np.diagonal(found.covariance))
    assert (np.abs(found.coefficients - truth) < 3 * errors).all()
    assert np.abs(found.coefficients - truth)[3] < 0.1
    if abs(off) > 1:
        assert np.abs(bare.coefficients - truth)[3] > 0.15


@pytest.mark.parametrize("rare", [0, 1, 2])
def test_levels_and_the_one_without_a_column_alike(rare) -> None:
    """Three levels, of which the last has no column; the start says nothing of them."""
    generator = np.random.default_rng(8)
    share = np.full(3, 0.49)
    share[rare] = 0.02
    level = generator.choice(3, size=ROWS, p=share)
    v = np.column_stack([level == 0, level == 1, generator.normal(size=ROWS) * 0.3]).astype(float)
    odds = np.array([0.3, -0.2, 0.1])
    odds[rare] = -3.0
    truth = np.array([odds[2], odds[0] - odds[2], odds[1] - odds[2], 1.0])
    y = labels(generator, v, truth)
    kinds, groups = ("level", "level", "numeric"), ("region", "region", None)
    found, bare = told(v, y, kinds, np.array([0.1, 0.0, 0.0, 0.9]), groups)
    seen, before = (
        np.array([one.coefficients[0] + one.coefficients[1], one.coefficients[:3] @ [1, 0, 1]])
        if rare < 2
        else one.coefficients[:1]
        for one in (found, bare)
    )
    truth = np.array([odds[0], odds[1]]) if rare < 2 else odds[2:]
    assert np.abs(seen - truth).max() < 0.2
    assert np.abs(before - truth).max() > 0.5


def test_of_whom_all_have_one_label_nothing_is_known() -> None:
    """Nor of whom noise hides it; the others' errors are what they are."""
    generator = np.random.default_rng(9)
    v, rare = generator.normal(size=(ROWS, 2)) * 0.3, generator.random(ROWS) < 0.01
    v[:, 1] = np.where(rare, 1.0, -1.0)
    y = np.where((generator.random(ROWS) < expit(v[:, 0])) | rare, 1.0, -1.0)
    for start in (0.0, 2.0):
        found, _ = told(v, y, ("numeric", "sign"), np.array([start, 1.0, start]))
        errors = np.sqrt(np.diagonal(found.covariance))
        assert errors[2] > 4
        assert errors[1] < 0.5
        others = np.array([1.0, 0.0, -1.0])  # the score of all others
        assert others @ found.coefficients == pytest.approx(0, abs=0.05)
        assert others @ found.covariance @ others < 0.01**2


def test_what_several_answers_have_in_common_is_put_on_once() -> None:
    """Eight rare answers, and a constant that is off for everybody."""
    generator = np.random.default_rng(5)
    v = np.where(generator.random((ROWS, 8)) < 0.1, 1.0, -1.0)
    truth = np.array([-1.0, *np.linspace(-0.3, 0.3, 8)])
    y = labels(generator, v, truth)
    found, bare = told(v, y, ("sign",) * 8, truth + 0.6 * np.eye(9)[0])
    mean = np.append(1.0, v.mean(axis=0))
    off, before = (abs(float((one.coefficients - truth) @ mean)) for one in (found, bare))
    assert before < 0.02
    assert off < 0.05
    assert np.abs(found.coefficients - truth).max() < 0.1


def test_each_answer_has_people_of_its_own() -> None:
    """A move adds 1 to the scores of those who give the answer, and nothing to others'."""
    generator = np.random.default_rng(1)
    level = generator.choice(4, size=9000, p=[0.6, 0.2, 0.15, 0.05])
    sign = np.where(generator.random(9000) < 0.2, -1.0, 1.0)
    v = np.column_stack([sign, *(level == one for one in range(3))]).astype(float)
    belief = belief_of(v, sign, "label")
    kinds, groups = ("sign", *("level",) * 3), (None, *("region",) * 3)
    answers = list(rare_answers(replace(belief, kinds=kinds, groups=groups)))
    moved = [np.column_stack([np.ones(len(v)), v]) @ one.move for one in answers]
    expected = [sign < 0, level == 1, level == 2, level == 3]
    np.testing.assert_array_equal(moved, expected)
    for one, rows in zip(answers, expected, strict=True):
        np.testing.assert_array_equal(v @ one.chosen == one.total, rows)
