"""A service in the same process, over a store of each kind."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from blurfit.protocol import hashed
from blurfit_server.service.app import Limits, Service
from blurfit_server.store.store import Store
from server_support.requests import TOKEN


@pytest.fixture
def store(place) -> Iterator[Store]:
    with Store(place) as kept:
        kept.appoint(hashed(TOKEN))
        yield kept


@pytest.fixture
def http(store) -> Iterator[TestClient]:
    with TestClient(Service(store, Limits(requests_per_second=0))) as client:
        yield client
