"""How coefficients follow a push of the sums, by pushing them."""

import numpy as np
import pytest

from blurfit.learning.inference import Pull
from blurfit.learning.sums import JointSums
from blurfit.theory.forms import JointColumn


@pytest.fixture
def matrix() -> np.ndarray:
    rng = np.random.default_rng(1)
    z = np.column_stack([np.full(500, 0.5), rng.normal(size=(500, 3)) @ rng.normal(size=(3, 3))])
    return z.T @ z


def line(matrix):
    return np.linalg.solve(matrix[:-1, :-1], matrix[:-1, -1])


def pushes(size, count, seed=2):
    rng = np.random.default_rng(seed)
    found = rng.normal(size=(count, size, size))
    found = found + found.transpose(0, 2, 1)
    return found / np.linalg.norm(found, axis=(1, 2), keepdims=True)


def test_no_push_of_a_line_moves_more_up_to_the_largest_that_has_a_bound(matrix) -> None:
    columns = tuple(JointColumn(name, 1.0) for name in "abc")
    sums = JointSums(columns, 0.5, 500, matrix, 0.0).submodel("c")
    pull, before = Pull.of_line(sums), line(matrix)
    scale = np.array([0.5, 1.0, 1.0])
    for share in (0.01, 0.3, 0.9):
        push = share / pull.softness
        bound = pull.moved(push)
        for way in pushes(4, 500):
            for sign in (-1, 1):
                moved = np.abs(line(matrix + sign * push * way) - before) * scale
                assert (moved <= bound).all()
    assert np.isinf(pull.moved(1 / pull.softness)).all()
    assert np.isinf(pull.moved(np.inf)).all()


def test_a_step_is_pushed_in_its_matrix_and_beside_it(matrix) -> None:
    gram, linear, balance = matrix[:-1, :-1], matrix[:-1, -1], 3.0
    theta = np.linalg.solve(gram, linear)
    pull = Pull.of_step(np.linalg.inv(gram), theta, balance**2)
    push = 1e-4 / pull.softness
    rng = np.random.default_rng(5)
    ways = zip(pushes(3, 3000), rng.normal(size=(3000, 3)), rng.random(3000), strict=True)
    largest = np.zeros(3)
    for way, beside, angle in ways:
        sine, cosine = np.sin(np.pi / 2 * angle), np.cos(np.pi / 2 * angle)
        moved = np.linalg.solve(
            gram + push * sine * way,
            linear + push * cosine * balance * beside / np.linalg.norm(beside),
        )
        largest = np.maximum(largest, np.abs(moved - theta))
    bound = pull.moved(push)
    assert (largest <= bound).all()
    assert (largest > 0.8 * bound).all(), "random pushes come near, in so few dimensions"


def test_combinations_are_pulled_along(matrix) -> None:
    pull = Pull(np.diag([4.0, 9.0]), 0.5)
    assert pull.through(np.array([[1.0, 1.0], [1.0, 0.0]])).moved(1.0) == pytest.approx(
        [2 * np.sqrt(13), 4.0]
    )
