"""The made-up population against what its model says: causes have the effects that were stated."""

import numpy as np
import pytest

from blurfit.simulation import census as generated
from blurfit.simulation.census import draw_population

COUNT = 60_000


@pytest.fixture(scope="module")
def people() -> dict[str, np.ndarray]:
    drawn = draw_population(COUNT, seed=20)
    return {name: column.astype(np.float64) for name, column in drawn.items()}


def test_columns_are_small_whole_numbers() -> None:
    drawn = draw_population(1000, seed=1)
    income = drawn.pop("annual_income")
    assert income.dtype == np.int32
    assert len(drawn) == 13
    assert {column.dtype for column in drawn.values()} == {np.dtype(np.uint8)}
    assert {len(column) for column in (income, *drawn.values())} == {1000}


def test_the_seed_tells_everything() -> None:
    one, same, other = (draw_population(500, seed) for seed in (3, 3, 4))
    for name, column in one.items():
        np.testing.assert_array_equal(column, same[name])
        assert (column != other[name]).any(), name


def test_a_single_person_can_be_drawn() -> None:
    assert all(len(column) == 1 for column in draw_population(1, seed=0).values())


@pytest.mark.parametrize(
    ("column", "lowest", "highest"),
    [
        ("age", 15, 95),
        ("education", 1, 24),
        ("hours_per_week", 0, 99),
        ("residence_years", 0, 95),
        ("family_size", 1, 12),
        ("num_children", 0, 9),
        ("num_automobiles", 0, 6),
        ("annual_income", 0, generated.TOP_CODE),
    ],
)
def test_ranges(people, column: str, lowest: int, highest: int) -> None:
    assert people[column].min() >= lowest
    assert people[column].max() <= highest
    assert len(np.unique(people[column])) > 5


@pytest.mark.parametrize(
    ("column", "share"),
    [
        ("is_male", 0.49),
        ("is_single", 0.29),
        ("is_married", 0.53),
        ("has_disability", 0.18),
        ("is_native_born", 0.88),
        ("owns_dwelling", 0.77),
    ],
)
def test_shares(people, column: str, share: float) -> None:
    assert set(np.unique(people[column])) == {0, 1}
    assert people[column].mean() == pytest.approx(share, abs=0.02)


def test_no_impossible_person(people) -> None:
    assert not (people["is_single"] * people["is_married"]).any()
    assert (people["residence_years"] <= people["age"]).all()
    alone = people["num_children"] + people["is_married"]
    assert (people["family_size"] >= np.minimum(1 + alone, 12)).all()
    assert people["education"][people["age"] == 15].max() <= 12
    assert people["education"][people["age"] < 22].max() < 21
    assert not people["is_married"][people["age"] == 15].any()


@pytest.mark.parametrize(
    ("cause", "effect", "lowest", "highest"),
    [
        ("age", "is_single", -0.7, -0.4),
        ("age", "has_disability", 0.2, 0.4),
        ("age", "hours_per_week", -0.45, -0.2),
        ("age", "residence_years", 0.2, 0.45),
        ("is_married", "owns_dwelling", 0.15, 0.4),
        ("is_married", "num_children", 0.05, 0.3),
        ("num_children", "family_size", 0.6, 0.9),
        ("owns_dwelling", "residence_years", 0.2, 0.5),
        ("owns_dwelling", "num_automobiles", 0.05, 0.3),
        ("education", "annual_income", 0.2, 0.45),
        ("hours_per_week", "annual_income", 0.25, 0.55),
        ("is_male", "annual_income", 0.05, 0.25),
        ("is_married", "annual_income", 0.05, 0.25),
        ("owns_dwelling", "annual_income", 0.03, 0.25),
        ("has_disability", "annual_income", -0.25, -0.05),
        ("is_native_born", "education", 0.02, 0.2),
    ],
)
def test_correlations(people, cause: str, effect: str, lowest: float, highest: float) -> None:
    assert lowest < np.corrcoef(people[cause], people[effect])[0, 1] < highest


def test_income_has_a_hump_zeros_and_a_heavy_tail(people) -> None:
    age, income = people["age"], people["annual_income"]
    young, middle, old = (np.median(income[(age >= a) & (age < a + 10)]) for a in (16, 45, 80))
    assert young < old < middle
    assert 0.08 < (income == 0).mean() < 0.15
    assert 0.02 < (income > 200_000).mean() < 0.06
    assert income.mean() > 1.4 * np.median(income)
    # Hill's estimate of the tail index from the top 0.5%, clear of the top-coded few.
    top = np.sort(income)[-COUNT // 200 :]
    assert 1.8 < 1 / np.log(top / top[0]).mean() < 4.0


def test_rates_are_met_at_the_stated_ages(people) -> None:
    for name, rates in {
        "is_single": generated.NEVER_MARRIED,
        "is_native_born": 1 - np.array(generated.FOREIGN_BORN),
    }.items():
        for age, rate in zip(generated.AGES[1:7], rates[1:7], strict=True):
            column = people[name][people["age"] == age]
            error = np.sqrt(max(rate * (1 - rate), 0.01) / len(column))
            assert column.mean() == pytest.approx(rate, abs=4.5 * error), (name, age)


def test_every_table_has_a_rate_for_each_age() -> None:
    tables = [value for value in vars(generated).values() if isinstance(value, tuple)]
    assert len(tables) >= 12
    assert {len(table) for table in tables} == {len(generated.AGES)}
    assert list(generated.SCHOOLING.values()) == sorted(generated.SCHOOLING.values())
