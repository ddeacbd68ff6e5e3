"""Bodies that are too large, too slow, or of another kind."""

import asyncio
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from blurfit.contributor.perturb import perturb, perturb_table
from blurfit.protocol.problems import RequestError
from blurfit.service import bodies
from blurfit.service.app import Limits, Service
from support.requests import opened, refused, send
from support.stores import PEOPLE


def test_bodies_over_the_limit(store, agreement) -> None:
    with TestClient(Service(store, Limits(body_bytes=1000, requests_per_second=0))) as client:
        path = opened(client, agreement)
        large = perturb_table(agreement, PEOPLE).to_bytes()
        refused(send(client, path, large), 413, "too-large", "1000 bytes")
        lied = send(client, path, b"x", **{"content-length": "99999999999"})
        refused(lied, 413, "too-large")

        def parts() -> Iterator[bytes]:  # no length is stated
            yield from (large[start : start + 100] for start in range(0, len(large), 100))

        refused(send(client, path, parts()), 413, "too-large")
        small = perturb(agreement, {"age": 30, "income": 20}).to_bytes()
        assert send(client, path, iter([small[:50], small[50:]])).status_code == 200


def test_a_body_that_does_not_come_is_given_up(http, agreement, monkeypatch) -> None:
    monkeypatch.setattr(bodies, "SECONDS_FOR_A_BODY", 0.01)

    def after(parts: int):
        """So many parts of a body, and then silence."""
        left = [b"x"] * parts

        async def receive() -> dict:
            if not left:
                await asyncio.sleep(10)
            return {"type": "http.request", "body": left.pop(), "more_body": True}

        return receive

    for parts in (0, 1, 2):
        with pytest.raises(RequestError, match="within 0"):
            asyncio.run(bodies.read_body({}, after(parts), 100))
