"""The loader of the twelve small sets, on a made-up file of the same form."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blurfit import InvalidValueError
from blurfit_lab.datasets import UCI_SETS, load_uci
from blurfit_lab.datasets.uci import outwards


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
