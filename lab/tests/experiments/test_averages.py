"""Means and slopes."""

import pytest

from blurfit_lab.experiments.runner import Row
from blurfit_lab.experiments.standings import Key, means, power, slope


def test_means_and_their_errors() -> None:
    rows = [Row("a", "", 1.0, 128, trial, value) for trial, value in enumerate([1.0, 2.0, 3.0])]
    found = means([*rows, Row("b", "", 1.0, 128, 0, 5.0)])
    assert found[Key("a", "", 1.0, 128)].value == 2.0
    assert found[Key("a", "", 1.0, 128)].error == pytest.approx(1 / 3**0.5)
    assert found[Key("b", "", 1.0, 128)].error == 0.0


def test_slopes_leave_out_what_has_no_logarithm() -> None:
    assert slope([(1, 1.0), (10, 0.01), (100, 0.0001), (1000, -1.0)]) == pytest.approx(-2)


def test_powers() -> None:
    assert power(2**17) == "2¹⁷"
    assert power(100) == "100"
