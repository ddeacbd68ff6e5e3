"""The shared names are NumPy's own types, so that mypy and readers see one spelling."""

from typing import get_args

import numpy as np
import pytest

from blurfit import arrays


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("BoolArray", np.bool_),
        ("ByteArray", np.uint8),
        ("FloatArray", np.float64),
        ("IntArray", np.int64),
        ("WordArray", np.uint64),
    ],
)
def test_names_say_what_is_inside(name: str, kind: type) -> None:
    _, dtype = get_args(getattr(arrays, name))
    assert get_args(dtype) == (kind,)
