"""Counted once, kept, and all or nothing."""

import contextlib
import sqlite3

import numpy as np
import pytest

from blurfit import InfeasibleError, InvalidValueError
from blurfit.agreement.agreement import Agreement
from blurfit.agreement.schema import Numeric, Schema
from blurfit.agreement.submission import Submission, Submissions
from blurfit.contributor.perturb import perturb, perturb_table
from blurfit.database.statistics import Statistics
from blurfit.database.store import Store

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
PEOPLE = {"age": np.linspace(0, 100, 40), "income": np.linspace(0, 100, 40)}


@pytest.fixture(params=["moment", "input"])
def agreement(request) -> Agreement:
    return Agreement.propose(
        SCHEMA, epsilon=1, delta=1e-6, quorum=20, mechanism=request.param, weight_bound=2.0
    )


def sums(agreement: Agreement, batch: Submissions) -> Statistics:
    kind = Statistics.of_moments if agreement.mechanism == "moment" else Statistics.of_records
    return kind(batch.quadratic, batch.linear)


def test_statistics_are_the_sums_of_what_was_stored(agreement, tmp_path) -> None:
    batch = perturb_table(agreement, PEOPLE)
    path = tmp_path / "collection.db"
    with Store(path) as store:
        assert store.add(agreement, batch) == 40
    with Store(path) as store:  # another process, later
        assert store.count(agreement) == 40
        stored, expected = store.statistics(agreement), sums(agreement, batch)
        assert stored.count == 40
        np.testing.assert_allclose(stored.gram, expected.gram, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(stored.moment, expected.moment, rtol=1e-12, atol=1e-12)


def test_sent_twice_is_counted_once(agreement) -> None:
    batch = perturb_table(agreement, PEOPLE)
    one = next(iter(batch))
    with Store() as store:
        assert store.add(agreement, one) == 1
        assert store.add(agreement, one) == 0
        assert store.add(agreement, batch) == 39
        assert store.count(agreement) == 40


def test_a_name_with_other_numbers_is_a_conflict_and_nothing_of_the_batch_is_kept(
    agreement,
) -> None:
    batch = perturb_table(agreement, PEOPLE)
    one = next(iter(batch))
    other = Submission(
        one.identifier, one.fingerprint, one.mechanism, one.quadratic + 1, one.linear
    )
    with Store() as store:
        store.add(agreement, other)
        with pytest.raises(InvalidValueError, match=one.identifier):
            store.add(agreement, batch)
        assert store.count(agreement) == 1


def test_agreements_do_not_mix(agreement) -> None:
    another = Agreement.propose(
        SCHEMA,
        epsilon=2,
        delta=1e-6,
        quorum=20,
        mechanism=agreement.mechanism,
        weight_bound=2.0,
    )
    record = {"age": 30, "income": 50}
    with Store() as store:
        store.add(agreement, perturb(agreement, record))
        store.add(another, perturb(another, record))
        assert store.count(agreement) == store.count(another) == 1
        with pytest.raises(InvalidValueError, match="another agreement"):
            store.add(agreement, perturb(another, record))
        assert store.statistics(agreement).count == 1


def test_published_once_and_closed(agreement, tmp_path) -> None:
    path = tmp_path / "collection.db"
    with Store(path) as store:
        store.add(agreement, perturb_table(agreement, {k: v[:19] for k, v in PEOPLE.items()}))
        with pytest.raises(InfeasibleError, match="1 more contributors"):
            store.publish(agreement)
        store.add(agreement, perturb_table(agreement, PEOPLE))
        first = store.publish(agreement)
        assert first.count == 59
        with pytest.raises(InfeasibleError, match="closed"):
            store.add(agreement, perturb_table(agreement, PEOPLE))
    with Store(path) as store:
        assert store.publish(agreement).to_json() == first.to_json()
        assert store.count(agreement) == 59


def test_sent_again_after_publishing_is_still_accepted(agreement) -> None:
    batch = perturb_table(agreement, PEOPLE)
    with Store() as store:
        store.add(agreement, batch)
        store.publish(agreement)
        assert store.add(agreement, batch) == 0
        assert store.add(agreement, next(iter(batch))) == 0


def test_a_conflict_is_seen_while_others_write(agreement, tmp_path) -> None:
    batch = perturb_table(agreement, PEOPLE)
    one = next(iter(batch))
    clash = Submission(
        one.identifier, one.fingerprint, one.mechanism, one.quadratic + 1, one.linear
    )
    path = tmp_path / "collection.db"
    with Store(path) as mine, Store(path) as theirs:
        mine.add(agreement, one)
        count = mine.count

        def count_and_let_others_in(asked: Agreement) -> int:
            found = count(asked)
            with contextlib.suppress(sqlite3.OperationalError):  # locked, while mine is writing
                theirs.add(
                    agreement, perturb_table(agreement, {k: v[:1] for k, v in PEOPLE.items()})
                )
            return found

        theirs._connection.execute("PRAGMA busy_timeout = 0")
        mine.count = count_and_let_others_in
        with pytest.raises(InvalidValueError, match=one.identifier):
            mine.add(agreement, clash)


def test_what_is_no_submission_or_no_file_is_refused(agreement) -> None:
    with Store() as store, pytest.raises(InvalidValueError, match="blurred by their contributors"):
        store.add(agreement, PEOPLE)
    with pytest.raises(InvalidValueError, match="Does its folder exist"):
        Store("no/such/folder/collection.db")


def test_wrong_dimension_is_refused(agreement) -> None:
    wrong = Submission("00" * 16, agreement.fingerprint, "input", np.zeros(3), np.zeros(3))
    with Store() as store, pytest.raises(InvalidValueError, match="of dimension 3"):
        store.add(agreement, wrong)
