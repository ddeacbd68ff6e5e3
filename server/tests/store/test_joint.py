"""Two databases publish one thing: what each holds is noise, and every step happens once."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa
from scipy.stats import chi2, chi2_contingency, chisquare
from sqlalchemy import event

from blurfit import Agreement, PublishedModel, PublishedMoments
from blurfit.agreement.terms import LEFT_OUT_ONE_IN
from blurfit.contributor.blur import SharedRecords, perturb_table, proved_with, share
from blurfit.data import ByteArray
from blurfit.errors import (
    BelowQuorumError,
    BetweenWavesError,
    BlurfitError,
    ClosedError,
    ConflictError,
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
    NotPublishedError,
    ServiceError,
    WaveClosedError,
)
from blurfit.messages.signing import Signature, Signer, new_key
from blurfit.messages.submissions import Submissions
from blurfit.model.course import learn_plan
from blurfit.randomness import database_words
from blurfit_server.store import blocks, joint, release
from blurfit_server.store.collections import update
from blurfit_server.store.database import LONGEST_PAUSES
from blurfit_server.store.joint import Commitment, News, TooFewError, judged
from blurfit_server.store.store import Store, backup, restore
from server_support.closings import let_pass
from server_support.joint_plans import Both, both, joint_plan
from server_support.sharing import Direct, arrival, opened, send
from support.proposals import leavers
from support.sharing import SCHEMA, WIDTH, identifier_of, marked, new_agreement, propose

FALSE_ALARM = 1e-7
EXTREMES = {"low": {"age": 0.0, "income": 0.0}, "high": {"age": 100.0, "income": 100.0}}
PLAN = joint_plan()
FIRST, SECOND = PLAN.quorums
FOREVER = 4_000_000_000


def named(*people: int) -> ByteArray:
    return blocks.as_identifiers(b"".join(map(identifier_of, people)))


def fixed(store: Store, fingerprint: str, theirs: ByteArray):
    """Fix the set with the second database; what it comes to, and whom that must leave out."""
    wave = store.collection(fingerprint)
    return store.write(release.fix_with_the_other, wave, theirs, end=True)[1:]


def recorded(store: Store, wave, left_out: ByteArray) -> Commitment:
    here = store.read(blocks.held_identifiers, wave.key)
    return store.write(joint.record, wave, left_out, here)


# ---- what a database holds


def table_of(record: dict[str, float], count: int) -> dict[str, np.ndarray]:
    return {name: np.full(count, value) for name, value in record.items()}


def everything_stored(store: Store, fingerprint: str) -> np.ndarray:
    """Every byte that a store keeps of contributors, as it is in its tables.

    Identifiers are in the blocks and in a table of their own, and are taken once: what is there
    twice is not independent.
    """
    key = store.collection(fingerprint).key
    query = sa.text("SELECT rows, sums, checksum FROM blocks WHERE wave = :key")
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
    for record, (agreement, sent) in shared.items():
        with Store() as first, Store() as second:
            opened(agreement, first, second)
            for role, store, shares in (
                ("first", first, sent.first),
                ("second", second, sent.second),
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
    for _, sent in shared.values():
        shares = sent.first if role == "first" else sent.second
        for shift in (56, 0):
            for column in shares.words.T:
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


# ---- by hand: the steps


@pytest.fixture
def two(place, in_memory):
    """A first database of each kind, and a second beside it; nine people who reached both."""
    agreement = new_agreement(admission="invited")
    with Store(place) as first, Store(in_memory / "second.db") as second:
        peer = opened(agreement, first, second)
        send(agreement, first, second, *range(9))
        yield agreement, first, second, peer


def test_nothing_without_the_consent_of_both(two) -> None:
    agreement, first, second, peer = two
    name = agreement.fingerprint
    with pytest.raises(InfeasibleError, match="University to have closed"):
        first.publish_text(name, peer)
    assert first.status(name).state == "collecting"
    with pytest.raises(InfeasibleError, match="University to have closed"):
        second.sum_of_masks(second.collection(name), b"x" * 32, 9, b"xx")
    for store in (first, second):
        assert store.status(name).awaits is None
    with pytest.raises(NotPublishedError, match="The next step is Office's"):
        second.publish_text(name)
    assert second.status(name).state == "closed"
    assert second.status(name).awaits == "Office"
    with pytest.raises(NotPublishedError):
        second.model(name)
    text = first.publish_text(name, peer)
    assert second.publish_text(name) == text


def test_shares_are_never_learned_from_alone(two) -> None:
    agreement, first, second, _ = two
    with pytest.raises(InfeasibleError, match="other database"):
        first.publish(agreement)
    with pytest.raises(InfeasibleError, match="opened as 'first'"):
        first.close_for_first(first.collection(agreement.fingerprint))
    assert second.status(agreement.fingerprint).state == "collecting"


def test_a_second_set_is_refused_for_ever(two) -> None:
    agreement, first, second, peer = two
    name = agreement.fingerprint
    second.close_collection(name)
    wave = second.collection(name)
    here = peer.identifiers(wave)

    def ask(*left_out: int, count: int | None = None):
        common = blocks.minus(here, named(*left_out))
        digest = joint.digest_of(wave, common)
        return peer.masks(wave, digest, count or len(common), named(*left_out)).tolist()

    with pytest.raises(BelowQuorumError, match=r"quorum 3.*there are 2"):
        ask(*range(7))
    with pytest.raises(InvalidValueError, match="of 8 to be"):
        ask(count=8)
    with pytest.raises(InvalidValueError, match="damaged"):
        peer.masks(wave, b"x" * 32, 9, named())
    with pytest.raises(InvalidValueError, match="among the 9 here, each once"):
        recorded(second, wave, named(50))
    assert second.read(joint.recorded, wave) is None, "what is refused leaves nothing"
    given = ask(0)
    assert given == ask(0)
    for other in ((), (1,), (0, 1)):
        with pytest.raises(ConflictError, match="never be another"):
            ask(*other)
    with pytest.raises(ConflictError):
        first.publish_text(name, peer)
    with pytest.raises(NotPublishedError):
        first.model(name)


@pytest.mark.parametrize("gone", [0, 3, 4, 6])
def test_the_fewer_are_written_down_and_sums_are_of_the_set_alone(place, gone) -> None:
    """Of those who are in a set, and those who are left out."""
    agreement = new_agreement()
    inside = marked(agreement, *range(gone, 9))
    with Store(place) as first, Store() as second:
        opened(agreement, first, second)
        send(agreement, first, second, *range(9))
        for store, shares in ((first, inside.first), (second, inside.second)):
            store.close_collection(agreement.fingerprint)
            wave = store.collection(agreement.fingerprint)
            with pytest.raises(InfeasibleError, match="fixed before"):
                store.read(joint.sums_over, wave)
            recorded(store, wave, named(*range(gone)))
            kept, found = store.read(joint.sums_over, wave)
            listed = min(gone, 9 - gone)
            assert (kept.count, kept.inside, len(kept.listed)) == (9 - gone, gone > 4, listed)
            assert kept.has(named(*range(9))).tolist() == [False] * gone + [True] * (9 - gone)
            assert found.tolist() == wave.sums(shares.words).tolist()


def test_digests_tell_sets_and_agreements_apart() -> None:
    found = set()
    for agreement in (propose(), propose(epsilon=2)):
        with Store() as store:
            store.open(agreement, role="first")
            wave = store.collection(agreement.fingerprint)
            found |= {joint.digest_of(wave, named(*range(n))) for n in range(4)}
    assert len(found) == 8


def test_both_make_the_sums_of_what_was_blurred(two) -> None:
    agreement, first, second, peer = two
    second.close_collection(agreement.fingerprint)
    here = first.collection(agreement.fingerprint)
    chosen, left_out = fixed(first, agreement.fingerprint, peer.identifiers(here))
    masks = peer.masks(here, chosen.digest, chosen.count, left_out)
    count, found = first.read(joint.together, here, masks)
    # Sender k has sent 2^(k // 5) in number k mod 5, and nothing else (`support.sharing.marked`).
    expected = [sum(2 ** (k // WIDTH) for k in range(9) if k % WIDTH == at) for at in range(WIDTH)]
    assert (count, found.tolist()) == (9, expected)
    totals = joint.totals_of(agreement, count, found)
    assert totals.sums.tolist() == [agreement.step * one for one in expected]
    with pytest.raises(NotCertifiedError, match="5 sums from the other database, and got 4"):
        first.read(joint.together, here, masks[1:])
    with pytest.raises(InfeasibleError, match="larger than 9 blurred records"):
        joint.totals_of(agreement, count, found + np.uint64(2**62))
    with pytest.raises(ConflictError, match="has fewer now"):
        fixed(first, agreement.fingerprint, peer.identifiers(here)[1:])
    with first._writing() as connection:
        connection.execute(sa.text("DELETE FROM blocks"))
    with pytest.raises(NotCertifiedError, match="Expected 9 shares"):
        first.read(joint.sums_over, here)


def test_what_does_not_follow_is_refused(two) -> None:
    """A model, or sums, of others; of what was fixed the first's word is taken, once."""
    agreement, first, second, peer = two
    name = agreement.fingerprint
    second.close_collection(name)
    moments = PublishedMoments(agreement, 9, np.arange(1.0, 6.0))
    model = moments.fit()

    def tell(model: str | None, moments: str) -> None:
        second.take_news(name, News("ended", None, model, name, moments))

    with pytest.raises(InvalidValueError, match="set that was fixed"):
        tell(model.to_json(), moments.to_json())
    chosen, left_out = fixed(first, name, peer.identifiers(first.collection(name)))
    peer.masks(first.collection(name), chosen.digest, chosen.count, left_out)
    fewer = replace(moments, count=8)
    other = replace(moments, sums=np.array([1.0, 2.0, 3.0, 4.0, 6.0]))
    foreign = PublishedMoments(propose(epsilon=3), 9, np.arange(1.0, 6.0))
    moved = replace(model, weights=model.weights + 0.5)
    stated = replace(model, refusal="We know nothing.", inference=())
    for shown, published in (
        *((fewer, fewer.fit()), (other, model), (moments, other.fit(ridge=9.0))),
        *((fewer, model), (foreign, foreign.fit()), (foreign, model)),
        *((moments, moved), (moments, stated), (moments, replace(model, caveats=("None.",)))),
    ):
        with pytest.raises(
            (InvalidValueError, NotCertifiedError),
            match=r"does not\.|set that was fixed|Expected the agreement",
        ):
            tell(published.to_json(), shown.to_json())
    for texts in (
        (model.to_json() + " ", moments.to_json()),
        (model.to_json(), moments.to_json() + " "),
        (None, moments.to_json()),
    ):
        with pytest.raises(InvalidValueError, match=r"does not\.|as blurfit writes it"):
            tell(*texts)
    with pytest.raises(InvalidValueError, match="Expected no wave but after"):
        second.take_news(name, News("collecting", following=agreement.to_json()))
    with pytest.raises(InvalidValueError, match="without NUL"):
        second.take_news(name, News("ended", "It ended.\0"))
    text = first.publish_text(name, peer)
    with pytest.raises(ConflictError, match="a wave has one"):
        tell(model.to_json(), moments.to_json())
    assert second.model(name) == text


def test_sums_of_exits_are_published_by_both() -> None:
    """They have no model of their own. Seen before: the second never got what the first had."""
    agreement, people = leavers(databases=propose().databases, proofs=False)
    shared = share(agreement, people)
    with Store() as first, Store() as second:
        peer = opened(agreement, first, second)
        for store, shares in ((first, shared.first), (second, shared.second)):
            store.receive(store.collection(agreement.fingerprint), [arrival(shares)])
        second.close_collection(agreement.fingerprint)
        shown = [first.publish_text(agreement.fingerprint, peer) for _ in range(2)]
        moments = first.moments_text(agreement.fingerprint)
        assert shown == [moments] * 2
        assert second.moments_text(agreement.fingerprint) == moments
        assert second.publish_text(agreement.fingerprint) == moments


class NamesOnly(Direct):
    """A second database that claims to hold these names, and no others, and refuses itself
    nothing: the masks of those whom it names, from its own seeds.
    """

    def __init__(self, first: Store, second: Store, claimed: ByteArray) -> None:
        super().__init__(first, second)
        self.claimed = blocks.in_order(claimed)

    def identifiers(self, wave):
        return self.claimed

    def masks(self, wave, digest, count, left_out):
        there = self.there(wave)
        _, numbers = self.second.read(blocks.rows_among, there, self.claimed)
        return there.sums(numbers)


def test_the_second_database_cannot_single_out_a_victim_among_people_it_invented(two) -> None:
    """It posts n − 1 shares whose numbers it knows, and then names only those and the victim: the
    sums less what it knows would be the victim's own submission.
    """
    agreement, first, second, _ = two
    victim, invented = 4, range(40, 40 + agreement.quorum - 1)
    send(agreement, first, second, *invented)
    second.close_collection(agreement.fingerprint)
    liar = NamesOnly(first, second, named(victim, *invented))
    with pytest.raises(InfeasibleError, match=r"of 11 at one of them 8 are not .* at most 1"):
        first.publish_text(agreement.fingerprint, liar)
    with pytest.raises(InfeasibleError, match=r"leaves out 8 of the 11, .* at most 1"):
        fixed(first, agreement.fingerprint, liar.claimed)
    assert first.status(agreement.fingerprint).state == "collecting"
    with pytest.raises(NotPublishedError):
        first.moments(agreement)


def test_the_first_database_cannot_single_out_a_victim_either(two) -> None:
    agreement, _, second, peer = two
    invented = range(40, 40 + agreement.quorum - 1)
    send(agreement, None, second, *invented)
    second.close_collection(agreement.fingerprint)
    wave = second.collection(agreement.fingerprint)
    here, wanted = peer.identifiers(wave), blocks.in_order(named(4, *invented))
    with pytest.raises(InfeasibleError, match=r"leaves out 8 of the 11, .* at most 5"):
        peer.masks(wave, joint.digest_of(wave, wanted), 3, blocks.minus(here, wanted))


@pytest.mark.parametrize(
    ("role", "held", "most"), [("first", 9, 0), ("first", 10, 1), ("second", 9, 4)]
)
def test_how_many_a_set_may_leave_out(role, held, most) -> None:
    """At most a tenth of the first's shares, and at most half of the second's."""
    agreement = new_agreement(admission="invited")
    with Store() as store:
        store.open(agreement, role=role)
        wave = store.collection(agreement.fingerprint)
        store.receive(wave, [arrival(getattr(marked(agreement, *range(held)), role))])
        store.close_collection(agreement.fingerprint)
        with pytest.raises(InfeasibleError, match="leaves out"):
            recorded(store, wave, named(*range(most + 1)))
        assert recorded(store, wave, named(*range(most))).count == held - most


@pytest.mark.parametrize("role", ["first", "second"])
@pytest.mark.parametrize("terms", [{"admission": "anyone"}, {"database_noise": True}])
def test_orphans_do_not_end_a_collection_where_no_promise_hangs_on_their_number(
    role, terms
) -> None:
    """Whoever floods one side with shares that the other does not have is left out, and no more."""
    agreement = new_agreement(**{"admission": "invited"} | terms)
    with Store() as store:
        store.open(agreement, role=role)
        wave = store.collection(agreement.fingerprint)
        store.receive(wave, [arrival(getattr(marked(agreement, *range(60)), role))])
        store.close_collection(agreement.fingerprint)
        assert recorded(store, wave, named(*range(57))).count == 3


@pytest.mark.parametrize("one_in", [10, 2])
def test_a_quorum_of_honest_people_stays_whomever_the_other_side_leaves_out(one_in) -> None:
    """H ≥ n + ϱ·N suffices, and is sharp: over all ways to leave out and to invent."""
    assert one_in in LEFT_OUT_ONE_IN.values()
    quorum = 5
    for honest, invented in itertools.product(range(quorum, 61), range(61)):
        held = honest + invented
        most = held // one_in
        fewest = min(honest - out for out in range(min(honest, most, held - quorum) + 1))
        if honest >= quorum + held / one_in:
            assert fewest >= quorum
        elif held - most >= quorum and honest < quorum + most:
            assert fewest < quorum


def test_a_collection_of_shares_takes_no_more_than_can_be_told(monkeypatch) -> None:
    monkeypatch.setattr("blurfit_server.store.arrivals.MOST_SHARES", 5)
    agreement = new_agreement()
    with Store() as store:
        store.open(agreement, role="second")
        wave = store.collection(agreement.fingerprint)
        first, more = (marked(agreement, *some).second for some in (range(5), range(5, 7)))
        assert store.receive(wave, [arrival(first)]) == [5]
        refused, again = store.receive(wave, [arrival(more), arrival(first)])
        assert isinstance(refused, ClosedError)
        assert again == 0, "whoever is there already is acknowledged"


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
            first.publish_text(agreement.fingerprint, peer)
    assert {s.status(agreement.fingerprint).state for s in (first, second)} == {"closed"}
    assert "somebody sent" in second.status(agreement.fingerprint).reason


def test_each_adds_noise_of_its_own_before_sums_are_exchanged(place) -> None:
    agreement = propose(epsilon=300, database_noise=True)
    name = agreement.fingerprint
    with Store(place) as first, Store() as second:
        peer = opened(agreement, first, second)
        send(agreement, first, second, *range(10))
        second.close_collection(name)
        here, there = first.collection(name), second.collection(name)
        chosen, left_out = fixed(first, name, peer.identifiers(here))
        asked = [peer.masks(here, chosen.digest, chosen.count, left_out) for _ in range(2)]
        assert (asked[0] == asked[1]).all(), "the same noise for whoever asks again"
        one, mine = first.read(joint.sums_over, here)
        other, _ = second.read(joint.sums_over, there)
        assert (one.noise != other.noise).any()
        assert one.noise.any()
        assert other.noise.any()
        model = first.publish_text(name, peer)
        shown = first.moments(agreement)
        assert second.moments(agreement).to_json() == shown.to_json()
        assert first.publish_text(name, peer) == model
        true = np.zeros(len(mine), dtype=np.int64)  # whoever sent k has 2^(k//5) in number k % 5
        for sender in range(10):
            true[sender % 5] += 2 ** (sender // 5)
        steps = np.rint(shown.sums / agreement.step).astype(np.int64)
        noise = one.noise.view(np.int64) - other.noise.view(np.int64)
        assert (steps == true + noise).all()
        # what the first could see at most, having its own noise: the second's is still in it
        seen = (mine - asked[0]).view(np.int64) - one.noise.view(np.int64)
        assert (seen == true - other.noise.view(np.int64)).all()


def test_sums_in_the_field_are_those_of_the_numbers() -> None:
    """For a set that leaves somebody out, with noise and without."""
    agreement = new_agreement(proofs=True)
    generator = np.random.default_rng(3)
    steps = generator.integers(-900, 900, (9, agreement.width))
    names = generator.integers(0, 256, (9, 16), dtype=np.uint8)
    table = Submissions(names, agreement.fingerprint, steps * agreement.step)
    shared = proved_with(agreement, table, [generator.bytes(128) for _ in range(9)])
    left_out = blocks.in_order(names[[2, 5]])
    chosen, sums = Commitment(b"", 7, left_out, database_words(agreement)), []
    for role, shares in (("first", shared.first), ("second", shared.second)):
        with Store() as store:
            store.open(agreement, role=role)
            wave = store.collection(agreement.fingerprint)
            store.receive(wave, [arrival(shares)])
            count, total = store.read(joint._sums_in_the_field, wave, chosen)
            assert count == 7
            sums.append(total)
    circuit, expected = agreement.proving.circuit, np.delete(steps, [2, 5], axis=0).sum(axis=0)
    noise = generator.integers(-(2**40), 2**40, (2, agreement.width))
    noisy = [joint._plus(one, n.view(np.uint64)) for one, n in zip(sums, noise, strict=True)]
    for parts, added in ((sums, 0), (noisy, noise.sum(axis=0))):
        found = circuit.decode(joint.field.add(*parts), 7)
        assert (found == expected + added).all()


def test_verdicts_and_their_key_are_written_once(place) -> None:
    agreement = new_agreement(proofs=True)
    names = np.arange(48, dtype=np.uint8).reshape(3, 16)
    with Store(place) as store:
        store.open(agreement, role="second")
        wave = store.collection(agreement.fingerprint)
        assert len(store.read(judged, wave)) == 0
        assert store.record_verdicts(wave, names[:2], np.array([True, False])).tolist() == [
            True,
            False,
        ]
        stands = store.record_verdicts(wave, names, np.array([False, True, True]))
        assert stands.tolist() == [True, False, True]
        assert len(store.read(judged, wave)) == 3
        valid = {one.tobytes() for one in store.read(joint.judged, wave, valid=True)}
        assert valid == {names[0].tobytes(), names[2].tobytes()}
        assert not len(store.record_verdicts(wave, names[:0], np.zeros(0, dtype=bool)))
        for _ in range(2):
            store.fix_verification_key(wave, b"k" * 32)
        with pytest.raises(ConflictError, match="secret"):
            store.fix_verification_key(wave, b"x" * 32)


def test_what_both_have_is_to_be_signed_by_both(place) -> None:
    keys = [Signer(new_key()).key for _ in range(2)]
    agreement = new_agreement(signing_keys=keys)
    first_key, second_key = (Signature(key, one * 128) for key, one in zip(keys, "ab", strict=True))
    with Store(place) as first, Store() as second:
        peer = opened(agreement, first, second)
        send(agreement, first, second, 1, 2, 3)
        second.close_collection(agreement.fingerprint)
        first.publish_text(agreement.fingerprint, peer)
        assert [one.what for one in first.due()] == ["sign"]
        assert second.due() == [], "the first asks for it"
        first.work(first.due()[0], peer)
        assert first.due() == []
        wave = first.collection(agreement.fingerprint)
        assert first.signatures(wave, "model") == ()
        first.keep_signatures(wave, "model", [second_key])
        first.keep_signatures(wave, "model", [first_key, Signature(keys[1], "c" * 128)])
        first.keep_signatures(wave, "moments", [])
        assert first.signatures(wave, "model") == (first_key, second_key)
        assert first.signatures(wave, "moments") == ()


# ---- at quorum: from wave to wave


@pytest.fixture
def plan():
    with both(PLAN) as found:
        yield found


@pytest.mark.parametrize("noise", [False, True], ids=["alone", "with noise of the databases"])
def test_to_the_logistic_model_itself(noise) -> None:
    """Newton's wave, whose gradient has the largest numbers, and noise of both databases."""
    with both(joint_plan("label", 3, 90, database_noise=noise)) as plan:
        for quorum in plan.plan.quorums:
            plan.send(quorum)
            plan.lead()
            plan.check()
        model = PublishedModel.from_json(plan.second.model(plan.name))
        assert (model.link, model.count, len(model.waves)) == ("logistic", 90, 3)
        draws = {one.agreement.database_draws for one in plan.check_sums()}
        assert draws == {2 if noise else 0}


class Broken(Direct):
    """A second database that does not answer to some calls."""

    def __init__(self, two: Both, *names: str) -> None:
        super().__init__(*two.stores)
        for name in names:
            setattr(self, name, self.lost)

    def lost(self, *_given):
        raise ServiceError("Nobody answers.")


def test_between_two_waves_nobody_is_told_to_blur(plan) -> None:
    """The second closes first: whoever is late is refused where the seed goes."""
    plan.send(FIRST)
    late = plan.shared(1)
    with pytest.raises(ServiceError):
        plan.lead(Broken(plan, "masks"))
    assert plan.states() == [["fixed", "planned"]] * 2
    assert [plan.status(side).awaits for side in (0, 1)] == [None, "Office"]
    for side in (0, 1):
        with pytest.raises(BetweenWavesError, match="Wave 1 is being published"):
            plan.current(side)
    assert all(isinstance(one, WaveClosedError) for one in plan.deliver(late))
    plan.lead()
    plan.check()


def test_killed_at_any_statement_of_either(in_memory) -> None:
    """The first time that a statement of a transaction is reached, whoever runs it is killed.

    Nothing is summed over two sets, no wave has two sums, and in the end all is as if nothing had
    happened.
    """
    killed: set[tuple] = set()
    sums: dict[str, set[bytes]] = {}
    given, released = joint.sums_over, []

    def noted(connection, wave):
        chosen, found = given(connection, wave)
        mark = f"{wave.role} {wave.fingerprint}"
        sums.setdefault(mark, set()).add(chosen.digest + found.tobytes())
        return chosen, found

    with (
        both(PLAN, in_memory / "first.db", in_memory / "second.db") as plan,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(joint, "sums_over", noted)
        for quorum in PLAN.quorums:
            plan.send(quorum)
            with ExitStack() as listening:
                for side, store in enumerate(plan.stores):
                    listening.enter_context(mortal(store, killed, (quorum, side)))
                for _ in range(500):
                    with suppress(KeyboardInterrupt):
                        plan.lead()
                        break
            plan.check()
            texts = plan.first.releases(plan.name)
            assert texts[: len(released)] == released, "published once, and for ever"
            released = texts
        assert plan.first.model(plan.name) == plan.second.model(plan.name)
    assert len(killed) > 60
    assert [len(one) for one in sums.values()] == [1] * 4, "each side, each wave: one set, one sum"


@contextmanager
def mortal(store: Store, killed: set[tuple], where: tuple) -> Iterator[None]:
    """Killed when a statement is reached that was not reached before, in a transaction's order."""
    so_far: list[str] = []

    def reached(_connection, _cursor, statement, *_more) -> None:
        if statement.startswith("BEGIN"):
            so_far.clear()
        so_far.append(statement)
        if (mark := (*where, *so_far)) not in killed:
            killed.add(mark)
            raise KeyboardInterrupt

    engine = store._engine
    event.listen(engine, "before_cursor_execute", reached)
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", reached)


def test_either_may_hold_it(plan) -> None:
    plan.send(FIRST)
    plan.second.hold(plan.name)
    with pytest.raises(InfeasibleError, match="University holds the plan"):
        plan.lead()
    assert plan.states() == [["collecting", "planned"]] * 2
    plan.first.hold(plan.name)
    plan.lead()  # says so, and releases nothing
    plan.second.resume(plan.name)
    assert [plan.status(side).state for side in (0, 1)] == ["held", "held"]
    assert plan.states() == [["collecting", "planned"]] * 2
    plan.first.resume(plan.name)
    plan.peer.close(plan.first.collection(PLAN.first().fingerprint))
    plan.second.hold(plan.name)  # after closing: no sum is told
    with pytest.raises(InfeasibleError, match="University holds the plan"):
        plan.lead()
    plan.second.resume(plan.name)
    plan.lead()
    plan.check()
    assert plan.status(1).state == "collecting"


@pytest.mark.parametrize("side", [0, 1])
def test_a_database_that_was_restored_takes_no_plan_forward(in_memory, side) -> None:
    """The original may have summed over a set since; a second one would give people away."""
    places = [in_memory / "first.db", in_memory / "second.db"]
    with both(PLAN, *places) as plan:
        plan.send(FIRST)
        backup(places[side], in_memory / "backup.db")
        plan.lead()
        plan.send(1, sides=(0,))
    places[side].unlink()
    restore(in_memory / "backup.db", in_memory / "again.db", original_lost=True)
    places[side] = in_memory / "again.db"
    with Store(places[0]) as first, Store(places[1]) as second:
        again, peer = (first, second), Direct(first, second)
        assert again[side].status(plan.name).state == "ended"
        wave = second.collection(PLAN.first().fingerprint)
        before = again[1 - side].releases(plan.name)
        if side == 1:
            held = second.read(blocks.held_identifiers, wave.key)
            digest = joint.digest_of(wave, held)
            for asked in (
                lambda: peer.identifiers(wave),
                lambda: second.sum_of_masks(wave, digest, len(held), b"\xff" * 3),
            ):
                with pytest.raises(ClosedError, match="restored from a backup"):
                    asked()
        else:
            (task,) = first.due()
            with pytest.raises(ConflictError, match="follows from what was released here"):
                first.work(task, peer)
            assert first.due() == [], "it is told once, and not for ever"
        assert again[1 - side].releases(plan.name) == before
        assert again[side].releases(plan.name) == []


def test_a_first_that_was_restored_with_fewer_releases_tells_its_end_once(in_memory) -> None:
    places = [in_memory / "first.db", in_memory / "second.db"]
    with both(PLAN, *places) as plan:
        plan.send(FIRST)
        plan.lead()
        backup(places[0], in_memory / "backup.db")
        plan.send(plan.first.status(plan.name).quorum)
        plan.lead()
    places[0].unlink()
    restore(in_memory / "backup.db", places[0])
    with Store(places[0]) as first, Store(places[1]) as second:
        before = second.status(plan.name), second.releases(plan.name)
        assert len(first.releases(plan.name)) == 1 < len(before[1])
        (task,) = first.due()
        with pytest.raises(ConflictError, match="this one is of fewer"):
            first.work(task, Direct(first, second))
        assert first.due() == [], "it is told once, and not for ever"
        assert (second.status(plan.name), second.releases(plan.name)) == before


def test_nobody_leaves_a_wave_that_is_about_to_be_published(plan) -> None:
    """It could be neither published nor filled again, once the second has closed it."""
    gone = plan.send(1)
    plan.send(FIRST - 2)
    first, second = (store.collection(PLAN.first().fingerprint) for store in plan.stores)
    assert plan.second.withdraw(second, gone.second.identifiers).new == 1
    plan.send(1)
    with pytest.raises(TooFewError, match=f"there are {FIRST - 1}"):
        plan.lead()
    plan.send(1)
    for store, wave in zip(plan.stores, (first, second), strict=True):
        with pytest.raises(WaveClosedError, match="nobody can leave it any more"):
            store.withdraw(wave, store.read(blocks.held_identifiers, wave.key)[-1:])
    plan.lead()
    plan.check()
    assert plan.check_sums()[0].count == FIRST


def test_a_wave_fills_by_those_whom_both_have(plan) -> None:
    plan.send(FIRST - 2)
    plan.send(1, sides=(0,))  # shares without seeds, and a seed without a share
    orphan = plan.send(1, sides=(0,))
    plan.send(1, sides=(1,))
    with pytest.raises(TooFewError, match=f"there are {FIRST - 2}") as refusal:
        plan.lead()
    assert refusal.value.missing == 2
    assert plan.states() == [["collecting", "planned"]] * 2, "nobody can end a plan by one share"
    assert plan.deliver(orphan, (1,)) == [1]
    (task,) = plan.first.due()
    plan.first.put_off(task, 60, refusal.value)
    assert plan.first.due() == []
    plan.send(1)
    assert plan.first.due() == [], "two more were wanted"
    plan.send(1)
    plan.lead()
    plan.check()
    assert plan.status().waves[0].count == FIRST + 2


def test_a_clock_that_was_ahead_delays_no_task(plan) -> None:
    """It wrote the next attempt a year ahead; a date of the plan itself may be as far away."""
    plan.first.move_date(plan.name, FOREVER)
    assert plan.first.due() == [], "its date has not come"
    plan.send(FIRST)
    (task,) = plan.first.due()
    plan.first.put_off(task, LONGEST_PAUSES["advance"])
    assert plan.first.due() == [], "the longest pause of a clock that is right"
    plan.first.put_off(task, 365 * 86400)
    assert [late.key for late in plan.first.due()] == [task.key]
    plan.lead()
    plan.check()


def test_too_uneven_a_wave_goes_on_collecting() -> None:
    """By invitation, a set may leave out a tenth of the first's, and half of the second's."""
    with both(joint_plan(admission="invited")) as plan:
        plan.send(FIRST)
        plan.send(5, sides=(0,))
        with pytest.raises(InfeasibleError, match=f"of {FIRST + 5} at one of them 5 are not"):
            plan.lead()
        assert plan.states() == [["collecting", "planned"]] * 2
        plan.send(SECOND)
        plan.lead()
        plan.check()


def test_a_second_that_names_fewer_after_closing_gets_nothing(plan) -> None:
    class Lying(Direct):
        looks = 0

        def identifiers(self, wave):
            self.looks += 1
            return super().identifiers(wave)[: None if self.looks == 1 else -1]

    plan.send(FIRST)
    with pytest.raises(BelowQuorumError):
        plan.lead(Lying(*plan.stores))
    assert plan.states() == [["collecting", "planned"], ["fixed", "planned"]]
    plan.lead()  # with the truth it goes on
    plan.check()


def test_whoever_asks_first_fixes_the_set(plan) -> None:
    """Whoever has the peer's token: there is no other set afterwards, and no sum before."""
    plan.send(FIRST + 1)
    wave = plan.second.collection(PLAN.first().fingerprint)
    held = plan.peer.identifiers(wave)
    digest = joint.digest_of(wave, held[1:])
    with pytest.raises(InfeasibleError, match="closed"):  # no sum while more may come
        plan.peer.masks(wave, digest, FIRST, held[:1])
    plan.peer.close(wave)
    plan.peer.masks(wave, digest, FIRST, held[:1])
    with pytest.raises(ConflictError, match="There will never be another"):
        plan.lead()
    assert plan.states() == [["fixed", "planned"]] * 2
    assert plan.first.releases(plan.name) == []


def test_no_other_sums_and_no_wave_of_another_plan_are_taken(plan) -> None:
    other, kept = joint_plan(quorum=61), []  # of whom nothing follows here
    wave = PLAN.first().fingerprint
    with both(PLAN) as elsewhere:
        elsewhere.send(FIRST)
        elsewhere.lead()
        (text,) = elsewhere.first.releases(PLAN.fingerprint)
        follows = elsewhere.current().to_json()

    class Announcing(Direct):
        def tell(self, course, news):
            kept.append(news)
            super().tell(course, replace(news, following=other.first().to_json()))

    plan.send(FIRST)
    strange = News("collecting", None, None, wave, text, follows)
    with pytest.raises(InvalidValueError, match="set that was fixed"):
        plan.second.take_news(plan.name, strange)
    with pytest.raises(NotCertifiedError, match="Expected an agreement of the plan"):
        plan.lead(Announcing(*plan.stores))
    assert plan.states() == [["released", "collecting"], ["fixed", "planned"]]
    assert plan.status().awaits == "University"
    with pytest.raises(BetweenWavesError):
        plan.current(1)  # so no contributor blurs
    plan.lead()
    plan.check()
    (news,) = kept
    plan.second.take_news(plan.name, news)  # again changes nothing
    plan.check()
    with pytest.raises(ConflictError, match="a wave has one"):
        plan.second.take_news(plan.name, strange)
    found = learn_plan(PLAN, plan.check_sums())
    wrong = replace(found, weights=found.weights + 1.0).to_json()
    with pytest.raises(InvalidValueError, match="follows from the releases"):
        plan.second.take_news(plan.name, News("ended", None, wrong))
    assert plan.status(1).state == "collecting"


@pytest.mark.parametrize("state", ["collecting", "held", "ended"])
def test_sums_come_with_what_follows_them_or_with_a_checked_end(plan, state) -> None:
    """A model is looked at whatever state it is told with, and no end has a further wave."""
    seen: list[News] = []

    class Deaf(Direct):
        def tell(self, course, news):
            seen.append(news)
            raise ServiceError("Nobody answers.")

    plan.send(FIRST)
    with pytest.raises(ServiceError):
        plan.lead(Deaf(*plan.stores))
    (news,) = seen
    found = learn_plan(PLAN, [PublishedMoments.from_json(news.moments)])
    wrong = replace(found, weights=found.weights + 1.0).to_json()
    lies = [replace(news, state=state, model=wrong, following=None)]
    if state == "ended":
        lies += [replace(news, state=state), replace(news, state=state, model=found.to_json())]
    else:
        lies += [replace(news, state=state, following=None), replace(news, model=wrong)]
    for told in ("before", "after"):
        for one in lies:
            with pytest.raises(InvalidValueError):
                plan.second.take_news(plan.name, one)
        assert plan.states()[1] == (
            ["fixed", "planned"] if told == "before" else ["released", "collecting"]
        )
        plan.lead()
    plan.check()


# ---- what is told late, or while it changes


def test_an_end_is_told_after_the_release_that_led_to_it(plan) -> None:
    """Although that the plan was held is still to be told, from before."""
    plan.send(FIRST)
    plan.first.hold(plan.name)
    deaf = Broken(plan, "tell")
    text = plan.first.publish_text(plan.name, deaf)
    assert plan.states()[1] == ["fixed", "planned"]
    plan.lead()
    plan.check()
    assert plan.second.model(plan.name) == text


def test_what_changes_while_it_is_told_is_told_again(plan) -> None:
    class Slow(Direct):
        def tell(self, course, news):
            super().tell(course, news)
            if news.state == "held":
                plan.first.publish_text(plan.name, Broken(plan, "tell"))

    plan.send(FIRST)
    plan.lead()
    plan.send(3)
    plan.first.hold(plan.name)
    plan.lead(Slow(*plan.stores))
    assert plan.status(1).state == "ended"
    plan.check()


@pytest.mark.parametrize("call", ["identifiers", "close", "masks"])
def test_whoever_ends_it_while_somebody_else_releases_the_wave(plan, call) -> None:
    """The set of one wave is never fixed with the people of another, and both get their answer."""

    class Overtaken(Direct):
        def __getattribute__(self, name):
            if name == call and not met:
                met.append(name)
                plan.lead()
                assert plan.states() == [["released", "collecting"]] * 2
            return super().__getattribute__(name)

    met: list[str] = []
    plan.send(FIRST)
    text = plan.first.publish_text(plan.name, Overtaken(*plan.stores))
    assert PublishedModel.from_json(text).count == FIRST
    assert plan.states() == [["released", "dropped"]] * 2
    plan.check()


def test_closed_by_its_date_the_set_of_a_second_stays_if_its_clock_is_set_back(two) -> None:
    agreement, first, second, peer = two
    name = agreement.fingerprint
    second.move_date(name, FOREVER)
    let_pass(second, name)

    class Killed(Direct):
        def masks(self, *given):
            super().masks(*given)
            raise ServiceError("Nobody answers.")

    with pytest.raises(ServiceError):
        first.publish_text(name, Killed(first, second))
    second.write(update, second.course(name), closes=FOREVER)  # as if it had not come
    (late,) = second.receive(second.collection(name), [arrival(marked(agreement, 40).second)])
    assert isinstance(late, ClosedError)
    assert first.publish_text(name, peer) == second.model(name)


def test_a_wave_that_is_being_dropped_does_not_wait_for_the_date(plan) -> None:
    """Its end goes on at once, whoever was killed after it was fixed."""
    plan.first.move_date(plan.name, FOREVER)
    plan.send(FIRST)
    plan.lead()
    plan.send(3)
    course = plan.first.course(plan.name)
    plan.first.write(release.fix, course, end=True)  # and killed
    assert plan.states()[0] == ["released", "fixed"]
    plan.lead()
    plan.check()
    assert plan.states() == [["released", "dropped"]] * 2


# ---- how a plan ends


def test_ended_while_the_second_is_away(plan) -> None:
    """Nothing is thrown away for a moment's silence; who holds it first says that it may be."""
    away = Broken(plan, "identifiers", "close", "masks", "tell")
    plan.send(FIRST)
    plan.lead()
    plan.send(SECOND)
    with pytest.raises(ServiceError, match="Nothing has ended"):
        plan.first.publish_text(plan.name, away)
    assert plan.status().state == "collecting"
    plan.first.hold(plan.name)
    text = plan.first.publish_text(plan.name, away)
    assert PublishedModel.from_json(text).count == FIRST
    assert [plan.status(side).state for side in (0, 1)] == ["ended", "collecting"]
    assert plan.status().awaits == "University"
    plan.lead()  # when it is back
    plan.check()
    assert plan.second.model(plan.name) == text


def work_off(plan: Both, peer: Direct) -> list[BlurfitError]:
    """Do what is to be done, each by itself, as a service does; what went wrong is returned."""
    wrong: list[BlurfitError] = []
    for task in plan.first.due():
        try:
            plan.first.work(task, peer)
        except BlurfitError as error:
            wrong.append(error)
    return wrong


def test_a_full_wave_is_released_when_the_date_comes_and_none_without_its_quorum() -> None:
    for come, released in ((FIRST, "released"), (FIRST - 1, "dropped")):
        with both(PLAN) as plan:
            plan.first.move_date(plan.name, FOREVER)
            plan.send(come)
            let_pass(plan.first, plan.name)
            plan.lead()
            plan.check()
            assert plan.states() == [[released, "planned"]] * 2
            assert [plan.status(side).state for side in (0, 1)] == ["ended", "ended"]


def test_its_date_ends_it_also_if_the_second_takes_no_further_wave(plan) -> None:
    """Because what was announced does not follow there."""

    class Rounds(Direct):
        def tell(self, course, news):
            stranger = joint_plan(quorum=61).first().to_json()
            super().tell(course, replace(news, following=news.following and stranger))

    other = Rounds(*plan.stores)
    plan.first.move_date(plan.name, FOREVER)
    plan.send(FIRST)
    with pytest.raises(NotCertifiedError, match="Expected an agreement of the plan"):
        plan.lead(other)
    assert plan.states() == [["released", "collecting"], ["fixed", "planned"]]
    let_pass(plan.first, plan.name)
    (refused,) = work_off(plan, other)
    assert isinstance(refused, NotCertifiedError)
    assert plan.states()[0] == ["released", "dropped"]
    assert work_off(plan, other) == []
    assert plan.states() == [["released", "dropped"], ["released", "planned"]]
    assert len({store.model(plan.name) for store in plan.stores}) == 1
