"""Exact logistic and Poisson models from a release, where rows of the features are public.

Σyx is part of the joint release, and all that a canonical generalised linear model needs of the
contributors: public rows stand for their features (`blurfit.learning.public_features`). Nothing is
released that was not before: this is post-processing, as long as the public rows really are public,
and not the contributors' own.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.learning.balancing import Balance
from blurfit.learning.inference import Inference
from blurfit.learning.joint_sums import JointSums
from blurfit.learning.public_features import Family, PublicFit, fit_with_public_rows
from blurfit.model.fitting import in_units, told_apart
from blurfit.model.formula import Formula
from blurfit.model.prediction import Link
from blurfit.model.published import PublishedModel
from blurfit.schema.schema import Categorical, Numeric
from blurfit.schema.table import listed
from blurfit.schema.vectors import Question, columns_of, question, units, values

if TYPE_CHECKING:
    from blurfit.model.moments import PublishedMoments

LINK: dict[Family, Link] = {"logistic": "logistic", "poisson": "log", "linear": "linear"}
NOT_FOUND = (
    "the blurred sums lie outside what any model gives, or leave a direction without curvature, "
    "so there is no unshrunk estimate. Use fewer features, or more records. Predictions by "
    "shrinkage are still possible."
)


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
    asked = moments.formula(None, None, None) if formula is None else formula
    schema = moments.agreement.schema
    aim = question(schema, asked.target)
    chosen = _family(aim, family)
    rows = np.atleast_2d(values(schema, public, asked.features))
    top = aim.upper if chosen == "poisson" and isinstance(aim, Numeric) else None
    features = [column for name in asked.features for column in columns_of(question(schema, name))]
    joint, match = moments.beside(features, rows), moments.agreement.sends == "everything"
    absent, reason = _without_spread(joint, features, rows)
    kept = [place for place in told_apart(schema, asked) if features[place] not in absent]
    if not match and asked.target != schema.target.name:
        raise InfeasibleError(
            f"Expected {schema.target.name!r} as the target, and got {asked.target!r}: only "
            "products with the agreed target were sent."
        )
    found, inference = [], []
    for column, level in zip(columns_of(aim), _levels(aim), strict=True):
        whole = fit_with_public_rows(
            joint.submodel(column, features), rows, chosen, match=match, top=top
        )
        apart = whole
        if len(kept) < len(features):  # contrasts need a model without the reference levels
            part = joint.submodel(column, [features[place] for place in kept])
            apart = fit_with_public_rows(part, rows[:, kept], chosen, match=match, top=top)
        found.append(whole)
        told = None if reason else _inference(moments, asked, chosen, apart, kept, level, absent)
        inference += [] if told is None else [told]
    balance = found[0].balance  # of the features alone, so that of every class
    complete = len(inference) == len(found)
    model = PublishedModel(
        agreement=moments.agreement,
        target=asked.target,
        features=asked.features,
        weights=np.array([one.coefficients for one in found]),
        count=moments.count,
        method=f"{chosen} regression with {len(rows):,} public rows, {balance.in_words}",
        link=LINK[chosen],
        inference=tuple(inference) if complete else (),
        refusal=None if complete else reason or NOT_FOUND,
        references=asked.references,
        software=moments.software,
        caveat=moments.caveat,
    )
    return model, balance


def _family(aim: Question, family: Family | None) -> Family:
    is_number = isinstance(aim, Numeric)
    if family is None:
        return "linear" if is_number else "logistic"
    if family == "poisson" and (not isinstance(aim, Numeric) or aim.lower != 0):
        raise InvalidValueError(
            f"Expected {aim.name!r} to be a number with lower bound 0 for family='poisson': counts."
        )
    if family == "linear" and not is_number:
        raise InvalidValueError(
            f"Expected {aim.name!r} to be a number for family='linear'; it is yes and no, or "
            "one of several classes, for which family='logistic' is made."
        )
    return family


def _without_spread(
    joint: JointSums, features: list[str], rows: FloatArray
) -> tuple[list[str], str | None]:
    """Levels that no public row has, and why nothing can be said where another column is constant.

    What an absent level adds stays unknown, and all else need not: were more than a few
    contributors of that level, no weights would match, and the fit is refused. What any other
    column adds cannot be told from the intercept.
    """
    kinds = {column.name: column.kind for column in joint.columns}
    same = [name for name, spread in zip(features, np.ptp(rows, axis=0), strict=True) if not spread]
    absent = [name for name in same if kinds[name] == "level"]
    stuck = [name for name in same if name not in absent]
    if not stuck:
        return absent, None
    return absent, (
        f"all public rows have the same {listed(stuck)}, which cannot be told from the intercept. "
        "Leave it out, or use other rows. Predictions by shrinkage are still possible."
    )


def _levels(aim: Question) -> tuple[str | None, ...]:
    """The class that each column of a target is of; of others there is one column, and no class."""
    return tuple(aim.levels) if isinstance(aim, Categorical) else (None,)


def _inference(
    moments: "PublishedMoments",
    formula: Formula,
    family: Family,
    found: PublicFit,
    kept: list[int],
    level: str | None,
    absent: list[str],
) -> Inference | None:
    """Unshrunk coefficients with the parts of their covariance, in the user's units."""
    if found.unshrunk is None or found.sampling is None or found.privacy is None:
        return None
    told = units(
        moments.agreement.schema,
        formula.target,
        formula.features,
        references=formula.references,
        level=level,
        log_odds=family != "linear",
    ).without(absent)
    plain = Inference(
        names=told.names,
        count=moments.count,
        coefficients=found.unshrunk,
        sampling=_symmetric(found.sampling),
        privacy=_symmetric(found.privacy),
        residual_variance=found.residual_variance,
        r_squared=None,
        condition=0.0,
        uneven=False,
    )
    return in_units(plain, told, kept)


def _symmetric(matrix: FloatArray) -> FloatArray:
    return (matrix + matrix.T) / 2
