"""What never changes about a collection follows from its agreement and role alone."""

import time

import numpy as np
import pytest

from blurfit import perturb_table
from blurfit.contributor.blur import blur, shared_with
from blurfit.errors import UnknownCollectionError
from blurfit.learning.sums import total
from blurfit.messages.shares import expand
from blurfit.store import collections, migrations
from blurfit.store.collections import LARGEST, Collection
from blurfit.store.transactions import Transactions
from support import sharing
from support.stores import PEOPLE, propose, totals_of


@pytest.fixture
def database(place):
    with Transactions(place) as found:
        found.write(migrations.migrate)
        yield found


def test_a_collection_is_begun_once_and_found_as_it_was(database, agreement) -> None:
    key, new = database.write(collections.begin, agreement)
    assert new
    assert database.write(collections.begin, agreement) == (key, False)
    found = database.read(collections.find, agreement.fingerprint)
    assert (found.key, found.invited, found.role) == (key, False, "whole")
    assert found.agreement.to_json() == agreement.to_json()
    assert found.fingerprint == agreement.fingerprint
    shown = database.read(collections.shown, found)
    assert shown.state == database.read(collections.state, found) == "collecting"
    assert abs(shown.opened - time.time() / 3600) < 2
    assert (shown.closes, shown.has_sums) == (None, False)


def test_invitations_are_needed_unless_the_agreement_says_anyone(database) -> None:
    for admission, needed in (("invited", True), ("anyone", False)):
        agreement = propose(admission=admission)
        database.write(collections.begin, agreement)
        assert database.read(collections.find, agreement.fingerprint).invited is needed


def test_collections_are_listed_in_the_order_of_their_opening(database) -> None:
    agreements = [propose(quorum=quorum) for quorum in (30, 20, 25)]
    assert database.read(collections.fingerprints) == []
    for agreement in agreements:
        database.write(collections.begin, agreement)
    expected = [agreement.fingerprint for agreement in agreements]
    assert database.read(collections.fingerprints) == expected


@pytest.mark.parametrize("fingerprint", ["ab" * 32, "AB" * 32, "", "\x00", "ab" * 31, "é" * 64])
def test_what_was_never_opened_is_unknown(database, fingerprint: str) -> None:
    """Also what a database would choke on, such as PostgreSQL on a zero byte."""
    with pytest.raises(UnknownCollectionError, match="Nothing is collected"):
        database.read(collections.find, fingerprint)


def test_sums_of_submissions_are_exact(agreement) -> None:
    collection = Collection.of(1, agreement)
    table = perturb_table(agreement, PEOPLE)
    numbers = collection.numbers(table.rows(collection.layout))
    assert np.array_equal(numbers, table.numbers)
    assert len(table) <= collection.exact_rows
    half = len(table) // 2
    parts = [(half, collection.sums(numbers[:half])), (half, collection.sums(numbers[half:]))]
    assert total(agreement, parts, collection.exact_rows) == totals_of(agreement, table)
    assert 1 < collection.block_rows <= LARGEST


def test_shares_add_up_to_the_sums_of_whole_submissions_and_nothing_is_told_of_them() -> None:
    agreement = sharing.propose()
    table = blur(agreement, agreement.exact(PEOPLE))
    keys = np.random.default_rng(0).integers(0, 2**64, (len(table), 4), dtype=np.uint64)
    shares = shared_with(agreement, table, keys)
    sums = []
    for role, part in (("first", shares.first), ("second", shares.second)):
        collection = Collection.of(1, agreement, role=role)
        rows = part.layout.joined(part.identifiers, part.words)
        assert np.array_equal(collection.numbers(rows), part.words)
        assert collection.screen is None
        sums.append(collection.sums(part.words))
    (one,) = agreement.parts
    unmasked = (sums[0] - sums[1]).view(np.int64)
    expected = [sum(map(int, column)) for column in (table.numbers / one.step).T.tolist()]
    assert unmasked.tolist() == expected
    assert np.array_equal(sums[1], expand(keys, table.numbers.shape[1]).sum(axis=0))
