"""Whoever connects gets so much and no more, and the others are served meanwhile."""

import resource
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest

from blurfit_server.service import limits
from blurfit_server.service.app import Limits, Service, in_a_thread
from blurfit_server.service.limits import Bounds, raise_descriptor_limit
from blurfit_server.store.store import Store

PATIENCE = 60.0  # seconds: far longer than anything takes here, and far shorter than LONG
LONG = 3600.0
# Deadlines never come where something else is bounded, and soon where they are what it is about.
BOUNDS = Bounds(
    head_bytes=2**14,
    head_lines=50,
    head_seconds=LONG,
    body_seconds=LONG,
    answer_seconds=LONG,
    connections_of_an_address=8,
    connections=20,
)
HASTY = replace(BOUNDS, head_seconds=0.2, body_seconds=0.2, answer_seconds=0.2)
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: x\r\n"
POST = b"POST /collections/" + b"0" * 64 + b"/submissions HTTP/1.1\r\nhost: x\r\n"


@contextmanager
def bounded(bounds: Bounds) -> Iterator[int]:
    with (
        Store() as store,
        in_a_thread(Service(store, Limits(requests_per_second=0)), bounds=bounds) as url,
    ):
        yield int(url.rpartition(":")[2])


@pytest.fixture
def port() -> Iterator[int]:
    with bounded(BOUNDS) as found:
        yield found


@pytest.fixture
def hasty() -> Iterator[int]:
    with bounded(HASTY) as found:
        yield found


def connected(port: int, source: str = "127.0.0.1") -> socket.socket:
    where = ("127.0.0.1", port)
    return socket.create_connection(where, timeout=PATIENCE, source_address=(source, 0))


def rest_of(one: socket.socket) -> bytes:
    """What comes until the other side hangs up."""
    found = b""
    try:
        while part := one.recv(2**16):
            found += part
    except ConnectionError:
        pass
    return found


def answer_to(port: int, message: bytes, source: str = "127.0.0.1") -> bytes:
    with connected(port, source) as one:
        with suppress(ConnectionError):  # it may hang up before it has everything
            one.sendall(message)
        return rest_of(one)


def is_well(port: int, source: str = "127.0.0.1") -> bool:
    answer = answer_to(port, HEALTH + b"connection: close\r\n\r\n", source)
    return answer.startswith(b"HTTP/1.1 200") and b'"ok"' in answer


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (HEALTH, b"a:\r\n" * 16),
        (b"GET /", b"x" * 64),
        (HEALTH + b"a: ", b"x" * 64),
        (HEALTH + b"x", b"x" * 64),
        (POST + b"transfer-encoding: chunked\r\n\r\n0\r\n", b"a:\r\n" * 16),
        (POST + b"transfer-encoding: chunked\r\n\r\n0\r\na: ", b"x" * 64),
        (POST + b"transfer-encoding: chunked\r\n\r\n1;", b"x" * 64),
    ],
    ids=["lines", "address", "value", "name", "trailers", "trailer", "extension"],
)
def test_a_head_without_end_is_cut(port, start, more) -> None:
    """Seen before: 50 MiB of short lines took 1.5 GB, and an endless address stopped the rest."""
    with connected(port) as one:
        try:
            for _ in range(400):  # 25 KiB, in small pieces
                one.sendall(start + more)
                start = b""
        except ConnectionError:
            pass
        answer = rest_of(one)
    assert answer.startswith((b"HTTP/1.1 431", b"HTTP/1.1 404")) or not answer
    assert is_well(port)


def test_a_whole_head_in_one_piece_is_measured_too(port) -> None:
    for lines in (b"a: b\r\n" * 60, b"a: " + b"x" * 20_000 + b"\r\n"):
        answer = answer_to(port, HEALTH + lines + b"\r\n")
        assert answer.startswith(b"HTTP/1.1 431")
    answer = answer_to(port, b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 431")
    longest = b"a: b\r\n" * 45 + b"c: " + b"x" * 15_000 + b"\r\nconnection: close\r\n\r\n"
    assert answer_to(port, HEALTH + longest).startswith(b"HTTP/1.1 200")


def test_requests_that_are_not_waited_for(port) -> None:
    answer = answer_to(port, (HEALTH + b"\r\n") * 1000)
    assert answer.count(b"HTTP/1.1 200") <= 1 + BOUNDS.waiting_requests
    assert is_well(port)


OFFER = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQ\r\n"


@pytest.mark.parametrize("pieces", [1, 3, 400])
def test_an_offer_to_upgrade_is_ignored(port, pieces) -> None:
    """As `curl --http2` makes it; seen before: an empty reply."""
    websocket = b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: eA==\r\n\r\n"
    body = b"content-type: application/json\r\ncontent-length: 9\r\n\r\nnot json!"
    sent = HEALTH + OFFER + b"\r\n" + HEALTH + websocket + POST + OFFER + body
    sent += HEALTH + OFFER.replace(b"Upgrade,", b"Upgrade, close,") + b"\r\n"
    step = -(-len(sent) // pieces)
    with connected(port) as one:
        for start in range(0, len(sent), step):
            one.sendall(sent[start : start + step])
        answer = rest_of(one)
    posted = answer_to(port, POST + b"connection: close\r\n" + body)[9:12]
    statuses = [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"200", b"200", posted, b"200"]


def test_a_tunnel_is_refused(port) -> None:
    answer = answer_to(port, b"CONNECT x.example:80 HTTP/1.1\r\nhost: x.example:80\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert is_well(port)


@pytest.mark.parametrize(
    "start",
    [b"", b"G", HEALTH, POST + b"content-length: 5\r\n\r\n", POST + b"content-length: 5\r\n\r\nab"],
)
def test_whoever_says_no_more_is_hung_up_on(hasty, start) -> None:
    with connected(hasty) as one:
        one.sendall(start)
        answer = rest_of(one)
        assert not answer or answer.startswith((b"HTTP/1.1 408", b"HTTP/1.1 404"))


def test_a_drip_is_not_enough(hasty) -> None:
    """However slowly the bytes drip: as many as a head may have would take five minutes."""
    with connected(hasty) as one:
        one.sendall(HEALTH + b"a: ")
        with pytest.raises(ConnectionError):
            for _ in range(HASTY.head_bytes - 100):
                time.sleep(0.02)
                one.sendall(b"x")


def test_silent_sockets_of_one_address_leave_room_for_another(port) -> None:
    """Seen before: 1,100 silent sockets, and nobody could reach the service."""
    silent = [connected(port) for _ in range(BOUNDS.connections_of_an_address)]
    try:
        for _ in range(30):
            refused = answer_to(port, b"")
            assert refused.startswith(b"HTTP/1.1 503")
            assert b"retry-after" in refused
        assert is_well(port, "127.0.0.2")
    finally:
        for one in silent:
            one.close()


def test_silent_sockets_are_closed_and_leave_room_again(hasty) -> None:
    silent = [connected(hasty) for _ in range(HASTY.connections_of_an_address)]
    try:
        for one in silent:  # they were let in, and were closed when nothing came
            assert rest_of(one).startswith(b"HTTP/1.1 408")
        # There is room again; here it may be that a busy machine asks too slowly itself.
        assert any(is_well(hasty) for _ in range(100))
    finally:
        for one in silent:
            one.close()


def test_all_together_are_bounded(port) -> None:
    many = [connected(port, f"127.0.0.{2 + n // 7}") for n in range(BOUNDS.connections + 1)]
    try:
        (told,), _, _ = select.select(many, [], [], PATIENCE)
        assert rest_of(told).startswith(b"HTTP/1.1 503")
        assert is_waiting([one for one in many if one is not told])
    finally:
        for one in many:
            one.close()


def is_waiting(connections: list[socket.socket]) -> bool:
    return not select.select(connections, [], [], 0)[0]


def test_an_answer_that_nobody_takes_is_dropped() -> None:
    ended = threading.Event()

    async def app(scope, _receive, send) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for _ in range(400):
                await send({"type": "http.response.body", "body": bytes(2**16), "more_body": True})
            await send({"type": "http.response.body"})
            ended.set()  # it waits for whoever reads, until it is dropped

    with (
        in_a_thread(app, bounds=replace(BOUNDS, answer_seconds=0.2), lifespan="off") as url,
        connected(int(url.rpartition(":")[2])) as one,
    ):
        one.sendall(HEALTH + b"\r\n")
        assert ended.wait(PATIENCE)
        assert len(rest_of(one)) < 400 * 2**16


def test_a_proxy_speaks_for_many() -> None:
    options = {"bounds": BOUNDS, "forwarded_allow_ips": "127.0.0.1", "proxy_headers": True}
    with Store() as store, in_a_thread(Service(store), **options) as url:
        port = int(url.rpartition(":")[2])
        held = [connected(port) for _ in range(BOUNDS.connections_of_an_address + 2)]
        try:
            assert is_well(port)
        finally:
            for one in held:
                one.close()


def test_what_is_refused_is_logged_now_and_then(port, caplog) -> None:
    for _ in range(5):
        answer_to(port, b"nonsense\r\n\r\n")
    told = [one for one in caplog.records if one.name == limits.__name__]
    assert len(told) == 1, "and without an address"
    assert "127.0.0.1" not in told[0].getMessage()


def test_descriptors(monkeypatch) -> None:
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _what, limits: given.append(limits))
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (1024, 4096))
    assert raise_descriptor_limit() == 4096 - 128
    assert given == [(4096, 4096)]

    def forbidden(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(resource, "setrlimit", forbidden)
    assert raise_descriptor_limit() == 1024 - 128


def test_who_has_no_requests_left_is_sent_away_unread() -> None:
    """And nobody else; before anything is sent, and with an answer that arrives whatever is."""
    limits = Limits(requests_per_second=1e-9, burst=2)
    with Store() as store, in_a_thread(Service(store, limits), bounds=BOUNDS) as url:
        port = int(url.rpartition(":")[2])
        for _ in range(2):
            assert b" 200 " in answer_to(port, HEALTH + b"connection: close\r\n\r\n")
        for message in (b"", POST + b"content-length: 1000000\r\n\r\n" + bytes(999_993)):
            refusal = answer_to(port, message)
            assert refusal.startswith(b"HTTP/1.1 429 ")
            assert b"retry-after: 2\r\n" in refusal
        other = answer_to(port, HEALTH + b"connection: close\r\n\r\n", "127.0.0.2")
        assert b" 200 " in other
