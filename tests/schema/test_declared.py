import math

import pytest

from blurfit.errors import InvalidValueError
from blurfit.schema.columns import Binary, Categorical, Numeric, as_level, as_number, as_text


def refusal(call, *arguments, **named) -> str:
    with pytest.raises(InvalidValueError) as refused:
        call(*arguments, **named)
    return str(refused.value)


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


def test_zero_has_no_sign_and_numbers_are_finite() -> None:
    assert math.copysign(1, as_number(lower=-0.0)) == 1
    assert "at most 1.8e308" in refusal(as_number, lower=10**400)
    assert "Expected lower" in refusal(as_number, lower=math.nan)


def test_whole_numbers_are_written_out_as_levels() -> None:
    assert (as_level(7), as_level("7"), as_text(level="7")) == ("7", "7", "7")
    assert "level=True to be a word" in refusal(as_level, True)
