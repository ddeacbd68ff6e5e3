import math

import numpy as np
import pytest

from blurfit import InvalidValueError, validate


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "1", None, True, np.bool_(1), 1j])
def test_only_finite_real_numbers(value) -> None:
    for check in (validate.finite, validate.positive, validate.nonnegative):
        with pytest.raises(InvalidValueError, match="Expected share="):
            check(share=value)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.int64(3)])
def test_numbers_of_all_kinds_pass(value) -> None:
    validate.finite(a=value)
    validate.positive(a=value)
    validate.nonnegative(a=0, b=value)


def test_messages_are_written_by_the_call() -> None:
    with pytest.raises(InvalidValueError, match=r"^Expected epsilon=-1 > 0\.$"):
        validate.positive(delta=1, epsilon=-1)
    with pytest.raises(InvalidValueError, match=r"^Expected ridge=-0\.5 >= 0\.$"):
        validate.nonnegative(ridge=-0.5)
    with pytest.raises(InvalidValueError, match=r"^Expected split=1 strictly between 0 and 1\.$"):
        validate.inside_unit_interval(split=1)
    with pytest.raises(InvalidValueError, match="rule='x' to be one of 'a', 'b'"):
        validate.one_of(("a", "b"), rule="x")


@pytest.mark.parametrize("value", [0, -1, 1.0, "3", None, True])
def test_whole_numbers(value) -> None:
    validate.whole(quorum=np.int64(3))
    with pytest.raises(InvalidValueError, match=r"quorum=.* to be a whole number >= 1"):
        validate.whole(quorum=value)


@pytest.mark.parametrize("value", [0, 7, np.int64(3)])
def test_whole_from_zero_takes(value) -> None:
    validate.whole_from_zero(count=value)


@pytest.mark.parametrize("value", [-1, 1.0, "1", True, None, np.True_])
def test_whole_from_zero_refuses(value) -> None:
    with pytest.raises(InvalidValueError, match="whole number >= 0"):
        validate.whole_from_zero(count=value)
