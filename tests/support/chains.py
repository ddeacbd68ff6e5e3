"""Short chains, for tests in which the last digits of a posterior mean do not matter."""

import pytest

from blurfit.learning import shrinkage


@pytest.fixture
def short_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """A posterior mean is sampled for a while: less will do."""
    monkeypatch.setattr(shrinkage, "_WARM", 3)
    monkeypatch.setattr(shrinkage, "_KEPT", 2)
