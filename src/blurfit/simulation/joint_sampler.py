"""Blurred joint sums by simulation: exactly the law that contributors' own noise gives their total.

A sum of independent Gaussians is Gaussian, so one draw of E with the total variance replaces N
draws. For experiments, forecasts and checks: the noise of a real collection is drawn by its
contributors.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.learning.inference import debiased, infer
from blurfit.learning.joint_sums import JointSums, Noise, Submodel
from blurfit.theory.joint_form import JointColumn
from blurfit.validate import whole


def draw_joint_sums(
    columns: Sequence[JointColumn],
    constant: float,
    count: int,
    clean: FloatArray,
    deviation: float,
    generator: np.random.Generator,
) -> JointSums:
    """Σzzᵀ + E from the clean Σzzᵀ of N records, of deviation s on the diagonal of the sum."""
    size = len(columns) + 1
    draw = np.triu(generator.normal(size=(size, size)) * deviation)
    draw[np.triu_indices(size, 1)] /= np.sqrt(2)
    noise = draw + np.triu(draw, 1).T
    symmetric = np.triu(clean) + np.triu(clean, 1).T
    return JointSums(tuple(columns), constant, count, symmetric + noise, deviation)


def draw_noise(noise: Noise, generator: np.random.Generator) -> FloatArray:
    """One E of this law: entries that are public have no noise, and some are tied."""
    size = len(noise.ties)
    upper = np.triu(generator.normal(size=(size, size)) * np.sqrt(noise.variance))
    for row in np.flatnonzero(noise.ties):  # one noise is behind both, times their deviations
        ratio = noise.variance[row, row] / noise.variance[0, row]
        upper[row, row] = upper[0, row] * np.sqrt(ratio)
    found: FloatArray = upper + np.triu(upper, 1).T
    return found


def bootstrap(sums: Submodel, draws: int, generator: np.random.Generator) -> FloatArray:
    """Coefficients of so many simulated collections, one per row, around those of `infer`.

    A check of the covariance that `blurfit.learning.inference` tells, and an option where more than
    its order is wanted; refused where `infer` is. The features stay as they are (Â); Σze ~ N(0,
    σ̂²Â) and Σe² follow a Gaussian residual, and E is drawn from its exact law. Draws that are no
    longer positive definite are kept: they are what would happen.
    """
    whole(draws=draws)
    model = infer(sums)
    theta = model.coefficients * sums.target.weight / sums.scale
    assert model.residual_variance is not None  # a line's
    variance = model.residual_variance * sums.target.weight**2
    size = len(theta)
    root = np.linalg.cholesky(sums.gram)
    found = np.empty((draws, size))
    for draw in range(draws):
        standard = generator.normal(size=size)
        residual = np.sqrt(variance) * root @ standard
        squares = variance * (standard @ standard + generator.chisquare(sums.count - size))
        cross = sums.gram @ theta + residual
        square = theta @ sums.gram @ theta + 2 * theta @ residual + squares
        noise = draw_noise(sums.noise, generator)
        again = replace(
            sums,
            gram=sums.gram + noise[:-1, :-1],
            cross=cross + noise[:-1, -1],
            square=float(square + noise[-1, -1]),
        )
        found[draw] = sums.in_columns(debiased(again))
    return found
