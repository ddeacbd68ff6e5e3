"""The published model for other tools: a scikit-learn pipeline, and ONNX.

Both take raw records in the model's columns and do what
`PublishedModel.predict` does, public bounds and clipping included. What leaves here is the same
weights: exporting is post-processing.

An answer that was left unsaid is NaN for a number or a yes/no, and the empty word for a choice.
"""

from typing import Any

import numpy as np

from blurfit.errors import InfeasibleError, optional
from blurfit.model.model import PublishedModel
from blurfit.schema.schema import Categorical, Numeric

_FAR = 1e38  # stands for what was not said, beyond any answer of ONNX's short numbers


def to_sklearn(model: PublishedModel) -> Any:
    """Return a fitted pipeline: columns to [−1, 1] by their public bounds, then a linear model.

    It takes a pandas DataFrame with the model's columns, and predicts what the model does: a number
    in its own units, a label as False or True, a class by its word. Probabilities are the model's
    own for a label whose link is logistic. For others they follow the logistic curve (for classes,
    the softmax) whose slope is that of `predict_proba` where all are equally likely; elsewhere they
    are only as good as that curve.
    """
    from sklearn.compose import ColumnTransformer  # type: ignore[import-untyped]
    from sklearn.pipeline import Pipeline  # type: ignore[import-untyped]

    features = _features(model)
    columns = ColumnTransformer(
        [part for feature in features for part in _scalers(feature)],
        verbose_feature_names_out=False,
    )
    pipeline = Pipeline([("columns", columns), ("model", _linear(model))])
    # Fitted to the public bounds, never to data: the corners of the schema's own box.
    columns.fit(_corners(features))
    return pipeline


def to_onnx(model: PublishedModel) -> bytes:
    """Return the pipeline of `to_sklearn` as an ONNX graph, by skl2onnx (`pip install
    blurfit[onnx]`).
    """
    kinds = optional("skl2onnx.common.data_types")
    word, number = kinds.StringTensorType([None, 1]), kinds.FloatTensorType([None, 1])
    inputs = [
        (feature.name, word if isinstance(feature, Categorical) else number)
        for feature in _features(model)
    ]
    found = optional("skl2onnx").to_onnx(to_sklearn(model), initial_types=inputs)
    graph: bytes = found.SerializeToString()
    return graph


def _features(model: PublishedModel) -> list[Any]:
    features: list[Any] = [model.agreement.schema.question(name) for name in model.features]
    if derived := [one.name for one in features if one.of]:
        raise InfeasibleError(
            f"Expected features that are asked, and {', '.join(derived)} is computed from answers, "
            "which these formats do not do. Predict with blurfit itself, or in R."
        )
    return features


def _scalers(feature: Any) -> list[tuple[str, Any, list[str]]]:
    """Return what makes the columns of one question, in their order."""
    from sklearn.impute import SimpleImputer  # type: ignore[import-untyped]
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Binarizer, MinMaxScaler, OneHotEncoder  # type: ignore[import-untyped]

    name = feature.name
    if isinstance(feature, Categorical):
        levels = _levels(feature)
        return [(name, OneHotEncoder(categories=[levels], sparse_output=False), [name])]
    scaler = MinMaxScaler(feature_range=(-1, 1), clip=True)
    if not feature.optional:
        return [(name, scaler, [name])]
    middle = feature.centre if isinstance(feature, Numeric) else 0.5
    said = SimpleImputer(strategy="constant", fill_value=middle)
    unsaid = SimpleImputer(strategy="constant", fill_value=_FAR)
    return [
        (name, make_pipeline(said, scaler), [name]),
        (f"{name} not said", make_pipeline(unsaid, Binarizer(threshold=_FAR / 2)), [name]),
    ]


def _levels(feature: Categorical) -> list[str]:
    return [*feature.levels, *([""] if feature.optional else [])]


def _corners(features: Any) -> Any:
    width = max(2, *(len(_levels(f)) for f in features if isinstance(f, Categorical)), 2)
    corners: dict[str, list[Any]] = {}
    values: list[Any]
    for feature in features:
        if isinstance(feature, Categorical):
            values = _levels(feature)
        elif isinstance(feature, Numeric):
            values = [float(feature.lower), float(feature.upper)]
        else:
            values = [0.0, 1.0]
        corners[feature.name] = (values * width)[:width]
    return optional("pandas").DataFrame(corners)


def _linear(model: PublishedModel) -> Any:
    """Return the weights on columns in [−1, 1]; of a label or a class, for log-odds."""
    from sklearn.linear_model import LinearRegression, PoissonRegressor  # type: ignore[import-untyped]

    constants, slopes = model.weights[:, 0], model.weights[:, 1:]
    aim = model.aim
    if isinstance(aim, Categorical):
        # Softmax has slope 1/K where all are equally likely; there K logistic curves, whose sum is
        # 1, have (K − 1)/K².
        count = float(len(aim.levels))
        steepness = (count - 1) / count if model.link == "logistic" else count
        if count == 2:  # for which scikit-learn has one row, of their difference
            constants, slopes = np.diff(constants), np.diff(slopes, axis=0)
        return _curve(np.array(aim.levels, dtype=object), steepness * slopes, steepness * constants)
    if model.is_label:
        steepness = 1.0 if model.link == "logistic" else 2.0  # the logistic curve's slope is ¼ at ½
        return _curve(np.array([False, True]), steepness * slopes, steepness * constants)
    if model.link == "log":
        found = PoissonRegressor()
        found.coef_, found.intercept_ = slopes[0], float(constants[0])
        found._base_loss = found._get_loss()
    else:
        assert isinstance(aim, Numeric)
        slope, constant = aim.affine
        found = LinearRegression()
        found.coef_, found.intercept_ = slopes[0] / slope, float(constants[0] - constant) / slope
    found.n_features_in_ = slopes.shape[1]
    return found


def _curve(classes: Any, slopes: Any, constants: Any) -> Any:
    from sklearn.linear_model import LogisticRegression

    found = LogisticRegression()
    found.classes_, found.coef_, found.intercept_ = classes, slopes, constants
    found.n_features_in_ = slopes.shape[1]
    return found
