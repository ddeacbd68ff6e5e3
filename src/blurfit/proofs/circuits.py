"""When a vector of whole numbers is short: its entries within bits, and its norm below a ceiling.

    v_j ∈ [−2ᵇ⁻¹, 2ᵇ⁻¹)  for all j        and        Σ_j w_j·v_j² ≤ T,   w_j public whole weights

The vector is encoded as the bits x of v_j + 2ᵇ⁻¹, number by number, lowest first, and then the norm
itself in bits whose weights are 1, 2, 4, … and for the last one such that all of them together make
T: these can say every number from 0 to T, and none beyond (as in the draft's Sum and
MultihotCountVec, section 7.4). Two outputs must be zero:

    Σ_i rⁱ·x_i·(x_i − 1), i = 1, 2, …            every x is a bit,
    Σ_j w_j·v_j·v_j − (the norm as it is said)   and the norm is what it is said to be.

Both are sums of products, so one gadget, the sum of as many products as a chunk has places, serves
for both. (SumVec of the draft does the same, with another r for each chunk. With one r for all of
them, the wires at the test point are products of matrices, which is many times as fast.)

**That it proves what it says.** If some x is neither 0 nor 1, the first output is a polynomial in
the joint randomness r, of degree at most the number M of inputs and not zero, so it is zero with
probability at most M/|F|. If all are bits, the v_j are whole numbers in their range, and

    Σ_j w_j·2²ᵇ⁻² < |F|    and    T < |F|                                        (no wrap-around)

make both sides of the second output whole numbers from 0 to |F| − 1, which are equal in the field
only if they are equal. The first inequality is checked here, when the circuit is made: that is,
when an agreement is proposed and whenever it is verified.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from blurfit.arrays import IntArray, WordArray
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.proofs import field

_MOST_BITS = 30  # so that squares stay below 2⁶³ for NumPy, and 2³² contributors below |F|/2


def sum_of_products(wires: WordArray) -> WordArray:
    """Of the pairs along the last axis: the gadget ParallelSum(Mul) of the draft."""
    return field.dot(wires[..., 0::2], wires[..., 1::2], axis=-1)


def from_bits(bits: WordArray) -> WordArray:
    """Σ 2ˡ·bits_l along the last axis."""
    found = bits[..., -1]
    for place in range(bits.shape[-1] - 2, -1, -1):
        found = field.add(field.add(found, found), bits[..., place])
    return found


@dataclass(frozen=True)
class ShortVector:
    """The circuit for vectors of `weights.size` numbers of so many bits, with a ceiling T."""

    weights: tuple[int, ...]
    bits: int
    ceiling: int

    def __post_init__(self) -> None:
        largest = sum(self.weights) * 4 ** (self.bits - 1)
        if not (0 < self.bits <= _MOST_BITS and 0 < self.ceiling < field.MODULUS > largest):
            raise InfeasibleError(
                f"Expected numbers of at most {_MOST_BITS} bits whose norm stays below 2**64, and "
                f"they have {self.bits} bits and a norm of up to {min(largest, self.ceiling):.4g}: "
                "such vectors cannot be proved to be short. Propose the agreement without proofs."
            )

    @property
    def length(self) -> int:
        """How many numbers a vector has."""
        return len(self.weights)

    @property
    def norm_bits(self) -> int:
        """In which the norm is said."""
        return self.ceiling.bit_length()

    @property
    def inputs(self) -> int:
        """How many elements an encoded vector has."""
        return self.length * self.bits + self.norm_bits

    @property
    def outputs(self) -> int:
        """What must be zero."""
        return 2

    @cached_property
    def chunk(self) -> int:
        """Products in one call of the gadget, such that proof and verifier are shortest."""

        def least(calls: int) -> int:  # the least chunk with at most so many calls
            chunk = -(-(self.inputs + self.length) // calls)
            while -(-self.inputs // chunk) - (-self.length // chunk) > calls:
                chunk += 1
            return chunk

        orders = [2**power for power in range(2, 2 + self.inputs.bit_length())]
        chunks = [least(order - 1) for order in orders]
        return min(zip(chunks, orders, strict=True), key=lambda one: 2 * one[0] + one[1])[0]

    @property
    def joint(self) -> int:
        """One element of joint randomness."""
        return 1

    @cached_property
    def bit_calls(self) -> int:
        """Of the gadget, for the bits."""
        return -(-self.inputs // self.chunk)

    @cached_property
    def calls(self) -> int:
        """Of the gadget: for the bits, and for the squares."""
        return self.bit_calls - (-self.length // self.chunk)

    @property
    def arity(self) -> int:
        """Of the gadget."""
        return 2 * self.chunk

    def wires(self, inputs: WordArray, joint: WordArray) -> WordArray:
        """Pairs (rⁱ·x, x − 1), and then pairs (w·v, v)."""
        bits, numbers = self._in_chunks(inputs, 1)
        wires = np.empty((len(inputs), self.calls, self.chunk, 2), dtype=np.uint64)
        scale = field.powers(joint[:, 0], 1 + self.bit_calls * self.chunk)[:, 1:]
        wires[:, : self.bit_calls, :, 0] = field.mul(bits, scale.reshape(bits.shape))
        wires[:, : self.bit_calls, :, 1] = field.sub(bits, field.element(1))
        wires[:, self.bit_calls :, :, 0] = field.mul(numbers, self._weights)
        wires[:, self.bit_calls :, :, 1] = numbers
        return wires.reshape(len(inputs), self.calls, self.arity)

    def combined(
        self, inputs: WordArray, joint: WordArray, share: int, weights: WordArray
    ) -> WordArray:
        """Σ_k weights_k·(wires of the call k), without writing the wires out.

        The j-th bit of the chunk k has r^{kC + j + 1}, so its wires are r^{j+1}·Σ_k weights_k·Rᵏ·x
        with R = r^C, and Σ_k weights_k·x less the constants.
        """
        bits, numbers = self._in_chunks(inputs, share)
        for_bits, for_squares = weights[..., : self.bit_calls], weights[..., self.bit_calls :]
        scale = field.powers(joint[..., 0], self.chunk + 1)
        scaled = field.mul(for_bits, field.powers(scale[..., -1], self.bit_calls))
        proofs = weights.shape[1]
        found = field.combine(np.concatenate([scaled, for_bits], axis=1), field.limbs(bits))
        constants = field.mul(field.total(for_bits, axis=-1), field.element(share))
        squares = np.concatenate([field.mul(numbers, self._weights), numbers], axis=-1)
        wires = np.empty((*weights.shape[:2], self.chunk, 2), dtype=np.uint64)
        wires[..., 0] = field.mul(found[:, :proofs], scale[..., 1:])
        wires[..., 1] = field.sub(found[:, proofs:], constants[..., None])
        more = field.combine(for_squares, field.limbs(squares))
        more = np.stack([more[..., : self.chunk], more[..., self.chunk :]], axis=-1)
        return field.add(wires, more).reshape(*weights.shape[:2], self.arity)

    def gadget(self, wires: WordArray) -> WordArray:
        """The sum of the products of pairs."""
        return sum_of_products(wires)

    def check(self, inputs: WordArray, results: WordArray, share: int) -> WordArray:  # noqa: ARG002
        """Whether all are bits, and the norm is as it is said."""
        bits = field.total(results[..., : self.bit_calls], axis=-1)
        norm = field.total(results[..., self.bit_calls :], axis=-1)
        said = field.dot(inputs[:, self.length * self.bits :], self._norm_weights, axis=1)
        return np.stack([bits, field.sub(norm, said[:, None])], axis=-1)

    def encode(self, vectors: IntArray) -> WordArray:
        """Vectors as inputs; one that is not short is refused."""
        half = 2 ** (self.bits - 1)
        if vectors.shape[1] != self.length or (vectors < -half).any() or (vectors >= half).any():
            raise InvalidValueError(
                f"Expected vectors of {self.length} whole numbers from {-half} to {half - 1}: only "
                "these can be proved to be short."
            )
        norms = [
            sum(w * v * v for w, v in zip(self.weights, row, strict=True))
            for row in vectors.tolist()
        ]
        if max(norms) > self.ceiling:
            raise InvalidValueError(
                f"Expected vectors with a squared norm of at most {self.ceiling} squared steps, "
                f"and one has {max(norms)}: noise as long as this is next to impossible. Blur the "
                "record anew."
            )
        shifted = (vectors + half).astype(np.uint64)
        places = np.arange(self.bits, dtype=np.uint64)
        bits = (shifted[:, :, None] >> places) & np.uint64(1)
        return np.hstack([bits.reshape(len(vectors), -1), self._encoded_norms(norms)])

    def truncate(self, inputs: WordArray) -> WordArray:
        """The (shares of the) numbers, each with 2ᵇ⁻¹ added to it."""
        bits = inputs[:, : self.length * self.bits]
        return from_bits(bits.reshape(len(inputs), self.length, self.bits))

    def decode(self, sums: WordArray, count: int) -> IntArray:
        """Σv over so many vectors, from the sum of what `truncate` gives for both shares.

        |Σv| ≤ count·2ᵇ⁻¹ < |F|/2 for up to 2³² vectors, so that its sign is known.
        """
        centred = field.sub(sums, field.element(count << (self.bits - 1)))
        negative = centred > np.uint64(field.MODULUS // 2)
        below = (np.uint64(field.MODULUS) - centred).astype(np.int64)
        return np.where(negative, -below, np.where(negative, 0, centred).astype(np.int64))

    def _in_chunks(self, inputs: WordArray, share: int) -> tuple[WordArray, WordArray]:
        """The (shares of the) bits and of the numbers, chunk by chunk, with zeros at the end."""
        bits = np.zeros((len(inputs), self.bit_calls * self.chunk), dtype=np.uint64)
        bits[:, : self.inputs] = inputs
        numbers = np.zeros((len(inputs), (self.calls - self.bit_calls) * self.chunk), np.uint64)
        offset = field.element(share << (self.bits - 1))
        numbers[:, : self.length] = field.sub(self.truncate(inputs), offset)
        shape = len(inputs), -1, self.chunk
        return bits.reshape(shape), numbers.reshape(shape)

    @cached_property
    def _weights(self) -> WordArray:
        """Of the squares, chunk by chunk."""
        weights = np.zeros((self.calls - self.bit_calls) * self.chunk, dtype=np.uint64)
        weights[: self.length] = self.weights
        return weights.reshape(-1, self.chunk)

    @cached_property
    def _norm_weights(self) -> WordArray:
        powers = [2**place for place in range(self.norm_bits - 1)]
        return np.array([*powers, self.ceiling - sum(powers)], dtype=np.uint64)

    def _encoded_norms(self, norms: list[int]) -> WordArray:
        last = int(self._norm_weights[-1])
        most = 2 ** (self.norm_bits - 1) - 1
        places, rows = range(self.norm_bits - 1), []
        for norm in norms:
            high = norm > most
            rest = norm - last if high else norm
            rows.append([*((rest >> place) & 1 for place in places), int(high)])
        return np.array(rows, dtype=np.uint64)
