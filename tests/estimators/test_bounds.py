import numpy as np
import pytest

from blurfit import InvalidValueError
from blurfit.estimators.bounds import bounded_columns

NAMES = ["age", "hours", "children"]


@pytest.mark.parametrize(
    "bounds",
    [
        (0, [10, 20, 30]),
        ([0, 0, 0], (10, 20, 30)),
        [0.0, np.array([10, 20, 30])],
        np.array([[0, 0, 0], [10, 20, 30]]),
    ],
)
def test_one_number_or_one_for_each_column(bounds) -> None:
    columns = bounded_columns("bounds", bounds, NAMES)
    assert [(c.name, c.lower, c.upper) for c in columns] == [
        ("age", 0, 10),
        ("hours", 0, 20),
        ("children", 0, 30),
    ]
    assert all(column.outside == "clip" for column in columns)


def test_missing_bounds_are_an_error_that_says_why() -> None:
    with pytest.raises(InvalidValueError, match=r"bounds=\(lower, upper\).*never taken from the"):
        bounded_columns("bounds", None, NAMES)
    with pytest.raises(ValueError, match="publicly known"):
        bounded_columns("target_bounds", None, ["y"])


@pytest.mark.parametrize("bad", [5, (1, 2, 3), "ab", {0: 1, 2: 3}, (1,), object()])
def test_what_is_no_pair(bad) -> None:
    with pytest.raises(InvalidValueError, match="bounds"):
        bounded_columns("bounds", bad, NAMES)


@pytest.mark.parametrize("bad", [[1, 2], [[1, 2, 3]], [1, 2, 3, 4]])
def test_wrong_length(bad) -> None:
    with pytest.raises(InvalidValueError, match=r"bounds\[1\] to be one number or 3"):
        bounded_columns("bounds", (0, bad), NAMES)


@pytest.mark.parametrize("bad", ["x", None, [1, None, 3], [[1], [2, 3]]])
def test_what_is_no_number(bad) -> None:
    with pytest.raises(InvalidValueError, match=r"bounds\[0\]"):
        bounded_columns("bounds", (bad, 9), NAMES)


@pytest.mark.parametrize("upper", [[9, 0, 9], [9, -1, 9]])
def test_lower_is_below_upper_and_the_column_is_named(upper) -> None:
    with pytest.raises(InvalidValueError, match=r"bounds: Expected lower=0.0 < .* for 'hours'"):
        bounded_columns("bounds", (0, upper), NAMES)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_bounds_are_finite(bad) -> None:
    with pytest.raises(InvalidValueError, match=r"bounds\[1\]=.* to be finite"):
        bounded_columns("bounds", (0, bad), NAMES)
