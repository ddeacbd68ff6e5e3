"""What is published converges to least squares of the same people, whatever their law is."""

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
