"""Submissions as objects, JSON and bytes: one form each; everything else is refused in words."""

import json
import pickle
import struct
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from blurfit.errors import InvalidValueError
from blurfit.messages.submissions import BATCH_MAGIC, MAGIC, Layout, Submission, Submissions

IDENTIFIER, FINGERPRINT = "00ff" * 8, "a1" * 32
FORMS = [("to_json", "from_json"), ("to_bytes", "from_bytes")]

finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def submissions(draw):
    return Submission(
        draw(st.binary(min_size=16, max_size=16)).hex(),
        draw(st.binary(min_size=32, max_size=32)).hex(),
        draw(hnp.arrays(np.float64, draw(st.integers(1, 20)), elements=finite)),
    )


@st.composite
def tables(draw):
    shape = draw(st.integers(1, 6)), draw(st.integers(1, 14))
    return Submissions(
        draw(hnp.arrays(np.uint8, (shape[0], 16))),
        draw(st.binary(min_size=32, max_size=32)).hex(),
        draw(hnp.arrays(np.float64, shape, elements=finite)),
    )


def one(width=5, seed=0, **changes):
    rng = np.random.default_rng(seed)
    fields = {
        "identifier": rng.bytes(16).hex(),
        "fingerprint": FINGERPRINT,
        "numbers": rng.normal(size=width),
    }
    return Submission(**(fields | changes))


def many(n, width=28, seed=0):
    rng = np.random.default_rng(seed)
    identifiers = np.frombuffer(rng.bytes(16 * n), np.uint8).reshape(n, 16)
    return Submissions(identifiers, FINGERPRINT, rng.normal(size=(n, width)))


class TestSubmission:
    @pytest.mark.parametrize(("write", "read"), FORMS)
    @given(sent=submissions() | tables())
    @example(Submission(IDENTIFIER, FINGERPRINT, [-0.0, 5e-324, -1.7976931348623157e308, 1 / 3]))
    def test_round_trips_to_the_last_bit(self, write, read, sent):
        got = getattr(type(sent), read)(getattr(sent, write)())
        assert got == sent
        assert got.numbers.tobytes() == sent.numbers.tobytes()  # == holds for -0.0 and 0.0 too

    def test_bytes_and_json_are_as_documented_whoever_writes(self):
        sent = Submission(IDENTIFIER, FINGERPRINT, [1.0, -0.0, 0.5, 2.0, 3.0])
        expected = (
            b"\x89BLUR\n\x01\x01"
            + bytes.fromhex(IDENTIFIER)
            + bytes.fromhex(FINGERPRINT)
            + struct.pack("<Q5d", 5, 1.0, -0.0, 0.5, 2.0, 3.0)
        )
        assert sent.to_bytes() == expected
        assert len(expected) == 64 + 8 * 5
        sent = Submission(IDENTIFIER, FINGERPRINT, [0.25, -0.0, -1.5, 1e300])
        assert json.loads(sent.to_json()) == {
            "format": "blurfit-submission",
            "version": 1,
            "identifier": IDENTIFIER,
            "fingerprint": FINGERPRINT,
            "numbers": [0.25, -0.0, -1.5, 1e300],
        }
        assert Submission.from_json(sent.to_json().encode()) == sent
        # Spaces, whole numbers and the order of fields are the writer's own.
        sent = one(numbers=[1.0, -2.0, 0.1, 1e22])
        text = json.dumps(dict(reversed(json.loads(sent.to_json()).items())), indent=2)
        assert Submission.from_json(text.replace("-2.0", "-2")) == sent

    def test_equal_by_value(self):
        others = {"identifier": IDENTIFIER, "fingerprint": "b2" * 32, "numbers": [9.0] * 5}
        for field, other in (*others.items(), ("numbers", [9.0])):
            assert one() != one(**{field: other}), field
        assert one() == one() != "something else"
        assert many(3) == many(3) != list(many(3))
        assert many(3) != many(3, seed=1)

    def test_nothing_can_be_written_to(self):
        numbers = np.ones(2)
        sent = one(numbers=numbers)
        numbers[0] = 7.0
        assert sent.numbers.tolist() == [1.0, 1.0]
        with pytest.raises(ValueError, match="read-only"):
            sent.numbers[0] = 7.0
        with pytest.raises(FrozenInstanceError):
            sent.numbers = numbers
        again = pickle.loads(pickle.dumps(sent))
        assert again == sent
        assert not again.numbers.flags.writeable

    @pytest.mark.parametrize(
        ("changes", "match"),
        [
            ({"identifier": "0f"}, "identifier='0f' to be 32 hexadecimal"),
            ({"identifier": "0F" * 16}, "identifier=.* to be 32 hexadecimal"),
            ({"identifier": "0f" * 16 + "\n"}, "identifier=.* to be 32 hexadecimal"),
            ({"identifier": b"0" * 16}, "identifier=.* to be 32 hexadecimal"),
            ({"fingerprint": "g" * 64}, "fingerprint=.* to be 64 hexadecimal"),
            ({"numbers": []}, r"numbers.shape=\(0,\) to be \(k,\)"),
            ({"numbers": [[1.0, 2.0]]}, r"numbers.shape=\(1, 2\) to be \(k,\)"),
            ({"numbers": 1.0}, r"numbers.shape=\(\) to be \(k,\)"),
            ({"numbers": [1.0, np.nan]}, "numbers to be finite, and some are not"),
            ({"numbers": [1.0, -np.inf, 0.0]}, "numbers to be finite, and some are not"),
            ({"numbers": ["a", "b"]}, "Expected numbers"),
            ({"numbers": [[1.0], [1.0, 2.0]]}, "Expected numbers"),
        ],
    )
    def test_what_is_not_a_submission(self, changes, match):
        with pytest.raises(InvalidValueError, match=match):
            one(**changes)


class TestSubmissions:
    @given(sent=tables())
    def test_a_batch_is_its_submissions_gathered_one_behind_the_other(self, sent):
        rows = list(sent)
        assert len(rows) == len(sent)
        assert all(len(row.numbers) == sent.numbers.shape[1] for row in rows)
        assert all(not row.numbers.flags.writeable for row in rows)
        assert Submissions.gather(rows) == sent
        alone = [row.to_bytes() for row in sent]
        head = b"\x89BLURS\x01\x00" + struct.pack("<Q", len(sent))
        assert sent.to_bytes() == head + b"".join(alone)
        assert sent.to_json() == "[" + ",".join(row.to_json() for row in sent) + "]"

    def test_read_only_tables_are_not_copied(self):
        table = np.ones((5, 2))
        table.setflags(write=False)
        sent = Submissions(np.zeros((5, 16), np.uint8), FINGERPRINT, table)
        assert sent.numbers is table
        assert pickle.loads(pickle.dumps(sent)) == sent
        assert not pickle.loads(pickle.dumps(sent)).numbers.flags.writeable

    @pytest.mark.parametrize(
        ("changes", "match"),
        [
            ({"identifiers": np.zeros((3, 16))}, "bytes .* but they are float64"),
            ({"identifiers": np.zeros((3, 15), np.uint8)}, r"shape \(3, 15\)"),
            ({"identifiers": np.zeros(16, np.uint8)}, r"shape \(16,\)"),
            ({"identifiers": np.zeros((2, 16), np.uint8)}, "as many identifiers as rows"),
            ({"numbers": np.zeros((2, 2))}, "as many identifiers as rows"),
            ({"numbers": np.zeros(2)}, r"numbers.shape=\(2,\) to be \(n, k\)"),
            ({"numbers": np.zeros((3, 0))}, r"numbers.shape=\(3, 0\) to be \(n, k\)"),
            ({"fingerprint": "a1"}, "fingerprint='a1' to be 64"),
        ],
    )
    def test_what_is_not_a_table(self, changes, match):
        fields = {
            "identifiers": np.zeros((3, 16), np.uint8),
            "fingerprint": FINGERPRINT,
            "numbers": np.zeros((3, 2)),
        }
        with pytest.raises(InvalidValueError, match=match):
            Submissions(**(fields | changes))

    @pytest.mark.parametrize("others", [one(4), one(9), one(fingerprint="b2" * 32)])
    def test_only_one_agreement_in_a_batch(self, others):
        with pytest.raises(InvalidValueError, match="of one agreement"):
            Submissions.gather([one(), others])
        text = f"[{one().to_json()},{others.to_json()}]"
        with pytest.raises(InvalidValueError, match="of one agreement"):
            Submissions.from_json(text)

    def test_an_empty_batch_says_nothing(self):
        for read, data in (
            (Submissions.from_json, "[]"),
            (Submissions.gather, []),
            (Submissions.from_bytes, b"\x89BLURS\x01\x00" + bytes(8)),
        ):
            with pytest.raises(InvalidValueError):
                read(data)


def changed(**changes):
    """A valid message as JSON, but for some fields; None takes a field away."""
    message = json.loads(one().to_json()) | changes
    return json.dumps({name: value for name, value in message.items() if value is not None})


class TestRefusedJson:
    @pytest.mark.parametrize(
        ("text", "match"),
        [
            (changed(format="blurfit-agreement"), "marked 'blurfit-submission', .* 'blurfit-agr"),
            (changed(version=2), "version=2 .* to be 1, the only one"),
            (changed(version=2, added="field"), "version=2 .* to be 1, the only one"),
            (changed(version="1"), "Expected `int`, got `str`"),
            (changed(format=None), "missing required field `format`"),
            (changed(numbers=None), "missing required field `numbers`"),
            (changed(name="Ada"), "unknown field `name`"),
            (changed(identifier="xyz"), "identifier='xyz' to be 32"),
            (changed(fingerprint="A1" * 32), "fingerprint=.* to be 64"),
            (changed(mechanism="moment"), "unknown field `mechanism`"),
            (changed(numbers=[1.0, "2"]), "Expected `float`, got `str`"),
            (changed(numbers=[1.0, True]), "Expected `float`, got `bool`"),
            (changed(numbers=[1.0, [2.0]]), "Expected `float`, got `array`"),
            (changed(numbers=[1.0, None]), "Expected `float`, got `null`"),
            (changed(numbers=[]), "numbers.shape"),
            (changed(numbers=[1.0, float("nan")]), "cannot be read"),
            (changed(numbers=[1.0, float("inf")]), "cannot be read"),
            (changed().replace('"numbers": [', '"numbers": [1e999, '), "cannot be read|be finite"),
            (changed()[:-1], "truncated"),
            (changed() + "x", "trailing"),
            (f"[{changed()}]", "Expected `object`, got `array`"),
            ("", "truncated"),
            ("\ud800", "cannot be read"),
            (b"\xff\xfe", "cannot be read"),
            ("[" * 100_000, "cannot be read"),
            ('{"x":' * 100_000, "cannot be read"),
        ],
        ids=range(26),
    )
    def test_with_a_reason(self, text, match):
        with pytest.raises(InvalidValueError, match=match):
            Submission.from_json(text)
        if isinstance(text, str) and text.startswith("{") and text.endswith("}"):
            with pytest.raises(InvalidValueError, match=match):
                Submissions.from_json(f"[{text}]")
            with pytest.raises(InvalidValueError, match="Expected `array`, got `object`"):
                Submissions.from_json(text)


def poked(offset, patch, valid=None):
    data = bytearray(one().to_bytes() if valid is None else valid)
    data[offset : offset + len(patch)] = patch
    return bytes(data)


class TestRefusedBytes:
    @pytest.mark.parametrize(
        ("data", "match"),
        [
            (poked(0, b"\x88"), r"marked b'\\x89BLUR\\n', but this one is marked b'\\x88BLUR"),
            (many(1).to_bytes() + bytes(100), "one submission where a batch is read"),
            (poked(6, b"\x02"), "version=2 .* to be 1"),
            (poked(7, b"\x00"), "code=0 to be 1, a whole submission"),
            (poked(7, b"\x03"), "code=3 to be 1, a whole submission: this is a share"),
            (poked(7, b"\x04"), "code=4 to be 1, a whole submission: this is a share"),
            (poked(56, struct.pack("<Q", 4)), "cut short, or something follows"),
            (poked(56, struct.pack("<Q", 0))[:64], "numbers.shape"),
            (poked(56, b"\xff" * 8), "cut short, or something follows"),
            (poked(64, struct.pack("<d", float("nan"))), "numbers to be finite"),
            (poked(96, struct.pack("<d", float("inf"))), "numbers to be finite"),
            (one().to_bytes()[:-1], "cut short, or something follows"),
            (one().to_bytes() + b"\x00", "cut short, or something follows"),
            (one().to_bytes()[:63], "at least 64 bytes, but there are 63"),
            (b"", "at least 64 bytes, but there are 0"),
        ],
        ids=range(15),
    )
    def test_with_a_reason(self, data, match):
        with pytest.raises(InvalidValueError, match=match):
            Submission.from_bytes(data)

    @pytest.mark.parametrize(
        ("data", "match"),
        [
            (one().to_bytes(), "one submission where a batch is read"),
            (poked(6, b"\x02", many(3).to_bytes()), "version=2 .* to be 1"),
            (poked(7, b"\x01", many(3).to_bytes()), "damaged"),
            (poked(8, b"\x02", many(3).to_bytes()), "cut short, or something follows"),
            (poked(8, b"\xff" * 8, many(3).to_bytes()), "cut short, or something follows"),
            (poked(16 + 6, b"\x02", many(3).to_bytes()), "version=2 .* to be 1"),
            (poked(16 + 288 + 6, b"\x02", many(3).to_bytes()), "heads differ"),
            (many(3).to_bytes()[:-8], "cut short, or something follows"),
            (many(3).to_bytes()[:20], "at least 64 bytes"),
            (many(3).to_bytes()[:15], "at least 16 bytes"),
        ],
        ids=range(10),
    )
    def test_batches_with_a_reason(self, data, match):
        with pytest.raises(InvalidValueError, match=match):
            Submissions.from_bytes(data)


READERS = [(reader, read, write) for reader in (Submission, Submissions) for write, read in FORMS]


def accepts_or_refuses(reader, read, write, data):
    """Whatever is read is a valid message, which round-trips; whatever is not is refused."""
    try:
        got = getattr(reader, read)(data)
    except InvalidValueError:
        return False
    written = getattr(got, write)()
    assert getattr(reader, read)(written) == got
    if write == "to_bytes":
        assert written == bytes(data)  # one message has one form
    return True


@pytest.mark.parametrize(("reader", "read", "write"), READERS)
class TestFuzz:
    @given(data=st.binary(max_size=300))
    def test_any_bytes(self, reader, read, write, data):
        marks = {Submission: MAGIC, Submissions: BATCH_MAGIC}
        accepts_or_refuses(reader, read, write, data)
        accepts_or_refuses(reader, read, write, marks[reader] + b"\x01" + data)

    @given(sent=tables(), data=st.data())
    def test_mutations_of_valid_messages(self, reader, read, write, sent, data):
        message = sent if reader is Submissions else next(iter(sent))
        valid = getattr(message, write)()
        valid = bytearray(valid if isinstance(valid, bytes) else valid.encode())
        assert accepts_or_refuses(reader, read, write, bytes(valid))
        for _ in range(data.draw(st.integers(1, 4))):
            start = data.draw(st.integers(0, len(valid)))
            stop = start + data.draw(st.integers(0, 4))
            valid[start:stop] = data.draw(st.binary(max_size=4))
        accepts_or_refuses(reader, read, write, bytes(valid))


class TestRowsOf:
    """What a service takes: bytes of one agreement, in one look; the rest refused in words."""

    @given(sent=tables())
    def test_one_or_many_become_the_same_rows(self, sent):
        layout = sent.layout
        rows = layout.rows(sent.to_bytes())
        assert rows.tobytes() == b"".join(row.to_bytes() for row in sent)
        assert layout.identifiers(rows).tobytes() == sent.identifiers.tobytes()
        assert layout.numbers(rows).tobytes() == sent.numbers.tobytes()
        first = next(iter(sent)).to_bytes()
        assert layout.fits(first)
        assert layout.rows(first).tobytes() == first

    @pytest.mark.parametrize(
        ("data", "match"),
        [
            (many(3, 6).to_bytes(), "submissions of 5 numbers, and got 6"),
            (one(6).to_bytes(), "submissions of 5 numbers, and got 6"),
            (one(fingerprint="b2" * 32).to_bytes(), "made for another agreement"),
            (poked(7, b"\x03"), "this is a share of one"),
            (one().to_bytes()[:-1], "cut short"),
            (many(3, 5).to_bytes()[:-8], "cut short"),
            (b"", "at least 64 bytes"),
        ],
    )
    def test_what_does_not_fit_is_refused_in_words(self, data, match):
        layout = Layout(FINGERPRINT, 5)
        with pytest.raises(InvalidValueError, match=match):
            layout.rows(data)

    @pytest.mark.parametrize("at", [0, 6, 7, 24, 55, 56, 63])
    def test_a_changed_byte_of_the_head_does_not_fit(self, at):
        layout, valid = many(2).layout, many(2).to_bytes()
        first = bytearray(valid[16 : 16 + layout.size])
        first[at] ^= 1
        assert not layout.fits(bytes(first))
        batch = bytearray(valid)
        batch[16 + layout.size + at] ^= 1  # in the second message
        for changed in (first, batch):
            with pytest.raises(InvalidValueError):
                layout.rows(bytes(changed))

    def test_another_code_is_another_layout_and_words_travel_unchanged(self):
        words = np.array([[0, 2**64 - 1, 2**63]], dtype=np.uint64)
        whole, shares = Layout(FINGERPRINT, 3), Layout(FINGERPRINT, 3, code=3)
        rows = [
            layout.joined(many(1).identifiers, words)[0].tobytes() for layout in (whole, shares)
        ]
        assert struct.unpack("<3Q", rows[0][-24:]) == (0, 2**64 - 1, 2**63)
        big = whole.joined(many(1).identifiers, words.astype(">u8"))
        assert big.tobytes() == rows[0]  # whatever the order of bytes on this machine
        assert [[one.fits(row) for row in rows] for one in (whole, shares)] == [
            [True, False],
            [False, True],
        ]
