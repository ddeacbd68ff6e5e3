"""The ways to one or two services in this process, on which things are lost as a test says."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import httpx2 as httpx
from starlette.testclient import TestClient

from blurfit_server.service.app import Limits, Service
from blurfit_server.store.store import Store
from support.sharing import TWO


@dataclass
class Line(httpx.BaseTransport):
    """The way to one database: what happens before or instead of each POST, in turn."""

    way: httpx.BaseTransport
    fates: list = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)
    answers: dict = field(default_factory=dict)  # by the end of a path: another answer

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        for path, answer in self.answers.items():
            if request.url.path.endswith(path):
                return httpx.Response(200, content=answer)
        if request.method != "POST":
            return self.way.handle_request(request)
        fate = self.fates.pop(0) if self.fates else "fine"
        if callable(fate):
            fate = fate() or "fine"
        if fate == "lose request":
            raise httpx.ConnectError("lost on its way")
        self.sent.append(request.content)
        answer = self.way.handle_request(request)
        answer.read()
        if fate == "lose answer":
            raise httpx.ReadError("the answer was lost")
        return answer


@contextmanager
def answering(*stores: Store) -> Iterator[list[Line]]:
    """The services of one database, or of two."""
    free = Limits(requests_per_second=0)
    with ExitStack() as stack:
        clients = [
            stack.enter_context(TestClient(Service(store, free), base_url=url))
            for store, (_, url) in zip(stores, TWO, strict=False)
        ]
        yield [Line(one._transport) for one in clients]
