"""The parts of a contract follow from schema and terms, and from nothing else."""

import pytest

from blurfit import Agreement, Binary, Categorical, InfeasibleError, Numeric, Schema, Terms
from blurfit.agreement.mechanisms import INPUT, MOMENT, form_of, largest_scale
from blurfit.errors import InvalidValueError
from blurfit.theory.forms import JointForm

SCHEMA = Schema([Numeric("x", 0, 1), Binary("b")], Numeric("y", 0, 1))
TERMS = {"epsilon": 1.0, "delta": 1e-6, "quorum": 1000}


def test_the_same_terms_give_the_same_contract() -> None:
    one, other = (Agreement(**MOMENT.contract(SCHEMA, Terms.of(**TERMS))) for _ in range(2))
    assert one.fingerprint == other.fingerprint == Agreement.propose(SCHEMA, **TERMS).fingerprint
    one.verify()


def test_an_input_contract_has_an_objective_and_no_weights() -> None:
    terms = Terms.of(**TERMS, mechanism="input", weight_bound=2.0, l2=3.0)
    found = INPUT.contract(SCHEMA, terms)
    assert found["objective"].l2 == 3.0
    assert found["calibration"].excess_risk is None, "a penalised model has no such forecast"
    assert "weights" not in found
    Agreement(**found).verify()


def test_what_input_cannot_do_is_refused() -> None:
    terms = Terms.of(**TERMS, mechanism="input", weight_bound=2.0)
    classes = Schema([Numeric("x", 0, 1)], Categorical("k", ["a", "b"]))
    with pytest.raises(InfeasibleError, match="has classes"):
        INPUT.contract(classes, terms)


def test_a_form_needs_weights_or_a_map() -> None:
    weights = Agreement.propose(SCHEMA, **TERMS).weights
    form = form_of(SCHEMA, weights, None, Terms.of(**TERMS))
    assert isinstance(form, JointForm)
    assert largest_scale(form) == 1.0
    with pytest.raises(InvalidValueError, match="a wave with a map"):
        form_of(SCHEMA, None, None, Terms.of(**TERMS))


def test_public_rows_give_the_target_the_weight_of_all_the_rest() -> None:
    plain = Agreement.propose(SCHEMA, **TERMS)
    beside = Agreement.propose(SCHEMA, **TERMS, public_rows="0" * 64)
    c, (*features, target) = beside.weights.constant, beside.weights.columns
    assert target**2 == pytest.approx(c**2 + sum(w**2 for w in features))
    assert plain.fingerprint != beside.fingerprint
    beside.verify()
