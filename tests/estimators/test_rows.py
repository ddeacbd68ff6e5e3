"""DataFrames with words, schemas, and messages that tell no value."""

from contextlib import suppress

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from blurfit import Binary, Categorical, InfeasibleError, InvalidValueError, Numeric, Schema
from blurfit.estimators import (
    InputPerturbationClassifier,
    InputPerturbationRegressor,
    MomentPerturbationClassifier,
    MomentPerturbationRegressor,
    MomentPerturbationSurvival,
)

LEVELS = ["north", "south", "west"]
BOUNDS = {"age": (18, 90), "region": LEVELS, "married": (0, 1)}
FEATURES = [Numeric("age", 18, 90), Categorical("region", LEVELS), Binary("married")]
SCHEMA = Schema(FEATURES, Numeric("income", 0, 60_000))
REGRESSORS = pytest.mark.parametrize(
    "kind", [MomentPerturbationRegressor, InputPerturbationRegressor]
)


def people(count: int = 20_000) -> tuple[pd.DataFrame, pd.Series]:
    generator = np.random.default_rng(count)
    region, married = generator.choice(LEVELS, count), generator.integers(0, 2, count)
    age = generator.uniform(18, 90, count)
    frame = pd.DataFrame({"region": region, "married": married, "age": age})
    income = 5000 + 300 * frame["age"] + 9000 * (frame["region"] == "west")
    income += generator.normal(0, 3000, count)
    return frame, income.clip(0, 60_000).rename("income")


@REGRESSORS
@pytest.mark.parametrize("bounds", [BOUNDS, SCHEMA], ids=["names", "schema"])
def test_words_become_levels_and_names_are_found_in_any_order(kind, bounds) -> None:
    X, y = people()
    bound = {} if isinstance(bounds, Schema) else {"target_bounds": (0, 60_000)}
    fitted = kind(epsilon=20.0, bounds=bounds, **bound).fit(X, y)
    names = ["region=south", "region=west", "married", "age"]
    assert list(fitted.model_.coefficients.effects) == names
    assert fitted.coef_ == pytest.approx([0, 9000, 0, 300], abs=700)
    assert fitted.model_.aim.name == "income"
    if kind is MomentPerturbationRegressor:
        np.testing.assert_allclose(fitted.predict(X[:50]), fitted.model_.predict(X[:50]))


OTHERS = pytest.mark.parametrize("library", [pl.DataFrame, pa.table], ids=["polars", "arrow"])


@OTHERS
@pytest.mark.parametrize("formula", [None, "income ~ age + region"])
def test_other_libraries_are_read_as_pandas_is(library, formula) -> None:
    X, y = people()
    rows = library(X.to_dict("list"))
    kind = MomentPerturbationRegressor(epsilon=20.0, bounds=SCHEMA, formula=formula)
    fitted = kind.fit(rows, y.to_numpy())
    assert fitted.feature_names_in_.tolist() == ["region", "married", "age"] or formula
    np.testing.assert_allclose(
        fitted.predict(library(X[:9].to_dict("list"))), fitted.predict(X[:9])
    )
    if formula is not None:
        whole = kind.fit(library(X.assign(income=y).to_dict("list")), None)
        assert whole.coef_ == pytest.approx(fitted.coef_, abs=700)


@OTHERS
@pytest.mark.parametrize("bad", ["Anna", np.inf, -np.inf, np.nan])
def test_other_libraries_hide_values_in_messages(library, bad) -> None:
    values = ["Bob", "Carl", bad] if isinstance(bad, str) else [1.5, 2.5, bad]
    columns = {"age": [20.0, 30.0, 40.0], "pay": values, "member": [True, False, True]}
    with pytest.raises(InvalidValueError) as refused:
        MomentPerturbationRegressor(bounds=(0, 90), target_bounds=(0, 1)).fit(
            library(columns), [0.1, 0.2, 0.3]
        )
    assert not {"Anna", "Bob", "Carl"} & set(str(refused.value).replace("'", " ").split())


@pytest.mark.filterwarnings("ignore::blurfit.errors.NotPrivateWarning")
def test_columns_of_an_array_are_the_schemas_in_their_order() -> None:
    X, y = people(2000)
    array = X[["age", "region", "married"]].to_numpy()
    named = MomentPerturbationRegressor(bounds=SCHEMA, random_state=0)
    by_place = MomentPerturbationRegressor(bounds=SCHEMA, random_state=0).fit(array, y)
    by_name = named.fit(X[["age", "region", "married"]], y)
    assert np.array_equal(by_place.coef_, by_name.coef_)
    with pytest.raises(InvalidValueError, match="X of 3 columns, one for each feature"):
        named.fit(array[:, :2], y)


def test_each_row_by_itself_with_words() -> None:
    X, y = people(3000)
    fitted = MomentPerturbationRegressor(epsilon=50.0, bounds=SCHEMA, per_record=True).fit(X, y)
    assert fitted.coef_ == pytest.approx([0, 9000, 0, 300], abs=1500)


@pytest.mark.parametrize("kind", [MomentPerturbationClassifier, InputPerturbationClassifier])
@pytest.mark.parametrize(
    ("target", "expected"),
    [(Binary("rich"), [False, True]), (Categorical("rich", ["low", "mid", "top"]), None)],
)
def test_a_schema_names_the_classes_too(kind, target, expected) -> None:
    X, y = people()
    codes = (y > 25_000).astype(int) + (0 if expected else (y > 35_000).astype(int))
    labels = codes if expected else np.array(["low", "mid", "top"])[codes]
    fitted = kind(epsilon=20.0, bounds=Schema(FEATURES, target)).fit(X, labels)
    assert fitted.classes_.tolist() == (expected or ["low", "mid", "top"])
    assert fitted.guarantee_.private
    assert fitted.score(X, labels) > (0.8 if expected else 0.5)


@pytest.mark.parametrize("kind", [MomentPerturbationRegressor, MomentPerturbationClassifier])
@pytest.mark.parametrize("bounds", [(0, 90), {**BOUNDS, "region": (0, 1)}])
def test_words_without_levels_are_refused_and_no_value_is_told(kind, bounds) -> None:
    X, y = people(200)
    X["region"] = "secret"
    public = {"target_bounds": (0, 1)} if "Regressor" in kind.__name__ else {"classes": [0, 1]}
    with pytest.raises(
        InvalidValueError, match=r"in the columns ('region'|0)\. .*levels"
    ) as caught:
        kind(bounds=bounds, **public).fit(X, (y > 20_000).astype(int))
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("value", ["secret", None, np.nan])
def test_unknown_levels_are_refused_and_no_value_is_told(value) -> None:
    X, y = people(200)
    X["region"] = X["region"].astype(object)
    X.loc[7, "region"] = value
    with pytest.raises(InvalidValueError, match="one of its levels 'north', 'south'") as caught:
        MomentPerturbationRegressor(bounds=SCHEMA).fit(X, y)
    assert "secret" not in str(caught.value)


def test_numbers_signs_and_targets_are_checked_beside_words() -> None:
    X, y = people(200)
    model = MomentPerturbationRegressor(bounds=SCHEMA)
    with pytest.raises(InvalidValueError, match="numbers in the column 'age'") as caught:
        model.fit(X.assign(age="secret"), y)
    assert "secret" not in str(caught.value)
    with pytest.raises(InvalidValueError, match="binary column 'married' to have 0 and 1"):
        model.fit(X.assign(married=2), y)
    with pytest.raises(ValueError, match=r"missing \(NaN\)"):
        model.fit(X.assign(age=np.nan), y)
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(X, None)
    with pytest.raises(InvalidValueError, match=r"shape \(n, 3\)|2D"):
        model.fit(np.array([1.0, 2.0, 3.0]), y)
    with pytest.raises(InvalidValueError, match="no target_bounds: a regressor"):
        MomentPerturbationRegressor(bounds=SCHEMA, target_bounds=(0, 1)).fit(X, y)
    with pytest.raises(InvalidValueError, match="to be a Numeric column"):
        MomentPerturbationRegressor(bounds=Schema(FEATURES, Binary("rich"))).fit(X, y)
    with pytest.raises(InvalidValueError, match="Binary or Categorical"):
        MomentPerturbationClassifier(bounds=SCHEMA).fit(X, y > 1)


@pytest.mark.parametrize("value", [5e-324, -1e-200, 1.7e308])
@pytest.mark.parametrize("kind", ["pooled", "within", "label", "input", "exits"])
def test_no_value_raises_or_warns_whatever_numpy_is_to_do(kind, value, recwarn) -> None:
    """NumPy's own errors would come after the budget was spent, and tell of one cell."""
    generator = np.random.default_rng(0)
    X, whose = generator.uniform(0.5, 1, (3000, 2)), np.arange(3000) // 2
    y, is_large = X[:, 1].copy(), X[:, 0] > 0.7
    X[0] = value, -value  # whose sum is no number, if there are two of each
    X[1] = X[0]
    exits = np.rec.fromarrays([is_large, np.where(is_large, 0.3, 0.9)], names="event,time")
    bounds, target_bounds = {"bounds": (-2, 2)}, {"target_bounds": (-2, 2)}
    one_wave = {"waves": 1, **bounds}
    models = {
        "pooled": MomentPerturbationRegressor(**one_wave, **target_bounds),
        "within": MomentPerturbationRegressor(**one_wave, **target_bounds, effects="within"),
        "label": MomentPerturbationClassifier(**one_wave, classes=[False, True]),
        "input": InputPerturbationRegressor(**bounds, **target_bounds),
        "exits": MomentPerturbationSurvival(**bounds, horizon=1.0, bands=2, epsilon=5.0),
    }
    answers = {"label": is_large, "exits": exits}.get(kind, y)
    for chosen in ("raise", "warn"):
        with np.errstate(all=chosen), suppress(InfeasibleError):  # the noise is large
            models[kind].fit(X, answers, groups=whose if kind == "within" else None)
    assert not recwarn.list
