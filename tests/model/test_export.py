"""Other tools must predict the same from the same raw records."""

from dataclasses import replace

import numpy as np
import onnxruntime
import pandas as pd
import pytest

from blurfit.agreement.agreement import Agreement
from blurfit.model.model import PublishedModel
from blurfit.schema.schema import Binary, Categorical, Numeric, Schema

PEOPLE = pd.DataFrame(
    {"sex": ["f", "m", "x"], "age": [10.0, 50.0, 120.0], "married": [0, 1, 1]}  # 120 is clipped
)
FEATURES = [Numeric("age", 0, 100), Binary("married"), Categorical("sex", ["f", "m", "x"])]
INCOME = Numeric("income", -10_000, 200_000)
WEIGHTS = [0.1, 0.4, -0.7, 0.1, -0.3, 0.25]
TARGETS = {
    "number": (INCOME, "linear"),
    "count": (Numeric("visits", 0, 50), "log"),
    "label": (INCOME.above(37_000), "linear"),
    "odds": (Binary("employed"), "logistic"),
    "two": (Categorical("region", ["north", "south"]), "linear"),
    "three": (Categorical("region", ["north", "south", "west"]), "linear"),
}


def model(kind: str) -> PublishedModel:
    target, link = TARGETS[kind]
    agreement = Agreement.propose(Schema(FEATURES, target), epsilon=1, delta=1e-6, quorum=100)
    rows = {"two": 2, "three": 3}.get(kind, 1)
    return PublishedModel(
        agreement=agreement,
        target=target.name,
        features=tuple(feature.name for feature in FEATURES),
        weights=np.array([WEIGHTS, WEIGHTS[::-1], [-0.3] * 6][:rows]),
        count=150,
        method="by hand",
        link=link,
    )


@pytest.mark.parametrize("kind", TARGETS)
def test_scikit_learn_predicts_the_same(kind: str) -> None:
    found = model(kind)
    predicted, expected = found.to_sklearn().predict(PEOPLE), found.predict(PEOPLE)
    if kind in ("number", "count"):
        np.testing.assert_allclose(predicted, expected)
    else:
        assert predicted.tolist() == expected.tolist()
        assert len(set(expected.tolist())) > 1


def test_probabilities_are_the_models_own_where_its_link_is_logistic() -> None:
    found = model("odds")
    np.testing.assert_allclose(
        found.to_sklearn().predict_proba(PEOPLE), found.predict_proba(PEOPLE)
    )


@pytest.mark.parametrize("kind", ["label", "two", "three"])
def test_other_probabilities_touch_the_curve_where_all_are_equally_likely(kind: str) -> None:
    found = model(kind)
    outputs = len(found.weights)
    weights = 0.01 * (found.weights if kind == "label" else found.weights - found.weights.mean(0))
    weights[:, 0] = 0.0 if kind == "label" else 1 / outputs  # which sum to one, as fitted ones do
    near = replace(found, weights=weights)
    told, expected = near.to_sklearn().predict_proba(PEOPLE), near.predict_proba(PEOPLE)
    assert np.abs(expected - 1 / max(outputs, 2)).max() > 1e-3
    np.testing.assert_allclose(told, expected, atol=1e-4)


def test_a_model_of_some_columns_needs_those_alone() -> None:
    found = replace(model("number"), features=("married", "age"), weights=np.array([[0.1, 0.2, 3]]))
    few = PEOPLE[["age", "married"]]
    np.testing.assert_allclose(found.to_sklearn().predict(few), found.predict(few))


@pytest.mark.parametrize("kind", TARGETS)
def test_onnx_predicts_the_same(kind: str) -> None:
    found = model(kind)
    session = onnxruntime.InferenceSession(found.to_onnx(), providers=["CPUExecutionProvider"])
    columns = {
        "age": PEOPLE[["age"]].to_numpy(np.float32),
        "married": PEOPLE[["married"]].to_numpy(np.float32),
        "sex": PEOPLE[["sex"]].to_numpy(object),
    }
    predicted = session.run(None, columns)[0]
    if kind in ("number", "count"):
        np.testing.assert_allclose(predicted[:, 0], found.predict(PEOPLE), rtol=1e-5)
    else:
        expected = found.predict(PEOPLE).tolist()
        words = [str(int(one)) if isinstance(one, bool) else one for one in expected]
        assert [str(one) for one in predicted.tolist()] in (words, [str(one) for one in expected])


def test_what_is_not_said_has_a_coefficient_of_its_own_everywhere() -> None:
    features = [replace(one, optional=True) for one in FEATURES]
    agreement = Agreement.propose(Schema(features, INCOME), epsilon=1, delta=1e-6, quorum=100)
    weights = np.array([[0.1, 0.4, -0.2, 0.3, 0.15, -0.1, 0.05, 0.2, -0.3]])
    names = tuple(one.name for one in features)
    found = PublishedModel(
        agreement, "income", names, weights, count=150, method="by hand", link="linear"
    )
    people = pd.DataFrame(
        {"age": [10.0, None, 120.0], "married": [0, 1, None], "sex": ["f", None, "x"]}
    )
    expected = found.predict(people)
    told = people.assign(sex=people["sex"].where(people["sex"].notna(), ""))
    np.testing.assert_allclose(found.to_sklearn().predict(told), expected)
    session = onnxruntime.InferenceSession(found.to_onnx(), providers=["CPUExecutionProvider"])
    columns = {name: told[[name]].to_numpy(np.float32) for name in ("age", "married")}
    predicted = session.run(None, columns | {"sex": told[["sex"]].to_numpy(object)})[0]
    np.testing.assert_allclose(predicted.ravel(), expected, rtol=1e-4)
