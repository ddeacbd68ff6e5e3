"""`blurfit agree` writes what `Agreement.propose` makes, and nothing if it makes nothing."""

import json

import pytest

from blurfit.agreement.agreement import Agreement
from blurfit.schema.schema import Numeric, Schema

NUMBER = """
[[features]]
name = "age"
kind = "numeric"
lower = 0
upper = 100
[target]
name = "income"
kind = "numeric"
lower = 0
upper = 1000
"""
LABEL = NUMBER + "above = 370\n"
FEATURES = [Numeric("age", 0, 100)]
TARGET = Numeric("income", 0, 1000)
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
    expected = Agreement.propose(
        Schema(features=FEATURES, target=TARGET), epsilon=1.0, delta=1e-6, quorum=5000
    )
    assert written == expected
    words = " ".join(result.stdout.split())
    assert "moment perturbation, certified" in words
    assert f"Wrote agreement.json, fingerprint {expected.fingerprint}." in words


def test_every_option_reaches_the_agreement(agree, tmp_path) -> None:
    result = agree(
        LABEL,
        *["--epsilon", "2", "--delta", "1e-5", "--quorum", "3000", "--loss", "logistic"],
        *["--mechanism", "input", "--neighbours", "zero-out"],
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
        "dimension": 2,
        "local_epsilon": expected.calibration.local.epsilon,
    }


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("[[features]", PROMISE, "schema.toml"),
        (NUMBER.replace("upper = 100\n", ""), PROMISE, "upper"),
        (NUMBER, [*PROMISE, "--loss", "logistic"], "Expected loss='logistic' to fit the target"),
        (NUMBER, [*PROMISE, "--mechanism", "input"], "weight_bound"),
        (NUMBER, [*PROMISE[:-1], "0"], "quorum"),
    ],
    ids=["not TOML", "no bound", "wrong loss", "no weight bound", "no quorum"],
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


def test_a_folder_that_is_not_there_is_a_wrong_value(agree) -> None:
    result = agree(NUMBER, *PROMISE, "--out", "nowhere/agreement.json")
    assert result.returncode == 2
    assert "nowhere" in result.stderr
    assert "Traceback" not in result.stderr
