"""Algorithm 1, step by step and by its distribution."""

import inspect
import math

import numpy as np
import pytest
from scipy.stats import kstest

from blurfit import NotCertifiedError
from blurfit.agreement.agreement import Agreement
from blurfit.contributor import perturb as module
from blurfit.contributor.perturb import perturb, perturb_table
from blurfit.schema.schema import Binary, Numeric, Schema

SCHEMA = Schema(
    features=[Numeric("age", 0, 100), Binary("married")], target=Numeric("income", 0, 200_000)
)
RECORD = {"age": 75, "married": 1, "income": 150_000}


@pytest.fixture(params=["moment", "input"])
def agreement(request) -> Agreement:
    return Agreement.propose(
        SCHEMA, epsilon=1, delta=1e-6, quorum=400, mechanism=request.param, weight_bound=2.0
    )


def clean_terms(agreement: Agreement) -> tuple[np.ndarray, np.ndarray]:
    """By hand: z = (0.5, 1, 1), x = z/√3, y = 0.5; q = x, p = yx."""
    x = np.array([0.5, 1.0, 1.0]) / math.sqrt(3)
    if agreement.mechanism == "input":
        return x, 0.5 * x
    return np.array(
        [x[0] * x[0], x[0] * x[1], x[0] * x[2], x[1] * x[1], x[1] * x[2], x[2] * x[2]]
    ), 0.5 * x


def scales(agreement: Agreement) -> np.ndarray:
    found = agreement.calibration
    if agreement.mechanism == "input":
        return np.full(3, found.q_noise)
    off = found.m_noise / math.sqrt(2)
    return np.array([found.m_noise, off, off, found.m_noise, off, found.m_noise])


def test_submission_carries_its_agreement_and_lies_on_the_grid(agreement) -> None:
    sent = perturb(agreement, RECORD)
    assert sent.fingerprint == agreement.fingerprint
    assert sent.mechanism == agreement.mechanism
    assert (sent.quadratic % agreement.grid.quadratic == 0).all()
    assert (sent.linear % agreement.grid.dither == 0).all()
    if agreement.mechanism == "input":  # p̃ fills the gaps between the multiples of its noise
        assert (sent.linear % agreement.grid.linear != 0).any()
    assert sent.identifier != perturb(agreement, RECORD).identifier


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["one by one", "table"])
def test_noise_is_the_calibrated_one(agreement, kind: str) -> None:
    """(submission − record)/scale must be standard normal in each place, and uncorrelated."""
    count = 600 if kind == "one by one" else 20_000
    if kind == "table":
        table = {name: np.full(count, value) for name, value in RECORD.items()}
        sent = perturb_table(agreement, table)
        quadratic, linear = sent.quadratic, sent.linear
    else:
        parts = [perturb(agreement, RECORD) for _ in range(count)]
        quadratic = np.array([one.quadratic for one in parts])
        linear = np.array([one.linear for one in parts])
    clean_quadratic, clean_linear = clean_terms(agreement)
    standard = np.hstack(
        [
            (quadratic - clean_quadratic) / scales(agreement),
            (linear - clean_linear) / agreement.calibration.p_noise,
        ]
    )
    for column in standard.T:
        assert kstest(column, "norm").pvalue > 1e-6
    correlation = np.corrcoef(standard.T) - np.eye(standard.shape[1])
    assert np.abs(correlation).max() < 6 / math.sqrt(count)


def test_an_agreement_that_promises_too_much_is_refused_before_anything_is_computed() -> None:
    document = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=400).to_dict()
    document["calibration"]["model"]["epsilon"] = 0.5
    with pytest.raises(NotCertifiedError, match="does not keep"):
        perturb(Agreement.from_dict(document), {"no": "record"})


def test_no_seed_can_be_passed() -> None:
    for function in (module.perturb, module.perturb_table):
        allowed = {"agreement", "records", "table", "allow_unproved"}
        assert set(inspect.signature(function).parameters) <= allowed


def test_a_table_gives_a_table(agreement) -> None:
    table = {name: [value, value] for name, value in RECORD.items()}
    sent = perturb(agreement, table)
    assert len(sent) == 2
    assert sent.fingerprint == agreement.fingerprint
