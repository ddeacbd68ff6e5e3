"""Bits from AES-256, each call with a key of its own."""

import os
import random

import numpy as np
import pytest
from scipy.stats import chisquare

from blurfit import randomness as bits
from blurfit.messages.submissions import expand


@pytest.fixture(autouse=True)
def replayed() -> None:
    """Here the operating system draws."""


def test_words_are_the_key_stream_that_masks_use_too(monkeypatch) -> None:
    """Checked there against the vectors that Python and JavaScript share."""
    key = np.arange(4, dtype=np.uint64) * np.uint64(0x0123456789ABCDEF)
    monkeypatch.setattr(os, "urandom", lambda size: key.astype("<u8").tobytes()[:size])
    assert np.array_equal(bits.words(7), expand(key[None], 7)[0])


def test_each_call_has_256_bits_of_its_own(monkeypatch) -> None:
    asked, urandom = [], os.urandom
    monkeypatch.setattr(os, "urandom", lambda size: asked.append(size) or urandom(size))
    seen = np.concatenate([bits.words(100) for _ in range(50)])
    assert asked == [32] * 50
    assert len(np.unique(seen)) == 5000


@pytest.mark.parametrize("count", [0, 1, 3, 8, 13, 64])
def test_whole_numbers_of_so_many_bits(count: int) -> None:
    seen = [bits.whole(count) for _ in range(400)]
    assert min(seen) >= 0
    assert max(seen) < 2**count
    assert max(seen) >= 2 ** max(count - 2, 0) - 1  # but once in (3/4)^400 runs


def test_every_bit_is_fair() -> None:
    words = bits.words(40_000)
    ones = [int(((words >> np.uint64(place)) & np.uint64(1)).sum()) for place in range(64)]
    for count in ones:
        assert chisquare([count, 40_000 - count]).pvalue > 1e-11


@pytest.mark.parametrize("limit", [2, 3, 5, 8, 1000, 2**64 + 1])
def test_numbers_below_a_limit_are_uniform(limit: int, monkeypatch) -> None:
    monkeypatch.setattr(bits, "octets", random.Random(limit).randbytes)
    seen = [bits.below(limit) for _ in range(6000)]
    assert 0 <= min(seen) <= max(seen) < limit
    counts = np.bincount([one * min(limit, 5) // limit for one in seen], minlength=min(limit, 5))
    shares = np.array([-(-limit * k // min(limit, 5)) for k in range(min(limit, 5) + 1)], float)
    assert chisquare(counts, 6000 * np.diff(shares) / limit).pvalue > 1e-4  # the bits are fixed
