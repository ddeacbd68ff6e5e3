"""ChaCha20 under a key, as a generator of NumPy's: by randomgen, or by `cryptography` without it.

Simulated noise protects like real noise only if nobody can predict it, and a simulation needs
NumPy's distributions. `blurfit.simulation` therefore feeds them from ChaCha20 (Bernstein, 2008)
under a key of 256 bits, nonce and counter 0.

randomgen has no wheel for Python 3.15. There NumPy reads its interface, a C structure of four
functions, from `Stream`: each function takes the next 32 or 64 bits from the key stream that
`cryptography` computes. The stream is the same bit by bit (`tests/simulation/test_sampler.py`), so
what a key draws does not depend on what is installed. It is slower: 10⁶ uniform numbers took 16
times as long as by randomgen, and 10⁶ normals 9 times (`python benchmarks/blur.py`, Python 3.11, a
busy machine of two cores).
"""

import ctypes
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

_OCTETS_AT_ONCE = 2**16  # of key stream: a fraction of a processor's cache


class _Interface(ctypes.Structure):
    """NumPy's bitgen_t (`numpy/random/bitgen.h`)."""

    _fields_ = (
        ("state", ctypes.c_void_p),
        ("next_uint64", ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)),
        ("next_uint32", ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)),
        ("next_double", ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)),
        ("next_raw", ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)),
    )


class Stream:
    """What `numpy.random.Generator` asks of a bit generator: a capsule and a lock.

    NumPy copies the structure's pointers, so the functions live as long as this object, which the
    generator keeps.
    """

    def __init__(self, key: int) -> None:
        take = _words(key).__next__

        def next_double(_state: int | None) -> float:
            return ((take() | take() << 32) >> 11) * 2.0**-53

        kinds: dict[str, Any] = dict(_Interface._fields_)
        next_uint64 = kinds["next_uint64"](lambda _state: take() | take() << 32)
        self._interface = _Interface(
            None,
            next_uint64,
            kinds["next_uint32"](lambda _state: take()),
            kinds["next_double"](next_double),
            next_uint64,
        )
        wrap = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
        )(("PyCapsule_New", ctypes.pythonapi))
        self.capsule = wrap(ctypes.addressof(self._interface), b"BitGenerator", None)
        self.lock = threading.Lock()


def _words(key: int) -> Iterator[int]:
    cipher = Cipher(algorithms.ChaCha20(key.to_bytes(32, "little"), bytes(16)), mode=None)
    stream = cipher.encryptor()
    while True:
        yield from np.frombuffer(stream.update(bytes(_OCTETS_AT_ONCE)), "<u4").tolist()


def generator(key: int) -> np.random.Generator:
    """Return NumPy's generator on the stream of a key, a whole number below 2²⁵⁶.

    >>> generator(7).random() == np.random.Generator(Stream(7)).random()
    True
    """
    bits: Any
    try:
        from randomgen import ChaCha  # type: ignore[import-untyped]
    except ImportError:
        bits = Stream(key)
    else:
        bits = ChaCha(key=key, rounds=20)
    return np.random.Generator(bits)
