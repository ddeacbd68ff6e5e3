"""scikit-learn must predict the same from the same raw records."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from blurfit import InfeasibleError
from blurfit.agreement.agreement import Agreement
from blurfit.model.model import PublishedModel, predicted, probabilities
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
    features = tuple(feature.name for feature in FEATURES)
    weights = np.array([WEIGHTS, WEIGHTS[::-1], [-0.3] * 6][:rows])
    return PublishedModel(agreement, target.name, features, weights, 150, "by hand", link=link)


@pytest.mark.parametrize("kind", TARGETS)
def test_scikit_learn_predicts_the_same(kind: str) -> None:
    found, other = model(kind), model(kind).to_sklearn()
    predicted, expected = other.predict(PEOPLE), found.predict(PEOPLE)
    if kind in ("number", "count"):
        np.testing.assert_allclose(predicted, expected)
    else:
        assert predicted.tolist() == expected.tolist()
        assert len(set(expected.tolist())) > 1
    if found.link == "logistic":
        np.testing.assert_allclose(other.predict_proba(PEOPLE), found.predict_proba(PEOPLE))


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
    line = found.to_sklearn().predict(few)
    assert line.max() > INCOME.upper, "the line itself goes beyond the bounds"
    np.testing.assert_allclose(np.clip(line, INCOME.lower, INCOME.upper), found.predict(few))


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


# ---- from a score to numbers, labels, classes, counts and probabilities
ASKED = [Numeric("age", 0, 100), Binary("married"), Categorical("sex", ["f", "m"])]
EARNED = Numeric("income", 0, 200_000)
PARTY = Categorical("party", ["red", "green", "blue"])
LABEL = EARNED.above(37_000)


def test_scores_become_numbers_labels_and_classes() -> None:
    np.testing.assert_allclose(predicted(EARNED, "linear", np.array([-1, 0, 1])), [0, 1e5, 2e5])
    counts = predicted(Numeric("visits", 0, 10), "log", np.array([0.0, 1.0, 1e6]))
    np.testing.assert_allclose(counts[:2], [1, np.e])
    assert np.isfinite(counts).all()
    with pytest.raises(InfeasibleError, match="Use predict"):
        probabilities(EARNED, "linear", np.zeros(1))
    score = np.array([-3.0, -0.5, 0.0, 0.5, 3.0])
    for link, likely in (
        ("linear", [0, 0.25, 0.5, 0.75, 1]),
        ("logistic", 1 / (1 + np.exp(-score))),
    ):
        told = probabilities(LABEL, link, score)
        np.testing.assert_allclose(told[:, 1], likely)
        np.testing.assert_allclose(told.sum(axis=1), 1)
        np.testing.assert_array_equal(predicted(LABEL, link, score), told[:, 1] > 0.5)
    score = np.array([[0.1, 0.7, 0.2], [-0.2, 0.4, 0.8], [-1.0, -1.0, -1.0]])
    assert predicted(PARTY, "linear", score).tolist()[:2] == ["green", "blue"]
    told = probabilities(PARTY, "linear", score)
    np.testing.assert_allclose(told, [[0.1, 0.7, 0.2], [0, 1 / 3, 2 / 3], [1 / 3] * 3], atol=1e-9)
