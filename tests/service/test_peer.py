"""What the first database makes of the answers of the second; the rest is in test_peering.py."""

import json

import httpx2 as httpx
import numpy as np
import pytest

from blurfit import NotCertifiedError, ServiceError
from blurfit.service.peer import RemotePeer, publish
from blurfit.store.store import Store
from support.sharing import Direct, new_agreement, opened, send

NOBODY = np.zeros((0, 16), dtype=np.uint8)


def answering(content: object, kind: str = "application/json") -> RemotePeer:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()

    def answer(request: httpx.Request) -> httpx.Response:
        names = b"" if "/identifiers" in str(request.url) else body  # nobody is there
        return httpx.Response(200, content=names, headers={"content-type": kind})

    transport = httpx.MockTransport(answer)
    return RemotePeer(new_agreement(), "x" * 40, transport=transport, patience=0.0)


def test_sums_are_whole_numbers_of_64_bits() -> None:
    message = {"digest": "00" * 32, "count": 5, "sums": ["0", str(2**64 - 1), "7"]}
    with answering(message) as peer:
        assert peer.masks(bytes(32), 5, NOBODY).tolist() == [0, 2**64 - 1, 7]


@pytest.mark.parametrize(
    "change", [{"sums": [str(2**64)]}, {"sums": ["-1"]}, {"sums": ["1.5"]}, {"sums": 7}, {"x": 1}]
)
def test_other_sums_are_refused(change) -> None:
    peer = answering({"digest": "00" * 32, "count": 5, "sums": []} | change)
    with peer, pytest.raises(ServiceError, match="Expected sums"):
        peer.masks(bytes(32), 5, NOBODY)


@pytest.mark.parametrize("change", [{"digest": "11" * 32}, {"count": 6}])
def test_sums_over_another_set_are_refused(change) -> None:
    peer = answering({"digest": "00" * 32, "count": 5, "sums": []} | change)
    with peer, pytest.raises(NotCertifiedError, match="over the set"):
        peer.masks(bytes(32), 5, NOBODY)


def test_too_few_sums_are_refused_and_may_be_asked_for_again() -> None:
    class Short(Direct):
        def masks(self, digest, count, left_out):
            return super().masks(digest, count, left_out)[:-1]

    agreement = new_agreement()
    with Store() as first, Store() as second:
        peer = opened(agreement, first, second)
        send(agreement, first, second, *range(4))
        second.close_collection(agreement.fingerprint)
        with pytest.raises(NotCertifiedError, match="Expected 5 sums"):
            publish(first, agreement.fingerprint, Short(second, agreement.fingerprint))
        assert publish(first, agreement.fingerprint, peer)
