"""Finding and reading files, and what is said when that fails."""

import gzip
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blurfit import InvalidValueError
from blurfit_lab import datasets


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    file = tmp_path / "people.parquet"
    table = {"age": pa.array([1, 2, None], pa.uint8()), "n": [1, 2, 3], "word": ["a", "b", "c"]}
    pq.write_table(pa.table(table), file)
    return file


def test_a_path_may_be_the_file_or_its_folder(parquet: Path) -> None:
    assert datasets.locate("people.parquet", parquet) == parquet
    assert datasets.locate("people.parquet", str(parquet.parent)) == parquet
    assert datasets.locate("other name.parquet", parquet) == parquet


def test_without_a_path_the_variable_tells_the_folder(parquet: Path, monkeypatch) -> None:
    monkeypatch.setenv("BLURFIT_DATA", str(parquet.parent))
    assert datasets.locate("people.parquet") == parquet


@pytest.mark.parametrize("empty", [True, False])
def test_without_a_path_and_the_variable_nothing_is_guessed(monkeypatch, empty: bool) -> None:
    if empty:
        monkeypatch.setenv("BLURFIT_DATA", "")
    else:
        monkeypatch.delenv("BLURFIT_DATA", raising=False)
    with pytest.raises(InvalidValueError, match=r"say where 'people.parquet' is.*BLURFIT_DATA"):
        datasets.locate("people.parquet")


@pytest.mark.parametrize("by", ["variable", "folder", "file"])
def test_a_missing_file_is_named_with_the_remedy(tmp_path: Path, monkeypatch, by: str) -> None:
    expected = tmp_path / "people.parquet"
    monkeypatch.setenv("BLURFIT_DATA", str(tmp_path if by == "variable" else "/nowhere"))
    path = {"variable": None, "folder": tmp_path, "file": expected}[by]
    with pytest.raises(InvalidValueError, match=re.escape(repr(str(expected)))) as caught:
        datasets.locate("people.parquet", path)
    for remedy in ("BLURFIT_DATA", "people.parquet", "Pass the path", "make_census(n, seed)"):
        assert remedy in str(caught.value)


def test_reads_only_what_is_wanted(parquet: Path) -> None:
    table = datasets.read(parquet, ["n"], ["absent"])
    assert list(table) == ["n"]
    assert table["n"].tolist() == [1, 2, 3]


def test_blanks_are_refused_or_nan(parquet: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"'age' of 'people.parquet' .* 1 of 3 values"):
        datasets.read(parquet, ["age"])
    age = datasets.read(parquet, ["age"], blanks=True)["age"]
    np.testing.assert_array_equal(age, [1, 2, np.nan])


def test_a_missing_column_is_named(parquet: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"columns \['x', 'y'\].*it has \['age'"):
        datasets.read(parquet, ["x", "n", "y"])


def test_words_are_refused(parquet: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"'word' .* numbers, but it is str"):
        datasets.read(parquet, ["word"])


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz"])
def test_reads_csv(tmp_path: Path, name: str) -> None:
    text = b"AGE,NOTE,SEX\n020,x,1\n,y,2\n"
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    table = datasets.read(tmp_path / name, ["SEX"], ["AGE", "BPL"], blanks=True)
    assert list(table) == ["SEX", "AGE"]
    assert table["SEX"].tolist() == [1, 2]
    np.testing.assert_array_equal(table["AGE"], [20, np.nan])


@pytest.mark.parametrize(("name", "kind"), [("a.parquet", "Parquet"), ("a.csv.gz", "CSV")])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    file = tmp_path / name
    file.write_bytes(b"not what its name says")
    with pytest.raises(InvalidValueError, match=f"{name}' to be a {kind} file"):
        datasets.read(file, ["x"])
