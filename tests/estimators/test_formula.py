"""Formulas over a DataFrame: what they derive is derived before anything is blurred."""

import numpy as np
import pandas as pd
import pytest

from blurfit import Binary, Categorical, Curve, Numeric, Schema
from blurfit.errors import InvalidValueError
from blurfit.estimators import MomentPerturbationClassifier, MomentPerturbationRegressor
from blurfit.estimators.passes import Rows
from blurfit.schema.formulas import declared
from blurfit.schema.schema import values

BOUNDS = {"age": (18, 90), "region": ["n", "s", "w"], "sex": ["f", "m"]}
FORMULA = "income ~ curve(age) + C(region)*sex"


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    age, count = rng.uniform(18, 90, 20_000), 20_000
    table = pd.DataFrame({"age": age, "note": "kept out", "sex": rng.choice(["f", "m"], count)})
    table["region"] = rng.choice(["n", "s", "w"], count)
    south = 5 * (table["region"] == "s") * (1 + (table["sex"] == "m"))
    table["mean"] = 40 + 10 * np.sin(age / 15) + south
    table["income"] = np.clip(table["mean"] + rng.normal(0, 8, count), 0, 100)
    return table


@pytest.mark.filterwarnings("ignore:NOT PRIVATE")
@pytest.mark.parametrize("waves", [1, 2])
def test_a_curve_and_an_interaction_are_learned(people, waves) -> None:
    """By what X has and by what a model of a release says of the same rows."""
    model = MomentPerturbationRegressor(
        epsilon=3, bounds=BOUNDS, target_bounds=(0, 100), formula=FORMULA, waves=waves,
        random_state=3,
    ).fit(people)  # fmt: skip
    assert model.model_.features == ("curve(age)", "region", "sex", "region:sex")
    assert [one.name for one in model.agreement_.schema.asked] == ["age", "region", "sex", "income"]
    assert len(model.agreement_.form.columns) == 6 + 3 + 2 + 6 + 1  # age itself is not sent
    found = model.predict(people)
    assert np.sqrt(np.mean((found - people["mean"]) ** 2)) < 0.8
    np.testing.assert_allclose(found, model.model_.predict(people), atol=1e-8)
    told = {one.name: one for one in model.estimates()}
    assert abs(told["region:sex=s:m"].value - 5) < 4 * told["region:sex=s:m"].standard_error
    assert model.results().params.index[-1] == "region:sex=w:m"


@pytest.mark.filterwarnings("ignore:NOT PRIVATE")
def test_labels_and_a_schema_that_derives(people) -> None:
    rich = people.assign(rich=people["income"] > 45)
    model = MomentPerturbationClassifier(
        epsilon=3, bounds=BOUNDS, classes=[False, True], formula="rich ~ poly(age, 3) + region",
        random_state=3,
    ).fit(rich)  # fmt: skip
    assert model.score(rich, rich["rich"]) > 0.75
    np.testing.assert_allclose(model.predict_proba(rich), model.model_.predict_proba(rich))
    schema = Schema(
        [Curve("age", knots=[18, 50, 90]), Categorical("region", ["n", "s", "w"])],
        Binary("rich"),
        sources=[Numeric("age", 18, 90)],
    )
    other = MomentPerturbationClassifier(epsilon=3, bounds=schema, random_state=3)
    other.fit(rich[["region", "age"]], rich["rich"])
    assert other.model_.features == ("region", "curve(age)")
    assert other.score(rich[["region", "age"]], rich["rich"]) > 0.7


def test_one_pass_has_the_columns_that_contributors_would_send(people) -> None:
    """Every kind of derived column, by another route: record by record."""
    columns = {"age": Numeric("age", 18, 90), "sex": Categorical("sex", ["f", "m"])}
    columns["region"] = Categorical("region", ["n", "s", "w"])
    text = "y ~ curve(age, 4) + bands(age, [30, 60]) + poly(age, 4) + sex*region + age:region"
    formula, features, sources = declared(text, columns)
    assert formula.features[:3] == ("curve(age)", "bands(age)", "age")
    assert sources == ()
    schema = Schema(features, Numeric("income", 0, 100))
    table = people.head(700)
    coded = np.column_stack(
        [table["age"], columns["sex"].places(table["sex"].to_numpy(object)),
         columns["region"].places(table["region"].to_numpy(object))]
    )  # fmt: skip
    target = schema.target.scale(table["income"].to_numpy())[:, None]
    rows = Rows(coded, target, list(columns.values()), features=schema.features)
    v = np.column_stack([np.ones(700), values(schema, table)])
    np.testing.assert_allclose(rows.joint.matrix(700), v.T @ v, atol=1e-9)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"formula": "income ~ wage"}, "'wage' in .* whose bounds are stated"),
        ({"formula": "age ~ region"}, "name of y"),
        ({"formula": "income ~ C(region, 's')"}, "name that one first"),
        ({"formula": "income ~ curve(region)"}, "to be a number"),
        ({"formula": "income ~ curve(age, 2)"}, "3 to 100 knots"),
        ({"formula": "income ~ curve(age, [17, 30, 40])"}, "from lower"),
        ({"formula": "wage ~ age"}, "column 'wage' in X"),
        ({"bounds": (0, 1)}, "bounds by name"),
        ({"bounds": {"height": (0, 2), **BOUNDS}}, "the columns 'height'"),
        ({"effects": "within"}, "no formula"),
    ],
)
def test_what_is_refused(people, changed, words) -> None:
    asked = {"bounds": BOUNDS, "formula": FORMULA, "target_bounds": (0, 100)} | changed
    with pytest.raises(InvalidValueError, match=words):
        MomentPerturbationRegressor(**asked).fit(people)
    with pytest.raises(InvalidValueError, match="to be the column 'income'"):
        MomentPerturbationRegressor(bounds=BOUNDS, formula=FORMULA).fit(people, people["mean"])


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("np.log(income) ~ age", "must have the target's name before ~, got 'np.log\\(income\\)'"),
        ("income ~ I(age**2)", r"Write poly\(age, 2\) for powers up to 2\."),
        ("income ~ np.log(age)", "add the transformed column to X, with bounds of its own"),
    ],
)
@pytest.mark.parametrize("y", [None, "income"])
def test_a_transformation_is_refused_with_what_to_write_instead(people, formula, message, y):
    """Seen before: "into the schema of the next collection", to somebody who held the table."""
    model = MomentPerturbationRegressor(bounds=BOUNDS, target_bounds=(0, 100), formula=formula)
    with pytest.raises(InvalidValueError, match=message):
        model.fit(people, None if y is None else people[y])
