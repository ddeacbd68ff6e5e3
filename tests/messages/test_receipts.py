"""Secrets whose hashes are identifiers: by hand, each row its own."""

import hashlib

import numpy as np
import pytest

from blurfit import InvalidValueError
from blurfit.messages.receipts import identifiers_of, new_seed, secrets_of


def test_by_hand() -> None:
    seed = "0f" * 32
    given = b"blurfit secret\n" + bytes.fromhex(seed) + (300).to_bytes(8, "big")
    secret = hashlib.sha256(given).digest()
    assert secrets_of(seed, 299, 302)[1] == secret
    name = hashlib.sha256(b"blurfit identifier\n" + secret).digest()[:16]
    assert identifiers_of([secret]).tobytes() == name


def test_rows_do_not_depend_on_how_they_are_parted_and_nothing_repeats() -> None:
    seed = new_seed()
    whole = identifiers_of(secrets_of(seed, 0, 100))
    parts = [identifiers_of(secrets_of(seed, start, start + 25)) for start in range(0, 100, 25)]
    assert np.array_equal(whole, np.concatenate(parts))
    other = identifiers_of(secrets_of(new_seed(), 0, 100))
    assert len({one.tobytes() for one in (*whole, *other)}) == 200
    assert identifiers_of([]).shape == (0, 16)


@pytest.mark.parametrize("seed", ["", "ab", "AB" * 32, "zz" * 32])
def test_what_is_no_seed_is_refused(seed) -> None:
    with pytest.raises(InvalidValueError, match="seed"):
        secrets_of(seed, 0, 1)
