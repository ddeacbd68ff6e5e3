"""Prove that a shared vector is short, between two databases, as Prio3 of the VDAF draft does.

Called by contributors (`shard`) and by both databases (prepare, decide, confirm) under agreements
with `proofs` (`blurfit.agreement.numbers.Proving`). Shares of many vectors are handled at a time.

*Circuit* (`ShortVector`). For public whole weights w_j, d digits and a ceiling T, a vector of whole
numbers v is short if

    v_j ∈ [−4ᵈ/2, 4ᵈ/2)  for all j        and        Σ_j w_j·v_j² ≤ T.

It is encoded in digits x ∈ {0, 1, 2, 3} of v_j + 4ᵈ/2, and of the norm. With joint randomness r one
output must be zero:

    (Σ_j w_j·v_j·v_j − the stated norm)  +  Σ_i rⁱ·x_i·(x_i − 1)·(x_i − 2)·(x_i − 3), i ≥ 1.

*Proof system*: fully linear proofs, FlpBBCGGI19 (section 7.3). A gadget of degree D is called
`calls` times; p is a power of two above `calls`, |F| the size of the field.

*Guarantee* (`docs/theory/validity-proofs.md`). Completeness is 1. A vector that is not short passes
the circuit with probability at most M/|F| for M inputs, if Σ_j w_j·4²ᵈ/4 < |F| and T < |F|, which
is checked when the circuit is made. For given joint randomness a false proof is accepted with
probability at most D(p − 1)/(|F| − p) + 1/|F|. One verification reveals nothing about x; test
points that are roots of unity are rejected, and there must never be a second test point for one
proof.

*Bytes* (sections 6.2.1 and 7.2; `tests/vectors/vdaf.json` has the draft's own numbers):

    message = |tag| (2 bytes) ‖ tag ‖ |seed| (1 byte) ‖ seed ‖ binder,   TurboSHAKE128, domain 1
    tag     = version (1) ‖ class (1) ‖ algorithm (4) ‖ usage (2), big-endian ‖ context

Field elements are eight bytes, little-endian; those that are not below the modulus, one in 2³², are
passed over.

| who | has |
| --- | --- |
| leader | x − X and the proofs' other half, as they are; a blind; the helper's part |
| helper | a seed, from which X and its half of the proofs follow; a blind; the leader's part |

A *part* is the hash of a party's share of x, blind and nonce; both parts give the joint randomness,
which is fixed only after x is. Both hold the *verification key*, which contributors do not know; it
and the nonce give the test point. The leader *prepares* and sends its half of the verifiers with
its part; the helper prepares, *decides* and answers with the seed of the joint randomness, or
zeros; the leader *confirms* it (section 5.7.1). Each row is judged alone.

Tests: `tests/proofs`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from blurfit.data import BoolArray, ByteArray, IntArray, WordArray, fixed
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.proofs import field as gf
from blurfit.proofs.field import MODULUS, is_canonical

# ---- proofs, and the circuit


@dataclass(frozen=True)
class Flp:
    """Proofs for one circuit, such as `ShortVector`; lengths are in elements."""

    circuit: "ShortVector"
    order: int = field(init=False)  # p
    proof_length: int = field(init=False)
    verifier_length: int = field(init=False)
    prove_random: int = field(init=False)  # elements that a prover needs
    query_random: int = field(init=False)  # elements that those who verify need

    def __post_init__(self) -> None:
        circuit, order = self.circuit, 1 << self.circuit.calls.bit_length()
        vars(self).update(
            order=order,
            proof_length=circuit.arity + circuit.degree * (order - 1) + 1,
            verifier_length=1 + circuit.arity + 1,
            prove_random=circuit.arity,
            query_random=1 + (circuit.outputs if circuit.outputs > 1 else 0),
        )

    @property
    def _coefficients(self) -> int:  # of the gadget polynomial
        return self.proof_length - self.circuit.arity

    def prove(self, inputs: WordArray, random: WordArray, joint: WordArray) -> WordArray:
        """Return the proofs for some inputs, one each (draft, section 7.3.3)."""
        circuit, order = self.circuit, self.order
        values = np.zeros((len(inputs), circuit.arity, order), dtype=np.uint64)
        values[:, :, 0] = random
        values[:, :, 1 : circuit.calls + 1] = np.swapaxes(circuit.wires(inputs, joint), 1, 2)
        points = 1 << (self._coefficients - 1).bit_length()
        wires = np.zeros((len(inputs), circuit.arity, points), dtype=np.uint64)
        wires[:, :, :order] = gf.inverse_transform(values)
        gadgets = circuit.gadget(np.swapaxes(gf.transform(wires), 1, 2))
        return np.hstack([random, gf.inverse_transform(gadgets)[:, : self._coefficients]])

    def query(
        self, inputs: WordArray, proofs: WordArray, random: WordArray, joint: WordArray, share: int
    ) -> tuple[WordArray, BoolArray]:
        """Shares of verifiers (section 7.3.4), and which test points may be used.

        There are m proofs for each input: all but the inputs have an axis for them, the second.
        """
        circuit, order = self.circuit, self.order
        seeds, polynomials = proofs[..., : circuit.arity], proofs[..., circuit.arity :]
        around = gf.powers(random[..., -1], self._coefficients)
        usable = around[..., order] != 1
        folded = np.zeros((*polynomials.shape[:-1], circuit.degree * order), dtype=np.uint64)
        folded[..., : self._coefficients] = polynomials
        folded = folded.reshape(*polynomials.shape[:-1], circuit.degree, order)
        folded = gf.total(folded, axis=-2)  # modulo xᵖ − 1
        results = gf.transform(folded)[..., 1 : circuit.calls + 1]
        outputs = circuit.check(inputs, results, share)
        if circuit.outputs > 1:
            outputs = gf.dot(outputs, random[..., :-1], axis=-1)[..., None]
        weights = gf.inverse_transform(around[..., :order])  # of the values, at the test point
        wires = circuit.combined(inputs, joint, share, weights[..., 1 : circuit.calls + 1])
        wires = gf.add(wires, gf.mul(seeds, weights[..., :1]))
        gadgets = gf.dot(polynomials, around, axis=-1)[..., None]
        return np.concatenate([outputs, wires, gadgets], axis=-1), usable

    def decide(self, verifiers: WordArray) -> BoolArray:
        """Return which verifiers, put together, are those of valid inputs (section 7.3.5)."""
        right = self.circuit.gadget(verifiers[..., 1:-1]) == verifiers[..., -1]
        return np.asarray((verifiers[..., 0] == 0) & right)


_BASE, _DEGREE = 4, 4
_MOST_WIRES = 76  # which with three proofs are 2 kB that the databases exchange for a vector
_MOST_DIGITS = 15  # so that squares stay below 2⁶³ for NumPy, and 2³² contributors below |F|/2


@dataclass(frozen=True)
class ShortVector:
    """The circuit for vectors of so many `weights` and digits each, with a ceiling T.

    All methods take and return many vectors at a time. Where a vector is shared, the constants of
    affine functions are too: `share` is 1, or ½ for each of two.
    """

    weights: tuple[int, ...]
    digits: int
    ceiling: int
    length: int = field(init=False)
    half: int = field(init=False)  # of a number's range, added so that it has no sign
    norm_digits: int = field(init=False)  # in which the norm is said
    inputs: int = field(init=False)  # elements of an encoded vector
    calls: int = field(init=False)  # of the gadget
    chunk: int = field(init=False)  # digits in one call of the gadget
    arity: int = field(init=False)  # wires of the gadget
    outputs: int = field(init=False, default=1)  # elements that must be zero
    joint: int = field(init=False, default=1)  # elements of joint randomness for each proof
    degree: int = field(init=False, default=_DEGREE)  # of the gadget in its wires

    def __post_init__(self) -> None:
        length, half = len(self.weights), 1 << max(0, 2 * self.digits - 1)
        largest = sum(self.weights) * half**2
        fits = 0 < self.ceiling < gf.MODULUS > largest and self.ceiling % 3 == 0
        if not (0 < self.digits <= _MOST_DIGITS and fits):
            raise InfeasibleError(
                "Expected numbers of at most {most_digits} digits to the base 4 whose norm stays "
                "below 2**64, and they have {digits} and a norm of up to "
                "{largest:.4g}: such vectors cannot be proved to be short. "
                "Propose the agreement without proofs.",
                most_digits=_MOST_DIGITS,
                digits=self.digits,
                largest=max(largest, self.ceiling),
            )
        norm_digits = -(-self.ceiling.bit_length() // 2)
        inputs = length * self.digits + norm_digits
        vars(self).update(length=length, half=half, norm_digits=norm_digits, inputs=inputs)
        # so many calls that the proof is shortest among those with few enough wires
        choices = [(1 << power) - 1 for power in range(2, 2 + inputs.bit_length())]
        few = [calls for calls in choices if self._wires(calls) <= _MOST_WIRES]
        calls = min(few, key=lambda calls: self._wires(calls) + _DEGREE * calls)
        vars(self).update(calls=calls, chunk=-(-inputs // calls), arity=self._wires(calls))

    @cached_property
    def norm_weights(self) -> WordArray:
        """Of the digits in which the norm is said."""
        powers = [_BASE**place for place in range(self.norm_digits - 1)]
        return fixed(np.array([*powers, self.ceiling // 3 - sum(powers)], dtype=np.uint64))

    @cached_property
    def _weights(self) -> WordArray:
        """Of the squares, call by call."""
        weights = np.zeros((self.calls, -(-self.length // self.calls)), dtype=np.uint64)
        weights.reshape(-1)[: self.length] = self.weights
        return fixed(weights)

    def _wires(self, calls: int) -> int:
        """Return how many wires one of so many calls has: two for each digit and each number."""
        return 2 * (-(-self.inputs // calls) - (-self.length // calls))

    def wires(self, inputs: WordArray, joint: WordArray) -> WordArray:
        """Pairs (rⁱ·x, x), and then pairs (w·v, v)."""
        digits, numbers = self._in_chunks(inputs, 1)
        scale = gf.powers(joint[:, 0], 1 + self.calls * self.chunk)[:, 1:]
        scaled = gf.mul(digits, scale.reshape(digits.shape))
        squares = np.stack([gf.mul(numbers, self._weights), numbers], axis=-1)
        pairs = np.concatenate([np.stack([scaled, digits], axis=-1), squares], axis=2)
        return pairs.reshape(len(inputs), self.calls, self.arity)

    def combined(
        self, inputs: WordArray, joint: WordArray, share: int, weights: WordArray
    ) -> WordArray:
        """Return Σ_k weights_k·(wires of the call k), without writing the wires out: (n, m, arity)
        from (n, m, calls), for m proofs of the same input, with joint randomness (n, m, joint).

        The j-th digit of the call k has r^{kC + j + 1}, so its wires are r^{j+1}·Σ_k weights_k·Rᵏ·x
        with R = r^C, and Σ_k weights_k·x.
        """
        digits, numbers = self._in_chunks(inputs, share)
        scale = gf.powers(joint[..., 0], self.chunk + 1)
        scaled = gf.mul(weights, gf.powers(scale[..., -1], self.calls))
        proofs = weights.shape[1]
        found = gf.combine(np.concatenate([scaled, weights], axis=1), gf.limbs(digits))
        squares = np.concatenate([gf.mul(numbers, self._weights), numbers], axis=-1)
        more = gf.combine(weights, gf.limbs(squares))
        wires = np.empty((*weights.shape[:2], self.arity // 2, 2), dtype=np.uint64)
        wires[..., : self.chunk, 0] = gf.mul(found[:, :proofs], scale[..., 1:])
        wires[..., : self.chunk, 1] = found[:, proofs:]
        wires[..., self.chunk :, 0], wires[..., self.chunk :, 1] = np.split(more, 2, axis=-1)
        return wires.reshape(*weights.shape[:2], self.arity)

    def gadget(self, wires: WordArray) -> WordArray:
        """Return Σ y·(x − 1)·(x − 2)·(x − 3) over digits, and Σ y·x over numbers."""
        scaled, plain = wires[..., 0::2], wires[..., 1::2].copy()
        digits = plain[..., : self.chunk]
        one = gf.element(1)
        below = gf.sub(digits, one)
        twice = gf.sub(below, one)
        plain[..., : self.chunk] = gf.mul(gf.mul(below, twice), gf.sub(twice, one))
        return gf.dot(scaled, plain, axis=-1)

    def check(self, inputs: WordArray, results: WordArray, share: int) -> WordArray:  # noqa: ARG002
        """Tell whether all are digits, and the norm is as it is said."""
        said = gf.dot(inputs[:, self.length * self.digits :], self.norm_weights, axis=1)
        return gf.sub(gf.total(results, axis=-1), said[:, None])[..., None]

    def encode(self, vectors: IntArray) -> WordArray:
        """Vectors as inputs; one that is not short is refused."""
        half = self.half
        if vectors.shape[1] != self.length or (vectors < -half).any() or (vectors >= half).any():
            raise InvalidValueError(
                "Expected vectors of {length} whole numbers from {value} to {half}: only "
                "these can be proved to be short.",
                length=self.length,
                value=-half,
                half=half - 1,
            )
        norms = [
            sum(w * v * v for w, v in zip(self.weights, row, strict=True))
            for row in vectors.tolist()
        ]
        if max(norms) > self.ceiling:
            raise InvalidValueError(
                "Expected vectors with a squared norm of at most {ceiling} squared steps, "
                "and one has {norms}: noise as long as this is next to impossible. Blur the "
                "record anew.",
                ceiling=self.ceiling,
                norms=max(norms),
            )
        return np.hstack([self.digits_of(vectors), self._encoded_norms(norms)])

    def digits_of(self, vectors: IntArray) -> WordArray:
        """Return the digits of vectors in range, however long these are."""
        shifted = (vectors + self.half).astype(np.uint64)
        places = 2 * np.arange(self.digits, dtype=np.uint64)
        digits: WordArray = (shifted[:, :, None] >> places) & np.uint64(_BASE - 1)
        return digits.reshape(len(vectors), -1)

    def truncate(self, inputs: WordArray) -> WordArray:
        """Return the (shares of the) numbers, each with half its range added to it."""
        digits = inputs[:, : self.length * self.digits]
        digits = digits.reshape(len(inputs), self.length, self.digits)
        found = digits[..., -1]
        for place in range(self.digits - 2, -1, -1):
            twice = gf.add(found, found)
            found = gf.add(gf.add(twice, twice), digits[..., place])
        return found

    def decode(self, sums: WordArray, count: int) -> IntArray:
        """Return Σv over so many vectors, from the sum of what `truncate` gives for both shares.

        |Σv| ≤ count·4ᵈ/2 < |F|/2 for up to 2³² vectors, so that its sign is known.
        """
        centred = gf.sub(sums, gf.element(count * self.half))
        negative = centred > np.uint64(gf.MODULUS // 2)
        below = (np.uint64(gf.MODULUS) - centred).astype(np.int64)
        return np.where(negative, -below, np.where(negative, 0, centred).astype(np.int64))

    def _in_chunks(self, inputs: WordArray, share: int) -> tuple[WordArray, WordArray]:
        """Return (shares of) the digits and the numbers, call by call, with zeros at the end."""
        digits = np.zeros((len(inputs), self.calls * self.chunk), dtype=np.uint64)
        digits[:, : self.inputs] = inputs
        numbers = np.zeros((len(inputs), self._weights.size), dtype=np.uint64)
        offset = gf.element(share * self.half)
        numbers[:, : self.length] = gf.sub(self.truncate(inputs), offset)
        shape = len(inputs), self.calls, -1
        return digits.reshape(shape), numbers.reshape(shape)

    def _encoded_norms(self, norms: list[int]) -> WordArray:
        """The lower digits say up to 4ᵐ − 1; what is beyond takes as few as can be of the last."""
        last, places = int(self.norm_weights[-1]), range(self.norm_digits - 1)
        most, rows = _BASE ** len(places) - 1, []
        for norm in norms:
            high = max(0, -(-(norm - most) // last))
            rest = norm - high * last
            rows.append([*((rest >> 2 * place) & 3 for place in places), high])
        return np.array(rows, dtype=np.uint64)


# ---- the protocol

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
_HALF = gf.inverse(2)


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
        leader = gf.sub(inputs, shares[0])
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
        first = Halves(leader, gf.sub(proofs, shares[1]), words_of(blinds[LEADER]), parts[HELPER])
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
        valid = own.usable & gf.is_canonical(verifiers)
        together = gf.add(verifiers, own.verifiers)
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
