"""Derived columns: what they compute, that they stay within the ball, and what is refused."""

import tomllib
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial.legendre import legval

from blurfit import Agreement, Binary, Categorical, Numeric, Schema
from blurfit.agreement.plan import Plan
from blurfit.errors import InvalidValueError
from blurfit.schema.derived import Bands, Condition, Cross, Curve, Poly, Product
from blurfit.schema.imports import to_table_schema, to_toml
from blurfit.schema.schema import INTERCEPT, joint_form, values
from blurfit.schema.table_files import TableFile

SCHEMA = Schema(
    [
        Numeric("age", 18, 90),
        Numeric("hours", 0, 80),
        Categorical("region", ["n", "s"]),
        Binary("married"),
        Bands("pay", edges=[20, 40.5]),
        Cross("married", "region"),
        Product("age", "hours"),
        Product("age", "region"),
        Product("hours", "married"),
        Curve("age", knots=[18, 40, 60.5, 90]),
        Poly("hours", degree=5),
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
    assert (found["age:region=n"], found["age:region=s"]) == (0, found["age"])
    assert found["hours:married"] == found["hours"] == -1
    at = (60.5 - 54) / 20.5
    hats = [found[f"curve(age)={knot}"] for knot in (18, 40, 60.5, 90)]
    assert hats == pytest.approx([0, at, 1 - at, 0])
    assert found["poly5(hours)"] == -1
    assert values(SCHEMA, RECORD | {"hours": 52}, ["poly5(hours)"]) == pytest.approx(
        legval(0.3, [0] * 5 + [1])
    )
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
    assert Schema.from_dict(tomllib.loads(to_toml(SCHEMA))) == SCHEMA

    def fingerprint(edge: float) -> str:
        schema = Schema([Numeric("x", 0, 1), Bands("x", edges=[edge])], Numeric("y", 0, 1))
        return Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=500).fingerprint

    assert fingerprint(0.5) == fingerprint(0.5) != fingerprint(0.25)


@given(st.floats(-1e3, 1e3), st.lists(st.floats(-100, 100), min_size=3, max_size=9, unique=True))
def test_hats_are_at_least_0_sum_to_1_and_overlap_with_neighbours_alone(x, knots) -> None:
    curve = Curve("x", knots=sorted(one + 0.0 for one in knots))
    hats = curve.scale(np.array([x]))[0]
    assert (hats >= 0).all()
    assert hats.sum() == 1  # to the last bit, so that the squares sum to 1 at most
    assert np.ptp(np.flatnonzero(hats)) <= 1
    line = hats @ curve.knots
    assert line == pytest.approx(np.clip(x, curve.knots[0], curve.knots[-1]), abs=1e-9)


def test_the_worst_pair_is_as_far_apart_as_is_claimed_to_five_digits() -> None:
    """A search over answers, from many starts, for each kind of derived column.

    Δ is attained where u·u' = −c² at full length: two knots or levels have 0 between them, and a
    number −1 or 1; so the constants are those for which the target makes up for the rest.
    """
    asked = [Numeric("x", 0, 1), Numeric("w", 0, 1), Categorical("c", ["k", "l"]), Binary("b")]
    kinds = [
        Curve("x", knots=[0, 0.3, 0.7, 1]),
        Bands("x", edges=[0.4, 0.6]),
        Product("x", "c"),
        Product("x", "w"),
        Poly("x", degree=3),
        Cross("c", "b"),
    ]
    generator = np.random.default_rng(5)
    for derived in kinds:
        signs = derived.kind in ("product", "poly")
        for constant in (np.sqrt(0.64 - 0.36), 1.0) if signs else (0.6,):
            sources = tuple(one for one in asked if one.name in derived.of)
            schema = Schema([derived], Numeric("y", 0, 1), sources=sources)
            form = joint_form(schema.questions, constant, [0.8, 0.6])
            best = 0.0
            for _ in range(6):
                pair = [_anybody(generator) for _ in range(2)]
                for _ in range(3):  # one answer of one of them at a time
                    for person, name in product((0, 1), ("x", "w", "c", "b", "y")):
                        tried = [{**pair[person], name: one} for one in _every(name)]
                        sent = form.products(values(schema, _table([*tried, pair[1 - person]])))
                        apart = np.sqrt((sent[:-1] - sent[-1]) ** 2 @ form.counts)
                        pair[person] = tried[int(apart.argmax())]
                        best = max(best, float(apart.max()))
            claimed = form.reach("replace").sums
            assert best <= claimed
            assert best == pytest.approx(claimed, rel=1e-5)


def _every(name: str) -> list:
    numbers = sorted({*np.linspace(0, 1, 41).tolist(), 0.3, 0.7})
    return {"c": ["k", "l"], "b": [0, 1]}.get(name, numbers)


def _anybody(generator: np.random.Generator) -> dict:
    return {name: generator.choice(np.array(_every(name), dtype=object)) for name in "xwcby"}


def _table(people: list[dict]) -> dict:
    return {name: [one[name] for one in people] for name in people[0]}


A, B = Numeric("a", 0, 10), Categorical("b", ["x", "y"])


@pytest.mark.parametrize(
    ("derived", "words"),
    [
        (lambda: Bands("a", edges=[]), "list of numbers"),
        (lambda: Bands("a", edges="12"), "list of numbers"),
        (lambda: Bands("a", edges=[3, 3]), "grow"),
        (lambda: Bands("a", edges=[float("nan")]), "edges"),
        (lambda: Bands("a", edges=[0, 5]), "strictly between"),
        (lambda: Bands("b", edges=[1]), "to be a number"),
        (lambda: Bands("nobody", edges=[1]), "everybody answers"),
        (lambda: Bands("shy", edges=[1]), "everybody answers"),
        (lambda: Cross("b", "b"), "twice"),
        (lambda: Cross("a", "b"), "declare Bands"),
        (lambda: Product("b", "b"), "declare a Cross"),
        (lambda: Curve("a", knots=[1, 5]), "at least 3"),
        (lambda: Curve("a", knots=[1, 5, 5]), "grow"),
        (lambda: Curve("a", knots=[5, 1, 9]), "grow"),
        (lambda: Curve("a", knots=[1, float("inf"), 9]), "knots"),
        (lambda: Curve("a", knots=[-1, 5, 10]), "from lower"),
        (lambda: Curve("a", knots=[0, 5, 11]), "from lower"),
        (lambda: Curve("b", knots=[0, 5, 10]), "to be a number"),
        (lambda: Poly("a", degree=1), "whole number from 2"),
        (lambda: Poly("a", degree=2.0), "whole number from 2"),
        (lambda: Poly("b", degree=2), "to be a number"),
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
        {"name": "c", "kind": "curve", "of": "a", "edges": [1, 2, 3]},
        {"name": "c", "kind": "curve", "of": "a", "knots": "123"},
        {"name": "c", "kind": "poly", "of": "a", "degree": 30},
    ],
)
def test_a_file_that_describes_none_is_refused(entry) -> None:
    document = Schema([A, B], Binary("y")).to_dict()
    document["features"].append(entry)
    with pytest.raises(InvalidValueError, match=r"features\[2\]"):
        Schema.from_dict(document)


def test_a_question_may_be_asked_only_for_what_is_derived_from_it() -> None:
    curve, y = Curve("a", knots=[0, 5, 10]), Binary("y")
    schema = Schema([curve, B], y, sources=[A])
    assert [one.name for one in schema.asked] == ["a", "b", "y"]
    assert schema.columns == ("curve(a)=0", "curve(a)=5", "curve(a)=10", "b=x", "b=y", INTERCEPT)
    assert joint_form(schema.questions, 0.5, [0.5] * 3).radius == pytest.approx(np.sqrt(0.75))
    assert schema.default_predictors("y") == ("curve(a)", "b")
    assert Schema.from_dict(schema.to_dict()) == schema
    assert Schema.from_dict(tomllib.loads(to_toml(schema))) == schema
    beside = Schema([A, curve, B], y)
    assert beside.default_predictors("y") == ("a", "b")
    chosen = Schema([A, curve, B], y, predictors=["curve(a)"])
    assert chosen.default_predictors("y") == ("curve(a)",)
    assert Schema.from_dict(chosen.to_dict()) == chosen
    assert "curve(a)" not in schema.targets
    for wrong in ({"sources": [B]}, {"predictors": ["z"]}, {"targets": ["y", "curve(a)"]}):
        with pytest.raises(InvalidValueError):
            Schema([A, curve], y, **wrong)
    with pytest.raises(InvalidValueError, match="the target"):
        Schema([A, Bands("y", edges=[1])], Numeric("y", 0, 2), predictors=["bands(y)"])


def test_where_derived_columns_cannot_be() -> None:
    with pytest.raises(InvalidValueError, match="do not follow from each other"):
        schema = Schema(
            [A, Curve("a", knots=[0, 5, 10])], Binary("y"), predictors=["a", "curve(a)"]
        )
        Plan.propose(schema, epsilon=1, delta=1e-6, quorum=20_000, waves=2)
    with pytest.raises(InvalidValueError, match="to be asked"):
        Schema([A], Bands("a", edges=[5]))


def test_files_are_read_by_what_is_asked(tmp_path) -> None:
    """A source is a number with a decimal comma like any other, though it is no column."""
    schema = Schema([Curve("a", knots=[0, 5, 10]), B], Binary("y"), sources=[A])
    (tmp_path / "people.csv").write_text("a;b;y\n2,5;x;1\n10,0;y;0\n")
    (part,) = TableFile(tmp_path / "people.csv", schema).chunks()
    expected = [[0.5, 0.5, 0, 1, 0, 1], [0, 0, 1, 0, 1, -1]]
    np.testing.assert_array_equal(values(schema, part), expected)
    assert [one["name"] for one in to_table_schema(schema)["fields"]] == ["a", "b", "y"]
