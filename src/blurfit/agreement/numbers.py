"""The numbers that a contributor sends: what fixes them, on which grid they are, how much noise.

Both mechanisms send one vector. For `moment` it holds the products of all columns, weighted by
public weights (`blurfit.theory.forms`); for `input` q and then p, which the model's objective
gives (`blurfit.theory.losses`). Whatever carries, checks or adds submissions needs to know no more
of them than the `NumberRun` that each belongs to.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from blurfit.agreement.grid import Grid
from blurfit.agreement.terms import LOSSES, LossName, Terms
from blurfit.arrays import FloatArray, fixed
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.schema.schema import INTERCEPT, Schema
from blurfit.schema.table import listed
from blurfit.schema.vectors import kind_of
from blurfit.theory.forms import JointForm, WaveForm
from blurfit.theory.gaussian import mu_of
from blurfit.theory.guarantees import APPROXIMATIONS, Approximation, ceiling
from blurfit.theory.input_calibration import InputCalibration
from blurfit.theory.losses import LogisticLoss, SquaredLoss
from blurfit.theory.moments import MomentCalibration
from blurfit.theory.planning import public_weights, weights_beside_public_rows
from blurfit.validate import nonnegative, one_of, positive

_LEAST_WEIGHT, _LARGEST_WEIGHT = 1e-3, 1e3

Form = JointForm | WaveForm  # of everyone, or of a wave that follows another


@dataclass(frozen=True, eq=False)
class NumberRun:
    """A run of the numbers that are sent, all on one grid.

    `deviations` are those of one contributor's noise, which is a multiple of `step`; numbers are
    rounded to it `toward_zero`, `at_random` without bias, or to the nearest, and end up on
    multiples of `fine` if they are dithered. `counts` is how often a number counts in the squared
    norm in which the noise is alike in all directions: twice off the diagonal.
    """

    numbers: slice
    step: float
    fine: float
    toward_zero: bool
    deviations: FloatArray
    counts: FloatArray
    bound: float  # on the norm of the exact numbers
    at_random: bool = False

    def __post_init__(self) -> None:
        for shared in (self.deviations, self.counts):  # among all who read the same agreement
            fixed(shared)


def input_parts(calibration: InputCalibration, grid: Grid) -> tuple[NumberRun, ...]:
    """q and p."""
    d, setting = calibration.setting.dimension, calibration.setting
    one = np.ones(d)
    return (
        NumberRun(
            numbers=slice(0, d),
            step=grid.quadratic,
            fine=grid.quadratic,
            toward_zero=True,
            deviations=calibration.q_noise * one,
            counts=one,
            bound=setting.q_bound,
        ),
        NumberRun(
            numbers=slice(d, 2 * d),
            step=grid.linear,
            fine=grid.dither,
            toward_zero=True,
            deviations=calibration.p_noise * one,
            counts=one,
            bound=setting.p_bound,
        ),
    )


def moment_parts(
    calibration: MomentCalibration, grid: Grid, form: Form, *, proofs: bool = False
) -> tuple[NumberRun, ...]:
    """The numbers of a form, each with noise that is alike in all directions of its norm."""
    counts = form.counts
    return (
        NumberRun(
            numbers=slice(0, form.width),
            step=grid.quadratic,
            fine=grid.quadratic,
            toward_zero=False,
            deviations=calibration.noise / np.sqrt(counts),
            counts=counts,
            bound=form.bound,
            at_random=proofs,
        ),
    )


@dataclass(frozen=True)
class Objective:
    """What the one model of `input` minimises: a loss as a quadratic, and l1·‖w‖₁ + ½l2·‖w‖²."""

    loss: LossName
    approximation: Approximation
    l1: float
    l2: float

    def verify(self, schema: Schema) -> None:
        """Refuse a loss that does not fit the target."""
        one_of(LOSSES, loss=self.loss)
        one_of(APPROXIMATIONS, approximation=self.approximation)
        nonnegative(l1=self.l1, l2=self.l2)
        if (self.loss == "logistic") != schema.is_label:
            raise InfeasibleError(
                f"Expected loss={self.loss!r} to fit the target {schema.target.name!r}: 'logistic' "
                "learns a label (binary, or a number with `above`), 'squared' a number."
            )

    @property
    def penalised(self) -> bool:
        """Whether the model is drawn away from the one that fits best."""
        return self.l1 > 0 or self.l2 > 0

    def function(self, weight_bound: float | None) -> SquaredLoss | LogisticLoss:
        """Encoded records lie in the unit ball, encoded targets in [−1, 1]."""
        if self.loss == "squared":
            return SquaredLoss(feature_bound=1.0, target_bound=1.0)
        return LogisticLoss(1.0, self.approximation, weight_bound)


@dataclass(frozen=True)
class PublicWeights:
    """How much of a record's vector each column gets: c of the constant, and ω of each question."""

    constant: float
    columns: tuple[float, ...]

    @classmethod
    def chosen(cls, schema: Schema, terms: Terms, promise: tuple[float, float]) -> "PublicWeights":
        """What the terms say; else the default, by kinds of columns, quorum and promise alone.

        Defaults are stated in 28 bits. Noise is calibrated for the weights as they are stated,
        whatever they are.
        """
        asked = schema.questions
        if terms.weights is None:
            kinds = [kind_of(one) for one in asked[:-1]]
            if terms.public_rows is not None:
                found = weights_beside_public_rows(kinds)
            else:
                found = public_weights(
                    kinds, terms.quorum, mu_of(*promise), neighbours=terms.neighbours
                )
            columns = tuple(map(ceiling, (*found.features, found.target)))
            constant = ceiling(found.constant) if terms.constant is None else terms.constant
        else:
            missing = {one.name for one in asked} ^ set(terms.weights)
            if missing:
                raise InvalidValueError(
                    f"Expected weights for each of {listed(one.name for one in asked)}, and no "
                    f"others; {listed(sorted(missing))} differ."
                )
            columns = tuple(float(terms.weights[one.name]) for one in asked)
            size = math.sqrt(math.fsum(weight**2 for weight in columns))
            constant = ceiling(size / 2) if terms.constant is None else terms.constant
        weights = cls(float(constant), columns)
        weights.verify()
        return weights

    def verify(self) -> None:
        """Refuse weights that arithmetic would choke on."""
        for weight in (self.constant, *self.columns):
            positive(weight=weight)
            if not _LEAST_WEIGHT <= weight <= _LARGEST_WEIGHT:
                raise InvalidValueError(
                    f"Expected weight={weight!r} between {_LEAST_WEIGHT:g} and "
                    f"{_LARGEST_WEIGHT:g}: only their ratios matter."
                )

    def to_dict(self, schema: Schema) -> dict[str, float]:
        """By the names of the questions, the constant's as well."""
        names = [INTERCEPT, *(one.name for one in schema.questions)]
        return dict(zip(names, (self.constant, *self.columns), strict=True))

    @classmethod
    def from_dict(cls, weights: Mapping[str, Any], schema: Schema) -> "PublicWeights":
        """The inverse of `to_dict`."""
        names = [INTERCEPT, *(one.name for one in schema.questions)]
        if set(weights) != set(names):
            raise InvalidValueError(
                f"Expected a weight for each of {listed(names)}, and got {listed(weights)}."
            )
        constant, *columns = (weights[name] for name in names)
        return cls(constant, tuple(columns))
