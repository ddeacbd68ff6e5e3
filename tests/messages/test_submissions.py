import json
import pickle
import struct
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from blurfit.errors import InvalidValueError
from blurfit.messages.submissions import BATCH_MAGIC, MAGIC, Submission, Submissions

IDENTIFIER, FINGERPRINT = "00ff" * 8, "a1" * 32
FORMS = [("to_json", "from_json"), ("to_bytes", "from_bytes")]

finite = st.floats(allow_nan=False, allow_infinity=False)


def triangle(dimension):
    return dimension * (dimension + 1) // 2


@st.composite
def submissions(draw):
    mechanism, d = draw(st.sampled_from(["input", "moment"])), draw(st.integers(1, 5))
    k = d if mechanism == "input" else triangle(d)
    return Submission(
        draw(st.binary(min_size=16, max_size=16)).hex(),
        draw(st.binary(min_size=32, max_size=32)).hex(),
        mechanism,
        draw(hnp.arrays(np.float64, k, elements=finite)),
        draw(hnp.arrays(np.float64, d, elements=finite)),
    )


@st.composite
def tables(draw):
    mechanism, d = draw(st.sampled_from(["input", "moment"])), draw(st.integers(1, 4))
    n, k = draw(st.integers(1, 6)), d if mechanism == "input" else triangle(d)
    return Submissions(
        draw(hnp.arrays(np.uint8, (n, 16))),
        draw(st.binary(min_size=32, max_size=32)).hex(),
        mechanism,
        draw(hnp.arrays(np.float64, (n, k), elements=finite)),
        draw(hnp.arrays(np.float64, (n, d), elements=finite)),
    )


def one(mechanism="moment", d=2, seed=0, **changes):
    rng = np.random.default_rng(seed)
    k = d if mechanism == "input" else triangle(d)
    fields = {
        "identifier": rng.bytes(16).hex(),
        "fingerprint": FINGERPRINT,
        "mechanism": mechanism,
        "quadratic": rng.normal(size=k),
        "linear": rng.normal(size=d),
    }
    return Submission(**(fields | changes))


def many(n, mechanism="input", d=14, seed=0):
    rng = np.random.default_rng(seed)
    k = d if mechanism == "input" else triangle(d)
    names = np.frombuffer(rng.bytes(16 * n), np.uint8).reshape(n, 16)
    return Submissions(
        names, FINGERPRINT, mechanism, rng.normal(size=(n, k)), rng.normal(size=(n, d))
    )


def bits(message):
    return message.quadratic.tobytes(), message.linear.tobytes()


class TestSubmission:
    @pytest.mark.parametrize(("write", "read"), FORMS)
    @given(sent=submissions())
    def test_round_trips_to_the_last_bit(self, write, read, sent):
        got = getattr(Submission, read)(getattr(sent, write)())
        assert got == sent
        assert bits(got) == bits(sent)  # == holds for -0.0 and 0.0 as well

    @pytest.mark.parametrize(("write", "read"), FORMS)
    def test_extreme_numbers(self, write, read):
        values = [-0.0, 5e-324, -1.7976931348623157e308, 0.1, 2**53 + 2.0, 1 / 3]
        sent = one("input", 6, quadratic=values, linear=values[::-1])
        assert bits(getattr(Submission, read)(getattr(sent, write)())) == bits(sent)

    def test_the_bytes_are_as_documented(self):
        sent = Submission(IDENTIFIER, FINGERPRINT, "moment", [1.0, -0.0, 0.5], [2.0, 3.0])
        expected = (
            b"\x89BLUR\n\x01\x02"
            + bytes.fromhex(IDENTIFIER)
            + bytes.fromhex(FINGERPRINT)
            + struct.pack("<II5d", 3, 2, 1.0, -0.0, 0.5, 2.0, 3.0)
        )
        assert sent.to_bytes() == expected
        assert len(expected) == 64 + 8 * 5

    def test_the_json_is_as_documented(self):
        sent = Submission(IDENTIFIER, FINGERPRINT, "input", [0.25, -0.0], [-1.5, 1e300])
        assert json.loads(sent.to_json()) == {
            "format": "blurfit-submission",
            "version": 1,
            "identifier": IDENTIFIER,
            "fingerprint": FINGERPRINT,
            "mechanism": "input",
            "quadratic": [0.25, -0.0],
            "linear": [-1.5, 1e300],
        }
        assert Submission.from_json(sent.to_json().encode()) == sent

    def test_json_of_another_writer(self):
        """Spaces, whole numbers and the order of fields are the writer's own."""
        sent = one("input", 2, quadratic=[1.0, -2.0], linear=[0.1, 1e22])
        text = json.dumps(dict(reversed(json.loads(sent.to_json()).items())), indent=2)
        assert Submission.from_json(text.replace("-2.0", "-2")) == sent

    @pytest.mark.parametrize(
        ("field", "other"),
        [
            ("identifier", IDENTIFIER),
            ("fingerprint", "b2" * 32),
            ("quadratic", [9.0, 9.0, 9.0]),
            ("linear", [9.0, 9.0]),
        ],
    )
    def test_equal_by_value(self, field, other):
        assert one() == one()
        assert one() != one(**{field: other})
        assert one() != "something else"

    def test_mechanisms_differ_where_lengths_do_not(self):
        same = {"identifier": IDENTIFIER, "quadratic": [1.0], "linear": [1.0]}
        assert one("input", 1, **same) != one("moment", 1, **same)

    def test_nothing_can_be_written_to(self):
        numbers = np.ones(2)
        sent = one("input", 2, linear=numbers)
        numbers[0] = 7.0
        assert sent.linear.tolist() == [1.0, 1.0]
        with pytest.raises(ValueError, match="read-only"):
            sent.linear[0] = 7.0
        with pytest.raises(FrozenInstanceError):
            sent.linear = numbers
        again = pickle.loads(pickle.dumps(sent))
        assert again == sent
        assert not again.quadratic.flags.writeable

    @pytest.mark.parametrize(
        ("changes", "match"),
        [
            ({"identifier": "0f"}, "identifier='0f' to be 32 hexadecimal"),
            ({"identifier": "0F" * 16}, "identifier=.* to be 32 hexadecimal"),
            ({"identifier": "0f" * 16 + "\n"}, "identifier=.* to be 32 hexadecimal"),
            ({"identifier": b"0" * 16}, "identifier=.* to be 32 hexadecimal"),
            ({"fingerprint": "g" * 64}, "fingerprint=.* to be 64 hexadecimal"),
            ({"mechanism": "magic"}, "mechanism='magic' to be one of"),
            ({"quadratic": [1.0, 2.0]}, "2 numbers in quadratic to be 3"),
            ({"linear": [1.0, 2.0, 3.0]}, "3 numbers in quadratic to be 6.* d=3"),
            ({"mechanism": "input", "quadratic": [1.0, 2.0, 3.0]}, "3 numbers .* to be 2"),
            ({"linear": []}, r"linear.shape=\(0,\) to be \(k,\)"),
            ({"linear": [[1.0, 2.0]]}, r"linear.shape=\(1, 2\) to be \(k,\)"),
            ({"linear": 1.0}, r"linear.shape=\(\) to be \(k,\)"),
            ({"linear": [1.0, np.nan]}, "linear to be finite, but it contains nan"),
            ({"quadratic": [1.0, -np.inf, 0.0]}, "quadratic to be finite, .* -inf"),
            ({"linear": ["a", "b"]}, "linear to be numbers"),
            ({"linear": [[1.0], [1.0, 2.0]]}, "linear to be numbers"),
        ],
    )
    def test_what_is_not_a_submission(self, changes, match):
        with pytest.raises(InvalidValueError, match=match):
            one(**changes)


class TestSubmissions:
    @pytest.mark.parametrize(("write", "read"), FORMS)
    @given(sent=tables())
    def test_round_trips_to_the_last_bit(self, write, read, sent):
        got = getattr(Submissions, read)(getattr(sent, write)())
        assert got == sent
        assert bits(got) == bits(sent)

    @given(sent=tables())
    def test_iterating_and_gathering_are_inverse(self, sent):
        rows = list(sent)
        assert len(rows) == len(sent)
        assert all(row.dimension == sent.dimension for row in rows)
        assert all(not row.linear.flags.writeable for row in rows)
        assert Submissions.gather(rows) == sent

    @given(sent=tables())
    def test_a_batch_is_its_submissions_one_behind_the_other(self, sent):
        alone = [row.to_bytes() for row in sent]
        head = b"\x89BLURS\x01\x00" + struct.pack("<Q", len(sent))
        assert sent.to_bytes() == head + b"".join(alone)
        assert sent.to_json() == "[" + ",".join(row.to_json() for row in sent) + "]"

    def test_thousands_take_no_loop_over_numbers(self):
        sent = many(10_000)
        assert Submissions.from_bytes(sent.to_bytes()) == sent
        assert Submissions.from_json(sent.to_json()) == sent

    def test_read_only_tables_are_not_copied(self):
        table = np.ones((5, 2))
        table.setflags(write=False)
        sent = Submissions(np.zeros((5, 16), np.uint8), FINGERPRINT, "input", table, table)
        assert sent.linear is table
        assert pickle.loads(pickle.dumps(sent)) == sent
        assert not pickle.loads(pickle.dumps(sent)).linear.flags.writeable

    def test_equal_by_value(self):
        assert many(3) == many(3)
        assert many(3) != many(3, seed=1)
        assert many(3) != list(many(3))

    @pytest.mark.parametrize(
        ("changes", "match"),
        [
            ({"identifiers": np.zeros((3, 16))}, "bytes .* but they are float64"),
            ({"identifiers": np.zeros((3, 15), np.uint8)}, r"shape \(3, 15\)"),
            ({"identifiers": np.zeros(16, np.uint8)}, r"shape \(16,\)"),
            ({"identifiers": np.zeros((2, 16), np.uint8)}, "as many identifiers as rows"),
            ({"linear": np.zeros((2, 2))}, "as many identifiers as rows"),
            ({"linear": np.zeros(2)}, r"linear.shape=\(2,\) to be \(n, k\)"),
            ({"quadratic": np.zeros((3, 3))}, "3 numbers in quadratic to be 2"),
            ({"fingerprint": "a1"}, "fingerprint='a1' to be 64"),
        ],
    )
    def test_what_is_not_a_table(self, changes, match):
        fields = {
            "identifiers": np.zeros((3, 16), np.uint8),
            "fingerprint": FINGERPRINT,
            "mechanism": "input",
            "quadratic": np.zeros((3, 2)),
            "linear": np.zeros((3, 2)),
        }
        with pytest.raises(InvalidValueError, match=match):
            Submissions(**(fields | changes))

    @pytest.mark.parametrize(
        "others", [one("input", 2), one("moment", 3), one("moment", 2, fingerprint="b2" * 32)]
    )
    def test_only_one_agreement_in_a_batch(self, others):
        with pytest.raises(InvalidValueError, match="of one agreement"):
            Submissions.gather([one(), others])
        text = f"[{one().to_json()},{others.to_json()}]"
        with pytest.raises(InvalidValueError, match="of one agreement"):
            Submissions.from_json(text)

    def test_only_one_agreement_in_a_batch_of_bytes(self):
        here, there = one(), one(seed=1, fingerprint="b2" * 32)
        head = b"\x89BLURS\x01\x00" + struct.pack("<Q", 2)
        with pytest.raises(InvalidValueError, match="of one agreement"):
            Submissions.from_bytes(head + here.to_bytes() + there.to_bytes())

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
            (changed(linear=None), "missing required field `linear`"),
            (changed(name="Ada"), "unknown field `name`"),
            (changed(identifier="xyz"), "identifier='xyz' to be 32"),
            (changed(fingerprint="A1" * 32), "fingerprint=.* to be 64"),
            (changed(mechanism="other"), "Invalid enum value 'other'"),
            (changed(linear=[1.0, "2"]), "Expected `float`, got `str`"),
            (changed(linear=[1.0, True]), "Expected `float`, got `bool`"),
            (changed(linear=[1.0, [2.0]]), "Expected `float`, got `array`"),
            (changed(linear=[1.0]), "3 numbers in quadratic to be 1"),
            (changed(linear=[]), "linear.shape"),
            (changed(linear=[1.0, float("nan")]), "cannot be read"),
            (changed(linear=[1.0, float("inf")]), "cannot be read"),
            (changed().replace('"linear": [', '"linear": [1e999, '), "cannot be read|be finite"),
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

    def test_one_object_is_no_batch(self):
        with pytest.raises(InvalidValueError, match="Expected `array`, got `object`"):
            Submissions.from_json(one().to_json())


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
            (poked(7, b"\x00"), "mechanism=0 to be one of"),
            (poked(7, b"\x01"), "3 numbers in quadratic to be 2"),
            (poked(56, struct.pack("<II", 2, 3)), "2 numbers in quadratic to be 6"),
            (poked(56, struct.pack("<II", 5, 0)), "linear.shape"),
            (poked(56, struct.pack("<II", 0, 5)), "quadratic.shape"),
            (poked(56, b"\xff" * 8), "cut short, or something follows"),
            (poked(64, struct.pack("<d", float("nan"))), "quadratic to be finite"),
            (poked(96, struct.pack("<d", float("inf"))), "linear to be finite"),
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
