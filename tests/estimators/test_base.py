"""What all four estimators keep: scikit-learn's contract, and ours."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import has_fit_parameter

from blurfit import InfeasibleError, InvalidValueError, NotPrivateWarning
from blurfit.agreement.agreement import Agreement
from blurfit.estimators import (
    InputPerturbationClassifier,
    InputPerturbationRegressor,
    MomentPerturbationClassifier,
    MomentPerturbationRegressor,
    base,
    moments,
    passes,
)
from blurfit.input_perturbation.estimators import public_ball
from blurfit.learning.sums import Totals
from blurfit.model.model import PublishedModel
from blurfit.schema.schema import Numeric, Schema
from blurfit.simulation import exact_totals

# As anybody would ask for them, with the promise that is the default.
CHECKED = [
    MomentPerturbationRegressor(bounds=(-10, 10), target_bounds=(-10, 10), sample_weight_bound=5.0),
    InputPerturbationRegressor(bounds=(-10, 10), target_bounds=(-10, 10)),
    MomentPerturbationClassifier(bounds=(-10, 10), sample_weight_bound=5.0),
    InputPerturbationClassifier(bounds=(-10, 10)),
]
ALL = [type(estimator) for estimator in CHECKED]
IDS = [kind.__name__ for kind in ALL]
all_kinds = pytest.mark.parametrize("kind", ALL, ids=IDS)


def is_regressor(kind: type) -> bool:
    return "Regressor" in kind.__name__


def make(kind: type, **parameters):
    """An estimator for features in [0, 1] and, for a number, targets in [-2, 2]."""
    public = {"target_bounds": (-2, 2)} if is_regressor(kind) else {"classes": [0, 1]}
    parameters = public | parameters
    return kind(**{"bounds": (0, 1)} | parameters)


def contract(fitted):
    """The agreement, or the public input of the paper's algorithms."""
    return fitted.public_input_ if hasattr(fitted, "public_input_") else fitted.agreement_


def data(kind: type, rows: int = 200, columns: int = 3):
    generator = np.random.default_rng(rows + columns)
    X = generator.uniform(0, 1, (rows, columns))
    y = 2 * X[:, 0] - X[:, 1] + 0.1 * generator.standard_normal(rows)
    return X, y if is_regressor(kind) else (y > 0.5).astype(int)


seeded = pytest.mark.filterwarnings("ignore::blurfit.errors.NotPrivateWarning")


# SciPy must be told of it before it is imported: run in a process of its own, below.
ELSEWHERE = "check_array_api_input"
OF_WEIGHTS = {
    "check_sample_weight_equivalence_on_dense_data": "a row of weight 2 is not two people",
    "check_all_zero_sample_weights_error": "whether a fit is refused must not tell of weights",
}


@seeded  # and with classes of their own
@pytest.mark.parametrize("estimator", CHECKED, ids=IDS)
def test_scikit_learns_checks(estimator) -> None:
    """All of them in one test, which ends at the first that fails, and names it."""
    weighted = OF_WEIGHTS if hasattr(estimator, "waves") else {}
    checks = check_estimator(estimator, on_skip=None, expected_failed_checks=weighted)
    assert len(checks) > 40
    failed = {one["check_name"] for one in checks if one["status"] != "passed"}
    assert failed <= {ELSEWHERE, *weighted}


def test_none_of_scikit_learns_checks_is_skipped() -> None:
    script = f"""
from sklearn.utils.estimator_checks import estimator_checks_generator
from blurfit.estimators import {", ".join(IDS)}
for estimator in {CHECKED!r}:
    estimator.set_params(epsilon=1e4)
    checks = [(one, check) for one, check in estimator_checks_generator(estimator)]
    assert len(checks) > 40
    (found,) = [(one, check) for one, check in checks if check.func.__name__ == {ELSEWHERE!r}]
    found[1](found[0])
"""
    subprocess.run(
        [sys.executable, "-c", script], check=True, env={**os.environ, "SCIPY_ARRAY_API": "1"}
    )


@seeded
@all_kinds
def test_clones_and_parameters_are_left_alone(kind) -> None:
    bounds = [np.zeros(3), np.ones(3)]
    estimator = make(kind, bounds=bounds, random_state=0)
    before = dict(vars(estimator))
    copy = clone(estimator).fit(*data(kind))
    estimator.fit(*data(kind))
    assert all(getattr(estimator, name) is value for name, value in before.items())
    assert np.array_equal(copy.coef_, estimator.coef_)


@seeded
@all_kinds
def test_in_a_pipeline_and_cross_validated(kind) -> None:
    X, y = data(kind, rows=3000)
    parameters = {"epsilon": 30.0} | ({} if "Moment" in kind.__name__ else {"weight_bound": 3.0})
    seeded = make(kind, random_state=0, **parameters)
    pipeline = make_pipeline(FunctionTransformer(lambda X: X / 100), seeded)
    scores = cross_val_score(pipeline, 100 * X, y, cv=3)
    assert scores.shape == (3,)
    assert scores.min() > 0.5


@all_kinds
def test_feature_names_are_kept_and_each_is_there_once(kind) -> None:
    X, y = data(kind)
    frame = pd.DataFrame(X, columns=["age", "hours", "target"])
    estimator = make(kind).fit(frame, pd.Series(y, name="income"))
    assert estimator.feature_names_in_.tolist() == ["age", "hours", "target"]
    assert list(estimator.model_.coefficients.effects) == ["age", "hours", "target"]
    aim = estimator.model_.aim.name
    assert aim == "income"
    assert estimator.predict(frame).shape == (200,)
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.predict(frame.rename(columns={"age": "years"}))
    with pytest.raises(ValueError, match="same order as they were in fit"):
        estimator.predict(frame[["hours", "age", "target"]])
    with pytest.raises(ValueError, match="unique column names"):
        make(kind).fit(pd.DataFrame(X, columns=["a", "b", "a"]), y)


def test_a_feature_may_have_the_targets_name() -> None:
    assert base.free_name(None, ["a"]) == "target"
    assert base.free_name("", ["target"]) == "target_"
    assert base.free_name("a", ["a", "a_"]) == "a__"
    assert base.free_name(7, []) == "target"
    X, y = data(MomentPerturbationRegressor)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    fitted = make(MomentPerturbationRegressor).fit(frame, pd.Series(y, name="b"))
    assert fitted.agreement_.schema.target.name == "b_"


@all_kinds
def test_missing_bounds_are_an_error(kind) -> None:
    with pytest.raises(InvalidValueError, match=r"bounds=\(lower, upper\).*never taken from"):
        make(kind, bounds=None).fit(*data(kind))


@all_kinds
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: np.where(X[3, 1] == X, np.nan, X), "contains NaN"),
        (lambda X: np.where(X[3, 1] == X, np.inf, X), "contains infinity"),
        (lambda X: X.astype(str), "strings"),
        (
            lambda X: np.where(X[3, 1] == X, "many", X.astype(object)),
            "found something else in X or y",
        ),
        (lambda X: X[:0], r"0 sample\(s\)"),
        (lambda X: X[:, :0], r"0 feature\(s\)"),
        (lambda X: X[:-1], "inconsistent numbers of samples"),
        (lambda X: X[0], "Expected 2D array"),
    ],
)
def test_bad_rows_each_with_its_own_error(kind, spoil, message) -> None:
    X, y = data(kind)
    with pytest.raises(ValueError, match=message):
        make(kind).fit(spoil(X), y)


@all_kinds
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0}, "epsilon=0 > 0"),
        ({"epsilon": [1.0]}, r"epsilon=\[1.0\] to be a real number"),
        ({"delta": 1}, "delta=1 strictly between 0 and 1"),
        ({"neighbours": "friends"}, "neighbours='friends' to be one of"),
        ({"local_epsilon": 1.0}, "local_delta with local_epsilon=1.0"),
        ({"random_state": "seed"}, "random_state='seed'"),
        ({"random_state": 1, "per_record": True}, "random_state=1 to be None with per_record=True"),
    ],
)
def test_bad_parameters_are_named(kind, parameters, message) -> None:
    with pytest.raises(InvalidValueError, match=message):
        make(kind, **parameters).fit(*data(kind))


INPUT_KINDS = pytest.mark.parametrize("kind", [ALL[1], ALL[3]], ids=[IDS[1], IDS[3]])


@INPUT_KINDS
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"weight_bound": -1}, "weight_bound=-1 > 0"),
        ({"weight_bound": [1.0]}, r"weight_bound=\[1.0\] to be a real number"),
        ({"fit_intercept": "yes"}, "intercept='yes' to be True or False"),
    ],
)
def test_bad_parameters_of_input_are_named(kind, parameters, message) -> None:
    with pytest.raises(InvalidValueError, match=message):
        make(kind, **parameters).fit(*data(kind))


@pytest.mark.parametrize("kind", [ALL[1], ALL[3]], ids=[IDS[1], IDS[3]])
def test_input_needs_more_rows_than_columns(kind) -> None:
    with pytest.raises(InfeasibleError, match=r"quorum=20 > dimension=31.*The least quorum .* 32"):
        make(kind).fit(*data(kind, rows=20, columns=30))
    fitted = make(kind, weight_bound=None).fit(*data(kind))
    expected = public_ball(
        fitted.n_features_in_ + 1, 200, fitted.epsilon, fitted.delta, label=not is_regressor(kind)
    )
    assert fitted.public_input_.calibration.setting.weight_bound == pytest.approx(expected)


@pytest.mark.parametrize("kind", [ALL[0], ALL[2]], ids=[IDS[0], IDS[2]])
def test_moment_works_with_fewer_rows_than_columns(kind) -> None:
    assert make(kind).fit(*data(kind, rows=20, columns=30)).n_features_in_ == 30


@pytest.mark.parametrize("kind", [ALL[1], ALL[3]])
def test_samples_have_no_weights(kind) -> None:
    assert not has_fit_parameter(kind(), "sample_weight")
    with pytest.raises(TypeError, match="sample_weight"):
        make(kind).fit(*data(kind), sample_weight=np.ones(200))


@all_kinds
def test_fresh_noise_by_default_and_a_seed_only_for_experiments(kind) -> None:
    X, y = data(kind, rows=2000)
    first, second = (make(kind).fit(X, y) for _ in range(2))
    assert not np.array_equal(first.coef_, second.coef_)
    assert first.guarantee_.private
    with pytest.warns(NotPrivateWarning, match="drawn from random_state"):
        first, second = (make(kind, random_state=3).fit(X, y) for _ in range(2))
    assert np.array_equal(first.coef_, second.coef_)
    assert not first.guarantee_.private
    assert first.guarantee_.statement.startswith("NOT PRIVATE")
    with pytest.warns(NotPrivateWarning):
        assert not np.array_equal(first.coef_, make(kind, random_state=4).fit(X, y).coef_)


@all_kinds
def test_what_is_promised_is_what_was_agreed_of_fits_and_of_submissions(kind) -> None:
    fitted = make(kind, epsilon=0.5, delta=1e-5, neighbours="zero-out").fit(*data(kind))
    agreed = contract(fitted)
    agreed.verify()
    assert (agreed.epsilon, agreed.delta) == (0.5, 1e-5)
    assert agreed.calibration.quorum == fitted.model_.count == 200
    kept = fitted.guarantee_
    assert (kept.epsilon, kept.delta, kept.neighbours) == (0.5, 1e-5, "zero-out")
    X, y = data(kind)
    free = contract(make(kind).fit(X, y)).calibration
    bound = contract(make(kind, local_epsilon=2.0, local_delta=1e-4).fit(X, y)).calibration
    assert bound.local.epsilon <= 2.0 < free.local.epsilon
    noise = "noise" if "Moment" in kind.__name__ else "p_noise"
    assert getattr(bound, noise) > getattr(free, noise)


@pytest.mark.parametrize("kind", [ALL[0], ALL[2]], ids=[IDS[0], IDS[2]])
@pytest.mark.parametrize("words", [False, True])
def test_the_sums_are_those_of_the_protocol(monkeypatch, kind, words) -> None:
    """What is blurred, recomputed record by record: schema, products or loss, sums."""
    seen, blurred = [], passes.blurred

    def tell(agreement, clean, random_state) -> Totals:
        seen.append(clean)
        return blurred(agreement, clean, random_state)

    monkeypatch.setattr(moments, "blurred", tell)
    X, y = data(kind)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    bounds = {"a": (0.2, 0.7), "b": (-1, 1), "c": (0, 3)}
    if words:
        frame["b"] = np.where(X[:, 1] > 0.5, "high", "low")
        bounds["b"] = ["low", "middle", "high"]
    fitted = make(kind, bounds=bounds, waves=1).fit(frame, y)
    schema = fitted.agreement_.schema
    expected = exact_totals(fitted.agreement_, frame.assign(**{schema.target.name: y}))
    (clean,) = seen
    assert (clean.count, clean.fingerprint) == (expected.count, expected.fingerprint)
    np.testing.assert_allclose(clean.sums, expected.sums, rtol=1e-12, atol=1e-12)


@seeded
@all_kinds
def test_clipping_is_what_happens_outside(kind) -> None:
    X, y = data(kind)
    inside = np.clip(X, [0.3, 0, 0.1], 0.5)
    parameters = {"bounds": ([0.3, 0, 0.1], 0.5), "random_state": 0}
    clipped, same = (make(kind, **parameters).fit(rows, y) for rows in (X, inside))
    if "Moment" in kind.__name__:
        np.testing.assert_allclose(clipped.moments_.sums, same.moments_.sums)
    else:
        np.testing.assert_allclose(clipped.coef_, same.coef_, rtol=1e-3)  # up to the last noise


def small(quorum: int) -> tuple[Agreement, Totals]:
    schema = Schema([Numeric("a", -1, 1), Numeric("b", -1, 1)], Numeric("y", -1, 1))
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=quorum)
    generator = np.random.default_rng(0)
    records = {name: generator.uniform(-1, 1, quorum) for name in ("a", "b", "y")}
    return agreement, exact_totals(agreement, records)


def test_sums_for_people_lie_on_the_grid() -> None:
    agreement, clean = small(200)
    sums = passes.blurred(agreement, clean, None)
    assert sums.fingerprint == agreement.fingerprint
    assert (sums.sums % agreement.step == 0).all()
    assert sums != passes.blurred(agreement, clean, None)
    assert passes.blurred(agreement, clean, 3) == passes.blurred(agreement, clean, 3)


@pytest.mark.statistical
def test_noise_for_people_is_the_samplers() -> None:
    agreement, clean = small(50)
    real = np.array([passes.blurred(agreement, clean, None).sums for _ in range(600)])
    seeded = np.array([passes.blurred(agreement, clean, seed).sums for seed in range(600)])
    for left, right in zip(real.T, seeded.T, strict=True):
        assert ks_2samp(left, right, method="asymp").pvalue > 1e-9


def test_agreements_are_remembered() -> None:
    terms = {"epsilon": 1.0, "delta": 1e-6, "quorum": 10}
    schema, same = (Schema([Numeric("a", 0, 1)], Numeric("b", 0, 1)) for _ in range(2))
    assert moments.agree(schema, **terms) is moments.agree(same, **terms)
    assert moments.agree(schema, **terms | {"quorum": 11}).quorum == 11


@seeded
@pytest.mark.statistical
@all_kinds
def test_each_row_by_itself_gives_the_same_distribution(kind) -> None:
    """What is released, by the long way round and at once.

    The local target makes the noise large enough to be seen in every number.
    """
    X, y = data(kind, rows=200, columns=2)
    target = {"epsilon": 20.0, "delta": 1e-3, "local_epsilon": 20.0, "local_delta": 1e-3}
    is_moment = "Moment" in kind.__name__
    if not is_moment:
        target["weight_bound"] = 10.0

    def released(**way) -> np.ndarray:
        fitted = make(kind, **target, **way).fit(X, y)
        return fitted.moments_.sums if is_moment else fitted.model_.w

    trials = 60
    long_way = np.array([released(per_record=True) for _ in range(trials)])
    at_once = np.array([released(random_state=seed) for seed in range(trials)])
    for left, right in zip(long_way.T, at_once.T, strict=True):
        assert ks_2samp(left, right, method="asymp").pvalue > 1e-9


@all_kinds
def test_each_row_by_itself_is_private(kind) -> None:
    fitted = make(kind, per_record=True).fit(*data(kind))
    assert fitted.guarantee_.private
    assert fitted.coef_.shape[-1] == 3


@all_kinds
def test_every_parameter_and_attribute_is_documented_on_the_estimator_itself(kind) -> None:
    text = kind.__doc__
    arguments, attributes = text.split("Attributes:")[0], text.split("Attributes:")[1]
    for name in kind().get_params():
        assert f"\n        {name}: " in arguments, name
    fitted = make(kind).fit(*data(kind))
    for name in vars(fitted):
        if name.endswith("_") and not name.startswith("_"):
            assert f"\n        {name}: " in attributes, name


@pytest.mark.parametrize("kind", [ALL[0], ALL[2]], ids=[IDS[0], IDS[2]])
def test_summaries_estimates_and_reprs_tell_nothing_before_a_fit(kind) -> None:
    X, y = data(kind, rows=5000)
    fitted = make(kind, epsilon=20.0, waves=1).fit(X, y)
    assert isinstance(fitted.model_, PublishedModel)
    assert "x0 + x1 + x2" in str(fitted.summary())
    assert "x0 + x1 + x2" in fitted._repr_html_()
    assert len(repr(fitted.agreement_)) < 200
    assert len(repr(fitted.model_)) < 200
    one = fitted.estimates(0.9)[1]
    assert (one.name, one.lower < one.value < one.upper) == ("x0", True)
    assert one.standard_error > one.privacy_error > 0
    assert len(repr(fitted.moments_)) < 200
    with pytest.raises(NotFittedError):
        kind().summary()
    assert kind.__name__ in kind()._repr_html_()
