"""Find data files, and read their columns as NumPy arrays.

A file is looked for where the caller says, else in the folder that the environment variable
BLURFIT_DATA names.
"""

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pandas as pd  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from blurfit.errors import InvalidValueError

Column = npt.NDArray[Any]
PathLike = str | os.PathLike[str]

VARIABLE = "BLURFIT_DATA"


def locate(filename: str, path: PathLike | None = None) -> Path:
    """The file at `path`, or the one of this name in the folder `path`, or in BLURFIT_DATA."""
    remedy = (
        f"Pass the path of your copy, or set the environment variable {VARIABLE} to the folder "
        f"that holds {filename}; make_census(n, seed) needs no file."
    )
    folder = os.environ.get(VARIABLE)
    if path is None and not folder:
        raise InvalidValueError(f"Expected path to say where {filename!r} is. {remedy}")
    place = Path(path if path is not None else str(folder))
    return existing(place / filename if path is None or place.is_dir() else place, remedy)


def existing(file: Path, remedy: str) -> Path:
    """The file itself, if it is there; else an error that names it and says what to do."""
    if not file.is_file():
        raise InvalidValueError(f"Expected path={str(file.absolute())!r} to be a file. {remedy}")
    return file


def read(
    file: Path, required: Collection[str], others: Collection[str] = (), *, blanks: bool = False
) -> dict[str, Column]:
    """The required columns of a Parquet or CSV file, and those of the others that it has.

    CSV may be compressed (.csv.gz). Every value must be a number; a blank is refused, or becomes
    NaN where `blanks` are allowed.
    """
    is_csv = ".csv" in file.suffixes
    try:
        present = list(pd.read_csv(file, nrows=0) if is_csv else pq.read_schema(file).names)
        names = [*required, *(name for name in others if name in present)]
        known = [name for name in names if name in present]
        found = pd.read_csv(file, usecols=known) if is_csv else pd.read_parquet(file, columns=known)
    except (OSError, ValueError):  # whose words may tell values
        raise InvalidValueError(
            f"Expected {str(file)!r} to be a {'CSV' if is_csv else 'Parquet'} file (.csv, .csv.gz "
            "or .parquet) of its columns."
        ) from None
    if absent := [name for name in required if name not in present]:
        raise InvalidValueError(f"Expected columns {absent} in {file.name!r}; it has {present}.")
    return {name: _numbers(file, name, found[name], blanks=blanks) for name in names}


def _numbers(file: Path, name: str, column: pd.Series, *, blanks: bool) -> Column:
    values: Column = column.to_numpy()
    if (missing := int(column.isna().sum())) and not blanks:
        raise InvalidValueError(
            f"Expected column {name!r} of {file.name!r} to be complete, but {missing} of "
            f"{len(values)} values are blank; remove those rows."
        )
    if values.dtype.kind not in "iufb":
        raise InvalidValueError(
            f"Expected column {name!r} of {file.name!r} to be numbers, but it is {column.dtype}; "
            "export codes rather than labels."
        )
    return values
