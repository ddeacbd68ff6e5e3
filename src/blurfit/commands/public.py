"""Public rows on the command line: which file they are in, and how they were made to match."""

from collections.abc import Callable
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from blurfit.errors import InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from blurfit.agreement.agreement import Agreement
    from blurfit.arrays import FloatArray
    from blurfit.learning.public_features import Balance
    from blurfit.schema.schema import Schema

_KINDS = (".csv", ".parquet")
_LARGEST = 2**31  # bytes that are fetched: some of the rows are enough


class _FileOrAddress(click.Path):
    """A file, or what is fetched from where it is public, for as long as the command runs."""

    name = "file or url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if ctx is not None and str(value).startswith(("http://", "https://")):
            folder = ctx.find_root().with_resource(TemporaryDirectory())  # gone after a refusal too
            value = _fetched(str(value), Path(folder))
        return super().convert(value, param, ctx)


def _fetched(address: str, folder: Path) -> Path:
    import httpx2 as httpx

    path = folder / (PurePosixPath(urlsplit(address).path).name or "rows")
    size = 0
    try:
        with httpx.stream("GET", address, follow_redirects=True, timeout=60.0) as answer:
            answer.raise_for_status()
            with path.open("wb") as file:
                for part in answer.iter_bytes():
                    size += file.write(part)
                    if size > _LARGEST:
                        raise InvalidValueError(
                            f"Expected at most {_LARGEST:,} bytes of public rows at {address!r}."
                        )
    except httpx.HTTPError as error:
        raise InvalidValueError(
            f"Cannot fetch the public rows at {address!r}: {' '.join(str(error).split())}."
        ) from error
    return path


def public_option(help_text: str) -> Callable[[Any], Any]:
    """A file of public rows, on this machine or at an address."""
    return click.option(
        "--public", type=_FileOrAddress(exists=True, dir_okay=False, path_type=Path), help=help_text
    )


def digest_of(path: Path, schema: "Schema") -> str:
    """SHA-256 of a file of public rows, once every feature of all rows has been read."""
    from blurfit.schema.table_files import TableFile

    names = tuple(feature.name for feature in schema.features)
    read_public(path, schema, names)
    return TableFile(path, schema, only=names).digest()


def read_public(path: Path, schema: "Schema", names: "Sequence[str]") -> dict[str, list[Any]]:
    """Some columns of a file of public rows; refuses what the schema refuses, with its row."""
    from blurfit.schema.table_files import TableFile
    from blurfit.schema.vectors import values

    if path.suffix.lower() not in _KINDS:
        raise InvalidValueError(
            f"Expected --public {str(path)!r} to be a file of public rows, .csv or .parquet."
        )
    file = TableFile(path, schema, only=tuple(names))
    columns: dict[str, list[Any]] = {name: [] for name in names}
    rows = 0
    for part in file.chunks():
        with file.located(rows):
            rows += len(values(schema, part, names))
        for name in names:
            found = part[name]
            columns[name] += found.to_pylist() if hasattr(found, "to_pylist") else found
    if not rows:
        raise InvalidValueError(f"Expected at least one public row in {str(path)!r}.")
    return columns


def encoded_public(path: Path, schema: "Schema") -> "FloatArray":
    """All features of a file of public rows as the columns that joint moments have: (rows, k)."""
    import numpy as np

    from blurfit.schema.vectors import values

    names = [feature.name for feature in schema.features]
    return np.atleast_2d(values(schema, read_public(path, schema, names), names))


def require_agreed(path: Path, agreement: "Agreement") -> None:
    """Refuse any file other than the one that the agreement names, if it names one."""
    from blurfit.schema.table_files import TableFile

    agreed = agreement.public_rows
    if agreed is None:
        return
    found = TableFile(path, agreement.schema, only=()).digest()
    if found != agreed:
        raise InvalidValueError(
            f"Expected --public {str(path)!r} to be the file of public rows that was agreed on, "
            f"with SHA-256 {agreed}, and its own is {found}. Fetch the agreed file again."
        )


def balance_facts(balance: "Balance") -> dict[str, Any]:
    """How public rows were weighted, for scripts; what is not known of contributors is None."""
    wanted = [None] * len(balance.names) if balance.wanted is None else balance.wanted.tolist()
    means = zip(balance.before.tolist(), balance.after.tolist(), wanted, strict=True)
    return {
        "rows": len(balance.weights),
        "effective_rows": balance.effective_rows,
        "largest_weight": balance.largest_ratio,
        "columns": {
            name: dict(zip(("public", "matched", "contributors"), each, strict=True))
            for name, each in zip(balance.names, means, strict=True)
        },
    }
