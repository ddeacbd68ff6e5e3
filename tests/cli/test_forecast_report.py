"""Answers in words, from a forecast whose numbers are known."""

import pytest
from rich.console import Console

from blurfit.cli._reports import advice_in_words, forecast_report, liars_in_words, number
from blurfit.forecast.choices import Advice
from blurfit.forecast.sweep import Case, Forecast


def case(mechanism, n: int, factor: float, local: float | None = None) -> Case:
    ratio = 1 + factor / n
    return Case(n, 1.0, mechanism, local, ratio, ratio - 0.01, ratio + 0.01, 1.0, 5.0)


@pytest.fixture
def found() -> Forecast:
    cells = [case("moment", n, 100) for n in (100, 1000, 10_000)]
    cells += [case("input", n, 200) for n in (100, 1000, 10_000)]
    cells += [case("moment", n, 400, 2.0) for n in (100, 1000, 10_000)]
    return Forecast("made up", False, 2.0, 1.0, tuple(cells))


def words(renderable) -> str:
    console = Console(width=120, record=True, file=None, quiet=False)
    with console.capture() as capture:
        console.print(renderable)
    return " ".join(capture.get().split())


def test_numbers_have_one_format() -> None:
    assert [number(x) for x in (26478.3, 9673.4, 12.34567, 0.314159, 1.0, 0.0, 999.96)] == [
        *("26,480", "9,673", "12.35", "0.3142", "1.000", "0", "1,000.0"),
    ]


def test_report_answers_what_people_ask(found) -> None:
    text = words(forecast_report(found, 0.05))
    assert text.startswith("Contributors needed for an error within 5%")
    assert "within 5% of no privacy" in text
    assert "2,000" in text  # moment
    assert "4,000" in text  # input
    assert "input takes 2 times as many as moment." in text
    assert "A local ε of 2 takes 4 times as many (moment)." in text
    assert "1.100 1.09–1.11" in text.replace("│", " ").replace("  ", " ") or "1.09–1.11" in text


def test_what_is_not_reached_or_reached_at_once_is_said(found) -> None:
    assert "more" in words(forecast_report(found, 0.001))
    assert "≤ 100" in words(forecast_report(found, 10))


def test_refusals_and_gaps_are_shown() -> None:
    cells = (
        Case(10, 1.0, "input", None, reason="too few"),
        Case(100, 1.0, "input", None, 1.1, 1.0, 1.2, 1.0, 5.0, refused=0.25),
    )
    text = words(forecast_report(Forecast("made up", True, 2.0, 1.0, cells), 0.05))
    assert "–" in text
    assert "25% refused" in text
    assert "share of wrong predictions" in text


def test_advice_in_words(found) -> None:
    before, after = found.cases[0], found.cases[1]
    text = advice_in_words(Advice({"l2": 3.0, "balance": 1.5}, before, after))
    assert "l2 = 3, balance = 1.5 brings the error from 2.000 to 1.100" in text
    assert "as good as any" in advice_in_words(Advice({}, before, before))


def test_liars_move_columns_as_people_call_them() -> None:
    words = liars_in_words({"(intercept)": 1.5, "region=n": 2.0}, {"region=n": "Region: north"})
    assert words.endswith("by up to: (intercept) ± 1.50, Region: north ± 2.00.")
    assert "region=n by any amount" in liars_in_words({"region=n": None}, {})


def test_a_table_ends_where_more_people_change_nothing() -> None:
    sizes = (100, 1000, 10_000, 100_000, 1_000_000, 10_000_000)
    cells = tuple(case("moment", n, 100) for n in sizes)
    text = words(forecast_report(Forecast("made up", False, 2.0, 1.0, cells), 0.05))
    assert "1,000,000 to 10,000,000" in text  # 1.0001 is printed as 1.000, and so is what follows


def test_nothing_is_said_of_more_people_than_were_forecast() -> None:
    cells = tuple(Case(n, 1.0, "input", None, reason="too few") for n in (10, 100))
    text = words(forecast_report(Forecast("made up", False, 2.0, 1.0, cells), 0.05))
    assert "10 to 100" in text
