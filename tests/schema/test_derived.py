"""Derived columns: what they compute, that they stay within the ball, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blurfit import Agreement, Binary, Categorical, Numeric, Schema
from blurfit.agreement.plan import Plan
from blurfit.errors import InvalidValueError
from blurfit.forecast.population import Population
from blurfit.schema.derived import Bands, Condition, Cross, Product
from blurfit.schema.schema import to_toml
from blurfit.schema.vectors import joint_form, values

SCHEMA = Schema(
    [
        Numeric("age", 18, 90),
        Numeric("hours", 0, 80),
        Categorical("region", ["n", "s"]),
        Binary("married"),
        Bands("pay", edges=[20, 40.5]),
        Cross("married", "region"),
        Product("age", "hours"),
        Condition("works", "hours", above=0),
        Condition("south", "region", level="s"),
    ],
    Numeric("pay", 0, 100),
)
RECORD = {"age": 54, "hours": 0, "region": "s", "married": True, "pay": 20}


def test_what_a_record_becomes() -> None:
    found = dict(
        zip(
            SCHEMA.columns_of(q.name for q in SCHEMA.questions), values(SCHEMA, RECORD), strict=True
        )
    )
    assert found["bands(pay)=under 20"] == 0
    assert found["bands(pay)=20 to 40.5"] == 1  # an edge belongs to the band above it
    assert found["married:region=yes:s"] == 1
    assert sum(value for name, value in found.items() if name.startswith("married:region")) == 1
    assert found["age:hours"] == found["age"] * found["hours"] == 0
    assert (found["works"], found["south"]) == (-1, 1)
    above = values(SCHEMA, RECORD | {"hours": 40, "pay": 400, "age": 90})
    assert dict(zip(found, above, strict=True))["bands(pay)=40.5 or more"] == 1
    assert [one.name for one in SCHEMA.asked] == ["age", "hours", "region", "married", "pay"]


@given(
    age=st.floats(0, 200),
    hours=st.floats(-10, 200),
    region=st.sampled_from("ns"),
    married=st.booleans(),
    pay=st.floats(-5, 500),
)
def test_a_record_stays_within_the_ball_whatever_it_is(**record) -> None:
    weights = np.full(len(SCHEMA.questions), 0.3)
    form = joint_form(SCHEMA.questions, 0.5, weights)
    v = values(SCHEMA, record)
    assert np.abs(v).max() <= 1
    length = np.linalg.norm(v * [column.weight for column in form.columns])
    assert length <= form.radius * (1 + 1e-12)
    assert form.radius == pytest.approx(0.3 * np.sqrt(len(SCHEMA.questions)))


def test_derived_columns_are_part_of_the_schema_s_text_and_fingerprint() -> None:
    assert Schema.from_dict(SCHEMA.to_dict()) == SCHEMA
    import tomllib

    assert Schema.from_dict(tomllib.loads(to_toml(SCHEMA))) == SCHEMA

    def fingerprint(edge: float) -> str:
        schema = Schema([Numeric("x", 0, 1), Bands("x", edges=[edge])], Numeric("y", 0, 1))
        return Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=500).fingerprint

    assert fingerprint(0.5) == fingerprint(0.5) != fingerprint(0.25)


A, B = Numeric("a", 0, 10), Categorical("b", ["x", "y"])


@pytest.mark.parametrize(
    ("derived", "words"),
    [
        (lambda: Bands("a", edges=[]), "list of numbers"),
        (lambda: Bands("a", edges="12"), "list of numbers"),
        (lambda: Bands("a", edges=[3, 3]), "grow"),
        (lambda: Bands("a", edges=[float("nan")]), "edge"),
        (lambda: Bands("a", edges=[0, 5]), "strictly between"),
        (lambda: Bands("b", edges=[1]), "to be a number"),
        (lambda: Bands("nobody", edges=[1]), "everybody answers"),
        (lambda: Bands("shy", edges=[1]), "everybody answers"),
        (lambda: Cross("b", "b"), "twice"),
        (lambda: Cross("a", "b"), "declare Bands"),
        (lambda: Product("a", "b"), "declare a Cross"),
        (lambda: Condition("c", "a"), "one of the two"),
        (lambda: Condition("c", "a", above=10), "bounds hold"),
        (lambda: Condition("c", "b", above=1), "to be a number"),
        (lambda: Condition("c", "b", level="z"), "to be a level"),
        (lambda: Product("a", "a:a"), "everybody answers"),
    ],
)
def test_what_cannot_be_derived_is_refused_with_the_reason(derived, words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        Schema([A, B, Numeric("shy", 0, 9, optional=True), derived()], Binary("y"))


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "c", "kind": "bands", "of": "a"},
        {"name": "c", "kind": "bands", "of": ["a"], "edges": [1]},
        {"name": "c", "kind": "cross", "of": "ab"},
        {"name": "c", "kind": "product", "of": ["a", "a", "a"]},
        {"name": "c", "kind": "condition", "of": "a", "above": 1, "level": "x"},
        {"name": "c", "kind": "bands", "of": "a", "edges": [1], "optional": True},
        {"name": "c", "kind": "spline", "of": "a"},
    ],
)
def test_a_file_that_describes_none_is_refused(entry) -> None:
    document = Schema([A, B], Binary("y")).to_dict()
    document["features"].append(entry)
    with pytest.raises(InvalidValueError, match=r"features\[2\]"):
        Schema.from_dict(document)


def test_models_of_all_features_at_once_have_no_derived_ones() -> None:
    with pytest.raises(InvalidValueError, match="one wave"):
        Plan.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=20_000, waves=2)
    with pytest.raises(InvalidValueError, match="joint moments"):
        Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=20_000, mechanism="input")
    with pytest.raises(InvalidValueError, match="a forecast"):
        Population.generated(SCHEMA)
    with pytest.raises(InvalidValueError, match="to be asked"):
        Schema([A], Bands("a", edges=[5]))
