import pytest

from blurfit import LocalGuarantee, ModelGuarantee
from blurfit.agreement.statement import (
    condition_in_words,
    either_in_words,
    guesses_from_submission,
    guesses_in_words,
    local_in_words,
    relation_in_words,
    releases_in_words,
    together_in_words,
)
from blurfit.theory.gaussian import mu_of
from support.sharing import propose


@pytest.mark.parametrize(
    ("epsilon", "words"), [(0.5, "very little"), (5, "not be sure"), (11, "a great deal")]
)
def test_local_privacy(epsilon: float, words: str) -> None:
    mu = mu_of(epsilon, 1e-6)
    assert words in local_in_words(LocalGuarantee(mu=mu, epsilon=epsilon, delta=1e-6))


def test_no_delta_makes_a_telling_submission_sound_private() -> None:
    told = local_in_words(LocalGuarantee(mu=4.73, epsilon=0.0, delta=0.99))
    assert "a great deal" in told


def test_two_databases_never_hide_the_condition() -> None:
    agreement = propose(quorum=5000, admission="invited")
    told = either_in_words(agreement)
    assert told.startswith("Office gets a masked share of each submission and University the seed")
    assert "ε = 1, δ = 1e-06, holds against each of the two" in told
    assert told.endswith(condition_in_words(agreement))
    assert "at least 90 in each wave of those" in condition_in_words(agreement, "90 in each wave")
    for condition in ("do not put their shares together", "follows the protocol", "5,000"):
        assert condition in told
    together = together_in_words(LocalGuarantee(mu=9.0, epsilon=80.0, delta=1e-6))
    assert "Together they could learn a great deal" in together
    assert "The database" not in together


def test_releases_and_relations() -> None:
    assert releases_in_words(ModelGuarantee(1, 1e-6, "replace", 1)) == "one model, once"
    assert "any number" in releases_in_words(ModelGuarantee(1, 1e-6, "replace", "any"))
    assert "record were replaced" in relation_in_words("replace")
    assert "blanked out" in relation_in_words("zero-out")


def test_guesses_are_rounded_up_and_never_hide_the_worst_case() -> None:
    promise = ModelGuarantee(1, 1e-6, "replace", 1)
    assert "at most 74 times in 100; a coin" in guesses_in_words(promise, None, "it")
    assert "from it at most 55 times in 100" in guesses_in_words(promise, mu_of(1, 1e-6), "it")
    weak = ModelGuarantee(30, 1e-6, "replace", 1)
    assert "could in the worst case tell from it which one" in guesses_in_words(weak, None, "it")
    assert "almost every time" in guesses_from_submission(LocalGuarantee(9.0, 80.0, 1e-6))
    assert "at most 60 times in 100" in guesses_from_submission(LocalGuarantee(0.5, 2.0, 1e-6))


def test_where_anyone_may_take_part_no_invitation_is_said_to_keep_invented_people_out() -> None:
    told = either_in_words(propose(admission="anyone"), ["Office", "Clinic"])
    assert "and Clinic the seed" in told
    assert "Invitations" not in told
    assert "nothing keeps invented ones out" in told
