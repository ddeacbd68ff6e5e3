"""What all tests share, and the examples of the documentation: one hypothesis profile, the same
everywhere, so that a failure can be repeated, and noise that is replayed, so that none fails by
luck.
"""

import gc
import itertools
import os
import sys
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from support import memory, programs
from support.replay import pytest_fixture_setup, pytest_make_collect_report, replayed

__all__ = ["pytest_fixture_setup", "pytest_make_collect_report", "replayed"]

settings.register_profile(
    "blurfit",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("blurfit")
# Hypothesis also tries the constants of all modules of ours that are loaded: which those are
# depends on the tests before, and its examples with them.
providers.is_local_module_file = lambda _: False

_numbers = itertools.count()


def pytest_configure() -> None:
    """What tests write waits for no disk, where there is a file system in memory."""
    if (folder := memory.memory()) is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder))


@pytest.hookimpl(wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """One more than there are processors: tests wait for browsers, services and PostgreSQL."""
    return (yield) + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of modules and tests stay until the end: nobody looks for garbage among them.

    As soon as a test configures logging, absl would close the standard error that it found when it
    was imported, which is pytest's own: it gets the process's, which it leaves open.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        if (absl := sys.modules.get("absl.logging")) is not None:
            absl.get_absl_handler().python_handler.stream = sys.__stderr__
        gc.freeze()
        gc.set_threshold(20_000)  # most of what tests make is gone long before
        gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell in one line what was left out because a program is missing, and how to get it."""
    if (words := programs.left_out(terminalreporter.stats.get("skipped", []))) is not None:
        terminalreporter.write_line(words, yellow=True)


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch):
    """Each test is another user, who has blurred nothing before."""
    folder = tmp_path_factory.getbasetemp() / f"home{next(_numbers)}"
    monkeypatch.setenv("BLURFIT_HOME", str(folder))
    return folder
