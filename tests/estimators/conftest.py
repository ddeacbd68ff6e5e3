"""Hundreds of fits to a few rows."""

import pytest

from blurfit.learning import posterior_mean


@pytest.fixture(autouse=True)
def short_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fit samples for a while: short chains will do where the weights' last digits do not
    matter.
    """
    monkeypatch.setattr(posterior_mean, "_WARM", 6)
    monkeypatch.setattr(posterior_mean, "_KEPT", 8)
