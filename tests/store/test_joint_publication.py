"""What the databases hold is noise, and the steps by which they publish can each happen once."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa
from blurfit.service.peer import publish
from scipy.stats import chi2, chi2_contingency, chisquare

from blurfit import (
    Agreement,
    ClosedError,
    ConflictError,
    InfeasibleError,
    InvalidValueError,
    NotPublishedError,
    PublishedModel,
    PublishedMoments,
)
from blurfit.arrays import ByteArray, WordArray
from blurfit.contributor.blur import SharedRecords, perturb_table, share
from blurfit.store import blocks, commitment, identifier_sets, joint_publication
from blurfit.store.store import Store
from support.sharing import (
    SCHEMA,
    Direct,
    arrival,
    counted,
    identifier_of,
    marked,
    new_agreement,
    opened,
    propose,
    send,
)

FALSE_ALARM = 1e-7
EXTREMES = {"low": {"age": 0.0, "income": 0.0}, "high": {"age": 100.0, "income": 100.0}}


# ---- what a database holds


def table_of(record: dict[str, float], count: int) -> dict[str, np.ndarray]:
    return {name: np.full(count, value) for name, value in record.items()}


def everything_stored(store: Store, fingerprint: str) -> np.ndarray:
    """Every byte that a store keeps of contributors, as it is in its tables.

    Identifiers are in the blocks and in a table of their own, and are taken once: what is there
    twice is not independent.
    """
    key = store.collection(fingerprint).key
    query = sa.text("SELECT rows, sums, checksum FROM blocks WHERE collection = :key")
    with store._reading() as connection:
        found = connection.execute(query, {"key": key})
        parts = [bytes(value) for row in found for value in row]
    return np.frombuffer(b"".join(parts), dtype=np.uint8)


@pytest.fixture(scope="module")
def shared() -> dict[str, tuple[Agreement, SharedRecords]]:
    """So many people with one extreme record, and as many with the other."""
    agreements = {record: propose(quorum=20) for record in EXTREMES}
    return {
        record: (agreements[record], share(agreements[record], table_of(values, 8000)))
        for record, values in EXTREMES.items()
    }


@pytest.fixture(scope="module")
def stored(shared) -> dict[tuple[str, str], np.ndarray]:
    """The bytes of each database, for a collection of one extreme record and of the other."""
    found = {}
    for record, (agreement, both) in shared.items():
        with Store() as first, Store() as second:
            opened(agreement, first, second)
            for role, store, shares in (
                ("first", first, both.first),
                ("second", second, both.second),
            ):
                store.receive(store.collection(agreement.fingerprint), [arrival(shares)])
                found[role, record] = everything_stored(store, agreement.fingerprint)
    return found


@pytest.mark.statistical
@pytest.mark.parametrize("role", ["first", "second"])
@pytest.mark.parametrize("record", EXTREMES)
def test_what_a_database_stores_looks_uniform(stored, role, record) -> None:
    data = stored[role, record]
    assert len(data) > 8000 * 48
    bytes_seen = np.bincount(data, minlength=256)
    assert chisquare(bytes_seen).pvalue > FALSE_ALARM
    pairs = np.bincount(data[:-1:2].astype(np.int64) * 256 + data[1::2], minlength=65536)
    assert chisquare(pairs).pvalue > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("role", ["first", "second"])
def test_what_a_database_stores_does_not_depend_on_the_record(stored, role) -> None:
    counts = [np.bincount(stored[role, record], minlength=256) for record in EXTREMES]
    assert chi2_contingency(counts).pvalue > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("role", ["first", "second"])
def test_every_word_of_a_share_is_uniform_whatever_the_record(shared, role) -> None:
    """The top byte of each word, where a record would show; low and high records side by side."""
    for _, both in shared.values():
        words = (both.first if role == "first" else both.second).words
        for shift in (56, 0):
            for column in words.T:
                seen = np.bincount((column >> np.uint64(shift)) & np.uint64(255), minlength=256)
                assert chisquare(seen).pvalue > FALSE_ALARM


@pytest.mark.statistical
def test_the_same_tests_see_what_one_database_stores() -> None:
    """So that they can fail: blurred records are not uniform, and depend on the record."""
    counts = []
    for values in EXTREMES.values():
        agreement = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=20)
        with Store() as store:
            store.add(agreement, perturb_table(agreement, table_of(values, 8000)))
            data = everything_stored(store, agreement.fingerprint)
            counts.append(np.bincount(data, minlength=256))
    assert chisquare(counts[0]).statistic > 10 * chi2.isf(FALSE_ALARM, 255)
    assert chi2_contingency(counts).pvalue < 1e-20


# ---- the steps


@pytest.fixture
def two(place, in_memory):
    """A first database of each kind, and a second beside it; nine people who reached both."""
    agreement = new_agreement(admission="invited")
    with Store(place) as first, Store(in_memory / "second.db") as second:
        peer = opened(agreement, first, second)
        send(agreement, first, second, *range(9))
        yield agreement, first, second, peer


def test_only_those_who_reached_both_are_counted(two) -> None:
    agreement, first, second, peer = two
    send(agreement, first, None, 20)
    send(agreement, None, second, 30, 31, 32)
    second.close_collection(agreement.fingerprint)
    text = publish(first, agreement.fingerprint, peer)
    assert counted(first, agreement) == counted(second, agreement) == set(range(9))
    assert first.model(agreement.fingerprint) == second.model(agreement.fingerprint) == text
    assert PublishedModel.from_json(text).count == 9
    shown = first.moments(agreement)
    assert shown.fit().to_json() == text
    assert shown.to_json() == second.moments_text(agreement.fingerprint)
    assert publish(first, agreement.fingerprint, peer) == text
    assert {s.status(agreement.fingerprint).state for s in (first, second)} == {"published"}


def test_nothing_without_the_consent_of_both(two) -> None:
    agreement, first, second, peer = two
    with pytest.raises(InfeasibleError, match="University to have closed"):
        publish(first, agreement.fingerprint, peer)
    assert first.status(agreement.fingerprint).state == "collecting"
    with pytest.raises(InfeasibleError, match="University to have closed"):
        peer.masks(b"x" * 32, 9, identifier_sets.as_identifiers(b""))
    assert second.write(joint_publication.consent, second.collection(agreement.fingerprint)) is None
    assert second.status(agreement.fingerprint).state == "closed"
    with pytest.raises(NotPublishedError):
        second.model(agreement.fingerprint)
    text = publish(first, agreement.fingerprint, peer)
    assert second.write(joint_publication.consent, second.collection(agreement.fingerprint)) == text


def test_below_the_quorum_the_first_goes_on(place) -> None:
    agreement = new_agreement()
    with Store(place) as first, Store() as second:
        peer = opened(agreement, first, second)
        send(agreement, first, second, 0, 1)
        send(agreement, None, second, 2)
        second.close_collection(agreement.fingerprint)
        with pytest.raises(InfeasibleError, match="there are 2"):
            publish(first, agreement.fingerprint, peer)
        assert first.status(agreement.fingerprint).state == "collecting"
        send(agreement, first, None, 2)  # who was late on one side alone
        publish(first, agreement.fingerprint, peer)
        assert counted(second, agreement) == {0, 1, 2}


def test_shares_are_never_learned_from_alone(two) -> None:
    agreement, first, second, _ = two
    for store in (first, second):
        with pytest.raises(InfeasibleError, match="other database"):
            store.publish(agreement)


def test_a_second_set_is_refused_for_ever(two) -> None:
    agreement, first, second, peer = two
    mark = agreement.fingerprint
    second.close_collection(mark)
    here = peer.identifiers()
    collection = second.collection(mark)

    def ask(left_out: list[bytes], count: int | None = None):
        gone = identifier_sets.as_identifiers(b"".join(left_out))
        common = identifier_sets.minus(here, gone)
        return peer.masks(
            commitment.digest_of(collection, common), count or len(common), gone
        ).tolist()

    with pytest.raises(InfeasibleError, match="there are 2"):
        ask([identifier_of(n) for n in range(7)])
    with pytest.raises(InvalidValueError, match="among the 9"):
        ask([identifier_of(50)])
    with pytest.raises(InvalidValueError, match="of 8 to be"):
        ask([], count=8)
    with pytest.raises(InvalidValueError, match="damaged"):
        peer.masks(b"x" * 32, 9, identifier_sets.as_identifiers(b""))
    given = ask([identifier_of(0)])
    assert given == ask([identifier_of(0)])
    for other in ([], [identifier_of(1)], [identifier_of(0), identifier_of(1)]):
        with pytest.raises(ConflictError, match="never be another"):
            ask(other)
    with pytest.raises(ConflictError):
        publish(first, mark, peer)
    with pytest.raises(NotPublishedError):
        first.model(mark)


def test_a_result_that_does_not_follow_is_refused(two) -> None:
    agreement, first, second, peer = two
    mark = agreement.fingerprint
    second.close_collection(mark)
    moments = PublishedMoments(agreement, 9, np.arange(1.0, 6.0))
    model = moments.fit()
    with pytest.raises(InfeasibleError, match="fixed before"):
        peer.deliver(model.to_json(), moments.to_json())
    chosen, left_out = first.write(
        joint_publication.fix, first.collection(mark), peer.identifiers()
    )
    peer.masks(chosen.digest, chosen.count, left_out)
    fewer = replace(moments, count=8)
    other = replace(moments, sums=np.array([1.0, 2.0, 3.0, 4.0, 6.0]))
    foreign = PublishedMoments(propose(epsilon=3), 9, np.arange(1.0, 6.0))
    moved = replace(model, weights=model.weights + 0.5)
    stated = replace(model, refusal="We know nothing.", inference=(), liars=())
    for shown, published in (
        *((fewer, fewer.fit()), (other, model), (moments, other.fit(ridge=9.0))),
        *((fewer, model), (foreign, foreign.fit()), (foreign, model)),
        *((moments, moved), (moments, stated), (moments, replace(model, caveats=("None.",)))),
    ):
        with pytest.raises(InvalidValueError, match="does not follow"):
            peer.deliver(published.to_json(), shown.to_json())
    for texts in (
        (model.to_json() + " ", moments.to_json()),
        (model.to_json(), moments.to_json() + " "),
    ):
        with pytest.raises(InvalidValueError, match="does not follow"):
            peer.deliver(*texts)
    text = publish(first, mark, peer)
    with pytest.raises(ConflictError, match="published before"):
        peer.deliver(model.to_json(), moments.to_json())
    assert second.model(mark) == text


class NamesOnly(Direct):
    """A second database that claims to hold these names, and no others."""

    def __init__(self, store: Store, fingerprint: str, claimed: list[bytes]) -> None:
        super().__init__(store, fingerprint)
        self.claimed = claimed

    def identifiers(self) -> ByteArray:
        return identifier_sets.as_identifiers(b"".join(self.claimed))

    def masks(self, digest: bytes, count: int, left_out: ByteArray) -> WordArray:
        """It refuses itself nothing: the masks of those whom it names, from its own seeds."""
        del digest, count, left_out
        collection = self.store.collection(self.fingerprint)
        ((identifiers, words),) = self.store.read(lambda c: list(blocks.rows(c, collection)))
        wanted = identifier_sets.among(identifiers, identifier_sets.in_order(self.identifiers()))
        return collection.sums(words[wanted])


def test_the_second_database_cannot_single_out_a_victim_among_people_it_invented(two) -> None:
    """It posts n − 1 shares whose numbers it knows, and then names only those and the victim: the
    sums less what it knows would be the victim's own submission.
    """
    agreement, first, second, _ = two
    victim, invented = 4, range(40, 40 + agreement.quorum - 1)
    send(agreement, first, second, *invented)
    second.close_collection(agreement.fingerprint)
    claimed = [identifier_of(one) for one in (victim, *invented)]
    liar = NamesOnly(second, agreement.fingerprint, claimed)
    with pytest.raises(InfeasibleError, match=r"leaves out 8 of the 11, .* at most 1"):
        publish(first, agreement.fingerprint, liar)
    assert first.status(agreement.fingerprint).state == "collecting"
    with pytest.raises(NotPublishedError):
        first.moments(agreement)


def test_the_first_database_cannot_single_out_a_victim_either(two) -> None:
    agreement, _, second, peer = two
    invented = range(40, 40 + agreement.quorum - 1)
    send(agreement, None, second, *invented)
    second.close_collection(agreement.fingerprint)
    collection, here = second.collection(agreement.fingerprint), peer.identifiers()
    wanted = identifier_sets.as_identifiers(b"".join(identifier_of(one) for one in (4, *invented)))
    left_out = identifier_sets.minus(here, wanted)
    digest = commitment.digest_of(collection, identifier_sets.in_order(wanted))
    with pytest.raises(InfeasibleError, match=r"leaves out 8 of the 11, .* at most 5"):
        peer.masks(digest, len(wanted), left_out)


@pytest.mark.parametrize(
    ("role", "held", "most"), [("first", 9, 0), ("first", 10, 1), ("second", 9, 4)]
)
def test_how_many_a_set_may_leave_out(role, held, most) -> None:
    """At most a tenth of the first's shares, and at most half of the second's."""
    agreement = new_agreement(admission="invited")
    with Store() as store:
        store.open(agreement, role=role)
        shares = getattr(marked(agreement, *range(held)), role)
        store.receive(store.collection(agreement.fingerprint), [arrival(shares)])
        store.close_collection(agreement.fingerprint)
        names = identifier_sets.as_identifiers(b"".join(identifier_of(one) for one in range(held)))
        with pytest.raises(InfeasibleError, match="leaves out"):
            store.write(
                commitment.record, store.collection(agreement.fingerprint), names[: most + 1]
            )
        chosen = store.write(
            commitment.record, store.collection(agreement.fingerprint), names[:most]
        )
        assert chosen.count == held - most


@pytest.mark.parametrize("role", ["first", "second"])
@pytest.mark.parametrize("terms", [{"admission": "anyone"}, {"database_noise": True}])
def test_orphans_do_not_end_a_collection_where_no_promise_hangs_on_their_number(
    role, terms
) -> None:
    """Whoever floods one side with shares that the other does not have is left out, and no more."""
    agreement = new_agreement(**{"admission": "invited"} | terms)
    with Store() as store:
        store.open(agreement, role=role)
        shares = getattr(marked(agreement, *range(60)), role)
        store.receive(store.collection(agreement.fingerprint), [arrival(shares)])
        store.close_collection(agreement.fingerprint)
        orphans = identifier_sets.as_identifiers(b"".join(identifier_of(one) for one in range(57)))
        collection = store.collection(agreement.fingerprint)
        assert store.write(commitment.record, collection, orphans).count == 3


def test_a_collection_of_shares_takes_no_more_than_can_be_told(monkeypatch) -> None:
    monkeypatch.setattr("blurfit.store.arrivals.MOST_SHARES", 5)
    agreement = new_agreement()
    with Store() as store:
        store.open(agreement, role="second")
        collection = store.collection(agreement.fingerprint)
        first, more = (marked(agreement, *some).second for some in (range(5), range(5, 7)))
        assert store.receive(collection, [arrival(first)]) == [5]
        refused, again = store.receive(collection, [arrival(more), arrival(first)])
        assert isinstance(refused, ClosedError)
        assert again == 0, "whoever is there already is acknowledged"


@pytest.mark.parametrize("one_in", [10, 2])
def test_a_quorum_of_honest_people_stays_whomever_the_other_side_leaves_out(one_in) -> None:
    """H ≥ n + ϱ·N suffices, and is sharp: over all ways to leave out and to invent."""
    assert one_in in commitment.LEFT_OUT_ONE_IN.values()
    quorum = 5
    for honest, invented in itertools.product(range(quorum, 61), range(61)):
        held = honest + invented
        most = held // one_in
        fewest = min(honest - out for out in range(min(honest, most, held - quorum) + 1))
        if honest >= quorum + held / one_in:
            assert fewest >= quorum
        elif held - most >= quorum and honest < quorum + most:
            assert fewest < quorum


def test_one_liar_can_ruin_the_sums_and_then_there_is_no_model(two) -> None:
    """Shares cannot be screened. What is beyond all honest sums is refused, once and for all."""
    agreement, first, second, peer = two
    lie = marked(agreement, 40)
    lie.first.words[:, 2] += np.uint64(2**62)
    for store, shares in ((first, lie.first), (second, lie.second)):
        assert store.receive(store.collection(agreement.fingerprint), [arrival(shares)]) == [1]
    second.close_collection(agreement.fingerprint)
    for _ in range(2):
        with pytest.raises(InfeasibleError, match="somebody sent"):
            publish(first, agreement.fingerprint, peer)
    assert {s.status(agreement.fingerprint).state for s in (first, second)} == {"closed"}


def test_a_second_database_that_lost_people_is_found(two) -> None:
    agreement, first, second, peer = two
    second.close_collection(agreement.fingerprint)
    first.write(joint_publication.fix, first.collection(agreement.fingerprint), peer.identifiers())
    with pytest.raises(ConflictError, match="has fewer now"):
        first.write(
            joint_publication.fix, first.collection(agreement.fingerprint), peer.identifiers()[1:]
        )


def test_products_with_the_target_are_published_by_both() -> None:
    """They have no model of their own. Seen before: the second never got what the first had."""
    agreement = new_agreement(sends="targets", public_rows="00" * 32)
    shared = share(agreement, table_of(EXTREMES["low"], 5))
    with Store() as first, Store() as second:
        peer = opened(agreement, first, second)
        for store, shares in ((first, shared.first), (second, shared.second)):
            store.receive(store.collection(agreement.fingerprint), [arrival(shares)])
        second.close_collection(agreement.fingerprint)
        shown = [publish(first, agreement.fingerprint, peer) for _ in range(2)]
        moments = first.moments_text(agreement.fingerprint)
        assert shown == [moments] * 2
        assert second.moments_text(agreement.fingerprint) == moments
        peer.deliver(None, moments)
        with pytest.raises(InvalidValueError, match="does not follow"):
            peer.deliver("{}", moments)
