"""What is promised, in words and in pictures, never says more than the numbers."""

import math

import matplotlib as mpl
import numpy as np
import pytest
from scipy.stats import norm

from blurfit import Agreement, LocalGuarantee, ModelGuarantee, Numeric, Schema
from blurfit.agreement.statement import (
    condition_in_words,
    counted_in_words,
    either_in_words,
    guesses_from_submission,
    guesses_in_words,
    local_in_words,
    premise_in_words,
    readers_power,
    relation_in_words,
    submission_power,
    together_in_words,
)
from blurfit.contributor.blur import perturb_table
from blurfit.theory.gaussian import epsilon_of, mu_of
from support.proposals import SCHEMA
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


def test_two_databases_never_hide_the_condition_nor_that_anyone_may_take_part() -> None:
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
    told = either_in_words(propose(admission="anyone"), ["Office", "Clinic"])
    assert "and Clinic the seed" in told
    assert "Invitations" not in told
    assert "nothing keeps invented ones out" in told


def test_releases_relations_and_guesses_never_hide_the_worst_case() -> None:
    assert "record were replaced" in relation_in_words("replace")
    assert "blanked out" in relation_in_words("zero-out")
    promise = ModelGuarantee(1, 1e-6, "replace", 1)
    assert "at most 74 times in 100; a coin" in guesses_in_words(promise, None, "it")
    assert "from it at most 55 times in 100" in guesses_in_words(promise, mu_of(1, 1e-6), "it")
    weak = ModelGuarantee(30, 1e-6, "replace", 1)
    assert "could in the worst case tell from it which one" in guesses_in_words(weak, None, "it")
    assert "almost every time" in guesses_from_submission(LocalGuarantee(9.0, 80.0, 1e-6))
    assert "at most 60 times in 100" in guesses_from_submission(LocalGuarantee(0.5, 2.0, 1e-6))


PROMISE = {"epsilon": 1, "delta": 1e-6, "quorum": 2000}


@pytest.mark.parametrize("admission", ["invited", "anyone"])
def test_the_words_name_the_premise(admission) -> None:
    agreement = Agreement.propose(SCHEMA, **PROMISE, admission=admission)
    words = premise_in_words(agreement)
    assert "2,000" in words
    assert ("Nobody can check" in words) is (admission == "anyone")
    assert ("invited" in words) is (admission == "invited")
    assert ("submissions" in counted_in_words(admission, 5)) is (admission == "anyone")


def test_with_other_submissions_of_no_noise_her_own_is_all_that_protects_her() -> None:
    """Why the premise is there: what is left is the noise of one, √quorum times too small."""
    agreement = Agreement.propose(SCHEMA, **PROMISE)
    calibration = agreement.calibration
    alone = epsilon_of(calibration.reach.sums / calibration.noise, calibration.model.delta)
    kept = epsilon_of(calibration.reach.sums / calibration.sigma, calibration.model.delta)
    assert kept <= 1.000001
    assert alone > 100
    assert calibration.noise == pytest.approx(calibration.sigma / math.sqrt(2000))
    record = {"age": [50.0] * 400, "income": [20.0] * 400}
    seen = perturb_table(agreement, record).numbers - agreement.exact(record)
    diagonal = np.asarray(agreement.form.counts) == 1
    spread = seen[:, diagonal].std()
    assert spread == pytest.approx(calibration.noise, rel=0.2)


mpl.use("Agg")


@pytest.fixture(scope="module")
def agreement():
    schema = Schema([Numeric("age <b>", 0, 100)], Numeric("income", 0, 9))
    return Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=2000)


def test_curves_are_those_of_gaussian_mechanisms():
    from blurfit.theory.gaussian import epsilon_of

    alpha = np.linspace(1e-6, 1 - 1e-6, 999)
    for mu in (0.1, 1.0, 3.0):
        for delta in (1e-9, 1e-3):
            epsilon = epsilon_of(mu, delta)
            truth = norm.cdf(norm.ppf(alpha) + mu)
            assert (truth <= readers_power(alpha, epsilon, delta) + 1e-12).all()
    rng = np.random.default_rng(0)
    first, second = rng.normal(0, 1, 200_000), rng.normal(1.5, 1, 200_000)
    threshold = np.quantile(first, 0.9)
    found = submission_power(np.array([0.1]), 1.5)[0]
    assert found == pytest.approx((second > threshold).mean(), abs=0.005)


def test_an_agreement_is_drawn_and_shown_in_a_notebook(agreement):
    axes = agreement.plot()
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend[-1] == "what is published, ε = 1, δ = 1e-06"
    assert len(axes.lines) == 3
    assert agreement.plot(axes) is axes
    shown = agreement._repr_html_()
    assert "age &lt;b&gt;" in shown
    assert agreement.fingerprint in shown
