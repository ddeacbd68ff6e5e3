"""What a call that must be refused says."""

from collections.abc import Callable
from typing import Any

import pytest

from blurfit import InvalidValueError


def refusal(call: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    """The message of the refusal."""
    with pytest.raises(InvalidValueError) as refused:
        call(*arguments, **named)
    return str(refused.value)
