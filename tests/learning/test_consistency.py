"""What is published converges to least squares, or to maximum likelihood, of the same people,
whatever their law is.
"""

import numpy as np
import pytest

from blurfit.theory.gaussian import mu_of
from blurfit.theory.planning import choose_plan, choose_shares
from support.waves_by_hand import collect_in_waves

COUNT = 2**19
SLOPES = np.array([0.5, -0.4, 0.3, 0.2, 0.0])


def gaussian(generator: np.random.Generator) -> np.ndarray:
    return 0.3 * generator.normal(size=(COUNT, 5))


def loose(generator: np.random.Generator) -> np.ndarray:
    """Thirty times narrower than the bounds, away from their middle."""
    return 0.4 + 0.03 * generator.normal(size=(COUNT, 5))


def rare(generator: np.random.Generator) -> np.ndarray:
    return np.where(generator.random((COUNT, 5)) < 0.01, 1.0, -1.0)


def skewed(generator: np.random.Generator) -> np.ndarray:
    return np.exp(0.8 * generator.normal(size=(COUNT, 5))) / 10 - 1


def amounts(generator: np.random.Generator) -> np.ndarray:
    """0 for most, with a long tail: a start by moments is far too long."""
    some = generator.random((COUNT, 5)) < 0.3
    return some * np.exp(generator.normal(size=(COUNT, 5)) - 3)


def deviance(score: np.ndarray, y: np.ndarray, task: str) -> float:
    """−log likelihood a person: of ±1, or of counts up to what they alone decide."""
    if task == "label":
        return float(np.mean(np.logaddexp(0, -y * score)))
    return float(np.mean(np.exp(score) - y * score))


def likeliest(rows: np.ndarray, y: np.ndarray, task: str) -> np.ndarray:
    """Maximum likelihood by Newton's steps, halved while the deviance grows."""
    found = np.zeros(rows.shape[1])
    for _ in range(30):
        score = rows @ found
        rate = np.exp(score) if task == "count" else 1 / (1 + np.exp(-score))
        left, weight = (
            (y - rate, rate) if task == "count" else ((y + 1) / 2 - rate, rate * (1 - rate))
        )
        step = np.linalg.solve((rows * weight[:, None]).T @ rows, rows.T @ left)
        before = deviance(score, y, task)
        while deviance(rows @ (found + step), y, task) > before + 1e-12:
            step = step / 2
        found = found + step
        if np.linalg.norm(step) < 1e-6:
            break
    return found


@pytest.mark.statistical
@pytest.mark.parametrize("law", [gaussian, loose, rare, skewed])
@pytest.mark.parametrize("way", ["holder", "one send", "one wave"])
def test_the_excess_error_vanishes(law, way) -> None:
    """With a curved mean, to which weights are not blind, and errors of uneven spread."""
    generator = np.random.default_rng(7)
    v = np.clip(law(generator), -1, 1)
    signal = (v - v.mean(axis=0)) @ SLOPES
    signal = 0.05 * (signal / signal.std() + 0.3 * (signal / signal.std()) ** 2)
    y = np.clip(0.2 + signal * (1 + 0.5 * generator.normal(size=COUNT)), -1, 1)
    choose = choose_plan if way == "one send" else choose_shares
    mu, once = mu_of(8.0, 1 / COUNT**2), {"waves": 1} if way == "one wave" else {}
    plan = choose("number", coefficients=5, count=COUNT, mu=mu, **once)
    kinds, held = ["sign" if law is rare else "numeric"] * 5, way != "one send"
    got = collect_in_waves(v, y, kinds, plan=plan, mu=mu, generator=generator, held=held)
    rows = np.column_stack([np.ones(COUNT), v])
    best = np.linalg.lstsq(rows, y)[0]
    excess = np.mean((rows @ (got.coefficients - best)) ** 2) / np.var(y)
    assert excess < (0.005 if way == "one wave" else 0.001)


MOST = 50.0  # the largest count


@pytest.mark.statistical
@pytest.mark.parametrize("law", [gaussian, rare, skewed, amounts])
@pytest.mark.parametrize("task", ["label", "count"])
@pytest.mark.parametrize("way", ["holder", "one send"])
def test_the_excess_deviance_vanishes(law, task, way) -> None:
    """Of curves that are not true: a fifth has none, and rates are cut. A line's start is far from
    the curve for amounts, and two of Newton's steps do not come back from there.
    """
    generator = np.random.default_rng(8)
    v = np.clip(law(generator), -1, 1)
    signal = (v - v.mean(axis=0)) @ (np.array([3, 2, 1, 0.5, 0]) if law is amounts else SLOPES)
    score = np.minimum(0.7 * signal / signal.std(), 3.0)
    some = generator.random(COUNT) < 0.8
    if task == "count":
        y = np.minimum(generator.poisson(np.exp(score)) * some, MOST)
    else:
        y = np.where((generator.random(COUNT) < 1 / (1 + np.exp(-2 * score))) & some, 1.0, -1.0)
    choose, mu = choose_plan if way == "one send" else choose_shares, mu_of(8.0, 1 / COUNT**2)
    plan = choose(task, coefficients=5, count=COUNT, mu=mu)
    kinds, held = ["sign" if law is rare else "numeric"] * 5, way == "holder"
    facts = {"plan": plan, "mu": mu, "generator": generator, "held": held, "count_bound": MOST}
    got = collect_in_waves(v, y, kinds, **facts)
    rows, y = np.column_stack([np.ones(COUNT), v])[::4], y[::4]  # of whom a quarter is enough
    best = deviance(rows @ likeliest(rows, y, task), y, task)
    score = rows @ got.coefficients  # predictions are within the bounds
    score = np.minimum(score, np.log(MOST)) if task == "count" else score
    assert deviance(score, y, task) < best + 0.001
