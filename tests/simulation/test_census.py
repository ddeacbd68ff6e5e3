"""A population as columns, and the generated one: synthetic in name and deed, with the causes and
effects that its model states."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from blurfit import BlurfitError, InvalidValueError
from blurfit import simulation as generated
from blurfit.schema.columns import Binary, Label, Numeric
from blurfit.schema.schema import Schema
from blurfit.simulation import Census, draw_population, make_census

SCHEMA = Schema([Numeric("age", 0, 100), Binary("owns")], Numeric("income", 0, 200_000))
COUNT = 60_000


@pytest.fixture
def census() -> Census:
    table = {
        "age": np.array([20, 30, 40, 50]),
        "owns": np.array([0, 1, 0, 1]),
        "income": np.array([0, 36_000, 37_000, 38_000]),
        "is_test_split": np.array([0, 1, 0, 1], dtype=np.uint8),
    }
    return Census(table, SCHEMA, "four people", synthetic=False)


def test_label_is_an_income_above_37000(census: Census) -> None:
    assert census.label_schema.features == SCHEMA.features
    assert census.label_schema.encode(census.table).target.tolist() == [-1, -1, -1, 1]
    assert census.above(35_000).encode(census.table).target.tolist() == [-1, 1, 1, 1]
    assert isinstance(census.above(35_000).target, Label)
    labelled = replace(census, schema=Schema([Numeric("age", 0, 100)], Binary("owns")))
    assert labelled.label_schema is labelled.schema
    with pytest.raises(InvalidValueError, match=r"threshold=5, but 'owns' is a label already"):
        labelled.above(5)


def test_rows_are_taken_set_aside_and_written_to_by_nobody(census: Census) -> None:
    assert census.head(3).table["age"].tolist() == [20, 30, 40]
    assert census.take(2, start=2).table["income"].tolist() == [37_000, 38_000]
    assert len(census.head(4)) == len(census) == 4
    assert census.take(1).schema is census.schema
    assert "4 columns, real, 12 rows with unknown values removed)" in repr(
        replace(census, removed=12)
    )
    train, test = census.where(~census.is_test), census.where(census.is_test)
    assert train.table["age"].tolist() == [20, 40]
    assert test.table["age"].tolist() == [30, 50]
    frame = census.frame()
    assert list(frame.columns) == ["age", "owns", "income", "is_test_split"]
    assert frame["income"].sum() == 111_000
    with pytest.raises(ValueError, match="read-only"):
        census.table["age"][0] = 99
    age = np.array([1.0, 2.0])
    Census({"age": age, "owns": age, "income": age}, SCHEMA, "two", synthetic=True)
    age[0] = 3.0  # the caller's own array stays writable


def test_what_cannot_be_is_refused(census: Census, monkeypatch) -> None:
    for n, start in ((5, 0), (1, 4), (3, 2)):
        with pytest.raises(InvalidValueError, match=rf"n={n} rows from start={start} .* 4 rows"):
            census.take(n, start=start)
    for n, start in ((0, 0), (-1, 0), (1, -1), (1.0, 0), (1, 0.5)):
        with pytest.raises(InvalidValueError, match=r"Expected (n|start)="):
            census.take(n, start=start)
    for chosen in (np.array([True]), np.array([0, 1, 1, 0])):
        with pytest.raises(InvalidValueError, match="chosen to be 4 booleans"):
            census.where(chosen)
    with pytest.raises(InvalidValueError, match=r"one length, got .*'owns': 1"):
        replace(census, table=census.table | {"owns": np.array([1])})
    for name in ("age", "income"):
        table = {key: column for key, column in census.table.items() if key != name}
        with pytest.raises(InvalidValueError, match=f"a column '{name}' as the schema says"):
            replace(census, table=table)
    whole = {name: column for name, column in census.table.items() if name != "is_test_split"}
    with pytest.raises(InvalidValueError, match=r"'four people' sets no rows aside"):
        _ = replace(census, table=whole).is_test
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(BlurfitError, match=r"pip install .blurfit\[tables\]"):
        census.frame()


# ---- the generated census
def test_the_papers_attributes_and_said_to_be_synthetic() -> None:
    """13 with marital status as two: 13 features, the target, and one more column for 1."""
    made = make_census(40_000, seed=8)
    for one in (made, made.head(10)):
        assert one.synthetic
        assert "synthetic" in one.name
        assert "synthetic" in repr(one)
    assert (len(made), len(made.table)) == (40_000, 14)
    assert (len(made.schema.features), made.schema.dimension) == (13, 14)
    assert made.schema.target == Numeric("annual_income", 0, 200_000)
    assert make_census(10, seed=1).schema == made.schema, "bounds do not depend on the people"
    for feature in made.schema.features:
        values = made.table[feature.name]
        lower, upper = (0, 1) if isinstance(feature, Binary) else (feature.lower, feature.upper)
        assert ((values >= lower) & (values <= upper)).mean() >= 0.999, feature.name
    x, y = made.schema.encode(made.table)
    w, *_ = np.linalg.lstsq(x, y)
    assert 0.3 < 1 - np.mean((y - x @ w) ** 2) / np.var(y) < 0.5
    assert np.linalg.matrix_rank(x) == 14
    x, y = made.label_schema.encode(made.table)
    assert set(np.unique(y)) == {-1, 1}
    assert 0.4 < (y > 0).mean() < 0.6
    w, *_ = np.linalg.lstsq(x, y)
    assert 0.7 < (np.sign(x @ w) == y).mean() < 0.95


def test_the_seed_tells_everything() -> None:
    one, same, other = (make_census(500, seed).table for seed in (3, np.int64(3), 4))
    for name, column in one.items():
        np.testing.assert_array_equal(column, same[name])
        assert (column != other[name]).any(), name
    drawn = draw_population(1, seed=0)
    assert drawn.pop("annual_income").dtype == np.int32
    assert {(column.dtype, len(column)) for column in drawn.values()} == {(np.dtype(np.uint8), 1)}


@pytest.mark.parametrize(
    ("n", "seed", "name"),
    [
        *((n, 1, "n=.* whole number >= 1") for n in (0, -1, 2.5, True, "10")),
        *((10, seed, "seed=.* whole number >= 0") for seed in (-1, 1.5, True, None, "1")),
    ],
)
def test_bad_counts_and_seeds_are_refused(n, seed, name: str) -> None:
    with pytest.raises(InvalidValueError, match=name):
        make_census(n, seed=seed)


@pytest.fixture(scope="module")
def people() -> dict[str, np.ndarray]:
    drawn = draw_population(COUNT, seed=20)
    return {name: column.astype(np.float64) for name, column in drawn.items()}


RANGES = {
    **{"age": (15, 95), "education": (1, 24), "hours_per_week": (0, 99)},
    **{"residence_years": (0, 95), "family_size": (1, 12), "num_children": (0, 9)},
    **{"num_automobiles": (0, 6), "annual_income": (0, generated.TOP_CODE)},
}
SHARES = {
    **{"is_male": 0.49, "is_single": 0.29, "is_married": 0.53},
    **{"has_disability": 0.18, "is_native_born": 0.88, "owns_dwelling": 0.77},
}
EFFECTS = {
    "age": {"is_single": -0.55, "has_disability": 0.3, "hours_per_week": -0.33},
    "is_married": {"owns_dwelling": 0.27, "num_children": 0.18, "annual_income": 0.15},
    "num_children": {"family_size": 0.75},
    "owns_dwelling": {"residence_years": 0.35, "num_automobiles": 0.18, "annual_income": 0.14},
    "education": {"annual_income": 0.33},
    "hours_per_week": {"annual_income": 0.4},
    "is_male": {"annual_income": 0.15},
    "has_disability": {"annual_income": -0.15},
    "is_native_born": {"education": 0.11},
}


def test_ranges_shares_and_effects_are_those_stated(people) -> None:
    assert {*RANGES, *SHARES} == people.keys()
    for name, (lowest, highest) in RANGES.items():
        assert lowest <= people[name].min() < people[name].max() <= highest, name
        assert len(np.unique(people[name])) > 5, name
    for name, share in SHARES.items():
        assert set(np.unique(people[name])) == {0, 1}, name
        assert people[name].mean() == pytest.approx(share, abs=0.02), name
    for cause, effects in EFFECTS.items():
        for effect, correlation in effects.items():
            found = np.corrcoef(people[cause], people[effect])[0, 1]
            assert found == pytest.approx(correlation, abs=0.15), (cause, effect)
            assert found * correlation > 0, (cause, effect)


def test_no_impossible_person(people) -> None:
    assert not (people["is_single"] * people["is_married"]).any()
    assert (people["residence_years"] <= people["age"]).all()
    alone = people["num_children"] + people["is_married"]
    assert (people["family_size"] >= np.minimum(1 + alone, 12)).all()
    assert people["education"][people["age"] == 15].max() <= 12
    assert people["education"][people["age"] < 22].max() < 21
    assert not people["is_married"][people["age"] == 15].any()


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
    tables = [value for value in vars(generated).values() if isinstance(value, tuple)]
    assert len(tables) >= 12
    assert {len(table) for table in tables} == {len(generated.AGES)}
    assert list(generated.SCHOOLING.values()) == sorted(generated.SCHOOLING.values())
    for name, rates in {
        "is_single": generated.NEVER_MARRIED,
        "is_native_born": 1 - np.array(generated.FOREIGN_BORN),
    }.items():
        for age, rate in zip(generated.AGES[1:7], rates[1:7], strict=True):
            column = people[name][people["age"] == age]
            error = np.sqrt(max(rate * (1 - rate), 0.01) / len(column))
            assert column.mean() == pytest.approx(rate, abs=4.5 * error), (name, age)
