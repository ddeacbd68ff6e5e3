"""Short vectors pass, all others do not; and what two who verify see says nothing."""

import secrets

import numpy as np
import pytest

from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.proofs import field
from blurfit.proofs.circuits import ShortVector
from blurfit.proofs.flp import Flp
from blurfit.proofs.prio3 import HELPER, LEADER, Halves, Prio3
from blurfit.proofs.xof import Xof

WEIGHTS, BITS, CEILING = (1, 2, 2, 1, 2), 5, 300
CIRCUIT = ShortVector(WEIGHTS, BITS, CEILING)
PRIO3 = Prio3(CIRCUIT, 3, Xof(0xFFFFB1F1, b"f" * 32))
KEY = b"k" * 32


def identifiers(count, seed=1):
    return np.random.default_rng(seed).integers(0, 256, (count, 16), dtype=np.uint8)


def shared(inputs, names, prio3=PRIO3):
    return prio3.shard(inputs, names, [secrets.token_bytes(128) for _ in names])


def verdicts(first, second, names, *, helper_names=None, prio3=PRIO3, key=KEY):
    """Both databases' verdicts, by the protocol."""
    others = names if helper_names is None else helper_names
    leader = prio3.prepare(LEADER, prio3.leader_halves(first), names, key)
    helper = prio3.prepare(HELPER, prio3.helper_halves(second), others, key)
    valid, answers = prio3.decide(helper, leader.words())
    confirmed = prio3.confirm(leader, answers)
    assert not (confirmed & ~valid).any()
    return confirmed


def vectors(count, seed=1):
    rng = np.random.default_rng(seed)
    return rng.integers(-6, 7, (count, len(WEIGHTS)))


def norms(vector):
    return (np.array(WEIGHTS) * vector**2).sum(axis=1)


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


def test_damaged_replayed_and_mixed_shares_are_never_believed():
    v = vectors(12)
    names = identifiers(12)
    one, two = shared(CIRCUIT.encode(v), names)
    first, second = one.words(), two
    assert verdicts(first, second, names).all()

    for place in (0, CIRCUIT.inputs, CIRCUIT.inputs + 3, first.shape[1] - 5, first.shape[1] - 1):
        damaged = first.copy()
        damaged[:, place] = field.add(damaged[:, place], np.uint64(1))
        assert not verdicts(damaged, second, names).any(), place
    for place in range(second.shape[1]):
        damaged = second.copy()
        damaged[:, place] ^= np.uint64(1)
        assert not verdicts(first, damaged, names).any(), place
    others = identifiers(12, seed=9)
    assert not verdicts(first, second, others).any()  # replayed under other identifiers
    assert not verdicts(first, second, names, helper_names=others).any()
    assert not verdicts(first, np.roll(second, 1, axis=0), names).any()  # mixed
    other = Prio3(CIRCUIT, 3, Xof(0xFFFFB1F1, b"g" * 32))  # another agreement
    assert not verdicts(first, second, names, prio3=other).any()
    # the joint randomness of another vector: parts from elsewhere
    parts = Halves(one.inputs, one.proofs, one.blinds, np.roll(one.parts, 1, axis=0)).words()
    assert not verdicts(parts, second, names).any()
    # one who is refused does not take the others along
    damaged = first.copy()
    damaged[3, 2] = 0
    assert (~verdicts(damaged, second, names)).nonzero()[0].tolist() == [3]


def test_verifiers_that_are_no_elements_are_refused():
    names = identifiers(2)
    first, second = shared(CIRCUIT.encode(vectors(2)), names)
    leader = PRIO3.prepare(LEADER, PRIO3.leader_halves(first.words()), names, KEY)
    helper = PRIO3.prepare(HELPER, PRIO3.helper_halves(second), names, KEY)
    words = leader.words()
    assert PRIO3.decide(helper, words)[0].all()
    words[0, 0] = np.uint64(2**64 - 1)
    valid, answers = PRIO3.decide(helper, words)
    assert valid.tolist() == [False, True]
    assert not answers[0].any()


def test_a_guessed_test_point_is_needed_to_cheat():
    """With the verification key one can prove anything: so it is never told, and the tests above
    can fail.
    """
    flp = Flp(CIRCUIT)
    inputs = lies()["long vector, largest norm"]
    names = identifiers(1)
    joint = np.array([[5]], dtype=np.uint64)
    query = PRIO3.xof.rows(5, [KEY], [b"\3" + names[0].tobytes()], 3 * flp.query_random)
    random = query[:, :3]
    proof = flp.prove(inputs, np.full((1, CIRCUIT.arity), 7, np.uint64), joint)
    verifier, usable = flp.query(inputs, proof[:, None], random[:, None], joint[:, None], 1)
    assert usable.all()
    assert not flp.decide(verifier).any()

    def moved(scale):  # f + λ·(x − t) is f at t, and gives another output
        changed = proof.copy()
        start, t = CIRCUIT.arity, int(random[0, 2])
        changed[0, start + 1] = field.add(changed[0, start + 1], np.uint64(scale))
        changed[0, start] = field.sub(changed[0, start], field.element(scale * t))
        found, _ = flp.query(inputs, changed[:, None], random[:, None], joint[:, None], 1)
        assert np.array_equal(found[..., 1:], verifier[..., 1:])
        return found

    slope = int(field.sub(moved(1), verifier)[0, 0, 0])
    scale = -int(verifier[0, 0, 0]) * field.inverse(slope) % field.MODULUS
    assert flp.decide(moved(scale)).all()


def test_test_points_that_are_roots_of_unity_are_refused():
    flp = Flp(CIRCUIT)
    inputs = CIRCUIT.encode(vectors(1))
    joint = np.array([[5]], dtype=np.uint64)
    proof = flp.prove(inputs, np.full((1, CIRCUIT.arity), 7, np.uint64), joint)
    for power in (0, 1, flp.order - 1):
        root = pow(field.root_of_unity(flp.order), power, field.MODULUS)
        random = np.array([[3, 4, root]], dtype=np.uint64)
        _, usable = flp.query(inputs, proof[:, None], random[:, None], joint[:, None], 1)
        assert not usable.any()


@pytest.mark.statistical
def test_what_the_verifiers_see_is_alike_for_any_two_vectors():
    """Each of them sees its own share, and the sum of the verifiers: uniform words, all of them,
    but for zeros and what follows from the others.
    """
    count = 640
    names = identifiers(count, seed=4)
    for vector in ([0, 0, 0, 0, 0], [10, 10, 0, 0, 0]):
        inputs = np.repeat(CIRCUIT.encode(np.array([vector])), count, axis=0)
        first, second = shared(inputs, names)
        leader = PRIO3.prepare(LEADER, PRIO3.leader_halves(first.words()), names, KEY)
        helper = PRIO3.prepare(HELPER, PRIO3.helper_halves(second), names, KEY)
        together = field.add(leader.verifiers, helper.verifiers)
        together = together.reshape(count, 3, -1)
        assert not together[..., 0].any()
        wires = together[..., 1:-1].reshape(count, -1)
        assert np.array_equal(CIRCUIT.gadget(together[..., 1:-1]), together[..., -1])
        words = np.hstack([wires, first.inputs, first.proofs, leader.verifiers, helper.verifiers])
        # sixteen boxes by the highest bits; χ² with 15 degrees of freedom in each column
        boxes = (words >> np.uint64(60)).astype(int)
        counts = np.apply_along_axis(np.bincount, 0, boxes, minlength=16)
        chi = ((counts - count / 16) ** 2 / (count / 16)).sum(axis=0)
        assert chi.max() < 80  # P(χ²₁₅ > 80) < 10⁻⁹, among a thousand columns
