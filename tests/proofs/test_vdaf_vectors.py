"""The draft's own circuits give the draft's own bytes."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from blurfit.proofs import field
from blurfit.proofs.circuits import from_bits, sum_of_products
from blurfit.proofs.prio3 import HELPER, LEADER, Prio3
from blurfit.proofs.xof import Xof

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "vdaf.json").read_text())


class Written:
    """A circuit whose wires are written out."""

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
