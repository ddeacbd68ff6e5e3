"""What a service makes at its first start: its administrator's token, and its own keys."""

import pytest

from blurfit.cli.serve import appoint, beside, key_in, signing_key_in
from blurfit.errors import InvalidValueError
from blurfit.messages.signing import Signer, new_key
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


def test_the_key_is_made_once_for_its_owner_beside_the_store(tmp_path) -> None:
    path = beside(f"sqlite:///{tmp_path}/collection.db")
    assert path == tmp_path / "collection.db.signing-key"
    private, said = signing_key_in(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert Signer(private).key in said
    assert private not in said
    assert signing_key_in(path) == (private, said)
    assert beside("postgresql://user@host/name") is None
    assert signing_key_in(None) == (None, "")
    path.write_text("not a key")
    with pytest.raises(InvalidValueError, match="--signing-key-file"):
        key_in("--signing-key-file", path, new_key, lambda one: Signer(one).key)
