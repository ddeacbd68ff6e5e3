"""Intervals of the last Newton step cover, and are refused where they would not."""

import numpy as np
import pytest
from scipy.special import expit

from blurfit.errors import InfeasibleError
from blurfit.learning.wave_inference import wave_estimates
from blurfit.simulation.waves import Collected, collect_in_waves
from blurfit.theory.planning import Stage, Stages

BETA = np.array([0.2, 1.0, -0.8, 0.5, 0.0])
STAGES = (("joint", 0.2), ("residual", 0.2), ("newton", 0.2), ("newton", 0.4))


def collect(
    n: int, mu: float, generator: np.random.Generator, stages=STAGES, steepness: float = 1.0
) -> Collected:
    v = np.clip(generator.normal(size=(n, 4)) * 0.4 + generator.normal(size=(n, 1)) * 0.2, -1, 1)
    y = np.where(generator.random(n) < expit(steepness * (BETA[0] + v @ BETA[1:])), 1.0, -1.0)
    plan = Stages("label", tuple(Stage(kind, fraction) for kind, fraction in stages))
    return collect_in_waves(v, y, ["numeric"] * 4, plan=plan, mu=mu, generator=generator)


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "mu"), [(10_000, 0.7), (5_000, 5.0)])
def test_coverage_of_95_percent(n: int, mu: float) -> None:
    generator = np.random.default_rng(n)
    hits = []
    for _ in range(40):
        got = collect(n, mu, generator)
        found = wave_estimates(got.beliefs[-2], got.maps[-1], got.later[-1]).whole
        told = found.estimates()
        hits.append([one.lower < truth < one.upper for one, truth in zip(told, BETA, strict=True)])
    assert 0.915 <= np.mean(hits) <= 0.99


def test_refused_where_noise_rules() -> None:
    got = collect(2_000, 0.05, np.random.default_rng(2))
    with pytest.raises(InfeasibleError, match="noise dominates"):
        wave_estimates(got.beliefs[-2], got.maps[-1], got.later[-1])


def test_refused_where_one_step_is_not_enough() -> None:
    stages = (("joint", 0.001), ("newton", 0.999))
    got = collect(20_000, 2.0, np.random.default_rng(3), stages, steepness=4.0)
    with pytest.raises(InfeasibleError, match="another Newton wave"):
        wave_estimates(got.beliefs[-2], got.maps[-1], got.later[-1])
