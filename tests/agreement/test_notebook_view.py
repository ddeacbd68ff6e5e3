"""The picture of an agreement draws no curve below the truth."""

import matplotlib as mpl
import numpy as np
import pytest
from scipy.stats import norm

from blurfit import Agreement, Numeric, Schema
from blurfit.agreement.statement import readers_power, submission_power

mpl.use("Agg")


@pytest.fixture(scope="module")
def agreement():
    schema = Schema([Numeric("age <b>", 0, 100)], Numeric("income", 0, 9))
    return Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=2000)


def test_the_readers_curve_bounds_that_of_every_gaussian_mechanism_that_keeps_the_promise():
    from blurfit.theory.gaussian import epsilon_of

    alpha = np.linspace(1e-6, 1 - 1e-6, 999)
    for mu in (0.1, 1.0, 3.0):
        for delta in (1e-9, 1e-3):
            epsilon = epsilon_of(mu, delta)
            truth = norm.cdf(norm.ppf(alpha) + mu)
            assert (truth <= readers_power(alpha, epsilon, delta) + 1e-12).all()


def test_the_submissions_curve_is_that_of_the_best_test_between_two_gaussians():
    rng = np.random.default_rng(0)
    first, second = rng.normal(0, 1, 200_000), rng.normal(1.5, 1, 200_000)
    threshold = np.quantile(first, 0.9)
    found = submission_power(np.array([0.1]), 1.5)[0]
    assert found == pytest.approx((second > threshold).mean(), abs=0.005)


def test_it_is_drawn_with_the_promise_in_its_legend(agreement):
    axes = agreement.plot()
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend[-1] == "what is published, ε = 1, δ = 1e-06"
    assert len(axes.lines) == 3
    assert agreement.plot(axes) is axes


def test_a_notebook_shows_a_table_in_which_names_are_text(agreement):
    shown = agreement._repr_html_()
    assert "age &lt;b&gt;" in shown
    assert agreement.fingerprint in shown
