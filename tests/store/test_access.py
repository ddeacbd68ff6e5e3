"""The administrator's token and further ones, what each is good for, and what was done."""

import threading

import pytest

from blurfit import ConflictError, InvalidValueError
from blurfit.protocol import tokens
from blurfit.store.store import RIGHTS, Bearer, Store


def test_one_token_of_two(place) -> None:
    made: list[bool] = []
    with Store(place) as first, Store(place) as second:
        threads = [
            threading.Thread(
                target=lambda store=store, token=token: made.append(
                    store.appoint(tokens.hashed(token))
                )
            )
            for store, token in ((first, "one"), (second, "two"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(made) == [False, True]
        assert first.administrator() == second.administrator() is not None
        assert first.administrator() in (tokens.hashed("one"), tokens.hashed("two"))


def granted(store, name="mail office", right="invite") -> bytes:
    hashed = tokens.hashed(tokens.new_token())
    store.grant(name, right, hashed)
    return hashed


def test_a_token_is_good_for_what_it_was_made_for_until_it_is_revoked(place) -> None:
    with Store(place) as store:
        mail = granted(store)
        assert store.bearer(mail) == Bearer("mail office", ("invite",))
        store.revoke("mail office")
        assert store.bearer(mail) is None


def test_the_administrators_is_good_for_all(place) -> None:
    with Store(place) as store:
        first = tokens.hashed(tokens.new_token())
        store.appoint(first)
        assert store.bearer(first) == Bearer("administrator", RIGHTS)
        other = tokens.hashed(tokens.new_token())
        assert not store.appoint(other)
        assert store.appoint(other, replace=True)
        assert store.bearer(first) is None
        assert store.administrator() == other


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
            store.revoke("nobody")
        with pytest.raises(InvalidValueError, match="right"):
            granted(store, "other", "everything")
        assert store.granted() == {"mail office": "invite"}


def test_the_log_is_told_newest_first(place) -> None:
    with Store(place) as store:
        for number in range(3):
            store.log("administrator", "open", f"{number:064}", 201)
        found = store.audit_log(2)
    assert [one.fingerprint for one in found] == [f"{2:064}", f"{1:064}"]
