"""Rows of largest entropy: the tables they were asked for, independence where nothing is seen."""

import numpy as np
import pytest

from blurfit.errors import InfeasibleError
from blurfit.learning import tables as synthesis
from blurfit.learning.sums import JointSums
from blurfit.learning.tables import Levels
from blurfit.theory.forms import JointColumn

SIZES = (2, 3, 4)


def release(count: int, noise: float, seed: int = 0) -> tuple[JointSums, list[Levels], np.ndarray]:
    """People whose second and third answers follow the first, their law, and their blurred sums."""
    generator = np.random.default_rng(seed)
    law = generator.dirichlet(np.ones(24)).reshape(SIZES)
    cells = generator.choice(24, count, p=law.ravel())
    answers = np.unravel_index(cells, SIZES)
    columns, levels, parts, row = [], [], [np.full((count, 1), 0.5)], 1
    for name, size, answer in zip("abc", SIZES, answers, strict=True):
        columns += [JointColumn(f"{name}={k}", 0.5, "level", name) for k in range(size)]
        places = tuple(range(row, row + size))
        levels.append(Levels(name, tuple(map(str, range(size))), places, np.eye(size)))
        parts.append(0.5 * np.eye(size)[answer])
        row += size
    z = np.hstack(parts)
    beside = np.triu(generator.normal(0, noise / 2**0.5, (row, row)), 1)
    blurred = z.T @ z + beside + beside.T + np.diag(generator.normal(0, noise, row))
    return JointSums(tuple(columns), 0.5, count, blurred, noise), levels, law


def pairs_of(law: np.ndarray) -> np.ndarray:
    return np.concatenate([law.sum(axis=axis).ravel() for axis in range(3)])


def test_tables_of_two_are_the_release_s_where_there_is_little_noise() -> None:
    sums, levels, truth = release(200_000, 3.0)
    found = synthesis.joint_law(sums, levels)
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    assert np.abs(pairs_of(found) - pairs_of(truth)).max() < 0.004


def test_where_noise_rules_it_is_nearer_to_the_truth_than_the_tables_are() -> None:
    from blurfit.learning import tables

    sums, levels, truth = release(2000, 60.0)
    found = synthesis.joint_law(sums, levels)
    raw = [tables.table(sums, levels[i], levels[j]) for i, j in ((1, 2), (0, 2), (0, 1))]
    seen = np.concatenate([tables.on_simplex(one.values / 2000) for one in raw])
    assert np.abs(pairs_of(found) - pairs_of(truth)).sum() < np.abs(seen - pairs_of(truth)).sum()


def test_one_question_alone_and_too_many_together() -> None:
    sums, levels, truth = release(50_000, 3.0)
    alone = synthesis.joint_law(sums, levels[:1])
    assert alone == pytest.approx(truth.sum(axis=(1, 2)), abs=0.01)
    with pytest.raises(InfeasibleError, match="name fewer questions"):
        synthesis.joint_law(sums, [levels[2]] * 10)
