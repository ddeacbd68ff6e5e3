"""Counted once, kept, all or nothing, and one model: on SQLite and on PostgreSQL."""

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa

from blurfit import InvalidValueError, NotInvitedError
from blurfit.agreement.agreement import Agreement
from blurfit.contributor.blur import perturb, perturb_table
from blurfit.messages.submissions import Submission, Submissions
from blurfit.protocol import hashed, new_token
from blurfit_server.store import arrivals, blocks
from blurfit_server.store.arrivals import Arrival, Group, receive_new
from blurfit_server.store.collections import taking
from blurfit_server.store.store import Store
from server_support.stores import arrival as arrival_of
from support.proposals import propose

PEOPLE = {"age": np.linspace(0, 100, 40), "income": np.linspace(0, 100, 40)}


def people(count: int) -> dict:
    return {name: values[:count] for name, values in PEOPLE.items()}


def arrival(batch: Submissions, *invitations: str) -> Arrival:
    return arrival_of(batch, [hashed(one) for one in invitations])


def changed(one: Submission, agreement: Agreement) -> Submission:
    """The same identifier with other numbers, such as an honest contributor could have sent."""
    other = one.numbers + agreement.step * (np.arange(agreement.width) == 0)
    return Submission(one.identifier, one.fingerprint, other)


@pytest.mark.parametrize("invited", [False, True])
@pytest.mark.parametrize("closed", [False, True])
def test_a_known_identifier_is_answered_alike_whatever_its_numbers_are(
    agreement, place, invited, closed
) -> None:
    """Equal or not, alone or among others, before closing and after: else guesses can be tested."""
    agreement = replace(agreement, admission="invited" if invited else "anyone")
    batch = perturb_table(agreement, people(5))
    one = next(iter(batch))
    tokens = [f"invitation {n}" for n in range(5)] if invited else []
    with Store(place) as kept:
        kept.open(agreement)
        if invited:
            kept.invite(agreement.fingerprint, [hashed(one) for one in tokens])
        assert kept.receive(kept.collection(agreement.fingerprint), [arrival(batch, *tokens)]) == [
            5
        ]
        if closed:
            kept.close_collection(agreement.fingerprint)
        other = changed(one, agreement)
        for same, different in (
            ([one], [other]),
            ([*batch], [other, *batch][:1] + [*batch][1:]),
            ([one, one], [one, other]),
        ):
            group = [arrival(Submissions.gather(given)) for given in (same, different)]
            for given in (group, group[:1], group[1:]):
                assert kept.receive(kept.collection(agreement.fingerprint), given) == [0] * len(
                    given
                )
        (stored,) = kept.submissions(agreement.fingerprint)
        assert sorted(x.identifier for x in stored) == sorted(x.identifier for x in batch)
        assert one in [*stored], "what came first stays"


def test_agreements_do_not_mix(agreement, place) -> None:
    another = propose(epsilon=2)
    record = {"age": 30, "income": 50}
    with Store(place) as kept:
        kept.add(agreement, perturb(agreement, record))
        kept.add(another, perturb(another, record))
        assert kept.count(agreement) == kept.count(another) == 1
        with pytest.raises(InvalidValueError, match="another agreement"):
            kept.add(agreement, perturb(another, record))
        prints = [one.fingerprint for one in kept.statuses()]
        assert prints == [agreement.fingerprint, another.fingerprint]


def test_invitations_are_used_once_and_leave_no_trace(agreement, place) -> None:
    agreement = replace(agreement, admission="invited")
    one, other = perturb_table(agreement, people(2))
    tokens = [new_token() for _ in range(3)]
    with Store(place) as kept:
        kept.open(agreement)
        assert kept.invite(agreement.fingerprint, map(hashed, tokens)) == 3
        assert kept.invite(agreement.fingerprint, map(hashed, tokens)) == 0

        def send(submission: Submission, *invitations: str) -> object:
            batch = Submissions.gather([submission])
            (outcome,) = kept.receive(
                kept.collection(agreement.fingerprint), [arrival(batch, *invitations)]
            )
            return outcome

        assert isinstance(send(one), NotInvitedError)
        assert isinstance(send(one, "guess"), NotInvitedError)
        assert send(one, tokens[0]) == 1
        assert send(one, tokens[0]) == 0  # again, with the invitation that it has used
        assert send(one) == 0
        assert isinstance(send(other, tokens[0]), NotInvitedError)
        assert kept.unused_invitations(agreement.fingerprint) == 2
        both = Submissions.gather([other, *perturb_table(agreement, people(1))])
        short, fine = kept.receive(
            kept.collection(agreement.fingerprint),
            [arrival(both, tokens[1]), arrival(both, *tokens)],
        )
        assert isinstance(short, NotInvitedError)
        assert fine == 2
        assert kept.unused_invitations(agreement.fingerprint) == 0
        vouched = perturb_table(agreement, people(3))  # by whoever holds the store
        assert kept.add(agreement, vouched) == 3


def test_names_that_were_put_in_order_are_still_known(agreement, place, monkeypatch) -> None:
    monkeypatch.setattr(arrivals, "MOST_RECENT", 10)
    batch = perturb_table(agreement, PEOPLE)
    with Store(place) as kept:
        for one in batch:
            assert kept.add(agreement, one) == 1
        assert kept.add(agreement, batch) == 0
        assert kept.add(agreement, changed(next(iter(batch)), agreement)) == 0
        assert kept.count(agreement) == 40


def test_damage_is_noticed_and_nothing_is_published(agreement, place) -> None:
    with Store(place) as kept:
        kept.add(agreement, perturb_table(agreement, PEOPLE))
        with kept._engine.execution_options(writes=True).begin() as connection:
            connection.execute(sa.text("UPDATE blocks SET count = count + 1"))
        for _ in range(2):
            with pytest.raises(ArithmeticError, match="do not match their checksum"):
                kept.publish(agreement)
            assert kept.status(agreement.fingerprint).state == "closed"  # the set was fixed before


def test_what_is_no_submission_is_refused(agreement) -> None:
    wrong = Submission("00" * 16, agreement.fingerprint, np.zeros(6))
    large = Submission("00" * 16, agreement.fingerprint, np.full(agreement.width, 2.0**40))
    with Store() as kept:
        with pytest.raises(InvalidValueError, match="blurred by their contributors"):
            kept.add(agreement, PEOPLE)
        with pytest.raises(InvalidValueError, match="numbers, and got 6"):
            kept.add(agreement, wrong)
        with pytest.raises(InvalidValueError, match="a norm above"):
            kept.add(agreement, large)
        assert kept.count(agreement) == 0


# ---- two services at the same moment


def batch_of(agreement, count: int) -> Submissions:
    people = {name: np.linspace(0, 100, count) for name in ("age", "income")}
    return perturb_table(agreement, people)


def test_a_second_service_waits_for_the_first_and_then_knows(agreement, place) -> None:
    batch = batch_of(agreement, 20)
    same = arrival_of(batch)  # and the same identifiers for other numbers:
    other = arrival_of(Submissions(batch.identifiers[::-1], batch.fingerprint, batch.numbers))
    with Store(place) as first, Store(place) as second:
        first.open(agreement)
        collection = first.collection(agreement.fingerprint)
        there = second.collection(agreement.fingerprint)
        with ThreadPoolExecutor(2) as others:
            with first._writing() as connection:
                (new,), _ = receive_new(
                    connection,
                    collection,
                    Group.of(collection, [same]),
                    taking(connection, collection),
                )
                assert new == 20
                late = [others.submit(second.receive, there, [what]) for what in (same, other)]
                assert not wait(late, timeout=0.2).done, "before the first has committed"
            assert [one.result() for one in late] == [[0], [0]], "ignored, and answered alike"
        assert first.count(agreement) == 20


@pytest.mark.parametrize("place", ["postgresql"], indirect=True)  # SQLite has one writer at a time
def test_another_service_takes_an_identifier_just_after_it_was_looked_for(
    agreement, place, monkeypatch
) -> None:
    look = blocks.known_among
    batch = batch_of(agreement, 3)
    known, raced, new = ([arrival_of(Submissions.gather([one]))] for one in batch)
    with Store(place) as first, Store(place) as second:
        first.open(agreement)
        collection = first.collection(agreement.fingerprint)
        first.receive(collection, known)

        def overtaken(*given):
            found = look(*given)
            monkeypatch.setattr(blocks, "known_among", look)
            second.receive(second.collection(agreement.fingerprint), raced)
            return found

        monkeypatch.setattr(blocks, "known_among", overtaken)
        assert first.receive(collection, known + raced + new) == [0, 0, 1]
        parts = list(first.submissions(agreement.fingerprint))
        assert sorted(one.identifier for part in parts for one in part) == sorted(
            one.identifier for one in batch
        )


def test_a_group_is_one_table_and_what_does_not_pass_is_refused_by_place(agreement) -> None:
    """However many are refused, where ever they stand: the others are as they came."""
    batches = [batch_of(agreement, count) for count in (3, 1, 4, 2)]
    spoilt = batches[2].numbers.copy()
    spoilt[1, 0] = 2.0**40
    batches[2] = Submissions(batches[2].identifiers, agreement.fingerprint, spoilt)
    with Store() as store:
        store.open(agreement)
        collection = store.collection(agreement.fingerprint)
        group = Group.of(collection, [arrival_of(batch) for batch in batches])
        good = [batch for batch in batches if batch is not batches[2]]
        assert list(group.refusals) == [2]
        assert "Submission 1 has a norm" in str(group.refusals[2])
        assert len(group.numbers) == 6
        for span, batch in zip(group.spans, good, strict=True):
            np.testing.assert_array_equal(group.names[span.rows], batch.identifiers)
            np.testing.assert_array_equal(group.numbers[span.rows], batch.numbers)
        outcomes = store.receive(collection, [arrival_of(batch) for batch in batches])
        assert [outcomes[place] for place in (0, 1, 3)] == [3, 1, 2]
        assert "a norm above" in str(outcomes[2])
        (alone,) = store.receive(collection, [arrival_of(batches[2])])
        assert "a norm above" in str(alone)
        assert store.count(agreement) == 6
