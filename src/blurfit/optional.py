"""Packages that only some uses need: imported when they are called for, with a remedy if absent."""

import importlib
from typing import Any

from blurfit.errors import BlurfitError

# Which extra of blurfit brings which package. An extra that is not here, `pip` does not know.
EXTRAS = {
    "dask": "cluster",
    "distributed": "cluster",
    "formulaic": "formulas",
    "httptools": "service",
    "matplotlib": "plots",
    "openpyxl": "surveys",
    "pandas": "tables",
    "prometheus_client": "service",
    "psycopg": "postgresql",
    "pyarrow": "tables",
    "segno": "codes",
    "skl2onnx": "onnx",
    "sqlalchemy": "service",
    "starlette": "service",
    "uvicorn": "service",
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
        raise missing(package) from error


def axes(ax: Any, width: float, height: float) -> Any:
    """Return the axes that were given, or those of a new figure, by matplotlib."""
    if ax is None:
        size = width, height
        _, ax = optional("matplotlib.pyplot").subplots(figsize=size, layout="constrained")
    return ax


def missing(package: str) -> BlurfitError:
    """Return an error that says which of `EXTRAS` is not installed, and what to run."""
    return BlurfitError(
        f"Expected the package {package.replace('_', '-')} to be installed: run `pip install "
        f"'blurfit[{EXTRAS[package]}]'`."
    )
