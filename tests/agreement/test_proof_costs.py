"""What proofs cost is what the messages have, and is said in a sentence."""

import pytest

from blurfit.agreement.numbers import ProofCosts
from blurfit.contributor.blur import share
from blurfit.proofs.prio3 import LEADER
from support.sharing import propose

AGREEMENT = propose(proofs=True, quorum=400)


def test_bytes_are_those_of_the_messages() -> None:
    found = ProofCosts.of(AGREEMENT)
    shared, prio3 = share(AGREEMENT, {"age": 40, "income": 50}), AGREEMENT.proving.prio3
    assert found.upload == len(shared.first.to_bytes()) > found.without
    halves = prio3.leader_halves(shared.first.words)
    prepared = prio3.prepare(LEADER, halves, shared.first.identifiers, b"k" * 32)
    answer = 32
    assert found.exchanged == 16 + prepared.words().nbytes + answer
    assert found.people == 400
    assert f"{found.upload:,} bytes instead of {found.without:,}" in found.in_words()


@pytest.mark.parametrize(
    ("people", "words"),
    [(1, "about a second"), (10**6, "48 seconds"), (3 * 10**6, "2 minutes"), (10**8, "1 hour ")],
)
def test_the_time_is_said_in_whole_units(people, words) -> None:
    assert words in ProofCosts.of(AGREEMENT, people).in_words()
