"""One text, one fingerprint: for agreements and plans."""

import dataclasses
import hashlib
import inspect
import json
from contextlib import suppress
from functools import cached_property

import msgspec
import numpy as np
import pytest

from blurfit import InvalidValueError
from blurfit.agreement.agreement import Agreement, Fingerprinted, alike
from blurfit.agreement.plan import Plan
from blurfit.errors import BlurfitError
from blurfit.schema.schema import Numeric, Schema
from support import plans

SCHEMA = Schema([Numeric("age", 18, 80)], Numeric("income", 0, 200_000))
PROMISE = {"epsilon": 1.0, "delta": 1e-6, "quorum": 40_000}
DOCUMENTS: list[Fingerprinted] = [
    Agreement.propose(SCHEMA, **PROMISE),
    Plan.propose(SCHEMA, waves=2, **PROMISE),
]
document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: type(one).__name__)


@document
def test_documents_are_read_back_under_the_hash_of_their_canonical_text(
    document: Fingerprinted, tmp_path
) -> None:
    # RFC 8785 for a document of ASCII names: sorted keys, no spaces, numbers as ECMAScript prints
    # them.
    text = document.to_json()
    assert '"delta":0.000001' in text
    stated = json.loads(text)["fingerprint"]
    without = text.replace(f',"fingerprint":"{stated}"', "", 1)
    assert hashlib.sha256(without.encode()).hexdigest() == stated == document.fingerprint
    kind = type(document)
    document.save(tmp_path / "file.json")
    assert kind.from_json((tmp_path / "file.json").read_bytes()) == document
    assert kind.from_document(document.to_document()) == document
    assert kind.from_dict(document.to_dict()) == document


@document
def test_a_text_is_read_once_and_what_is_changed_is_refused_every_time(document) -> None:
    kind, other = type(document), type(DOCUMENTS[document is DOCUMENTS[0]])
    text = document.to_json()
    assert kind.from_json(text) is kind.from_json(text)
    for _ in range(2):
        with pytest.raises(InvalidValueError):
            kind.from_json(text.replace("income", "wealth"))
        with pytest.raises(InvalidValueError):
            other.from_json(text)


@document
def test_a_document_is_understood_once_in_whatever_carries_it(document) -> None:
    kind, text = type(document), document.to_json()
    found = kind.from_json(text)
    assert kind.from_json(text.encode()) is found
    assert kind.from_document(json.loads(text)) is found
    assert kind.from_dict(document.to_dict()) is found


def test_what_is_known_is_refused_with_values_of_another_type() -> None:
    known = DOCUMENTS[1].to_document()
    assert Plan.from_document(known) == DOCUMENTS[1]
    known["waves"][0]["quorum"] = float(known["waves"][0]["quorum"])  # the canonical text is equal
    with pytest.raises(InvalidValueError, match="Expected `int`, got `float`"):
        Plan.from_document(known)


@document
def test_a_changed_text_is_refused(document: Fingerprinted) -> None:
    kind, text = type(document), document.to_json()
    with pytest.raises(InvalidValueError, match="the text was changed after it was written"):
        kind.from_json(text.replace('"age"', '"eye"'))
    with pytest.raises(InvalidValueError, match="fingerprint=None to be"):
        kind.from_json(json.dumps(document.to_dict()))
    with pytest.raises(InvalidValueError, match="unknown field `more`"):
        kind.from_dict(document.to_dict() | {"more": 1})


@document
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "in JSON"),
        ("[]", "an object"),
        ("{}", "Is this "),
        ('{"format": "blurfit-FORMAT", "version": 2, "rule": 1}', "version=2"),
        ('{"format": "blurfit-FORMAT", "version": true, "rule": 1}', "version=True"),
        ('{"format": "blurfit-FORMAT", "version": 1, "rule": 1}', "field `"),
        ('{"format": NaN}', "NaN"),
    ],
)
def test_garbage_is_refused(document: Fingerprinted, text: str, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        type(document).from_json(text.replace("FORMAT", type(document).__name__.lower()))


@document
@pytest.mark.parametrize("text", ['{"a": 1e999}', '{"version": ' + "9" * 400 + "}", "[" * 10_000])
def test_hostile_texts_end_in_our_own_errors(document: Fingerprinted, text: str) -> None:
    with pytest.raises(BlurfitError):
        type(document).from_json(text)


def test_any_text_may_be_asked_about() -> None:
    assert alike("a" * 64, "a" * 64)
    assert not alike("ä\udc80", "a" * 64)
    with pytest.raises(InvalidValueError, match="64 hexadecimal digits"):
        alike(7, "a" * 64)  # type: ignore[arg-type]


def _changeable(found: object, where: str) -> list[str]:
    """What can be changed of something, and of whatever it keeps, once it has been asked for it."""
    if isinstance(found, np.ndarray):
        return [where] if found.flags.writeable else []
    if isinstance(found, dict | list | set | bytearray):
        return [where]
    if isinstance(found, tuple):
        return [one for n, part in enumerate(found) for one in _changeable(part, f"{where}[{n}]")]
    if not isinstance(found, msgspec.Struct) and not dataclasses.is_dataclass(found):
        return []
    for name, kept in inspect.getmembers_static(type(found)):
        if isinstance(kept, cached_property):
            with suppress(BlurfitError, ValueError):  # what this one has not
                getattr(found, name)
    if isinstance(found, msgspec.Struct):
        names, fixed = found.__struct_fields__, found.__struct_config__.frozen
    else:
        names, fixed = tuple(vars(found)), type(found).__dataclass_params__.frozen
    own = [] if fixed else [where]
    return own + [
        one for name in names for one in _changeable(getattr(found, name), f"{where}.{name}")
    ]


def test_nobody_can_change_what_others_get_when_they_read_the_same_text() -> None:
    """Above all not the deviations of the noise, which are computed once."""
    waves = [one.agreement for one in plans.releases(plans.plan("label", waves=2))]
    read = [
        Agreement.propose(SCHEMA, **PROMISE),
        *DOCUMENTS,
        *waves,
    ]
    for one in read:
        found = type(one).from_json(one.to_json())
        assert _changeable(found, type(one).__name__) == []


@pytest.mark.parametrize("upper", [2**53, 2.0**53, 1e17, 2**64])
def test_whole_numbers_that_readers_take_differently_are_in_no_document(upper: float) -> None:
    """An int has no canonical text; a float has one that would be read as another number."""
    schema = Schema([Numeric("age", 18, 80)], Numeric("income", 0, upper))
    with pytest.raises(InvalidValueError, match=r"below 2\*\*53"):
        Agreement.propose(schema, **PROMISE).to_json()
    with pytest.raises(InvalidValueError, match=r"below 2\*\*53"):
        Plan.propose(schema, waves=2, **PROMISE).to_json()


def test_numbers_just_below_are_and_digits_within_words_are_no_numbers() -> None:
    digits = ",12345678901234567890,"
    schema = Schema([Numeric(digits, 18, 80)], Numeric("income", 0, 2.0**53 - 1))
    found = Agreement.propose(schema, **PROMISE)
    assert Agreement.from_json(found.to_json()) == found
    wide = Schema([Numeric("age", 18, 80)], Numeric("income", 0, 1e22))  # written as 1e+22
    assert Agreement.from_json(Agreement.propose(wide, **PROMISE).to_json()).schema == wide
