"""The draft's own circuits give the draft's own bytes; and nothing that was changed is believed."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from blurfit.proofs import field
from blurfit.proofs.prio3 import HELPER, LEADER, Halves, Prio3, Xof
from support.proofs import CIRCUIT, KEY, PRIO3, identifiers, shared, vectors, verdicts

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "vdaf.json").read_text())


def sum_of_products(wires):
    """The gadget ParallelSum(Mul) of the draft."""
    return field.dot(wires[..., 0::2], wires[..., 1::2], axis=-1)


def from_bits(bits):
    return field.dot(bits, np.uint64(1) << np.arange(bits.shape[-1], dtype=np.uint64), axis=-1)


class Written:
    """A circuit whose wires are written out, with a gadget of degree two."""

    degree = 2

    def wires(self, inputs, joint):
        return self.shared_wires(inputs, joint, 1)

    def combined(self, inputs, joint, share, weights):
        wires = [self.shared_wires(inputs, one, share) for one in np.moveaxis(joint, 1, 0)]
        return field.dot(np.stack(wires, axis=1), weights[..., None], axis=2)


@dataclass(frozen=True)
class Count(Written):
    inputs, joint, calls, arity, outputs = 1, 0, 1, 2, 1

    def encode(self, value):
        return np.array([[value]], dtype=np.uint64)

    def shared_wires(self, inputs, joint, share):
        return np.repeat(inputs[:, None, :], 2, axis=2)

    def gadget(self, wires):
        return sum_of_products(wires)

    def check(self, inputs, results, share):
        return field.sub(results, inputs[:, None])

    def truncate(self, inputs):
        return inputs


@dataclass(frozen=True)
class Sum(Written):
    bits: int
    joint, arity = 0, 1

    @property
    def inputs(self):
        return 2 * self.bits

    calls = inputs

    @property
    def outputs(self):
        return 2 * self.bits + 1

    def encode(self, value):  # the offset is zero, as the largest value is 2**bits - 1
        bits = [(value >> place) & 1 for place in range(self.bits)]
        return np.array([bits + bits], dtype=np.uint64)

    def shared_wires(self, inputs, joint, share):
        return inputs[:, :, None]

    def gadget(self, wires):
        return field.sub(field.mul(wires[..., 0], wires[..., 0]), wires[..., 0])

    def check(self, inputs, results, share):
        low, high = inputs[:, : self.bits], inputs[:, self.bits :]
        same = field.sub(from_bits(low), from_bits(high))
        return np.concatenate([results, same[:, None, None]], axis=-1)

    def truncate(self, inputs):
        return from_bits(inputs[:, : self.bits])[:, None]


@dataclass(frozen=True)
class SumVec(Written):
    length: int
    bits: int
    chunk: int
    outputs = 1

    @property
    def inputs(self):
        return self.length * self.bits

    @property
    def joint(self):
        return -(-self.inputs // self.chunk)

    calls = joint

    @property
    def arity(self):
        return 2 * self.chunk

    def encode(self, values):
        return np.array(
            [[(value >> place) & 1 for value in values for place in range(self.bits)]], np.uint64
        )

    def shared_wires(self, inputs, joint, share):
        padded = np.zeros((len(inputs), self.calls * self.chunk), dtype=np.uint64)
        padded[:, : self.inputs] = inputs
        bits = padded.reshape(len(inputs), self.calls, self.chunk)
        scaled = field.mul(bits, field.powers(joint, self.chunk + 1)[..., 1:])
        pairs = np.stack([scaled, field.sub(bits, np.uint64(share))], axis=-1)
        return pairs.reshape(len(inputs), self.calls, self.arity)

    def gadget(self, wires):
        return sum_of_products(wires)

    def check(self, inputs, results, share):
        return field.total(results, axis=-1)[..., None]

    def truncate(self, inputs):
        return from_bits(inputs.reshape(len(inputs), self.length, self.bits))


def circuit_of(vector):
    if vector["name"] == "Prio3Count":
        return Count()
    if vector["name"] == "Prio3Sum":
        assert vector["max_measurement"] == 2**8 - 1
        return Sum(8)
    return SumVec(vector["length"], vector["bits"], vector["chunk_length"])


def as_hex(words):
    return words.astype("<u8").tobytes().hex()


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda one: one["name"])
def test_shares_verifiers_and_sums_are_the_drafts_byte_for_byte(vector):
    circuit = circuit_of(vector)
    prio3 = Prio3(circuit, vector["proofs"], Xof(vector["algorithm"], bytes.fromhex(vector["ctx"])))
    nonces = np.frombuffer(bytes.fromhex(vector["nonce"]), np.uint8)[None]
    inputs = circuit.encode(vector["measurement"])
    first, second = prio3.shard(inputs, nonces, [bytes.fromhex(vector["rand"])])

    joint = bool(circuit.joint)
    length = -4 if joint else -8  # the draft has no blinds where there is no joint randomness
    parts = as_hex(second[:, -4:]) + as_hex(first.parts) if joint else ""
    assert parts == vector["public_share"]
    assert as_hex(first.words()[:, :length]) == vector["input_shares"][LEADER]
    assert as_hex(second[:, :length]) == vector["input_shares"][HELPER]

    key = bytes.fromhex(vector["verify_key"])
    halves = prio3.leader_halves(first.words()), prio3.helper_halves(second)
    for who, half in enumerate(halves):
        prepared = prio3.prepare(who, half, nonces, key)
        words = prepared.words() if joint else prepared.verifiers
        assert as_hex(words) == vector["verifier_shares"][who]
        assert as_hex(circuit.truncate(half.inputs)) == vector["out_shares"][who]
        if who == LEADER:
            leader = prepared
    valid, answers = prio3.decide(prepared, leader.words())
    assert valid.all()
    assert prio3.confirm(leader, answers).all()
    if joint:
        assert as_hex(answers) == vector["verifier_message"]


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
