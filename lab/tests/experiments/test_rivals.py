"""Comparisons have every method, under the same promise."""

import numpy as np
import pytest

from blurfit_lab.experiments import beyond
from blurfit_lab.experiments.beyond import (
    FOR_NUMBERS,
    FROM_ROWS,
    LOCAL,
    MORE_LINES,
    Comparison,
    Problem,
    more_weights,
    weights_from_rows,
)
from blurfit_lab.experiments.figures import LINES, NO_PRIVACY, Promise

pytestmark = pytest.mark.usefixtures("short_chains")


def test_all_lines_are_there_and_no_privacy_is_best_or_nearly(people, monkeypatch) -> None:
    monkeypatch.setattr(beyond, "PUBLISHED_STEPS", 100)
    small = Comparison("rivals", (512,), (1.0,), from_rows=True)
    cells = small.cells(people, 2)
    assert cells == ["linear:1.0:512:0:2", "logistic:1.0:512:0:2"]
    for cell in cells:
        rows = small.compute(people, cell, {})
        expected = {*LINES, *MORE_LINES, *FROM_ROWS}
        if cell.startswith("logistic"):
            expected -= set(FOR_NUMBERS)
        assert {row.line for row in rows} == expected
        assert len(rows) == 2 * len(expected)
        values = {row.line: row.value for row in rows if row.trial == 0}
        best = min(values.values()) if cell.startswith("linear") else max(values.values())
        assert values[NO_PRIVACY] == pytest.approx(best, rel=0.05)
        assert small.compute(people, cell, {}) == rows


def test_the_first_trials_of_everything_come_first(people) -> None:
    many = Comparison("u", (128, 512), (1.0,), from_rows=False)
    cells = many.cells(people, 30)
    assert cells[:2] == ["linear:1.0:128:0:20", "linear:1.0:512:0:20"]
    assert cells[-1] == "logistic:1.0:512:20:30"
    assert (
        many.compute(people, "linear:1.0:128:0:2", {})[-1]
        == (many.compute(people, "linear:1.0:128:1:2", {})[-1])
    )


@pytest.mark.parametrize("label", [False, True])
def test_weights_have_the_populations_dimension(people, label) -> None:
    problem = Problem(people, people.window(256, 0), Promise(1.0, 0.01), label)
    for line in MORE_LINES:
        if not (label and line in FOR_NUMBERS):
            found = more_weights(line, problem, np.random.default_rng(0))
            assert found.shape == (14,)
    found = weights_from_rows(LOCAL, problem, 3, np.random.default_rng(0))
    assert found.shape == (3, 14)
    assert len(problem.scores(found)) == 3
