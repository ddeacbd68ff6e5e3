"""Words must not promise more than the numbers."""

import io

import pytest
from rich.console import Console, RenderableType

from blurfit import (
    About,
    Agreement,
    Binary,
    Categorical,
    LocalGuarantee,
    Numeric,
    Schema,
    Wording,
    calibrate,
)
from blurfit.agreement.statement import local_in_words
from blurfit.cli._reports import (
    agreement_report,
    calibration_report,
    doubts,
    moments_report,
)
from blurfit.theory.gaussian import mu_of
from support.joint_release import release

INPUT = {"dimension": 3, "quorum": 500, "q_bound": 1, "p_bound": 1, "weight_bound": 1}
SCHEMA = Schema(
    [Numeric("age", 0, 100), Binary("married"), Categorical("region", ["north", "south"])],
    Numeric("income", 0, 1000).above(370),
)
TERMS = {"epsilon": 1, "delta": 1e-6, "quorum": 500}


def text(what: RenderableType) -> str:
    console = Console(width=200, file=io.StringIO())
    with console.capture() as capture:
        console.print(what)
    return " ".join(capture.get().split())


@pytest.mark.parametrize(
    ("epsilon", "words"), [(0.5, "very little"), (5, "not be sure"), (11, "a great deal")]
)
def test_local_privacy_in_words(epsilon: float, words: str) -> None:
    mu = mu_of(epsilon, 1e-6)
    assert words in local_in_words(LocalGuarantee(mu=mu, epsilon=epsilon, delta=1e-6))


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize(
    ("mechanism", "releases"), [("input", "one model, once"), ("moment", "any number of models")]
)
def test_relation_quorum_and_releases_are_told(neighbours, mechanism, releases) -> None:
    relation = {"replace": "replace her record", "zero-out": "be blanked out"}[neighbours]
    terms = TERMS | {"mechanism": mechanism, "neighbours": neighbours}
    if mechanism == "input":
        terms["weight_bound"] = 1.0
    agreement = Agreement.propose(SCHEMA, **terms)
    for told in (
        text(agreement_report(agreement)),
        text(calibration_report(agreement.calibration)),
    ):
        assert relation in told
        assert "at least 500 honest records" in told
        assert releases in told
    told = text(agreement_report(agreement))
    assert "(1, 1e-06)-differentially private" in told  # of the agreement, not what noise was for
    assert (
        "Asked: age (0 to 100), married (yes or no), region (north | south), income (above 370)."
        in told
    )
    assert f"{agreement.width} │ numbers per person" in told


def test_the_papers_claim_is_not_passed_off_as_proved() -> None:
    told = text(calibration_report(calibrate(1, 1e-6, **INPUT, rule="published")))
    assert "NOT proved" in told
    assert "-differentially private" not in told


def test_what_makes_sense_raises_no_doubt() -> None:
    assert not doubts(Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=5000))


def test_doubts_are_about_epsilon_delta_and_quorum() -> None:
    found = doubts(Agreement.propose(SCHEMA, epsilon=30, delta=0.5, quorum=4))
    assert len(found) == 3
    assert "any number of times as likely" in found[0]
    assert "δ = 0.5 is more than one in 4" in found[1]
    assert "With 4 contributors the noise" in found[2]


def test_moments_are_told_with_their_correlations() -> None:
    told = moments_report(release())
    words = " ".join(told.split())
    assert words.startswith("20,000 people (at least 20,000 were required) answered age (18 to 90)")
    assert (
        "is (1, 1e-06)-differentially private (neighbours: replace). Each record was blurred"
        in words
    )
    assert "May be predicted: age, education, region, married, income." in words
    line = next(line for line in told.splitlines() if line.startswith("education     "))
    assert float(line.split()[-1]) == pytest.approx(0.62, abs=0.05)  # with income


def test_an_agreement_says_who_asks_in_words_and_what_is_risked() -> None:
    about = About(title="Work", purpose="Wages [bold]", organiser="The Office")
    region = Categorical(
        "region", ["n", "s"], True, Wording(title="Region", labels={"n": "north", "s": "south"})
    )
    agreement = Agreement.propose(Schema([region], Numeric("pay", 0, 9), about=about), **TERMS)
    told = text(agreement_report(agreement))
    for words in (
        "Work Purpose: Wages [bold] Asked by: The Office",
        "Region (north | south, or not said), pay (0 to 9)",
        "at most 55 times in 100; a coin is right 50 times in 100",
    ):
        assert words in told
