"""One table, three dresses."""

import matplotlib as mpl
import numpy as np
import pytest
from markdown_it import MarkdownIt

from blurfit import Agreement, Binary, Categorical, Numeric, PublishedMoments, Schema, Wording
from blurfit.model.summary import number, plain, probability
from blurfit.simulation import exact_totals
from support.joint_release import drawn, release

MOMENTS = release(20_000)


def test_the_table_has_every_coefficient_and_class_and_says_what_it_promises() -> None:
    text = str(MOMENTS.fit("income ~ age + C(region)").summary(0.9))
    for word in ("age", "region=west", "90 % interval", "of it privacy", "ε = 1, δ = 1e-06"):
        assert word in text
    assert "each record, were it replaced by any other" in text
    assert "20,000" in text
    assert "R²" in text
    text = str(MOMENTS.fit("region ~ income").summary())
    assert [f"region = {level}" in text for level in ("north", "south", "west")] == [True] * 3
    assert (probability(0.0001), probability(0.0314)) == ("< 0.001", "0.031")


def test_html_and_markdown_say_the_same_and_take_no_orders_from_names() -> None:
    schema = Schema(
        [Numeric("<b>age</b>", 0, 100), Binary("![x](http://example.org/x.png)")],
        Numeric("a|b", 0, 1),
    )
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=100)
    summary = PublishedMoments(agreement, 100, np.zeros(agreement.width)).fit().summary()
    assert "<b>" not in summary.to_html()
    assert "![x](" not in summary.to_markdown()
    assert "!\\[x\\]" in summary.to_markdown()


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (1086.34, 52.1, "1,086"),
        (-0.00123456, 0.00021, "-0.00123"),
        (0.0, None, "0"),
        (123456.0, 2500.0, "123,500"),
        (1e-9, None, "1.00e-09"),
        (1.0e-6, 8.3e-8, "1.00e-06"),  # and its error 8.30e-08: one form for both
        (float("inf"), None, "inf"),
        (-0.001, 20.0, "0"),
    ],
)
def test_numbers_have_the_digits_that_their_error_leaves(value, error, text) -> None:
    assert number(value, error) == text


# ---- names in Markdown mean nothing to Markdown
@pytest.mark.parametrize(
    "name",
    ["*a*", "[a](http://b.c)", "![x](y)", "<b>", "`a`", "# a", "1. a", "www.example.org", "a\n\nb"],
)
def test_a_name_stays_a_name(name: str) -> None:
    (paragraph,) = [one for one in MarkdownIt().parse(f"x {plain(name)}") if one.children]
    assert {one.type for one in paragraph.children} <= {"text", "text_special"}
    shown = "".join(one.content for one in paragraph.children)
    assert shown == "x " + " ".join(name.split())


# ---- pictures of models and moments show their numbers
mpl.use("Agg")


@pytest.fixture(scope="module")
def exact_moments():
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
def exact_model(exact_moments):
    return exact_moments.fit(target="income")


def test_pictures_have_estimates_over_each_features_range_or_correlations(
    exact_model, exact_moments
):
    axes = exact_model.plot()
    age, level = axes.lines[0].get_xdata()
    found = {one.name: one for one in exact_model.estimates()}
    assert age == pytest.approx(72 * found["age"].value)
    assert level == pytest.approx(found["region=b"].value)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["age", "region=b"]
    low, high = axes.collections[0].get_segments()[0][:, 0]
    assert (low, high) == pytest.approx((72 * found["age"].lower, 72 * found["age"].upper))
    axes = exact_moments.plot()
    found = exact_moments.correlations()
    np.testing.assert_array_equal(axes.images[0].get_array(), found.values)
    assert "4,000 people" in exact_moments._repr_html_()


def test_a_level_of_which_nothing_can_be_said_is_left_out() -> None:
    """Nobody was silent: neither the picture nor the table has a row, and a note says why."""
    words = Wording(title="Home", labels={"a": "a flat", "b": "a house"})
    home = Categorical("home", ["a", "b"], optional=True, wording=words)
    schema = Schema([Numeric("age", 18, 90), home], Numeric("income", 0, 100))
    rng = np.random.default_rng(2)
    age, lives = rng.uniform(18, 90, 4000), rng.choice(["a", "b"], 4000)
    people = {"age": age, "home": lives, "income": 0.5 * age + 20 * (lives == "b")}
    exact_model = drawn(schema, people, rng, epsilon=20).fit()
    axes = exact_model.plot()
    assert [text.get_text() for text in axes.get_yticklabels()] == ["age", "Home: a house"]
    assert len(axes.lines[0].get_xdata()) == 2
    summary = exact_model.summary()
    assert [row[0] for row in summary.sections[0].rows] == ["(intercept)", "age", "Home: a house"]
    assert "Not shown: Home: not said (too few" in " ".join(str(summary).split())


def test_results_are_named_as_those_of_statsmodels(exact_model):
    results, found = exact_model.results(), exact_model.estimates(0.9)
    assert list(results.params.index) == ["(intercept)", "age", "region=b"]
    np.testing.assert_array_equal(results.params, [one.value for one in found])
    np.testing.assert_allclose(results.bse**2, np.diag(results.cov_params()), rtol=1e-9)
    np.testing.assert_array_equal(results.tvalues, results.params / results.bse)
    np.testing.assert_array_equal(results.conf_int(0.1), [[one.lower, one.upper] for one in found])
    assert results.nobs == 4000
    assert results.rsquared == exact_model.inference[0].r_squared
    assert (results.pvalues.drop("(intercept)") < 0.01).all()
    assert str(results.summary()) == str(exact_model.summary())
    one = {"age": [40], "region": ["b"]}
    np.testing.assert_array_equal(results.predict(one), exact_model.predict(one))
