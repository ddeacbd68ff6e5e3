"""A service in the same process, over a store of each kind."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from blurfit.protocol.tokens import hashed
from blurfit.service.app import Limits, Service
from blurfit.store.store import Store
from support.requests import TOKEN


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Both kinds of stores and both mechanisms, each once: tests of the store have all pairs."""
    pairs = ("place", "agreement"), [("sqlite", "moment"), ("postgresql", "input")]
    if set(pairs[0]) <= set(metafunc.fixturenames) and not metafunc.definition.own_markers:
        metafunc.definition.add_marker(pytest.mark.parametrize(*pairs, indirect=True))


@pytest.fixture
def store(place) -> Iterator[Store]:
    with Store(place) as kept:
        kept.appoint(hashed(TOKEN))
        yield kept


@pytest.fixture
def http(store) -> Iterator[TestClient]:
    with TestClient(Service(store, Limits(requests_per_second=0))) as client:
        yield client
