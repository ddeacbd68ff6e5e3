"""Every line trains on the same rows, keeps the task's promise, and repeats."""

import numpy as np
import pytest

from blurfit.experiments import head_to_head
from blurfit.experiments.head_to_head import (
    EPSILONS,
    LINES,
    OURS,
    PRIVATE_MEAN,
    RIVAL_LINES,
    HeadToHead,
    Task,
    fitted,
    private_mean,
)
from blurfit.experiments.methods import NO_PRIVACY


@pytest.fixture
def small(monkeypatch) -> HeadToHead:
    monkeypatch.setattr(head_to_head, "PEOPLE", {"people": 256})
    monkeypatch.setattr(head_to_head, "TESTED", 128)
    monkeypatch.setattr(head_to_head, "_has_uci", lambda: False)
    return HeadToHead()


def test_cells(small, people, monkeypatch) -> None:
    cells = small.cells(people, 3)
    assert len(cells) == 2 * 6
    assert cells[0] == "people:replace:0.1:3"
    assert EPSILONS == (0.1, 0.2512, 0.631, 1.585, 3.981, 10.0)
    monkeypatch.setattr(head_to_head, "_has_uci", lambda: True)
    assert len(small.cells(people, 3)) == 13 * 12


def test_every_line_in_every_trial_and_the_same_again(small, people) -> None:
    rows = small.compute(people, "people:zero-out:10.0:2", {})
    assert {row.line for row in rows} == set(LINES)
    assert len(rows) == 2 * len(LINES)
    assert {row.variant for row in rows} == {"people, zero-out"}
    assert {row.n for row in rows} == {256}
    assert all(0 < row.value <= 1 for row in rows)  # predictions are clipped to the bounds
    assert small.compute(people, "people:zero-out:10.0:2", {}) == rows
    value = {row.line: row.value for row in rows if row.trial == 0}
    assert value[NO_PRIVACY] < value[PRIVATE_MEAN]


def test_rows_are_those_of_the_trial_whatever_the_cell(small, people) -> None:
    first, again = (small._split(people, "people", 4) for _ in range(2))
    other = small._split(people, "people", 5)
    assert np.array_equal(first[0][0], again[0][0])
    assert not np.array_equal(first[0][0], other[0][0])
    (train, _), (test, _) = first
    assert len(train) == 256
    assert len(test) == 128


def test_a_line_is_told_the_promise_and_gives_weights_of_encoded_columns() -> None:
    seen = {}

    class Copy:
        def __init__(self, **terms):
            seen.update(terms)

        def fit(self, X, y):
            seen["largest"] = np.abs(X).max()
            self.coef_, self.intercept_ = np.array([1.0, 2.0]), 3.0
            return self

    x = np.array([[0.5, -0.5, 1], [1, 1, 1]]) / np.sqrt(3)
    task = Task(x, np.array([0.0, 1.0]), 0.7, 1e-3, "replace")
    weights = fitted(Copy, rounds=2)(task, np.random.default_rng(0))
    assert x @ weights == pytest.approx([0.5 - 1 + 3, 1 + 2 + 3])
    assert (seen["epsilon"], seen["delta"], seen["neighbours"]) == (0.7, 1e-3, "replace")
    assert seen["rounds"] == 2
    assert seen["largest"] == pytest.approx(1.0)


def test_the_private_mean_is_a_mean() -> None:
    x = np.ones((1000, 1))
    task = Task(x, np.linspace(-1, 0.2, 1000), 5.0, 1e-6, "zero-out")
    (weight,) = private_mean(task, np.random.default_rng(0))
    assert weight == pytest.approx(-0.4, abs=0.01)
    assert set(OURS).isdisjoint(RIVAL_LINES)


@pytest.mark.parametrize("name", [*OURS, *RIVAL_LINES])
def test_with_little_privacy_lines_come_close_to_least_squares(name, people) -> None:
    """Those that can: one groups rows, one makes bins, mixtures are few, and steps are few."""
    x, y = people.x[:4000], people.y[:4000]
    task = Task(x, y, 20.0, 1e-6, "zero-out")
    weights = LINES[name](task, np.random.default_rng(1))
    best = np.linalg.lstsq(x, y, rcond=None)[0]
    error, least = (float(np.mean((np.clip(x @ w, -1, 1) - y) ** 2)) for w in (weights, best))
    rough = name in ("BinAgg", "TukeyEM", "GaussMix (exact)", "gradient (modern accounting)")
    assert error < (1.7 if rough else 1.1) * least
