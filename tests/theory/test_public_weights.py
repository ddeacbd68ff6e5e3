"""The weights fill the ball, follow from public facts only, and minimise what they say."""

import numpy as np
import pytest
from scipy.optimize import minimize

from blurfit.errors import InvalidValueError
from blurfit.theory.coded import Code, CodedForm
from blurfit.theory.forms import JointColumn, JointForm
from blurfit.theory.gaussian import mu_of
from blurfit.theory.planning import excess_risks, information, public_weights

CENSUS = ("numeric",) * 7 + ("sign",) * 6


@pytest.mark.parametrize("features", [("sign",), CENSUS, ("numeric", 3, 41), (2,)])
@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
def test_the_weights_fill_the_unit_ball(features, neighbours) -> None:
    found = public_weights(features, 500, 0.3, neighbours=neighbours)
    assert sum(w**2 for w in found.features) + found.target**2 == pytest.approx(1)
    assert 0 < found.constant <= 1


@pytest.mark.parametrize(
    ("count", "pair"),
    [(128, (1, 0.95)), (512, (0.7, 0.7)), (2048, (0.4, 0.5)), (2**14, (0.3, 0.4))],
)
def test_the_more_people_the_less_goes_to_the_mean(count: int, pair) -> None:
    """The lab's table for 13 features at (0.1, 0.01)."""
    found = public_weights(CENSUS, count, mu_of(0.1, 0.01))
    assert (found.constant, found.target) == pytest.approx(pair, abs=0.06)


def test_no_pair_of_the_grid_is_better_by_the_proxy_than_nearby() -> None:
    mu = 0.5
    found = public_weights(CENSUS, 3000, mu)
    here = excess_risks(13, 3000, mu, np.array([[found.constant, found.target]]))
    beside = [[found.constant * c, found.target * b] for c in (0.8, 1.25) for b in (0.85, 1.18)]
    assert (here <= excess_risks(13, 3000, mu, np.array(beside)) * 1.02).all()


def test_columns_are_weighted_by_their_spread_and_levels_by_their_coefficients() -> None:
    """A search over all weights of columns with these spreads finds the same shares."""
    spread = np.array([1.0, 0.5, 0.5])
    best = minimize(
        lambda x: float(np.sum(1 / (spread * x) ** 2)) + 100 * (float(x @ x) - 1) ** 2, np.ones(3)
    ).x
    found = np.array(public_weights(("sign", "numeric", 2), 1000, 1.0).features)
    np.testing.assert_allclose(found / found[0], best / best[0], rtol=1e-3)
    # One ω for both free levels of three equally frequent ones, sd √(2/9) each, beside a sign.
    best = minimize(
        lambda x: float(2 / (2 / 9 * x[1] ** 2) + 1 / x[0] ** 2) + 100 * (float(x @ x) - 1) ** 2,
        np.ones(2),
    ).x
    found = public_weights(("sign", 3), 1000, 1.0).features
    assert found[1] / found[0] == pytest.approx(best[1] / best[0], rel=1e-3)


@pytest.mark.parametrize("psi", [10.0, 60.0])
def test_the_risk_depends_on_psi(psi: float) -> None:
    """At equal ψ the privacy part of the risk is the same for any large p; at equal nμ/p, or nμ/p²,
    with the same value at p = 400, it is not."""

    def risk(p: int, exponent: float) -> float:
        count = 10**7  # sampling error is negligible
        product = psi * 400**1.5 * (p / 400) ** exponent
        return float(excess_risks(p, count, product / count, np.array([[0.4, 0.5]]))[0])

    risks = [risk(p, 1.5) for p in (200, 400, 800)]
    assert max(risks) / min(risks) < 1.06
    for exponent in (1.0, 2.0):
        wrong = [risk(p, exponent) for p in (200, 400, 800)]
        assert max(wrong) / min(wrong) > 1.25
    assert information(10**7, psi * 400**1.5 / 10**7, 400) == pytest.approx(psi)


@pytest.mark.parametrize("features", [("label",), (1,), (True,)])
def test_unknown_kinds_are_refused(features) -> None:
    with pytest.raises(InvalidValueError, match="features"):
        public_weights(features, 100, 1.0)


def test_without_features_the_noise_of_means_is_least() -> None:
    found = public_weights((), 100, 1.0)
    assert (found.constant, found.features, found.target) == (1.0, (), 1.0)

    def noise(c: float) -> float:
        inner = JointForm(c, (JointColumn("y", 1.0),), counted=False)
        form = CodedForm(inner, (0,), Code.overlapping(2), (1, 2), labels=("a", "b"))
        return form.reach("replace").sums / c

    assert noise(1.0) <= min(noise(0.8), noise(1.25))
