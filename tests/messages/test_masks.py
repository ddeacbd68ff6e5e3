"""Masks by another route: AES block by block, known answers, and the vectors of JavaScript."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from blurfit import InvalidValueError
from blurfit.messages.submissions import expand, sum_of_masks

VECTORS = json.loads(Path(__file__).parents[1].joinpath("vectors", "shares.json").read_text())


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
def test_vectors(vector) -> None:
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
