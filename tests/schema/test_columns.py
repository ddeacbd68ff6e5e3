import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blurfit.errors import InvalidValueError
from blurfit.schema.columns import Binary, Categorical, Label, Numeric, column_from_dict

# but for what hides or reorders what is read, which is refused
LETTERS = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cf"])


def refusal(call, *arguments, **named) -> str:
    with pytest.raises(InvalidValueError) as refused:
        call(*arguments, **named)
    return str(refused.value)


class TestBinary:
    @pytest.mark.parametrize("kind", [bool, int, float, np.int8, np.uint64, np.float32, object])
    def test_zero_and_one(self, kind):
        z = Binary("old").scale(np.array([0, 1, 1], dtype=kind))
        assert z.dtype == np.float64
        assert z.tolist() == [-1, 1, 1]
        assert Binary("old").unscale(z).tolist() == [0, 1, 1]

    def test_truth_values_among_objects(self):
        values = np.array([True, np.bool_(False), 1, 0.0], dtype=object)
        assert Binary("old").scale(values).tolist() == [1, -1, 1, -1]

    @pytest.mark.parametrize("value", [2, -1, 0.5, "yes", "1", "True", b"1", 1j])
    @pytest.mark.parametrize("kind", [None, object])
    def test_nothing_else(self, value, kind):
        message = refusal(Binary("old").scale, np.array([value, value], dtype=kind))
        assert "Row 0 has a value of 'old' which is neither 0 nor 1" in message

    def test_the_first_other_value_is_named(self):
        assert "Row 2 has a value of 'old'" in refusal(Binary("old").scale, np.array([0, 1, 7, 8]))

    def test_missing_and_infinite_values_are_called_so(self):
        assert "Row 1 has a missing value of 'old'" in refusal(
            Binary("old").scale, np.array([1, np.nan])
        )
        assert "not finite" in refusal(Binary("old").scale, np.array([1, np.inf]))


class TestCategorical:
    def test_one_column_for_each_level(self):
        letter = Categorical("letter", ["b", "a", "c"])
        assert letter.columns == ("letter=b", "letter=a", "letter=c")
        z = letter.scale(np.array(["a", "c"]))
        assert z.tolist() == [[0, 1, 0], [0, 0, 1]]
        assert letter.unscale(z).tolist() == ["a", "c"]

    @given(
        st.data(),
        st.lists(st.text(LETTERS, min_size=1), min_size=2, unique=True),
    )
    def test_words_of_all_alphabets_return(self, data, levels):
        column = Categorical("v", levels)
        words = data.draw(st.lists(st.sampled_from(levels), min_size=1))
        z = column.scale(np.array(words, dtype=object))
        assert np.array_equal((z**2).sum(axis=1), np.ones(len(words)))
        assert column.unscale(z).tolist() == words

    def test_levels_may_be_given_as_whole_numbers(self):
        assert Categorical("room", [7, np.int64(10)]) == Categorical("room", ("7", "10"))

    @pytest.mark.parametrize("levels", [[], ["f"], ["f", "f"], ["1", 1], "fm", None, 3, {"f", "m"}])
    def test_at_least_two_and_different(self, levels):
        message = refusal(Categorical, "sex", levels)
        assert "of 'sex' to be a list of at least two words, each of them once" in message

    @pytest.mark.parametrize("level", ["", None, True, 1.5, b"f", "\ud800"])
    def test_levels_are_words(self, level):
        assert f"level={level!r} to be a word" in refusal(Categorical, "sex", ["m", level])

    def test_unknown_level(self):
        message = refusal(Categorical("sex", ["f", "m"]).scale, np.array(["m", "x"]))
        assert message.startswith("Row 1 has a value of 'sex' which is none of its levels 'f', 'm'")


COLUMNS = [
    Numeric("v", -1, 1e300, outside="refuse"),
    Numeric("v", 0.1, 0.3),
    Binary("ü"),
    Categorical("c", ["1", "b", "ÿ"]),
    Label("l", 0, 1, 0.25, outside="refuse"),
]


class TestAll:
    @pytest.mark.parametrize("column", COLUMNS, ids=str)
    def test_written_and_read(self, column):
        written = column.to_dict()
        assert json.loads(json.dumps(written)) == written
        assert column_from_dict("target", written) == column
        assert pickle.loads(pickle.dumps(column)) == column

    @pytest.mark.parametrize("column", COLUMNS, ids=str)
    def test_frozen(self, column):
        with pytest.raises(AttributeError):
            column.name = "other"
