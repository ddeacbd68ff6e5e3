"""A service's own keys: made once, for their owner alone."""

import pytest

from blurfit.commands.keys import beside, key_in, signing_key_in
from blurfit.errors import InvalidValueError
from blurfit.messages.signing import Signer, new_key


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
