"""What `verify` computes again; that no number can be forged is in `test_agreement`."""

import math
from dataclasses import replace

import numpy as np
import pytest

from blurfit import Agreement, NotCertifiedError, Numeric, Schema
from blurfit.agreement.agreement import refuse_unless_blurrable, require_kept
from blurfit.agreement.numbers import promised_in_all
from blurfit.errors import BlurfitError, InfeasibleError

SCHEMA = Schema([Numeric("age", 18, 80)], Numeric("income", 0, 200_000))
PROMISE = {"epsilon": 1.0, "delta": 1e-6, "quorum": 5000}
MOMENT = Agreement.propose(SCHEMA, **PROMISE)
INPUT = Agreement.propose(SCHEMA, **PROMISE, mechanism="input", weight_bound=2.0)


@pytest.mark.parametrize(
    "change",
    [
        {"weights": None},
        {"weights": {"age": 1.0}},
        {"objective": {"loss": "squared", "approximation": "taylor", "l1": 0.0, "l2": 0.0}},
        {"mechanism": "input"},
        {"mechanism": "magic"},
    ],
)
def test_an_agreement_has_weights_or_an_objective(change) -> None:
    with pytest.raises(BlurfitError):
        require_kept(Agreement.from_dict(MOMENT.to_dict() | change))


@pytest.mark.parametrize("agreement", [MOMENT, INPUT], ids=["moment", "input"])
def test_parts_of_two_contracts_do_not_make_one(agreement: Agreement) -> None:
    agreement.verify()
    for other in (
        {"schema": Schema([Numeric("age", 18, 80), Numeric("height", 0, 3)], SCHEMA.target)},
        {"weights": MOMENT.weights, "objective": INPUT.objective},
        {"weights": None, "objective": None},
        {"grid": (INPUT if agreement is MOMENT else MOMENT).grid},
    ):
        with pytest.raises(BlurfitError):
            replace(agreement, **other).verify()


def test_noise_for_fewer_people_is_refused() -> None:
    fewer = Agreement.propose(SCHEMA, **PROMISE | {"quorum": 6000})
    with pytest.raises(NotCertifiedError):
        require_kept(replace(MOMENT, calibration=replace(fewer.calibration, quorum=5000)))


def test_what_was_found_to_keep_its_promise_is_not_looked_at_again() -> None:
    """By its text: another object with the same text is the same agreement."""
    found = Agreement.propose(SCHEMA, **PROMISE | {"quorum": 4321})
    found.verify()
    before = require_kept.cache_info()
    for _ in range(3):
        Agreement.from_dict(found.to_dict()).verify()
    assert require_kept.cache_info().misses == before.misses
    less = replace(found, calibration=replace(found.calibration, quorum=4322))
    for _ in range(2):
        with pytest.raises(NotCertifiedError):
            less.verify()


# ---- what an agreement refuses, one rule a test


SMALL = Schema([Numeric("x", 0, 1)], Numeric("y", 0, 1))
BY_INPUT = {"epsilon": 1, "delta": 1e-6, "quorum": 500, "mechanism": "input", "weight_bound": 2.0}


def test_what_is_promised_is_never_less_than_what_is_kept() -> None:
    generator = np.random.default_rng(1)
    for kept in 10 ** generator.uniform(-9, 3, 2000):
        for share in (0.0, 1e-3, 2.0**-10):
            found = promised_in_all(kept, share)
            assert found * (1 - share) >= kept * (1 - 1e-15)
            assert found == pytest.approx(kept / (1 - share), rel=1.1e-11)
    assert promised_in_all(1.0 * (1 - 1e-3), 1e-3) == 1.0


def test_the_papers_rule_is_refused_and_the_theorem_is_not() -> None:
    Agreement.propose(SMALL, **BY_INPUT).verify()
    published = Agreement.propose(SMALL, **BY_INPUT, rule="published")
    published.verify(allow_unproved=True)
    with pytest.raises(NotCertifiedError, match="is what is proved"):
        published.verify()


@pytest.mark.parametrize("bound", ["q_bound", "p_bound"])
def test_noise_for_shorter_records_is_refused(bound) -> None:
    agreement = Agreement.propose(SMALL, **BY_INPUT)
    short = replace(agreement.calibration.setting, **{bound: 0.999})
    with pytest.raises(NotCertifiedError, match=bound):
        replace(agreement, calibration=replace(agreement.calibration, setting=short)).verify()
    other = Schema([Numeric("x", 0, 1), Numeric("z", 0, 1)], Numeric("y", 0, 1))
    with pytest.raises(NotCertifiedError, match="dimension"):
        replace(agreement, schema=other).verify()


def test_numbers_and_noise_must_fit_their_steps() -> None:
    (part,) = Agreement.propose(SMALL, epsilon=1, delta=1e-6, quorum=500).parts
    refuse_unless_blurrable((part,))
    with pytest.raises(InfeasibleError, match="fewer than"):
        refuse_unless_blurrable((replace(part, bound=2.0**52 * part.step),))
    for factor in (2.0**60, 2.0**-60, math.nan):
        with pytest.raises(InfeasibleError, match="draw it exactly"):
            refuse_unless_blurrable((replace(part, deviations=part.deviations * factor),))
