"""Sums in one pass are what contributors would send."""

import numpy as np

from blurfit import Categorical, Numeric, Schema
from blurfit.estimators import MomentPerturbationClassifier, MomentPerturbationRegressor
from blurfit.estimators.base import Signal
from blurfit.estimators.passes import Rows, clean_moment_totals

COLUMNS = (Numeric("a", -1, 3), Numeric("b", 0, 10), Numeric("c", -5, 5))
ROWS = np.random.default_rng(0).uniform(-2, 8, (300, 3))  # some are outside of the bounds
ANSWERS = np.random.default_rng(1).uniform(0, 100, 300)
TARGET = Numeric("y", 0, 100)


def table(values, answers) -> dict[str, np.ndarray]:
    return {"a": values[:, 0], "b": values[:, 1], "c": values[:, 2], "y": answers}


def test_all_classes_are_columns_of_one_release() -> None:
    target = Categorical("y", ["low", "middle", "high"])
    places = np.random.default_rng(2).integers(0, 3, 300)
    agreement = MomentPerturbationClassifier().agreement_for(Schema(COLUMNS, target), 300)
    levels = np.array(target.levels)[places]
    found = clean_moment_totals(agreement, Rows(ROWS, Signal(target, places).encoded, COLUMNS))
    expected = agreement.exact(table(ROWS, levels)).sum(axis=0)
    np.testing.assert_allclose(found.sums, expected, rtol=1e-11, atol=1e-10)
    assert (agreement.epsilon, agreement.delta) == (1.0, 1e-6)  # no budget is split


def test_every_model_follows_from_the_release_as_far_as_the_schema_says() -> None:
    estimator = MomentPerturbationRegressor(
        epsilon=50.0, bounds=(-5, 10), target_bounds=(0, 100), waves=1
    )
    estimator.fit(ROWS, ANSWERS)
    again = estimator.moments_.fit()
    assert again.to_json() == estimator.model_.to_json()
    assert estimator.moments_.count == 300
    assert estimator.moments_.fingerprint == estimator.agreement_.fingerprint
    schema = Schema(COLUMNS, TARGET, targets=("y", "a"))
    told = MomentPerturbationRegressor(epsilon=50.0, bounds=schema).fit(ROWS, ANSWERS)
    assert set(told.agreement_.schema.targets) == {"y", "a"}
    free = MomentPerturbationRegressor(epsilon=50.0, bounds=(-5, 10), target_bounds=(0, 100))
    assert free.fit(ROWS, ANSWERS).agreement_.schema.targets == ("x0", "x1", "x2", "target")
