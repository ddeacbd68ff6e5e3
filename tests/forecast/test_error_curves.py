"""The picture of a forecast: a line and its band for each promise."""

import matplotlib as mpl
import pytest

from blurfit.forecast.error_curves import plot
from blurfit.forecast.results import Case, Forecast

mpl.use("Agg")


def test_each_mechanism_has_a_panel_with_its_lines() -> None:
    cells = [
        Case(n, 1.0, mechanism, local, 1 + 100 / n, 1.0, 1.2, 1.0, 5.0)
        for mechanism, local in (("moment", None), ("moment", 2.0), ("input", None))
        for n in (100, 1000)
    ]
    figure = plot(Forecast("made up", False, 2.0, 1.0, tuple(cells)))
    moment, by_input = figure.axes
    assert (moment.get_title(), by_input.get_title()) == ("moment", "input")
    beside = 2  # no privacy, and a constant
    assert len(moment.lines) == 2 + beside
    assert len(by_input.lines) == 1 + beside
    assert moment.lines[0].get_ydata() == pytest.approx([2.0, 1.1])
    mpl.pyplot.close(figure)
