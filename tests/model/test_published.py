"""What the model's user has: a file that predicts, and says what it promises."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from blurfit import (
    BelowQuorumError,
    InvalidValueError,
    Submissions,
    perturb,
    perturb_table,
)
from blurfit.agreement.agreement import Agreement
from blurfit.errors import BlurfitError
from blurfit.messages.signing import Signature, Signer, about_release, new_key
from blurfit.model.model import PublishedFile, PublishedModel, as_text, with_signatures
from blurfit.model.release import PublishedMoments, Release, examine, signers
from blurfit.schema.schema import Binary, Categorical, Numeric, Schema
from blurfit_server import Store
from support.proposals import PEOPLE, propose, totals_of
from support.sharing import propose as propose_two

FEATURES = [Numeric("age", 0, 100), Binary("married"), Categorical("sex", ["f", "m"])]
NAMES = ("age", "married", "sex")
WEIGHTS = np.array([[0.25, 0.4, -0.2, 0.1, 0.3]])  # of the constant, and of each column


def model(*, weights=WEIGHTS, count=150) -> PublishedModel:
    schema = Schema(FEATURES, Numeric("income", 0, 200_000))
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=100)
    return PublishedModel(agreement, "income", NAMES, weights, count, "by hand")


def test_classes_keep_their_weights_in_a_file() -> None:
    """The levels are in no alphabetical order, and a file's fields are."""
    party = Categorical("party", ["red", "green", "blue"])
    agreement = Agreement.propose(
        Schema([Numeric("age", 18, 80)], party), epsilon=1, delta=1e-6, quorum=100
    )
    weights = np.array([[0.5, 0.3], [0.3, -0.2], [0.2, -0.1]])
    model = PublishedModel(agreement, "party", ("age",), weights, 100, "by hand")
    again = PublishedModel.from_json(model.to_json())
    assert (again.weights == weights).all()
    assert again.coefficients_of("red") == model.coefficients_of("red")
    document = json.loads(model.to_json())
    document["weights"]["brown"] = document["weights"].pop("red")
    with pytest.raises(InvalidValueError, match="weights for each of"):
        PublishedModel.from_dict(document)


def test_an_edited_file_is_refused() -> None:
    document = json.loads(model().to_json())
    noise = document["agreement"]["calibration"] | {"sigma": 0.1}
    for name, value in [
        ("agreement", document["agreement"] | {"calibration": noise}),
        ("agreement", None),
        ("count", 0),
        ("weights", {"age": 1.0}),
        ("weights", {"income": [0.25, 0.4]}),
        ("weights", {"income": "x"}),
        ("waves", [{"count": 150}]),
        ("target", "height"),
        ("features", ["height"]),
        ("link", "logistic"),
        ("curve", [0.0, 1.0]),
        ("fingerprint", None),
        ("inference", [1]),
        ("inference", [{"covariance": [[1]], "sampling": [[1]], "bias": [1]}]),
        ("references", 3),
    ]:
        with pytest.raises(BlurfitError):
            PublishedModel.from_json(json.dumps(document | {name: value}))


def test_weights_are_checked_and_read_only() -> None:
    with pytest.raises(InvalidValueError, match=r"finite numbers up to 1e\+100 of shape \(1, 5\)"):
        model(weights=np.ones((1, 4)))
    with pytest.raises(InvalidValueError, match="finite"):
        model(weights=np.array([[1, 2, 3, 4, np.nan]]))
    with pytest.raises(ValueError, match="read-only"):
        model().weights[0, 0] = 1.0


# ---- what a release and a model have in common as files
TWO_COLUMNS = Schema([Numeric("age", 18, 80)], Numeric("income", 0, 200_000))
AGREEMENT = Agreement.propose(TWO_COLUMNS, epsilon=1, delta=1e-6, quorum=100)


def moments(count: int = 150) -> PublishedMoments:
    return PublishedMoments(AGREEMENT, count, np.arange(AGREEMENT.width) * 1.0)


def plain_model(count: int = 150) -> PublishedModel:
    return PublishedModel(AGREEMENT, "income", ("age",), np.ones((1, 2)), count, "by hand")


published = pytest.mark.parametrize("made", [moments, plain_model])


@published
def test_files_are_read_back_to_the_byte_and_signed_in_place(made, tmp_path) -> None:
    file: PublishedFile = made()
    file.save(tmp_path / "file.json")
    again = type(file).load(tmp_path / "file.json")
    assert again.to_json() == file.to_json() == (tmp_path / "file.json").read_text("utf-8")
    assert (again.agreement, again.fingerprint) == (AGREEMENT, AGREEMENT.fingerprint)
    # Without reading the rest; the text is the one that a file with signatures writes.
    file: PublishedFile = made()
    some = [Signature("ab" * 32, "cd" * 64), Signature("01" * 32, "23" * 64)]
    expected = replace(file, signatures=tuple(some)).to_json()
    assert with_signatures(file.to_json(), some) == expected
    assert with_signatures(json.dumps(file.to_dict()), some) == expected, "however it was written"
    first = with_signatures(file.to_json(), some[:1])
    assert with_signatures(first, some) == expected, "instead of those that were there"
    assert with_signatures(first, []) == file.to_json()


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
        ({"agreement": document["agreement"] | {"step": {}}}, r"at `\$\.agreement\.step`"),
    ):
        with pytest.raises(InvalidValueError, match=name):
            type(file).from_dict(document | change)
    for name in document.keys() - {"format", "version"}:
        with pytest.raises(InvalidValueError, match=f"missing required field `{name}`"):
            type(file).from_dict({key: document[key] for key in document.keys() - {name}})


# ---- whose a signature is; tests/cli/test_verify.py has what is wrong
def test_signatures_have_names_and_without_a_key_are_nobodys() -> None:
    agreement = propose()
    with Store() as store:
        store.add(agreement, perturb(agreement, PEOPLE))
        text = store.publish_text(agreement.fingerprint)
    signer = Signer(new_key())
    forged = with_signatures(text, [signer.sign(about_release(json.loads(text)))])
    for one in (text, forged):
        found = examine(one, agreement)
        assert not found.verified
        assert "names no key" in found.wrong[0]
    assert with_signatures(forged, ()) == text
    assert signers(propose()) == ("The service",)
    assert signers(propose_two()) == ("Office", "University")
    for text in ("", "[]", "{}", '{"format": "another"}'):
        with pytest.raises(InvalidValueError):
            examine(text)


def test_the_text_has_names_in_order_and_nothing_that_is_no_number() -> None:
    text = as_text({"b": [1e-5, 2.0, 0.1], "a": {"d": None, "c": np.float64(1.5)}})
    assert json.loads(text) == {"a": {"c": 1.5, "d": None}, "b": [1e-5, 2.0, 0.1]}
    assert text.index('"a"') < text.index('"c"') < text.index('"d"') < text.index('"b"')
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match="beyond the range of floats"):
            as_text({"a": [{"b": value}]})


def part(table: Submissions, rows: slice) -> Submissions:
    return Submissions(table.identifiers[rows], table.fingerprint, table.numbers[rows])


def test_the_same_sums_have_the_same_mark_and_too_few_have_none(agreement) -> None:
    table = perturb_table(agreement, PEOPLE)
    some = totals_of(agreement, table)
    first, again = Release.of(agreement, some), Release.of(agreement, some)
    assert first == again
    assert first.mark() == again.mark()
    late = perturb_table(agreement, {name: values[:1] for name, values in PEOPLE.items()})
    both = Release.of(agreement, totals_of(agreement, table, late))
    assert both.mark() != first.mark()
    few = part(perturb_table(agreement, PEOPLE), slice(0, 19))
    with pytest.raises(BelowQuorumError):
        Release.of(agreement, totals_of(agreement, few))


def test_a_release_follows_from_its_moments_up_to_rounding_alone() -> None:
    agreement = propose()
    release = Release.of(agreement, totals_of(agreement, perturb_table(agreement, PEOPLE)))
    assert release.follows(agreement, 40)
    assert not release.follows(agreement, 39)
    assert not release.follows(propose(epsilon=90), 40)
    moments = PublishedMoments.from_json(release.moments)
    model = moments.fit()
    rounded = replace(model, weights=model.weights * (1 + 1e-9))
    assert Release(rounded.to_json(), release.moments).follows(agreement, 40)
    moved = replace(model, weights=model.weights * (1 + 1e-4))
    other = replace(moments, sums=moments.sums * (1 + 1e-4))
    for wrong in (
        Release(moved.to_json(), release.moments),
        Release(release.model, other.to_json()),
        Release(replace(model, caveats=("Nothing.",)).to_json(), release.moments),
        Release(moments.fit(target="age").to_json(), release.moments),
        Release(release.model),
        Release(refusal="No."),
    ):
        assert not wrong.follows(agreement, 40)


def test_a_curve_turns_a_labels_line_into_log_odds() -> None:
    schema = Schema([Numeric("age", 18, 80)], Binary("ill"))
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=100)
    line = PublishedModel(agreement, "ill", ("age",), np.array([[-0.9, 0.05]]), 150, "by hand")
    found = PublishedModel.from_json(replace(line, curve=(11.0, 16.0)).to_json())
    table = {"age": [18.0, 49.0, 80.0]}
    odds = 11 + 16 * line.decision_function(table)
    np.testing.assert_allclose(found.decision_function(table), odds)
    np.testing.assert_allclose(found.predict_proba(table)[:, 1], 1 / (1 + np.exp(-odds)))
    exported = found.to_sklearn().predict_proba(pd.DataFrame(table))
    np.testing.assert_allclose(exported, found.predict_proba(table))
    assert found.coefficients == line.coefficients
    for wrong in ({"curve": (0.0, 0.0)}, {"curve": (np.inf, 1.0)}, {"link": "logistic"}):
        with pytest.raises(InvalidValueError):
            replace(found, **wrong)
