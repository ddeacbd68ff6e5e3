"""GaussMix: what its two calibrations keep, and the fit."""

import numpy as np
import pytest

from blurfit import InvalidValueError
from blurfit_lab.rivals import GaussMixRegressor
from blurfit_lab.rivals.mixing import Mixtures, gamma_for


@pytest.mark.parametrize("neighbours", ["zero-out", "replace"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-2), (1.0, 1e-6), (10.0, 1e-4)])
def test_both_calibrations_keep_the_promise_and_exact_wastes_nothing(
    epsilon, delta, neighbours
) -> None:
    mixtures = Mixtures.of_records(8, delta)
    published, exact = (
        gamma_for(epsilon, delta, 8, neighbours, how) for how in ("published", "exact")
    )
    assert mixtures.kept(epsilon, published, neighbours) <= delta
    assert 0.99 * delta <= mixtures.kept(epsilon, exact, neighbours) <= delta
    assert exact < published


def test_replacing_needs_more_than_zeroing_out() -> None:
    one, two = (gamma_for(1.0, 1e-6, 8, how, "exact") for how in ("zero-out", "replace"))
    assert one < two < 2 * one


def test_without_privacy_it_is_near_least_squares() -> None:
    """Not least squares itself: k mixtures are k rows, however many records there are."""
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, (20_000, 2))
    y = x @ [0.5, -0.3] + 0.1
    terms = {"epsilon": 1e7, "bounds": (-1, 1), "target_bounds": (-1, 1), "random_state": 0}
    model = GaussMixRegressor(accounting="exact", **terms).fit(x, y)
    assert model.coef_ == pytest.approx([0.5, -0.3], abs=0.02)


def test_an_unknown_accounting_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="accounting"):
        GaussMixRegressor(accounting="modern").promise()
