"""The experiment on histories runs, and its yardsticks are what they say."""

import numpy as np
import pytest

from blurfit_lab.experiments import histories
from blurfit_lab.experiments.histories import (
    BETA,
    SLOPES,
    diaries,
    diary,
    differences,
    exits,
    survival,
)
from blurfit_lab.experiments.lines import Collections

seeded = pytest.mark.filterwarnings("ignore::blurfit.errors.NotPrivateWarning")


def test_fixed_effects_do_not_see_what_stays_the_same_in_a_person() -> None:
    x, y = diary(20_000, 0.0, 1)
    rows, whose = x.reshape(-1, 5), np.repeat(np.arange(20_000), 8)
    found, moved = (differences((rows, target.ravel(), whose)) for target in (y, y + x[:, :1, 0]))
    assert np.abs(found - moved).max() < 1e-12
    assert np.abs(found - BETA).max() < 0.02  # but for clipping


def test_hazards_are_those_of_the_slopes() -> None:
    v, y, hazard = exits(50_000, 1)
    assert np.allclose(hazard, 0.45 + v @ SLOPES / np.sqrt(5))
    assert y["event"].sum() / y["time"].sum() == pytest.approx(0.45, rel=0.03)


@seeded
def test_a_cell_of_each(monkeypatch) -> None:
    monkeypatch.setattr(histories, "_TRUTH", 20_000)
    found = diaries(Collections([2048], [8.0], 4))
    assert found["ratio"].between(0.8, 2).all()  # of four trials
    assert (found["coverage"] > 0.5).all()
    one = survival(Collections([4096], [8.0], 4)).iloc[0]
    assert one["privacy adds"] < one["without privacy"]
