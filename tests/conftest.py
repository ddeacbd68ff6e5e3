"""What all tests share: one hypothesis profile, the same everywhere, so that a failure can be
repeated, and stores of both kinds."""

import itertools

import pytest
from hypothesis import HealthCheck, settings

from support.stores import agreement, in_memory, place, postgresql

__all__ = ["agreement", "in_memory", "place", "postgresql"]

settings.register_profile(
    "blurfit",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("blurfit")

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch):
    """Each test is another user, who has blurred nothing before."""
    folder = tmp_path_factory.getbasetemp() / f"home{next(_numbers)}"
    monkeypatch.setenv("BLURFIT_HOME", str(folder))
    return folder
