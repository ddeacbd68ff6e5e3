"""The pairs are as far apart as the theory says that any two can be."""

import numpy as np
import pytest

from blurfit import Agreement, Binary, Numeric, Schema
from blurfit.audit.pairs import collection_pairs, exact_mu, submission_pairs

TARGET = Numeric("y", -1, 1)


def agreement(columns: int, **terms) -> Agreement:
    schema = Schema([Numeric(f"x{i}", -1, 1) for i in range(columns)], TARGET, intercept=False)
    given = {"epsilon": 1.0, "delta": 1e-5, "quorum": 50, "weight_bound": 1.0} | terms
    return Agreement.propose(schema, **given)


@pytest.mark.parametrize("columns", [2, 5])
@pytest.mark.parametrize("mechanism", ["moment", "input"])
@pytest.mark.parametrize("balance", [0.5, 1.0, 3.0])
def test_opposite_records_attain_what_is_promised_of_a_submission(
    columns: int, mechanism, balance: float
) -> None:
    """But for the thousandth that bounds are enlarged by for the grid."""
    terms = {"balance": balance} if mechanism == "moment" else {}
    made = agreement(columns, mechanism=mechanism, **terms)
    found = exact_mu(made, submission_pairs(made)[0])
    assert 0.998 * made.calibration.local.mu < found <= made.calibration.local.mu


def test_opposite_records_attain_what_is_promised_of_the_sums() -> None:
    made = agreement(3, mechanism="moment")
    pair = collection_pairs(made)[0]
    assert 0.998 * made.calibration.mu < exact_mu(made, pair) <= made.calibration.mu


def test_zero_out_compares_with_zero_only() -> None:
    for mechanism in ("moment", "input"):
        made = agreement(2, mechanism=mechanism, neighbours="zero-out")
        for pair in collection_pairs(made):
            assert not pair.second.q.any()
            assert not pair.second.p.any()
    made = agreement(2, mechanism="moment", neighbours="zero-out")
    assert 0.998 * made.calibration.mu < exact_mu(made, collection_pairs(made)[0])


@pytest.mark.parametrize("mechanism", ["moment", "input"])
def test_records_stay_within_the_bounds_and_the_quorum_is_met_exactly(mechanism) -> None:
    schema = Schema([Numeric("a", 0, 1), Binary("b")], Binary("y"))
    made = Agreement.propose(
        schema, epsilon=1, delta=1e-5, quorum=40, mechanism=mechanism, weight_bound=2.0
    )
    for pair in collection_pairs(made) + submission_pairs(made):
        for record in (pair.first, pair.second):
            assert np.linalg.norm(record.q) <= made.loss.q_bound * (1 + 1e-12)
            assert np.linalg.norm(record.p) <= made.loss.p_bound * (1 + 1e-12)
    assert {pair.crowd.honest for pair in collection_pairs(made)} == {39}


def test_in_one_dimension_the_farthest_pair_is_the_flipped_target() -> None:
    made = agreement(1, mechanism="moment")
    first, second = submission_pairs(made)[0].first, submission_pairs(made)[0].second
    assert first.q == pytest.approx(second.q)
    assert first.p == pytest.approx(-second.p)
