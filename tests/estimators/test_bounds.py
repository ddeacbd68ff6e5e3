import numpy as np
import pytest

from blurfit import Binary, Categorical, InvalidValueError, Numeric, Schema
from blurfit.estimators.rows import bounded_columns, feature_columns

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


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        *((bad, "bounds") for bad in (5, (1, 2, 3), "ab", {0: 1, 2: 3}, (1,), object())),
        *(
            ((0, bad), r"\[1\] to be one number or 3")
            for bad in ([1, 2], [[1, 2, 3]], [1, 2, 3, 4])
        ),
        *(((bad, 9), r"bounds\[0\]") for bad in ("x", None, [1, None, 3], [[1], [2, 3]])),
        *(((0, [9, bad, 9]), "bounds: Expected lower=0.0 < .* for 'hours'") for bad in (0, -1)),
        *(((0, bad), r"bounds\[1\]=.* to be finite") for bad in (np.inf, np.nan)),
    ],
)
def test_what_is_no_pair_of_finite_numbers_for_each_column_is_refused(bounds, message) -> None:
    with pytest.raises(InvalidValueError, match=message):
        bounded_columns("bounds", bounds, NAMES)


@pytest.mark.parametrize(
    "bounds", [[(18, 90), (92, 180)], ([0, 1], [5, 9]), np.array([[0, 1], [5, 9]])]
)
def test_pairs_that_could_be_read_two_ways_are_refused(bounds) -> None:
    with pytest.raises(InvalidValueError, match=r"it has two: lower bounds .* or .* for 'age' and"):
        bounded_columns("bounds", bounds, ["age", "height"])


@pytest.mark.parametrize("bounds", [([18, 0], [90, 60]), ([0, 0], [1, 9]), (0, [1, 9]), (0, 1)])
def test_two_columns_with_one_reading(bounds) -> None:
    lower, upper = (np.broadcast_to(ends, 2).tolist() for ends in bounds)
    found = bounded_columns("bounds", bounds, ["age", "hours"])
    assert [one.lower for one in found] == lower
    assert [one.upper for one in found] == upper


def test_bounds_by_name_in_the_order_of_the_columns() -> None:
    stated = {"age": (18, 90), "region": ("north", "south"), "hours": [0, 60]}
    found = feature_columns(stated, ["hours", "region", "age"])
    assert found == (
        Numeric("hours", 0, 60),
        Categorical("region", ["north", "south"]),
        Numeric("age", 18, 90),
    )


def test_a_schemas_features_by_name_or_by_place() -> None:
    schema = Schema([Numeric("age", 18, 90), Binary("married")], Numeric("income", 0, 1))
    assert feature_columns(schema, ["married", "age"]) == schema.features[::-1]
    assert feature_columns(schema, ["x0", "x1"], are_named=False) == schema.features
    with pytest.raises(InvalidValueError, match="X of 2 columns"):
        feature_columns(schema, ["x0"], are_named=False)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["age", "sex"], "`bounds` must name the columns of X: it is missing 'sex'."),
        (["31", "m"], "it is missing column 1, column 2."),  # answers, where there is no heading
        ([], "it has 'age', which X lacks"),
    ],
)
def test_bounds_name_the_columns_of_x_and_no_others(names, message) -> None:
    with pytest.raises(InvalidValueError, match=message):
        feature_columns({"age": (18, 90)}, names)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ((90, 18), r"bounds\['age'\]: Expected lower=90"),
        (None, r"bounds\['age'\]=\(lower, upper\)"),
        (["a", 1], r"bounds\['age'\]\[0\]='a' to be a number"),
        (["a", "a"], "each of them once"),
    ],
)
def test_bad_bounds_of_a_name(stated, message) -> None:
    with pytest.raises(InvalidValueError, match=message):
        feature_columns({"age": stated}, ["age"])


def test_names_need_columns_that_have_some() -> None:
    with pytest.raises(InvalidValueError, match="X with named columns"):
        feature_columns({"age": (18, 90)}, ["x0"], are_named=False)
