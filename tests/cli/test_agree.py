"""`blurfit agree` writes what `Agreement.propose` makes, and nothing if it makes nothing."""

import json

import pytest

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.numbers import records_worth
from blurfit.agreement.statement import premise_in_words
from blurfit.schema.schema import Numeric, Schema
from support.surveys import schema_text

NUMBER = schema_text()
LABEL = NUMBER + "above = 370\n"
TERMS = NUMBER + "[terms]\nepsilon = 2\ndelta = 1e-7\nquorum = 900\nneighbours = 'zero-out'\n"
FEATURES = [Numeric("age", 0, 100)]
TARGET = Numeric("income", 0, 1000)
SCHEMA = Schema(features=FEATURES, target=TARGET)
PROMISE = ["--epsilon", "1", "--delta", "1e-6", "--quorum", "5000"]


@pytest.fixture
def agree(blurfit):
    """`blurfit agree` for a schema's text."""

    def agree(text: str, *arguments: str):
        (blurfit.folder / "schema.toml").write_text(text)
        return blurfit("agree", "schema.toml", *arguments)

    return agree


def test_the_agreement_is_the_one_that_the_library_proposes(agree, tmp_path) -> None:
    result = agree(NUMBER, *PROMISE)
    assert result.returncode == 0, result.stderr
    written = Agreement.load(tmp_path / "agreement.json")
    expected = Agreement.propose(SCHEMA, epsilon=1.0, delta=1e-6, quorum=5000)
    assert written == expected
    words = " ".join(result.stdout.split())
    assert "Asked: age (0 to 100), income (0 to 1,000)." in words
    assert f"{expected.width} │ numbers per person, once: {expected.layout.size} bytes" in words
    assert "(1, 1e-06)-differentially private" in words
    assert "at least 5,000 honest records" in words
    assert f"Wrote agreement.json, fingerprint {expected.fingerprint}." in words
    assert "Next: `blurfit forecast agreement.json`" in result.stderr
    assert "Warning" not in result.stderr


def test_every_option_reaches_the_agreement(agree, tmp_path) -> None:
    result = agree(
        LABEL,
        *["--epsilon", "2", "--delta", "1e-5", "--quorum", "3000", "--loss", "logistic"],
        *["--mechanism", "input", "--neighbours", "zero-out", "--no-debias"],
        *["--weight-bound", "2.5", "--l1", "0.5", "--l2", "0.25"],
        *["--local-epsilon", "9", "--local-delta", "1e-4", "--out", "other.json", "--json"],
    )
    assert result.returncode == 0, result.stderr
    expected = Agreement.propose(
        Schema(features=FEATURES, target=TARGET.above(370)),
        epsilon=2.0,
        delta=1e-5,
        quorum=3000,
        loss="logistic",
        mechanism="input",
        neighbours="zero-out",
        debias=False,
        weight_bound=2.5,
        l1=0.5,
        l2=0.25,
        local_epsilon=9.0,
        local_delta=1e-4,
    )
    assert Agreement.load(tmp_path / "other.json") == expected
    assert not (tmp_path / "agreement.json").exists()
    assert json.loads(result.stdout) == {
        "agreement": "other.json",
        "fingerprint": expected.fingerprint,
        "mechanism": "input",
        "epsilon": 2.0,
        "delta": 1e-5,
        "caveats": [],
        "neighbours": "zero-out",
        "quorum": 3000,
        "trust": "one",
        "admission": "invited",
        "database_noise": False,
        "condition": premise_in_words(expected),
        "liar_records": records_worth(expected),
        "proofs": False,
        "numbers": 4,
        "bytes": expected.layout.size,
        "local_epsilon": expected.calibration.local.epsilon,
        "local_delta": 1e-4,
        "public_rows": None,
        "signing_keys": [],
        "warnings": [],
    }
    assert not result.stderr


def test_weights_are_typed_one_by_one(agree, tmp_path) -> None:
    result = agree(
        NUMBER, *PROMISE, "--weight", "age", "3", "--weight", "income", "4", "--constant", "2"
    )
    assert result.returncode == 0, result.stderr
    expected = Agreement.propose(
        SCHEMA, epsilon=1, delta=1e-6, quorum=5000, weights={"age": 3, "income": 4}, constant=2
    )
    assert Agreement.load(tmp_path / "agreement.json") == expected


def test_two_databases_are_told_with_their_condition(agree, tmp_path) -> None:
    places = ("Office", "https://first.example"), ("Union", "https://second.example")
    typed = [word for place in places for word in ("--database", *place)]
    result = agree(NUMBER, *PROMISE, *typed)
    assert result.returncode == 0, result.stderr
    assert [one.name for one in Agreement.load(tmp_path / "agreement.json").databases] == [
        "Office",
        "Union",
    ]
    words = " ".join(result.stdout.split())
    assert "Office gets a masked share of each submission and Union the seed of its mask." in words
    assert "only if the two do not put their shares together" in words
    assert "One submission by itself" not in words  # which no database sees
    assert "Each contributor proves to both databases" in words
    assert "With its proof a contributor's share is" in words
    assert "One contributor who lies can move the sums at most as far as" in words
    assert Agreement.load(tmp_path / "agreement.json").proofs, "by invitation too"
    result = agree(NUMBER, *PROMISE, *typed, "--no-proofs")
    words = " ".join(result.stdout.split())
    assert "proof" not in words
    assert "One contributor who lies can move the sums by any amount" in words


def test_terms_of_the_file_are_taken_unless_others_are_typed(agree, tmp_path) -> None:
    assert agree(TERMS, "--epsilon", "1").returncode == 0
    expected = Agreement.propose(SCHEMA, epsilon=1, delta=1e-7, quorum=900, neighbours="zero-out")
    assert Agreement.load(tmp_path / "agreement.json") == expected


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        (["--epsilon", "8", "--delta", "1e-6", "--quorum", "5000"], "ε = 8 promises little"),
        (["--epsilon", "1", "--delta", "1e-3", "--quorum", "5000"], "more than one in 5,000"),
        (["--epsilon", "1", "--delta", "1e-6", "--quorum", "50"], "With 50 contributors the noise"),
    ],
)
def test_what_makes_little_sense_is_said(agree, typed: list[str], word: str) -> None:
    result = agree(NUMBER, *typed)
    assert result.returncode == 0
    assert word in result.stderr
    (said,) = json.loads(agree(NUMBER, *typed, "--json").stdout)["warnings"]
    assert word in said


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("[[features]", PROMISE, "schema.toml"),
        (NUMBER.replace("upper = 100\n", ""), PROMISE, "upper"),
        (NUMBER, [*PROMISE, "--loss", "squared"], "Expected no loss='squared' with mechanism="),
        (NUMBER, [*PROMISE, "--mechanism", "input"], "weight_bound"),
        (NUMBER, [*PROMISE[:-1], "0"], "quorum"),
        (NUMBER, PROMISE[:2], "Expected --delta, --quorum: type it, or write it under [terms]"),
        (NUMBER + "[terms]\nepsilom = 1\n", PROMISE, "got ['epsilom']"),
        (NUMBER, [*PROMISE, "--database", "A", "https://a.example"], "Expected two databases"),
        (NUMBER, [*PROMISE, "--weight", "age", "1"], "Expected weights for each of"),
    ],
    ids=[
        *("not TOML", "no bound", "wrong mechanism", "no weight bound", "no quorum", "too little"),
        *("unknown term", "one database", "one weight"),
    ],
)
def test_what_cannot_be_agreed_upon_is_not_written(
    agree, tmp_path, text: str, arguments: list[str], message: str
) -> None:
    result = agree(text, *arguments)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert not result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["schema.toml"]


def test_an_agreement_is_no_schema(blurfit, propose) -> None:
    propose().save(blurfit.folder / "made.json")
    refused = blurfit("agree", "made.json", *PROMISE)
    assert refused.returncode == 2
    assert "is an agreement already" in refused.stderr
