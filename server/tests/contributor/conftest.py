"""A real service in this process, over a real connection that can be broken on purpose."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import httpx2 as httpx
import pytest

from blurfit_server.service.app import Service, in_a_thread
from blurfit_server.store.store import Store

Fate = str | Callable[[httpx.Request], httpx.Response]


@dataclass
class BadNetwork(httpx.BaseTransport):
    """What becomes of each POST, in turn; after that all goes well.

    "fine"; "lose request" (it never arrives); "lose response" (it arrives, and nobody learns of
    it); "twice" (it arrives twice); or a function that answers, or raises, in the service's place.
    """

    fates: list[Fate] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._wire = httpx.HTTPTransport(verify=False)
        self.sent: list[bytes] = []  # the bodies that were given to the network
        self.headers: list[httpx.Headers] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method != "POST":
            return self._wire.handle_request(request)
        self.sent.append(request.content)
        self.headers.append(request.headers)
        fate = self.fates.pop(0) if self.fates else "fine"
        if callable(fate):
            return fate(request)
        if fate == "lose request":
            raise httpx.ConnectError("lost on its way")
        response = self._wire.handle_request(request)
        response.read()
        if fate == "lose response":
            raise httpx.ReadError("the answer was lost")
        if fate == "twice":
            response = self._wire.handle_request(request)
            response.read()
        return response

    def close(self) -> None:
        self._wire.close()


@pytest.fixture
def store(tmp_path) -> Iterator[Store]:
    with Store(tmp_path / "collection.db") as store:
        yield store


@pytest.fixture
def url(store) -> Iterator[str]:
    with in_a_thread(Service(store)) as url:
        yield url


@pytest.fixture
def network() -> BadNetwork:
    return BadNetwork()
