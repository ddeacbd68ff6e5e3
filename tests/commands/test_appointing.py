"""The administrator's token: made once, kept as a hash, replaced only on demand."""

import pytest

from blurfit.commands.appointing import appoint
from blurfit.errors import InvalidValueError
from blurfit.protocol import tokens
from blurfit.store.store import Store

ONCE = "The administrator's token, shown this once, is "


@pytest.fixture
def store():
    with Store() as store:
        yield store


def test_a_token_file_that_is_there_already_is_used_for_a_new_store(store, tmp_path) -> None:
    path, token = tmp_path / "token.txt", tokens.new_token()
    tokens.write_token(path, token)
    assert str(path) in appoint(store, path)
    assert tokens.matches(token, store.administrator())
    assert appoint(store, path) == f"The administrator's token is in {path}."
    assert tokens.read_token(path) == token


def test_a_guessable_token_is_refused_for_a_new_store(store, tmp_path) -> None:
    path = tmp_path / "token.txt"
    path.write_text("admin\n")
    with pytest.raises(InvalidValueError, match="at least 32"):
        appoint(store, path)
    assert store.administrator() is None


def test_a_lost_token_file_is_not_made_up(store, tmp_path) -> None:
    path = tmp_path / "token.txt"
    appoint(store, path)
    before = store.administrator()
    path.unlink()
    assert "--new-admin-token" in appoint(store, path)
    assert not path.exists()
    assert store.administrator() == before
    assert "which is new" in appoint(store, path, replace=True)
    assert tokens.matches(tokens.read_token(path), store.administrator())


def test_a_new_token_without_a_file_is_shown(store) -> None:
    first = appoint(store, None).removeprefix(ONCE)
    second = appoint(store, None, replace=True).removeprefix(ONCE)
    assert first != second
    assert tokens.matches(second, store.administrator())
    assert not tokens.matches(first, store.administrator())
