"""A small generated population for the tests of estimators: rows v, and blurred sums of them."""

import numpy as np

from blurfit.learning.sums import JointColumn, JointSums
from blurfit.theory.moments import sensitivity
from blurfit.theory.planning import Kind, public_weights
from support.joint_sums import clean_sums, draw_joint_sums

KINDS: tuple[Kind, ...] = ("numeric", "numeric", "numeric", "sign", "sign", 3)
TRUTH = np.array([-0.1, 0.3, -0.2, 0.25, 0.1, -0.05, 0.15, -0.1])  # constant, numbers, signs, n, s
NOISE = 0.15
NAMES = ("a", "b", "c", "owner", "single", "region=n", "region=s")


def people(count: int, generator: np.random.Generator) -> np.ndarray:
    """Columns a, b, c, owner, single, region=n, region=s, y."""
    common = generator.normal(size=count)
    numbers = np.clip(
        0.3 * common[:, None] + 0.4 * generator.normal(size=(count, 3)) + [0.1, -0.2, 0.0], -1, 1
    )
    signs = np.where(common[:, None] + generator.normal(size=(count, 2)) > [0.3, -0.4], 1.0, -1.0)
    level = generator.choice(3, count, p=[0.5, 0.3, 0.2])
    v = np.column_stack([numbers, signs, level == 0, level == 1])
    y = TRUTH[0] + v @ TRUTH[1:] + NOISE * generator.normal(size=count)
    return np.column_stack([v, y])


def layout(count: int, mu: float) -> tuple[tuple[JointColumn, ...], float]:
    """Columns with public weights, and c."""
    weights = public_weights(KINDS, count, mu)
    *single, region = weights.features
    kinds = ("numeric",) * 3 + ("sign",) * 2
    columns = [
        JointColumn(name, weight, kind)
        for name, weight, kind in zip(NAMES, single, kinds, strict=False)
    ]
    columns += [JointColumn(name, region, "level", "region") for name in NAMES[5:]]
    columns.append(JointColumn("y", weights.target))
    return tuple(columns), weights.constant


def collected(count: int, mu: float, generator: np.random.Generator) -> JointSums:
    """One collection: fresh people, blurred sums of joint moments that are μ-GDP."""
    columns, constant = layout(count, mu)
    clean = clean_sums(columns, constant, people(count, generator))
    deviation = sensitivity(constant, 1.0) / mu
    return draw_joint_sums(columns, constant, count, clean, deviation, generator)
