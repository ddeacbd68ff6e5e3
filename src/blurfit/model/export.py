"""The published model for other tools: a scikit-learn pipeline, and ONNX.

Both take raw records in the schema's columns and do what `PublishedModel.predict` does, public
bounds and clipping included. What leaves here is the same weights: exporting is post-processing.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.compose import ColumnTransformer  # type: ignore[import-untyped]
from sklearn.linear_model import LinearRegression, LogisticRegression  # type: ignore[import-untyped]
from sklearn.pipeline import Pipeline  # type: ignore[import-untyped]
from sklearn.preprocessing import (  # type: ignore[import-untyped]
    MinMaxScaler,
    OneHotEncoder,
)

from blurfit.errors import BlurfitError
from blurfit.schema.schema import Categorical, Numeric
from blurfit.theory.losses import LogisticLoss

if TYPE_CHECKING:
    from blurfit.model.published import PublishedModel  # which imports this module when asked to


def to_sklearn(model: "PublishedModel") -> Pipeline:
    """A fitted pipeline: columns to [−1, 1] by their public bounds, then a linear model.

    It takes a pandas DataFrame with the schema's columns. A number is predicted in its own units.
    For a label the probabilities follow the logistic curve whose slope at ½ is that of
    `predict_proba`; away from ½ they are only as good as that curve.
    """
    features = model.agreement.schema.features
    columns = ColumnTransformer(
        [(feature.name, _scaler(feature), [feature.name]) for feature in features],
        verbose_feature_names_out=False,
    )
    pipeline = Pipeline([("columns", columns), ("model", _linear(model))])
    # Fitted to the public bounds, never to data: the corners of the schema's own box.
    columns.fit(_corners(features))
    return pipeline


def to_onnx(model: "PublishedModel") -> bytes:
    """The pipeline of `to_sklearn` as an ONNX graph, by skl2onnx (`pip install blurfit[onnx]`)."""
    try:
        from skl2onnx import to_onnx as convert  # type: ignore[import-untyped]
        from skl2onnx.common.data_types import (  # type: ignore[import-untyped]
            FloatTensorType,
            StringTensorType,
        )
    except ImportError as error:
        raise BlurfitError("ONNX needs skl2onnx: pip install 'blurfit[onnx]'.") from error
    inputs = [
        (
            feature.name,
            StringTensorType([None, 1])
            if isinstance(feature, Categorical)
            else FloatTensorType([None, 1]),
        )
        for feature in model.agreement.schema.features
    ]
    graph: bytes = convert(to_sklearn(model), initial_types=inputs).SerializeToString()
    return graph


def _scaler(feature: Any) -> Any:
    if isinstance(feature, Categorical):
        return OneHotEncoder(categories=[list(feature.levels)], sparse_output=False)
    return MinMaxScaler(feature_range=(-1, 1), clip=True)


def _corners(features: Any) -> Any:
    try:
        import pandas as pd  # type: ignore[import-untyped]
    except ImportError as error:
        raise BlurfitError(
            "A pipeline of named columns needs pandas: pip install pandas."
        ) from error
    width = max(2, *(len(f.levels) for f in features if isinstance(f, Categorical)), 2)
    corners: dict[str, list[Any]] = {}
    values: list[Any]
    for feature in features:
        if isinstance(feature, Categorical):
            values = list(feature.levels)
        elif isinstance(feature, Numeric):
            values = [float(feature.lower), float(feature.upper)]
        else:
            values = [0.0, 1.0]
        corners[feature.name] = (values * width)[:width]
    return pd.DataFrame(corners)


def _linear(model: "PublishedModel") -> LinearRegression | LogisticRegression:
    """The weights on columns in [−1, 1]: divided by √m, which the schema divides its columns by."""
    schema, loss = model.agreement.schema, model.agreement.loss
    scale = 1 / np.sqrt(len(schema.features) + schema.intercept)
    weights = model.weights * scale
    slopes = weights[:-1] if schema.intercept else weights
    constant = float(weights[-1]) if schema.intercept else 0.0
    if isinstance(loss, LogisticLoss):
        steepness = 4 * loss.parabola.curvature  # the logistic curve's slope at ½ is a quarter
        found = LogisticRegression()
        found.classes_ = np.array([False, True])
        found.coef_ = steepness * slopes[None, :]
        found.intercept_ = np.array([steepness * constant])
    else:
        target = schema.target
        assert isinstance(target, Numeric)  # what the squared loss is for
        half = target.width / 2
        found = LinearRegression()
        found.coef_ = half * slopes
        found.intercept_ = half * (constant + 1) + target.lower
    found.n_features_in_ = len(slopes)
    return found
