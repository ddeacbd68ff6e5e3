"""Σzzᵀ of some people, as rows give it and as a release would blur it."""

from collections.abc import Sequence

import numpy as np

from blurfit.data import FloatArray
from blurfit.learning.sums import JointSums
from blurfit.theory.forms import JointColumn


def clean_sums(columns: Sequence[JointColumn], constant: float, values: FloatArray) -> FloatArray:
    """Σzzᵀ without noise, from the rows v themselves."""
    weights = [column.weight for column in columns]
    rows = np.column_stack([np.full(len(values), constant), values * weights])
    found: FloatArray = rows.T @ rows
    return found


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
