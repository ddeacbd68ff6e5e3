"""Columns: their scale, what they refuse, and how a file describes them."""

import json
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from blurfit import InvalidValueError, Numeric, Schema, Wording
from blurfit.schema.columns import Binary, Categorical, Label, column_from_dict
from support.refusals import refusal
from support.schemas import numerics, values

# but for what hides or reorders what is read, which is refused
LETTERS = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cf"])


class TestBinary:
    @pytest.mark.parametrize("kind", [bool, int, float, np.int8, np.uint64, np.float32, object])
    def test_zero_and_one(self, kind):
        z = Binary("old").scale(np.array([0, 1, 1], dtype=kind))
        assert z.dtype == np.float64
        assert z.tolist() == [-1, 1, 1]
        assert Binary("old").unscale(z).tolist() == [0, 1, 1]

    @pytest.mark.parametrize("value", [2, -1, 0.5, "yes", "1", "True", b"1", 1j])
    @pytest.mark.parametrize("kind", [None, object])
    def test_nothing_else(self, value, kind):
        message = refusal(Binary("old").scale, np.array([value, value], dtype=kind))
        assert "Row 0 has a value of 'old' which is neither 0 nor 1" in message


class TestCategorical:
    def test_one_column_for_each_level_of_words_or_whole_numbers(self):
        letter = Categorical("letter", ["b", "a", "c"])
        assert letter.columns == ("letter=b", "letter=a", "letter=c")
        z = letter.scale(np.array(["a", "c"]))
        assert z.tolist() == [[0, 1, 0], [0, 0, 1]]
        assert letter.unscale(z).tolist() == ["a", "c"]
        assert Categorical("room", [7, np.int64(10)]) == Categorical("room", ("7", "10"))

    @given(st.data(), st.lists(st.text(LETTERS, min_size=1), min_size=2, unique=True))
    def test_words_of_all_alphabets_return(self, data, levels):
        column = Categorical("v", levels)
        words = data.draw(st.lists(st.sampled_from(levels), min_size=1))
        z = column.scale(np.array(words, dtype=object))
        assert np.array_equal((z**2).sum(axis=1), np.ones(len(words)))
        assert column.unscale(z).tolist() == words

    @pytest.mark.parametrize("levels", [[], ["f"], ["f", "f"], ["1", 1], "fm", None, 3, {"f", "m"}])
    def test_at_least_two_and_different(self, levels):
        message = refusal(Categorical, "sex", levels)
        assert "of 'sex' to be a list of at least two words, each of them once" in message

    @pytest.mark.parametrize("level", ["", None, True, 1.5, b"f", "\ud800"])
    def test_levels_are_words(self, level):
        assert f"level={level!r} to be a word" in refusal(Categorical, "sex", ["m", level])


# ---- names
@pytest.mark.parametrize("name", ["", None, 3, b"age", "\udcff"])
def test_names_are_words(name):
    for make in (Binary, lambda n: Numeric(n, 0, 1), lambda n: Categorical(n, ["a", "b"])):
        assert f"name={name!r} to be a word" in refusal(make, name)


@pytest.mark.parametrize("harmful", ["\n", "\x1b", "\u202e", "\u2066", "\x9b", "\u2028"])
def test_names_and_levels_hide_and_reorder_nothing(harmful):
    code = f"U+{ord(harmful):04X}"
    assert code in refusal(Numeric, f"a{harmful}ge", 0, 1)
    assert code in refusal(Binary, f"a{harmful}ge")
    assert code in refusal(Categorical, "sex", ["f", f"m{harmful}"])


# ---- numbers, and labels above a threshold
def values_for(column):
    return st.lists(values(column) | st.just(column.centre), min_size=1)


class TestNumeric:
    def test_bounds_centre_and_what_is_outside(self):
        age = Numeric("age", 20, 80)
        assert age.scale(np.array([20, 50, 80, 35])).tolist() == [-1, 0, 1, -0.5]
        assert age.unscale(np.array([-1, 0, 1, -0.5])).tolist() == [20, 50, 80, 35]
        assert (age.width, age.centre) == (60, 50)
        values = np.array([3, 11, -4])
        assert Numeric("v", 0, 10).inside(values).tolist() == [3, 10, 0]
        strict = Numeric("v", 0, 10, outside="refuse")
        message = refusal(strict.scale, values)
        assert message.startswith(
            "Row 1 has a value of 'v' which is not within lower=0.0 and upper=10.0"
        )
        assert "Row 0 has a value of 'v'" in refusal(strict.scale, values[2:])
        assert strict.scale(np.array([0, 10])).tolist() == [-1, 1]

    @given(st.data(), numerics())
    @example(None, Numeric("v", 0, 1e-300))
    def test_scaled_values_stay_within_one_whatever_they_are(self, data, column):
        values = [5e-324, 1e-300, -1e308, 0.0] if data is None else data.draw(values_for(column))
        z = column.scale(np.array(values))
        assert np.abs(z).max() <= 1
        assert column.scale(np.array([column.lower, column.upper])).tolist() == [-1, 1]
        assert column.unscale(np.array([-1.0, 1.0])).tolist() == [column.lower, column.upper]

    @given(st.data(), numerics())
    def test_unscale_inverts_scale_up_to_rounding(self, data, column):
        values = np.array(data.draw(values_for(column)))
        inside = np.clip(values, column.lower, column.upper)
        back = column.unscale(column.scale(values))
        size = max(abs(column.lower), abs(column.upper))
        assert np.abs(back - inside).max() <= 4 * np.finfo(float).eps * size
        assert column.lower <= back.min()
        assert back.max() <= column.upper

    @given(st.data(), numerics())
    def test_the_affine_map_is_the_scaling(self, data, column):
        slope, constant = column.affine
        assert math.isfinite(slope)
        assert math.isfinite(constant)
        value = data.draw(st.floats(column.lower, column.upper))
        z = column.scale(np.array([value]))[0]
        rounding = 8 * np.finfo(float).eps * (1 + abs(slope * value) + abs(constant))
        assert slope * value + constant == pytest.approx(z, rel=0, abs=rounding)

    def test_the_scale_neither_looks_at_the_data_nor_changes_them(self):
        age = Numeric("age", 0, 100)
        few, many = (
            age.scale(np.array([50.0, 60.0])),
            age.scale(np.array([-9.0, 50.0, 60.0, 999.0])),
        )
        assert few.tolist() == many[1:3].tolist()
        values = np.array([-5.0, 5.0])
        values.setflags(write=False)
        assert Numeric("v", 0, 1).scale(values).tolist() == [-1, 1]
        assert Numeric("v", -9, 9).scale(values).tolist() == pytest.approx([-5 / 9, 5 / 9])

    @pytest.mark.parametrize(
        ("lower", "upper"),
        [(1, 1), (2, 1), (0.0, -0.0), (2**53, 2**53 + 1), (0, 5e-324), (-1.7e308, 1.7e308)],
    )
    def test_bounds_must_lie_apart(self, lower, upper):
        message = refusal(Numeric, "age", lower, upper)
        assert f"lower={float(lower)!r} < upper={float(upper) + 0.0!r} for 'age'" in message

    def test_bounds_are_numbers_and_outside_is_one_of_two_words(self):
        for bound in (math.nan, math.inf, -math.inf, "1", None, True, 10**400):
            assert "Expected lower" in refusal(Numeric, "age", bound, 1)
            assert "Expected upper" in refusal(Numeric, "age", 0, bound)
        for outside in ("Clip", None, "", ["clip"]):
            assert "'clip', 'refuse'" in refusal(Numeric, "age", 0, 1, outside=outside)

    def test_equal_columns_are_written_alike(self):
        plain, other = Numeric("v", 0, 1), Numeric(np.str_("v"), np.float64(-0.0), np.int8(1))
        assert plain == other
        assert hash(plain) == hash(other)
        assert json.dumps(plain.to_dict()) == json.dumps(other.to_dict())


class TestLabel:
    def test_above_and_not_and_outside_as_the_column_says(self):
        rich = Numeric("income", 0, 100).above(40)
        assert rich == Label("income", 0, 100, 40)
        assert rich.scale(np.array([39, 40, np.nextafter(40, 41), 1e9])).tolist() == [-1, -1, 1, 1]
        assert rich.unscale(np.array([-1.0, 1.0])).tolist() == [False, True]
        strict = Numeric("income", 0, 100, outside="refuse").above(40)
        assert "Row 1 has a value of 'income'" in refusal(strict.scale, np.array([1, 101]))
        assert "missing" in refusal(strict.scale, np.array([np.nan]))
        assert "not finite" in refusal(Numeric("income", 0, 1).above(0.5).scale, np.array([np.inf]))

    def test_the_threshold_is_a_number_between_the_bounds(self):
        above = Numeric("income", 0, 100).above
        for one in (0, 100, -1, 101):
            assert f"threshold={float(one)!r} for 'income' strictly between" in refusal(above, one)
        for one in (math.nan, math.inf, "40", None, True):
            assert "Expected threshold=" in refusal(above, one)
        assert "lower=5.0 < upper=1.0" in refusal(Label, "income", 5, 1, 3)
        assert "outside=None" in refusal(Label, "income", 0, 1, 0.5, outside=None)


# ---- columns as a file describes them
ENTRY = {"name": "age", "kind": "numeric", "lower": 0, "upper": 100}


class TestFromDict:
    def test_words_and_whether_it_need_be_said(self):
        words = {"question": {"en": "How old?", "de": "Wie alt?"}, "unit": "years"}
        found = column_from_dict("", ENTRY | {"optional": True} | words)
        assert found == Numeric("age", 0, 100, optional=True, wording=Wording(**words))
        assert found.to_dict() == {**ENTRY, "outside": "clip", "optional": True, **words}

    def test_outside_by_default_and_by_name(self):
        assert column_from_dict("", ENTRY).outside == "clip"
        assert column_from_dict("", ENTRY, "refuse").outside == "refuse"
        assert column_from_dict("", ENTRY | {"outside": "clip"}, "refuse").outside == "clip"
        assert column_from_dict("", ENTRY | {"above": 30}, "refuse").outside == "refuse"
        label = column_from_dict("", ENTRY | {"above": 30, "labels": {"yes": "old"}})
        assert label.wording.label("yes") == "old"
        assert column_from_dict("", label.to_dict()) == label

    @pytest.mark.parametrize(
        ("entry", "message"),
        [
            (ENTRY | {"uper": 3}, " ('age'): Unknown key 'uper'; the keys here are"),
            (ENTRY | {"levels": ["a"]}, " ('age'): Unknown key 'levels'"),
            (ENTRY | {"kind": "real"}, " ('age'): Expected kind='real' to be one of"),
            (ENTRY | {"kind": ["x"]}, " ('age'): Expected kind=['x'] to be one of"),
            (ENTRY | {"lower": "0"}, " ('age'): Expected lower='0' to be a real"),
            (ENTRY | {"above": 300}, " ('age'): Expected threshold=300.0 for 'age'"),
            (ENTRY | {"optional": 1}, " ('age'): Expected optional=1 to be True or"),
            (ENTRY | {"optional": True, "above": 3}, " ('age'): Expected 'age' not to be optional"),
            (ENTRY | {"labels": {"yes": "Yes"}}, " ('age'): Expected labels of 'age' for its an"),
            ({"name": "a", "kind": "numeric", "lower": 0}, " ('a'): Expected the key 'upper'"),
            ({"name": "a", "kind": "binary", "lower": 0}, " ('a'): Unknown key 'lower'"),
            ({"name": "a", "kind": "binary", "unit": "years"}, " ('a'): Expected no unit for 'a'"),
            ({"name": "a", "kind": "binary", "labels": "x"}, " ('a'): Expected labels="),
            ({"name": "a", "kind": "binary", "labels": ["yes"]}, " ('a'): Expected labels=["),
            ({"name": "a", "kind": "binary", "labels": [5]}, " ('a'): Expected labels=[5]"),
            ({"name": "a", "kind": "categorical"}, " ('a'): Expected the key 'levels'"),
            ({"name": "a"}, ": Expected the key 'kind' besides 'name'"),
            ({"kind": "binary"}, ": Expected the key 'name' besides 'kind'"),
            ({"name": 3, "kind": "binary"}, " (3): Expected name=3 to be a word"),
            ("age", ": Expected a table of keys and values, and got 'age'"),
        ],
    )
    def test_errors_say_which_entry(self, entry, message):
        assert refusal(column_from_dict, "features[1]", entry).startswith(f"features[1]{message}")


@pytest.mark.parametrize("alike", ["cafe\u0301", "caf\u00e9\u200b", "caf\u200d\u00e9"])
def test_names_and_levels_that_look_alike_are_one(alike):
    name = "caf\u00e9"
    with pytest.raises(InvalidValueError, match="each of them once"):
        Categorical("drink", [name, alike])
    with pytest.raises(InvalidValueError, match="each name once"):
        Schema([Numeric(name, 0, 1), Numeric(alike, 0, 1)], Numeric("y", 0, 1))
    assert Schema([Numeric(alike, 0, 1)], Numeric("y", 0, 1)).features[0].name == alike
