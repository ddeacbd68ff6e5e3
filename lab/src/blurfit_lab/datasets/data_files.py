"""Where data files are, and how their columns become NumPy arrays.

A file is looked for where the caller says, else in the folder that the environment variable
BLURFIT_DATA names. Reading is pyarrow's work, which is needed only here.
"""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy.typing as npt

from blurfit.errors import InvalidValueError
from blurfit.optional import optional

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
    found = table(file, required, others)
    return {name: _numbers(file, name, found[name], blanks=blanks) for name in found.column_names}


def table(file: Path, required: Collection[str], others: Collection[str] = ()) -> Any:
    """These columns of a Parquet or CSV file as an Arrow table, whatever they hold."""
    present = _names(file)
    absent = [name for name in required if name not in present]
    if absent:
        raise InvalidValueError(f"Expected columns {absent} in {file.name!r}; it has {present}.")
    return _table(file, [*required, *(name for name in others if name in present)])


def _names(file: Path) -> list[str]:
    with _readable(file):
        if _is_csv(file):
            with optional("pyarrow.csv").open_csv(file) as reader:
                return list(reader.schema.names)
        return list(optional("pyarrow.parquet").read_schema(file).names)


def _table(file: Path, names: list[str]) -> Any:
    with _readable(file):
        if _is_csv(file):
            csv = optional("pyarrow.csv")
            return csv.read_csv(file, convert_options=csv.ConvertOptions(include_columns=names))
        return optional("pyarrow.parquet").read_table(file, columns=names)


def _is_csv(file: Path) -> bool:
    return ".csv" in file.suffixes


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError):  # ArrowInvalid is a ValueError, and tells values
        kind = "CSV" if _is_csv(file) else "Parquet"
        raise InvalidValueError(
            f"Expected {str(file)!r} to be a {kind} file (.csv, .csv.gz or .parquet) of its "
            "columns."
        ) from None


def _numbers(file: Path, name: str, column: Any, *, blanks: bool) -> Column:
    values: Column = column.to_numpy()
    if column.null_count and not blanks:
        raise InvalidValueError(
            f"Expected column {name!r} of {file.name!r} to be complete, but {column.null_count} of "
            f"{len(values)} values are blank; remove those rows."
        )
    if values.dtype.kind not in "iufb":
        raise InvalidValueError(
            f"Expected column {name!r} of {file.name!r} to be numbers, but it is {column.type}; "
            "export codes rather than labels."
        )
    return values
