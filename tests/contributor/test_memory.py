"""The same rows are known again, in any order and file, and under another agreement are not."""

import stat
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from blurfit.contributor import account
from blurfit.contributor.account import Memory
from blurfit.errors import ConflictError, InvalidValueError

X, Y = np.arange(12.0).reshape(6, 2), np.arange(6.0)
ONE, OTHER = "a" * 64, "b" * 64


def test_the_hash_is_that_of_the_rows_in_any_order_and_in_any_parts() -> None:
    memory = Memory()
    order = np.array([3, 1, 5, 0, 2, 4])
    whole = memory.hashed(X, Y)
    assert memory.hashed(X[order], Y[order]) == whole
    assert (memory.hashed(X[:2], Y[:2]) + memory.hashed(X[2:], Y[2:])) % 2**256 == whole
    assert memory.hashed(X, -0.0 + Y) == whole
    assert memory.hashed(-0.0 * X, Y) == memory.hashed(0.0 * X, Y)
    for other in (X[:-1], X + 1e-9):
        assert memory.hashed(other, Y[: len(other)]) != whole
    assert memory.hashed(X, Y[::-1]) != whole  # who answered what


def test_twice_the_same_row_is_not_the_row_once(home) -> None:
    memory = Memory()
    assert memory.hashed(X[[0, 0]], Y[[0, 0]]) != memory.hashed(X[:1], Y[:1])


def test_only_the_journal_that_was_first_may_go_on(home) -> None:
    memory = Memory()
    memory.claim(ONE, 7, "first")
    memory.claim(ONE, 7, "first")
    memory.claim(OTHER, 7, "second")
    memory.claim(ONE, 8, "second")
    with pytest.raises(ConflictError, match="blurred before under this agreement"):
        Memory().claim(ONE, 7, "second")
    Memory().claim(ONE, 7, "first")


def test_without_the_key_the_hash_says_nothing(home, tmp_path) -> None:
    here, elsewhere = Memory(), Memory(tmp_path / "other")
    assert here.hashed(X, Y) == Memory().hashed(X, Y)
    assert here.hashed(X, Y) != elsewhere.hashed(X, Y)
    key = home / "key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert len(key.read_bytes()) == 32


def test_a_broken_home_is_refused(home, tmp_path) -> None:
    home.mkdir()
    (home / "key").write_bytes(b"short")
    with pytest.raises(InvalidValueError, match="32 bytes, and it holds 5"):
        Memory()
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidValueError, match="Set BLURFIT_HOME to another one"):
        Memory(tmp_path / "file" / "folder")


def test_who_comes_at_the_same_time_finds_a_whole_key_or_none(tmp_path) -> None:
    """Killed or overtaken while it is drawn: nobody ever reads a part of it."""
    for place in range(20):
        path = tmp_path / f"key{place}"
        with ThreadPoolExecutor(8) as threads:
            keys = set(threads.map(lambda _, path=path: account._key(path), range(8)))
        assert [len(key) for key in keys] == [32]
    assert len(list(tmp_path.iterdir())) == 20
