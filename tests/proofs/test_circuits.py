"""Short vectors pass, and all others do not, however they are told."""

import numpy as np
import pytest

from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.proofs import field
from blurfit.proofs.prio3 import ShortVector
from support.proofs import (
    CEILING,
    CIRCUIT,
    DIGITS,
    PRIO3,
    WEIGHTS,
    identifiers,
    norms,
    shared,
    vectors,
    verdicts,
)


def test_short_vectors_pass_and_their_sums_come_out():
    v = np.vstack([vectors(40), [[0] * 5, [-17, 0, 0, 0, 0], [10, 10, 0, 0, 0], [0, 0, 0, 17, 0]]])
    v = v[norms(v) <= CEILING]
    assert norms(v).max() == CEILING  # the longest there may be
    names = identifiers(len(v))
    first, second = shared(CIRCUIT.encode(v), names)
    assert first.words().shape[1] == PRIO3.leader_words
    assert second.shape[1] == PRIO3.helper_words
    assert verdicts(first.words(), second, names).all()
    halves = CIRCUIT.truncate(first.inputs), CIRCUIT.truncate(PRIO3.helper_inputs(second))
    sums = field.total(np.vstack(halves), 0)
    assert np.array_equal(CIRCUIT.decode(sums, len(v)), v.sum(axis=0))


def test_the_combined_wires_are_those_that_are_written_out():
    rng = np.random.default_rng(3)
    draw = lambda *shape: rng.integers(0, field.MODULUS, shape, dtype=np.uint64)  # noqa: E731
    circuit = ShortVector((1,) * 40, 5, 77_778)
    inputs, joint, weights = draw(3, circuit.inputs), draw(3, 2, 1), draw(3, 2, circuit.calls)
    found = circuit.combined(inputs, joint, 1, weights)
    for proof in range(2):
        wires = circuit.wires(inputs, joint[:, proof])
        right = field.dot(wires, weights[:, proof, :, None], axis=1)
        assert np.array_equal(found[:, proof], right)


def test_what_is_not_short_is_not_encoded():
    for wrong in ([[32, 0, 0, 0, 0]], [[-33, 0, 0, 0, 0]], [[9, 9, 9, 9, 9]], [[1, 2, 3]]):
        with pytest.raises(InvalidValueError, match="Expected vectors"):
            CIRCUIT.encode(np.array(wrong))
    with pytest.raises(InfeasibleError, match="without proofs"):
        ShortVector((1,) * 8, 16, 99)
    with pytest.raises(InfeasibleError, match="cannot be proved"):
        ShortVector((2**10,) * 2**10, 12, 99)  # the norm would wrap around


@pytest.mark.parametrize("ceiling", [3, 15, 18, 63, 66, 192, 255, 300])
def test_the_digits_of_a_norm_say_every_number_up_to_the_ceiling_and_none_beyond(ceiling):
    circuit = ShortVector((1,), 5, ceiling)
    weights = circuit.norm_weights.astype(np.int64)
    encoded = circuit._encoded_norms(list(range(ceiling + 1))).astype(np.int64)
    assert (encoded >= 0).all()
    assert (encoded <= 3).all()
    assert np.array_equal(encoded @ weights, np.arange(ceiling + 1))
    assert 3 * weights.sum() == ceiling


def test_the_output_is_a_polynomial_in_r_with_a_coefficient_for_each_condition():
    """By the formula, digit by digit, in whole numbers of any size."""
    rng = np.random.default_rng(8)
    inputs = rng.integers(0, field.MODULUS, (1, CIRCUIT.inputs), dtype=np.uint64)
    (row,), r, p = inputs.tolist(), 123_456_789, field.MODULUS
    length = len(WEIGHTS) * DIGITS
    numbers = [
        sum(4**place * row[DIGITS * j + place] for place in range(DIGITS)) - CIRCUIT.half
        for j in range(len(WEIGHTS))
    ]
    said = sum(int(w) * x for w, x in zip(CIRCUIT.norm_weights, row[length:], strict=True))
    right = sum(w * v * v for w, v in zip(WEIGHTS, numbers, strict=True)) - said
    right += sum(pow(r, i, p) * x * (x - 1) * (x - 2) * (x - 3) for i, x in enumerate(row, start=1))
    wires = CIRCUIT.wires(inputs, np.array([[r]], dtype=np.uint64))
    found = CIRCUIT.check(inputs, CIRCUIT.gadget(wires)[:, None], 1)
    assert found.tolist() == [[[right % p]]]
