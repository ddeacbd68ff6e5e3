"""Other tools must predict the same from the same raw records."""

import numpy as np
import onnxruntime
import pandas as pd
import pytest

from blurfit.agreement.agreement import Agreement
from blurfit.model.published import PublishedModel, software
from blurfit.schema.schema import Binary, Categorical, Numeric, Schema

PEOPLE = pd.DataFrame(
    {"sex": ["f", "m", "x"], "age": [10.0, 50.0, 120.0], "married": [0, 1, 1]}  # 120 is clipped
)


def model(*, label: bool, intercept: bool) -> PublishedModel:
    target = Numeric("income", -10_000, 200_000)
    schema = Schema(
        features=[Numeric("age", 0, 100), Binary("married"), Categorical("sex", ["f", "m", "x"])],
        target=target.above(37_000) if label else target,
        intercept=intercept,
    )
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=100)
    weights = np.array([0.4, -0.7, 0.1, -0.3, 0.25, 0.1])[: schema.dimension]
    return PublishedModel(agreement, weights, 150, 2.5, None, software())


@pytest.mark.parametrize("intercept", [True, False])
def test_scikit_learn_predicts_the_same(intercept: bool) -> None:
    found = model(label=False, intercept=intercept)
    np.testing.assert_allclose(found.to_sklearn().predict(PEOPLE), found.predict(PEOPLE))
    labels = model(label=True, intercept=intercept)
    pipeline = labels.to_sklearn()
    np.testing.assert_array_equal(pipeline.predict(PEOPLE), labels.predict(PEOPLE))
    told, expected = pipeline.predict_proba(PEOPLE), labels.predict_proba(PEOPLE)
    assert np.abs(told - expected).max() < 0.01  # near ½, where the curves touch


def test_onnx_predicts_the_same() -> None:
    found = model(label=False, intercept=True)
    session = onnxruntime.InferenceSession(found.to_onnx(), providers=["CPUExecutionProvider"])
    columns = {
        "age": PEOPLE[["age"]].to_numpy(np.float32),
        "married": PEOPLE[["married"]].to_numpy(np.float32),
        "sex": PEOPLE[["sex"]].to_numpy(object),
    }
    (predicted,) = session.run(None, columns)
    np.testing.assert_allclose(predicted[:, 0], found.predict(PEOPLE), rtol=1e-5)
