"""The audit attacks what each database sees where trust is split, and what both see together."""

import numpy as np
import pytest

from blurfit import Agreement, Numeric, Schema
from blurfit.audit.agreements import audit
from blurfit.contributor.blur import share
from blurfit.messages.submissions import expand

TWO = [("Office", "https://first.example"), ("University", "https://second.example")]
PROMISE = {"epsilon": 1, "delta": 1e-6, "quorum": 2000, "databases": TWO}
SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
AGREEMENT = Agreement.propose(SCHEMA, **PROMISE, proofs=False)
PROVED = Agreement.propose(SCHEMA, **PROMISE)
LOW, HIGH = {"age": 0.0, "income": 0.0}, {"age": 100.0, "income": 100.0}
TRIALS = 2000


def views(record: dict[str, float]) -> dict[str, list[list[float]]]:
    """What each database gets of so many people with this record: all of it, as numbers."""
    shared = share(AGREEMENT, {name: np.full(TRIALS, v) for name, v in record.items()})
    width = shared.first.words.shape[1]
    together = (shared.first.words - expand(shared.second.words, width)).view(np.int64)
    return {
        "first": (shared.first.words / 2.0**64).tolist(),
        "second": (shared.second.words / 2.0**64).tolist(),
        "together": together.astype(np.float64).tolist(),
    }


@pytest.fixture(scope="module")
def seen() -> list[dict[str, list[list[float]]]]:
    return [views(LOW), views(HIGH)]


def examined(seen, view: str):
    sources = [iter(one[view]) for one in seen]
    return audit(
        lambda source, _generator: next(source), *sources, epsilon=1e-9, delta=0.0, trials=TRIALS
    )


@pytest.mark.statistical
@pytest.mark.parametrize("view", ["first", "second"])
def test_a_database_cannot_tell_opposite_records_apart(seen, view) -> None:
    found = examined(seen, view)
    assert found.counted == 0.0, "no ε at all was found"
    assert not found.broken


@pytest.mark.statistical
def test_both_together_can(seen) -> None:
    """So the attack works; what protects then is the record's own noise, which is little."""
    found = examined(seen, "together")
    assert found.counted > 3
    assert found.counted < AGREEMENT.calibration.local.epsilon


def proved_views(record: dict[str, float]) -> dict[str, list[list[float]]]:
    """What each database gets where there are proofs, and what the other tells it of them."""
    count = 200
    shared = share(PROVED, {name: np.full(count, v) for name, v in record.items()})
    prio3, names, key = PROVED.proving.prio3, shared.first.identifiers, b"k" * 32
    halves = prio3.leader_halves(shared.first.words), prio3.helper_halves(shared.second.words)
    told = [prio3.prepare(who, half, names, key).verifiers for who, half in enumerate(halves)]
    return {
        "first": (np.hstack([shared.first.words, told[1]]) / 2.0**64).tolist(),
        "second": (np.hstack([shared.second.words, told[0]]) / 2.0**64).tolist(),
    }


@pytest.mark.statistical
def test_proofs_tell_a_database_nothing() -> None:
    """Though each gets more here than it would: all of the other's half of the verifiers."""
    both = [proved_views(LOW), proved_views(HIGH)]
    for view in ("first", "second"):
        sources = [iter(one[view]) for one in both]
        found = audit(
            lambda source, _generator: next(source), *sources, epsilon=1e-9, delta=0.0, trials=200
        )
        assert found.counted == 0.0
        assert not found.broken
