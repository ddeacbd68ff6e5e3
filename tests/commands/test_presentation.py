"""Words must not promise more than the numbers."""

import io

import pytest
from rich.console import Console

from blurfit import LocalGuarantee, calibrate
from blurfit.agreement.promises import local_in_words
from blurfit.commands.presentation import report
from blurfit.theory.gaussian import mu_of

SURVEY = {"dimension": 3, "quorum": 500, "q_bound": 1, "p_bound": 1, "weight_bound": 1}


def text(**arguments) -> str:
    console = Console(width=200, file=io.StringIO())
    with console.capture() as capture:
        console.print(report(calibrate(1, 1e-6, **SURVEY, **arguments)))
    return " ".join(capture.get().split())


@pytest.mark.parametrize(
    ("epsilon", "words"), [(0.5, "very little"), (5, "not be sure"), (11, "a great deal")]
)
def test_local_privacy_in_words(epsilon: float, words: str) -> None:
    mu = mu_of(epsilon, 1e-6)
    assert words in local_in_words(LocalGuarantee(mu=mu, epsilon=epsilon, delta=1e-6))


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
def test_relation_quorum_and_releases_are_told(neighbours) -> None:
    relation = {"replace": "replace her record", "zero-out": "be blanked out"}[neighbours]
    for mechanism, releases in (("input", "one model, once"), ("moment", "any number of models")):
        told = text(mechanism=mechanism, neighbours=neighbours)
        assert relation in told
        assert "at least 500 honest records" in told
        assert releases in told


def test_the_papers_claim_is_not_passed_off_as_proved() -> None:
    told = text(mechanism="input", rule="published")
    assert "NOT proved" in told
    assert "-differentially private" not in told
