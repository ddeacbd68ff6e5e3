import json
import math

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from blurfit.errors import InvalidValueError
from blurfit.schema.columns import Label, Numeric

HUGE = 1e300
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def numerics(draw):
    """Bounds of every size: huge, tiny, and a few representable numbers apart."""
    lower = draw(st.floats(-HUGE, HUGE))
    steps = st.integers(1, 5).map(lambda n: lower + n * math.ulp(lower))
    upper = draw(st.one_of(st.floats(-HUGE, HUGE), steps))
    assume(upper - lower >= 1e-300)
    return Numeric("v", lower, upper)


def values_for(column):
    ends = st.sampled_from([column.lower, column.upper, column.centre])
    return st.lists(st.one_of(ends, st.floats(column.lower, column.upper), FINITE), min_size=1)


def refusal(call, *arguments, **named) -> str:
    with pytest.raises(InvalidValueError) as refused:
        call(*arguments, **named)
    return str(refused.value)


class TestNumeric:
    def test_bounds_and_centre(self):
        age = Numeric("age", 20, 80)
        assert age.scale(np.array([20, 50, 80, 35])).tolist() == [-1, 0, 1, -0.5]
        assert age.unscale(np.array([-1, 0, 1, -0.5])).tolist() == [20, 50, 80, 35]
        assert (age.width, age.centre) == (60, 50)

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

    def test_the_scale_does_not_look_at_the_data(self):
        age = Numeric("age", 0, 100)
        few, many = (
            age.scale(np.array([50.0, 60.0])),
            age.scale(np.array([-9.0, 50.0, 60.0, 999.0])),
        )
        assert few.tolist() == many[1:3].tolist()

    def test_what_is_given_is_not_changed(self):
        values = np.array([-5.0, 5.0])
        values.setflags(write=False)
        assert Numeric("v", 0, 1).scale(values).tolist() == [-1, 1]
        assert Numeric("v", -9, 9).scale(values).tolist() == pytest.approx([-5 / 9, 5 / 9])

    def test_outside_is_clipped_or_refused(self):
        values = np.array([3, 11, -4])
        assert Numeric("v", 0, 10).inside(values).tolist() == [3, 10, 0]
        strict = Numeric("v", 0, 10, outside="refuse")
        message = refusal(strict.scale, values)
        assert message.startswith(
            "Row 1 has a value of 'v' which is not within lower=0.0 and upper=10.0"
        )
        assert "Row 0 has a value of 'v'" in refusal(strict.scale, values[2:])
        assert strict.scale(np.array([0, 10])).tolist() == [-1, 1]

    @pytest.mark.parametrize("value", [np.inf, -np.inf])
    def test_infinities_are_not_clipped(self, value):
        assert "not finite" in refusal(Numeric("v", 0, 1).scale, np.array([0.5, value]))

    @pytest.mark.parametrize(
        ("lower", "upper"),
        [(1, 1), (2, 1), (0.0, -0.0), (2**53, 2**53 + 1), (0, 5e-324), (-1.7e308, 1.7e308)],
    )
    def test_bounds_must_lie_apart(self, lower, upper):
        message = refusal(Numeric, "age", lower, upper)
        assert f"lower={float(lower)!r} < upper={float(upper) + 0.0!r} for 'age'" in message

    @pytest.mark.parametrize("bound", [math.nan, math.inf, -math.inf, "1", None, True, 10**400])
    def test_bounds_must_be_numbers(self, bound):
        assert "Expected lower" in refusal(Numeric, "age", bound, 1)
        assert "Expected upper" in refusal(Numeric, "age", 0, bound)

    @pytest.mark.parametrize("outside", ["Clip", None, "", ["clip"]])
    def test_outside_is_one_of_two_words(self, outside):
        assert "'clip', 'refuse'" in refusal(Numeric, "age", 0, 1, outside=outside)

    def test_equal_columns_are_written_alike(self):
        plain, other = Numeric("v", 0, 1), Numeric(np.str_("v"), np.float64(-0.0), np.int8(1))
        assert plain == other
        assert hash(plain) == hash(other)
        assert json.dumps(plain.to_dict()) == json.dumps(other.to_dict())


class TestLabel:
    def test_above_and_not(self):
        rich = Numeric("income", 0, 100).above(40)
        assert rich == Label("income", 0, 100, 40)
        assert rich.scale(np.array([39, 40, np.nextafter(40, 41), 1e9])).tolist() == [-1, -1, 1, 1]
        assert rich.unscale(np.array([-1.0, 1.0])).tolist() == [False, True]

    def test_the_column_says_what_to_do_outside(self):
        strict = Numeric("income", 0, 100, outside="refuse").above(40)
        assert "Row 1 has a value of 'income'" in refusal(strict.scale, np.array([1, 101]))
        assert "missing" in refusal(strict.scale, np.array([np.nan]))
        assert "not finite" in refusal(Numeric("income", 0, 1).above(0.5).scale, np.array([np.inf]))

    @pytest.mark.parametrize("threshold", [0, 100, -1, 101])
    def test_the_threshold_lies_between_the_bounds(self, threshold):
        message = refusal(Numeric("income", 0, 100).above, threshold)
        assert f"threshold={float(threshold)!r} for 'income' strictly between" in message

    @pytest.mark.parametrize("threshold", [math.nan, math.inf, "40", None, True])
    def test_the_threshold_is_a_number(self, threshold):
        assert "Expected threshold=" in refusal(Numeric("income", 0, 100).above, threshold)

    def test_its_bounds_are_checked_too(self):
        assert "lower=5.0 < upper=1.0" in refusal(Label, "income", 5, 1, 3)
        assert "outside=None" in refusal(Label, "income", 0, 1, 0.5, outside=None)
