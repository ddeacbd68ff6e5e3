"""Prove that a shared vector is short: fully linear proofs, and the circuit that says it.

**The proof system.** Fully linear proofs: FlpBBCGGI19 of the VDAF draft (section 7.3), for many
inputs at a time.

A circuit says when a vector x is valid: it feeds affine functions of x into a *gadget* of degree
D, `calls` times, and x is valid if certain affine functions of the results are zero. Let α be a
root of unity of order p, a power of two above `calls`. For each of the gadget's wires the prover
takes the polynomial through (α⁰, a random seed), (α¹, its value in the first call), …, and zeros up
to αᵖ⁻¹; the *gadget polynomial* f, of degree D(p − 1), is the gadget of these polynomials, so that
f(αᵏ) is its k-th result. The proof is the seeds and the coefficients of f.

Whoever has a share of x and a share of the proof can compute, by additions alone, a share of

    v, the outputs of the circuit with f(αᵏ) for the results, in a random combination
    w(t), the wire polynomials at a random point t
    f(t).

The sum of the shares is accepted if v = 0 and the gadget of w(t) is f(t).

**Completeness** is 1. **Soundness** (for given joint randomness): if f is not the gadget of the
wires, the two differ as polynomials of degree D(p − 1), and agree at t with probability at most
D(p − 1)/(|F| − p), since t is no root of unity; if it is, v is a random combination of outputs of
which one is not zero, and is zero with probability at most 1/|F|. **Zero knowledge**: each wire
polynomial has a random seed, whose weight at t, (tᵖ − 1)/(p(t − 1)), is not zero as t is no root of
unity; so w(t) is uniform, f(t) follows from it, and v is 0. A test point that is a root of unity is
refused. A second test point for one and the same proof would tell more: there must never be one.

**The circuit.** When a vector of whole numbers is short: its entries in range, and its norm below a
ceiling.

    v_j ∈ [−4ᵈ/2, 4ᵈ/2)  for all j        and        Σ_j w_j·v_j² ≤ T,   w_j public whole weights

The vector is encoded as d digits x ∈ {0, 1, 2, 3} of each v_j + 4ᵈ/2, number by number, lowest
first, and then the norm itself in digits whose weights are 1, 4, 16, … and for the last one such
that all of them together make T: these can say every number from 0 to T, and none beyond (as in
the draft's Sum and MultihotCountVec, section 7.4, for bits). T is a multiple of three, so that the
last weight is whole. One output must be zero, with joint randomness r:

    (Σ_j w_j·v_j·v_j − the norm as it is said)  +  Σ_i rⁱ·x_i·(x_i − 1)·(x_i − 2)·(x_i − 3), i ≥ 1.

It is a sum over pairs (rⁱ·x, x) and (w·v, v) of polynomials of degree four and two, so that one
gadget that takes some of each serves for all of it. (SumVec of the draft is like it with bits; a
digit costs no more. With one r for all calls, the wires at the test point are products of matrices,
which is many times as fast.)

**That it proves what it says.** The output is a polynomial in r, of degree at most the number M of
inputs, whose coefficients are zero only if every x is a digit and the norm is what it is said to
be in the field: else it is zero with probability at most M/|F|. If they are zero, the v_j are whole
numbers in their range, and

    Σ_j w_j·4²ᵈ/4 < |F|    and    T < |F|                                        (no wrap-around)

make both sides of the norm whole numbers from 0 to |F| − 1, which are equal in the field only if
they are equal. The inequalities are checked here, when the circuit is made: that is, when an
agreement is proposed and whenever it is verified.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from blurfit.data import BoolArray, IntArray, WordArray, fixed
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.proofs import field as gf


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
        self,
        inputs: WordArray,
        proofs: WordArray,
        random: WordArray,
        joint: WordArray,
        share: int,
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
                f"Expected numbers of at most {_MOST_DIGITS} digits to the base 4 whose norm stays "
                f"below 2**64, and they have {self.digits} and a norm of up to "
                f"{max(largest, self.ceiling):.4g}: such vectors cannot be proved to be short. "
                "Propose the agreement without proofs."
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

        The j-th digit of the call k has r^{kC + j + 1}, so its wires are
        r^{j+1}·Σ_k weights_k·Rᵏ·x with R = r^C, and Σ_k weights_k·x.
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
