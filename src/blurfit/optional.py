"""Packages that only some uses need: imported when they are called for, with a remedy if absent."""

import importlib
from typing import Any

from blurfit.errors import BlurfitError

# Which extra of blurfit brings which package. An extra that is not here, `pip` does not know.
EXTRAS = {
    "dask": "cluster",
    "distributed": "cluster",
    "dp_accounting": "rivals",
    "pandas": "tables",
    "psycopg": "postgresql",
    "pyarrow": "tables",
    "skl2onnx": "onnx",
}


def optional(module: str) -> Any:
    """Import a module of a package that only some uses need, or say which extra has it.

    >>> optional("pyarrow.parquet").__name__
    'pyarrow.parquet'
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise BlurfitError(
            f"Expected the package {package.replace('_', '-')} to be installed: run `pip install "
            f"'blurfit[{EXTRAS[package]}]'`."
        ) from error
