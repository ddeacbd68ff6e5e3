"""From a form to a weight by hand, quorum and releases kept, and one law for both routes."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import ks_2samp, kstest, laplace

from blurfit import BelowQuorumError, InfeasibleError, InvalidValueError, LocalGuarantee
from blurfit.agreement.agreement import Agreement
from blurfit.agreement.numbers import Grid, weight_scale
from blurfit.contributor.blur import perturb, perturb_table
from blurfit.learning.sums import Statistics, Totals
from blurfit.messages.submissions import Submissions
from blurfit.model.release import learn, moments_of, released_weights, statistics_of
from blurfit.schema.schema import Binary, Numeric, Schema
from blurfit.simulation import exact_totals, input_totals, sampler_for
from blurfit.theory.certified import (
    DeltaShares,
    Scales,
    curvature_loss,
    fixed_sensitivity,
    input_excess_risk,
    local_mu,
)
from blurfit.theory.gaussian import epsilon_of
from blurfit.theory.gradient_delta import least_sigma_b
from support.proposals import totals_of

SCHEMA = Schema(
    features=[Numeric("age", 0, 100), Binary("married")], target=Numeric("income", 0, 200_000)
)
PROMISE = {"epsilon": 1.0, "delta": 1e-6}
ONE_MODEL = PROMISE | {"mechanism": "input", "weight_bound": 2.0}


def people(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    age, married = generator.uniform(0, 100, count), generator.integers(0, 2, count)
    income = 60_000 + 500 * age + 20_000 * married + generator.normal(0, 10_000, count)
    return {"age": age, "married": married, "income": np.clip(income, 0, 200_000)}


FORMS = [
    {"age": 25, "married": 0, "income": 50_000},
    {"age": 75, "married": 1, "income": 150_000},
    {"age": 50, "married": 1, "income": 100_000},
]
V = np.array([[-0.5, -1, -0.5], [0.5, 1, 0.5], [0, 1, 0]])  # age, married, income by hand


def test_a_record_walks_from_the_form_to_the_weight() -> None:
    """form → z → products → Σ → Σzzᵀ → θ → prediction, each step again by hand."""
    agreement = Agreement.propose(SCHEMA, **PROMISE, quorum=3)
    sent = [perturb(agreement, form) for form in FORMS]
    c, weights = agreement.weights.constant, np.array(agreement.weights.columns)
    rows, columns = np.array([(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 3), (3, 3)]).T
    sums = np.zeros(8)
    for one, v in zip(sent, V, strict=True):
        z = np.array([c, *(weights * v)])
        # what left is the record's products plus noise of a size that the agreement states
        noise = one.numbers - np.outer(z, z)[rows, columns]
        assert np.abs(noise).max() < 8 * agreement.calibration.noise
        sums += one.numbers
    totals = totals_of(agreement, Submissions.gather(sent))
    np.testing.assert_allclose(totals.sums, sums, rtol=1e-12)
    moments = moments_of(agreement, totals)
    joint = moments.joint.matrix
    np.testing.assert_allclose(joint[rows, columns], totals.sums, rtol=1e-12)
    assert joint[0, 0] == pytest.approx(3 * c**2), "everybody knows the constant"
    assert joint[2, 2] == pytest.approx(3 * weights[1] ** 2), "and the square of a sign"
    model = learn(agreement, totals)
    assert model.to_json() == moments.fit().to_json()
    # prediction in dollars: mid + half·(θ₀ + θ·v) for a new form
    theta = model.weights[0]
    expected = 100_000 + 100_000 * float(theta @ [1, 2 * 40 / 100 - 1, 1])
    assert model.predict({"age": 40, "married": 1}) == pytest.approx(expected)
    told = model.coefficients
    by_hand = told.intercept + 40 * told.effects["age"] + told.effects["married"]
    assert by_hand == pytest.approx(expected)


@pytest.mark.parametrize("terms", [PROMISE, ONE_MODEL], ids=["moment", "input"])
def test_neither_too_few_nor_those_of_another_agreement_are_learned_from(terms) -> None:
    agreement = Agreement.propose(SCHEMA, **terms, quorum=50)
    with pytest.raises(BelowQuorumError, match=r"quorum 50: 1 more contributors"):
        learn(agreement, exact_totals(agreement, people(49)))
    weaker = Agreement.propose(SCHEMA, **terms | {"epsilon": 1e3}, quorum=50)
    theirs = exact_totals(weaker, people(60))
    assert learn(weaker, theirs).guarantee.epsilon == 1e3
    for make in (learn, moments_of) if terms is PROMISE else (learn,):
        with pytest.raises(InvalidValueError, match="another agreement promises something else"):
            make(agreement, theirs)


def test_input_has_no_knob_and_the_same_sums_give_the_same_model() -> None:
    agreement = Agreement.propose(SCHEMA, **ONE_MODEL, quorum=300)
    totals = totals_of(agreement, perturb_table(agreement, people(300)))
    with pytest.raises(TypeError, match="ridge"):
        learn(agreement, totals, ridge=1.0)
    with pytest.raises(InvalidValueError, match="mechanism='moment'"):
        moments_of(agreement, totals)
    totals = collected(agreement, people(300))
    model = learn(agreement, totals)
    assert model.to_json() == learn(agreement, totals).to_json()
    w = released_weights(agreement, statistics_of(agreement, totals))
    scale = weight_scale(agreement.calibration, agreement.grid, 300)
    assert (w / scale % 1 == 0).all()  # on the public grid
    assert np.linalg.norm(w) <= 2.0 * (1 + 1e-4)
    with pytest.raises(InfeasibleError, match="second release"):
        model.estimates()


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", ["moment", "input"])
def test_per_record_and_sampled_collections_give_the_same_law(mechanism) -> None:
    """What is released: the sums of `moment`, the weights of `input`."""
    terms = {"weight_bound": 3.0} if mechanism == "input" else {}
    agreement = Agreement.propose(
        SCHEMA, epsilon=5, delta=1e-4, quorum=200, mechanism=mechanism, **terms
    )
    table = people(200)
    draws = sampler_for(agreement, exact_totals(agreement, table))
    generator = np.random.default_rng(3)

    def released(totals: Totals) -> np.ndarray:
        if mechanism == "moment":
            return totals.sums
        return released_weights(agreement, statistics_of(agreement, totals))

    long_way, short_way = [], []
    for _ in range(250):
        sent = perturb_table(agreement, table).numbers
        if mechanism == "moment":
            sums = sent.sum(axis=0)
        else:
            q, p = sent[:, :3], sent[:, 3:]
            sums = np.concatenate([(q.T @ q)[np.triu_indices(3)], p.sum(axis=0)])
        long_way.append(released(Totals(200, sums, agreement.fingerprint)))
        short_way.append(released(draws.draw(generator)))
    for left, right in zip(np.array(long_way).T, np.array(short_way).T, strict=True):
        assert ks_2samp(left, right, method="asymp").pvalue > 1e-5


# ---- algorithm 2 for `input`: nothing of grids, sums and solver is to be seen in the weights
def collected(agreement: Agreement, table: dict) -> Totals:
    numbers = perturb_table(agreement, table).numbers
    d = agreement.schema.dimension
    return input_totals(agreement, Statistics.of_records(numbers[:, :d], numbers[:, d:]))


def test_a_record_walks_from_the_form_to_the_weight_of_input() -> None:
    """form → x → q, p → Σ → w → prediction, each step again by hand."""
    agreement = Agreement.propose(SCHEMA, **ONE_MODEL, quorum=300)
    table = people(300)
    numbers = perturb_table(agreement, table).numbers
    q, p = numbers[:, :3], numbers[:, 3:]
    z = np.column_stack([table["age"] / 50 - 1, 2.0 * table["married"] - 1, np.ones(300)])
    x, y = z / math.sqrt(3), table["income"] / 100_000 - 1
    calibration = agreement.calibration
    assert np.abs(q - x).max() < 8 * calibration.q_noise
    assert np.abs(p - y[:, None] * x).max() < 8 * calibration.p_noise
    A, c = q.T @ q + calibration.ridge * np.eye(3), p.sum(axis=0)
    w = np.linalg.solve(A, c)
    if np.linalg.norm(w) > 2:  # ν by bisection
        low, high = 0.0, 1e6
        for _ in range(200):
            nu = (low + high) / 2
            w = np.linalg.solve(A + nu * np.eye(3), c)
            low, high = (nu, high) if np.linalg.norm(w) > 2 else (low, nu)
    model = learn(agreement, input_totals(agreement, Statistics.of_records(q, p)))
    constant, *slopes = model.weights[0]
    np.testing.assert_allclose([*slopes, constant], w / math.sqrt(3), atol=1e-4)
    new = np.array([2 * 40 / 100 - 1, 1, 1]) / math.sqrt(3)
    expected = 100_000 + 100_000 * float(new @ w)
    assert model.predict({"age": 40, "married": 1}) == pytest.approx(expected, abs=20)


def test_input_refuses_to_publish_without_curvature() -> None:
    """And does not tell the eigenvalue."""
    agreement = Agreement.propose(
        SCHEMA, **ONE_MODEL, quorum=5000, local_epsilon=3.0, local_delta=1e-6
    )
    assert agreement.calibration.ridge < 0
    sums = input_totals(agreement, Statistics(5000, np.eye(3), np.ones(3)))
    with pytest.raises(InfeasibleError, match="without curvature") as refusal:
        learn(agreement, sums)
    assert refusal.value.__cause__ is None
    assert not any(letter.isdigit() for letter in str(refusal.value))


def test_regularisers_of_the_agreement_are_used() -> None:
    table = people(2000)
    sizes, zeros = [], []
    for l1, l2 in ((0.0, 0.0), (400.0, 0.0), (0.0, 1e6), (400.0, 1e6)):
        terms = ONE_MODEL | {"epsilon": 50.0}
        agreement = Agreement.propose(SCHEMA, **terms, quorum=2000, l1=l1, l2=l2)
        drawn = sampler_for(agreement, exact_totals(agreement, table))
        totals = drawn.draw(np.random.default_rng(0))
        w = released_weights(agreement, statistics_of(agreement, totals))
        assert (agreement.calibration.excess_risk is None) == (l1 > 0 or l2 > 0)
        agreement.verify()
        sizes.append(np.abs(w).sum())
        zeros.append((w == 0).any())
    assert sizes[1] < 0.9 * sizes[0]
    assert sizes[2] < 0.01 * sizes[0]
    assert sizes[3] <= sizes[2]
    assert zeros[1]
    assert not zeros[0]


@pytest.mark.parametrize("bound", [0.05, 5.0])
@pytest.mark.parametrize("count", [2**20, 2**23])
def test_published_weights_are_the_exact_ones_and_laplace_noise(count: int, bound: float) -> None:
    """Against minimisers by another route, good to a thousandth of b: the difference, in units of
    b, is a Laplace variable that was rounded, on the sphere and inside.
    """
    schema = Schema([Numeric(f"v{j}", -1, 1) for j in range(4)], Numeric("y", -1, 1))
    terms = ONE_MODEL | {"epsilon": 0.1, "weight_bound": bound}
    agreement = Agreement.propose(schema, **terms, quorum=count)
    calibration = agreement.calibration
    scale = weight_scale(calibration, agreement.grid, count)
    generator = np.random.default_rng(count)
    differences = []
    for _ in range(40):
        root = generator.standard_normal((5, 5)) * math.sqrt(count / 25)
        clean = Statistics(count, root.T @ root, generator.standard_normal(5) * count / 10)
        drawn = sampler_for(agreement, input_totals(agreement, clean)).draw(generator)
        statistics = statistics_of(agreement, drawn)
        w = released_weights(agreement, statistics)
        H = statistics.gram + calibration.ridge * np.eye(5)
        exact, error = _in_the_ball(H, statistics.moment, bound)
        assert error < 1e-3 * scale
        differences.extend((w - exact) / scale)
    # w + X lies somewhere in the cell around what was published: draw where, for its quantile
    low, high = laplace.cdf(np.array(differences)[:, None] + [-0.5, 0.5]).T
    assert kstest(generator.uniform(low, high), "uniform").pvalue > 1e-4


def _in_the_ball(H: np.ndarray, c: np.ndarray, bound: float) -> tuple[np.ndarray, float]:
    """(H + ν)w = c, with the least ν ≥ 0 for which w is no longer than the bound; and how far w
    may be from exact."""
    values, basis = np.linalg.eigh(H)

    def at(nu: float) -> np.ndarray:
        return basis @ (basis.T @ c / (values + nu))

    def beyond(nu: float) -> float:
        return float(np.linalg.norm(at(nu))) - bound

    nu = brentq(beyond, 0, np.linalg.norm(c) / bound, rtol=1e-15) if beyond(0) > 0 else 0.0
    w = at(nu)
    t = abs(beyond(nu)) if nu else 0.0
    gap = float(np.linalg.norm(H @ w + nu * w - c)) + (values[-1] + nu) * t
    return w, t + gap / values[0]


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
    agreement = Agreement.propose(schema, **ONE_MODEL | {"weight_bound": 1.0}, quorum=count)
    found = agreement.calibration
    delta = found.model.delta
    shares = DeltaShares(0.1 * delta, 0.05 * delta, 0.0, 0.8 * delta)
    loss = curvature_loss(found.setting, sigma_u, ridge, shares)
    headroom = found.model.epsilon - loss.determinant_loss
    parts = fixed_sensitivity(found.setting), loss.moving_sensitivity
    sigma_b = least_sigma_b(headroom, shares.gradient, *parts, 1)
    scales = Scales(sigma_u, sigma_b, ridge)
    mu = local_mu(found.setting, scales)
    local = LocalGuarantee(mu, epsilon_of(mu, found.local.delta), found.local.delta)
    risk = input_excess_risk(found.setting, scales)
    noise = {"sigma_u": sigma_u, "sigma_b": sigma_b, "ridge": ridge, "shares": shares}
    calibration = replace(found, **noise, loss=loss, local=local, excess_risk=risk)
    agreement = replace(agreement, calibration=calibration, grid=Grid.of(calibration, size=1))
    agreement.verify()
    step, square = agreement.grid.linear, float(schema.scale) ** 2

    def guesses_one(value: float) -> bool:
        table = {"v": np.array([value] + [0.0] * (count - 1)), "y": np.zeros(count)}
        totals = collected(agreement, table)
        w = released_weights(agreement, statistics_of(agreement, totals))[0]
        misfit = [abs(w * (ridge + A) / step % 1 - 0.5) / (ridge + A) for A in (square, 0.0)]
        return bool(misfit[0] > misfit[1])

    trials = 150
    right, wrong = (sum(guesses_one(value) for _ in range(trials)) / trials for value in (1.0, 0.0))
    allowed = (math.e - 1) / (math.e + 1)
    assert abs(right - wrong) < allowed
    assert abs(right - wrong) < 0.35  # in truth they are about the same
