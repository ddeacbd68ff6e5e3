"""Contributors who lie about what they prove, in every way that we could think of.

Under an agreement with proofs (`blurfit.agreement.numbers`) two databases believe a share if they
find its proof valid. Here provers do all that the protocol asks for but for one thing, and both
databases verify as they really do. Whatever is believed even once breaks the promise: for an honest
implementation the probability is below 2⁻⁴⁰ for everything that is ever tried.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.data import BoolArray, ByteArray, WordArray
from blurfit.proofs import field
from blurfit.proofs.flp import ShortVector
from blurfit.proofs.prio3 import HELPER, LEADER, SEED_BYTES, SEED_WORDS, Prio3, Xof

Change = Callable[[WordArray, WordArray, ByteArray], BoolArray]
TRIES = 64


@dataclass(frozen=True)
class Lie:
    """A way to lie, how often it was tried, and how often it was believed."""

    name: str
    tries: int
    believed: int

    @property
    def broken(self) -> bool:
        """Whether proofs prove less than they should."""
        return self.believed > 0

    def to_dict(self) -> dict[str, str | int]:
        """For JSON."""
        return {"view": "proof", "lie": self.name, "tries": self.tries, "believed": self.believed}


def lies(agreement: Agreement, *, tries: int = TRIES, seed: int = 0) -> list[Lie]:
    """Try each way to lie; of honest proofs, first, count how many were *not* believed."""
    generator = np.random.default_rng(seed)
    prio3 = agreement.proving.prio3
    honest = verdicts(prio3, *shared(prio3, _honest(agreement, tries, generator), generator))
    found = [Lie("nothing, and still not believed", tries, int((~honest).sum()))]
    for name, inputs in false_encodings(agreement.proving.circuit).items():
        several = np.repeat(inputs, tries, axis=0)
        first, second, names = shared(prio3, several, generator)
        found.append(Lie(name, tries, int(verdicts(prio3, first, second, names).sum())))
        first = fitted(prio3, several, first, second)
        believed = verdicts(prio3, first, second, names)
        found.append(Lie(f"{name}, and a proof to fit", tries, int(believed.sum())))
    inputs = _honest(agreement, tries, generator)
    for name, change in _changes(prio3):
        believed = change(*shared(prio3, inputs, generator))
        found.append(Lie(name, tries, int(believed.sum())))
    return found


def shared(
    prio3: Prio3, inputs: WordArray, generator: np.random.Generator
) -> tuple[WordArray, WordArray, ByteArray]:
    """Shares of some inputs, valid or not, with proofs as good as can be; and names for them."""
    names = generator.integers(0, 256, (len(inputs), 16), dtype=np.uint8)
    random = [generator.bytes(4 * SEED_BYTES) for _ in names]
    first, second = prio3.shard(inputs, names, random)
    return first.words(), second, names


def verdicts(
    prio3: Prio3,
    first: WordArray,
    second: WordArray,
    names: ByteArray,
    *,
    others: ByteArray | None = None,
    key: bytes = b"a key that no contributor knows.",
) -> BoolArray:
    """Return what both databases believe; the second may know the shares by other names."""
    leader = prio3.prepare(LEADER, prio3.leader_halves(first), names, key)
    helper = prio3.prepare(
        HELPER, prio3.helper_halves(second), names if others is None else others, key
    )
    valid, answers = prio3.decide(helper, leader.words())
    return np.asarray(valid & prio3.confirm(leader, answers))


def false_encodings(circuit: ShortVector) -> dict[str, WordArray]:
    """Inputs of the circuit that are no short vector's, one row each, by the way in which not."""
    length = circuit.length * circuit.digits
    short = circuit.encode(np.zeros((1, circuit.length), dtype=np.int64))
    places = (("first digit", 0), ("last digit", length - 1), ("digit of the norm", -1))
    found = {
        f"a {what} that is {value}": _with(short, place, value)
        for what, place in places
        for value in (4, -1)
    }
    half = circuit.half
    longest = np.where(np.arange(circuit.length) % 2, -half, half - 1)[None]
    digits = circuit.digits_of(longest)
    said = np.full((1, circuit.norm_digits), 3, dtype=np.uint64)
    found["the longest vector, the largest norm"] = np.hstack([digits, said])
    found["the longest vector, no norm"] = np.hstack([digits, 0 * said])
    true = sum(w * int(v) ** 2 for w, v in zip(circuit.weights, longest[0], strict=True))
    fitting = _with(np.hstack([digits, 0 * said]), length, true)
    found["the longest vector, its norm in one element"] = fitting
    # 1/2 in place of a digit: numbers that wrap around, and a norm that fits in the field
    halved = _with(short, 0, field.inverse(2))
    number = int(circuit.truncate(halved)[0, 0]) - half
    halved[0, length:] = 0
    found["half a digit, and a norm that fits"] = _with(
        halved, length, circuit.weights[0] * number**2
    )
    return found


def _honest(agreement: Agreement, count: int, generator: np.random.Generator) -> WordArray:
    """Inputs that are as long as they may be, in random directions."""
    circuit = agreement.proving.circuit
    directions = generator.normal(size=(count, circuit.length))
    norms = np.sqrt((directions**2 * np.array(circuit.weights)).sum(axis=1))
    lengths = 0.999 * np.sqrt(float(circuit.ceiling)) / norms
    return circuit.encode(np.trunc(directions * lengths[:, None]).astype(np.int64))


def _changes(prio3: Prio3) -> Iterator[tuple[str, Change]]:
    """Ways to change honest shares on their way."""
    proof = prio3.circuit.inputs
    at_first = {
        "share": 0,
        "proof": proof,
        "gadget polynomial": proof + prio3.circuit.arity,
        "blind": -2 * SEED_WORDS,
        "part of the joint randomness": -1,
    }
    at_second = {"seed": 0, "blind": SEED_WORDS, "part of the joint randomness": -1}

    def changed(first_place: int | None, second_place: int | None) -> Change:
        return lambda a, b, n: verdicts(prio3, _moved(a, first_place), _moved(b, second_place), n)

    for what, place in at_first.items():
        yield f"another {what} at the first", changed(place, None)
    for what, place in at_second.items():
        yield f"another {what} at the second", changed(None, place)
    other = Prio3(prio3.circuit, prio3.proofs, Xof(prio3.xof.algorithm, b"another agreement"))
    yield "a proof for another agreement", lambda a, b, n: verdicts(other, a, b, n)
    yield (
        "a proof replayed by somebody else",
        lambda a, b, n: verdicts(prio3, a, b, np.roll(n, 1, 0)),
    )
    yield (
        "shares under different names",
        lambda a, b, n: verdicts(prio3, a, b, n, others=np.roll(n, 1, axis=0)),
    )
    yield (
        "shares of two people mixed up",
        lambda a, b, n: verdicts(prio3, a, np.roll(b, 1, axis=0), n),
    )


def fitted(prio3: Prio3, inputs: WordArray, first: WordArray, second: WordArray) -> WordArray:
    """Return the first's shares with gadget polynomials for which the circuit's output is zero.

    f is lowered by a polynomial h with h(αᵏ) = 0 for all k but one.
    """
    circuit, flp = prio3.circuit, prio3.flp
    assert isinstance(circuit, ShortVector)
    halves = prio3.leader_halves(first)
    joint = prio3.joint_randomness(second[:, -SEED_WORDS:], halves.parts)
    proofs = halves.proofs.reshape(len(first), prio3.proofs, -1).copy()
    for number in range(prio3.proofs):
        results = circuit.gadget(circuit.wires(inputs, joint[:, number]))[:, None]
        outputs = circuit.check(inputs, results, 1)[:, 0]
        values = np.zeros((len(first), flp.order), dtype=np.uint64)
        values[:, [1]] = outputs
        start = circuit.arity
        some = proofs[:, number, start : start + flp.order]
        some[:] = field.sub(some, field.inverse_transform(values))
    changed = first.copy()
    changed[:, circuit.inputs : -2 * SEED_WORDS] = proofs.reshape(len(first), -1)
    return changed


def _with(rows: WordArray, place: int, value: int) -> WordArray:
    """Rows with another element at one place."""
    changed = rows.copy()
    changed[:, place] = field.element(value)
    return changed


def _moved(rows: WordArray, place: int | None) -> WordArray:
    """Rows with one more than there was at one place."""
    if place is None:
        return rows
    changed = rows.copy()
    changed[:, place] = field.add(changed[:, place] % np.uint64(field.MODULUS), field.element(1))
    return changed
