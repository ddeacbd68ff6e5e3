"""What all tests share: one hypothesis profile, the same everywhere, so that a failure can be
repeated, and stores of both kinds."""

import itertools
import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from support import postgres
from support.stores import agreement, in_memory, place, places, postgresql

__all__ = ["agreement", "in_memory", "place", "places", "postgresql"]

settings.register_profile(
    "blurfit",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("blurfit")
# Hypothesis would read the source of every module that is loaded, for seconds, to draw numbers and
# words from it: and what a test draws would depend on which tests came before it.
providers._get_local_constants = lambda: providers._local_constants

_numbers = itertools.count()


def pytest_configure() -> None:
    """What tests write waits for no disk, where there is a file system in memory."""
    if (folder := postgres.memory()) is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder))


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch):
    """Each test is another user, who has blurred nothing before."""
    folder = tmp_path_factory.getbasetemp() / f"home{next(_numbers)}"
    monkeypatch.setenv("BLURFIT_HOME", str(folder))
    return folder
