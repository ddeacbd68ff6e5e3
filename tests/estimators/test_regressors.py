import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from blurfit import InvalidValueError
from blurfit.estimators import InputPerturbationRegressor, MomentPerturbationRegressor

# Seeded, so that they can be repeated: what is said about that is tested on its own.
pytestmark = pytest.mark.filterwarnings("ignore::blurfit.errors.NotPrivateWarning")
BOTH = pytest.mark.parametrize("kind", [MomentPerturbationRegressor, InputPerturbationRegressor])
LOWER, UPPER = np.array([18.0, 0.0, -1.0]), np.array([80.0, 60.0, 3.0])


def people(rows: int, noise: float = 500.0):
    generator = np.random.default_rng(rows)
    X = generator.uniform(LOWER, UPPER, (rows, 3))
    y = 1000 + 100 * X[:, 0] + 300 * X[:, 1] - 2000 * X[:, 2]
    return X, y + noise * generator.standard_normal(rows)


def regressor(kind, **parameters):
    if kind is InputPerturbationRegressor:
        parameters = {"weight_bound": 4.0} | parameters
    return kind(
        **{"bounds": (LOWER, UPPER), "target_bounds": (-10_000, 40_000), "random_state": 0}
        | parameters
    )


@BOTH
def test_little_noise_gives_what_least_squares_gives(kind) -> None:
    X, y = people(20_000)
    plain = LinearRegression().fit(X, y)
    few = {} if kind is MomentPerturbationRegressor else {"split": 0.01}
    enough = 1000.0 if kind is MomentPerturbationRegressor else 50.0
    blurred = regressor(kind, epsilon=enough, **few).fit(X, y)
    np.testing.assert_allclose(blurred.coef_, plain.coef_, rtol=0.01)
    np.testing.assert_allclose(blurred.predict(X), plain.predict(X), rtol=0.01, atol=100)
    assert blurred.coef_.shape == (3,)
    assert isinstance(blurred.intercept_, float)
    assert blurred.score(X, y) == pytest.approx(plain.score(X, y), abs=1e-3)


@BOTH
def test_predictions_are_the_published_models_and_beyond_the_bounds_the_line_goes_on(kind) -> None:
    """X·coef_ + intercept_ in the user's units, against the weights of encoded records."""
    X, y = people(500)
    fitted = regressor(kind).fit(X, y)
    records = {f"x{place}": column for place, column in enumerate(X.T)}
    if kind is MomentPerturbationRegressor:
        published = fitted.model_.predict(records)
        np.testing.assert_allclose(fitted.predict(X), published, rtol=1e-9, atol=1e-6)
    line = X @ fitted.coef_ + fitted.intercept_
    aim = fitted.model_.aim
    np.testing.assert_allclose(fitted.predict(X), np.clip(line, aim.lower, aim.upper))
    steps = np.array([UPPER, 1.01 * UPPER, -1e6 * UPPER, 1e6 * UPPER])
    line = steps @ fitted.coef_ + fitted.intercept_
    ends = fitted.model_.aim.lower, fitted.model_.aim.upper
    np.testing.assert_allclose(fitted.predict(steps), np.clip(line, *ends))
    assert sorted(fitted.predict(steps)[2:]) == list(ends)


def test_intercept_split_and_rule_are_handed_on() -> None:
    fitted = regressor(InputPerturbationRegressor, fit_intercept=False).fit(*people(500))
    assert fitted.predict([(LOWER + UPPER) / 2])[0] == pytest.approx(15_000)
    kind = InputPerturbationRegressor
    assert regressor(kind, split=0.3).fit(*people(100)).public_input_.calibration.split == 0.3
    paper = regressor(kind, rule="published", random_state=None).fit(*people(100))
    assert paper.public_input_.calibration.rule == "published"
    assert not paper.guarantee_.private
    assert "NOT PROVED" in paper.guarantee_.statement


@BOTH
@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (None, r"target_bounds=\(lower, upper\).*never taken from the data"),
        ((1, 0), "target_bounds: Expected lower=1.0 < upper=0.0 for 'target'"),
        (([0, 1], 2), r"target_bounds\[0\] to be one number or 1"),
        (5, "target_bounds=5 to be a pair"),
    ],
)
def test_bad_target_bounds(kind, bounds, message) -> None:
    with pytest.raises(InvalidValueError, match=message):
        regressor(kind, target_bounds=bounds).fit(*people(100))


@BOTH
@pytest.mark.parametrize(
    ("bad", "kind_of_y", "message"),
    [
        (np.nan, float, "y contains NaN"),
        (np.inf, float, "y contains infinity"),
        (np.nan, object, "contains NaN"),
        (np.inf, object, "Input y contains NaN or infinity"),
        ("a", object, "found something else in X or y"),
    ],
)
def test_bad_targets(kind, bad, kind_of_y, message) -> None:
    X, y = people(100)
    y = y.astype(kind_of_y)
    y[7] = bad
    with pytest.raises(ValueError, match=message):
        regressor(kind).fit(X, y)


@BOTH
def test_targets_outside_are_clipped(kind) -> None:
    X, y = people(500)
    clipped = regressor(kind, target_bounds=(0, 10_000)).fit(X, np.clip(y, 0, 10_000))
    assert np.array_equal(regressor(kind, target_bounds=(0, 10_000)).fit(X, y).coef_, clipped.coef_)


def test_standard_errors_come_with_moments() -> None:
    X, y = people(50_000)
    fitted = regressor(MomentPerturbationRegressor, epsilon=5.0).fit(X, y)
    intercept, *effects = fitted.estimates(0.99)
    assert intercept.name == "(intercept)"
    for effect, truth in zip(effects, (100, 300, -2000), strict=True):
        assert effect.lower < truth < effect.upper
