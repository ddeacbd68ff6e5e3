"""Coverage of groups and weights: people are what they are said to be, and everything is asked."""

import numpy as np
import pytest

from blurfit_lab.experiments.answers import (
    COEFFICIENTS,
    NAMES,
    PEOPLE,
    grouped,
    groups_contest,
    levels,
    selected,
    truth,
    weights_contest,
)


@pytest.mark.parametrize("kind", PEOPLE)
def test_the_line_is_true_in_each_group(kind: str) -> None:
    people = grouped(kind, 6, 60_000, np.random.default_rng(1))
    coefficients, means = truth(6)
    for place, name in enumerate(levels(6)):
        own = people["group"] == name
        x = np.column_stack([people[one][own] for one in NAMES])
        assert x.mean(axis=0) == pytest.approx(means[place], abs=0.03)
        design = np.column_stack([np.ones(own.sum()), x])
        found = np.linalg.lstsq(design, people["y"][own], rcond=None)[0]
        assert found == pytest.approx(coefficients[place], abs=0.03)


def test_weights_undo_the_selection() -> None:
    people = selected(50_000, np.random.default_rng(2))
    assert abs(people["y"].mean() - COEFFICIENTS[0]) > 0.06
    weighted = np.average(people["y"], weights=people["weight"])
    assert weighted == pytest.approx(COEFFICIENTS[0], abs=0.01)
    assert people["weight"].max() <= 1


def test_few_trials_tell_everything() -> None:
    found = groups_contest([8192], [4.0], trials=6, kinds=["even"])
    assert len(found) == 3
    assert (found["coefficients"] > 0.8).all()
    assert (found["told"] > 0.5).all()
    weighted = weights_contest([4096], [4.0], trials=6)
    assert weighted["gone"][0] > 0.8
