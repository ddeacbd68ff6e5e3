"""From a form to a weight by hand, quorum and releases kept, and one law for both routes."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from blurfit import InfeasibleError, InvalidValueError
from blurfit.agreement.agreement import Agreement
from blurfit.contributor.blur import perturb, perturb_table
from blurfit.learning.sums import Totals
from blurfit.messages.submissions import Submissions
from blurfit.model.release import learn, moments_of, released_weights, statistics_of
from blurfit.schema.schema import Binary, Numeric, Schema
from blurfit.simulation.sampler import exact_totals, sampler_for
from support.stores import totals_of

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


def test_without_noise_to_speak_of_the_model_is_least_squares() -> None:
    agreement = Agreement.propose(SCHEMA, epsilon=1e6, delta=1e-6, quorum=500)
    table = people(500)
    model = learn(agreement, totals_of(agreement, perturb_table(agreement, table)))
    x = np.column_stack([np.ones(500), table["age"], table["married"]])
    expected = np.linalg.lstsq(x, table["income"], rcond=None)[0]
    told = model.coefficients
    found = [told.intercept, told.effects["age"], told.effects["married"]]
    np.testing.assert_allclose(found, expected, rtol=0.02)


@pytest.mark.parametrize("terms", [PROMISE, ONE_MODEL], ids=["moment", "input"])
def test_below_quorum_no_model(terms) -> None:
    agreement = Agreement.propose(SCHEMA, **terms, quorum=50)
    totals = totals_of(agreement, perturb_table(agreement, people(49)))
    with pytest.raises(InfeasibleError, match=r"quorum 50: 1 more contributors"):
        learn(agreement, totals)


def test_input_has_no_knob() -> None:
    agreement = Agreement.propose(SCHEMA, **ONE_MODEL, quorum=300)
    totals = totals_of(agreement, perturb_table(agreement, people(300)))
    with pytest.raises(TypeError, match="ridge"):
        learn(agreement, totals, ridge=1.0)
    with pytest.raises(InvalidValueError, match="mechanism='moment'"):
        moments_of(agreement, totals)
    model = learn(agreement, totals)
    assert model.to_json() == learn(agreement, totals).to_json()
    with pytest.raises(InfeasibleError, match="second release"):
        model.estimates()


def test_moment_allows_any_number_of_models() -> None:
    agreement = Agreement.propose(SCHEMA, epsilon=200, delta=1e-6, quorum=300)
    moments = moments_of(agreement, totals_of(agreement, perturb_table(agreement, people(300))))
    weights = [moments.fit(ridge=ridge).weights[0, 1:] for ridge in (0.1, 10.0)]
    assert np.linalg.norm(weights[0]) > np.linalg.norm(weights[1])
    sparse = moments.fit(lasso=0.2).weights[0, 1:]
    assert (sparse == 0).any()
    assert moments.fit(target="married").target == "married"


def test_foreign_totals_are_refused() -> None:
    agreement = Agreement.propose(SCHEMA, **PROMISE, quorum=10)
    weaker = Agreement.propose(SCHEMA, epsilon=1e3, delta=1e-6, quorum=10)
    theirs = totals_of(weaker, perturb_table(weaker, people(20)))
    assert learn(weaker, theirs).guarantee.epsilon == 1e3
    for make in (learn, moments_of):
        with pytest.raises(InvalidValueError, match="another agreement promises something else"):
            make(agreement, theirs)


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


@pytest.mark.parametrize(("epsilon", "stated"), [(100.0, True), (0.01, False)])
def test_no_standard_errors_where_the_noise_rules_a_direction(epsilon: float, stated: bool) -> None:
    agreement = Agreement.propose(SCHEMA, epsilon=epsilon, delta=1e-6, quorum=1000)
    drawn = sampler_for(agreement, exact_totals(agreement, people(1000)))
    model = learn(agreement, drawn.draw(np.random.default_rng(0)))
    assert bool(model.inference) is stated
    if not stated:
        assert model.refusal
        with pytest.raises(InfeasibleError):
            model.estimates()
