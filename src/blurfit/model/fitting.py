"""From a release to a model: shrunk weights for prediction, unbiased ones for honest errors.

Two readings of the same sums. For *prediction* one wants the weights of least expected error, so
what the noise leaves uncertain is shrunk (`blurfit.learning.shrinkage`), unless a penalty is asked
for. For *inference* one wants unbiased coefficients with their standard errors
(`learning.inference`), or the reason why there are none. Levels of a categorical are all shrunk
alike, and told as contrasts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from blurfit.agreement.radius import push_of_liars
from blurfit.arrays import FloatArray
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.learning.denoise import denoise
from blurfit.learning.inference import Inference, Pull, infer
from blurfit.learning.shrinkage import Reading, reading, shrink
from blurfit.learning.solver import ElasticNet, minimise
from blurfit.learning.sums import JointSums, Submodel
from blurfit.model.formula import Formula
from blurfit.model.published import PublishedModel
from blurfit.schema.columns import is_unsaid
from blurfit.schema.schema import Categorical
from blurfit.schema.vectors import Units, units
from blurfit.validate import nonnegative, whole

if TYPE_CHECKING:
    from blurfit.model.moments import PublishedMoments


_METHODS: dict[Reading, str] = {
    "linear-bayes": "shrunk by linear Bayes",
    "posterior-mean": "shrunk to the posterior mean",
}


@dataclass(frozen=True, eq=False)
class Path:
    """Coefficients in the user's units, (penalties, coefficients), over a grid of penalties."""

    names: tuple[str, ...]
    penalties: FloatArray
    coefficients: FloatArray


def fit(
    moments: "PublishedMoments",
    formula: Formula,
    *,
    ridge: float | None = None,
    lasso: float | None = None,
    uneven: bool = False,
) -> PublishedModel:
    """The model that a formula asks for; see `PublishedMoments.fit`.

    Where the noise drowns the columns for not saying, because hardly anybody was silent, errors are
    told for all other coefficients, as if the few had said the reference level or the middle. That
    is decided by the release alone.
    """
    schema, sums = moments.agreement.schema, moments.joint
    aim, features = schema.question(formula.target), schema.columns_of(formula.features)
    told = units(schema, formula.target, formula.features, references=formula.references)
    found = [_weights(sums.submodel(one, features), ridge, lasso) for one in aim.columns]
    told_of, reason = [], None
    try:
        told_of = [_inference(sums, column, told, uneven=uneven) for column in aim.columns]
    except InfeasibleError as error:
        reason = str(error)
    return PublishedModel(
        agreement=moments.agreement,
        target=formula.target,
        features=formula.features,
        weights=np.array([weights for weights, _ in found]),
        count=moments.count,
        method=found[0][1],
        inference=tuple(inference for inference, _ in told_of),
        refusal=reason,
        liars=()
        if moments.held  # nobody contributed
        else tuple(moved(moments, inference.names, pull) for inference, pull in told_of),
        references=formula.references,
        software=moments.software,
        caveats=moments.caveats,
        held=moments.held,
    )


def path(
    moments: "PublishedMoments",
    formula: Formula,
    penalty: Literal["ridge", "lasso"],
    *,
    penalties: Sequence[float] | None = None,
    points: int = 30,
) -> Path:
    """Coefficients over a grid of penalties, largest first: by default `points` of them, from where
    a lasso leaves every feature out down to a thousandth of that.
    """
    schema = moments.agreement.schema
    aim = schema.question(formula.target)
    if isinstance(aim, Categorical):
        raise InvalidValueError(
            f"Expected a target with one column for a path, and {formula.target!r} has "
            f"{len(aim.levels)} classes."
        )
    sums = moments.joint.submodel(formula.target, schema.columns_of(formula.features))
    if penalties is None:
        whole(points=points)
        largest = max(float(np.abs(_centred(sums)[1]).max()), 1e-12) * (1 + 1e-9)  # surely
        penalties = np.geomspace(largest, largest / 1000, points).tolist()
    told = units(schema, formula.target, formula.features, references=formula.references)
    rows = [told.apply(_weights(sums, **{penalty: value})[0]) for value in penalties]
    return Path(told.names, np.asarray(penalties), np.array(rows))


def _weights(
    sums: Submodel, ridge: float | None = None, lasso: float | None = None
) -> tuple[FloatArray, str]:
    """Weights of (1, v), and how they were found."""
    if ridge is None and lasso is None:
        return shrink(sums).coefficients, _METHODS[reading(sums)]
    nonnegative(ridge=ridge or 0.0, lasso=lasso or 0.0)
    covariance, cross, mean, middle = _centred(sums)
    penalty = ElasticNet(lasso, 0.0) if lasso else None
    slopes = minimise(covariance, cross, ridge=ridge or 0.0, regulariser=penalty).weights
    words = [f"{name} {value:g}" for name, value in (("ridge", ridge), ("lasso", lasso)) if value]
    method = " and ".join(words) or "least squares"
    return np.concatenate([[middle - slopes @ mean], slopes]), method


def _centred(sums: Submodel) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Covariance of the columns v (denoised, so positive definite), with the target, their means
    and the target's.
    """
    features, weights = denoise(sums), sums.scale[1:]
    mean = features.mean / weights
    covariance = features.covariance / np.outer(weights, weights)
    cross = sums.cross[1:] / (sums.count * weights * sums.target.weight)
    middle = sums.cross[0] / (sums.count * sums.constant * sums.target.weight)
    return covariance, cross - mean * middle, mean, middle


def moved(
    moments: "PublishedMoments", names: Sequence[str], pull: Pull, earlier: FloatArray | float = 0.0
) -> dict[str, float | None]:
    """By how much 1 % of a release's contributors could have moved each coefficient by lying
    together, beside what earlier waves' could; None where there is no bound.
    """
    found = pull.moved(push_of_liars(moments.agreement, moments.count)) + earlier
    return {
        name: one if math.isfinite(one) else None
        for name, one in zip(names, found.tolist(), strict=True)
    }


def _inference(
    sums: JointSums, column: str, told: Units, *, uneven: bool
) -> tuple[Inference, Pull]:
    """Of one column of the target, in the user's units, with how it follows a push of the sums; an
    InfeasibleError says why not.
    """
    submodel = sums.submodel(column, told.names[1:])
    try:
        found = infer(submodel, uneven=uneven)
    except InfeasibleError:
        # hardly anybody was silent: what that adds stays unknown, and all else need not
        if not (silence := [name for name in told.names if is_unsaid(name)]):
            raise
        return _inference(sums, column, told.without(silence), uneven=uneven)
    return in_units(found, told), Pull.of_line(submodel).through(told.matrix[:, told.places])


def in_units(found: Inference, told: Units, places: Sequence[int] | None = None) -> Inference:
    """An inference in the user's units: an affine map, which covariances follow.

    `places` says which of (1, v) it is about, if not those that the units tell of.
    """
    matrix = told.matrix[:, told.places if places is None else places]
    variance = found.residual_variance
    return Inference(
        names=told.names,
        count=found.count,
        coefficients=matrix @ found.coefficients + told.offset,
        sampling=matrix @ found.sampling @ matrix.T,
        privacy=matrix @ found.privacy @ matrix.T,
        residual_variance=None if variance is None else variance / told.scale**2,
        r_squared=found.r_squared,
        condition=found.condition,
        uneven=found.uneven,
    )
