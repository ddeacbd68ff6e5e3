"""A sweep that can be asked: how many contributors, which ε."""

import json
import math

import matplotlib as mpl
import pytest

from blurfit.forecast.sweep import Case, Forecast

mpl.use("Agg")


def case(n: int, ratio: float, epsilon: float = 1.0) -> Case:
    return Case(n, epsilon, "moment", None, error=ratio, lower=0, upper=9, without_privacy=1.0)


def test_contributors_needed_between_two_sizes() -> None:
    """ratio − 1 = 100/n, so 5% is reached at n = 2000."""
    cells = tuple(case(n, 1 + 100 / n) for n in (100, 1000, 10_000))
    found = Forecast("made up", False, 2.0, 1.0, cells)
    line = ("moment", 1.0, None)
    assert found.contributors_needed(line, 0.05) in (2000, 2001)
    assert found.contributors_needed(line, 5) == 100
    assert found.contributors_needed(line, 1e-3) is None


def test_a_lucky_small_size_does_not_count_as_enough() -> None:
    cells = tuple(case(n, r) for n, r in ((10, 1.01), (100, 1.2), (1000, 1.02)))
    found = Forecast("made up", False, 2.0, 1.0, cells)
    needed = found.contributors_needed(("moment", 1.0, None), 0.05)
    assert needed is not None
    assert 100 < needed < 1000


def test_what_is_not_known_is_none_in_json() -> None:
    unknown = Case(10, 1.0, "input", 2.0, reason="too few")
    document = Forecast("made up", True, 2.0, 1.0, (unknown,)).to_dict()
    (row,) = json.loads(json.dumps(document))["cases"]
    assert row["error"] is None
    assert row["ratio"] is None
    assert row["reason"] == "too few"
    assert math.isnan(unknown.ratio)


def test_how_much_the_model_would_explain() -> None:
    cell = case(100, 1.5)
    assert Forecast("made up", False, 2.0, 1.0, (cell,)).explained(cell) == 1 - 0.75**2
    assert Forecast("made up", True, 2.0, 1.0, (cell,)).explained(cell) == 0.25
    assert Forecast("made up", False, 1.0, 1.0, (cell,)).explained(cell) < 0


def test_each_mechanism_has_a_panel_with_its_lines() -> None:
    cells = [
        Case(n, 1.0, mechanism, local, 1 + 100 / n, 1.0, 1.2, 1.0, 5.0)
        for mechanism, local in (("moment", None), ("moment", 2.0), ("input", None))
        for n in (100, 1000)
    ]
    figure = Forecast("made up", False, 2.0, 1.0, tuple(cells)).plot()
    moment, by_input = figure.axes
    assert (moment.get_title(), by_input.get_title()) == ("moment", "input")
    beside = 2  # no privacy, and a constant
    assert len(moment.lines) == 2 + beside
    assert len(by_input.lines) == 1 + beside
    assert moment.lines[0].get_ydata() == pytest.approx([2.0, 1.1])
    mpl.pyplot.close(figure)
