"""Pictures of models and moments show their numbers."""

import matplotlib as mpl
import numpy as np
import pytest

from blurfit import Agreement, Categorical, Numeric, PublishedMoments, Schema, Wording
from blurfit.simulation.sampler import exact_totals, sampler_for

mpl.use("Agg")


@pytest.fixture(scope="module")
def moments():
    rng = np.random.default_rng(1)
    age, region = rng.uniform(18, 90, 4000), rng.choice(["a", "b"], 4000)
    income = 500 * age + 9000 * (region == "b") + rng.normal(0, 3000, 4000)
    schema = Schema(
        [Numeric("age", 18, 90), Categorical("region", ["a", "b"])], Numeric("income", 0, 90_000)
    )
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=4000)
    totals = exact_totals(agreement, {"age": age, "region": region, "income": income})
    return PublishedMoments(agreement, totals.count, totals.sums)


@pytest.fixture(scope="module")
def model(moments):
    return moments.fit(target="income")


def test_a_models_picture_has_its_estimates_over_each_features_range(model):
    axes = model.plot()
    age, level = axes.lines[0].get_xdata()
    found = {one.name: one for one in model.estimates()}
    assert age == pytest.approx(72 * found["age"].value)
    assert level == pytest.approx(found["region=b"].value)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["age", "region=b"]
    low, high = axes.collections[0].get_segments()[0][:, 0]
    assert (low, high) == pytest.approx((72 * found["age"].lower, 72 * found["age"].upper))


def test_a_level_of_which_nothing_can_be_said_is_left_out_of_the_picture_alone() -> None:
    """Nobody was silent: the table has a prediction for whoever is, without errors."""
    words = Wording(title="Home", labels={"a": "a flat", "b": "a house"})
    home = Categorical("home", ["a", "b"], optional=True, wording=words)
    schema = Schema([Numeric("age", 18, 90), home], Numeric("income", 0, 100))
    rng = np.random.default_rng(2)
    age, lives = rng.uniform(18, 90, 4000), rng.choice(["a", "b"], 4000)
    people = {"age": age, "home": lives, "income": 0.5 * age + 20 * (lives == "b")}
    agreement = Agreement.propose(schema, epsilon=20, delta=1e-6, quorum=4000)
    totals = sampler_for(agreement, exact_totals(agreement, people)).draw(rng)
    model = PublishedMoments(agreement, totals.count, totals.sums).fit()
    axes = model.plot()
    assert [text.get_text() for text in axes.get_yticklabels()] == ["age", "Home: a house"]
    assert len(axes.lines[0].get_xdata()) == 2
    (silent,) = (row for row in model.summary().sections[0].rows if row[0] == "Home: not said")
    assert silent[1:-1] == ("–",) * 7
    assert silent[-1] != "–"


def test_of_moments_the_correlations_are_drawn(moments):
    axes = moments.plot()
    found = moments.correlations()
    np.testing.assert_array_equal(axes.images[0].get_array(), found.values)
    assert "4,000 people" in moments._repr_html_()


def test_results_are_named_as_those_of_statsmodels(model):
    results, found = model.results(), model.estimates(0.9)
    assert list(results.params.index) == ["(intercept)", "age", "region=b"]
    np.testing.assert_array_equal(results.params, [one.value for one in found])
    np.testing.assert_allclose(results.bse**2, np.diag(results.cov_params()), rtol=1e-9)
    np.testing.assert_array_equal(results.tvalues, results.params / results.bse)
    np.testing.assert_array_equal(results.conf_int(0.1), [[one.lower, one.upper] for one in found])
    assert results.nobs == 4000
    assert results.rsquared == model.inference[0].r_squared
    assert (results.pvalues.drop("(intercept)") < 0.01).all()
    assert str(results.summary()) == str(model.summary())
    one = {"age": [40], "region": ["b"]}
    np.testing.assert_array_equal(results.predict(one), model.predict(one))
