"""What tests come to import, for the process that workers and commands are forked from.

What cannot be imported, or not without a warning, is left to those who need it, who then say so. So
are libraries that start threads when they are imported, which no fork takes along.
"""

import gc
import pkgutil
import warnings
from contextlib import suppress
from importlib import import_module

import blurfit
from support.processes import PRELOADED

LIBRARIES = [
    "cvxpy",
    "distributed",
    "dp_accounting",
    "httpx2",
    "hypothesis.strategies",
    "mpmath",
    "openpyxl",
    "playwright.sync_api",
    "pytest",
    "randomgen",
    "requests",
    "schemathesis.pytest.lazy",
    "schemathesis.specs.openapi.checks",
    "sklearn.utils.estimator_checks",
    "starlette.testclient",
]


def preload() -> None:
    """Nobody looks for garbage among what is loaded, here or in those who are forked."""
    ours = [
        module.name
        for module in pkgutil.walk_packages(blurfit.__path__, "blurfit.")
        if not module.name.endswith("__main__")
    ]
    gc.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ours + PRELOADED + LIBRARIES:
            with suppress(Exception):
                import_module(name)
    gc.freeze()
    gc.enable()


preload()
