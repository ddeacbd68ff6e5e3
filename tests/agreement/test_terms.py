"""One list of terms, the same wherever it is read."""

import inspect

import msgspec
import pytest

from blurfit import Agreement, InvalidValueError, Numeric, Schema, calibrate
from blurfit.agreement.terms import TERMS, Terms, terms_of

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
PROMISE = {"epsilon": 1.0, "delta": 1e-6, "quorum": 50}


def test_the_agreement_follows_from_schema_and_terms() -> None:
    chosen = PROMISE | {"mechanism": "input", "weight_bound": 2.0, "l2": 0.5}
    terms = Terms(**chosen)
    assert Agreement.under(SCHEMA, terms) == Agreement.propose(SCHEMA, **chosen)
    assert terms_of(chosen) == terms
    with pytest.raises(AttributeError):
        terms.epsilon = 2.0


def test_json_gives_the_same_terms_and_refuses_others() -> None:
    terms = Terms(**PROMISE, mechanism="input", weight_bound=2.0)
    assert msgspec.json.decode(msgspec.json.encode(terms), type=Terms) == terms
    for wrong in (b'{"epsilon": 1, "delta": 0.1}', b'{"epsilon": 1, "delta": 2, "quorum": 5}'):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(wrong, type=Terms)
    with pytest.raises(msgspec.ValidationError, match="unknown field `alpha`"):
        msgspec.json.decode(b'{"epsilon": 1, "delta": 0.1, "quorum": 5, "alpha": 1}', type=Terms)


def test_every_term_has_words_for_people() -> None:
    (schema,) = msgspec.json.schema(Terms)["$defs"].values()
    assert tuple(schema["properties"]) == TERMS
    assert all(one["description"].endswith(".") for one in schema["properties"].values())


def test_names_that_are_no_terms_are_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"among epsilon, .* and got \['epsilom'\]"):
        Agreement.propose(SCHEMA, **PROMISE, epsilom=1)
    with pytest.raises(InvalidValueError, match="Expected delta, quorum"):
        Agreement.propose(SCHEMA, epsilon=1)


def test_what_calibrate_takes_beside_the_setting_is_a_term() -> None:
    follows = {"dimension", "q_bound", "p_bound", "parallel"}  # from schema and loss
    taken = set(inspect.signature(calibrate).parameters) - follows - {"alpha"}
    assert taken <= set(TERMS)
