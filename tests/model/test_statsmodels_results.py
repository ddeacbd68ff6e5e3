"""statsmodels' names for our numbers."""

import numpy as np
import pytest

from blurfit.model.summary import Results
from support.joint_release import release


@pytest.fixture(scope="module")
def results() -> Results:
    model = release(20_000).fit()
    return Results(model, model.outputs[0])


def test_every_number_is_an_estimate_of_the_model(results) -> None:
    told = results.model.estimates(0.9)
    names = [one.name for one in told]
    for series, attribute in (
        (results.params, "value"),
        (results.bse, "standard_error"),
        (results.tvalues, "statistic"),
        (results.pvalues, "p_value"),
    ):
        assert series.index.tolist() == names
        assert series.tolist() == [getattr(one, attribute) for one in told]
    assert results.conf_int(0.1).to_numpy().tolist() == [[one.lower, one.upper] for one in told]
    assert results.nobs == results.model.count
    assert 0 < results.rsquared < 1


def test_the_covariance_is_that_of_the_standard_errors(results) -> None:
    covariance = results.cov_params()
    assert covariance.columns.tolist() == results.params.index.tolist()
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), results.bse)
    assert str(results.summary()) == str(results.model.summary())
