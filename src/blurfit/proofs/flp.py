"""Fully linear proofs: FlpBBCGGI19 of the VDAF draft (section 7.3), for many inputs at a time.

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
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from blurfit.arrays import BoolArray, WordArray
from blurfit.proofs import field


class Circuit(Protocol):
    """When a vector of `inputs` elements is valid; all methods take and return many at a time.

    `joint` elements of joint randomness go into each proof; `outputs` elements must be zero. Where
    a vector is shared, the constants of affine functions are too: `share` is 1, or ½ for each of
    two.
    """

    @property
    def inputs(self) -> int:
        """How many elements a vector has."""

    @property
    def joint(self) -> int:
        """How many elements of joint randomness."""

    @property
    def calls(self) -> int:
        """Of the gadget."""

    @property
    def arity(self) -> int:
        """How many wires the gadget has."""

    @property
    def degree(self) -> int:
        """Of the gadget, as a polynomial in its wires."""

    @property
    def outputs(self) -> int:
        """How many elements must be zero."""

    def wires(self, inputs: WordArray, joint: WordArray) -> WordArray:
        """What goes into the gadget: (n, calls, arity) from (n, inputs) and (n, joint)."""

    def combined(
        self, inputs: WordArray, joint: WordArray, share: int, weights: WordArray
    ) -> WordArray:
        """The wires' sums over the calls, weighted: (n, m, arity) from (n, m, calls), for m proofs
        of the same input, with joint randomness (n, m, joint).
        """

    def gadget(self, wires: WordArray) -> WordArray:
        """The gadget of what is along the last axis."""

    def check(self, inputs: WordArray, results: WordArray, share: int) -> WordArray:
        """The outputs (n, m, outputs), from inputs and the gadget's results (n, m, calls)."""


@dataclass(frozen=True)
class Flp:
    """Proofs for one circuit."""

    circuit: Circuit

    @cached_property
    def order(self) -> int:
        """p."""
        return 1 << self.circuit.calls.bit_length()

    @property
    def _coefficients(self) -> int:
        """Of the gadget polynomial."""
        return self.circuit.degree * (self.order - 1) + 1

    @property
    def prove_random(self) -> int:
        """How many random elements a prover needs."""
        return self.circuit.arity

    @property
    def query_random(self) -> int:
        """How many random elements those who verify need."""
        return 1 + (self.circuit.outputs if self.circuit.outputs > 1 else 0)

    @property
    def proof_length(self) -> int:
        """Of a proof, in elements."""
        return self.circuit.arity + self._coefficients

    @property
    def verifier_length(self) -> int:
        """Of a verifier, in elements."""
        return 1 + self.circuit.arity + 1

    def prove(self, inputs: WordArray, random: WordArray, joint: WordArray) -> WordArray:
        """The proofs for some inputs, one each (draft, section 7.3.3)."""
        circuit, order = self.circuit, self.order
        values = np.zeros((len(inputs), circuit.arity, order), dtype=np.uint64)
        values[:, :, 0] = random
        values[:, :, 1 : circuit.calls + 1] = np.swapaxes(circuit.wires(inputs, joint), 1, 2)
        points = 1 << (self._coefficients - 1).bit_length()
        wires = np.zeros((len(inputs), circuit.arity, points), dtype=np.uint64)
        wires[:, :, :order] = field.inverse_transform(values)
        gadgets = circuit.gadget(np.swapaxes(field.transform(wires), 1, 2))
        return np.hstack([random, field.inverse_transform(gadgets)[:, : self._coefficients]])

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
        around = field.powers(random[..., -1], self._coefficients)
        usable = around[..., order] != 1
        folded = np.zeros((*polynomials.shape[:-1], circuit.degree * order), dtype=np.uint64)
        folded[..., : self._coefficients] = polynomials
        folded = folded.reshape(*polynomials.shape[:-1], circuit.degree, order)
        folded = field.total(folded, axis=-2)  # modulo xᵖ − 1
        results = field.transform(folded)[..., 1 : circuit.calls + 1]
        outputs = circuit.check(inputs, results, share)
        if circuit.outputs > 1:
            outputs = field.dot(outputs, random[..., :-1], axis=-1)[..., None]
        weights = field.inverse_transform(around[..., :order])  # of the values, at the test point
        wires = circuit.combined(inputs, joint, share, weights[..., 1 : circuit.calls + 1])
        wires = field.add(wires, field.mul(seeds, weights[..., :1]))
        gadgets = field.dot(polynomials, around, axis=-1)[..., None]
        return np.concatenate([outputs, wires, gadgets], axis=-1), usable

    def decide(self, verifiers: WordArray) -> BoolArray:
        """Which verifiers, put together, are those of valid inputs (section 7.3.5)."""
        right = self.circuit.gadget(verifiers[..., 1:-1]) == verifiers[..., -1]
        return np.asarray((verifiers[..., 0] == 0) & right)
