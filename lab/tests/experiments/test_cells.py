"""Cells are named, read again, and left out where too few rows would remain to test on."""

import pytest

from blurfit_lab.experiments.runner import SweepCell, cell_names


@pytest.mark.parametrize("cell", [SweepCell(0.1, 2**13, 20), SweepCell(16.0, 1, 3)])
def test_a_name_is_read_as_it_was_written(cell: SweepCell) -> None:
    assert SweepCell.read(str(cell)) == cell


def test_cells_are_within_the_population() -> None:
    people = range(1000)  # only their number counts
    assert cell_names(people, (0.1, 1.0), (500, 900, 980), 100) == [
        f"{epsilon}:{n}:100" for epsilon in (0.1, 1.0) for n in (500, 900)
    ]
    assert cell_names(people, (1.0,), (500, 900), 3, largest_share=0.75) == ["1.0:500:3"]
