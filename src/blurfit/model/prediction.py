"""From a score to what a user asks for: a number, a label, a class, a count, a probability.

The score of a record is w₀ + Σ wⱼvⱼ, with the encoded columns v of its features:

    a number is (score − b)/a in its own units, with the a and b of its column;
    a label has probability (score + 1)/2, or 1/(1 + e^(−score)) if the link is logistic;
    a class has probability score;
    a count is expected to be e^score if the link is log.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from blurfit.arrays import AnyArray, FloatArray
from blurfit.errors import InfeasibleError
from blurfit.schema.columns import Categorical, Numeric, Question
from blurfit.schema.schema import Schema
from blurfit.schema.vectors import values

Link = Literal["linear", "logistic", "log"]
LINKS: tuple[Link, ...] = ("linear", "logistic", "log")
LARGEST_LOGARITHM = 500.0  # of an expected count: whatever is asked, it is a number
LEAST_SHARE = 1e-12  # of a class, before all are divided by their sum


def predicted(aim: Question, link: Link, score: FloatArray) -> AnyArray:
    """A number in its own units, whether a label is likely, or the likeliest class."""
    if isinstance(aim, Categorical):
        return np.asarray(np.array(aim.levels, dtype=object)[score.argmax(axis=-1)])
    if not isinstance(aim, Numeric):
        return np.asarray(score > 0)
    if link == "log":
        return np.exp(np.clip(score, -LARGEST_LOGARITHM, LARGEST_LOGARITHM))
    slope, constant = aim.affine
    return np.asarray((score - constant) / slope)


def probabilities(aim: Question, link: Link, score: FloatArray) -> FloatArray:
    """P(label is false), P(label is true); or of each class.

    With the linear link the score is the least-squares reading of E[±1], so (score + 1)/2, cut to
    [0, 1], is as calibrated as a linear function can be. Classes are cut at 0, or follow the
    logistic curve, and are divided by their sum.
    """
    if isinstance(aim, Categorical):
        shares = 0.5 * (1 + np.tanh(score / 2)) if link == "logistic" else score
        positive = np.maximum(shares, LEAST_SHARE)
        return np.asarray(positive / positive.sum(axis=-1, keepdims=True))
    if isinstance(aim, Numeric):
        raise InfeasibleError(
            "Probabilities are for labels; this model predicts a number. Use predict."
        )
    if link == "logistic":
        likely = 0.5 * (1 + np.tanh(score / 2))
    else:
        likely = np.clip((score + 1) / 2, 0.0, 1.0)
    return np.stack([1 - likely, likely], axis=-1)


def in_own_units(
    schema: Schema, features: Sequence[str], names: Sequence[str], records: Any
) -> FloatArray:
    """The encoded columns called `names`, back in the user's units, (n, k): levels as 0 and 1."""
    v = np.atleast_2d(values(schema, records, tuple(features)))
    affine = {
        column: pair
        for one in map(schema.question, features)
        for column, pair in zip(one.columns, one.affines, strict=True)
    }
    places = list(affine)
    parts = [(v[:, places.index(name)] - affine[name][1]) / affine[name][0] for name in names]
    return np.column_stack(parts)
