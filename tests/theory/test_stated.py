"""Numbers may differ by rounding, and everything else not at all."""

import math

import pytest

from blurfit.errors import NotCertifiedError
from blurfit.theory.stated import require_close, require_equal


def test_rounding_is_allowed_and_more_is_not() -> None:
    require_close("mu", 0.3, 0.1 + 0.2)
    require_close("mu", math.inf, math.inf)
    for wrong in (0.3 * (1 + 1e-8), 0.0, math.nan):
        with pytest.raises(NotCertifiedError, match=r"Expected mu to be 0\.3, which follows from"):
            require_close("mu", wrong, 0.3)


def test_words_are_equal_or_refused() -> None:
    require_equal("releases", ("any", True), ("any", True))
    with pytest.raises(NotCertifiedError, match="but 1 is stated"):
        require_equal("releases", 1, "any")
