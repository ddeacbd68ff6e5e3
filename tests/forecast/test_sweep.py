"""The forecast against what it forecasts: real collections, blurred record by record."""

import json
import math

import matplotlib as mpl
import numpy as np
import pytest
from scipy.stats import betabinom

from blurfit import Agreement, InvalidValueError, Numeric, Schema, learn, perturb_table
from blurfit.forecast.population import Population
from blurfit.forecast.sweep import (
    Case,
    Forecast,
    band,
    forecast,
    forecast_agreement,
    propose_terms,
    whole_numbers,
)
from blurfit.learning.sums import Totals
from blurfit.simulation import make_census

RUNS = 120


@pytest.fixture(scope="module")
def census():
    return make_census(100_000, seed=1)


@pytest.fixture(scope="module")
def people(census) -> Population:
    return Population.of_table(census.schema, census.table, census.name)


def collected(agreement: Agreement, table: dict[str, np.ndarray]) -> Totals:
    """What a database holds after every person was blurred by the contributor's own code."""
    sent = perturb_table(agreement, table).numbers
    return Totals(len(sent), sent.sum(axis=0), agreement.fingerprint)


@pytest.mark.statistical
def test_real_collections_lie_in_the_band_as_often_as_promised(census, people) -> None:
    """120 collections of fresh people, each person blurred by the contributor's own code, each
    model learned by the database's: 90% of the errors lie in the forecast's band. (Contributors
    take no seed, so the limits are one in 10⁷.)"""
    draws, n, epsilon = 239, 600, 20.0
    agreement = Agreement.propose(census.schema, quorum=n, **propose_terms(epsilon, None, {}))
    asked = {"contributors": [n], "epsilons": [epsilon]}
    cell = forecast(census.schema, people, draws=draws, **asked).cases[0]
    crowd = make_census(RUNS * n, seed=99)
    errors = []
    for run in range(RUNS):
        totals = collected(agreement, crowd.take(n, start=run * n).table)
        model = learn(agreement, totals)
        assert model.method.endswith("by linear Bayes")
        errors.append(people.error(model.weights)[0])
    inside = int(((errors >= np.array(cell.lower)) & (errors <= np.array(cell.upper))).sum())
    # The band lies between two order statistics of 239 draws, so how many of 120 new ones it holds
    # is beta-binomial, whatever the distribution is.
    held = betabinom(RUNS, 0.9 * (draws + 1), 0.1 * (draws + 1))
    assert held.cdf(inside) > 1e-7
    assert held.sf(inside - 1) > 1e-7
    spread = np.std(errors) / math.sqrt(RUNS) + (cell.upper - cell.lower) / 3 / math.sqrt(draws)
    assert abs(np.mean(errors) - cell.error) < 6 * spread


def test_a_billion_contributors_cost_no_more_than_a_thousand(census, people) -> None:
    found = forecast(
        census.schema, people, contributors=[1000, 10**7, 10**9], epsilons=[1.0], draws=8, seed=2
    )
    for cases in found.lines().values():
        small, middle, large = cases
        assert small.ratio > 1.05
        assert middle.ratio == pytest.approx(1, abs=1e-5)
        assert large.ratio == pytest.approx(1, abs=1e-6)
        assert large.without_privacy == pytest.approx(found.best, rel=1e-6)
    assert found.best < found.constant


def test_more_contributors_or_a_weaker_promise_help(census, people) -> None:
    asked = {"contributors": [2000, 20_000, 200_000], "epsilons": [0.3, 3.0], "draws": 12}
    found = forecast(census.schema, people, local_epsilons=[None, 8.0], **asked)
    for (epsilon, local), cases in found.lines().items():
        errors = [one.error for one in cases]
        assert errors == sorted(errors, reverse=True), (epsilon, local)
        assert all(one.lower <= one.error <= one.upper for one in cases)
    strict, loose = found.lines()[0.3, None], found.lines()[3.0, None]
    assert all(a.error > b.error for a, b in zip(strict, loose, strict=True))
    private = found.lines()[3.0, 8.0]
    assert all(a.error < b.error for a, b in zip(loose, private, strict=True))
    assert all(one.submission_epsilon == pytest.approx(8) for one in private)


def test_labels_are_forecast_by_their_share_of_mistakes(census) -> None:
    schema = census.label_schema
    people = Population.of_table(schema, census.table)
    found = forecast(schema, people, contributors=[20_000], epsilons=[1.0], draws=8)
    for one in found.cases:
        # least squares is not quite what makes the fewest mistakes
        assert 0.99 * found.best <= one.error < found.constant


def test_too_few_contributors_are_told_why(census, people) -> None:
    agreement = Agreement.propose(census.schema, epsilon=1, delta=1e-6, quorum=11)
    found = forecast_agreement(agreement, people, contributors=[10], draws=4)
    assert math.isnan(found.cases[0].error)
    assert found.cases[0].reason == "below the quorum 11"
    assert found.contributors_needed(found.cases[0].line) is None
    document = json.loads(json.dumps(found.to_dict()))
    assert document["cases"][0]["error"] is None


def test_an_agreement_is_forecast_from_its_quorum_on(census, people) -> None:
    agreement = Agreement.propose(census.schema, epsilon=1, delta=1e-6, quorum=5000)
    found = forecast_agreement(agreement, people, contributors=[1000, 5000, 50_000], draws=16)
    below, at, above = found.cases
    assert below.reason == "below the quorum 5,000"
    assert above.error < at.error
    # more people than the quorum bring more noise, so fewer would do under a larger quorum
    fresh = forecast(census.schema, people, contributors=[50_000], draws=16).cases[0]
    assert fresh.error < above.error


def test_band_holds_a_new_draw_with_its_probability() -> None:
    generator = np.random.default_rng(0)
    hits = 0
    for _ in range(4000):
        lower, upper = band(generator.exponential(size=40))
        hits += lower <= generator.exponential() <= upper
    assert abs(hits / 4000 - 0.9) < 4 * math.sqrt(0.09 / 4000)


def test_mistakes_are_named(census, people) -> None:
    other = Schema([Numeric("a", 0, 1)], Numeric("y", 0, 1))
    with pytest.raises(InvalidValueError, match="2 columns"):
        forecast(other, people, contributors=[100])
    with pytest.raises(InvalidValueError, match="epsilon=-1"):
        forecast(census.schema, people, contributors=[100], epsilons=[-1.0], draws=2)
    with pytest.raises(InvalidValueError, match="contributors"):
        whole_numbers([0.2])
    assert whole_numbers([1e3, 1000.2, 5]) == [5, 1000]


# ---- results
mpl.use("Agg")


def case(n: int, ratio: float, epsilon: float = 1.0) -> Case:
    return Case(n, epsilon, None, error=ratio, lower=0, upper=9, without_privacy=1.0)


def test_contributors_needed_and_what_the_model_would_explain() -> None:
    """ratio − 1 = 100/n, so 5% is reached at n = 2000."""
    cells = tuple(case(n, 1 + 100 / n) for n in (100, 1000, 10_000))
    found = Forecast("made up", False, 2.0, 1.0, cells)
    line = (1.0, None)
    assert found.contributors_needed(line, 0.05) in (2000, 2001)
    assert found.contributors_needed(line, 5) == 100
    assert found.contributors_needed(line, 1e-3) is None
    cells = tuple(case(n, r) for n, r in ((10, 1.01), (100, 1.2), (1000, 1.02)))
    found = Forecast("made up", False, 2.0, 1.0, cells)
    needed = found.contributors_needed((1.0, None), 0.05)
    assert needed is not None
    assert 100 < needed < 1000
    cell = case(100, 1.5)
    assert Forecast("made up", False, 2.0, 1.0, (cell,)).explained(cell) == 1 - 0.75**2
    assert Forecast("made up", True, 2.0, 1.0, (cell,)).explained(cell) == 0.25
    assert Forecast("made up", False, 1.0, 1.0, (cell,)).explained(cell) < 0


def test_each_promise_has_a_line() -> None:
    cells = [
        Case(n, 1.0, local, 1 + 100 / n, 1.0, 1.2, 1.0, 5.0)
        for local in (None, 2.0)
        for n in (100, 1000)
    ]
    figure = Forecast("made up", False, 2.0, 1.0, tuple(cells)).plot()
    (panel,) = figure.axes
    beside = 2  # no privacy, and a constant
    assert len(panel.lines) == 2 + beside
    assert panel.lines[0].get_ydata() == pytest.approx([2.0, 1.1])
    mpl.pyplot.close(figure)
