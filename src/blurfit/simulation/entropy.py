"""Where a draw's randomness comes from: the operating system, or for experiments a seed.

A collection that is drawn by `blurfit.simulation.sampler` protects people if nobody can repeat the
draw. So privacy needs `operating_system_generator`; with a seed, it is an experiment.
"""

import secrets
from typing import Any

import numpy as np
from randomgen import ChaCha  # type: ignore[import-untyped]

from blurfit.errors import InvalidValueError

Generator = np.random.Generator  # for rooms that hand one on, and draw nothing themselves


def operating_system_generator() -> np.random.Generator:
    """ChaCha20 under a key of 256 bits that the operating system draws, a new one at each call.

    >>> bool(operating_system_generator().random() == operating_system_generator().random())
    False
    """
    return np.random.Generator(ChaCha(key=secrets.randbits(256), rounds=20))


def generator_for(random_state: Any) -> np.random.Generator:
    """The operating system's for None; for a seed or a NumPy generator a reproducible one.

    >>> generator_for(7).random() == generator_for(7).random()
    True
    """
    if random_state is None:
        return operating_system_generator()
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InvalidValueError(
            f"Expected random_state={random_state!r} to be None, for noise that protects, or for "
            "experiments a whole number >= 0 or a NumPy generator."
        ) from error
