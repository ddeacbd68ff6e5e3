"""Short vectors pass, and all others do not, however they are told."""

import numpy as np
import pytest

from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.proofs import field
from blurfit.proofs.circuits import ShortVector
from support.proofs import (
    BITS,
    CEILING,
    CIRCUIT,
    PRIO3,
    WEIGHTS,
    identifiers,
    norms,
    shared,
    vectors,
    verdicts,
)


def test_short_vectors_pass_and_their_sums_come_out():
    v = np.vstack([vectors(40), [[0] * 5, [-16, 0, 0, 0, 0], [10, 10, 0, 0, 0], [0, 0, 0, 15, 0]]])
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
    circuit = ShortVector((1,) * 40, 9, 77_777)
    inputs, joint, weights = draw(3, circuit.inputs), draw(3, 2, 1), draw(3, 2, circuit.calls)
    found = circuit.combined(inputs, joint, 1, weights)
    for proof in range(2):
        wires = circuit.wires(inputs, joint[:, proof])
        right = field.dot(wires, weights[:, proof, :, None], axis=1)
        assert np.array_equal(found[:, proof], right)


def test_what_is_not_short_is_not_encoded():
    for wrong in ([[16, 0, 0, 0, 0]], [[-17, 0, 0, 0, 0]], [[9, 9, 9, 9, 9]], [[1, 2, 3]]):
        with pytest.raises(InvalidValueError, match="Expected vectors"):
            CIRCUIT.encode(np.array(wrong))
    with pytest.raises(InfeasibleError, match="without proofs"):
        ShortVector((1,) * 8, 31, 100)
    with pytest.raises(InfeasibleError, match="cannot be proved"):
        ShortVector((2**10,) * 2**10, 24, 100)  # the norm would wrap around


def lies():
    """Encodings of vectors that are not short, each as a prover would have it who follows the
    protocol in all else.
    """
    honest = CIRCUIT.encode(np.array([[3, -2, 1, 0, 4]]))
    length = len(WEIGHTS) * BITS
    said = honest[0, length:]

    def of(**changes):
        lie = honest.copy()
        for place, value in changes.items():
            lie[0, int(place[1:])] = value % field.MODULUS
        return lie

    found = {
        f"bit {place} is {value}": of(**{f"p{place}": value})
        for place in (0, 7, length - 1, length, CIRCUIT.inputs - 1)
        for value in (2, -1, 2**63)
    }
    # a long vector, all bits in order: the norm as it is, or as it may be
    long = np.array([[15, -16, 15, -16, 15]]) + 2 ** (BITS - 1)
    bits = ((long[:, :, None] >> np.arange(BITS)) & 1).reshape(1, -1).astype(np.uint64)
    found["long vector, short norm"] = np.hstack([bits, said[None]])
    found["long vector, largest norm"] = np.hstack([bits, np.ones_like(said[None])])
    # a long vector whose norm is said by one element that is no bit, so that the sums fit
    weights = CIRCUIT._norm_weights
    norm = int(norms(long - 2 ** (BITS - 1))[0])
    no_bit = np.zeros_like(said[None])
    no_bit[0, 0] = norm
    found["norm in one element"] = np.hstack([bits, no_bit])
    # numbers that wrap around: 1/2 and the like as a bit, and a norm that fits modulo |F|
    wrapped = honest.copy()
    wrapped[0, 0] = field.inverse(2)
    values = CIRCUIT._in_chunks(wrapped, 1)[1].reshape(1, -1)[:, : len(WEIGHTS)]
    total = int(field.dot(field.mul(values, values), np.array(WEIGHTS, np.uint64), 1)[0])
    wrapped[0, length:] = 0
    wrapped[0, length] = total
    found["half a bit, fitting norm"] = wrapped
    assert int(weights.sum()) == CEILING
    return found


def test_a_prover_who_lies_about_the_vector_is_never_believed():
    told = lies()
    inputs = np.repeat(np.vstack(list(told.values())), 20, axis=0)
    names = identifiers(len(inputs), seed=5)
    first, second = shared(inputs, names)
    believed = verdicts(first.words(), second, names).reshape(-1, 20).any(axis=1)
    assert [name for name, one in zip(told, believed, strict=True) if one] == []
