"""Share and verify valid vectors between two databases, as Prio3 does.

**The extendable output function.** XofTurboShake128 of the VDAF draft (section 6.2.1): from a seed,
a purpose and a context to bytes, seeds and field elements.

    message = |tag| (2 bytes) ‖ tag ‖ |seed| (1 byte) ‖ seed ‖ binder,   TurboSHAKE128, domain 1
    tag     = version (1) ‖ class (1) ‖ algorithm (4) ‖ usage (2), big-endian ‖ context

Field elements are eight bytes each, little-endian; those that are not below the modulus, one in
2³², are passed over.

**The protocol.** Prio3 of the VDAF draft (section 7.2) between two: shares of valid vectors, many
at a time.

| who | has |
| --- | --- |
| leader | x − X and the proofs' other half, as they are; a blind; the helper's part |
| helper | a seed, from which X and its half of the proofs follow; a blind; the leader's part |

A *part* is the hash of somebody's share of x, blind and nonce; from both parts comes the joint
randomness, on which the proofs depend and which nobody can choose before x is fixed. Both hold the
*verification key*, which contributors do not know; from it and the nonce follows where the proofs
are tested. All of it is in the draft's bytes: `tests/vectors/vdaf.json` has its own numbers.

The leader *prepares* and sends its half of the verifiers with its part; the helper prepares,
*decides* and answers with the seed of the joint randomness, or zeros; the leader *confirms* it
(draft, section 5.7.1, the ping-pong topology). Whatever a row holds, it is judged alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from blurfit.data import BoolArray, ByteArray, WordArray
from blurfit.proofs import field
from blurfit.proofs.field import MODULUS, is_canonical
from blurfit.proofs.flp import Flp, ShortVector

SEED_BYTES = 32
_VERSION, _CLASS = 12, 0  # as the draft's tags have it, and VDAFs among its algorithms
_DOMAIN = 1


@dataclass(frozen=True)
class Xof:
    """The streams of one algorithm in one context, each for another usage."""

    algorithm: int
    context: bytes

    def seed(self, usage: int, seed: bytes, binder: bytes) -> bytes:
        """Return a new seed."""
        found: bytes = self._stream(usage, seed, binder).read(SEED_BYTES)
        return found

    def elements(self, usage: int, seed: bytes, binder: bytes, count: int) -> WordArray:
        """Return so many field elements."""
        return _elements(self._stream(usage, seed, binder), count)

    def rows(
        self, usage: int, seeds: Sequence[bytes], binders: Sequence[bytes], count: int
    ) -> WordArray:
        """Return so many field elements for each of some seeds, one row each."""
        found = np.empty((len(seeds), count), dtype=np.uint64)
        for row, seed, binder in zip(found, seeds, binders, strict=True):
            row[:] = self.elements(usage, seed, binder, count)
        return found

    def _stream(self, usage: int, seed: bytes, binder: bytes) -> Any:
        from Crypto.Hash import TurboSHAKE128  # for which only proofs wait

        numbers = self.algorithm.to_bytes(4, "big") + usage.to_bytes(2, "big")
        tag = bytes((_VERSION, _CLASS)) + numbers + self.context
        head = len(tag).to_bytes(2, "little") + tag + bytes((len(seed),)) + seed
        return TurboSHAKE128.new(domain=_DOMAIN, data=head + binder)


def _elements(stream: Any, count: int) -> WordArray:
    words: WordArray = np.frombuffer(stream.read(8 * count), dtype="<u8").astype(np.uint64)
    while not is_canonical(words):  # hardly ever
        words = words[words < MODULUS]
        more = np.frombuffer(stream.read(8 * (count - len(words))), dtype="<u8")
        words = np.concatenate([words, more.astype(np.uint64)])
    return words


SEED_WORDS = SEED_BYTES // 8
LEADER, HELPER = 0, 1
(_MEASUREMENT, _PROOF, _JOINT, _PROVE, _QUERY, _JOINT_SEED, _PART) = range(1, 8)  # usages
_HALF = field.inverse(2)


@dataclass(frozen=True, eq=False)
class Halves:
    """Somebody's shares of some vectors and proofs, written out; `parts` are the other's."""

    inputs: WordArray
    proofs: WordArray
    blinds: WordArray
    parts: WordArray

    def words(self) -> WordArray:
        """Write as one row each."""
        return np.hstack([self.inputs, self.proofs, self.blinds, self.parts])


@dataclass(frozen=True, eq=False)
class Prepared:
    """What comes of some shares before they are put together."""

    verifiers: WordArray
    parts: WordArray  # one's own
    seeds: WordArray  # of the joint randomness, if the other's part is as it was given
    usable: BoolArray

    def words(self) -> WordArray:
        """Return what the other one needs, as one row each."""
        return np.hstack([self.verifiers, self.parts])


@dataclass(frozen=True)
class Prio3:
    """Sharing and verifying vectors that a circuit takes, with so many proofs each."""

    circuit: ShortVector  # or another circuit, as the draft's own
    proofs: int
    xof: Xof
    helper_words = 3 * SEED_WORDS  # of a helper's share: seed, blind and the leader's part

    @cached_property
    def flp(self) -> Flp:
        """The proof system for the circuit."""
        return Flp(self.circuit)

    @property
    def leader_words(self) -> int:
        """Of a leader's share."""
        return self.circuit.inputs + self.proofs * self.flp.proof_length + 2 * SEED_WORDS

    @property
    def verifier_words(self) -> int:
        """Of what the leader sends to the helper."""
        return self.proofs * self.flp.verifier_length + SEED_WORDS

    # ---- who shares

    def shard(
        self, inputs: WordArray, nonces: ByteArray, random: Sequence[bytes]
    ) -> tuple[Halves, WordArray]:
        """Return the shares of encoded vectors: the leader's, and the helper's as words (section
        7.2.1).

        `random` are four seeds for each vector, one after the other: the helper's, its blind, the
        leader's blind, and the prover's. (Two for a circuit without joint randomness: the helper's
        and the prover's.)
        """
        size, count = SEED_BYTES, len(inputs)
        seeds = [[one[at : at + size] for at in range(0, len(one), size)] for one in random]
        shares = self._helper([one[0] for one in seeds])
        leader = field.sub(inputs, shares[0])
        if self.circuit.joint:
            blinds = [[one[2] for one in seeds], [one[1] for one in seeds]]
            parts = [
                self._parts(LEADER, blinds[LEADER], leader, nonces),
                self._parts(HELPER, blinds[HELPER], shares[0], nonces),
            ]
            joint = self._joint(self._joint_seeds(*parts))
        else:
            blinds, parts = [[bytes(size)] * count] * 2, [np.zeros((count, 4), np.uint64)] * 2
            joint = np.zeros((count, 0), dtype=np.uint64)
        proofs = self._prove(inputs, [one[-1] for one in seeds], joint)
        first = Halves(
            leader, field.sub(proofs, shares[1]), words_of(blinds[LEADER]), parts[HELPER]
        )
        helper = words_of([one[0] for one in seeds]), words_of(blinds[HELPER]), parts[LEADER]
        return first, np.hstack(helper)

    def _prove(self, inputs: WordArray, seeds: Sequence[bytes], joint: WordArray) -> WordArray:
        binders, count = [bytes((self.proofs,))] * len(seeds), self.proofs * self.flp.prove_random
        parts = self._apart(self.xof.rows(_PROVE, seeds, binders, count)), self._apart(joint)
        each = [[part[:, number] for part in parts] for number in range(self.proofs)]
        return np.hstack([self.flp.prove(inputs, *one) for one in each])

    # ---- who verifies

    def leader_halves(self, words: WordArray) -> Halves:
        """Return a leader's shares from their words."""
        proofs = self.circuit.inputs + self.proofs * self.flp.proof_length
        ends = (self.circuit.inputs, proofs, proofs + SEED_WORDS)
        return Halves(*np.split(words, ends, axis=1))

    def helper_halves(self, words: WordArray) -> Halves:
        """Return a helper's shares from their seeds."""
        seeds, blinds, parts = np.split(words, 3, axis=1)
        return Halves(*self._helper(bytes_of(seeds)), blinds, parts)

    def helper_inputs(self, words: WordArray) -> WordArray:
        """Return a helper's shares of the vectors alone."""
        return self._helper_inputs(bytes_of(words[:, :SEED_WORDS]))

    def prepare(self, who: int, halves: Halves, nonces: ByteArray, key: bytes) -> Prepared:
        """One's own half of the verifiers (section 7.2.2, `prep_init`)."""
        count = len(halves.inputs)
        own, seeds = halves.parts, halves.parts
        joint = np.zeros((count, 0), dtype=np.uint64)
        if self.circuit.joint:
            own = self._parts(who, bytes_of(halves.blinds), halves.inputs, nonces)
            pair = (own, halves.parts) if who == LEADER else (halves.parts, own)
            seeds = self._joint_seeds(*pair)
            joint = self._joint(seeds)
        binders = [bytes((self.proofs,)) + nonce.tobytes() for nonce in nonces]
        random = self.xof.rows(_QUERY, [key] * count, binders, self.proofs * self.flp.query_random)
        proofs, query, some = (self._apart(words) for words in (halves.proofs, random, joint))
        verifiers, usable = self.flp.query(halves.inputs, proofs, query, some, _HALF)
        good: BoolArray = np.logical_and.reduce(usable, axis=1)
        return Prepared(verifiers.reshape(count, -1), own, seeds, good)

    def decide(self, own: Prepared, words: WordArray) -> tuple[BoolArray, WordArray]:
        """Return the helper's verdicts on what the leader sent, and its answers
        (`prep_shares_to_prep`).

        An answer is the seed of the joint randomness, or zeros where the vector is refused.
        """
        verifiers, parts = words[:, :-SEED_WORDS], words[:, -SEED_WORDS:]
        valid = own.usable & field.is_canonical(verifiers)
        together = field.add(verifiers, own.verifiers)
        valid &= self.flp.decide(self._apart(together)).all(axis=1)
        seeds = own.seeds
        if self.circuit.joint:
            seeds = self._joint_seeds(parts, own.parts)
            valid &= (seeds == own.seeds).all(axis=1)
        return valid, np.where(valid[:, None], seeds, np.uint64(0))

    def confirm(self, own: Prepared, answers: WordArray) -> BoolArray:
        """Return the leader's verdicts, from the helper's answers (`prep_next`)."""
        return np.asarray(own.usable & (answers == own.seeds).all(axis=1))

    def _apart(self, words: WordArray) -> WordArray:
        """Return what belongs to each of the proofs: (n, proofs, …)."""
        return words.reshape(len(words), self.proofs, words.shape[1] // self.proofs)

    # ---- the draft's derivations (section 7.2.6)

    def _helper_inputs(self, seeds: Sequence[bytes]) -> WordArray:
        binders = [bytes((HELPER,))] * len(seeds)
        return self.xof.rows(_MEASUREMENT, seeds, binders, self.circuit.inputs)

    def _helper(self, seeds: Sequence[bytes]) -> tuple[WordArray, WordArray]:
        binders = [bytes((self.proofs, HELPER))] * len(seeds)
        length = self.proofs * self.flp.proof_length
        return self._helper_inputs(seeds), self.xof.rows(_PROOF, seeds, binders, length)

    def _parts(
        self, who: int, blinds: Sequence[bytes], inputs: WordArray, nonces: ByteArray
    ) -> WordArray:
        encoded = inputs.astype("<u8", copy=False)
        return words_of(
            [
                self.xof.seed(_PART, blind, bytes((who,)) + nonce.tobytes() + row.tobytes())
                for blind, nonce, row in zip(blinds, nonces, encoded, strict=True)
            ]
        )

    def _joint_seeds(self, leader: WordArray, helper: WordArray) -> WordArray:
        nothing, both = bytes(SEED_BYTES), np.hstack([leader, helper]).astype("<u8")
        return words_of([self.xof.seed(_JOINT_SEED, nothing, row.tobytes()) for row in both])

    def joint_randomness(self, leader: WordArray, helper: WordArray) -> WordArray:
        """Return what comes of both parts, for each of the proofs: (n, proofs, …)."""
        return self._apart(self._joint(self._joint_seeds(leader, helper)))

    def _joint(self, seeds: WordArray) -> WordArray:
        binders = [bytes((self.proofs,))] * len(seeds)
        return self.xof.rows(_JOINT, bytes_of(seeds), binders, self.proofs * self.circuit.joint)


def words_of(seeds: Sequence[bytes]) -> WordArray:
    """Seeds as rows of four words."""
    joined = np.frombuffer(b"".join(seeds), dtype="<u8").astype(np.uint64)
    return joined.reshape(-1, SEED_WORDS)


def bytes_of(words: WordArray) -> list[bytes]:
    """Rows of four words as seeds."""
    return [row.tobytes() for row in words.astype("<u8")]
