"""Standings on made-up errors, whose winner is known."""

import numpy as np
import pytest

from blurfit_lab.experiments.runner import Row
from blurfit_lab.experiments.standings import (
    Cell,
    Record,
    against,
    best_of,
    errors_of,
    geometric_mean,
    having,
    interval,
    under,
    worse,
)


def errors(ratio: float, trials: int = 50, noise: float = 0.5):
    """Ours is `ratio` times theirs, with noise that both share, and a little of its own."""
    generator = np.random.default_rng(0)
    found = {}
    for k in range(20):
        shared = np.exp(noise * generator.standard_normal(trials)) * (1 + k)
        own = np.exp(0.05 * generator.standard_normal(trials))
        cell = Cell(f"set {k}", "replace" if k % 2 else "zero-out", 1.0)
        found[cell] = {"ours": ratio * shared * own, "theirs": shared}
    return found


def test_a_clear_winner() -> None:
    found = errors(0.8)
    assert geometric_mean(found, "ours", "theirs") == pytest.approx(0.8, rel=0.02)
    low, high = interval(found, "ours", "theirs")
    assert low < 0.8 < high < 0.85
    record = against(found, "ours", "theirs")
    assert record == Record(20, 0, 0)
    assert record.p_value < 1e-5
    assert against(found, "theirs", "ours") == Record(0, 20, 0)
    assert best_of(found, ["theirs", "ours"]) == "ours"


def test_a_draw_is_even() -> None:
    record = against(errors(1.0), "ours", "theirs")
    assert record.even >= 14
    assert Record(0, 0, 20).p_value == 1.0
    assert Record(10, 10, 0).p_value > 0.4


def test_pairs_see_what_separate_trials_would_not() -> None:
    """The noise that both share is ten times the difference."""
    found = errors(0.95, noise=1.0)
    assert against(found, "ours", "theirs").wins >= 18
    unpaired = {
        cell: {
            "ours": np.random.default_rng(1).permutation(lines["ours"]),
            "theirs": lines["theirs"],
        }
        for cell, lines in found.items()
    }
    assert against(unpaired, "ours", "theirs").wins <= 6


def test_rows_by_cell_relation_and_trial() -> None:
    rows = [
        Row("moment", f"UCI, a set, {relation}", 1.0, 100, trial, 10.0 * trial + place)
        for trial in (1, 0)
        for place, relation in enumerate(("zero-out", "replace"))
    ]
    found = errors_of(rows)
    assert found[Cell("UCI, a set", "replace", 1.0)]["moment"].tolist() == [1.0, 11.0]
    assert list(under(found, "zero-out")) == [Cell("UCI, a set", "zero-out", 1.0)]


def test_worse_by_more_than_allowed_and_surely() -> None:
    found = errors(1.2)
    assert worse(found, "ours", ["theirs"], 1.1) == (20, 20)
    assert worse(found, "ours", ["theirs"], 1.3) == (0, 0)
    seen, sure = worse(errors(1.1, trials=4), "ours", ["theirs"], 1.1)
    assert 0 < sure + seen < 30
    assert sure < seen


def test_cells_with_a_line() -> None:
    found = errors(1.0)
    found[Cell("one more", "replace", 1.0)] = {"theirs": np.ones(3)}
    assert len(having(found, "theirs")) == 21
    assert len(having(found, "theirs", "ours")) == 20
