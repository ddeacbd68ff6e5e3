"""Whoever lies about what she proves is not believed; and an audit would see it if she were."""

import numpy as np
import pytest

from blurfit.audit.agreements import lies
from blurfit.proofs.prio3 import Flp, ShortVector
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
