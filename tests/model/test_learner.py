"""Algorithm 2: from a form to a weight by hand, quorum and releases kept, intervals that cover."""

import math
from dataclasses import replace

import numpy as np
import pytest
from blurfit.learning.learner import LIFT, learn, spectral_ridge
from scipy.stats import ks_2samp

from blurfit import InfeasibleError, InvalidValueError, LocalGuarantee
from blurfit.agreement.agreement import Agreement
from blurfit.agreement.grid import Grid, weight_step
from blurfit.contributor.perturb import perturb, perturb_table
from blurfit.learning.statistics import Statistics
from blurfit.schema.schema import Binary, Numeric, Schema
from blurfit.simulation.sampler import sampler_for
from blurfit.theory.certified import Scales, Shares, curvature_loss, fixed_sensitivity
from blurfit.theory.excess_risk import input_excess_risk
from blurfit.theory.gaussian import epsilon_of
from blurfit.theory.gradient import least_sigma_b
from blurfit.theory.search import local_mu

SCHEMA = Schema(
    features=[Numeric("age", 0, 100), Binary("married")], target=Numeric("income", 0, 200_000)
)
PROMISE = {"epsilon": 1.0, "delta": 1e-6}


def people(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    age, married = generator.uniform(0, 100, count), generator.integers(0, 2, count)
    income = 60_000 + 500 * age + 20_000 * married + generator.normal(0, 10_000, count)
    return {"age": age, "married": married, "income": np.clip(income, 0, 200_000)}


def clean_statistics(agreement: Agreement, table: dict) -> Statistics:
    x, y = agreement.schema.encode(table)
    q, p, _ = agreement.loss.terms(x, y)
    return Statistics.of_records(q, p)


def test_a_record_walks_from_the_form_to_the_weight() -> None:
    """form → x → q → M̃ → Σ → w → prediction, each step again by hand."""
    agreement = Agreement.propose(SCHEMA, **PROMISE, quorum=3)
    forms = [
        {"age": 25, "married": 0, "income": 50_000},
        {"age": 75, "married": 1, "income": 150_000},
        {"age": 50, "married": 1, "income": 100_000},
    ]
    sent = [perturb(agreement, form) for form in forms]
    # by hand: z, x = z/√3, y, q = x, p = yx
    z = np.array([[-0.5, -1, 1], [0.5, 1, 1], [0, 1, 1]])
    x, y = z / math.sqrt(3), np.array([-0.5, 0.5, 0.0])
    A, c = np.zeros((3, 3)), np.zeros(3)
    rows, columns = np.triu_indices(3)
    for form, one, x_i, y_i in zip(forms, sent, x, y, strict=True):
        encoded = agreement.schema.encode(form)
        np.testing.assert_allclose(encoded.features, x_i, rtol=1e-12)
        assert float(encoded.target) == pytest.approx(y_i, abs=1e-12)
        q, p, _ = agreement.loss.terms(encoded.features, encoded.target)
        np.testing.assert_allclose(q, x_i, rtol=1e-12)
        np.testing.assert_allclose(p, y_i * x_i, atol=1e-12)
        A[rows, columns] += one.quadratic
        c += one.linear
        # what left is the record's moments plus noise of a size that the agreement states
        noise = one.quadratic - np.outer(x_i, x_i)[rows, columns]
        assert np.abs(noise).max() < 8 * agreement.calibration.m_noise
    A = A + np.triu(A, 1).T
    statistics = sum(Statistics.of_moments(one.quadratic, one.linear) for one in sent)
    np.testing.assert_allclose(statistics.gram, A, rtol=1e-12)
    np.testing.assert_allclose(statistics.moment, c, rtol=1e-12)
    model = learn(agreement, statistics)
    edge = agreement.calibration.sigma_m * math.sqrt(6)
    ridge = max(0.0, LIFT * edge - np.linalg.eigvalsh(A)[0])
    assert model.ridge == pytest.approx(ridge)
    w = np.linalg.solve(A + ridge * np.eye(3), c)
    np.testing.assert_allclose(model.weights, w, rtol=1e-9)
    # prediction in dollars: mid + half·w·x for a new form
    new = np.array([2 * 40 / 100 - 1, 1, 1]) / math.sqrt(3)
    expected = 100_000 + 100_000 * float(new @ w)
    assert model.predict({"age": 40, "married": 1}) == pytest.approx(expected)
    by_hand = (
        model.coefficients.intercept
        + 40 * model.coefficients.effects["age"]
        + model.coefficients.effects["married"]
    )
    assert by_hand == pytest.approx(expected)


@pytest.mark.parametrize("mechanism", ["moment", "input"])
def test_below_quorum_no_model(mechanism) -> None:
    agreement = Agreement.propose(
        SCHEMA, **PROMISE, quorum=50, mechanism=mechanism, weight_bound=2.0
    )
    sent = perturb_table(agreement, people(49))
    kind = Statistics.of_moments if mechanism == "moment" else Statistics.of_records
    with pytest.raises(InfeasibleError, match=r"quorum 50: 1 more contributors"):
        learn(agreement, kind(sent.quadratic, sent.linear))


def test_input_has_no_knob() -> None:
    agreement = Agreement.propose(
        SCHEMA, **PROMISE, quorum=300, mechanism="input", weight_bound=2.0
    )
    sent = perturb_table(agreement, people(300))
    statistics = Statistics.of_records(sent.quadratic, sent.linear)
    with pytest.raises(InvalidValueError, match="the agreement fixes it"):
        learn(agreement, statistics, ridge=1.0)
    model = learn(agreement, statistics)
    assert model.ridge == agreement.calibration.ridge
    assert np.linalg.norm(model.weights) <= 2.0 * (1 + 1e-6)
    assert (model.weights / weight_step(2.0) % 1 == 0).all()  # on the public grid
    again = learn(agreement, statistics)
    assert model.to_json() == again.to_json()
    with pytest.raises(InfeasibleError, match="second release"):
        model.estimates()


def test_input_refuses_to_publish_without_curvature() -> None:
    agreement = Agreement.propose(
        SCHEMA,
        **PROMISE,
        quorum=5000,
        mechanism="input",
        weight_bound=2.0,
        local_epsilon=3.0,
        local_delta=1e-6,
    )
    assert agreement.calibration.ridge < 0
    with pytest.raises(InfeasibleError, match="without curvature"):
        learn(agreement, Statistics(5000, np.eye(3), np.ones(3)))


def test_moment_allows_any_number_of_models() -> None:
    agreement = Agreement.propose(SCHEMA, **PROMISE, quorum=300)
    sent = perturb_table(agreement, people(300))
    statistics = Statistics.of_moments(sent.quadratic, sent.linear)
    weights = [learn(agreement, statistics, ridge=ridge).weights for ridge in (50.0, 500.0)]
    assert np.linalg.norm(weights[0]) > np.linalg.norm(weights[1])
    assert spectral_ridge(agreement.calibration, statistics) == learn(agreement, statistics).ridge


def test_regulariser_of_the_agreement_is_used() -> None:
    table = people(2000)
    sparse = Agreement.propose(SCHEMA, epsilon=1e5, delta=1e-6, quorum=2000, l1=400.0)
    shrunk = Agreement.propose(SCHEMA, epsilon=1e5, delta=1e-6, quorum=2000, l2=1e6)
    plain = Agreement.propose(SCHEMA, epsilon=1e5, delta=1e-6, quorum=2000)
    generator = np.random.default_rng(0)
    models = [
        learn(a, sampler_for(a.calibration, clean_statistics(a, table)).draw(generator))
        for a in (plain, sparse, shrunk)
    ]
    sizes = [np.abs(model.weights).sum() for model in models]
    assert sizes[1] < 0.9 * sizes[0]
    assert sizes[2] < 0.01 * sizes[0]
    assert (models[1].weights == 0).any()
    assert models[1].uncertainty is None


def test_foreign_statistics_are_refused() -> None:
    agreement = Agreement.propose(SCHEMA, **PROMISE, quorum=10)
    with pytest.raises(InvalidValueError, match="another agreement"):
        learn(agreement, Statistics(20, np.eye(2), np.ones(2)))
    weaker = Agreement.propose(SCHEMA, epsilon=50.0, delta=1e-6, quorum=10)
    sums = Statistics(20, np.eye(3), np.ones(3))
    assert learn(weaker, sums.under(weaker.fingerprint)).guarantee.epsilon == 50
    with pytest.raises(InvalidValueError, match="another agreement promises something else"):
        learn(agreement, sums.under(weaker.fingerprint))


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", ["moment", "input"])
def test_per_record_and_sampled_collections_give_the_same_weights(mechanism) -> None:
    agreement = Agreement.propose(
        SCHEMA, epsilon=5, delta=1e-4, quorum=200, mechanism=mechanism, weight_bound=3.0
    )
    table = people(200)
    draws = sampler_for(agreement.calibration, clean_statistics(agreement, table))
    generator = np.random.default_rng(3)
    kind = Statistics.of_moments if mechanism == "moment" else Statistics.of_records
    long_way, short_way = [], []
    for _ in range(250):
        sent = perturb_table(agreement, table)
        long_way.append(learn(agreement, kind(sent.quadratic, sent.linear)).weights)
        short_way.append(learn(agreement, draws.draw(generator)).weights)
    for left, right in zip(np.array(long_way).T, np.array(short_way).T, strict=True):
        assert ks_2samp(left, right, method="asymp").pvalue > 1e-5


@pytest.mark.statistical
@pytest.mark.parametrize("label", [False, True])
def test_intervals_cover(label: bool) -> None:
    """The privacy interval covers what the same people would have given without privacy, the full
    one what the population has; each at least as often as it says, and not uselessly wide.
    """
    target = Numeric("income", 0, 200_000)
    schema = Schema(
        features=[Numeric("age", 0, 100), Binary("married")],
        target=target.above(100_000) if label else target,
    )
    agreement = Agreement.propose(schema, epsilon=2, delta=1e-5, quorum=4000)
    population = clean_statistics(agreement, people(400_000, seed=99))
    truth = schema.coefficients(np.linalg.solve(population.gram, population.moment))
    generator = np.random.default_rng(7)
    trials, private, full, widths = 200, 0, 0, []
    for trial in range(trials):
        clean = clean_statistics(agreement, people(4000, seed=trial))
        same = schema.coefficients(np.linalg.solve(clean.gram, clean.moment))
        model = learn(agreement, sampler_for(agreement.calibration, clean).draw(generator))
        narrow = {e.name: e for e in model.estimates(0.9, sampling=False)}["age"]
        wide = {e.name: e for e in model.estimates(0.9)}["age"]
        private += narrow.lower <= same.effects["age"] <= narrow.upper
        full += wide.lower <= truth.effects["age"] <= wide.upper
        widths.append((narrow.upper - narrow.lower) / narrow.standard_error)
    assert private / trials >= 0.84  # 0.9 less three deviations of the count
    assert full / trials >= 0.84
    assert np.median(widths) < 5  # 2 × 1.645 standard errors, and a little for the ridge


@pytest.mark.statistical
def test_weights_do_not_betray_the_grid_of_the_noise() -> None:
    """An attacker who knows all q̃ but whether the target's q is 1 or 0 looks for the lattice of
    Σp̃ in w.

    With next to no noise on q the sums A are known: w·(A + Δ_in) is a multiple of the noise's step
    under the right hypothesis, were it not for the dither. (It told the records apart 19 times in
    20.)
    """
    schema = Schema(features=[Numeric("v", -1, 1)], target=Numeric("y", -1, 1), intercept=False)
    count, sigma_u, ridge = 50, 1e-6, 60.0
    agreement = Agreement.propose(
        schema, epsilon=1, delta=1e-6, quorum=count, mechanism="input", weight_bound=1.0
    )
    found = agreement.calibration
    delta = found.model.delta
    shares = Shares(0.1 * delta, 0.05 * delta, 0.0, 0.8 * delta)
    loss = curvature_loss(found.setting, sigma_u, ridge, shares)
    headroom = found.model.epsilon - loss.determinant_loss
    parts = fixed_sensitivity(found.setting), loss.moving_sensitivity
    sigma_b = least_sigma_b(headroom, shares.gradient, *parts, 1)
    scales = Scales(sigma_u, sigma_b, ridge)
    mu = local_mu(found.setting, scales)
    calibration = replace(
        found,
        sigma_u=sigma_u,
        sigma_b=sigma_b,
        ridge=ridge,
        shares=shares,
        loss=loss,
        local=LocalGuarantee(mu, epsilon_of(mu, found.local.delta), found.local.delta),
        excess_risk=input_excess_risk(found.setting, scales),
    )
    agreement = replace(agreement, calibration=calibration, grid=Grid.of(calibration))
    agreement.verify()
    step, square = agreement.grid.linear, float(schema.encode_features({"v": 1.0})[0]) ** 2

    def guesses_one(value: float) -> bool:
        table = {"v": np.array([value] + [0.0] * (count - 1)), "y": np.zeros(count)}
        sent = perturb_table(agreement, table)
        w = learn(agreement, Statistics.of_records(sent.quadratic, sent.linear)).weights[0]
        misfit = [abs(w * (ridge + A) / step % 1 - 0.5) / (ridge + A) for A in (square, 0.0)]
        return misfit[0] > misfit[1]

    trials = 150
    right, wrong = (sum(guesses_one(value) for _ in range(trials)) / trials for value in (1.0, 0.0))
    allowed = (math.e - 1) / (math.e + 1)
    assert abs(right - wrong) < allowed
    assert abs(right - wrong) < 0.35  # in truth they are about the same


@pytest.mark.parametrize(("smallest", "stated"), [(300.0, True), (3.0, False), (-1.0, False)])
def test_no_standard_errors_where_the_noise_rules_a_direction(
    smallest: float, stated: bool
) -> None:
    schema = Schema([Numeric("a", -1, 1)], Numeric("y", -1, 1), intercept=False)
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=1000)
    model = learn(agreement, Statistics(1000, [[smallest]], [0.3 * abs(smallest)]))
    assert (model.uncertainty is not None) is stated
    if not stated:
        with pytest.raises(InfeasibleError, match="noise is small against the smallest eigenvalue"):
            model.estimates()
