import subprocess
import sys
from collections import OrderedDict
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from blurfit.schema.columns import numbers
from blurfit.schema.table import codes, missing, read
from support.refusals import refusal

NAMES = ["age", "married", "sex"]
AGE, MARRIED, SEX = [30.5, 41.0, 0.0], [True, False, True], ["f", "m", "f"]
LISTS = {"age": AGE, "married": MARRIED, "sex": SEX}
FRAME = pd.DataFrame(LISTS)
FIELDS = [("age", "f8"), ("married", "?"), ("sex", "U1")]
STRUCTURED = np.array(list(zip(AGE, MARRIED, SEX, strict=True)), dtype=FIELDS)
OBJECTS = np.array([AGE, MARRIED, SEX], dtype=object).T

TABLES = {
    "dict of lists": LISTS,
    "ordered dict of tuples": OrderedDict((name, tuple(column)) for name, column in LISTS.items()),
    "dict of arrays": {name: np.array(column) for name, column in LISTS.items()},
    "dict of pandas series": dict(FRAME.items()),
    "dict of polars series": {name: pl.Series(column) for name, column in LISTS.items()},
    "dict of arrow arrays": {name: pa.array(column) for name, column in LISTS.items()},
    "pandas": FRAME,
    "pandas, odd index": FRAME.set_index(pd.Index([7, 7, 1])),
    "pandas, nullable": FRAME.astype({"age": "Float64", "married": "boolean", "sex": "string"}),
    "pandas, categories": FRAME.astype({"sex": "category"}),
    "pandas, objects": FRAME.astype(object),
    "polars": pl.DataFrame(LISTS),
    "polars, categories": pl.DataFrame(LISTS).with_columns(pl.col("sex").cast(pl.Categorical)),
    "arrow": pa.table(LISTS),
    "arrow, chunks": pa.concat_tables([pa.table(LISTS).slice(0, 1), pa.table(LISTS).slice(1)]),
    "arrow, dictionary": pa.table(LISTS | {"sex": pa.array(SEX).dictionary_encode()}),
    "arrow batch": pa.table(LISTS).to_batches()[0],
    "structured": STRUCTURED,
    "record array": STRUCTURED.view(np.recarray),
    "masked, nothing hidden": STRUCTURED.view(np.ma.MaskedArray),
}


class TestRead:
    @pytest.mark.parametrize("kind", TABLES)
    def test_every_kind_of_table_has_the_same_columns(self, kind):
        table = read(TABLES[kind], ["sex", "age", "married"])
        assert list(table.columns) == ["sex", "age", "married"]
        assert (table.rows, table.single) == (3, False)
        assert table.columns["age"].tolist() == AGE
        assert table.columns["married"].tolist() == MARRIED
        assert table.columns["sex"].tolist() == SEX

    def test_arrays_have_their_names_beside_them(self):
        table = read(OBJECTS[:, [2, 0, 1]], ["age", "sex"], names=["sex", "age", "married"])
        assert table.columns["age"].tolist() == AGE
        assert table.columns["sex"].tolist() == SEX
        assert table.rows == 3

    @pytest.mark.parametrize(
        ("record", "names"),
        [
            ({"age": 30.5, "married": True, "sex": "f"}, None),
            ({"sex": np.str_("f"), "married": np.bool_(1), "age": np.array(30.5)}, None),
            (dict(FRAME.iloc[0]), None),
            (STRUCTURED[0], None),
            (STRUCTURED.view(np.recarray)[0], None),
            (OBJECTS[0], NAMES),
        ],
    )
    def test_one_record(self, record, names):
        table = read(record, NAMES, names)
        assert (table.rows, table.single) == (1, True)
        assert [table.columns[name].tolist() for name in NAMES] == [[30.5], [True], ["f"]]

    def test_one_row_is_a_table_whatever_else_there_is(self):
        assert not read({"age": [3]}, ["age"]).single
        records = {"age": [1, 2], "junk": [[1], [2, 3], object()], "empty": None}
        assert read(records, ["age"]).rows == 2
        assert read(np.zeros((3, 3)), ["b"], names=["a", "b", "a"]).rows == 3

    def test_a_missing_column_is_named_and_those_that_there_are_only_counted(self):
        """Without a heading, they are the first record's answers."""
        message = refusal(read, {"Age": [1], "income": [2]}, ["age", "income", "sex"])
        assert "'age', 'sex'" in message
        assert "none of the 2 columns" in message
        assert "Age" not in message
        assert "none of the 0 columns" in refusal(read, {}, ["age"])

    def test_a_wanted_name_must_be_there_once(self):
        message = refusal(read, np.zeros((3, 2)), ["age"], ["age", "age"])
        assert "one column 'age', and there are 2" in message

    @pytest.mark.parametrize(
        "records",
        [
            pd.DataFrame(np.zeros((3, 2)), columns=["age", "age"]),
            pa.table([pa.array([1]), pa.array([2])], names=["age", "age"]),
            pa.table([pa.array([1]), pa.array([2])], names=["age", "age"]).to_batches()[0],
        ],
    )
    def test_columns_of_a_frame_have_different_names(self, records):
        message = refusal(read, records, ["height"])
        assert "column names that differ" in message
        assert "age" not in message

    @pytest.mark.parametrize(
        "records",
        [{"age": []}, FRAME[:0], pl.DataFrame(FRAME[:0]), pa.table(FRAME[:0]), STRUCTURED[:0]],
    )
    def test_no_rows(self, records):
        assert "0 rows" in refusal(read, records, ["age"])
        assert "0 rows" in refusal(read, np.zeros((0, 1)), ["age"], names=["age"])

    def test_columns_have_one_length_and_are_no_single_values(self):
        message = refusal(read, {"age": [1, 2], "sex": ["f"]}, ["age", "sex"])
        assert "'sex' has 1 rows where 'age' has 2" in message
        message = refusal(read, {"age": [1, 2], "sex": "f"}, ["age", "sex"])
        assert "'sex' is a single value where 'age' is a column" in message

    @pytest.mark.parametrize(
        "column", [[[1, 2], [3, 4]], [[1, 2], [3]], {1, 2}, {"a": 1}, np.zeros((2, 2))]
    )
    def test_one_value_for_each_record(self, column):
        assert "'age' to have one value for each record" in refusal(read, {"age": column}, ["age"])

    def test_arrays_need_names_and_as_many_as_columns(self):
        assert "Expected names=" in refusal(read, np.zeros((3, 2)), ["age"])
        message = refusal(read, np.zeros((3, 2)), ["age"], names=["age"])
        assert "shape (n, 1)" in message
        assert "(3, 2)" in message
        assert "(1, 1, 1)" in refusal(read, np.zeros((1, 1, 1)), ["age"], names=["age"])

    @pytest.mark.parametrize("records", [LISTS, FRAME, STRUCTURED, TABLES["arrow"]])
    def test_names_are_for_plain_arrays(self, records):
        assert "only with a plain NumPy array" in refusal(read, records, ["age"], names=NAMES)

    @pytest.mark.parametrize(
        "records", [[LISTS], FRAME["age"], pl.DataFrame(LISTS).lazy(), None, 3, "age", iter([])]
    )
    def test_nothing_else_is_a_table(self, records):
        message = refusal(read, records, ["age"])
        assert f"got a {type(records).__name__}" in message

    def test_numbers_beside_words_stay_numbers(self):
        assert read({"a": [1, "x", None]}, ["a"]).columns["a"].tolist() == [1, "x", None]
        assert read({"a": [1, "x"]}, ["a"]).columns["a"].tolist() == [1, "x"]
        assert read({"a": (np.nan, "x")}, ["a"]).columns["a"].tolist()[1] == "x"

    def test_no_library_of_tables_is_imported(self):
        known = "{'pandas', 'polars', 'pyarrow', 'narwhals'}"
        program = f"import sys, blurfit.schema.schema; assert not {known} & set(sys.modules)"
        subprocess.run([sys.executable, "-c", program], check=True)


def column(values, kind=None):
    return np.array(values, dtype=kind)


MISSING = {
    "None": [1, None, 2],
    "nan": [1.0, np.nan, 2.0],
    "nan among words": ["f", np.nan, "m"],
    "nan among objects": np.array([1, np.nan, 2], dtype=object),
    "float32": np.array([1, np.nan, 2], dtype=np.float32),
    "pandas NA": [1, pd.NA, 2],
    "pandas NaT": [1, pd.NaT, 2],
    "NaT": np.array(["2020-01-01", "NaT", "2020-01-02"], dtype="M8[ns]"),
    "duration": np.array([1, "NaT", 2], dtype="m8[s]"),
    "decimal": [Decimal(1), Decimal("nan"), Decimal(2)],
    "signalling": [Decimal(1), Decimal("sNaN"), Decimal(2)],
    "masked": np.ma.MaskedArray([1.0, 2.0, 1.0], mask=[False, True, False]),
    "masked words": np.ma.MaskedArray(["f", "m", "f"], mask=[False, True, False]),
    "pandas Int64": pd.Series([1, None, 2], dtype="Int64"),
    "pandas boolean": pd.Series([True, None, False], dtype="boolean"),
    "pandas str": pd.Series(["f", None, "m"]),
    "pandas category": pd.Series(["f", None, "m"], dtype="category"),
    "polars Int64": pl.Series([1, None, 2]),
    "polars String": pl.Series(["f", None, "m"]),
    "polars Boolean": pl.Series([True, None, False]),
    "arrow int64": pa.chunked_array([[1, None, 2]]),
    "arrow string": pa.array(["f", None, "m"]),
    "arrow bool": pa.array([True, None, False]),
    "arrow date": pa.array([0, None, 1], type=pa.date32()),
    "arrow decimal": pa.array([Decimal(1), None, Decimal(2)]),
}


class TestMissing:
    @pytest.mark.parametrize("kind", MISSING)
    @pytest.mark.parametrize("take", [numbers, lambda *given: codes(*given, ["f", "m", "1", "2"])])
    def test_is_refused_with_its_name_and_row(self, kind, take):
        values = read({"height": MISSING[kind]}, ["height"]).columns["height"]
        message = refusal(take, "height", values)
        assert message.startswith("Row 1 has a missing value of 'height'")

    @pytest.mark.parametrize(
        "kind", [kind for kind in MISSING if kind.startswith(("pandas ", "polars", "arrow"))]
    )
    @pytest.mark.parametrize("take", [numbers, lambda *given: codes(*given, ["f", "m", "1", "2"])])
    def test_in_a_frame_of_each_library(self, kind, take):
        frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[kind.split()[0]]
        records = frame({"height": MISSING[kind]})
        values = read(records, ["height"]).columns["height"]
        assert missing(values).tolist() == [False, True, False]
        message = refusal(take, "height", values)
        assert message.startswith("Row 1 has a missing value of 'height'")

    @pytest.mark.parametrize("value", [None, np.nan, pd.NA, pd.NaT, np.ma.masked])
    def test_in_one_record(self, value):
        values = read({"height": value}, ["height"]).columns["height"]
        assert "Row 0 has a missing value of 'height'" in refusal(numbers, "height", values)
        assert "missing value" in refusal(codes, "height", values, ["f", "m"])

    def test_under_a_mask_of_an_array_with_names(self):
        array = np.ma.MaskedArray([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 0], [0, 1]])
        values = read(array, ["b"], names=["a", "b"]).columns["b"]
        assert "Row 1 has a missing value of 'b'" in refusal(numbers, "b", values)
        values = read(array[1], ["b"], names=["a", "b"]).columns["b"]
        assert "Row 0 has a missing value of 'b'" in refusal(numbers, "b", values)


class TestNumbers:
    @pytest.mark.parametrize(
        "values",
        [
            column([0, 1, 2], kind)
            for kind in ("i1", "u8", "f2", "f4", "f8", ">f8", np.longdouble, object)
        ]
        + [column([Decimal(0), Fraction(1), np.float32(2)], object)],
    )
    def test_of_any_kind(self, values):
        taken = numbers("age", values)
        assert taken.dtype == np.float64
        assert taken.tolist() == [0, 1, 2]

    def test_truth_values_are_0_and_1_and_floats_are_not_copied(self):
        assert numbers("age", column([True, False])).tolist() == [1, 0]
        assert numbers("age", column([True, np.bool_(0)], object)).tolist() == [1, 0]
        values = np.arange(3.0)
        assert numbers("age", values) is values

    @pytest.mark.parametrize("value", [np.inf, -np.inf])
    @pytest.mark.parametrize("kind", ["f8", "f4", object])
    def test_infinities(self, value, kind):
        message = refusal(numbers, "age", column([1, value, value], kind))
        assert message.startswith("Row 1 has a value of 'age' which is not finite")

    def test_whole_numbers_beyond_floats_and_words_are_named(self):
        message = refusal(numbers, "age", column([1, -(10**400)], object))
        assert message.startswith("Row 1 has a value of 'age' which is not finite")
        assert numbers("age", column([2**70], object)).tolist() == [2.0**70]
        message = refusal(numbers, "age", read({"age": [1, 2.5, "x", "y"]}, ["age"]).columns["age"])
        assert message.startswith("Row 2 has a value of 'age' which is not a number")

    @pytest.mark.parametrize(
        "values", [["x", "y"], ["12", "13"], [b"1", b"2"], [1j, 2j], [{}, {}], [object(), object()]]
    )
    @pytest.mark.parametrize("kind", [None, object])
    def test_nothing_else_is_a_number(self, values, kind):
        message = refusal(numbers, "age", column(values, kind))
        assert message.startswith("Row 0 has a value of 'age'")
        assert "which is not a number" in message

    @pytest.mark.parametrize("kind", ["M8[ns]", "M8[D]", "m8[ns]", "m8[s]"])
    def test_dates_are_no_numbers(self, kind):
        values = column([1, 2], kind)
        assert "which is not a number" in refusal(numbers, "age", values)
        assert "which is not a number" in refusal(numbers, "age", np.array(list(values), object))


class TestCodes:
    @pytest.mark.parametrize(
        "values",
        [
            column(["b", "a", "b"]),
            column(["b", "a", "b"], object),
            column(["b", "a", "b"], np.dtypes.StringDType()),
            column([np.str_("b"), "a", "b"], object),
        ],
    )
    def test_words(self, values):
        assert codes("letter", values, ["a", "b"]).tolist() == [1, 0, 1]

    @pytest.mark.parametrize("kind", ["i8", "u1", "f8", "f4", object])
    def test_whole_numbers_are_words(self, kind):
        assert codes("room", column([7, 10, 7], kind), ["10", "7"]).tolist() == [1, 0, 1]

    def test_other_spellings_and_equal_values_are_different_words(self):
        for value, levels in ((7, ["07", "7.0"]), (7.5, ["7", "7.5"])):
            message = refusal(codes, "room", column([value]), levels)
            assert "a value of 'room' which is none" in message
        mixed = column([True, 1, 1.0, "1", np.int64(1), np.bool_(1)], object)
        assert codes("odd", mixed, ["1", "True"]).tolist() == [1, 0, 0, 0, 0, 1]
        values = np.empty(1, dtype=object)
        values[0] = ["f"]
        assert "'sex' to contain words" in refusal(codes, "sex", values, ["f", "m"])

    @pytest.mark.parametrize("values", [["f", "x", "y"], ["f", b"m"], ["f", ""], ["f", "F"]])
    def test_unknown_levels(self, values):
        message = refusal(codes, "sex", column(values, object), ["f", "m"])
        assert message.startswith("Row 1 has a value of 'sex' which is none of its levels 'f', 'm'")
