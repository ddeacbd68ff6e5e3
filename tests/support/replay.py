"""The operating system's bits, replayed: a test draws the same noise in every run.

What a test says of noise then holds always or never, instead of nearly always. Noise itself takes
no seed (`blurfit.randomness.bits`, `blurfit.simulation.entropy`), so the modules' own view of the
operating system is exchanged, which only code that reaches into them can do. A table is blurred by
one thread instead of as many as there are processors: which of several draws first is chance too.
Processes that a test starts draw real noise.
"""

import random
from collections.abc import Iterator
from types import SimpleNamespace
from zlib import crc32

import pytest

from blurfit.contributor import perturb
from blurfit.randomness import bits
from blurfit.simulation import entropy


@pytest.fixture(autouse=True)
def replayed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test has a stream of its own, which its name decides.

    A file that is about the operating system's own bits defines a fixture `replayed` that does
    nothing.
    """
    stream = random.Random(crc32(request.node.nodeid.encode()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bits, "os", SimpleNamespace(urandom=stream.randbytes))
        patch.setattr(entropy, "secrets", SimpleNamespace(randbits=stream.getrandbits))
        patch.setattr(perturb, "os", SimpleNamespace(cpu_count=lambda: 1))
        yield
