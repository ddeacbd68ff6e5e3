"""Loaders of the surveys and of your own extract, on small files of the same columns."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blurfit import InvalidValueError
from blurfit_lab.datasets import (
    FILENAME,
    FULTON_FILENAME,
    FULTON_SCHEMA,
    load_acs,
    load_fulton,
    load_ipums,
)

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


KNOWN = {
    "YEAR": 2000,
    "OWNERSHP": 1,
    "ROOMS": 7,
    "VEHICLES": 2,
    "MOVEDIN": 4,
    "FAMSIZE": 3,
    "NCHILD": 1,
    "SEX": 2,
    "AGE": 44,
    "MARST": 1,
    "BPL": 36,
    "EDUC": 10,
    "EDUCD": 101,
    "UHRSWORK": 40,
    "INCTOT": 52_000,
    "DIFFREM": 1,
    "DIFFPHYS": 1,
}


def write(file: Path, rows: list[dict[str, object]]) -> Path:
    """A CSV file as IPUMS makes them, or a Parquet file."""
    if file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
        return file
    opened = gzip.open if file.suffix == ".gz" else open
    with opened(file, "wt", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return file


def with_values(tmp_path: Path, variable: str, values: list[object]) -> Path:
    """An extract whose rows differ in one variable; a last row that is known is added."""
    rows = [KNOWN | {variable: value} for value in values]
    return write(tmp_path / "usa_00001.csv", [*rows, KNOWN])


@pytest.mark.parametrize("name", ["usa_00007.csv", "usa_00007.csv.gz", "usa_00007.parquet"])
def test_an_extract(tmp_path: Path, name: str) -> None:
    census = load_ipums(write(tmp_path / name, [KNOWN, KNOWN]))
    assert {key: column.tolist()[0] for key, column in census.table.items()} == {
        "age": 44,
        "is_male": 0,
        "is_single": 0,
        "is_married": 1,
        "education": 10,
        "has_disability": 0,
        "is_native_born": 1,
        "hours_per_week": 40,
        "residence_years_band": 4,
        "owns_dwelling": 1,
        "family_size": 3,
        "num_children": 1,
        "num_automobiles": 2,
        "annual_income": 52_000,
    }
    assert (len(census), census.removed, census.synthetic) == (2, 0, False)
    assert census.name == f"IPUMS USA extract {name}"
    assert census.schema.dimension == 14
    assert (np.linalg.norm(census.schema.encode(census.table).features, axis=1) <= 1).all()
    assert census.label_schema.encode(census.table).target.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("variable", "attribute", "codes", "values"),
    [
        ("SEX", "is_male", [1, 2], [1, 0]),
        ("MARST", "is_single", [1, 2, 3, 4, 5, 6], [0, 0, 0, 0, 0, 1]),
        ("MARST", "is_married", [1, 2, 3, 4, 5, 6], [1, 1, 0, 0, 0, 0]),
        ("BPL", "is_native_born", [1, 99, 110, 120, 150, 950], [1, 1, 1, 1, 0, 0]),
        ("OWNERSHP", "owns_dwelling", [1, 2], [1, 0]),
        ("VEHICLES", "num_automobiles", [1, 7, 9], [1, 7, 0]),
        ("DIFFREM", "has_disability", [0, 1, 2], [0, 0, 1]),
        ("DIFFPHYS", "has_disability", [0, 1, 2], [0, 0, 1]),
        ("EDUC", "education", [0, 6, 11], [0, 6, 11]),
        ("INCTOT", "annual_income", [-9_000, 0, 9_999_997], [-9_000, 0, 9_999_997]),
    ],
)
def test_known_codes(tmp_path: Path, variable, attribute, codes, values) -> None:
    census = load_ipums(with_values(tmp_path, variable, codes))
    assert census.removed == 0
    assert census.table[attribute].tolist()[:-1] == values


@pytest.mark.parametrize(
    ("variable", "unknown"),
    [
        ("AGE", [999, ""]),
        ("SEX", [0, 9]),
        ("MARST", [0, 9]),
        ("EDUC", [99]),
        ("BPL", [0, 997, 999]),
        ("UHRSWORK", [100]),
        ("MOVEDIN", [0, 8, 9]),
        ("OWNERSHP", [0]),
        ("FAMSIZE", [0]),
        ("NCHILD", [10]),
        ("VEHICLES", [0, 8]),
        ("DIFFREM", [9, ""]),
        ("INCTOT", [9_999_998, 9_999_999, ""]),
    ],
)
def test_unknown_codes_are_removed_and_counted(tmp_path: Path, variable, unknown) -> None:
    census = load_ipums(with_values(tmp_path, variable, unknown))
    assert (len(census), census.removed) == (1, len(unknown))
    assert f"{len(unknown)} rows with unknown values removed" in repr(census)


def without(*variables: str) -> dict[str, object]:
    return {key: value for key, value in KNOWN.items() if key not in variables}


def test_variables_that_stand_in_for_others(tmp_path: Path) -> None:
    row = without("EDUC", "BPL", "VEHICLES") | {"NATIVITY": 5, "EDUCD": 116}
    rows = [row, row | {"NATIVITY": 4, "EDUCD": 2}, row | {"EDUCD": 999}, row | {"ROOMS": 0}]
    census = load_ipums(write(tmp_path / "extract.csv", rows))
    assert census.removed == 2
    assert census.table["education"].tolist() == [11, 0]
    assert census.table["is_native_born"].tolist() == [0, 1]
    assert census.table["num_rooms"].tolist() == [7, 7]
    assert "num_automobiles" not in census.table


@pytest.mark.parametrize(
    ("dropped", "message"),
    [
        (("AGE",), "Expected AGE in"),
        (("EDUC", "EDUCD"), "EDUC or EDUCD .* for 'education'"),
        (("BPL",), "BPL or NATIVITY"),
        (("DIFFREM", "DIFFPHYS"), "DIFFREM or DIFFPHYS or .* for 'has_disability'"),
        (("ROOMS", "VEHICLES"), "ROOMS in 'extract.csv' for 'num_rooms'"),
        (("INCTOT",), "INCTOT"),
    ],
)
def test_a_variable_that_the_extract_lacks_is_named(tmp_path: Path, dropped, message) -> None:
    file = write(tmp_path / "extract.csv", [without(*dropped)])
    with pytest.raises(InvalidValueError, match=message):
        load_ipums(file)


def test_labels_instead_of_codes_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "extract.csv", [KNOWN | {"SEX": "Female"}])
    with pytest.raises(InvalidValueError, match=r"'SEX' .* numbers.*codes rather than labels"):
        load_ipums(file)


def test_nobody_left(tmp_path: Path) -> None:
    file = write(tmp_path / "extract.csv", [KNOWN | {"INCTOT": 9_999_999}] * 3)
    with pytest.raises(InvalidValueError, match="of its 3 rows there is none"):
        load_ipums(file)


def test_a_missing_extract(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"usa_00001.csv' to be a file. Pass the path of"):
        load_ipums(tmp_path / "usa_00001.csv")
