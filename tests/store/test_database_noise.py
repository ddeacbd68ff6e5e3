"""The database's own noise in a store: drawn once, whoever asks again, and with two databases."""

import numpy as np
import pytest
from blurfit.service.peer import publish

from blurfit.contributor.blur import perturb_table
from blurfit.learning.sums import Totals
from blurfit.randomness import database
from blurfit.store import joint_publication, shared_sums
from blurfit.store.store import Store
from support.sharing import new_agreement, opened, send
from support.sharing import propose as propose_two
from support.stores import PEOPLE, propose, totals_of


def test_one_release_whoever_asks_again(place) -> None:
    agreement = propose(database_noise=True)
    sent = perturb_table(agreement, PEOPLE)
    with Store(place) as store:
        store.add(agreement, sent)
        first = store.publish_text(agreement.fingerprint)
        shown = store.moments(agreement)
        assert store.publish_text(agreement.fingerprint) == first
    with Store(place) as store:
        assert store.moments(agreement).to_json() == shown.to_json()
        assert store.publish_text(agreement.fingerprint) == first
    added = (shown.sums - totals_of(agreement, sent).sums) / agreement.grid.quadratic
    assert (added == np.rint(added)).all()
    assert (added != 0).all()


def test_killed_before_the_release_is_kept_the_noise_is_drawn_no_second_time(
    place, monkeypatch
) -> None:
    """It was written down with the set, so whoever continues adds the same."""
    agreement = propose(database_noise=True)
    drawn = []

    def watched(*arguments) -> Totals:
        drawn.append(database.blurred(*arguments))
        return drawn[-1]

    monkeypatch.setattr("blurfit.store.publication.blurred", watched)
    with Store(place) as store:
        store.add(agreement, perturb_table(agreement, PEOPLE))
        with monkeypatch.context() as patch:
            patch.setattr("blurfit.store.publication.record", _power_cut)
            with pytest.raises(KeyboardInterrupt):
                store.publish(agreement)
        assert store.status(agreement.fingerprint).state == "closed"
    with Store(place) as store:
        store.publish(agreement)
        store.publish(agreement)
        assert len(drawn) == 2, "one that was lost, one that is kept, and none for who asks again"
        assert (store.moments(agreement).sums == drawn[0].sums).all()
        assert (drawn[1].sums == drawn[0].sums).all()


def _power_cut(*_arguments) -> None:
    raise KeyboardInterrupt


def test_each_of_two_databases_adds_its_own_before_sums_are_exchanged(place) -> None:
    agreement = propose_two(epsilon=300, database_noise=True)
    with Store(place) as first, Store() as second:
        peer = opened(agreement, first, second)
        send(agreement, first, second, *range(10))
        second.close_collection(agreement.fingerprint)
        here, there = (one.collection(agreement.fingerprint) for one in (first, second))
        chosen, left_out = first.write(joint_publication.fix, here, peer.identifiers())
        asked = [peer.masks(chosen.digest, chosen.count, left_out) for _ in range(2)]
        assert (asked[0] == asked[1]).all(), "the same noise for whoever asks again"
        one, mine = first.read(shared_sums.sums_over, here)
        other, _ = second.read(shared_sums.sums_over, there)
        assert (one.noise != other.noise).any()
        assert one.noise.any()
        assert other.noise.any()
        model = publish(first, agreement.fingerprint, peer)
        shown = first.moments(agreement)
        assert second.moments(agreement).to_json() == shown.to_json()
        assert publish(first, agreement.fingerprint, peer) == model
        true = np.zeros(len(mine), dtype=np.int64)  # whoever sent k has 2^(k//5) in number k % 5
        for sender in range(10):
            true[sender % 5] += 2 ** (sender // 5)
        steps = np.rint(shown.sums / agreement.grid.quadratic).astype(np.int64)
        both = one.noise.view(np.int64) - other.noise.view(np.int64)
        assert (steps == true + both).all()
        # what the first could see at most, having its own noise: the second's is still in it
        seen = (mine - asked[0]).view(np.int64) - one.noise.view(np.int64)
        assert (seen == true - other.noise.view(np.int64)).all()


def test_without_it_nothing_is_added(place) -> None:
    agreement = new_agreement()
    with Store(place) as first, Store() as second:
        peer = opened(agreement, first, second)
        send(agreement, first, second, *range(10))
        second.close_collection(agreement.fingerprint)
        chosen, _ = first.write(
            joint_publication.fix, first.collection(agreement.fingerprint), peer.identifiers()
        )
        assert not chosen.noise.any()
