"""Sums in one pass are what contributors would send; several models share one promise."""

import numpy as np
import pytest

from blurfit import Binary, Numeric, Schema
from blurfit.estimators import InputPerturbationClassifier, InputPerturbationRegressor
from blurfit.estimators.passes import Rows
from blurfit.input_perturbation.estimators import clean_sums
from blurfit.theory.gaussian import mu_of

COLUMNS = (Numeric("a", -1, 3), Numeric("b", 0, 10), Numeric("c", -5, 5))
ROWS = np.random.default_rng(0).uniform(-2, 8, (3000, 3))  # some are outside of the bounds
TARGETS = (Numeric("y", 0, 100), Binary("z"))
ANSWERS = (
    np.random.default_rng(1).uniform(0, 100, 3000),
    np.random.default_rng(2).integers(0, 2, 3000),
)
KINDS = (InputPerturbationRegressor, InputPerturbationClassifier)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("place", [0, 1])
def test_one_pass_is_the_sum_of_what_each_row_would_send(place: int, intercept: bool) -> None:
    target = TARGETS[place]
    schema = Schema(COLUMNS, target, intercept)
    public = KINDS[place](epsilon=20.0).public_input_for(schema, len(ROWS))
    encoded = np.column_stack(
        [one.scale(answers) for one, answers in zip(TARGETS, ANSWERS, strict=True)]
    )
    found = clean_sums(public, schema, Rows(ROWS, encoded, COLUMNS).joint, len(ROWS), place)
    records = dict(zip("abc", ROWS.T, strict=True)) | {target.name: ANSWERS[place]}
    q, p, _ = public.loss.terms(*schema.encode(records))
    assert found.count == 3000
    np.testing.assert_allclose(found.gram, q.T @ q, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(found.moment, p.sum(axis=0), rtol=1e-10, atol=1e-9)


def test_several_classes_share_the_promise_and_the_ball_is_public() -> None:
    schema = Schema(COLUMNS, TARGETS[1])
    estimator = InputPerturbationClassifier(
        epsilon=30.0, delta=1e-6, local_epsilon=200.0, local_delta=1e-6
    )
    one, three = (estimator.public_input_for(schema, 3000, models) for models in (1, 3))
    assert (one.epsilon, one.delta) == (30.0, 1e-6)
    # as they are stated: rounded up in the twelfth digit
    assert 3 * three.epsilon <= 30.0 * (1 + 1e-11)
    assert 3 * three.delta <= 1e-6 * (1 + 1e-11)
    assert 3 * three.calibration.kept.epsilon <= 30.0
    local = three.calibration.local
    assert mu_of(local.epsilon, local.delta) * np.sqrt(3) <= mu_of(200.0, 1e-6) * (1 + 1e-6)
    schema = Schema(COLUMNS, TARGETS[0])
    by_default = InputPerturbationRegressor(epsilon=20.0).public_input_for(schema, 3000)
    again = InputPerturbationRegressor(epsilon=20.0).public_input_for(schema, 3000)
    assert by_default == again  # of public terms alone
    stated = InputPerturbationRegressor(epsilon=20.0, weight_bound=0.7)
    setting = stated.public_input_for(schema, 3000).calibration.setting
    assert setting.weight_bound == 0.7
    assert by_default.calibration.setting.weight_bound != 0.7
