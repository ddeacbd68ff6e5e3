"""Who withdraws is out of the sums, exactly, once, and for good; and nobody after the end."""

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from blurfit import perturb
from blurfit.agreement.plan import Plan
from blurfit.contributor.blur import blur
from blurfit.errors import (
    BelowQuorumError,
    ClosedError,
    ConflictError,
    NotCertifiedError,
    WaveClosedError,
)
from blurfit.messages.submissions import Submissions
from blurfit_server import Store
from blurfit_server.store import arrivals, blocks, database
from blurfit_server.store.arrivals import Withdrawn
from server_support.sharing import counted, opened, send
from server_support.stores import arrival
from support import sharing
from support.proposals import PEOPLE, SCHEMA, propose, totals_of
from support.sharing import marked


def people(agreement, count: int) -> Submissions:
    ages = np.linspace(0, 100, count)
    return blur(agreement, agreement.exact({"age": ages, "income": ages[::-1]}))


def some(table: Submissions, which) -> Submissions:
    return Submissions(table.identifiers[which], table.fingerprint, table.numbers[which])


def test_the_sums_are_those_of_the_others_and_so_is_the_model(agreement, place) -> None:
    sent = people(agreement, 420)
    leaving = np.zeros(420, dtype=np.bool_)
    leaving[[0, 7, 150, 299, 310, 419]] = True
    leaving[120:130] = True
    with Store(place) as store, Store() as without:
        store.open(agreement)
        collection = store.collection(agreement.fingerprint)
        store.receive(collection, [arrival(some(sent, slice(0, 120)))])  # a block of its own
        store.receive(collection, [arrival(some(sent, slice(120, 130)))])  # of which nobody stays
        for start in range(130, 420, 29):
            store.receive(collection, [arrival(some(sent, slice(start, start + 29)))])
        before = store.count(agreement)
        store.write(blocks.put_together, collection)
        found = store.withdraw(collection, sent.identifiers[leaving][:9])
        assert found == Withdrawn(9, 9)
        found = store.withdraw(collection, sent.identifiers[leaving])
        assert found == Withdrawn(16, 7), "to withdraw again is safe"
        assert before - store.status(agreement.fingerprint).count == 16
        totals = store.read(blocks.totals, collection)
        expected = totals_of(agreement, some(sent, ~leaving))
        assert totals.count == expected.count == 404
        assert np.array_equal(totals.sums, expected.sums)
        assert sum(come for _, come in store.history(agreement.fingerprint)) == 404
        without.add(agreement, some(sent, ~leaving))
        assert store.publish(agreement).to_json() == without.publish(agreement).to_json()


def test_what_was_moved_meanwhile_is_found_though_others_have_its_old_key(place) -> None:
    agreement, other = propose(), propose(epsilon=99)
    sent = people(agreement, 4)
    with Store(place) as store:
        store.open(agreement)
        collection = store.collection(agreement.fingerprint)
        for one in range(4):
            store.receive(collection, [arrival(some(sent, slice(one, one + 1)))])
        found = store.read(arrivals.where, collection, sent.identifiers[3:])
        store.write(blocks.put_together, collection)
        for _ in range(3):
            store.add(other, perturb(other, {"age": 5, "income": 6}))
        assert store.write(arrivals.remove, collection, found) == 0
        assert store.withdraw(collection, sent.identifiers[3:]) == Withdrawn(1, 1)
        assert (store.count(agreement), store.count(other)) == (3, 3)


def test_nobody_comes_back_and_nobody_leaves_late(place, monkeypatch) -> None:
    agreement = propose(quorum=38)
    sent = perturb(agreement, PEOPLE)
    with Store(place) as store:
        store.add(agreement, sent)
        collection = store.collection(agreement.fingerprint)
        stranger = np.full((1, 16), 7, dtype=np.uint8)
        both = np.concatenate([sent.identifiers[:1], stranger])
        assert store.withdraw(collection, both) == Withdrawn(1, 1, (stranger.tobytes(),))
        for again in (some(sent, slice(0, 1)), sent):  # the same numbers, and a batch with them
            (refused,) = store.receive(collection, [arrival(again)])
            assert isinstance(refused, ConflictError)
        with pytest.raises(ConflictError, match="withdrawn"):  # told beside the writer
            store.is_known(collection, arrival(sent))
        (known,) = store.receive(collection, [arrival(some(sent, slice(1, None)))])
        assert known == 0, "the others are acknowledged as ever"
        assert store.is_known(collection, arrival(some(sent, slice(1, None))))
        other_blur = Submissions(sent.identifiers[:1], sent.fingerprint, sent.numbers[1:2])
        (refused,) = store.receive(collection, [arrival(other_blur)])
        assert isinstance(refused, ConflictError)
        assert store.withdraw(collection, sent.identifiers[1:3]).new == 2
        with pytest.raises(BelowQuorumError):  # 37: the quorum counts who is there
            store.publish(agreement)
        store.close_collection(agreement.fingerprint)
        with pytest.raises(ClosedError, match="is fixed"):
            store.withdraw(collection, sent.identifiers[3:5])
        with monkeypatch.context() as patch:
            patch.setattr(arrivals.blocks, "holding", lambda *_: 1 / 0)
            with pytest.raises(ClosedError):  # and without a search
                store.read(arrivals.where, collection, sent.identifiers[3:5])
        assert store.withdraw(collection, sent.identifiers[:3]) == Withdrawn(3, 0)
        assert store.status(agreement.fingerprint).count == 37


def test_one_of_withdrawal_and_publication_comes_first(place) -> None:
    agreement = propose(quorum=20)
    sent = perturb(agreement, PEOPLE)
    with Store(place) as one, Store(place) as other:
        one.add(agreement, sent)
        collection = other.collection(agreement.fingerprint)
        found: list[object] = []

        def leave() -> None:
            for row in range(4):
                try:
                    found.append(other.withdraw(collection, sent.identifiers[row : row + 1]).new)
                except ClosedError as error:
                    found.append(error)

        leaving = threading.Thread(target=leave)
        leaving.start()
        model = one.publish(agreement)
        leaving.join()
        assert len(found) == 4
        left = sum(isinstance(new, int) for new in found)
        assert found[:left] == [1] * left, "none after the first that was refused"
        assert model.count == 40 - left
        assert one.read(blocks.totals, collection).count == 40 - left


def test_two_who_withdraw_the_same_at_once_find_no_damage(place, monkeypatch) -> None:
    """Of one store by several services: between two statements of one the other is done."""
    agreement = propose()
    sent = perturb(agreement, PEOPLE)
    with Store(place) as one, Store(place) as other:
        one.add(agreement, sent)
        collection = one.collection(agreement.fingerprint)
        names, search = sent.identifiers[:3], blocks.holding

        def late(*given):
            monkeypatch.setattr(arrivals.blocks, "holding", search)
            assert other.withdraw(collection, names[:2]) == Withdrawn(2, 2)
            return search(*given)

        monkeypatch.setattr(arrivals.blocks, "holding", late)
        assert one.withdraw(collection, names) == Withdrawn(3, 1)
        assert one.read(blocks.totals, collection).count == 37


def test_rows_that_are_lost_are_damage(place) -> None:
    agreement = propose()
    sent = perturb(agreement, PEOPLE)
    with Store(place) as store:
        store.add(agreement, sent)
        collection = store.collection(agreement.fingerprint)
        store.write(lambda connection: connection.execute(sa.delete(database.blocks)))
        with pytest.raises(NotCertifiedError, match="3 are not there"):
            store.withdraw(collection, sent.identifiers[:3])


def test_killed_in_the_middle_nothing_has_happened(monkeypatch) -> None:
    agreement = propose()
    sent = perturb(agreement, PEOPLE)
    with Store() as store:
        store.add(agreement, sent)
        collection = store.collection(agreement.fingerprint)
        before = store.read(blocks.totals, collection)
        with monkeypatch.context() as patch:
            patch.setattr(arrivals.blocks, "withdraw_identifiers", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                store.withdraw(collection, sent.identifiers[:5])
        after = store.read(blocks.totals, collection)
        assert after.count == before.count
        assert np.array_equal(after.sums, before.sums)
        assert store.withdraw(collection, sent.identifiers[:5]).new == 5


@pytest.fixture
def scattered():
    """Twenty people in as many blocks, of whom five are in each transaction."""
    agreement = propose(quorum=5)
    sent = people(agreement, 20)
    with Store() as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrivals, "BLOCKS_AT_ONCE", 5)
        store.open(agreement)
        collection = store.collection(agreement.fingerprint)
        for row in range(20):
            store.receive(collection, [arrival(some(sent, slice(row, row + 1)))])
        yield store, collection, sent


def whole(store: Store, collection, sent: Submissions) -> set[int]:
    """Who is left: those in the blocks, whose sums are theirs, and those not written down as
    withdrawn are the same.
    """
    found = store.read(blocks.totals, collection)
    out = store.read(
        blocks.withdrawn_among, collection.key, [one.tobytes() for one in sent.identifiers]
    )
    left = [row for row, one in enumerate(sent.identifiers) if one.tobytes() not in out]
    expected = totals_of(collection.agreement, some(sent, left))
    assert (found.count, found.sums.tolist()) == (len(left), expected.sums.tolist())
    return set(left)


@pytest.mark.parametrize("turn", range(3))
def test_killed_between_any_two_transactions_the_same_is_asked_again(
    scattered, turn, monkeypatch
) -> None:
    store, collection, sent = scattered
    turns, write = iter(range(9)), store.write

    def killed(what, *given) -> int:
        done = write(what, *given)
        if next(turns) == turn:
            raise KeyboardInterrupt
        return done

    names = sent.identifiers[:15]
    with monkeypatch.context() as patch:
        patch.setattr(store, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            store.withdraw(collection, names)
    assert len(whole(store, collection, sent)) == 20 - 5 * (turn + 1)
    assert store.withdraw(collection, names) == Withdrawn(15, 15 - 5 * (turn + 1))
    assert whole(store, collection, sent) == set(range(15, 20))


def test_a_collection_that_closes_in_between_keeps_the_others(scattered, monkeypatch) -> None:
    """Whoever asked is told who is out, and who stays; so is whoever asks again."""
    store, collection, sent = scattered
    write = store.write

    def closing(what, *given) -> int:
        monkeypatch.undo()
        done = write(what, *given)
        store.close_collection(collection.fingerprint)
        return done

    monkeypatch.setattr(store, "write", closing)
    names = sent.identifiers[:12]
    found = store.withdraw(collection, names)
    assert (found.withdrawn, found.new, len(found.staying)) == (5, 5, 7)
    left = whole(store, collection, sent)
    assert {sent.identifiers[row].tobytes() for row in left if row < 12} == set(found.staying)
    assert store.withdraw(collection, names) == replace(found, new=0)
    with pytest.raises(ClosedError):
        store.withdraw(collection, sent.identifiers[12:])


def test_the_row_is_overwritten(in_memory: Path) -> None:
    agreement = propose()
    sent = people(agreement, 600)
    path = in_memory / "collection.db"
    with Store(path) as store:
        store.add(agreement, sent)
        collection = store.collection(agreement.fingerprint)
        store.withdraw(collection, sent.identifiers[100:101])
    held = path.read_bytes()
    assert sent.numbers[99].tobytes() in held
    assert sent.numbers[100].tobytes() not in held


@pytest.mark.parametrize("where", ["first", "second", "both"])
def test_of_two_databases_one_is_enough(where) -> None:
    agreement = sharing.new_agreement()
    with Store() as first, Store() as second:
        peer = opened(agreement, first, second)
        send(agreement, first, second, *range(6))
        names = marked(agreement, 2, 4).first.identifiers
        for role, store in (("first", first), ("second", second)):
            collection = store.collection(agreement.fingerprint)
            if where in (role, "both"):
                assert store.withdraw(collection, names) == Withdrawn(2, 2)
        second.close_collection(agreement.fingerprint)
        if where == "first":  # the second has told whom it holds: it cannot forget any more
            with pytest.raises(ClosedError):
                second.withdraw(second.collection(agreement.fingerprint), names)
        first.publish_text(agreement.fingerprint, peer)
        assert counted(first, agreement) == counted(second, agreement) == {0, 1, 3, 5}
        with pytest.raises(ClosedError):
            first.withdraw(
                first.collection(agreement.fingerprint),
                marked(agreement, 0).first.identifiers,
            )


def test_a_wave_that_was_released_keeps_its_people() -> None:
    promise = {"epsilon": 100, "delta": 1e-6, "quorum": 40, "admission": "anyone"}
    plan = Plan.propose(SCHEMA, waves=2, **promise)
    wave = plan.first()
    sent = people(wave, wave.quorum + 1)
    with Store() as store:
        store.open(plan)
        collection = store.collection(wave.fingerprint)
        store.receive(collection, [arrival(some(sent, slice(0, wave.quorum)))])
        assert store.withdraw(collection, sent.identifiers[:1]).new == 1
        store.advance(plan.fingerprint)
        store.receive(collection, [arrival(some(sent, slice(wave.quorum, None)))])
        store.advance(plan.fingerprint)
        with pytest.raises(WaveClosedError, match="published"):
            store.withdraw(collection, sent.identifiers[1:2])
        assert store.moments(wave).count == wave.quorum
