"""The operating system's bits, replayed: a test draws the same noise in every run.

What a test says of noise then holds always or never, instead of nearly always. Noise itself takes
no seed, so `blurfit.randomness.octets`, of which noise, masks, identifiers and tokens are
made, is exchanged. A table is blurred by one thread instead of as many as there are processors:
which of several draws first is chance too. Processes that a test starts draw real noise.
"""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

import pytest

from blurfit import randomness as bits


@pytest.fixture(autouse=True)
def replayed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test has a stream of its own, which its name decides.

    A file that is about the operating system's own bits defines a fixture `replayed` that does
    nothing.
    """
    with drawn_from(request.node.nodeid):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """What several tests share has a stream of its own, which the fixture's name decides.

    It is set up before the first test that asks for it, and which that is depends on who runs the
    tests, and in which order.
    """
    if fixturedef.scope == "function":
        return (yield)
    with drawn_from(f"{fixturedef.baseid}::{fixturedef.argname}"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """What a module draws while it is imported has a stream too, which its path decides."""
    with drawn_from(collector.nodeid):
        return (yield)


@contextmanager
def drawn_from(name: str) -> Iterator[None]:
    """Within, noise is drawn from the stream that belongs to a name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bits, "octets", random.Random(crc32(name.encode())).randbytes)
        patch.setattr(os, "cpu_count", lambda: 1)
        yield
