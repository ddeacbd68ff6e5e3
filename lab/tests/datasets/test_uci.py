"""Loaders of Adult and of the twelve small sets, on small files of the same columns."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blurfit import InvalidValueError
from blurfit.schema.columns import Binary
from blurfit_lab.datasets import (
    ADULT_FILENAME,
    CATEGORIES,
    UCI_SETS,
    load_adult,
    load_uci,
    outwards,
)

ROWS = {
    "age": pa.array([38, 17, 90], pa.uint8()),
    "education_years": pa.array([13, 1, 16], pa.uint8()),
    "hours_per_week": pa.array([40, 1, 99], pa.uint8()),
    "capital_gain": pa.array([0, 99_999, 0], pa.int32()),
    "capital_loss": pa.array([1887, 0, 4356], pa.int16()),
    "is_male": pa.array([1, 0, 1], pa.uint8()),
    "workclass": pa.array([2, 6, 0], pa.uint8()),
    "marital_status": pa.array([2, 4, 6], pa.uint8()),
    "occupation": pa.array([9, 13, 0], pa.uint8()),
    "relationship": pa.array([0, 3, 5], pa.uint8()),
    "race": pa.array([4, 0, 2], pa.uint8()),
    "native_country": pa.array([38, 6, 40], pa.uint8()),
    "is_test_split": pa.array([0, 1, 0], pa.uint8()),
    "income_over_50k": pa.array([1, 0, 0], pa.uint8()),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    pq.write_table(pa.table(ROWS), tmp_path / ADULT_FILENAME)
    return tmp_path / ADULT_FILENAME


def test_real_people_with_a_label(file: Path) -> None:
    adult = load_adult(file)
    assert len(adult) == 3
    assert adult.synthetic is False
    assert adult.schema.target == Binary("income_over_50k")
    assert adult.label_schema is adult.schema
    assert adult.schema.encode(adult.table).target.tolist() == [1, -1, -1]


def test_categories_are_named(file: Path) -> None:
    table = load_adult(file).table
    assert table["workclass"].tolist() == ["Private", "Without-pay", "Federal-gov"]
    assert table["marital_status"].tolist() == ["Married-civ-spouse", "Never-married", "Widowed"]
    assert table["occupation"].tolist() == ["Prof-specialty", "Transport-moving", "Adm-clerical"]
    assert table["relationship"].tolist() == ["Husband", "Own-child", "Wife"]
    assert table["race"].tolist() == ["White", "Amer-Indian-Eskimo", "Black"]


@pytest.mark.parametrize(
    ("name", "count"),
    [("workclass", 7), ("marital_status", 7), ("occupation", 14), ("relationship", 6), ("race", 5)],
)
def test_levels_are_in_the_files_order(name: str, count: int) -> None:
    assert len(CATEGORIES[name]) == count
    assert list(CATEGORIES[name]) == sorted(CATEGORIES[name])


def test_the_country_is_one_attribute_and_the_split_is_none(file: Path) -> None:
    adult = load_adult(file)
    assert adult.table["born_in_united_states"].tolist() == [1, 0, 0]
    assert "native_country" not in adult.table
    names = {feature.name for feature in adult.schema.features}
    assert "born_in_united_states" in names
    assert "is_test_split" not in names
    assert adult.is_test.tolist() == [False, True, False]


def test_encodes_into_the_unit_ball(file: Path) -> None:
    adult = load_adult(file)
    x, _ = adult.schema.encode(adult.table)
    assert x.shape == (3, 5 + 2 + 39 + 1)
    assert (np.linalg.norm(x, axis=1) <= 1).all()


@pytest.mark.parametrize("codes", [[0, 1, 5], [0.0, 1.5, 2.0], [-1, 0, 1]])
def test_an_unknown_category_is_refused(file: Path, codes: list[float]) -> None:
    pq.write_table(pa.table(ROWS | {"race": codes}), file)
    with pytest.raises(InvalidValueError, match=r"'race' to hold codes from 0 to 4"):
        load_adult(file)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=f"{ADULT_FILENAME}.*BLURFIT_DATA"):
        load_adult(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    columns = {f"x{k}": generator.normal(k, k, 40) for k in range(1, 5)}
    columns["x3"] = np.full(40, 7.0)
    columns["y"] = columns["x1"] + generator.normal(0, 1, 40)
    (tmp_path / "uci").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "uci" / "servo.parquet")
    return tmp_path


def test_columns_bounds_and_name(folder: Path, monkeypatch) -> None:
    monkeypatch.setenv("BLURFIT_DATA", str(folder))
    census = load_uci("servo")
    assert len(census) == 40
    assert census.name == "UCI servo"
    assert not census.synthetic
    assert [*census.table] == ["x1", "x2", "x4", "y"]  # x3 is the same in every row
    for column in (*census.schema.features, census.schema.target):
        values = census.table[column.name]
        assert column.lower <= values.min() < values.max() <= column.upper
        assert column.upper - column.lower < 1.3 * (values.max() - values.min())
    x, y = census.schema.encode(census.table)
    assert np.linalg.norm(x, axis=1).max() <= 1 + 1e-12
    assert np.abs(y).max() <= 1


@pytest.mark.parametrize("scale", [1e-7, 1.0, 3e5])
@pytest.mark.parametrize("shift", [0.0, -2.5, 40.0])
def test_rounding_is_outwards_and_coarse(scale: float, shift: float) -> None:
    generator = np.random.default_rng(1)
    for _ in range(200):
        values = scale * (generator.normal(size=2) + shift)
        lower, upper = outwards(values)
        width = values.max() - values.min()
        assert lower <= values.min()
        assert upper >= values.max()
        assert upper - lower <= 1.2 * width + 1e-9 * scale


def test_twelve_sets_and_no_other(folder: Path) -> None:
    assert len(UCI_SETS) == 12
    with pytest.raises(InvalidValueError, match="name='boston'"):
        load_uci("boston", folder)
    with pytest.raises(InvalidValueError, match=r"yacht\.parquet"):
        load_uci("yacht", folder)
