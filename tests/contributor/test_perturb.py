"""Algorithm 1, step by step and by its distribution."""

import inspect
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from blurfit import NotCertifiedError
from blurfit.agreement.agreement import Agreement
from blurfit.contributor import blur as module
from blurfit.contributor.blur import perturb, perturb_table
from blurfit.schema.schema import Binary, Categorical, Numeric, Schema, values

SCHEMA = Schema(
    features=[Numeric("age", 0, 100), Binary("married")], target=Numeric("income", 0, 200_000)
)
RECORD = {"age": 75, "married": 1, "income": 150_000}


@pytest.fixture(params=["moment", "input"])
def agreement(request) -> Agreement:
    terms = {"weight_bound": 2.0} if request.param == "input" else {}
    return Agreement.propose(
        SCHEMA, epsilon=1, delta=1e-6, quorum=400, mechanism=request.param, **terms
    )


def clean_numbers(agreement: Agreement) -> np.ndarray:
    """By hand: age 75 of 100 is v = 0.5, married is 1, an income of 150,000 of 200,000 is y = 0.5.

    input: x = (0.5, 1, 1)/√3, q = x, p = yx. moment: the upper triangle of zzᵀ, row by row, of
    z = (c, ω₁·0.5, ω₂·1, ω₃·0.5), without c² and ω₂², which everybody knows.
    """
    if agreement.mechanism == "input":
        x = np.array([0.5, 1.0, 1.0]) / math.sqrt(3)
        return np.concatenate([x, 0.5 * x])
    c, (age, married, income) = agreement.weights.constant, agreement.weights.columns
    z = [c, 0.5 * age, married, 0.5 * income]
    sent = [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 3), (3, 3)]
    return np.array([z[i] * z[j] for i, j in sent])


def scales(agreement: Agreement) -> np.ndarray:
    found = agreement.calibration
    if agreement.mechanism == "input":
        return np.repeat([found.q_noise, found.p_noise], 3)
    diagonal = np.array([0, 0, 0, 1, 0, 0, 0, 1])
    return np.where(diagonal, found.noise, found.noise / math.sqrt(2))


def test_exact_numbers_are_those_by_hand(agreement) -> None:
    np.testing.assert_allclose(agreement.exact(RECORD), clean_numbers(agreement), rtol=1e-12)


def test_submission_carries_its_agreement_and_lies_on_the_grid(agreement) -> None:
    sent = perturb(agreement, RECORD)
    assert sent.fingerprint == agreement.fingerprint
    assert len(sent.numbers) == agreement.width
    for part in agreement.parts:
        assert (sent.numbers[part.numbers] % part.fine == 0).all()
        if part.fine < part.step:  # p̃ fills the gaps between the multiples of its noise
            assert (sent.numbers[part.numbers] % part.step != 0).any()
    assert sent.identifier != perturb(agreement, RECORD).identifier


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["one by one", "table"])
def test_noise_is_the_calibrated_one(agreement, kind: str) -> None:
    """(submission − record)/scale must be standard normal in each place, and uncorrelated."""
    count = 300 if kind == "one by one" else 20_000
    if kind == "table":
        table = {name: np.full(count, value) for name, value in RECORD.items()}
        numbers = perturb_table(agreement, table).numbers
    else:
        numbers = np.array([perturb(agreement, RECORD).numbers for _ in range(count)])
    standard = (numbers - clean_numbers(agreement)) / scales(agreement)
    for column in standard.T:
        assert kstest(column, "norm").pvalue > 1e-6
    # All places together tell of a tenth of the deviation.
    spread = math.sqrt(2 / standard.size)
    assert np.square(standard).mean() == pytest.approx(1, abs=5 * spread)
    correlation = np.corrcoef(standard.T) - np.eye(standard.shape[1])
    assert np.abs(correlation).max() < 6 / math.sqrt(count)


KINDS = st.sampled_from(["numeric", "binary", "categorical"])


@st.composite
def schemas(draw) -> Schema:
    def column(name: str, kind: str):
        if kind == "numeric":
            return Numeric(name, 0, 10)
        if kind == "binary":
            return Binary(name)
        return Categorical(name, ["a", "b", "c", "d"][: draw(st.integers(2, 4))])

    features = [
        column(f"x{place}", kind)
        for place, kind in enumerate(draw(st.lists(KINDS, min_size=1, max_size=4)))
    ]
    return Schema(features, column("y", draw(KINDS)))


@given(schemas(), st.integers(0, 2**32))
def test_a_submission_reveals_the_listed_products_and_nothing_else(schema, seed) -> None:
    """As many numbers as the form has names; what it leaves out is the same for everybody; and two
    records with the same products send the same, but for the noise.
    """
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=50)
    form, generator = agreement.form, np.random.default_rng(seed)
    asked = (*schema.features, schema.target)
    people = {one.name: _answers(one, generator, 6) for one in asked}
    sent = perturb_table(agreement, people)
    assert sent.numbers.shape == (6, len(form.names)) == (6, agreement.width)
    assert set(vars(next(iter(sent)))) == {"identifier", "fingerprint", "numbers"}
    whole = len(sent.to_bytes())
    assert whole == 16 + 6 * (64 + 8 * len(form.names)), "and nothing else in the bytes"
    z = np.column_stack(
        [np.full(6, form.constant), values(schema, people) * [c.weight for c in form.columns]]
    )
    names = ["1", *(column.name for column in form.columns)]
    listed = set(form.names)
    for i, j in zip(*np.triu_indices(len(names)), strict=True):
        products = z[:, i] * z[:, j]
        if f"{names[i]}·{names[j]}" in listed:
            place = form.names.index(f"{names[i]}·{names[j]}")
            np.testing.assert_allclose(agreement.exact(people)[:, place], products, atol=1e-12)
        else:
            assert np.ptp(products) < 1e-12, "what is not sent is known of everybody"


def _answers(column, generator, count: int):
    if isinstance(column, Numeric):
        return generator.uniform(0, 10, count)
    if isinstance(column, Binary):
        return generator.integers(0, 2, count)
    return generator.choice(column.levels, count)


def test_an_agreement_that_promises_too_much_is_refused_before_anything_is_computed() -> None:
    document = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=400).to_dict()
    document["calibration"]["model"]["epsilon"] = 0.5
    with pytest.raises(NotCertifiedError, match="does not keep"):
        perturb(Agreement.from_dict(document), {"no": "record"})


def test_no_seed_can_be_passed() -> None:
    for function in (module.perturb, module.perturb_table, module.share):
        # a secret names the submission, and nothing of the noise follows from it
        allowed = {"agreement", "records", "table", "people", "allow_unproved", "secret"}
        assert set(inspect.signature(function).parameters) <= allowed


def test_a_table_gives_a_table(agreement) -> None:
    table = {name: [value, value] for name, value in RECORD.items()}
    sent = perturb(agreement, table)
    assert len(sent) == 2
    assert sent.fingerprint == agreement.fingerprint
