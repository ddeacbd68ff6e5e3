"""Derived columns in formulas: told as R tells them, and the same in waves and forecasts."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from formulaic import model_matrix

from blurfit import (
    Agreement,
    Binary,
    Categorical,
    Condition,
    Cross,
    Curve,
    Numeric,
    Poly,
    Product,
    PublishedMoments,
    Schema,
)
from blurfit.agreement.plan import Plan
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.forecast.population import Population
from blurfit.forecast.sweep import forecast
from blurfit.model.statement import as_card
from blurfit.schema.schema import values
from blurfit.simulation import exact_totals, fit_in_waves

SCHEMA = Schema(
    [
        Numeric("age", 18, 90),
        Numeric("hours", 0, 80),
        Categorical("region", ["n", "s", "w"]),
        Binary("member"),
        Cross("region", "member"),
        Product("age", "region"),
        Product("member", "age"),
        Product("age", "hours"),
        Curve("age", knots=[18, 40, 60, 90]),
        Poly("age", degree=2),
        Poly("age", degree=3),
        Condition("south", "region", level="s"),
    ],
    Numeric("pay", 0, 100),
)


@cache
def people(count: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    age, hours = rng.uniform(18, 90, count), rng.uniform(0, 80, count)
    region, member = rng.choice(["n", "s", "w"], count), rng.integers(0, 2, count)
    table = pd.DataFrame({"age": age, "hours": hours, "region": region, "member": member})
    south = 5 * (table["region"] == "s") * (1 + table["member"])
    mean = 40 + 10 * np.sin(table["age"] / 15) + 0.1 * table["hours"] + south
    return table.assign(pay=np.clip(mean + rng.normal(0, 8, count), 0, 100))


class Exact(PublishedMoments):
    """A release whose noise is next to nothing, so that what it tells is least squares."""

    deviation = 1e-3


@cache
def moments() -> Exact:
    agreement = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=3000)
    return Exact(agreement, 3000, exact_totals(agreement, people()).sums)


@pytest.mark.parametrize(
    "formula",
    [
        "pay ~ C(region)*member + hours",
        "pay ~ C(region, contr.treatment('s'))*member",
        "pay ~ region + region:member",
        "pay ~ age*region",
        "pay ~ age + region + age:region + hours",
        "pay ~ member*age",
        "pay ~ age*hours",
        "pay ~ 1",
    ],
)
def test_interactions_are_told_as_r_tells_them(formula) -> None:
    target, design = model_matrix(formula, people())
    expected = np.linalg.lstsq(design.to_numpy(float), target.to_numpy()[:, 0], rcond=None)[0]
    model = moments().fit(formula.replace("contr.treatment('s')", "'s'"))
    found = [one.value for one in model.estimates()]
    assert sorted(found) == pytest.approx(sorted(expected), rel=2e-3, abs=2e-3)
    fitted = design.to_numpy(float) @ expected
    assert model.predict(people()) == pytest.approx(fitted, abs=0.3)
    lower, upper = model.prediction_intervals(people()).T
    assert np.mean((lower < people()["pay"]) & (people()["pay"] < upper)) > 0.93


def test_curves_and_polynomials_are_least_squares_and_no_column_is_twice_there() -> None:
    y, age = people()["pay"].to_numpy(), people()["age"].to_numpy()
    hats = SCHEMA.question("curve(age)").scale(age)
    at_knots = np.linalg.lstsq(hats, y, rcond=None)[0]
    told = {one.name: one.value for one in moments().fit("pay ~ curve(age)").estimates()}
    assert told["(intercept)"] == pytest.approx(at_knots[0], rel=1e-3)
    assert told["curve(age)=60"] == pytest.approx(at_knots[2] - at_knots[0], rel=1e-3)
    # beside the number itself, which it contains, the same curve
    both = moments().fit("pay ~ age + curve(age)")
    assert [one.name for one in both.estimates()][1:] == ["age", "curve(age)=40", "curve(age)=60"]
    assert both.predict(people()) == pytest.approx(hats @ at_knots, abs=0.3)
    cubic = moments().fit("pay ~ poly(age, 3)")
    expected = np.polynomial.Legendre.fit(age, y, 3, domain=[18, 90]).coef
    found = [one.value for one in cubic.estimates()]
    assert found[2:] == pytest.approx(expected[2:], rel=1e-3)
    assert found[1] * 36 == pytest.approx(expected[1], rel=1e-3)  # of one year
    model = moments().fit("pay ~ region + south")
    assert [one.name for one in model.estimates()] == ["(intercept)", "region=s", "region=w"]


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("pay ~ curve(hours)", "Declare it .* Curve"),
        ("pay ~ poly(age, 4)", "Declare it .* Poly"),
        ("pay ~ poly(age)", "a degree"),
        ("pay ~ hours:region", "Cross or Product"),
        ("pay ~ age*hours*region", "of two columns"),
        ("pay ~ curve(age):region", "of two columns"),
        ("curve(age) ~ pay", "only these may be predicted"),
        ("member ~ age + region:member", "computed from one another"),
    ],
)
def test_what_cannot_be_asked(formula, words) -> None:
    with pytest.raises(InvalidValueError, match=words):
        moments().fit(formula)


def test_curves_and_pairs_are_learned_in_waves_too() -> None:
    """A number that bends, of which the line is off by 7: its curve is found in two waves."""
    schema = Schema(
        [Curve("age", knots=[18, 40, 60, 90]), Cross("region", "member"), Numeric("hours", 0, 80)],
        SCHEMA.target,
        sources=[one for one in SCHEMA.features if one.name in ("age", "region", "member")],
    )
    plan = Plan.propose(schema, epsilon=1, delta=1e-6, quorum=30_000, waves=2)
    table = people(30_000)
    found = fit_in_waves(plan, values(schema, table), np.random.default_rng(3)).model
    assert found.features == ("curve(age)", "region:member", "hours")
    south = 5 * (table["region"] == "s") * (1 + table["member"])
    truth = 40 + 10 * np.sin(table["age"] / 15) + 0.1 * table["hours"] + south
    assert np.sqrt(np.mean((found.predict(table) - truth) ** 2)) < 2.2  # bends within knots: 1.8


def test_a_forecast_knows_what_is_derived() -> None:
    """Bands of the target cost noise and predict nothing of it."""
    features = [Curve("age", knots=[18, 54, 90]), Product("hours", "age"), Numeric("hours", 0, 80)]
    schema = Schema(features, SCHEMA.target, sources=[Numeric("age", 18, 90)])
    population = Population.generated(schema)
    assert population.used == tuple(range(6))
    found = forecast(schema, population, contributors=[20_000], epsilons=[1.0], draws=5)
    case = found.cases[0]
    assert population.best < case.error < population.constant


def test_papers_and_other_formats_name_what_is_asked() -> None:
    model = moments().fit("pay ~ curve(age) + region*member")
    card = as_card(model)
    assert "| age | a number from 18 to 90 |" in card
    assert "| region\\:member |" not in card
    with pytest.raises(InfeasibleError, match="computed from answers"):
        model.to_sklearn()
    again = type(model).from_json(model.to_json())
    np.testing.assert_array_equal(again.predict(people()), model.predict(people()))
