"""What results say, to people and to scripts: words must not promise more than the numbers."""

import json

import numpy as np
import pytest
from rich.console import Console, RenderableType

from blurfit import (
    Agreement,
    Binary,
    Categorical,
    Numeric,
    Plan,
    PublishedMoments,
    Schema,
    TimeToEvent,
)
from blurfit.cli._reports import (
    advice_in_words,
    forecast_report,
    model_facts,
    moments_facts,
    moments_report,
    number,
)
from blurfit.forecast.choices import Advice
from blurfit.forecast.sweep import Case, Forecast
from blurfit.theory.maps import ResidualMap, Whitening
from support import joint_release
from support.joint_release import release


def words(what: RenderableType, width: int = 200) -> str:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(what)
    return " ".join(capture.get().split())


# ---- agreements, and the noise of one

SCHEMA = Schema(
    [Numeric("age", 0, 100), Binary("married"), Categorical("region", ["north", "south"])],
    Numeric("income", 0, 1000).above(370),
)


def test_moments_are_told_with_their_correlations() -> None:
    told = moments_report(release())
    words = " ".join(told.split())
    assert words.startswith("20,000 people (at least 20,000 were required) answered age (18 to 90)")
    assert (
        "is (1, 1e-06)-differentially private (neighbours: replace). Each record was blurred"
        in words
    )
    assert "May be predicted: age, education, region, married, income." in words
    line = next(line for line in told.splitlines() if line.startswith("education     "))
    assert float(line.split()[-1]) == pytest.approx(0.62, abs=0.05)  # with income


# ---- releases and models, for scripts

MOMENTS = release()


def test_what_the_noise_drowns_is_null() -> None:
    schema = Schema([Numeric("age", -1e9, 1e9)], Numeric("income", 0, 100_000))  # all near 0
    facts = moments_facts(release(count=500, epsilon=0.1, schema=schema))
    assert facts["correlations"][0] == [None, None]
    assert "NaN" not in json.dumps(facts)


def test_a_model_with_errors_and_one_with_classes() -> None:
    model = MOMENTS.fit()
    facts = model_facts(model)["outputs"]["income"]
    assert facts["predicting"]["age"] == model.coefficients.effects["age"]
    assert [one["name"] for one in facts["estimates"]][:2] == ["(intercept)", "age"]
    assert facts["r_squared"] == model.inference[0].r_squared
    classes = model_facts(MOMENTS.fit(target="region"))
    assert list(classes["outputs"]) == ["north", "south", "west"]
    assert json.loads(json.dumps(classes)) == classes


def test_sums_without_correlations_are_shown_too() -> None:
    """Of a later wave, and of exits: in words, as HTML and for scripts."""
    first = Plan.propose(joint_release.SCHEMA, epsilon=1, delta=1e-6, quorum=1000, waves=2)
    size = len(first.first().form.columns) - 2  # without the target and a level
    flat = Whitening([0.0] * size, np.eye(size), [0.0] * size, 0.0)
    later = first.following(("ab" * 32,), ResidualMap(flat, 1.0, 1.0, 1.0))
    exits = Schema([Numeric("age", 18, 80)], TimeToEvent("months", "left", horizon=12))
    alone = Agreement.propose(exits, epsilon=1, delta=1e-6, quorum=700)
    for agreement, words in ((later, "Sums of wave 2 of a plan"), (alone, "Sums of exits")):
        moments = PublishedMoments(agreement, 700, np.zeros(agreement.width))
        assert moments_facts(moments)["epsilon"] == 1
        assert words in " ".join(moments_report(moments).split())
        assert "700 people, ε = 1" in moments._repr_html_()


# ---- forecasts


def case(n: int, factor: float, local: float | None = None) -> Case:
    ratio = 1 + factor / n
    return Case(n, 1.0, local, ratio, ratio - 0.01, ratio + 0.01, 1.0, 5.0)


@pytest.fixture
def found() -> Forecast:
    cells = [case(n, 100) for n in (100, 1000, 10_000)]
    cells += [case(n, 400, 2.0) for n in (100, 1000, 10_000)]
    return Forecast("made up", False, 2.0, 1.0, tuple(cells))


def test_numbers_have_one_format() -> None:
    assert [number(x) for x in (26478.3, 9673.4, 12.34567, 0.314159, 1.0, 0.0, 999.96)] == [
        *("26,480", "9,673", "12.35", "0.3142", "1.000", "0", "1,000.0")
    ]


def test_report_answers_what_people_ask(found) -> None:
    text = words(forecast_report(found, 0.05))
    assert text.startswith("Contributors needed for an error within 5%")
    assert "within 5% of no privacy" in text
    assert "2,000" in text
    assert "A local ε of 2 takes 4 times as many." in text
    assert "1.100 1.09–1.11" in text.replace("│", " ").replace("  ", " ") or "1.09–1.11" in text


def test_refusals_and_gaps_are_shown() -> None:
    cells = (
        Case(10, 1.0, None, reason="too few"),
        Case(100, 1.0, None, 1.1, 1.0, 1.2, 1.0, 5.0, refused=0.25),
    )
    unit = "share of wrong predictions"
    text = words(forecast_report(Forecast("made up", True, 2.0, 1.0, cells, unit), 0.05))
    assert "–" in text
    assert "25% refused" in text
    assert "share of wrong predictions" in text


def test_advice_in_words(found) -> None:
    before, after = found.cases[0], found.cases[1]
    text = advice_in_words(Advice({"l2": 3.0, "balance": 1.5}, before, after))
    assert "l2 = 3, balance = 1.5 brings the error from 2.000 to 1.100" in text
    assert "as good as any" in advice_in_words(Advice({}, before, before))


def test_a_table_ends_where_more_people_change_nothing() -> None:
    sizes = (100, 1000, 10_000, 100_000, 1_000_000, 10_000_000)
    cells = tuple(case(n, 100) for n in sizes)
    text = words(forecast_report(Forecast("made up", False, 2.0, 1.0, cells), 0.05))
    assert "1,000,000 to 10,000,000" in text  # 1.0001 is printed as 1.000, and so is what follows
