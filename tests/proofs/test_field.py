"""The field's arithmetic on arrays against Python's whole numbers."""

import numpy as np
import pytest

from blurfit.proofs import field
from blurfit.proofs.field import MODULUS

EDGES = [0, 1, 2, 2**32 - 2, 2**32 - 1, 2**32, 2**32 + 1, 2**63, MODULUS - 2**32, MODULUS - 1]


def elements(shape, seed=1):
    rng = np.random.default_rng(seed)
    return rng.integers(0, MODULUS, shape, dtype=np.uint64)


def pairs():
    one, other = np.meshgrid(np.array(EDGES, dtype=np.uint64), np.array(EDGES, dtype=np.uint64))
    return (
        np.concatenate([one.ravel(), elements(20_000)]),
        np.concatenate([other.ravel(), elements(20_000, seed=2)]),
    )


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (field.add, lambda a, b: a + b),
        (field.sub, lambda a, b: a - b),
        (field.mul, lambda a, b: a * b),
    ],
)
def test_arithmetic_is_that_of_whole_numbers(function, expected):
    one, other = pairs()
    found = function(one, other).tolist()
    right = [expected(a, b) % MODULUS for a, b in zip(one.tolist(), other.tolist(), strict=True)]
    assert found == right


def test_products_sums_dots_and_powers():
    one, other = elements((7, 1, 3000)), elements((7, 5, 1), seed=2)
    found = field.mul(one, other)
    assert found.shape == (7, 5, 3000)
    assert np.array_equal(found[3, 2], field.mul(one[3, 0], other[3, 2]))
    words = elements((50, 3))
    words[:, 0] = MODULUS - 1
    assert field.total(words, 0).tolist() == [sum(row) % MODULUS for row in words.T.tolist()]
    right = sum(a * b for a, b in zip(*words.T[:2].tolist(), strict=True)) % MODULUS
    assert int(field.dot(words[:, 0], words[:, 1], 0)) == right
    found = field.powers(np.array([3, MODULUS - 1], dtype=np.uint64), 70)
    assert found[0].tolist() == [pow(3, k, MODULUS) for k in range(70)]
    assert found[1].tolist() == [1, MODULUS - 1] * 35


@pytest.mark.parametrize("rows", [1, 5, 1300])
def test_matrices_are_combined_exactly_even_at_the_ends(rows):
    weights, matrices = elements((2, 3, rows)), elements((2, rows, 2), seed=2)
    weights[0], matrices[0] = MODULUS - 1, MODULUS - 1
    found = field.combine(weights, field.limbs(matrices))
    right = field.dot(weights[..., None], matrices[:, None], axis=2)
    assert np.array_equal(found, right)


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_transforms_evaluate_polynomials_at_the_roots(size):
    coefficients = elements((2, size))
    root = field.root_of_unity(size)
    assert pow(root, size, MODULUS) == 1
    assert size == 1 or pow(root, size // 2, MODULUS) == MODULUS - 1
    values = field.transform(coefficients)
    for row, found in zip(coefficients.tolist(), values.tolist(), strict=True):
        right = [
            sum(c * pow(root, k * place, MODULUS) for place, c in enumerate(row)) % MODULUS
            for k in range(size)
        ]
        assert found == right
    assert np.array_equal(field.inverse_transform(values), coefficients)


def test_only_one_form_of_an_element_is_canonical():
    words = np.array([[0, MODULUS - 1], [1, MODULUS], [2**64 - 1, 0]], dtype=np.uint64)
    assert field.is_canonical(words).tolist() == [True, False, False]
    assert int(field.element(-1)) == MODULUS - 1
    assert 12345 * field.inverse(12345) % MODULUS == 1
