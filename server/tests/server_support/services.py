"""Two services in one process, each of which finds the other without a network."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.testclient import TestClient

from blurfit.agreement.plan import Agreed
from blurfit.protocol import hashed
from blurfit_server.service.app import Limits, Service
from blurfit_server.store.store import Store
from server_support.requests import TOKEN, opened
from support.sharing import TWO

PEER = "the-token-that-both-databases-share"
NO_LIMIT = Limits(requests_per_second=0)


@contextmanager
def two_services(
    agreed: Agreed, stores: tuple[Store, Store], **each: Any
) -> Iterator[tuple[TestClient, TestClient]]:
    """Both have opened what was agreed on; each option is given for the first and the second."""
    for store in stores:
        store.appoint(hashed(TOKEN))
    ours, theirs = ({name: pair[side] for name, pair in each.items()} for side in (0, 1))
    far = Service(stores[1], NO_LIMIT, peer_token=PEER, **theirs)
    with TestClient(far, base_url=TWO[1][1]) as second:
        way = {"transport": second._transport, "patience": 0.0}
        near = Service(stores[0], NO_LIMIT, peer_token=PEER, peer_options=way, **ours)
        with TestClient(near, base_url=TWO[0][1]) as first:
            for client, role in ((first, "first"), (second, "second")):
                opened(client, agreed, role=role)
            yield first, second
