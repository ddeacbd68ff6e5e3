import json
from pathlib import Path

import numpy as np
import pytest

from blurfit import Agreement, InvalidValueError, Numeric, Schema
from blurfit.messages.submissions import ShareLayout, Shares

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
    words = (
        5 if part == "masked" else 4
    )  # the products of (c, age, income) but c²; a seed has 32 bytes
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


def test_only_shared_agreements_have_shares() -> None:
    with pytest.raises(InvalidValueError, match="two databases"):
        propose(databases=None, proofs=None).share_layout("masked")
    with pytest.raises(InvalidValueError, match="kind="):
        propose().share_layout("whole")  # type: ignore[arg-type]


def test_shapes_and_kinds_are_checked() -> None:
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
