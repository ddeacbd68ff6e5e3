"""What an account remembers: rows that it has blurred, in any order and file, and what it sent."""

import math
import stat
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from blurfit import About, Agreement, Numeric, Schema
from blurfit.contributor.sending import Account, Entry, total
from blurfit.errors import InvalidValueError
from blurfit.theory.gaussian import delta_of

X, Y = np.arange(12.0).reshape(6, 2), np.arange(6.0)
ONE = "a" * 64


def test_the_hash_is_that_of_the_rows_in_any_order_and_in_any_parts() -> None:
    memory = Account()
    order = np.array([3, 1, 5, 0, 2, 4])
    whole = memory.hashed(X, Y)
    assert memory.hashed(X[order], Y[order]) == whole
    assert (memory.hashed(X[:2], Y[:2]) + memory.hashed(X[2:], Y[2:])) % 2**256 == whole
    assert memory.hashed(X, -0.0 + Y) == whole
    assert memory.hashed(-0.0 * X, Y) == memory.hashed(0.0 * X, Y)
    for other in (X[:-1], X + 1e-9):
        assert memory.hashed(other, Y[: len(other)]) != whole
    assert memory.hashed(X, Y[::-1]) != whole  # who answered what


def test_without_the_key_the_hash_says_nothing(home, tmp_path) -> None:
    here, elsewhere = Account(), Account(tmp_path / "other")
    assert here.hashed(X, Y) == Account().hashed(X, Y)
    assert here.hashed(X, Y) != elsewhere.hashed(X, Y)
    assert stat.S_IMODE(here.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert len(here.key) == 32


def test_a_broken_home_is_refused(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidValueError, match="Set BLURFIT_HOME to another one"):
        Account(tmp_path / "file" / "folder").claim(ONE, 7, "first")


def test_who_comes_at_the_same_time_finds_the_same_key(tmp_path) -> None:
    for place in range(5):
        with ThreadPoolExecutor(8) as threads:
            folder = tmp_path / f"home{place}"
            keys = set(threads.map(lambda _, folder=folder: Account(folder).key, range(8)))
        assert [len(key) for key in keys] == [32]


# ---- the ledger

TERMS = {"epsilon": 1, "delta": 1e-6, "quorum": 500}


def agreement(purpose: str | None = None, **terms) -> Agreement:
    schema = Schema(
        [Numeric("age", 0, 100)],
        Numeric("income", 0, 1000),
        about=About(purpose=purpose, organiser="The Office" if purpose else None),
    )
    return Agreement.propose(schema, **{**TERMS, **terms})


@pytest.fixture
def ledger() -> Account:
    return Account()


def test_the_same_purpose_under_another_agreement(ledger) -> None:
    first, second, other = agreement("health"), agreement("health", epsilon=2), agreement("wealth")
    ledger.note(Entry.of(first, 10, "there"), "journal")
    assert ledger.earlier(second).fingerprint == first.fingerprint
    assert ledger.earlier(first) is None
    assert ledger.earlier(other) is None
    assert ledger.earlier(agreement()) is None


def test_gaussian_promises_add_up_exactly() -> None:
    """√Σμ², by the profile: at the ε that is told, δ is the one asked for."""
    made = [agreement(str(n), epsilon=n) for n in (1, 2, 3)]
    entries = [Entry.of(one, 1, "") for one in made]
    (epsilon,) = (one.epsilon for one in total(entries).values())
    mu = math.sqrt(sum(one.calibration.mu**2 for one in made))
    assert delta_of(mu, epsilon) == pytest.approx(1e-6, rel=1e-4)
    assert delta_of(mu, epsilon) <= 1e-6
    assert 3 < epsilon < 6  # not 1 + 2 + 3


def test_waves_count_once_and_relations_are_told_apart() -> None:
    one = Entry.of(agreement("a"), 1, "")
    wave = Entry(**{**one.__dict__, "fingerprint": "other", "mu": 0.9 * one.mu})
    assert total([one, wave]) == total([one]) == total([wave, one])
    blank = Entry.of(agreement("a", neighbours="zero-out"), 1, "")
    assert set(total([one, blank])) == {"replace", "zero-out"}
