"""One reader: a text that says something twice, or no number, is refused wherever it comes from."""

import json
import math
from functools import partial

import pytest
from msgspec import Struct

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.contributor.blur import perturb
from blurfit.data import canonical, read_json
from blurfit.errors import InvalidValueError, ServiceError
from blurfit.messages.submissions import Submission, Submissions
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments
from blurfit.protocol import Acknowledgement, acknowledged, decoded
from blurfit_server.service.administration import Hashes, Until, agreed_from
from blurfit_server.service.limits import document_from
from support.proposals import propose

AGREEMENT = propose()


def twice(text: str | bytes) -> bytes:
    """With the first name of the outermost object again, and its first value last."""
    text = text.decode() if isinstance(text, bytes) else text
    name, value = next(iter(json.loads(text).items()))
    body = text.strip().removesuffix("}")
    return f"{body}, {json.dumps(name)}: {json.dumps(value)}}}".encode()


def test_what_is_said_once_is_read() -> None:
    assert read_json(b'{"a": [1, {"b": null}], "c": {"b": 2.5}}') == {
        "a": [1, {"b": None}],
        "c": {"b": 2.5},
    }
    assert read_json(b'{"accepted": 3, "new": 2}', Acknowledgement) == Acknowledgement(3, 2)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b'{"a": 1, "a": 1}', "'a' appears twice"),
        (b'[{"deep": {"a": 1, "b": 2, "a": 3}}]', "'a' appears twice"),
        (b'{"a": 1, "\\u0061": 2}', "'a' appears twice"),
        (b"[NaN]", "finite numbers"),
        (b"[-Infinity]", "finite numbers"),
        (b"[" * 100_000, "recursion"),
        (b"\xff", "decode"),
        (b"{", "Expecting"),
    ],
)
def test_what_is_not_clear_is_refused(text, why) -> None:
    with pytest.raises(ValueError, match=why):
        read_json(text)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (Agreement.from_json, AGREEMENT.to_json()),
        (Submission.from_json, perturb(AGREEMENT, {"age": 1, "income": 2}).to_json()),
        (PublishedModel.from_json, '{"format": 1}'),
        (PublishedMoments.from_json, '{"format": 1}'),
        (Plan.from_json, '{"format": 1}'),
        (partial(document_from, kind=Hashes, expected="hashes"), f'{{"hashes": ["{"0" * 64}"]}}'),
        (partial(document_from, kind=Until, expected="a date"), '{"until": null}'),
        (agreed_from, '{"epsilon": 1, "delta": 1e-6, "quorum": 100, "schema": {}}'),
    ],
)
def test_every_reader_of_a_document_refuses_a_name_that_is_there_twice(read, text) -> None:
    with pytest.raises(InvalidValueError, match="appears twice"):
        read(twice(text))


def test_so_do_lists_and_answers() -> None:
    one = perturb(AGREEMENT, {"age": 1, "income": 2}).to_json()
    with pytest.raises(InvalidValueError, match="appears twice"):
        Submissions.from_json(b"[" + twice(one) + b"]")
    with pytest.raises(ServiceError, match="appears twice"):
        acknowledged(b'{"accepted": 0, "new": 1, "accepted": 1}', 1)
    with pytest.raises(ServiceError, match="appears twice"):
        decoded(b'{"state": "closed", "state": "collecting"}')


class Required(Struct):
    a: int
    b: list[int]


class Optional(Struct):
    a: int
    b: int = 0


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"a": 1, "b": [], "a": 1}', Required),
        ('[{"a": 1, "b": []}, {"a": 1, "b": [], "b": [2]}]', list[Required]),
        ('{"a": 1, "a": 2}', Optional),  # as many names as fields
        ('{"a": 1, "c": 2, "c": 3}', Optional),  # one that nobody reads
        ('{"x": {"a": 1, "b": [2]}, "x": {"a": 1, "b": [2]}}', dict[str, Required]),
    ],
)
def test_what_is_read_as_a_type_is_looked_at_as_well(text, kind) -> None:
    for one in (text, text.encode()):
        with pytest.raises(ValueError, match="appears twice"):
            read_json(one, kind)


def test_colons_in_words_are_no_names() -> None:
    assert read_json('{"until": "2027-01-31T18:00+01:00"}', Until).until == "2027-01-31T18:00+01:00"
    assert read_json('{"a": 1}', Optional) == Optional(1, 0)
    assert read_json('{"a": 1, "b": [3, 4]}', Required) == Required(1, [3, 4])


def test_a_name_that_appears_twice_among_many_is_found_at_once() -> None:
    """The last of 300,000 names: a search that compared each with all would take hours."""
    names = [f'"name{place}": 0' for place in range(300_000)]
    with pytest.raises(ValueError, match="'name299999' appears twice"):
        read_json("{" + ", ".join([*names, names[-1]]) + "}")


@pytest.mark.parametrize(
    ("digits", "value"),
    [
        ("9007199254740991", 2**53 - 1),
        ("-9007199254740991", 1 - 2**53),
        ("9007199254740992", 2.0**53),
        ("18446744073709552000", 2.0**64),
        ("-9007199254740993", -(2.0**53)),
    ],
)
def test_whole_numbers_beyond_the_safe_ones_are_read_as_other_readers_do(digits, value) -> None:
    (found,) = read_json(f"[{digits}]")
    assert found == value
    assert type(found) is type(value)


def test_a_number_beyond_floats_is_refused() -> None:
    for digits in ("1" + 400 * "0", 5000 * "7"):
        with pytest.raises(ValueError, match="beyond the range of floats"):
            read_json(f'{{"epsilon": {digits}}}')


@pytest.mark.parametrize("value", [2**53, -(2**64), 10**400, float("nan"), float("inf")])
def test_what_has_no_canonical_text_is_refused_with_a_reason(value: float) -> None:
    with pytest.raises(InvalidValueError, match="below 2\\*\\*53"):
        canonical({"deep": [{"value": value}]})


@pytest.mark.parametrize("bad", [[0.5, math.nan], [math.inf, 1.5], {1: 2}, [2**53], [object()]])
def test_what_has_no_text_is_refused(bad) -> None:
    with pytest.raises(InvalidValueError):
        canonical({"a": bad})
