"""Exact logistic and Poisson models from a release, where rows of the features are public.

Σyx is part of the joint release, and all that a canonical generalised linear model needs of the
contributors: public rows stand for their features (`blurfit.learning.public_features`). Nothing is
released that was not before: this is post-processing, as long as the public rows really are public,
and not the contributors' own.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.learning.inference import Inference, Pull
from blurfit.learning.public_features import Balance, Family, PublicFit, fit_with_public_rows
from blurfit.learning.sums import JointSums
from blurfit.model.fitting import in_units, moved
from blurfit.model.formula import Formula
from blurfit.model.prediction import Link
from blurfit.model.published import PublishedModel
from blurfit.schema.columns import Numeric, Question
from blurfit.schema.table import listed
from blurfit.schema.vectors import Units, units, values

if TYPE_CHECKING:
    from blurfit.model.moments import PublishedMoments

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
    features = schema.columns_of(asked.features)
    joint, match = moments.beside(features, rows), moments.agreement.sends == "everything"
    curved = chosen != "linear"
    told = units(schema, asked.target, asked.features, references=asked.references, log_odds=curved)
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
            part, kept = joint.submodel(column, told.names[1:]), np.array(told.places[1:]) - 1
            apart = fit_with_public_rows(part, rows[:, kept], chosen, match=match, top=top)
        found.append(whole)
        if reason is None and (one := _inference(apart, told, moments.count)) is not None:
            inference.append(one)
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


def _inference(found: PublicFit, told: Units, count: int) -> Inference | None:
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
