"""Coefficients of one release: shrunk for prediction, or penalised, and unbiased with errors.

Called by `PublishedMoments.fit` and its paths, which know what is published. *Prediction* wants the
weights of least expected error, so what the noise leaves uncertain is shrunk
(`blurfit.learning.shrinkage`), unless a penalty is asked for. *Inference* wants unbiased
coefficients with their standard errors (`blurfit.learning.inference`), or the reason why there are
none. Tested by `tests/model/test_fitting.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError, InvalidValueError, nonnegative, whole
from blurfit.learning.beliefs import first_belief
from blurfit.learning.inference import Inference, infer
from blurfit.learning.shrinkage import Reading, denoise, reading, shrink
from blurfit.learning.solver import minimise
from blurfit.learning.sums import JointSums, Submodel, crowded_bound
from blurfit.learning.waves import odds_of
from blurfit.model.tables import Asked
from blurfit.schema.columns import Categorical, is_unsaid
from blurfit.schema.formulas import Formula
from blurfit.schema.schema import Units, units

_METHODS: dict[Reading, str] = {
    "linear-bayes": "least squares; shrunk for prediction, by linear Bayes",
    "mean": "the mean alone: more cannot be told from the noise",
}


@dataclass(frozen=True, eq=False)
class CoefficientPath:
    """Coefficients in the user's units, (penalties, coefficients), over a grid of penalties."""

    names: tuple[str, ...]
    penalties: FloatArray
    coefficients: FloatArray


def fit_formula(
    moments: Asked,
    formula: Formula,
    *,
    ridge: float | None = None,
    lasso: float | None = None,
    uneven: bool = False,
) -> dict[str, Any]:
    """Return the fields of the model that a formula asks for; see `PublishedMoments.fit`."""
    schema, sums = moments.agreement.schema, moments.joint
    columns = schema.question(formula.target).columns
    scale = units(schema, formula.target, formula.features, references=formula.references)
    each = (spread_weights(sums, column, scale, ridge, lasso) for column in columns)
    weights, methods, curves = zip(*each, strict=True)
    inference: tuple[Inference, ...] = ()
    refusal = None
    try:
        inference = tuple(_inference(sums, column, scale, uneven=uneven) for column in columns)
    except InfeasibleError as error:
        refusal = str(error)
    return {
        "weights": np.array(weights),
        "curve": curves[0],
        "method": methods[0] + moments.weights_in_words,
        "inference": inference,
        "refusal": refusal,
        "hidden": tuple(name for name in scale.names if name in sums.hidden),
        "crowded": crowded_bound(sums, schema.question(formula.target)),
    }


def spread_weights(
    sums: JointSums,
    column: str,
    scale: Units,
    ridge: float | None = None,
    lasso: float | None = None,
) -> tuple[FloatArray, str, tuple[float, float] | None]:
    """Return weights of all columns for one column of the target, how they were found, and a
    label's curve.

    The release says nothing of an answer that hardly anybody gave, so its coefficient is 0: people
    who gave it are predicted as those who gave the reference level, or the middle.
    """
    seen = [name for name in scale.columns if name not in sums.hidden]
    weights, method, curve = _weights(sums.submodel(column, seen), ridge, lasso)
    return scale.spread(weights, sums.hidden), method, curve


def coefficient_path(
    moments: Asked,
    formula: Formula,
    penalty: Literal["ridge", "lasso"],
    *,
    penalties: Sequence[float] | None = None,
    points: int = 30,
) -> CoefficientPath:
    """Return coefficients over a grid of penalties, largest first: by default `points` of them,
    from where a lasso leaves every feature out down to a thousandth of that.
    """
    schema = moments.agreement.schema
    aim = schema.question(formula.target)
    if isinstance(aim, Categorical):
        raise InvalidValueError(
            "Expected a target with one column for a path, and {target!r} has "
            "{levels_count} classes.",
            target=formula.target,
            levels_count=len(aim.levels),
        )
    told = units(schema, formula.target, formula.features, references=formula.references)
    joint = moments.joint
    seen = [name for name in told.columns if name not in joint.hidden]
    sums = joint.submodel(formula.target, seen)
    if penalties is None:
        whole(points=points)
        largest = max(float(np.abs(_centred(sums)[1]).max()), 1e-12) * (1 + 1e-9)  # surely
        penalties = np.geomspace(largest, largest / 1000, points).tolist()
    found = (_weights(sums, **{penalty: value})[0] for value in penalties)
    rows = [told.apply(told.spread(one, joint.hidden)) for one in found]
    return CoefficientPath(told.names, np.asarray(penalties), np.array(rows))


def _weights(
    sums: Submodel, ridge: float | None = None, lasso: float | None = None
) -> tuple[FloatArray, str, tuple[float, float] | None]:
    """Return weights of (1, v), how they were found, and a label's curve, if its slopes are."""
    if not sums.features:
        mean = sums.cross / (sums.count * sums.constant * sums.target.weight)
        return mean, "the mean", None
    if ridge is None and lasso is None:
        found, read = shrink(sums), reading(sums)
        curved = sums.target.kind == "sign" and read != "mean"
        curve = odds_of(first_belief(sums, found, "label")) if curved else None
        return found.coefficients, _METHODS[read], curve
    nonnegative(ridge=ridge or 0.0, lasso=lasso or 0.0)
    covariance, cross, mean, middle = _centred(sums)
    slopes = minimise(covariance, cross, ridge=ridge or 0.0, l1=lasso or 0.0).weights
    words = [f"{name} {value:g}" for name, value in (("ridge", ridge), ("lasso", lasso)) if value]
    method = " and ".join(words) or "least squares"
    return np.concatenate([[middle - slopes @ mean], slopes]), method, None


def _centred(sums: Submodel) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Return the covariance of the columns v (denoised, so positive definite), with the target,
    their means and the target's.
    """
    features, weights = denoise(sums), sums.scale[1:]
    mean = features.mean / weights
    covariance = features.covariance / np.outer(weights, weights)
    cross = sums.cross[1:] / (sums.count * weights * sums.target.weight)
    middle = sums.cross[0] / (sums.count * sums.constant * sums.target.weight)
    return covariance, cross - mean * middle, mean, middle


def _inference(sums: JointSums, column: str, told: Units, *, uneven: bool) -> Inference:
    """Infer one column of the target, in the user's units.

    Where the noise drowns the columns of rare answers, errors are told for all other coefficients,
    as if the few had given the reference level or the middle: first without the answers that are
    hidden, then without all that say that nothing was said. The release alone decides that.
    """
    submodel = sums.submodel(column, told.names[1:])
    try:
        found = infer(submodel, uneven=uneven)
    except InfeasibleError:
        rare = [name for name in told.names if name in sums.hidden]
        rare = rare or [name for name in told.names if is_unsaid(name)]
        if not rare:
            raise
        return _inference(sums, column, told.without(rare), uneven=uneven)
    return found.in_units(told)
