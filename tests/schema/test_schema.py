import cProfile
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blurfit.schema.schema import Binary, Categorical, Numeric, Schema
from support.refusals import refusal
from support.schemas import schemas, tables

FEATURES = [Numeric("age", 0, 100), Binary("married"), Categorical("sex", ["f", "m"])]
INCOME = Numeric("income", 0, 200_000)
SCHEMA = Schema(FEATURES, INCOME)
RICH = Schema(FEATURES, INCOME.above(37_000))
RECORDS = {
    "age": [25.0, 100.0, 61.5],
    "married": [True, False, True],
    "sex": ["f", "m", "m"],
    "income": [50_000.0, 0.0, 123_456.0],
}
RECORD = {name: values[0] for name, values in RECORDS.items()}

TOML = """
# people
[[features]]
name = "age"
kind = "numeric"                     # numeric (lower, upper), binary, categorical (levels)
lower = 0
upper = 100
[[features]]
name = "married"
kind = "binary"
[[features]]
name = "sex"
kind = "categorical"
levels = ["f", "m"]
[target]
name = "income"
kind = "numeric"
lower = 0
upper = 200000                       # above = 37000 makes it a label
"""


def exact_norm_squared(x):
    return sum(Fraction(value) ** 2 for value in x.tolist())


def norms(x):
    """‖x‖ of each row, computed in as many ways as anybody might."""
    yield np.linalg.norm(x, axis=1)
    yield np.sqrt(np.einsum("ij,ij->i", x, x))
    yield np.sqrt(np.diag(x @ x.T))
    yield np.sqrt(np.cumsum(x**2, axis=1)[:, -1])
    yield np.sqrt(np.cumsum(x[:, ::-1] ** 2, axis=1)[:, -1])


class TestTheBall:
    @given(st.data(), schemas(most=12))
    def test_encoding_stays_in_it_whatever_the_data_are(self, data, schema):
        x, y = schema.encode(data.draw(tables(schema)))
        assert all(exact_norm_squared(row) <= 1 for row in x)
        assert all((norm <= 1).all() for norm in norms(x))
        assert np.abs(y).max() <= 1
        assert schema.is_label == (not isinstance(schema.target, Numeric))
        if schema.is_label:
            assert set(y.tolist()) <= {-1.0, 1.0}

    @pytest.mark.parametrize("intercept", [True, False])
    def test_also_at_every_corner_and_dimension(self, intercept):
        for count in range(1, 51):
            schema = Schema([Numeric(f"v{i}", -3, 7) for i in range(count)], Binary("y"), intercept)
            corners = np.random.default_rng(count).choice([-3.0, 7.0], size=(20, count))
            records = np.column_stack([corners, np.ones(20)])
            x = schema.encode(records, names=[*(f"v{i}" for i in range(count)), "y"]).features
            assert all(exact_norm_squared(row) <= 1 for row in x)
            assert all((norm <= 1).all() for norm in norms(x))
            assert np.linalg.norm(x, axis=1).min() >= 1 - 1e-13

    def test_levels_count_once_and_other_records_are_not_looked_at(self):
        levels = [str(i) for i in range(100)]
        schema = Schema([Categorical("c", levels)], Binary("y"), intercept=False)
        x = schema.encode({"c": levels, "y": [1] * 100}).features
        assert np.linalg.norm(x, axis=1) == pytest.approx(np.ones(100), abs=1e-14)
        assert np.count_nonzero(x) == 100
        alone = SCHEMA.encode(RECORD)
        among = SCHEMA.encode({name: [values[0], *values] for name, values in RECORDS.items()})
        assert np.array_equal(alone.features, among.features[0])


class TestEncode:
    def test_by_hand(self):
        x, y = SCHEMA.encode(RECORDS)
        z = [[-0.5, 1, 1, 0, 1], [1, -1, 0, 1, 1], [0.23, 1, 0, 1, 1]]
        assert x == pytest.approx(np.array(z) / 2, rel=1e-14)
        assert y.tolist() == pytest.approx([-0.5, -1, 0.23456], rel=1e-14)
        assert RICH.encode(RECORDS).target.tolist() == [1, -1, 1]
        assert SCHEMA.columns == ("age", "married", "sex=f", "sex=m", "(intercept)")
        assert SCHEMA.dimension == 5
        assert (SCHEMA.is_label, RICH.is_label) == (False, True)
        schema = Schema(FEATURES, Binary("rich"), intercept=False)
        assert schema.columns == ("age", "married", "sex=f", "sex=m")
        x, y = schema.encode({**RECORD, "rich": False})
        assert x == pytest.approx(np.array([-0.5, 1, 1, 0]) / math.sqrt(3))
        assert (y.shape, float(y)) == ((), -1)
        assert schema.is_label

    @given(st.data(), schemas())
    def test_one_record_is_a_row_of_the_table(self, data, schema):
        table = data.draw(tables(schema))
        x, y = schema.encode(table)
        for row in range(len(y)):
            one = schema.encode({name: column[row] for name, column in table.items()})
            assert one.features.tolist() == x[row].tolist()
            assert one.target.tolist() == y[row]

    @given(st.data(), schemas(), st.randoms(use_true_random=False))
    def test_the_order_of_columns_does_not_matter(self, data, schema, order):
        table = data.draw(tables(schema))
        names = order.sample([*table, "other"], len(table) + 1)
        shuffled = {name: table.get(name, ["?"]) for name in names}
        assert all(map(np.array_equal, schema.encode(table), schema.encode(shuffled)))

    def test_arrays_have_names_and_the_target_is_needed(self):
        array = np.array([RECORDS[name] for name in RECORDS], dtype=object).T
        for one, other in zip(
            SCHEMA.encode(RECORDS), SCHEMA.encode(array, [*RECORDS]), strict=True
        ):
            assert np.array_equal(one, other)
        records = {name: values for name, values in RECORDS.items() if name != "income"}
        assert "'income'" in refusal(SCHEMA.encode, records)

    def test_no_function_is_called_for_every_row(self):
        """What makes it fast; how fast it is, the benchmarks say."""
        names = [f"v{i}" for i in range(13)]
        schema = Schema([Numeric(name, -1, 1) for name in names], Numeric("y", -1, 1))
        records = np.random.default_rng(0).uniform(-2, 2, size=(2**17, 14))
        profile = cProfile.Profile()
        profile.runcall(schema.encode, records, [*names, "y"])
        assert sum(one.callcount for one in profile.getstats()) < len(records) / 10


class TestConstruction:
    def test_lists_become_tuples_and_equal_schemas_are_equal(self):
        again = Schema(tuple(FEATURES), INCOME, intercept=True)
        assert again == SCHEMA
        assert hash(again) == hash(SCHEMA)
        assert SCHEMA.features == tuple(FEATURES)
        assert Schema(FEATURES, INCOME, intercept=False) != SCHEMA
        assert pickle.loads(pickle.dumps(SCHEMA)) == SCHEMA

    def test_features_and_targets_are_columns(self):
        for features in ([], (), None, Binary("a"), {Binary("a")}):
            assert "list of at least one column" in refusal(Schema, features, INCOME)
        for feature in ("age", None, INCOME.above(3), Numeric):
            message = refusal(Schema, [feature], Binary("y"))
            assert "to be one of Numeric, Binary, Categorical" in message
        for target in ("y", None, 5):
            assert "one of Numeric, Binary, Categorical, Label" in refusal(Schema, FEATURES, target)
        for intercept in (1, None, "true"):
            assert f"intercept={intercept!r}" in refusal(Schema, FEATURES, INCOME, intercept)

    @pytest.mark.parametrize(
        ("features", "target", "name"),
        [
            ([Binary("a"), Numeric("a", 0, 1)], "y", "a"),
            ([Binary("a"), Binary("b")], "b", "b"),
            ([Categorical("a", ["b", "c"]), Binary("a=c")], "y", "a=c"),
            ([Categorical("a", ["b=c", "d"]), Categorical("a=b", ["c", "d"])], "y", "a=b=c"),
            ([Binary("(intercept)")], "y", "(intercept)"),
        ],
    )
    def test_each_name_once(self, features, target, name):
        for intercept in (True, False):
            message = refusal(Schema, features, Binary(target), intercept)
            assert f"got {name!r} twice" in message


class TestDictAndFile:
    @given(schemas())
    def test_written_and_read(self, schema):
        written = schema.to_dict()
        assert json.loads(json.dumps(written)) == written
        assert Schema.from_dict(written) == schema
        assert json.dumps(Schema.from_dict(written).to_dict()) == json.dumps(written)

    def test_the_issues_example_and_top_level_keys(self, tmp_path):
        path = tmp_path / "schema.toml"
        path.write_text(TOML, encoding="utf-8")
        assert Schema.from_toml(path) == SCHEMA
        path.write_text(TOML + "above = 37_000\n[terms]\nepsilon = 1\n", encoding="utf-8")
        assert Schema.from_toml(str(path)) == RICH
        path.write_text('intercept = false\noutside = "refuse"\n' + TOML, encoding="utf-8")
        schema = Schema.from_toml(path)
        assert not schema.intercept
        assert schema.features[0].outside == schema.target.outside == "refuse"

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("# people", 'loss = "squared"', "Unknown key 'loss'; the keys here are"),
            ("# people", "epsilon = 1", "Unknown key 'epsilon'; the keys here are"),
            ("# people", 'outside = "keep"', "outside='keep' to be one of 'clip', 'ref"),
            ("# people", "intercept = 1", "intercept=1 to be True or False"),
            ("# people", "targets = 5", "Expected targets=5 to be a list of columns"),
            ("# people", 'targets = [["age"]]', "Expected targets=[['age']] to be a list of col"),
            ("# people", "predictors = 5", "Expected predictors=5 to be a list of columns"),
            (
                "lower = 0\nupper = 100\n",
                "lower = 0\n",
                "features[0] ('age'): Expected the key 'up",
            ),
            ("upper = 100\n", "upper = nan\n", "features[0] ('age'): Expected upper=nan to be fin"),
            ("upper = 100\n", "upper = 2020-01-01\n", "features[0] ('age'): Expected upper="),
            ("upper = 100\n", "upper = 0\n", "features[0] ('age'): Expected lower=0.0 < upper=0"),
            ("upper = 100\n", "upper = 9\nabove = 3\n", "feature Label(name='age'"),
            ('levels = ["f", "m"]', 'levels = ["f"]', "features[2] ('sex'): Expected levels=['f']"),
            ('levels = ["f", "m"]', 'levles = ["f"]', "features[2] ('sex'): Expected the key 'lev"),
            ('"married"', '"age"', "got 'age' twice"),
            ('"income"', '"age"', "got 'age' twice"),
            ("upper = 200000", "upper = 200000\nabov = 3", "target ('income'): Unknown key 'abov'"),
            ("[target]", "[goal]", "Expected the key 'target'"),
            ("[[features]]", "[[columns]]", "Expected the key 'features'"),
            ("[target]", "[target", "line"),
        ],
    )
    def test_errors_say_which_file_and_entry(self, tmp_path, old, new, message):
        path = tmp_path / "schema.toml"
        assert old in TOML
        path.write_text(TOML.replace(old, new), encoding="utf-8")
        refused = refusal(Schema.from_toml, path)
        assert refused.startswith(f"{path}: ")
        assert message in refused

    def test_files_and_descriptions_that_cannot_be_read(self, tmp_path):
        path = tmp_path / "none.toml"
        assert "none.toml" in refusal(Schema.from_toml, path)
        path.write_bytes(b'loss = "\xff"')
        assert "utf-8" in refusal(Schema.from_toml, path)
        for features in ({}, "age", None, {"name": "age"}):
            message = refusal(Schema.from_dict, {"features": features, "target": INCOME.to_dict()})
            assert "to be a list of tables" in message
        for description in (None, [], "schema"):
            assert "table of keys and values" in refusal(Schema.from_dict, description)
