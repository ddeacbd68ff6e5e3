"""The command as a user meets it, in a folder of its own."""

import pytest

from support.command import Blurfit, propose

__all__ = ["propose"]


@pytest.fixture
def blurfit(tmp_path) -> Blurfit:
    return Blurfit(tmp_path)
