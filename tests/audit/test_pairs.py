"""The pairs are as far apart as the theory says that any two can be."""

import itertools

import numpy as np
import pytest

from blurfit import Agreement, Binary, Categorical, Numeric, Schema
from blurfit.audit.agreements import collection_pairs, exact_mu, farthest_answers, submission_pairs
from blurfit.theory.forms import JointColumn, JointForm

TARGET = Numeric("y", -1, 1)


def agreement(columns: int, **terms) -> Agreement:
    schema = Schema([Numeric(f"x{i}", -1, 1) for i in range(columns)], TARGET, intercept=False)
    given = {"epsilon": 1.0, "delta": 1e-5, "quorum": 50} | terms
    if terms.get("mechanism") == "input":
        given |= {"weight_bound": 1.0}
    return Agreement.propose(schema, **given)


def equal_weights(columns: int, constant: float) -> dict:
    names = (*(f"x{i}" for i in range(columns)), "y")
    return {"weights": dict.fromkeys(names, 1.0), "constant": constant}


@pytest.mark.parametrize("columns", [2, 5])
def test_opposite_records_of_input_attain_what_is_promised(columns: int) -> None:
    """But for the thousandth that bounds are enlarged by for the grid."""
    made = agreement(columns, mechanism="input")
    found = exact_mu(made, submission_pairs(made)[0])
    assert 0.998 * made.calibration.local.mu < found <= made.calibration.local.mu


@pytest.mark.parametrize(
    ("columns", "constant"), [(2, 1.0), (4, 1.0), (4, 9**0.5), (3, 2**0.5), (2, 5.0), (7, 2.0)]
)
def test_where_the_schema_allows_the_worst_angle_it_is_found(columns: int, constant) -> None:
    """All weights 1: ±1 − … sum to −c² for whole c² of the right parity, and for c > ρ to −ρ²."""
    made = agreement(columns, **equal_weights(columns, constant))
    for promised, pair in (
        (made.calibration.local.mu, submission_pairs(made)[0]),
        (made.calibration.mu, collection_pairs(made)[0]),
    ):
        assert 0.998 * promised < exact_mu(made, pair) <= promised


def test_the_default_weights_are_nearly_attained() -> None:
    made = agreement(13)
    found = exact_mu(made, collection_pairs(made)[0])
    assert 0.99 * made.calibration.mu < found <= made.calibration.mu


FORMS = [
    JointForm(0.4, (JointColumn("a", 0.7), JointColumn("b", 0.5))),
    JointForm(2.0, (JointColumn("a", 0.7), JointColumn("b", 0.5, "sign"))),
    JointForm(0.1, (JointColumn("a", 1.0),)),
    JointForm(
        0.6, (JointColumn("a", 0.9, "sign"), *(JointColumn(c, 0.8, "level", "g") for c in "xyz"))
    ),
]


@pytest.mark.parametrize("form", FORMS)
def test_no_other_pair_of_answers_is_farther_apart(form: JointForm) -> None:
    """Against every pair on a grid, both records free."""
    axes = []
    for column in form.columns:
        if column.kind == "numeric":
            axes.append(np.linspace(-1, 1, 21))
        elif column.kind == "sign":
            axes.append(np.array([-1.0, 1.0]))
    rows = np.array(list(itertools.product(*axes)))
    levels = sum(column.kind == "level" for column in form.columns)
    if levels:
        one_hot = np.eye(levels)
        rows = np.array([[*row, *level] for row in rows for level in one_hot])
    counts = form.counts
    products = form.products(rows) * np.sqrt(counts)
    largest = max(np.linalg.norm(products - one, axis=1).max() for one in products)
    first, second = farthest_answers(form)
    found = np.linalg.norm((form.products(first) - form.products(second)) * np.sqrt(counts))
    assert 0.9999 * largest <= found <= form.reach("replace").sums
    for answers in (first, second):
        assert np.abs(answers).max() <= 1
        if levels:
            assert sorted(answers[-levels:]) == [0, 0, 1]


def test_zero_out_compares_with_zero_only() -> None:
    for mechanism in ("moment", "input"):
        made = agreement(2, mechanism=mechanism, neighbours="zero-out")
        for pair in collection_pairs(made):
            assert not pair.second.any()
    made = agreement(2, mechanism="moment", neighbours="zero-out")
    assert 0.998 * made.calibration.mu < exact_mu(made, collection_pairs(made)[0])


def test_records_stay_within_the_bounds_and_the_quorum_is_met_exactly() -> None:
    schema = Schema([Numeric("a", 0, 1), Binary("b")], Binary("y"))
    made = Agreement.propose(
        schema, epsilon=1, delta=1e-5, quorum=40, mechanism="input", weight_bound=2.0
    )
    d = schema.dimension
    for pair in collection_pairs(made) + submission_pairs(made):
        for record in (pair.first, pair.second):
            assert np.linalg.norm(record[:d]) <= made.loss.q_bound * (1 + 1e-12)
            assert np.linalg.norm(record[d:]) <= made.loss.p_bound * (1 + 1e-12)
    assert {pair.crowd.honest for pair in collection_pairs(made)} == {39}


def test_pairs_of_moment_are_records_that_the_schema_can_send() -> None:
    """Each is `Agreement.exact` of some answers, or the zero record of zero-out."""
    features = [Binary("b"), Categorical("c", ["x", "y", "z"])]
    made = Agreement.propose(Schema(features, Binary("y")), epsilon=1, delta=1e-5, quorum=40)
    answers = itertools.product([0, 1], ["x", "y", "z"], [0, 1])
    known = [made.exact({"b": b, "c": c, "y": y}) for b, c, y in answers]
    for pair in collection_pairs(made) + submission_pairs(made):
        assert any(np.allclose(pair.first, one) for one in known)
        assert not pair.second.any() or any(np.allclose(pair.second, one) for one in known)
    assert {pair.crowd.honest for pair in collection_pairs(made)} == {39}
