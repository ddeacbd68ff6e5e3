"""The generated census: synthetic in name and deed, and made for the paper's experiment."""

import numpy as np
import pytest

from blurfit import InvalidValueError
from blurfit.schema.columns import Binary, Numeric
from blurfit.simulation import Census, make_census


@pytest.fixture(scope="module")
def census() -> Census:
    return make_census(40_000, seed=8)


def test_said_to_be_synthetic_everywhere(census: Census) -> None:
    assert census.synthetic is True
    assert "synthetic" in census.name
    assert "synthetic" in repr(census)
    assert "synthetic" in (make_census.__doc__ or "")
    assert census.head(10).synthetic is True
    assert "synthetic" in census.head(10).name


def test_the_papers_attributes(census: Census) -> None:
    """13 with marital status as two: 13 features, the target, and one more column for 1."""
    assert len(census) == 40_000
    assert len(census.table) == 14
    assert len(census.schema.features) == 13
    assert census.schema.dimension == 14
    assert {feature.name for feature in census.schema.features} == {
        "age",
        "is_male",
        "is_single",
        "is_married",
        "education",
        "has_disability",
        "is_native_born",
        "hours_per_week",
        "residence_years",
        "owns_dwelling",
        "family_size",
        "num_children",
        "num_automobiles",
    }
    assert census.schema.target == Numeric("annual_income", 0, 200_000)


def test_features_keep_the_public_bounds(census: Census) -> None:
    for feature in census.schema.features:
        values = census.table[feature.name]
        lower, upper = (0, 1) if isinstance(feature, Binary) else (feature.lower, feature.upper)
        assert ((values >= lower) & (values <= upper)).mean() >= 0.999, feature.name
    clipped = (census.table["annual_income"] > 200_000).mean()
    assert 0.01 < clipped < 0.06  # on purpose: the tail is heavy


def test_bounds_do_not_depend_on_the_people() -> None:
    assert make_census(10, seed=1).schema == make_census(5000, seed=2).schema


def test_the_same_for_the_same_seed() -> None:
    one, same, other = make_census(300, 5), make_census(300, np.int64(5)), make_census(300, 6)
    for name, column in one.table.items():
        np.testing.assert_array_equal(column, same.table[name])
    assert (one.table["annual_income"] != other.table["annual_income"]).mean() > 0.5


def test_a_linear_model_explains_a_plausible_share(census: Census) -> None:
    x, y = census.schema.encode(census.table)
    w, *_ = np.linalg.lstsq(x, y)
    share = 1 - np.mean((y - x @ w) ** 2) / np.var(y)
    assert 0.3 < share < 0.5
    assert np.linalg.matrix_rank(x) == 14


def test_labels_are_balanced_and_can_be_learned(census: Census) -> None:
    x, y = census.label_schema.encode(census.table)
    assert set(np.unique(y)) == {-1, 1}
    assert 0.4 < (y > 0).mean() < 0.6
    w, *_ = np.linalg.lstsq(x, y)
    assert 0.7 < (np.sign(x @ w) == y).mean() < 0.95


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "10"])
def test_refuses_a_bad_count(n: object) -> None:
    with pytest.raises(InvalidValueError, match=r"n=.* whole number >= 1"):
        make_census(n, seed=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, 1.5, True, None, "1"])
def test_refuses_a_bad_seed(seed: object) -> None:
    with pytest.raises(InvalidValueError, match=r"seed=.* whole number >= 0"):
        make_census(10, seed=seed)  # type: ignore[arg-type]
