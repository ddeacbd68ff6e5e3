"""Any table with bounds."""

from pathlib import Path

import pytest

from blurfit import InvalidValueError
from blurfit_lab.datasets import load_table


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "flats.csv"
    path.write_text("rooms,rent,notes\n2,700,1\n5,1900,2\n9,2500,3\n", encoding="utf-8")
    return path


def test_the_bounded_columns_are_taken(file: Path) -> None:
    census = load_table(file, target="rent", bounds={"rooms": (1, 9), "rent": (0, 2000)})
    assert census.name == "flats"
    assert [*census.table] == ["rooms", "rent"]
    x, y = census.schema.encode(census.table)
    assert x.shape == (3, 2)
    assert y.tolist() == pytest.approx([-0.3, 0.9, 1.0])  # 2,500 counts as 2,000


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"target": "rent", "bounds": {"rooms": (1, 9)}}, "target='rent'"),
        ({"target": "rent", "bounds": {"rooms": 9, "rent": (0, 1)}}, "rooms"),
        ({"target": "rent", "bounds": {"floor": (1, 9), "rent": (0, 1)}}, "floor"),
    ],
)
def test_what_cannot_be_is_refused_by_name(file: Path, terms, message) -> None:
    with pytest.raises(InvalidValueError, match=message):
        load_table(file, **terms)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"nowhere\.csv"):
        load_table(tmp_path / "nowhere.csv", target="y", bounds={"x": (0, 1), "y": (0, 1)})
