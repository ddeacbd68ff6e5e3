"""Further tokens, what each is good for, and what was done."""

import pytest

from blurfit import ConflictError, InvalidValueError
from blurfit.protocol import tokens
from blurfit.store import stewards
from blurfit.store.stewards import Bearer
from blurfit.store.store import Store


def granted(store, name="mail office", right="invite") -> bytes:
    hashed = tokens.hashed(tokens.new_token())
    store.write(stewards.grant, name, right, hashed)
    return hashed


def test_a_token_is_good_for_what_it_was_made_for_until_it_is_revoked(place) -> None:
    with Store(place) as store:
        mail = granted(store)
        assert store.read(stewards.bearer, mail) == Bearer("mail office", ("invite",))
        store.write(stewards.revoke, "mail office")
        assert store.read(stewards.bearer, mail) is None


def test_the_administrators_is_good_for_all(place) -> None:
    with Store(place) as store:
        first = tokens.hashed(tokens.new_token())
        store.appoint(first)
        assert store.read(stewards.bearer, first) == Bearer("administrator", stewards.RIGHTS)
        store.appoint(tokens.hashed(tokens.new_token()), replace=True)
        assert store.read(stewards.bearer, first) is None


@pytest.mark.parametrize("name", ["", "a" * 101, "two\nlines", "administrator"])
def test_a_name_that_could_mislead_is_refused(name) -> None:
    with Store() as store, pytest.raises(InvalidValueError, match="printable"):
        granted(store, name)


def test_a_name_is_taken_once_and_an_unknown_one_cannot_be_revoked() -> None:
    with Store() as store:
        granted(store)
        with pytest.raises(ConflictError, match="already"):
            granted(store)
        with pytest.raises(InvalidValueError, match="mail office"):
            store.write(stewards.revoke, "nobody")
        with pytest.raises(InvalidValueError, match="right"):
            granted(store, "other", "everything")
        assert store.read(stewards.granted) == {"mail office": "invite"}


def test_deeds_are_told_newest_first(place) -> None:
    with Store(place) as store:
        for number in range(3):
            store.write(stewards.write_down, "administrator", "open", f"{number:064}", 201)
        found = store.read(stewards.newest, 2)
    assert [one.fingerprint for one in found] == [f"{2:064}", f"{1:064}"]
