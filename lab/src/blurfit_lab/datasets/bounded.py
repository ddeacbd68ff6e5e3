"""Any table of numbers with bounds, as a population: so that comparisons run on your own data."""

from collections.abc import Mapping
from pathlib import Path

from blurfit.errors import InvalidValueError
from blurfit.schema.columns import Numeric
from blurfit.schema.schema import Schema
from blurfit.simulation.census import Census
from blurfit_lab.datasets import data_files

Bounds = Mapping[str, tuple[float, float]]


def load_table(
    path: data_files.PathLike, *, target: str, bounds: Bounds, name: str | None = None
) -> Census:
    """The columns that `bounds` names, from a Parquet or CSV file (.parquet, .csv, .csv.gz).

    Args:
        path: of the file.
        target: the column to predict, which is one of `bounds`.
        bounds: (lower, upper) of each column, which everyone knows; what lies outside is clipped.
        name: for titles; the file's own name if left out.
    """
    if target not in bounds:
        raise InvalidValueError(
            f"Expected target={target!r} to be among the bounded columns {list(bounds)}: add its "
            "publicly known bounds."
        )
    features = tuple(
        Numeric(column, *_pair(column, ends)) for column, ends in bounds.items() if column != target
    )
    schema = Schema(features, Numeric(target, *_pair(target, bounds[target])))
    file = data_files.existing(Path(path), "Pass the path of a Parquet or CSV file.")
    return Census(data_files.read(file, list(bounds)), schema, name or file.stem, synthetic=False)


def _pair(column: str, ends: tuple[float, float]) -> tuple[float, float]:
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        raise InvalidValueError(
            f"Expected bounds[{column!r}]={ends!r} to be a pair (lower, upper) of numbers."
        )
    return ends[0], ends[1]
