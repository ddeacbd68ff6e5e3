"""Calibration errors are what scikit-learn's bins say, and waves are nearly calibrated."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.calibration import calibration_curve

from blurfit_lab.experiments.beyond import BINS, ERROR, Reliability, binned
from blurfit_lab.experiments.figures import MOMENT, NO_PRIVACY, WAVES
from blurfit_lab.experiments.plots import draw

pytestmark = pytest.mark.usefixtures("short_chains")


def test_bins_are_scikit_learns() -> None:
    generator = np.random.default_rng(1)
    probability = expit(generator.normal(size=5000) * 2)
    label = np.where(generator.random(5000) < probability**1.5, 1.0, -1.0)
    found = binned(probability, label)
    observed, predicted = calibration_curve(label > 0, probability, n_bins=BINS)
    np.testing.assert_allclose(found.observed, observed)
    np.testing.assert_allclose(found.predicted, predicted)
    assert found.weight.sum() == pytest.approx(1)
    assert found.error == pytest.approx(
        sum(
            np.mean(inside) * abs(np.mean(label[inside] > 0) - np.mean(probability[inside]))
            for place in range(BINS)
            if (inside := (probability * BINS).astype(int) == place).any()
        )
    )


def test_a_true_curve_has_no_error_but_that_of_sampling() -> None:
    generator = np.random.default_rng(2)
    probability = expit(generator.normal(size=200_000))
    label = np.where(generator.random(200_000) < probability, 1.0, -1.0)
    assert binned(probability, label).error < 0.005
    assert binned(probability**2, label).error > 0.05


def test_rows_and_picture(people, tmp_path) -> None:
    small = Reliability(epsilons=(3.0,), quorums=(512, 2048))
    cells = small.cells(people, 2)
    assert cells == ["3.0:512:2", "3.0:2048:2"]
    rows = [row for cell in cells for row in small.compute(people, cell, {})]
    errors = {
        line: np.mean(
            [row.value for row in rows if (row.line, row.variant, row.n) == (line, ERROR, 2048)]
        )
        for line in (NO_PRIVACY, MOMENT, WAVES)
    }
    assert errors[NO_PRIVACY] <= errors[WAVES] + 0.02
    assert errors[WAVES] < 0.12
    draw("reliability", rows, tmp_path / "a.png", "made up")
    assert (tmp_path / "a.png").stat().st_size > 2000
