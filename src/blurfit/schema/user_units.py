"""Weights of an encoded record x, as rivals learn them, in the user's units."""

import numpy as np
import numpy.typing as npt

from blurfit.arrays import FloatArray
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.schema.columns import Numeric
from blurfit.schema.schema import Coefficients, Schema
from blurfit.schema.table import listed


def user_units_matrix(schema: Schema) -> tuple[FloatArray, FloatArray]:
    """(intercept, effects …) = T·w + t, in the order of `columns` but with the intercept first.

    Each column of x is s·(aⱼ·vⱼ + bⱼ), where s is 1/√m, vⱼ the user's value (a level's is 0 or
    1), and (aⱼ, bⱼ) the column's (slope, constant); the intercept's is s. Therefore

        w·x = Σ wⱼ·s·(aⱼ·vⱼ + bⱼ) + w₀·s = (w₀·s + Σ wⱼ·s·bⱼ) + Σ (wⱼ·s·aⱼ)·vⱼ

    and the effects are wⱼ·s·aⱼ: T has s·aⱼ on its diagonal, and s·bⱼ and s in its first row. A
    label's log-odds are w·x, so t = 0. A numeric target is centre + half·y, so all of T is
    taken `half` times, and t is `centre` for the intercept. The map is affine: a covariance V
    of the weights becomes T·V·Tᵀ.
    """
    d = schema.dimension
    effects = d - schema.intercept
    T, t = np.zeros((1 + effects, d)), np.zeros(1 + effects)
    affine = [pair for feature in schema.features for pair in feature.affines]
    T[1 + np.arange(effects), np.arange(effects)] = [slope for slope, _ in affine]
    T[0] = [*(constant for _, constant in affine), *([1.0] if schema.intercept else [])]
    half = 1.0
    if isinstance(schema.target, Numeric):
        half, t[0] = schema.target.width / 2, schema.target.centre
    with np.errstate(over="ignore"):  # refused on the next line
        T *= schema.scale * half
    if not np.isfinite(T).all():
        raise InfeasibleError(
            f"The effect of {schema.columns[int((~np.isfinite(T)).any(axis=0).argmax())]!r} on "
            f"{schema.target.name!r} is beyond 1.8e308 in these units; state one of them in "
            "others."
        )
    return T, t


def coefficients(schema: Schema, weights: npt.ArrayLike) -> Coefficients:
    """The weights in the user's own units: see `user_units_matrix`."""
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (schema.dimension,) or not np.isfinite(w).all():
        raise InvalidValueError(
            f"Expected weights={w.tolist()} to be {schema.dimension} finite numbers, one for "
            f"each of the columns {listed(schema.columns)}."
        )
    matrix, offset = user_units_matrix(schema)
    intercept, *effects = (matrix @ w + offset).tolist()
    return Coefficients(intercept, dict(zip(schema.columns, effects, strict=False)))
