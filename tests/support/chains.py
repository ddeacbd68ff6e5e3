"""Short chains, for tests in which the last digits of a posterior mean do not matter."""

import pytest

from blurfit.learning import posterior_mean


@pytest.fixture
def short_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """A posterior mean is sampled for a while: less will do."""
    monkeypatch.setattr(posterior_mean, "_WARM", 3)
    monkeypatch.setattr(posterior_mean, "_KEPT", 2)
