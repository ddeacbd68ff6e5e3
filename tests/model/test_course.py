"""From releases to agreements and models; and what breaks waves is refused."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest

from blurfit import Agreement, PublishedModel
from blurfit.agreement.plan import Plan
from blurfit.agreement.terms import Terms
from blurfit.errors import (
    BelowQuorumError,
    BlurfitError,
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
)
from blurfit.learning.sums import Totals
from blurfit.learning.waves import learn_wave, next_map
from blurfit.model.course import Course, follows, learn_plan, next_agreement, wave_sums
from blurfit.model.model import WaveShare
from blurfit.model.release import PublishedMoments, Release, examine, moments_of
from blurfit.model.statement import as_markdown, as_yaml
from blurfit.theory.maps import ResidualMap, Whitening
from blurfit.theory.moments import local_guarantee
from support.joint_release import SCHEMA
from support.plans import people, plan, release, releases

TEST = people(20_000, seed=77)
TASKS = ("number", "label", "count")


def made(task: str) -> tuple:
    """A plan with three waves (two for numbers), and its releases."""
    chosen = plan(task, waves="auto" if task == "number" else 3, quorum=60_000)
    return chosen, releases(chosen)


@pytest.mark.parametrize("task", TASKS)
def test_the_next_agreement_is_a_function_of_plan_and_releases(task: str) -> None:
    chosen, found = made(task)
    for place in range(len(chosen)):
        read = [PublishedMoments.from_json(one.to_json()) for one in found[:place]]
        again = next_agreement(chosen, read)
        assert again.fingerprint == found[place].agreement.fingerprint
        assert again.wave.number == place + 1
        assert again.wave.follows == tuple(one.mark for one in found[:place])
        follows(chosen, read, Agreement.from_json(again.to_json()))
    with pytest.raises(InvalidValueError, match="no wave after"):
        next_agreement(chosen, found)


def test_an_agreement_is_followed_as_a_plan_is() -> None:
    alone = Agreement.propose(plan("number").schema, epsilon=1, delta=1e-6, quorum=500)
    shown = release(alone, people(500), np.random.default_rng(3))
    course = Course.of(alone)
    assert course.next_agreement() == alone
    course.require(alone)
    assert course.best_model() == (None, "no wave was released.")
    course = course.then(shown)
    assert course.model().to_json() == shown.fit().to_json()
    assert course.best_model()[0].to_json() == shown.fit().to_json()
    with pytest.raises(InvalidValueError, match="no wave after"):
        course.next_agreement()
    with pytest.raises(NotCertifiedError, match="Expected wave 2"):
        course.then(shown)


def test_a_number_is_learnt_as_well_as_the_noise_allows() -> None:
    chosen, found = made("number")
    model = learn_plan(chosen, found)
    error = np.sqrt(np.mean((model.predict(TEST) - TEST["income"]) ** 2))
    assert error < 1.01 * 8000
    assert model.link == "linear"
    assert model.count == sum(one.count for one in model.waves) == 60_000
    told = {one.name: one for one in model.estimates(0.999)}
    truth = {"age": 300, "education": 1500, "married": 3000, "region=west": 5000, "region=south": 0}
    assert all(told[name].lower < value < told[name].upper for name, value in truth.items())
    assert told["age"].standard_error < 9
    assert model.estimand_in_words.startswith("bounded-influence least squares (")
    assert model.estimand_in_words in str(model.summary()).replace("\n", " ").replace("  ", "")
    clean = model.estimand(TEST, TEST["income"])
    assert clean == pytest.approx([one.value for one in model.estimates()], rel=0.2, abs=1500)
    assert PublishedModel.from_json(model.to_json()).estimand(TEST, TEST["income"]) == (
        pytest.approx(clean)
    )
    spread = np.var(TEST["income"])
    r_squared = 1 - np.mean((model.predict(TEST) - TEST["income"]) ** 2) / spread
    assert model.inference[0].r_squared == pytest.approx(r_squared, abs=0.02)
    low, high = model.prediction_intervals(TEST).T
    assert np.mean((low < TEST["income"]) & (TEST["income"] < high)) == pytest.approx(
        0.95, abs=0.01
    )


def test_a_label_has_the_curve_and_calibrated_probabilities() -> None:
    chosen, found = made("label")
    model = learn_plan(chosen, found)
    assert model.link == "logistic"
    truth = TEST["income"] > 45_000
    assert np.mean(model.predict(TEST) == truth) > 0.81
    likely = model.predict_proba(TEST)[:, 1]
    bins = np.digitize(likely, np.linspace(0.1, 0.9, 9))
    gaps = [
        abs(likely[bins == one].mean() - truth[bins == one].mean()) * np.mean(bins == one)
        for one in np.unique(bins)
    ]
    assert sum(gaps) < 0.02  # the expected calibration error
    estimates = {one.name: one for one in model.estimates()}
    assert estimates["age"].privacy_error > 0
    assert estimates["age"].lower < model.coefficients.effects["age"] < estimates["age"].upper
    assert "log-odds" in str(model.summary())
    assert "3 waves" in str(model.summary())


def test_a_count_has_a_log_rate() -> None:
    chosen, found = made("count")
    model = learn_plan(chosen, found)
    assert chosen.kinds == ("joint", "residual", "newton")
    assert model.link == "log"
    effects = model.coefficients.effects
    assert effects["age"] == pytest.approx(0.02, abs=0.004)
    assert effects["married"] == pytest.approx(0.4, abs=0.1)
    predicted = model.predict(TEST)
    assert (predicted > 0).all()
    assert predicted.mean() == pytest.approx(TEST["visits"].mean(), rel=0.1)
    with pytest.raises(InfeasibleError):
        model.predict_proba(TEST)
    with pytest.raises(InfeasibleError):
        model.prediction_intervals(TEST)


@pytest.mark.statistical
def test_intervals_of_the_last_newton_wave_cover() -> None:
    """Four waves, so that the last step is short; against the curve of very many people."""
    chosen = plan("label", waves=4, quorum=60_000)
    many = people(400_000, seed=5)
    regions = [many["region"] == level for level in ("south", "west")]
    columns = [np.ones(400_000), many["age"], many["education"], *regions, many["married"]]
    truth = _logistic(np.column_stack(columns).astype(float), many["income"] > 45_000)
    hits = []
    for seed in range(12):
        model = learn_plan(chosen, releases(chosen, seed + 10))
        hits += [one.lower < t < one.upper for one, t in zip(model.estimates(), truth, strict=True)]
    assert np.mean(hits) >= 0.85


def _logistic(design: np.ndarray, label: np.ndarray) -> np.ndarray:
    scale = np.abs(design).max(axis=0)
    x, w = design / scale, np.zeros(design.shape[1])
    for _ in range(6):  # Newton's: all digits
        chance = 1 / (1 + np.exp(-x @ w))
        hessian = (x * (chance * (1 - chance))[:, None]).T @ x
        w += np.linalg.solve(hessian, x.T @ (label - chance))
    return w / scale


def test_ending_early_gives_the_best_model_so_far() -> None:
    chosen, found = made("label")
    errors = []
    for waves in (1, 2, 3):
        model = learn_plan(chosen, found[:waves])
        assert model.link == "logistic"
        assert [one.count for one in model.waves] == [one.count for one in found[:waves]]
        errors.append(1 - np.mean(model.predict(TEST) == (TEST["income"] > 45_000)))
    assert errors[2] <= errors[0] + 0.005
    with pytest.raises(InvalidValueError, match="at least the first"):
        learn_plan(chosen, [])


def test_a_later_wave_has_no_model_of_its_own() -> None:
    _, found = made("label")
    with pytest.raises(InfeasibleError, match="later wave"):
        found[1].fit()
    with pytest.raises(InfeasibleError, match="later wave"):
        found[2].correlations()
    agreement = found[1].agreement
    shown = Release.of(agreement, Totals(found[1].count, found[1].sums, agreement.fingerprint))
    assert shown.model is None
    assert shown.mark() == found[1].mark
    with pytest.raises(InfeasibleError, match="learn_plan"):
        shown.text()


# ---- what breaks it, as in docs/waves.md
def test_another_map_is_taken_as_it_is_announced_and_learned_from() -> None:
    """Nobody computes it again: the noise suffices, and the step starts from the announced one."""
    chosen, found = made("number")
    honest = next_agreement(chosen, found[:1])
    chart, white = honest.wave.chart, honest.wave.chart.whitening
    assert (np.ldexp(np.frexp(white.matrix)[0], 24) % 1 == 0).all()  # as few bits as are known
    moved = Whitening(white.mean + 0.1, white.matrix, white.coefficients + 0.05, white.intercept)
    other = chosen.following(honest.wave.follows, replace(chart, whitening=moved))
    follows(chosen, found[:1], other)
    generator, many = np.random.default_rng(1), people(chosen.quorums[1], 8)
    model = learn_plan(chosen, [found[0], release(other, many, generator)])
    error = np.sqrt(np.mean((model.predict(TEST) - TEST["income"]) ** 2))
    assert error < 1.02 * 8000


def test_another_promise_quorum_plan_or_past_is_detected() -> None:
    chosen, found = made("number")
    honest = next_agreement(chosen, found[:1])
    other_past = releases(chosen, seed=2)[:1]
    fewer = plan("number", quorum=50_000).following(honest.wave.follows, honest.wave.chart)
    small = replace(fewer, wave=honest.wave)
    small.verify()  # it keeps its own promise, with another quorum
    alone = Agreement.propose(chosen.schema, epsilon=1, delta=1e-6, quorum=9)
    for agreed, past, agreement, words in (
        (chosen, other_past, honest, "follows the releases"),
        (chosen, [], honest, "follows the releases"),
        (plan("number"), [], honest, "of the plan"),
        (chosen, [], alone, "of the plan"),
        (chosen, found[:1], small, "honest people"),
    ):
        with pytest.raises(NotCertifiedError, match=words):
            follows(agreed, past, agreement)


def test_whatever_a_later_wave_states_differently_from_its_plan_is_named() -> None:
    """Each of them keeps its own promise, and is refused under this plan."""
    chosen, found = made("number")
    honest = next_agreement(chosen, found[:1])
    two = (("One", "https://one.example"), ("Two", "https://two.example"))
    wave, schema = honest.wave, chosen.schema
    chart = wave.chart
    terms = {"epsilon": 1.0, "delta": 1e-6, "quorum": chosen.honest[1]}
    for name, changes in (
        ("promise", {"epsilon": 0.9}),
        ("promise", {"delta": 1e-7}),
        ("promise", {"neighbours": "zero-out"}),
        ("honest people", {"quorum": chosen.honest[1] - 1}),
        ("local.delta", {"local_delta": 1e-5}),
        ("databases", {"databases": two}),
        ("admission", {"admission": "anyone"}),
        ("database_noise", {"database_noise": True}),
        ("signing_keys", {"signing_keys": ("ab" * 32,)}),
        ("noise", {"local_epsilon": 0.5, "local_delta": 1e-6}),
    ):
        other = Agreement.propose_wave(schema, Terms.of(**terms | changes), wave)
        if name != "signing_keys":
            other.verify()
        with pytest.raises(NotCertifiedError, match=f"agreement's {name}"):
            chosen.require(other)
    label = next_agreement(plan("label", waves=3, quorum=60_000), ())
    assert chosen.first().schema != label.schema
    with pytest.raises(NotCertifiedError, match="schema"):
        chosen.require(replace(honest, schema=label.schema))
    newton = plan("label", waves=2, quorum=60_000)
    residual = replace(wave, plan=newton.fingerprint)
    with pytest.raises(NotCertifiedError, match="map"):
        newton.require(Agreement.propose_wave(newton.schema, Terms.of(**terms), residual))
    with pytest.raises(NotCertifiedError, match="one of the plan's 3 waves"):
        chosen.require(replace(honest, wave=replace(wave, number=6, follows=("ab" * 32,) * 5)))
    with pytest.raises(NotCertifiedError, match="wave 1, and the agreement's admission"):
        chosen.require(replace(chosen.first(), admission="anyone"))
    assert chart.to_dict() == honest.wave.chart.to_dict()


def test_a_target_for_submissions_is_kept_in_later_waves() -> None:
    schema = plan("number").schema
    kept = {"local_epsilon": 2.0, "local_delta": 1e-6}
    asked = Plan.propose(schema, waves=2, epsilon=1.0, delta=1e-6, quorum=60_000, **kept)
    first = release(asked.first(), people(asked.quorums[0], 3), np.random.default_rng(3))
    honest = next_agreement(asked, [first])
    follows(asked, [first], honest)
    assert 1.999999 < honest.calibration.local.epsilon <= 2.0
    terms = Terms.of(epsilon=1.0, delta=1e-6, quorum=asked.quorums[1], local_delta=1e-6)
    less = Agreement.propose_wave(schema, terms, honest.wave)
    less.verify()
    with pytest.raises(NotCertifiedError, match=r"local\.epsilon"):
        follows(asked, [first], less)


def test_waves_below_their_quorum_or_out_of_order_are_refused() -> None:
    _, found = made("number")
    agreement = found[1].agreement
    few = Totals(agreement.quorum - 1, found[1].sums, agreement.fingerprint)
    with pytest.raises(BelowQuorumError):
        moments_of(agreement, few)
    with pytest.raises(BelowQuorumError):
        Release.of(agreement, few)
    with pytest.raises(InvalidValueError, match="quorum"):
        PublishedMoments(agreement, agreement.quorum - 1, found[1].sums)
    chosen, found = made("label")
    for wrong in (found[1:], (found[0], found[2]), (found[0], found[0]), found[::-1]):
        with pytest.raises(NotCertifiedError):
            learn_plan(chosen, wrong)


def test_sums_are_read_as_they_were_sent() -> None:
    """The course is the one of `blurfit.learning.waves`, from the files alone."""
    chosen, found = made("label")
    course = Course.of(chosen, found)
    belief = course.beliefs[0]
    for place, one in enumerate(found[1:], start=1):
        chart = next_map(belief, chosen.kinds[place], chosen.quorums[place], chosen.mu)
        assert chart.to_dict() == one.agreement.wave.chart.to_dict()
        belief = learn_wave(belief, chart, wave_sums(one))
    assert np.array_equal(belief.coefficients, course.beliefs[-1].coefficients)
    with pytest.raises(InvalidValueError, match="later wave"):
        wave_sums(found[0])


def test_the_statement_tells_of_waves_their_condition_and_the_last_one() -> None:
    chosen, found = made("label")
    text = as_markdown(learn_plan(chosen, found))
    assert "12,000 in wave 1 and 18,000 in wave 2 and 30,000 in wave 3" in text
    assert chosen.fingerprint in text
    assert "one group" in text
    assert "√2" in text
    alone = Agreement.propose(chosen.schema, epsilon=1.0, delta=1e-6, quorum=500)
    single = release(alone, people(500), np.random.default_rng(1))
    assert "Waves" not in as_markdown(single)
    model = learn_plan(*made("number"))
    assert "| sent by each person of the last wave |" in as_markdown(model)
    told = " ".join(as_yaml(model).split())
    assert f"for at least {model.honest_in_words} honest people" in told
    assert any("earlier waves" in one for one in examine(model.to_json()).not_shown)
    later = as_markdown(made("number")[1][1])
    assert "Blurred sums of wave 2 of a plan, about **age" in later
    assert "of the last wave" not in later


@pytest.mark.parametrize("task", ["label", "count"])
def test_sums_that_no_people_have_raise_no_error_of_the_linear_algebra(task: str) -> None:
    """Whoever learns from releases that somebody made up gets some map, or is told why not."""
    chosen, generator = plan(task, waves=3), np.random.default_rng(1)
    found: list[PublishedMoments] = []
    for quorum in chosen.quorums[:2]:
        agreement = next_agreement(chosen, found)
        sums = generator.normal(size=agreement.width) * quorum
        found.append(PublishedMoments(agreement, quorum, sums))
    with contextlib.suppress(InfeasibleError):
        next_agreement(chosen, found).verify()


# ---- A model of waves states what each of them needs, and the weakest submission
PLAN = Plan.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=1000, waves=2)
SIZE = len(PLAN.first().form.columns) - 2  # without the target, and a categorical's last level
MAP = ResidualMap(Whitening([0.0] * SIZE, np.eye(SIZE), [0.0] * SIZE, 0.0), 1.0, 1.0, 1.0)
LAST = PLAN.following(("ab" * 32,), MAP)
KEPT = local_guarantee(99.0, 1e-6)
FIRST_SHARE = WaveShare(400, PLAN.quorums[0], PLAN.honest[0], KEPT.mu, KEPT.epsilon)
LAST_SHARE = WaveShare.of(PLAN.quorums[1], LAST)


def shared(agreement: Agreement, *waves: WaveShare) -> PublishedModel:
    names = tuple(one.name for one in SCHEMA.features)
    count = sum(one.count for one in waves) or 1000
    return PublishedModel(
        agreement, "income", names, np.zeros((1, 7)), count, "by hand", waves=waves
    )


def test_the_weakest_wave_speaks_for_a_submission_and_waves_add_up() -> None:
    found = shared(LAST, FIRST_SHARE, LAST_SHARE)
    assert found.quorum_in_words == "300 in wave 1 and 700 in wave 2"
    assert found.honest_in_words == "270 in wave 1 and 630 in wave 2"
    assert found.local == KEPT
    assert PublishedModel.from_json(found.to_json()).waves == found.waves
    with pytest.raises(InvalidValueError, match="to sum to count=1000"):
        PublishedModel(LAST, "income", ("age",), np.zeros((1, 2)), 1000, "", waves=(FIRST_SHARE,))


@pytest.mark.parametrize("numbers", [(280, 300, 270), (400, 300, 301), (400, 300, 0)])
def test_no_wave_is_below_what_it_waited_for(numbers) -> None:
    """Also not between the honest ones and all of them."""
    with pytest.raises(InvalidValueError, match="Expected honest="):
        WaveShare(*numbers, 9.0, 80.0)


@pytest.mark.parametrize(
    "waves",
    [
        (),  # under the agreement of a second wave
        (FIRST_SHARE,),
        (FIRST_SHARE, LAST_SHARE, LAST_SHARE),
        (replace(FIRST_SHARE, quorum=299), LAST_SHARE),  # not what the agreement states
        (replace(FIRST_SHARE, local_epsilon=1.0), LAST_SHARE),  # which its μ does not keep
        (replace(FIRST_SHARE, local_mu=float("nan")), LAST_SHARE),
        (FIRST_SHARE, replace(LAST_SHARE, honest=1)),
        (FIRST_SHARE, replace(LAST_SHARE, local_mu=0.01, local_epsilon=0.01)),
    ],
)
def test_what_is_stated_of_waves_agrees_with_the_agreement(waves) -> None:
    with pytest.raises(BlurfitError):
        shared(LAST, *waves)
