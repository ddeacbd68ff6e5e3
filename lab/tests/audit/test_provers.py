"""Whoever lies about what she proves is not believed; and an audit would see it if she were."""

import numpy as np
import pytest

from blurfit.proofs import field
from blurfit.proofs.prio3 import Flp, ShortVector
from blurfit_lab.audit.agreements import false_encodings, lies
from support.proofs import CIRCUIT, DIGITS, WEIGHTS, identifiers, shared, verdicts
from support.sharing import propose

AGREEMENT = propose(proofs=True, quorum=400)


def test_no_lie_is_ever_believed_and_every_honest_proof_is() -> None:
    found = lies(AGREEMENT, tries=3)
    assert len({one.name for one in found}) == len(found) > 20
    assert [one.name for one in found if one.broken] == []
    assert all(one.tries == 3 for one in found)
    told = {"view": "proof", "lie": "nothing, and still not believed"}
    assert found[0].to_dict() == told | {"tries": 3, "believed": 0}


def gadget_without(start: int, stop: int | None, right=ShortVector.gadget):
    """The gadget whose wires between two multiples of its chunk are zero."""

    def gadget(self, wires):
        changed = wires.copy()
        changed[..., start * self.chunk : stop and stop * self.chunk] = 0
        return right(self, changed)

    return gadget


@pytest.mark.parametrize(
    ("what", "name", "broken", "seen"),
    [
        (ShortVector, "gadget", gadget_without(0, 2), "vector, its norm in one element"),
        (ShortVector, "gadget", gadget_without(2, None), "vector, no norm"),
        (Flp, "decide", lambda self, v: v[..., 0] == 0, "vector, no norm, and a proof to fit"),
    ],
    ids=["digits unchecked", "norm unchecked", "gadget unchecked"],
)
def test_a_check_that_is_missing_is_seen(monkeypatch, what, name, broken, seen) -> None:
    monkeypatch.setattr(what, name, broken)
    found = lies(AGREEMENT, tries=2)
    assert f"the longest {seen}" in {one.name for one in found if one.broken}
    assert np.mean([one.broken for one in found]) < 1


def test_a_prover_who_lies_about_the_vector_is_never_believed():
    told = false_encodings(CIRCUIT)
    inputs = np.repeat(np.vstack(list(told.values())), 20, axis=0)
    names = identifiers(len(inputs), seed=5)
    first, second = shared(inputs, names)
    believed = verdicts(first.words(), second, names).reshape(-1, 20).any(axis=1)
    assert [name for name, one in zip(told, believed, strict=True) if one] == []


def test_the_lies_are_lies_and_some_of_them_fit_but_for_one_check():
    """Each encoding is wrong, and the last ones are wrong in one thing alone: so the test above
    sees every check.
    """
    told = false_encodings(CIRCUIT)
    length = len(WEIGHTS) * DIGITS
    for name, inputs in told.items():
        said = int(field.dot(inputs[:, length:], CIRCUIT.norm_weights, 1)[0])
        numbers = field.sub(CIRCUIT.truncate(inputs), field.element(CIRCUIT.half))
        squares = field.mul(numbers, numbers)
        norm = int(field.dot(squares, np.array(WEIGHTS, np.uint64), 1)[0])
        assert (bool((inputs < 4).all()), norm == said) == {
            "the longest vector, the largest norm": (True, False),
            "the longest vector, no norm": (True, False),
            "the longest vector, its norm in one element": (False, True),
            "half a digit, and a norm that fits": (False, True),
        }.get(name, (False, norm == said))
