"""Two databases verify proofs, leave out whoever lies, and publish what the others sent."""

import numpy as np
import pytest

from blurfit.errors import BelowQuorumError, InfeasibleError, InvalidValueError
from blurfit.messages.submissions import Shares
from blurfit.proofs import field
from blurfit.protocol import RequestError
from blurfit_server.service.peers import judge, verify
from blurfit_server.store import blocks, joint, release
from blurfit_server.store.joint import judged
from blurfit_server.store.store import Store
from server_support.sharing import KEY, arrival, counted, opened
from support.sharing import identifier_of, marked, new_agreement

AGREEMENT = new_agreement(proofs=True)
MARK = AGREEMENT.fingerprint
VERIFIER = AGREEMENT.proving.prio3.verifier_words


@pytest.fixture
def two():
    with Store() as first, Store() as second:
        yield first, second, opened(AGREEMENT, first, second)


def receive(store, shares) -> None:
    (outcome,) = store.receive(store.collection(MARK), [arrival(shares)])
    assert outcome == len(shares)


def flipped(*places):
    """One bit of a share, for each of some (row, word)."""

    def change(shares):
        words = shares.words.copy()
        for row, place in places:
            words[row, place] ^= np.uint64(1)
        return Shares(shares.identifiers, words, shares.layout)

    return change


AS_IT_WAS = flipped()


def collected(two, in_first=AS_IT_WAS, in_second=AS_IT_WAS, senders=range(8)):
    """Both have the shares of some contributors, which were changed on their way."""
    first, second, peer = two
    shared = marked(AGREEMENT, *senders)
    receive(first, in_first(shared.first))
    receive(second, in_second(shared.second))
    second.close_collection(MARK)
    return first, second, peer


def believed(first, peer) -> set[int]:
    """Whom the first database believes once both have verified."""
    collection = first.collection(MARK)
    peer.verify(collection, peer.identifiers(collection))
    found = {one.tobytes() for one in first.read(joint.judged, collection, valid=True)}
    return {sender for sender in range(8) if identifier_of(sender) in found}


def fixed_with(first, fingerprint, names):
    """The common set that the first database fixes, and whom the second leaves out."""
    wave = first.collection(fingerprint)
    return first.write(release.fix_with_the_other, wave, names, end=True)[1:]


def answers(second, names):
    """What the second says to a half of nothing but zeros."""
    words = np.zeros((len(names), VERIFIER), np.uint64)
    return judge(second, second.collection(MARK), names, words, KEY)


def test_a_flipped_bit_leaves_one_contributor_out_and_ends_nothing(two) -> None:
    first, second, peer = collected(two, flipped((3, 2)))
    first.publish_text(MARK, peer)
    assert counted(first, AGREEMENT) == counted(second, AGREEMENT) == set(range(8)) - {3}
    assert first.moments_text(MARK) == second.moments_text(MARK)


def test_with_noise_of_their_own_too_both_publish_one_set_once() -> None:
    """Sums in the field, each with noise of its database: what comes out is the true sum and as
    much noise as the agreement says, which is drawn once.
    """
    agreement = new_agreement(proofs=True, database_noise=True)
    mark = agreement.fingerprint
    with Store() as first, Store() as second:
        peer = opened(agreement, first, second)
        shared = marked(agreement, *range(8))
        for store, shares in ((first, flipped((3, 2))(shared.first)), (second, shared.second)):
            assert store.receive(store.collection(mark), [arrival(shares)]) == [8]
        second.close_collection(mark)
        first.publish_text(mark, peer)
        found = first.moments_text(mark)
        assert found == second.moments_text(mark)
        first.publish_text(mark, peer)
        assert first.moments_text(mark) == found
        moments = first.moments(agreement)
        (part,) = agreement.parts
        # the steps of those who were believed, from both of their shares
        prio3, circuit = agreement.proving.prio3, agreement.proving.circuit
        kept = np.arange(8) != 3
        halves = shared.first.words[kept][:, : circuit.inputs], shared.second.words[kept]
        inputs = field.add(halves[0], prio3.helper_inputs(halves[1]))
        exact = (circuit.truncate(inputs).astype(np.int64) - circuit.half).sum(axis=0)
        noise = [
            store.read(joint.recorded, store.collection(mark)).noise for store in (first, second)
        ]
        added = sum(one.view(np.int64) for one in noise)
        assert all(one.any() for one in noise)
        assert moments.count == 7
        assert np.array_equal(np.asarray(moments.sums) / part.step, exact + added)


def test_wherever_a_share_was_changed_its_contributor_alone_is_left_out(two) -> None:
    changes = (0, 0), (1, 7), (2, -20), (3, -5), (4, -1)  # bits, proof, blind and part
    first, _, peer = collected(two, flipped(*changes), flipped((5, 0), (6, 5), (7, 9)))
    assert believed(first, peer) == set()


def test_shares_that_were_mixed_up_are_left_out(two) -> None:
    def mixed(shares):
        words = shares.words.copy()
        words[[1, 2]] = words[[2, 1]]
        return Shares(shares.identifiers, words, shares.layout)

    first, _, peer = collected(two, in_second=mixed)
    assert believed(first, peer) == set(range(8)) - {1, 2}


def test_words_that_are_no_elements_of_the_field_are_garbage(two) -> None:
    def overflowing(shares):
        words = shares.words.copy()
        words[5, 0] = words[6] = 2**64 - 1
        return Shares(shares.identifiers, words, shares.layout)

    first, _, peer = collected(two, overflowing)
    assert believed(first, peer) == set(range(8)) - {5, 6}


@pytest.mark.parametrize("garbage", [1, 5])
def test_where_anyone_may_come_garbage_never_ends_a_collection(two, garbage) -> None:
    first, _, peer = collected(two, flipped(*((row, row) for row in range(garbage))))
    assert believed(first, peer) == set(range(garbage, 8))
    chosen, left_out = fixed_with(first, MARK, peer.identifiers(first.collection(MARK)))
    assert (chosen.count, len(left_out)) == (8 - garbage, garbage)


@pytest.mark.parametrize(
    ("garbage", "terms", "fixed"),
    [
        (1, {}, True),
        (2, {}, False),  # more could be honest people, whom the other database wants to be rid of
        (2, {"quorum": 2}, True),  # eight remain: three quorums of them may be invented
        (3, {"quorum": 2}, False),
        (7, {"database_noise": True}, True),  # then nobody else is needed
        (7, {"admission": "anyone"}, True),  # and here nothing would help
    ],
)
def test_where_people_are_invited_a_tenth_may_fail_or_all_but_enough(garbage, terms, fixed) -> None:
    agreement = new_agreement(**{"proofs": True, "admission": "invited", **terms})
    with Store() as first, Store() as second:
        opened(agreement, first, second)
        names = np.arange(160, dtype=np.uint8).reshape(10, 16)
        collection = first.collection(agreement.fingerprint)
        words = np.zeros((10, agreement.proving.widths[0]), np.uint64)
        first.write(blocks.append, collection, names, words)
        first.write(blocks.take_identifiers, collection.key, names)
        good = np.arange(10) >= garbage
        first.record_verdicts(collection, names, good)
        if fixed:
            chosen, left_out = fixed_with(first, agreement.fingerprint, names)
            assert (chosen.count, len(left_out)) == (10 - garbage, garbage)
            return
        with pytest.raises(InfeasibleError, match=f"and {garbage} failed and"):
            fixed_with(first, agreement.fingerprint, names)
        assert first.read(joint.recorded, collection) is None


def test_below_the_quorum_of_those_who_prove_nothing_is_published(two) -> None:
    first, _, peer = collected(two, flipped((0, 0)), senders=range(3))
    with pytest.raises(BelowQuorumError, match="there are 2"):
        first.publish_text(MARK, peer)


def test_a_verdict_stays_whoever_asks_again(two) -> None:
    first, second, peer = collected(two)
    lied = np.frombuffer(identifier_of(4), np.uint8)[None]
    assert not answers(second, lied).any()
    assert believed(first, peer) == set(range(8)) - {4}
    assert len(second.read(joint.judged, second.collection(MARK), valid=True)) == 7


def test_a_set_of_people_who_proved_nothing_here_is_refused_by_the_second(two) -> None:
    first, _, peer = collected(two)
    names = peer.identifiers(first.collection(MARK))
    first.record_verdicts(first.collection(MARK), names, np.ones(8, dtype=bool))
    with pytest.raises(InvalidValueError, match="8 of 8 have not"):
        first.publish_text(MARK, peer)


def test_an_unknown_contributor_has_no_answer(two) -> None:
    _, second, _ = collected(two)
    unknown = np.full((2, 16), 7, np.uint8)
    assert not answers(second, unknown).any()
    assert len(second.read(judged, second.collection(MARK))) == 0


def test_nothing_is_verified_before_the_second_has_closed(two) -> None:
    with pytest.raises(InfeasibleError, match="closed"):
        answers(two[1], np.zeros((1, 16), np.uint8))


def test_what_is_broken_off_goes_on_where_it_was(two, monkeypatch) -> None:
    monkeypatch.setattr("blurfit_server.service.peers.BATCH", 3)
    first, second, peer = collected(two)
    collection, there, asked = first.collection(MARK), second.collection(MARK), []

    def breaking(names, words):
        asked.append(len(names))
        if len(asked) == 2:
            raise ConnectionResetError  # killed, or the line is cut
        return judge(second, there, names, words, KEY)

    theirs = peer.identifiers(collection)
    with pytest.raises(RequestError, match="8 are still to be"):
        verify(first, collection, breaking, theirs, KEY, seconds=-1)
    with pytest.raises(ConnectionResetError):
        verify(first, collection, breaking, theirs, KEY)
    assert len(first.read(judged, collection)) == 3
    for _ in range(2):
        verify(first, collection, breaking, theirs, KEY)
        assert asked == [3, 3, 3, 2]
    assert len(first.read(joint.judged, collection, valid=True)) == 8
