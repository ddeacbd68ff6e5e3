"""Everyone is in one wave: what may have arrived is never blurred again, whatever happens."""

import numpy as np
import pytest

from blurfit.contributor import sending
from blurfit.contributor.blur import perturb_table
from blurfit.contributor.client import Client
from blurfit.contributor.sending import blur_table
from blurfit.errors import (
    ClosedError,
    ConflictError,
    NotCertifiedError,
    ServiceError,
    WaveClosedError,
)
from blurfit.model.course import Course, follows, next_agreement
from blurfit.protocol import hashed
from support.lots import invitations, toss
from support.plans import people, plan, release, rows, written

PLAN = plan("number", waves=2, quorum=60, admission="anyone")
NAMES = ("age", "education", "region", "married", "income")
AT_ONCE = 5


@pytest.fixture(autouse=True)
def small_parts(monkeypatch) -> None:
    monkeypatch.setattr(sending, "ROWS_AT_ONCE", AT_ONCE)


def connected(url: str, network) -> Client:
    return Client(url, transports=[network], patience=0.0, pause=lambda _seconds: None)


def second_wave(store):
    """Wave 1 gets the rest of its quorum and is published; wave 2 is opened."""
    first = PLAN.first()
    missing = first.quorum - store.count(first)
    if missing > 0:
        store.add(first, perturb_table(first, rows(people(60), 0, missing)))
    store.publish(first)
    found = next_agreement(PLAN, [store.moments(first)])
    follows(PLAN, [store.moments(first)], found)
    store.open(found)
    return found


@pytest.mark.parametrize("lost", ["response", "request"])
def test_a_part_is_lost_and_the_wave_closed_in_between(url, store, network, tmp_path, lost) -> None:
    """What has arrived is sent again as it is and counted once; what has not is left out, and that
    is said. Neither is blurred for the new wave, in which rows take part that never were."""
    table = written(tmp_path / "people.csv", people(12, 8), NAMES)
    first = PLAN.first()
    store.open(first)
    network.fates = ["fine", f"lose {lost}"]
    with connected(url, network) as client:
        with pytest.raises(ServiceError):
            client.contribute_table(first, table)
        assert store.count(first) == (10 if lost == "response" else 5)
        later = second_wave(store)
        before = store.moments_text(first.fingerprint)
        if lost == "request":
            with pytest.raises(ClosedError, match="5 rows were blurred for an earlier wave"):
                client.contribute_table(later, table)
        assert client.contribute_table(later, table) == 12
    assert network.sent[2] == network.sent[1]  # the same bytes, to the wave they are for
    assert len(network.sent) == 4
    assert (store.count(first), store.count(later)) == (PLAN.quorums[0], 2)
    assert store.moments_text(first.fingerprint) == before  # a wave is released once


def test_whoever_took_part_is_told_so_and_not_asked_again(url, store, network, tmp_path) -> None:
    table = written(tmp_path / "people.csv", people(12, 8), NAMES)
    first = PLAN.first()
    store.open(first)
    with connected(url, network) as client:
        client.contribute_table(first, table)
        later = second_wave(store)
        sent = len(network.sent)
        with pytest.raises(ConflictError, match="took part in an earlier wave"):
            client.contribute_table(later, table)
        # nor from a copy of the table, with a journal of its own
        copy = written(tmp_path / "copy.csv", people(12, 8), NAMES)
        with pytest.raises(ConflictError, match="blurred before"):
            client.contribute_table(later, copy)
    assert len(network.sent) == sent
    assert store.count(later) == 0


def test_a_file_of_one_wave_is_not_blurred_for_another(store, tmp_path) -> None:
    table = written(tmp_path / "people.csv", people(12, 8), NAMES)
    store.open(PLAN.first())
    later = second_wave(store)
    blur_table(PLAN.first(), table, tmp_path / "one.parquet")
    with pytest.raises(ConflictError, match="nobody takes part twice"):
        blur_table(later, table, tmp_path / "two.parquet")
    assert not (tmp_path / "two.parquet").exists()


# ---- a table under a plan, whose waves open by themselves


def test_a_table_goes_through_the_waves_and_loses_nobody(url, store, network, tmp_path) -> None:
    """Each part is blurred for the wave that collects then; one sender is never too late."""
    table = written(tmp_path / "people.csv", people(60, 8), NAMES)
    store.open(PLAN)
    first = PLAN.first()
    with connected(url, network) as client:
        assert client.contribute_table(PLAN, table) == 60
        with pytest.raises(ConflictError, match="took part in this plan"):
            client.contribute_table(PLAN, table)
    waves = store.status(PLAN.fingerprint).waves
    assert tuple(one.count for one in waves) == PLAN.quorums  # no part is longer than a wave needs
    assert [one.state for one in waves] == ["released", "released"]
    assert waves[0].fingerprint == first.fingerprint


def test_rows_of_a_later_wave_wait_and_each_is_sent_in_its_own(
    url, store, network, tmp_path
) -> None:
    """By the lot of their invitations, wherever they are in the table."""
    invited = plan("number", waves=2, quorum=60)
    table = written(tmp_path / "people.csv", people(14, 8), NAMES)
    store.open(invited)
    first = invited.first()
    ones, twos = (invitations(invited, group, 7) for group in (1, 2))
    tokens = [one for both in zip(twos, ones, strict=True) for one in both]
    store.invite(first.fingerprint, map(hashed, tokens))
    told: list[dict[int, int]] = []
    options = {"invitations": [tokens], "waiting": told.append}
    with connected(url, network) as client:
        assert client.contribute_table(invited, table, **options) == 7
        assert client.contribute_table(invited, table, **options) == 7, "nothing changes"
        assert told == [{2: 7}] * 2
        assert store.count(first) == 7
        store.add(first, perturb_table(first, rows(people(60), 0, invited.quorums[0] - 7)))
        store.advance(invited.fingerprint)
        second = store.current(invited.fingerprint)
        assert client.contribute_table(invited, table, **options) == 14
        assert store.count(second) == 7
        with pytest.raises(ConflictError, match="took part in this plan"):
            client.contribute_table(invited, table, **options)
    assert told == [{2: 7}] * 2
    assert store.unused_invitations(first.fingerprint) == 0


def test_rows_whose_wave_is_over_are_left_out_and_nothing_of_them_leaves(
    url, store, network, tmp_path, monkeypatch
) -> None:
    toss(monkeypatch, 1, 2, 1)
    table = written(tmp_path / "people.csv", people(9, 8), NAMES)
    store.open(PLAN)
    first = PLAN.first()
    network.fates = ["lose request"]
    with connected(url, network) as client:
        with pytest.raises(ServiceError):
            client.contribute_table(PLAN, table)  # three of the first group have been blurred
        store.add(first, perturb_table(first, rows(people(60), 0, PLAN.quorums[0])))
        store.advance(PLAN.fingerprint)
        second = store.current(PLAN.fingerprint)
        with pytest.raises(WaveClosedError, match=r"^3 rows were blurred .* 3 rows are in a"):
            client.contribute_table(PLAN, table)
    assert store.count(second) == 3
    assert network.sent[0] == network.sent[1] != network.sent[2]


def test_an_announced_wave_that_does_not_follow_is_refused(url, store, network) -> None:
    """A database that chose another map than its releases say gets nothing."""
    store.open(PLAN)
    first = PLAN.first()
    store.add(first, perturb_table(first, rows(people(60), 0, PLAN.quorums[0])))
    other = next_agreement(PLAN, [release(first, people(60), np.random.default_rng(5))])
    with pytest.MonkeyPatch.context() as hostile:
        hostile.setattr(Course, "next_agreement", lambda _course: other)
        store.advance(PLAN.fingerprint)
        assert store.current(PLAN.fingerprint) == other
    with connected(url, network) as client, pytest.raises(NotCertifiedError):
        client.contribute(PLAN, {name: column[0] for name, column in people(1).items()})
    assert not network.sent
