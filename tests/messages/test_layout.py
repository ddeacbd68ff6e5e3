"""Bytes of messages against their table, put together by hand; what does not fit is refused."""

import struct

import numpy as np
import pytest

from blurfit.errors import InvalidValueError
from blurfit.messages.submissions import BATCH_MAGIC, MAGIC, Layout, batch_of, check_mark, rows_in

MARK = "0123456789abcdef" * 4
LAYOUT = Layout(MARK, 3)
WHO = np.arange(32, dtype=np.uint8).reshape(2, 16)
NUMBERS = np.array([[0.5, -2.0, 2.0**-40], [1e300, -0.0, 7.0]])


def by_hand(who: bytes, numbers: list[float], code: int = 1, mark: str = MARK) -> bytes:
    """A message, field by field, as the documentation lists them."""
    return (
        b"\x89BLUR\n"
        + bytes([1, code])
        + who
        + bytes.fromhex(mark)
        + struct.pack("<Q", len(numbers))
        + struct.pack(f"<{len(numbers)}d", *numbers)
    )


MESSAGES = [by_hand(bytes(WHO[i]), NUMBERS[i].tolist()) for i in range(2)]


def test_messages_are_what_the_table_of_bytes_says() -> None:
    rows = LAYOUT.joined(WHO, NUMBERS)
    assert [bytes(row) for row in rows] == MESSAGES
    assert rows.shape == (2, LAYOUT.size)
    assert LAYOUT.identifiers(rows).tolist() == WHO.tolist()
    found = LAYOUT.numbers(rows)
    assert found.tolist() == NUMBERS.tolist()
    assert np.signbit(found).tolist() == np.signbit(NUMBERS).tolist()  # to the last bit


def test_words_of_eight_bytes_travel_unchanged() -> None:
    words = np.array([[0, 2**64 - 1, 2**63]], dtype=np.uint64)
    row = bytes(LAYOUT.joined(WHO[:1], words)[0])
    assert struct.unpack("<3Q", row[-24:]) == (0, 2**64 - 1, 2**63)
    big = LAYOUT.joined(WHO[:1], words.astype(">u8"))
    assert bytes(big[0]) == row  # whatever the order of bytes on this machine


def test_one_message_fits_whoever_it_is_of() -> None:
    assert all(map(LAYOUT.fits, MESSAGES))
    (row,) = LAYOUT.rows(MESSAGES[0])
    assert bytes(row) == MESSAGES[0]


@pytest.mark.parametrize("at", [0, 6, 7, 24, 55, 56, 63])
def test_a_changed_byte_of_the_head_does_not_fit(at: int) -> None:
    broken = bytearray(MESSAGES[0])
    broken[at] ^= 1
    assert not LAYOUT.fits(bytes(broken))
    assert LAYOUT.rows(bytes(broken)) is None
    batch = bytearray(batch_of(LAYOUT.joined(WHO, NUMBERS)))
    batch[16 + LAYOUT.size + at] ^= 1  # in the second message
    assert LAYOUT.rows(bytes(batch)) is None


@pytest.mark.parametrize("data", [b"", MESSAGES[0][:-1], MESSAGES[0] + b"\0", MESSAGES[0] * 2])
def test_other_lengths_do_not_fit(data: bytes) -> None:
    assert not LAYOUT.fits(data)
    assert LAYOUT.rows(data) is None


def test_another_code_is_another_layout() -> None:
    shares = Layout(MARK, 3, code=3)
    masked = by_hand(bytes(WHO[0]), NUMBERS[0].tolist(), code=3)
    assert shares.fits(masked)
    assert not LAYOUT.fits(masked)
    assert not shares.fits(MESSAGES[0])


def test_a_batch_is_a_head_and_its_messages() -> None:
    batch = batch_of(LAYOUT.joined(WHO, NUMBERS))
    assert batch == struct.pack("<6sBBQ", BATCH_MAGIC, 1, 0, 2) + b"".join(MESSAGES)
    assert [bytes(row) for row in LAYOUT.rows(batch)] == MESSAGES
    inside, count = rows_in(batch)
    assert (bytes(inside), count) == (b"".join(MESSAGES), 2)
    for head in (
        struct.pack("<6sBBQ", BATCH_MAGIC, 2, 0, 2),
        struct.pack("<6sBBQ", BATCH_MAGIC, 1, 1, 2),
        struct.pack("<6sBBQ", BATCH_MAGIC, 1, 0, 3),
        struct.pack("<6sBBQ", BATCH_MAGIC, 1, 0, 2**61),
        struct.pack("<6sBBQ", MAGIC, 1, 0, 2),
    ):
        assert LAYOUT.rows(head + b"".join(MESSAGES)) is None
    empty = struct.pack("<6sBBQ", BATCH_MAGIC, 1, 0, 0)
    assert LAYOUT.rows(empty) is None
    for damaged in (empty, struct.pack("<6sBBQ", BATCH_MAGIC, 1, 7, 2)):
        with pytest.raises(InvalidValueError, match="at least one submission"):
            rows_in(damaged)


def test_a_layout_is_read_off_the_messages_themselves() -> None:
    layout, rows = Layout.read(b"".join(MESSAGES), 2)
    assert layout == LAYOUT
    assert [bytes(row) for row in rows] == MESSAGES
    assert Layout.read(by_hand(b"\1" * 16, [], code=4), 1)[0] == Layout(MARK, 0, code=4)


@pytest.mark.parametrize(
    ("data", "count", "word"),
    [
        (b"", 1, "cut short"),
        (MESSAGES[0][:63], 1, "cut short"),
        (MESSAGES[0][:-1], 1, "cut short"),
        (MESSAGES[0] + b"\0", 1, "something follows"),
        (MESSAGES[0], 2, "cut short"),
        (MESSAGES[0] + by_hand(b"\2" * 16, [0.0] * 3, mark="ff" * 32), 2, "one agreement"),
        (b"x" + MESSAGES[0][1:], 1, "marked"),
        (MESSAGES[0][:6] + b"\2" + MESSAGES[0][7:], 1, "version"),
        (MESSAGES[0][:56] + b"\xff" * 8 + MESSAGES[0][64:], 1, "cut short"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(data: bytes, count: int, word: str) -> None:
    with pytest.raises(InvalidValueError, match=word):
        Layout.read(data, count)


def test_marks_of_documents_are_checked_alike() -> None:
    check_mark("blurfit-submission", "blurfit-submission", 1)
    with pytest.raises(InvalidValueError, match="marked"):
        check_mark("blurfit-model", "blurfit-submission", 1)
    with pytest.raises(InvalidValueError, match="version=0"):
        check_mark("blurfit-submission", "blurfit-submission", 0)
