"""Every worker collects all tests. What need not be done in each of them is done once, before."""

import multiprocessing
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

TESTS = Path(__file__).parents[1]


def rewrite_asserts(config: pytest.Config) -> None:
    """Rewrite the asserts of all files, on all processors, and leave them where pytest looks.

    Workers go through the files at the same time in the same order, so otherwise each of them
    rewrites every file. These are functions of pytest's own: where they have other names, or
    nothing may be written, workers do as they did.
    """
    workers = config.getoption("numprocesses", None) and not hasattr(config, "workerinput")
    if not workers or sys.dont_write_bytecode or config.getoption("assertmode") != "rewrite":
        return
    files = [*TESTS.rglob("test_*.py"), *TESTS.rglob("conftest.py")]
    with suppress(ImportError), multiprocessing.get_context("fork").Pool() as pool:
        pool.map(_rewrite, files, chunksize=8)


def _rewrite(file: Path) -> None:
    from _pytest.assertion.rewrite import (
        PYC_TAIL,
        _read_pyc,
        _rewrite_test,
        _write_pyc,
        get_cache_dir,
    )

    folder = get_cache_dir(file)
    rewritten = folder / (file.stem + PYC_TAIL)
    if _read_pyc(file, rewritten) is None:
        folder.mkdir(parents=True, exist_ok=True)
        source, code = _rewrite_test(file, None)  # type: ignore[arg-type]
        _write_pyc(SimpleNamespace(trace=print), code, source, rewritten)  # type: ignore[arg-type]
