"""ChaCha20 under a key, as a generator of NumPy's: by randomgen, or by `cryptography` without it.

Simulated noise protects like real noise only if nobody can predict it, and a simulation needs
NumPy's distributions. `blurfit.simulation` therefore feeds them from ChaCha20 (Bernstein, 2008)
under a key of 256 bits, nonce and counter 0.

randomgen has no wheel for Python 3.15. There NumPy reads its interface, a C structure of four
functions, from `Stream`: each function takes the next 32 or 64 bits from the key stream that
`cryptography` computes. The stream is the same bit by bit (`tests/simulation/test_sampler.py`), so
what a key draws does not depend on what is installed. It is slower: 10⁶ uniform numbers took 14
times as long as by randomgen, and 10⁶ normals 5 times (`python benchmarks/blur.py`, Python 3.11, a
busy machine of two cores).
"""

import ctypes
import threading
from collections.abc import Iterator
from functools import partial
from itertools import chain, count, repeat
from operator import lshift, methodcaller, mul, or_, rshift
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

_OCTETS_AT_ONCE = 2**16  # of key stream: a fraction of a processor's cache
_OCTETS_OF_COUNTER = 64 * 2**32  # `cryptography` refuses more of one cipher


class _Interface(ctypes.Structure):
    """NumPy's bitgen_t (`numpy/random/bitgen.h`)."""

    _fields_ = (
        ("state", ctypes.c_void_p),
        ("next_uint64", ctypes.CFUNCTYPE(ctypes.c_uint64)),  # whose caller's state is not read
        ("next_uint32", ctypes.CFUNCTYPE(ctypes.c_uint32)),
        ("next_double", ctypes.CFUNCTYPE(ctypes.c_double)),
        ("next_raw", ctypes.CFUNCTYPE(ctypes.c_uint64)),
    )


class Stream:
    """What `numpy.random.Generator` asks of a bit generator: a capsule and a lock.

    NumPy copies the structure's pointers, so the functions live as long as this object, which the
    generator keeps. They call iterators that are written in C: in a function of Python's a signal
    could raise, and NumPy would take 0 for a number that was not drawn, and see no error.
    """

    def __init__(self, key: int) -> None:
        words = _words(key)
        pairs = map(or_, words, map(lshift, words, repeat(32)))  # the first word is the lower one
        doubles = map(mul, map(rshift, pairs, repeat(11)), repeat(2.0**-53))
        kinds: dict[str, Any] = dict(_Interface._fields_)
        next_uint64 = kinds["next_uint64"](pairs.__next__)
        self._interface = _Interface(
            None,
            next_uint64,
            kinds["next_uint32"](words.__next__),
            kinds["next_double"](doubles.__next__),
            next_uint64,
        )
        wrap = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
        )(("PyCapsule_New", ctypes.pythonapi))
        self.capsule = wrap(ctypes.addressof(self._interface), b"BitGenerator", None)
        self.lock = threading.Lock()


def _words(key: int) -> Iterator[int]:
    """Return the words of 32 bits of a key's stream, which does not end."""
    octets = chain.from_iterable(_octets(key, high) for high in count())
    blocks = map(methodcaller("tolist"), map(partial(np.frombuffer, dtype="<u4"), octets))
    # The first is drawn here, so that until 2³² blocks of the cipher were no line of Python runs.
    return chain(next(blocks), chain.from_iterable(blocks))


def _octets(key: int, high: int) -> Iterator[bytes]:
    """Return what a key's stream has while the higher 32 bits of its 64-bit counter are `high`."""
    nonce = (high << 32).to_bytes(16, "little")
    stream = Cipher(algorithms.ChaCha20(key.to_bytes(32, "little"), nonce), mode=None).encryptor()
    return map(stream.update, repeat(bytes(_OCTETS_AT_ONCE), _OCTETS_OF_COUNTER // _OCTETS_AT_ONCE))


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
