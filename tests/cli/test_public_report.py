"""What public rows are worth, in words, from numbers that are known."""

import math

from rich.console import Console

from blurfit.cli._reports import public_answer, public_report
from blurfit.forecast.choices import Beside, PublicForecast

HELPS = Beside(5000, 1.0, None, alone=1.75, with_public_rows=1.25, without_privacy=1.0)
HARMS = Beside(5000, 1.0, 2.0, alone=1.25, with_public_rows=1.5, without_privacy=1.0)
ALONE_IS_NOTHING = Beside(5000, 1.0, None, math.nan, 1.5, 1.0)
NOTHING = Beside(100, 1.0, None, 1.5, math.nan, 1.0)
FOUND = PublicForecast("made up", False, 2000, 2.0, 1.0, (HELPS, HARMS, ALONE_IS_NOTHING, NOTHING))


def test_answers_say_whether_and_how_far_they_help() -> None:
    helps = public_answer(FOUND, HELPS)
    assert "public rows help: the model goes 75% of the way" in helps
    assert "25% of the way from a constant to no privacy without" in helps
    harms = public_answer(FOUND, HARMS)
    assert "public rows do not help" in harms
    assert "a local ε = 2" in harms
    assert "nothing at all without (error –)" in public_answer(FOUND, ALONE_IS_NOTHING)
    assert "no model can be had" in public_answer(FOUND, NOTHING)


def test_little_is_called_little_and_noise_is_not_praised() -> None:
    """Not "help" by a hair, nor by being the less useless of two models that are."""
    even = Beside(5000, 1.0, None, alone=1.504, with_public_rows=1.5, without_privacy=1.0)
    assert "public rows make little difference: the model goes 50%" in public_answer(FOUND, even)
    for alone in (2.3, math.nan):
        useless = Beside(5000, 1.0, 1.0, alone, with_public_rows=2.2, without_privacy=1.0)
        told = public_answer(FOUND, useless)
        assert "no model worth having: always guessing the same has the error 2.0" in told
        assert "2.200 with public rows and" in told
        assert "help" not in told


def test_the_table_has_every_case_and_says_what_is_assumed() -> None:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(public_report(FOUND))
    text = " ".join(capture.get().split())
    assert "2,000 public rows are read" in text
    assert "contributors are like the people in the public rows" in text
    assert text.count("5,000") == 6  # three answers and three rows
    assert "100 │" in text
