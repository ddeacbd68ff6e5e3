"""The operating system's bits, replayed: a test draws the same noise in every run.

What a test says of noise then holds always or never, instead of nearly always. Noise itself takes
no seed (`blurfit.randomness.bits`, `blurfit.simulation.sampler`), so the modules' own view of the
operating system is exchanged, which only code that reaches into them can do. Identifiers and the
secrets of receipts are replayed with it: their order decides which bucket or block a row is in. A
table is blurred by one thread instead of as many as there are processors: which of several draws
first is chance too. Processes that a test starts draw real noise.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from zlib import crc32

import pytest

from blurfit.contributor import blur, noise
from blurfit.randomness import bits
from blurfit.simulation import sampler


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
    numbers, labels = (random.Random(crc32(text.encode())) for text in (name, f"{name} labels"))
    secrets = SimpleNamespace(
        token_bytes=labels.randbytes, token_hex=lambda size: labels.randbytes(size).hex()
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bits, "os", SimpleNamespace(urandom=numbers.randbytes))
        patch.setattr(sampler, "secrets", SimpleNamespace(randbits=numbers.getrandbits))
        patch.setattr(blur, "os", SimpleNamespace(cpu_count=lambda: 1))
        for module in (noise, blur):
            patch.setattr(module, "secrets", secrets)
        yield
