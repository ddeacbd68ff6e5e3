"""From a form to a weight by hand, quorum and releases kept, and one law for both routes."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from blurfit import BelowQuorumError, InvalidValueError
from blurfit.agreement.agreement import Agreement
from blurfit.contributor.blur import perturb, perturb_table
from blurfit.messages.submissions import Submissions
from blurfit.model.release import learn, moments_of
from blurfit.schema.schema import Binary, Numeric, Schema
from blurfit.simulation import exact_totals, sampler_for
from support.proposals import totals_of

SCHEMA = Schema(
    features=[Numeric("age", 0, 100), Binary("married")], target=Numeric("income", 0, 200_000)
)
PROMISE = {"epsilon": 1.0, "delta": 1e-6}


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


def test_neither_too_few_nor_those_of_another_agreement_are_learned_from() -> None:
    terms = PROMISE
    agreement = Agreement.propose(SCHEMA, **terms, quorum=50)
    with pytest.raises(BelowQuorumError, match=r"quorum 50: 1 more contributors"):
        learn(agreement, exact_totals(agreement, people(49)))
    weaker = Agreement.propose(SCHEMA, **terms | {"epsilon": 1e3}, quorum=50)
    theirs = exact_totals(weaker, people(60))
    assert learn(weaker, theirs).guarantee.epsilon == 1e3
    for make in (learn, moments_of):
        with pytest.raises(InvalidValueError, match="another agreement promises something else"):
            make(agreement, theirs)


@pytest.mark.statistical
def test_per_record_and_sampled_collections_give_the_same_law() -> None:
    agreement = Agreement.propose(SCHEMA, epsilon=5, delta=1e-4, quorum=200)
    table = people(200)
    draws = sampler_for(agreement, exact_totals(agreement, table))
    generator, long_way, short_way = np.random.default_rng(3), [], []
    for _ in range(250):
        long_way.append(perturb_table(agreement, table).numbers.sum(axis=0))
        short_way.append(draws.draw(generator).sums)
    for left, right in zip(np.array(long_way).T, np.array(short_way).T, strict=True):
        assert ks_2samp(left, right, method="asymp").pvalue > 1e-5
