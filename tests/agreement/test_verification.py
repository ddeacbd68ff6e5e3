"""What `verify` computes again; that no number can be forged is in `test_agreement`."""

from dataclasses import replace

import pytest

from blurfit import NotCertifiedError
from blurfit.agreement.agreement import Agreement, require_kept
from blurfit.errors import BlurfitError
from blurfit.schema.schema import Numeric, Schema

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
