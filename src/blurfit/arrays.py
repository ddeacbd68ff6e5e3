"""Names for the arrays that the house passes round, so that each is spelt once; and those that are
computed once and shared, which nobody may change.
"""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

AnyArray = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
ByteArray = npt.NDArray[np.uint8]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
WordArray = npt.NDArray[np.uint64]
_Kind = TypeVar("_Kind", bound=AnyArray)


def fixed(array: _Kind) -> _Kind:
    """Return the array itself, which nobody can write to any more."""
    array.setflags(write=False)
    return array
