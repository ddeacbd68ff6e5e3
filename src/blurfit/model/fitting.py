"""From a release to a model: shrunk weights for prediction, unbiased ones for errors.

**Two readings of the same sums.** For *prediction* one wants the weights of least expected error,
so what the noise leaves uncertain is shrunk (`blurfit.learning.shrinkage`), unless a penalty is
asked for. For *inference* one wants unbiased coefficients with their standard errors
(`learning.inference`), or the reason why there are none. Levels of a categorical are all shrunk
alike, and told as contrasts.

**Exact logistic and Poisson models, where rows of the features are public.** Σyx is part of the
joint release, and all that a canonical generalised linear model needs of the contributors: public
rows stand for their features (`blurfit.learning.public_features`). Nothing is released that was not
before: this is post-processing, as long as the public rows really are public, and not the
contributors' own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from blurfit.agreement.numbers import push_of_liars
from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError, InvalidValueError, nonnegative, whole
from blurfit.learning.denoise import denoise
from blurfit.learning.inference import Inference, Pull, infer
from blurfit.learning.public_features import Balance, Family, PublicFit, fit_with_public_rows
from blurfit.learning.shrinkage import Reading, reading, shrink
from blurfit.learning.solver import ElasticNet, minimise
from blurfit.learning.sums import JointSums, Submodel
from blurfit.model.model import Link, PublishedModel
from blurfit.schema.columns import Numeric, Question, is_unsaid
from blurfit.schema.formulas import Formula
from blurfit.schema.schema import Categorical, values
from blurfit.schema.table import listed
from blurfit.schema.vectors import Units, units

if TYPE_CHECKING:
    from blurfit.model.moments import PublishedMoments


_METHODS: dict[Reading, str] = {
    "linear-bayes": "least squares; shrunk for prediction, by linear Bayes",
    "posterior-mean": "least squares; shrunk for prediction, to the posterior mean",
    "mean": "the mean alone: more cannot be told from the noise",
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
    aim = schema.question(formula.target)
    told = units(schema, formula.target, formula.features, references=formula.references)
    found = [_weights(sums.submodel(one, told.columns), ridge, lasso) for one in aim.columns]
    told_of, reason = [], None
    try:
        told_of = [_inference(sums, column, told, uneven=uneven) for column in aim.columns]
    except InfeasibleError as error:
        reason = str(error)
    return PublishedModel(
        agreement=moments.agreement,
        target=formula.target,
        features=formula.features,
        weights=np.array([told.spread(weights) for weights, _ in found]),
        count=moments.count,
        method=found[0][1] + moments.weights_in_words,
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
    told = units(schema, formula.target, formula.features, references=formula.references)
    sums = moments.joint.submodel(formula.target, told.columns)
    if penalties is None:
        whole(points=points)
        largest = max(float(np.abs(_centred(sums)[1]).max()), 1e-12) * (1 + 1e-9)  # surely
        penalties = np.geomspace(largest, largest / 1000, points).tolist()
    rows = [told.apply(told.spread(_weights(sums, **{penalty: value})[0])) for value in penalties]
    return Path(told.names, np.asarray(penalties), np.array(rows))


def _weights(
    sums: Submodel, ridge: float | None = None, lasso: float | None = None
) -> tuple[FloatArray, str]:
    """Weights of (1, v), and how they were found."""
    if not sums.features:
        mean = sums.cross / (sums.count * sums.constant * sums.target.weight)
        return mean, "the mean"
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
    found = pull.moved(push_of_liars(moments.agreement, moments.count) / moments.worth) + earlier
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
    variance, classical = found.residual_variance, found.classical
    return replace(
        found,
        names=told.names,
        coefficients=matrix @ found.coefficients + told.offset,
        sampling=matrix @ found.sampling @ matrix.T,
        privacy=matrix @ found.privacy @ matrix.T,
        classical=None if classical is None else matrix @ classical @ matrix.T,
        residual_variance=None if variance is None else variance / told.scale**2,
    )


LINK: dict[Family, Link] = {"logistic": "logistic", "poisson": "log", "linear": "linear"}
_STILL = "Predictions by shrinkage are still possible."
NOT_FOUND = (
    "the blurred sums lie outside what any model gives, or leave a direction without curvature, "
    f"so there is no unshrunk estimate. Use fewer features, or more records. {_STILL}"
)
_SEEN = 3.0  # deviations of noise, from which on contributors are taken to have a level


def fit_public(
    moments: "PublishedMoments",
    public: Any,
    formula: Formula | None = None,
    *,
    family: Family | None = None,
) -> tuple[PublishedModel, Balance]:
    """The model, and how the public rows were weighted to look like the contributors.

    Args:
        moments: the release.
        public: rows of the features, as `Schema` takes records; other columns are ignored.
        formula: what predicts what; the agreed target by all others, if left out.
        family: "logistic" for yes and no and for classes, each told from all others; "poisson" for
            counts from 0, "linear" for numbers; by the target's kind, if left out.

    Raises:
        InfeasibleError: no weights make the public rows match the contributors.
    """
    asked = moments.formula() if formula is None else formula
    schema = moments.agreement.schema
    aim = schema.question(asked.target)
    chosen = _family(aim, family)
    rows = np.atleast_2d(values(schema, public, asked.features))
    top = aim.upper if chosen == "poisson" and isinstance(aim, Numeric) else None
    curved = chosen != "linear"
    told = units(schema, asked.target, asked.features, references=asked.references, log_odds=curved)
    features, every = list(told.columns), told
    rows = rows[:, np.array(told.fitted[1:], dtype=np.intp) - 1]
    joint, match = moments.beside(features, rows), moments.agreement.sends == "everything"
    absent, reason = _untold(joint, aim, features, told.names, rows)
    told = told.without(absent)
    if not match and asked.target != schema.target.name:
        raise InfeasibleError(
            f"Expected {schema.target.name!r} as the target, and got {asked.target!r}: only "
            "products with the agreed target were sent."
        )
    found, inference = [], []
    for column in aim.columns:
        whole = fit_with_public_rows(
            joint.submodel(column, features), rows, chosen, match=match, top=top
        )
        apart = whole
        if reason is None and len(told.names) - 1 < len(features):  # no references in contrasts
            part = joint.submodel(column, told.names[1:])
            kept = [features.index(name) for name in told.names[1:]]
            apart = fit_with_public_rows(part, rows[:, kept], chosen, match=match, top=top)
        found.append(whole)
        if reason is None and (one := _public_inference(apart, told, moments.count)) is not None:
            inference.append(one)
    balance = found[0].balance  # of the features alone, so that of every class
    complete = len(inference) == len(found)
    model = PublishedModel(
        agreement=moments.agreement,
        target=asked.target,
        features=asked.features,
        weights=np.array([every.spread(one.coefficients) for one in found]),
        count=moments.count,
        method=f"{chosen} regression with {len(rows):,} public rows, {balance.in_words}",
        link=LINK[chosen],
        inference=tuple(inference) if complete else (),
        liars=tuple(moved(moments, one.names, _pull(one, moments)) for one in inference)
        if complete and not moments.held
        else (),
        refusal=None if complete else reason or NOT_FOUND,
        references=asked.references,
        software=moments.software,
        caveats=moments.caveats,
        held=moments.held,
        public_rows=len(rows),
    )
    return model, balance


def _family(aim: Question, family: Family | None) -> Family:
    is_number = isinstance(aim, Numeric)
    if family is None:
        return "linear" if is_number else "logistic"
    if family == "poisson" and (not isinstance(aim, Numeric) or aim.lower != 0):
        raise InvalidValueError(
            f"Expected {aim.name!r} to be a count, with lower bound 0, for family='poisson'."
        )
    if family == "linear" and not is_number:
        raise InvalidValueError(
            f"Expected {aim.name!r} to be a number for family='linear'; it is yes or no, or "
            "one of several classes: use family='logistic'."
        )
    return family


def _untold(
    joint: JointSums, aim: Question, features: list[str], told: Sequence[str], rows: FloatArray
) -> tuple[list[str], str | None]:
    """Levels that no public row has, and why nothing can be said of the rest either, if so.

    What an absent level adds stays unknown. All else need not, as long as hardly any contributor
    has it: they are taken for people of the reference level. So nothing is said where their share,
    or the sum of their targets, is `_SEEN` deviations of its noise from 0. Where only products with
    the target were sent, the latter alone is known of them, and the rest is assumed, as it is of
    all features. What a column adds that is the same in all rows cannot be told from the intercept,
    and levels are compared with a reference, which some rows must have.
    """
    places = {column.name: place for place, column in enumerate(joint.columns, start=1)}
    levels = [joint.columns[places[name] - 1].kind == "level" for name in features]
    spreads, seen = np.ptp(rows, axis=0), np.abs(rows).max(axis=0)
    columns = list(zip(features, levels, spreads, seen, strict=True))
    absent = [name for name, is_level, _, some in columns if is_level and not some]
    if same := [name for name, is_level, spread, _ in columns if not is_level and not spread]:
        return absent, (
            f"all public rows have the same {listed(same)}, which cannot be told from the "
            f"intercept. Leave it out, or use other rows. {_STILL}"
        )
    if missing := [name for name in absent if name not in told]:
        return absent, (
            f"no public row has {listed(missing)}, with which other levels are compared. Compare "
            f"with one that some rows have, as C(region, 'south') does, or use other rows. {_STILL}"
        )
    others = [0, *(places[name] for name in aim.columns)]
    deviations = np.sqrt(joint.noise.variance)
    here = [
        name
        for name in absent
        if (np.abs(joint.matrix[places[name]]) > _SEEN * deviations[places[name]])[others].any()
    ]
    if here:
        return absent, (
            f"contributors have {listed(here)}, which no public row has: they would be taken for "
            "people of the level that others are compared with. Use other rows, or leave the "
            f"column out. {_STILL}"
        )
    return absent, None


def _public_inference(found: PublicFit, told: Units, count: int) -> Inference | None:
    """Unshrunk coefficients with the parts of their covariance, in the user's units."""
    if found.unshrunk is None or found.sampling is None or found.privacy is None:
        return None
    plain = Inference(
        names=told.names,
        count=count,
        coefficients=found.unshrunk,
        sampling=_symmetric(found.sampling),
        privacy=_symmetric(found.privacy),
        residual_variance=found.residual_variance,
        r_squared=None,
        condition=0.0,
        uneven=False,
    )
    return in_units(plain, told)


def _pull(found: Inference, moments: "PublishedMoments") -> Pull:
    """How coefficients follow a push of the sums, to first order: noise of deviation s in every
    direction has the covariance s²K.
    """
    return Pull(found.privacy / moments.deviation**2)


def _symmetric(matrix: FloatArray) -> FloatArray:
    return (matrix + matrix.T) / 2
