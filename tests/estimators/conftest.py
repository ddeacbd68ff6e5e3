"""Hundreds of fits to a few rows."""

import pytest

from support.chains import short_chains

__all__ = ["short_chains"]


@pytest.fixture(autouse=True)
def quick_fits(short_chains) -> None:
    """Each fit samples for a short while."""
