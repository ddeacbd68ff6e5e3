"""Secrets whose hashes are identifiers: by hand, each row its own."""

import hashlib

import numpy as np
import pytest

from blurfit import InvalidValueError
from blurfit.messages.submissions import identifiers_of, secrets_of
from blurfit.randomness.noise import new_secret


def test_by_hand() -> None:
    secret = "0f" * 32
    given = b"blurfit secret\n" + bytes.fromhex(secret) + (300).to_bytes(8, "big")
    own = hashlib.sha256(given).digest()
    assert secrets_of(secret, 299, 302)[1] == own
    name = hashlib.sha256(b"blurfit identifier\n" + own).digest()[:16]
    assert identifiers_of([own]).tobytes() == name


def test_rows_do_not_depend_on_how_they_are_parted_and_nothing_repeats() -> None:
    secret = new_secret()
    whole = identifiers_of(secrets_of(secret, 0, 100))
    parts = [identifiers_of(secrets_of(secret, start, start + 25)) for start in range(0, 100, 25)]
    assert np.array_equal(whole, np.concatenate(parts))
    other = identifiers_of(secrets_of(new_secret(), 0, 100))
    assert len({one.tobytes() for one in (*whole, *other)}) == 200
    assert identifiers_of([]).shape == (0, 16)


@pytest.mark.parametrize("secret", ["", "ab", "AB" * 32, "zz" * 32])
def test_what_is_no_seed_is_refused(secret) -> None:
    with pytest.raises(InvalidValueError, match="secret"):
        secrets_of(secret, 0, 1)
