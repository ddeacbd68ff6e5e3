"""Forecasts of diaries, groups, weights and exits, against collections drawn one by one."""

import numpy as np
import pytest

from blurfit import Agreement, Binary, Categorical, InvalidValueError, Numeric, Schema, TimeToEvent
from blurfit.forecast.population import Exits, Population
from blurfit.forecast.sweep import forecast, forecast_agreement
from blurfit.learning.shrinkage import linear_bayes
from blurfit.learning.sums import Totals
from blurfit.model.release import moments_of
from blurfit.simulation import sampler_for

PAY = Schema(
    [Numeric("age", 20, 60), Binary("member"), Categorical("region", ["a", "b", "c"])],
    Numeric("pay", 0, 100),
)
STAYS = Schema(
    [Numeric("age", 20, 60), Binary("remote")], TimeToEvent("months", "left", horizon=24, bands=6)
)


def collected(agreement, sums, count, generator):
    """Return what a database would release of these people."""
    clean = Totals(count, sums, agreement.fingerprint)
    return moments_of(agreement, sampler_for(agreement, clean).draw(generator))


def coefficients(moments):
    return linear_bayes(moments.joint.submodel("pay")).coefficients


def test_diaries_are_forecast_as_people_with_several_rows_do() -> None:
    """Each row of a person is their own with probability √α, else anybody's."""
    people = Population.generated(PAY)
    agreement = Agreement.propose(PAY, epsilon=8, delta=1e-6, quorum=2000, diaries=True)
    (case,) = forecast_agreement(
        agreement, people, contributors=[2000], rows_each=6, alike=0.25, draws=100
    ).cases
    generator = np.random.default_rng(0)
    form, v = agreement.form, people.rows[:, 1:]
    found = []
    for _ in range(40):
        anybody = v[generator.integers(0, len(v), (2000, 6))]
        own = generator.random((2000, 6)) < 0.5
        rows = np.where(own[..., None], anybody[:, :1], anybody)
        rows[:, 0] = np.where(own[:, :1], anybody[:, 0], v[generator.integers(0, len(v), 2000)])
        sums = form.products(rows).mean(axis=1).sum(axis=0)
        found.append(coefficients(collected(agreement, sums, 2000, generator)))
    errors = people.error(np.array(found))

    def above(error):
        return np.mean(error) - people.best

    assert above(errors) == pytest.approx(above(case.error), rel=0.2)
    assert above(case.one_row) > 1.3 * above(case.error)
    assert case.gain > 0.2
    assert case.rows_add_nothing is False


def test_it_is_said_where_many_rows_add_nothing() -> None:
    people = Population.generated(PAY)
    found = forecast(PAY, people, contributors=[1000, 10**6], epsilons=[0.3], rows_each=8)
    few, many = found.cases
    assert few.rows_add_nothing
    assert not many.rows_add_nothing
    assert abs(few.gain) < 0.1 < many.gain < 1
    told = found.to_dict()
    assert (told["rows_each"], told["alike"]) == (8, 0.5)
    assert [one["rows_add_nothing"] for one in told["cases"]] == [True, False]
    plain = forecast(PAY, people, contributors=[1000], epsilons=[0.3])
    assert plain.to_dict()["cases"][0]["rows_add_nothing"] is None
    row = Agreement.propose(PAY, epsilon=1, delta=1e-6, quorum=1000)
    with pytest.raises(InvalidValueError, match="without diaries"):
        forecast_agreement(row, people, contributors=[1000], rows_each=2)
    with pytest.raises(InvalidValueError, match="from 0 to 1"):
        forecast(PAY, people, contributors=[1000], rows_each=2, alike=1.5)


@pytest.mark.parametrize(
    "terms",
    [
        {"groups": "region"},
        {"groups": "region", "overlap": 0.5},
        {"weighting": "region", "factors": {"a": 1.0, "b": 0.5, "c": 0.25}},
    ],
)
def test_groups_and_weights_are_forecast_as_they_are_collected(terms) -> None:
    people = Population.generated(PAY)
    agreement = Agreement.propose(PAY, epsilon=1, delta=1e-6, quorum=3000, **terms)
    (case,) = forecast_agreement(agreement, people, contributors=[3000], draws=80).cases
    generator = np.random.default_rng(1)
    form, v = agreement.form, people.rows[:, 1:]
    weights = form.weighting.of(v) if form.weighting else np.ones(len(v))
    kept = [column.name for column in form.inner.columns]
    z = np.column_stack([np.ones(len(v)), v[:, list(form.kept)]])
    found = []
    for _ in range(40):
        drawn = v[generator.integers(0, len(v), 3000)]
        sums = form.products(drawn).sum(axis=0)
        beta = coefficients(collected(agreement, sums, 3000, generator))
        left = z[:, -1] - z[:, :-1] @ beta
        found.append(np.sqrt(np.average(left**2, weights=weights)) * 50)
    assert kept[-1] == "pay"
    assert np.mean(found) == pytest.approx(case.error, rel=0.01)
    assert case.lower < np.mean(found) < case.upper
    assert case.without_privacy < case.error


def test_exits_are_forecast_as_they_are_collected() -> None:
    people = Exits.generated(STAYS, events=0.4)
    assert np.mean(people.rows[:, -1] > 0) == pytest.approx(0.4, abs=0.01)
    agreement = Agreement.propose(STAYS, epsilon=2, delta=1e-6, quorum=8000)
    (case,) = forecast_agreement(agreement, people, contributors=[8000], draws=60).cases
    generator = np.random.default_rng(2)
    v = people.rows[:, 1:]
    numbers = agreement.form.products(v)
    found = []
    for _ in range(40):
        sums = numbers[generator.integers(0, len(v), 8000)].sum(axis=0)
        told = collected(agreement, sums, 8000, generator).survival().estimates()
        found.append([told[0].value * 40, told[1].value])  # over the whole range
    errors = people.error(np.array(found))
    assert errors.mean() == pytest.approx(case.error, rel=0.15)
    assert 0 < case.without_privacy < case.error < people.constant
    assert "hazards" in people.measure


def test_exits_beyond_a_forecast_say_why() -> None:
    people = Exits.generated(STAYS)
    few = forecast(STAYS, people, contributors=[300], draws=8).cases[0]
    assert few.reason == "no draw gave a model"
    with pytest.raises(InvalidValueError, match="when they left"):
        forecast(STAYS, Population.generated(PAY), contributors=[1000])
    with pytest.raises(InvalidValueError, match="without a time to an event"):
        forecast(PAY, people, contributors=[1000])
    with pytest.raises(InvalidValueError, match="events"):
        Exits.generated(STAYS, events=1.5)
