"""What the model's user has: a file that predicts, and says what it promises."""

import json

import numpy as np
import pytest

from blurfit import InfeasibleError, InvalidValueError
from blurfit.agreement.agreement import Agreement
from blurfit.data import software
from blurfit.errors import BlurfitError
from blurfit.model.model import PublishedModel
from blurfit.schema.schema import Binary, Categorical, Numeric, Schema

FEATURES = [Numeric("age", 0, 100), Binary("married"), Categorical("sex", ["f", "m"])]
NAMES = ("age", "married", "sex")
WEIGHTS = np.array([[0.25, 0.4, -0.2, 0.1, 0.3]])  # of the constant, and of each column


def model(*, weights=WEIGHTS, count=150) -> PublishedModel:
    schema = Schema(FEATURES, Numeric("income", 0, 200_000))
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=100)
    return PublishedModel(agreement, "income", NAMES, weights, count, "by hand")


def test_round_trip_is_exact(tmp_path) -> None:
    path = tmp_path / "model.json"
    original = model()
    original.save(path)
    again = PublishedModel.load(path)
    assert again.to_json() == original.to_json() == path.read_text(encoding="utf-8")
    np.testing.assert_array_equal(again.weights, original.weights)
    assert again.agreement == original.agreement


def test_classes_keep_their_weights_in_a_file() -> None:
    """The levels are in no alphabetical order, and a file's fields are."""
    party = Categorical("party", ["red", "green", "blue"])
    agreement = Agreement.propose(
        Schema([Numeric("age", 18, 80)], party), epsilon=1, delta=1e-6, quorum=100
    )
    weights = np.array([[0.5, 0.3], [0.3, -0.2], [0.2, -0.1]])
    model = PublishedModel(agreement, "party", ("age",), weights, 100, "by hand")
    again = PublishedModel.from_json(model.to_json())
    assert (again.weights == weights).all()
    assert again.coefficients_of("red") == model.coefficients_of("red")
    document = json.loads(model.to_json())
    document["weights"]["brown"] = document["weights"].pop("red")
    with pytest.raises(InvalidValueError, match="weights for each of"):
        PublishedModel.from_dict(document)


def test_an_edited_file_is_refused() -> None:
    document = json.loads(model().to_json())
    for path, value in [
        (("fingerprint",), "0" * 64),
        (("agreement", "calibration", "sigma"), 0.1),
        (("format",), "something"),
        (("version",), 7),
        (("count",), 0),
        (("weights",), {"age": 1.0}),
        (("weights",), {"income": [0.25, 0.4]}),
        (("waves",), [{"count": 150}]),
        (("target",), "height"),
        (("features",), ["height"]),
        (("link",), "logistic"),
    ]:
        edited = json.loads(json.dumps(document))
        inner = edited
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = value
        with pytest.raises(BlurfitError):
            PublishedModel.from_json(json.dumps(edited))


def test_weights_are_checked_and_read_only() -> None:
    with pytest.raises(InvalidValueError, match=r"finite numbers of shape \(1, 5\)"):
        model(weights=np.ones((1, 4)))
    with pytest.raises(InvalidValueError, match="finite"):
        model(weights=np.array([[1, 2, 3, 4, np.nan]]))
    with pytest.raises(ValueError, match="read-only"):
        model().weights[0, 0] = 1.0


def test_predicts_in_the_users_units() -> None:
    found = model()
    table = {"age": [20.0, 60.0], "married": [0, 1], "sex": ["m", "f"]}
    c = found.coefficients
    by_hand = [
        c.intercept + 20 * c.effects["age"] + c.effects["sex=m"],
        c.intercept + 60 * c.effects["age"] + c.effects["married"],  # "f" is the reference
    ]
    np.testing.assert_allclose(found.predict(table), by_hand)
    scores = [0.25 + 0.4 * (-0.6) + 0.2 + 0.3, 0.25 + 0.4 * 0.2 - 0.2 + 0.1]
    np.testing.assert_allclose(found.decision_function(table), scores)
    np.testing.assert_allclose(by_hand, 100_000 * (np.array(scores) + 1))
    with pytest.raises(InfeasibleError, match="Use predict"):
        found.predict_proba(table)


def test_odd_files_are_refused() -> None:
    document = json.loads(model().to_json())
    for field, value in [
        ("fingerprint", None),
        ("inference", [1]),
        ("inference", [{"covariance": [[1]], "sampling": [[1]], "bias": [1]}]),
        ("weights", {"income": "x"}),
        ("references", 3),
        ("agreement", None),
    ]:
        with pytest.raises(BlurfitError):
            PublishedModel.from_json(json.dumps({**document, field: value}))


def test_guarantee_is_the_agreements() -> None:
    promise = model().guarantee
    assert (promise.epsilon, promise.delta, promise.releases) == (1, 1e-6, "any")
    assert promise.private
    assert model().software == software()
