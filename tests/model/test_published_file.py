"""What a release and a model have in common as files."""

import json
from dataclasses import replace

import numpy as np
import pytest

from blurfit import InvalidValueError
from blurfit.agreement.agreement import Agreement
from blurfit.errors import BlurfitError
from blurfit.messages.signing import Signature
from blurfit.model.model import PublishedFile, PublishedModel, with_signatures
from blurfit.model.moments import PublishedMoments
from blurfit.schema.schema import Numeric, Schema

SCHEMA = Schema([Numeric("age", 18, 80)], Numeric("income", 0, 200_000))
AGREEMENT = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=100)


def moments(count: int = 150) -> PublishedMoments:
    return PublishedMoments(AGREEMENT, count, np.arange(AGREEMENT.width) * 1.0)


def model(count: int = 150) -> PublishedModel:
    return PublishedModel(AGREEMENT, "income", ("age",), np.ones((1, 2)), count, "by hand")


published = pytest.mark.parametrize("made", [moments, model])


@published
def test_signatures_are_put_where_they_belong(made) -> None:
    """Without reading the rest; the text is the one that a file with signatures writes."""
    file: PublishedFile = made()
    some = [Signature("ab" * 32, "cd" * 64), Signature("01" * 32, "23" * 64)]
    expected = replace(file, signatures=tuple(some)).to_json()
    assert with_signatures(file.to_json(), some) == expected
    assert with_signatures(json.dumps(file.to_dict()), some) == expected, "however it was written"
    first = with_signatures(file.to_json(), some[:1])
    assert with_signatures(first, some) == expected, "instead of those that were there"
    assert with_signatures(first, []) == file.to_json()


@published
def test_files_are_read_back_to_the_byte(made, tmp_path) -> None:
    file: PublishedFile = made()
    file.save(tmp_path / "file.json")
    again = type(file).load(tmp_path / "file.json")
    assert again.to_json() == file.to_json() == (tmp_path / "file.json").read_text("utf-8")
    assert (again.agreement, again.fingerprint) == (AGREEMENT, AGREEMENT.fingerprint)


@published
def test_nothing_is_published_below_the_quorum(made) -> None:
    with pytest.raises(InvalidValueError, match="count=99 to be at least the quorum 100"):
        made(count=99)


@published
def test_what_is_no_such_file_is_refused(made) -> None:
    kind, document = type(made()), made().to_dict()
    for text, message in (
        ("not json", "in JSON"),
        ("[" * 100_000, "in JSON"),
        ("[]", "named fields"),
        (json.dumps({**document, "format": "other"}), "Is this "),
        (json.dumps({**document, "version": 7}), "version=7"),
        (json.dumps({**document, "fingerprint": "0" * 64}), "not the one that you were invited to"),
        (json.dumps({name: document[name] for name in ("format", "version")}), "as blurfit writes"),
        (json.dumps({**document, "count": 99}), "at least the quorum"),
    ):
        with pytest.raises(BlurfitError, match=message):
            kind.from_json(text)


@published
def test_the_struct_has_the_fields_of_the_file_and_names_what_is_wrong(made) -> None:
    """So what OpenAPI shows of a file is what is written."""
    file: PublishedFile = made()
    document = file.to_dict()
    assert set(document) == set(file.DOCUMENT.__struct_fields__) - {"signatures"}
    for change, name in (
        ({"more": 1}, "unknown field `more`"),
        ({"count": "many"}, r"got `str` - at `\$\.count`"),
        ({"agreement": document["agreement"] | {"grid": {}}}, r"at `\$\.agreement\.grid`"),
    ):
        with pytest.raises(InvalidValueError, match=name):
            type(file).from_dict(document | change)
    for name in document.keys() - {"format", "version"}:
        with pytest.raises(InvalidValueError, match=f"missing required field `{name}`"):
            type(file).from_dict({key: document[key] for key in document.keys() - {name}})
