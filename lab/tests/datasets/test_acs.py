"""The survey's loader, on a small file of the same columns."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blurfit import InvalidValueError
from blurfit_lab.datasets import load_acs, load_fulton
from blurfit_lab.datasets.census import FILENAME, FULTON_FILENAME, FULTON_SCHEMA

ROWS = {
    "age": pa.array([41, 96, 17, 60, 70], pa.uint8()),
    "is_male": pa.array([1, 0, 0, 1, 0], pa.uint8()),
    "marital_status": pa.array([1, 2, 5, 3, 4], pa.uint8()),
    "education": pa.array([18, 24, 12, 1, 16], pa.uint8()),
    "has_disability": pa.array([0, 1, 0, 0, 0], pa.uint8()),
    "is_native_born": pa.array([1, 1, 0, 1, 1], pa.uint8()),
    "hours_per_week": pa.array([50, 0, 10, 99, 40], pa.uint8()),
    "residence_years_band": pa.array([3, 7, 1, 2, 4], pa.uint8()),
    "owns_dwelling": pa.array([1, 1, 0, 0, 1], pa.uint8()),
    "family_size": pa.array([2, 1, 20, 4, 1], pa.uint8()),
    "num_children": pa.array([0, 0, 19, 2, 0], pa.uint8()),
    "num_rooms": pa.array([6, 21, 1, 9, 5], pa.uint8()),
    "annual_income": pa.array([65_000, 37_000, -11_500, 842_000, 0], pa.int32()),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(pa.table(ROWS), tmp_path / FILENAME)
    return tmp_path


def test_real_people_with_the_papers_attributes(folder: Path) -> None:
    census = load_acs(folder)
    assert len(census) == 5
    assert census.synthetic is False
    assert census.name == "American Community Survey 2024"
    assert len(census.table) == 14
    assert census.schema.dimension == 14
    assert "marital_status" not in census.table
    assert [*census.table][:4] == ["age", "is_male", "is_single", "is_married"]


def test_marital_status_becomes_two_attributes(folder: Path) -> None:
    table = load_acs(folder).table
    assert table["is_single"].tolist() == [0, 0, 1, 0, 0]
    assert table["is_married"].tolist() == [1, 0, 0, 0, 0]


def test_what_is_out_of_bounds_is_clipped(folder: Path) -> None:
    census = load_acs(folder / FILENAME)
    x, y = census.schema.encode(census.table)
    assert (np.linalg.norm(x, axis=1) <= 1).all()
    assert y.tolist() == pytest.approx([-0.35, -0.63, -1, 1, -1])
    assert census.label_schema.encode(census.table).target.tolist() == [1, -1, -1, 1, -1]


def test_found_by_the_variable(folder: Path, monkeypatch) -> None:
    monkeypatch.setenv("BLURFIT_DATA", str(folder))
    assert len(load_acs()) == 5


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=f"{FILENAME}.*BLURFIT_DATA"):
        load_acs(tmp_path)


def test_another_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / FILENAME)
    with pytest.raises(InvalidValueError, match=r"'age'.*'marital_status'"):
        load_acs(tmp_path)


def test_the_second_survey_has_its_own_attributes(tmp_path: Path) -> None:
    codes = {one.name: [1, 0] for one in FULTON_SCHEMA.features}
    table = {**codes, "age": [41, 93], "education": [9, 16], "annual_income": [38_000, -10_000]}
    pq.write_table(pa.table(table), tmp_path / FULTON_FILENAME)
    census = load_fulton(tmp_path)
    x, y = census.schema.encode(census.table)
    assert x.shape == (2, 15)
    assert y.tolist() == pytest.approx([-0.62, -1])
    assert census.label_schema.encode(census.table).target.tolist() == [1, -1]
