"""Shares, masks, secrets and sealing, by other routes and by the vectors of others."""

import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from blurfit import Agreement, InvalidValueError, Numeric, Schema
from blurfit.messages.submissions import (
    ShareLayout,
    Shares,
    expand,
    identifiers_of,
    secrets_of,
    sum_of_masks,
)
from blurfit.randomness import new_secret

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
TWO = [("Office", "https://first.example"), ("University", "https://second.example")]
VECTORS = json.loads(Path(__file__).parents[1].joinpath("vectors", "shares.json").read_text())


def propose(**changes) -> Agreement:
    promise = {"epsilon": 1, "delta": 1e-6, "quorum": 20, "databases": TWO, "proofs": False}
    return Agreement.propose(SCHEMA, **promise | changes)


def some(part: str, count: int, agreement: Agreement | None = None) -> Shares:
    layout = (agreement or propose()).share_layout(part)
    generator = np.random.default_rng(count)
    identifiers = generator.integers(0, 256, (count, 16), dtype=np.uint8)
    words = generator.integers(0, 2**64, (count, layout.width), dtype=np.uint64)
    return Shares(identifiers, words, layout)


@pytest.mark.parametrize("part", ["masked", "seed"])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_bytes_and_back(part, count) -> None:
    shares = some(part, count)
    data, layout = shares.to_bytes(), shares.layout
    rows = layout.rows(data)
    assert (layout.identifiers(rows) == shares.identifiers).all()
    assert (layout.words(rows) == shares.words).all()
    words = 5 if part == "masked" else 4  # products of (c, age, income) but c²; a seed's 32 bytes
    assert len(data) == (16 if count > 1 else 0) + count * (64 + 8 * words)
    assert layout.mask_width == 5
    assert layout.fits(data) == (count == 1)


@pytest.mark.parametrize("part", ["masked", "seed"])
def test_what_is_not_for_this_database_is_refused(part) -> None:
    layout = propose().share_layout(part)
    other = "seed" if part == "masked" else "masked"
    foreign = some(part, 1, propose(epsilon=2))
    good = some(part, 3).to_bytes()
    for data in (
        *(b"", b"x", good[:-1], good + b"x", some(other, 1).to_bytes(), some(other, 3).to_bytes()),
        *(foreign.to_bytes(), good[:8] + b"\xff" * 8 + good[16:], some(part, 1).to_bytes()[:-8]),
    ):
        with pytest.raises(InvalidValueError, match="one of two shares"):
            layout.rows(data)


def test_shares_are_of_shared_agreements_and_of_their_shapes() -> None:
    with pytest.raises(InvalidValueError, match="two databases"):
        propose(databases=None, proofs=None).share_layout("masked")
    with pytest.raises(InvalidValueError, match="kind="):
        propose().share_layout("whole")  # type: ignore[arg-type]
    good = some("masked", 2)
    with pytest.raises(InvalidValueError, match="shapes"):
        Shares(good.identifiers[:1], good.words, good.layout)
    with pytest.raises(InvalidValueError, match="at least one"):
        Shares(good.identifiers[:0], good.words[:0], good.layout)
    with pytest.raises(InvalidValueError, match="uint64"):
        Shares(good.identifiers, good.words.astype(np.float64), good.layout)  # type: ignore[arg-type]


@pytest.mark.parametrize("vector", VECTORS["messages"], ids=lambda one: one["part"])
def test_vectors(vector) -> None:
    layout = ShareLayout(vector["fingerprint"], vector["width"], vector["part"])
    rows = layout.rows(bytes.fromhex(vector["message"]))
    assert layout.identifiers(rows).tobytes().hex() == vector["identifier"]
    assert [str(word) for word in layout.words(rows)[0].tolist()] == vector["words"]


# ---- masks by another route: AES block by block, known answers, and the vectors of JavaScript
def words(seed: bytes) -> np.ndarray:
    return np.frombuffer(seed, dtype="<u8").astype(np.uint64).reshape(1, 4)


def block_by_block(seed: bytes, width: int) -> list[int]:
    """AES-256 of 0, 1, 2, …, each as 16 bytes with the most significant first."""
    cipher = Cipher(algorithms.AES256(seed), modes.ECB()).encryptor()
    stream = b"".join(cipher.update(n.to_bytes(16, "big")) for n in range((width + 1) // 2))
    return list(struct.unpack(f"<{width}Q", stream[: 8 * width]))


def test_known_answer() -> None:
    """AES-256 of zeros under a key of zeros (NIST, AESAVS: ECBGFSbox256 and its like)."""
    known = bytes.fromhex("dc95c078a2408989ad48a21492842087")
    assert expand(words(bytes(32)), 2).astype("<u8").tobytes() == known


@given(st.binary(min_size=32, max_size=32), st.integers(1, 300))
def test_counter_mode_is_block_by_block(seed: bytes, width: int) -> None:
    assert expand(words(seed), width).tolist() == [block_by_block(seed, width)]


@pytest.mark.parametrize("vector", VECTORS["masks"], ids=lambda one: one["seed"][:8])
def test_vectors_of_masks(vector) -> None:
    seed = bytes.fromhex(vector["seed"])
    expected = [int(word) for word in vector["mask"]]
    assert expand(words(seed), len(expected))[0].tolist() == expected
    assert block_by_block(seed, len(expected)) == expected


@given(st.integers(0, 1200), st.integers(1, 5), st.integers(0, 2**32))
def test_sums_are_of_the_masks(count: int, width: int, start: int) -> None:
    seeds = np.random.default_rng(start).integers(0, 2**64, (count, 4), dtype=np.uint64)
    exact = [sum(column) % 2**64 for column in zip(*expand(seeds, width).tolist(), strict=True)]
    assert sum_of_masks(seeds, width).tolist() == (exact or [0] * width)


@pytest.mark.parametrize("seeds", [np.zeros((2, 3), np.uint64), np.zeros(4, np.uint64)])
def test_seeds_are_four_words(seeds) -> None:
    with pytest.raises(InvalidValueError, match="shape"):
        expand(seeds, 1)
    with pytest.raises(InvalidValueError, match="float64"):
        sum_of_masks(np.zeros((1, 4)), 1)  # type: ignore[arg-type]


def test_secrets_by_hand_do_not_depend_on_how_rows_are_parted() -> None:
    secret = "0f" * 32
    given = b"blurfit secret\n" + bytes.fromhex(secret) + (300).to_bytes(8, "big")
    own = hashlib.sha256(given).digest()
    assert secrets_of(secret, 299, 302)[1] == own
    name = hashlib.sha256(b"blurfit identifier\n" + own).digest()[:16]
    assert identifiers_of([own]).tobytes() == name
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
