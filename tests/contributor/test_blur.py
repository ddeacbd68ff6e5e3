"""Algorithm 1, step by step and by its distribution; and several rows of one person."""

import inspect
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from blurfit import InvalidValueError, NotCertifiedError
from blurfit.agreement.agreement import Agreement
from blurfit.contributor import blur as module
from blurfit.contributor.blur import codes_of_people, exact_of, perturb, perturb_table
from blurfit.contributor.sending import blur_table
from blurfit.messages.files import open_submissions
from blurfit.messages.submissions import Submission
from blurfit.schema.schema import Binary, Categorical, Numeric, Schema, values

SCHEMA = Schema(
    features=[Numeric("age", 0, 100), Binary("married")], target=Numeric("income", 0, 200_000)
)
RECORD = {"age": 75, "married": 1, "income": 150_000}


@pytest.fixture
def agreement() -> Agreement:
    return Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=400)


def clean_numbers(agreement: Agreement) -> np.ndarray:
    """By hand: age 75 of 100 is v = 0.5, married is 1, an income of 150,000 of 200,000 is y = 0.5.

    The upper triangle of zzᵀ, row by row, of z = (c, ω₁·0.5, ω₂·1, ω₃·0.5), without c² and ω₂²,
    which everybody knows.
    """
    c, (age, married, income) = agreement.weights.constant, agreement.weights.columns
    z = [c, 0.5 * age, married, 0.5 * income]
    sent = [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 3), (3, 3)]
    return np.array([z[i] * z[j] for i, j in sent])


def scales(agreement: Agreement) -> np.ndarray:
    found = agreement.calibration
    diagonal = np.array([0, 0, 0, 1, 0, 0, 0, 1])
    return np.where(diagonal, found.noise, found.noise / math.sqrt(2))


def test_exact_numbers_are_those_by_hand(agreement) -> None:
    np.testing.assert_allclose(agreement.exact(RECORD), clean_numbers(agreement), rtol=1e-12)


def test_submission_carries_its_agreement_and_lies_on_the_grid(agreement) -> None:
    sent = perturb(agreement, RECORD)
    assert sent.fingerprint == agreement.fingerprint
    assert len(sent.numbers) == agreement.width
    for part in agreement.parts:
        assert (sent.numbers[part.numbers] % part.step == 0).all()
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
        allowed = {"agreement", "records", "table", "people", "secret"}
        assert set(inspect.signature(function).parameters) <= allowed


# ---- diaries


DAYS = Schema([Numeric("hours", 0, 12), Numeric("stress", 0, 10)], Numeric("sleep", 0, 12))
ROWS = {
    "who": ["b", "a", "b", "c", "a", "b"],
    "hours": [8, 9, 7, 2, 10, 12],
    "stress": [3, 5, 2, 1, 7, 9],
    "sleep": [7, 6, 8, 9, 5, 4],
}


def of_days(*, diaries: bool = True, **terms) -> Agreement:
    chosen = {"epsilon": 1e6, "delta": 1e-6, "quorum": 3} | terms
    return Agreement.propose(DAYS, diaries=diaries, **chosen)


def answers(which=slice(None)) -> dict[str, np.ndarray]:
    return {name: np.array(ROWS[name])[which] for name in ("hours", "stress", "sleep")}


def test_a_diary_is_one_submission() -> None:
    agreed = of_days()
    mine = np.array(ROWS["who"]) == "b"
    sent = perturb(agreed, answers(mine))
    assert isinstance(sent, Submission)
    mean = agreed.exact(answers(mine)).mean(axis=0)
    np.testing.assert_allclose(exact_of(agreed, answers(mine)), mean)
    np.testing.assert_allclose(sent.numbers, mean, atol=0.01)
    one = {name: values[0] for name, values in answers().items()}
    assert len(perturb(agreed, one).to_bytes()) == len(sent.to_bytes())
    plain = of_days(diaries=False)
    assert agreed.calibration.sigma == plain.calibration.sigma
    assert agreed.fingerprint != plain.fingerprint


def test_people_of_a_table() -> None:
    agreed = of_days()
    sent = perturb_table(agreed, answers(), people=ROWS["who"])
    assert len(sent) == 3
    exact = agreed.exact(answers())
    for place, name in enumerate(["b", "a", "c"]):
        mean = exact[np.array(ROWS["who"]) == name].mean(axis=0)
        np.testing.assert_allclose(sent.numbers[place], mean, atol=0.01)
    assert len(perturb(agreed, answers(), people=ROWS["who"])) == 3


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_with_a_column_of_people(tmp_path, kind) -> None:
    import pandas as pd

    table = tmp_path / f"days.{kind}"
    frame = pd.DataFrame(ROWS)
    frame.to_csv(table, index=False) if kind == "csv" else frame.to_parquet(table)
    agreed, out = of_days(), tmp_path / "sent.parquet"
    assert blur_table(agreed, table, out, person="who") == 3
    with open_submissions(out, agreed.layout) as file:
        parts = [part for group in range(file.groups) for part in file.parts(group)]
        numbers = np.vstack([one[-1] for one in parts])
    exact = agreed.exact(answers(), codes_of_people(ROWS["who"]))
    np.testing.assert_allclose(numbers, exact, atol=0.01)
    again = tmp_path / "again.parquet"
    with pytest.raises(InvalidValueError, match="before"):  # the same rows, once more
        blur_table(agreed, table, again, person="who", journal=tmp_path / "other")


def test_rows_of_a_diary_are_not_sent_as_if_each_were_a_person(tmp_path) -> None:
    table, out = tmp_path / "days.csv", tmp_path / "sent.parquet"
    table.write_text("who,hours,stress,sleep\na,1,2,3\na,1,2,4\n", encoding="utf-8")
    with pytest.raises(InvalidValueError, match="--person COLUMN"):
        blur_table(of_days(), table, out)
    assert not out.exists()
    with pytest.raises(InvalidValueError, match="told whose row it is"):
        perturb_table(of_days(), answers())


def test_agreements_of_one_row_take_no_diary(tmp_path) -> None:
    plain = of_days(diaries=False)
    with pytest.raises(InvalidValueError, match="does not speak of several"):
        perturb(plain, answers(), people=ROWS["who"])
    table = tmp_path / "days.csv"
    table.write_text("who,hours,stress,sleep\na,1,2,3\na,1,2,4\n", encoding="utf-8")
    with pytest.raises(InvalidValueError, match="Agree with diaries"):
        blur_table(plain, table, tmp_path / "sent.parquet", person="who")
    with pytest.raises(InvalidValueError, match="none missing"):
        perturb_table(of_days(), answers(), people=["a", "", "b", "b", "b", "b"])
