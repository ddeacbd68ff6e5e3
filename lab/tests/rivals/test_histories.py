"""Rivals for persons: what one person can move, and what they tell without noise."""

import numpy as np
import pytest

from blurfit.theory.gaussian import mu_of
from blurfit_lab.experiments.histories import diary, differences, exits
from blurfit_lab.rivals.histories import noisy_curve, own_regressions, persons_adassp

LITTLE = (1e5, 1e-6)  # hardly any noise


class Silent:
    """A generator whose noise is 0, or a constant that tells the scale."""

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def standard_normal(self, size=None):
        return self.value if size is None else np.full(size, self.value)


@pytest.mark.parametrize("method", [own_regressions, persons_adassp])
def test_slopes_approach_those_without_privacy(method):
    x, y = diary(3000, 0.0, 1)
    found = method(x, y, *LITTLE, np.random.default_rng(0))
    rows = x.reshape(-1, 5), y.ravel(), np.repeat(np.arange(3000), 8)
    plain = differences(rows)
    assert found == pytest.approx(plain, abs=0.05)  # a cut slope is shorter


def test_one_person_moves_the_mean_of_slopes_by_no_more_than_the_noise_is_for():
    x, y = diary(50, 0.0, 1)
    base, loud = (own_regressions(x, y, 1.0, 1e-6, Silent(value)) for value in (0.0, 1.0))
    worst = 0.0
    for seed in range(20):
        other = np.random.default_rng(seed).choice([-1.0, 1.0], (8, 5))
        moved, answers = x.copy(), y.copy()
        moved[7], answers[7] = other, np.sign(other @ np.full(5, 10.0) + 0.1)
        change = own_regressions(moved, answers, 1.0, 1e-6, Silent()) - base
        worst = max(worst, float(np.linalg.norm(change)))
    assert worst <= (loud - base)[0] * mu_of(1.0, 1e-6) * (1 + 1e-9)


def test_a_persons_sums_are_within_adassps_sensitivities(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "blurfit_lab.rivals.histories.AdaSSPRegressor.from_sums",
        lambda _, sums, __: (seen.append(sums), np.zeros(sums.dimension))[1],
    )
    generator = np.random.default_rng(0)
    for _ in range(50):
        x, y = np.sign(generator.normal(size=(1, 8, 5))), np.sign(generator.normal(size=(1, 8)))
        persons_adassp(x, y, 1.0, 1e-6, generator)
    assert max(np.trace(one.gram) for one in seen) <= 1 + 1e-12
    assert max(np.linalg.norm(one.moment) for one in seen) <= 1 + 1e-12


def test_the_curve_is_kaplan_and_meiers_and_a_person_is_in_one_cell():
    _, y, hazard = exits(20_000, 3)
    curve = noisy_curve(y["time"], y["event"], 8, *LITTLE, Silent())
    truth = np.exp(-hazard[:, None] * np.arange(1, 9) / 8).mean(axis=0)
    assert curve == pytest.approx(truth, abs=0.015)
    nobody = noisy_curve(np.ones(10), np.zeros(10, dtype=bool), 8, *LITTLE, Silent())
    assert nobody == pytest.approx(1.0)
