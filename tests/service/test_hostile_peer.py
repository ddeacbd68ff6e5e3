"""Another database that answers without end, compressed, dripping, or not at all."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import httpx2 as httpx
import numpy as np
import pytest

from blurfit import ServiceError
from blurfit.protocol import http, tokens
from blurfit.protocol.http import Exchange
from blurfit.service import peers as module
from blurfit.service.answers import Signatory
from blurfit.service.peers import RemotePeer
from blurfit.store.store import Store
from support.serving import Serving, impatient
from support.sharing import new_agreement, propose

HEAD = b"HTTP/1.1 200 OK\r\n"
SECRET = "the-secret-that-both-databases-share"


@contextmanager
def answering(say: Callable[[socket.socket], None]) -> Iterator[str]:
    """The address of somebody who says this to whoever asks."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        stopped = threading.Event()

        def one(connection: socket.socket) -> None:
            with connection:
                try:
                    connection.recv(2**16)
                    say(connection)
                except OSError:  # they have hung up on us
                    pass

        def run() -> None:
            while not stopped.is_set():
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=one, args=(connection,), daemon=True).start()

        threading.Thread(target=run, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        stopped.set()
        listening.shutdown(socket.SHUT_RDWR)


def drip(connection: socket.socket) -> None:
    """Until they hang up."""
    while True:
        connection.sendall(b"x")
        time.sleep(0.05)


def test_an_answer_without_end_is_cut() -> None:
    sent = 0

    def flood(connection: socket.socket) -> None:
        nonlocal sent
        connection.sendall(HEAD + b"\r\n")
        for _ in range(1000):  # 62 MiB
            sent += connection.send(bytes(2**16))

    with (
        answering(flood) as url,
        Exchange(url, patience=0.0, most_bytes=2**20) as exchange,
        pytest.raises(ServiceError, match="at most 1048576 bytes"),
    ):
        exchange.get("/")
    assert sent < 32 * 2**20


def test_a_compressed_answer_is_refused() -> None:
    def compressed(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"content-encoding: gzip\r\ncontent-length: 5\r\n\r\nxxxxx")

    with (
        answering(compressed) as url,
        Exchange(url, patience=0.0) as exchange,
        pytest.raises(ServiceError, match="content-encoding 'gzip'"),
    ):
        exchange.get("/")


def test_a_dripping_answer_is_given_up(monkeypatch) -> None:
    monkeypatch.setattr(http, "SECONDS_FOR_AN_ANSWER", 0.2)

    def slow(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"content-length: 1000000\r\n\r\n")
        drip(connection)

    with (
        answering(slow) as url,
        Exchange(url, patience=0.0) as exchange,
        pytest.raises(ServiceError, match="in less time"),
    ):
        exchange.get("/")


def test_pages_without_end_are_given_up(monkeypatch) -> None:
    monkeypatch.setattr(module, "IDENTIFIERS_AT_ONCE", 2)
    monkeypatch.setattr(module, "MOST_PAGES", 5)
    asked: list[str] = []

    def page(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers["authorization"])
        numbers = 2 * len(asked) + np.arange(2)
        return httpx.Response(200, content=b"".join(int(n).to_bytes(16, "big") for n in numbers))

    agreement = new_agreement()
    with Store() as store:
        store.open(agreement, role="first")
        course, wave = (of(agreement.fingerprint) for of in (store.course, store.collection))
        given = store, course, SECRET, Signatory(store)
        with RemotePeer(*given, transport=httpx.MockTransport(page)) as peer:
            with pytest.raises(ServiceError, match="at most 10 identifiers"):
                peer.identifiers(wave)
            assert len(asked) == 5
            token = tokens.for_agreement(SECRET, agreement.fingerprint)
            assert set(asked) == {f"Bearer {token}"}, "good under this agreement alone"
        again = httpx.MockTransport(lambda _request: httpx.Response(200, content=bytes(32)))
        with (
            RemotePeer(*given, transport=again) as peer,
            pytest.raises(ServiceError, match="in order"),
        ):
            peer.identifiers(wave)


STARTS = b"", HEAD + b"a: ", HEAD + b"content-length: 1000000\r\n\r\n"


def test_a_service_ends_whatever_others_do(tmp_path) -> None:
    """One says nothing, one drips its headers, one its answer, all while it is told to end.

    Seen before: not ended 45 s after SIGTERM, because an answer dripped.
    """
    asked = [threading.Event() for _ in STARTS]

    def hanging(place: int) -> Callable[[socket.socket], None]:
        def hang(connection: socket.socket) -> None:
            connection.sendall(STARTS[place])
            asked[place].set()
            if STARTS[place]:
                drip(connection)
            else:
                connection.recv(1)  # what never comes

        return hang

    (tmp_path / "peer.txt").write_text(SECRET)
    more = ("--peer-token-file", str(tmp_path / "peer.txt"))
    place = f"sqlite:///{tmp_path / 'collection.db'}"
    service = Serving(place, tmp_path, more, command=impatient)
    service.start()

    def publish(fingerprint: str) -> None:
        path = f"{service.url}/collections/{fingerprint}/publish"
        with suppress(httpx.TransportError):
            httpx.post(path, headers=service.headers, timeout=600)

    with ExitStack() as others:
        try:
            for place in range(len(STARTS)):
                url = others.enter_context(answering(hanging(place)))
                two = (("Office", "http://127.0.0.1:8001"), ("University", url))
                agreement = propose(two, epsilon=300)
                opened = service.post("/collections?role=first", content=agreement.to_json())
                assert opened.status_code == 201, opened.text
                arguments = (agreement.fingerprint,)
                threading.Thread(target=publish, args=arguments, daemon=True).start()
            assert all(one.wait(300) for one in asked)
            assert service.process is not None
            service.process.terminate()
            assert service.process.wait(300) is not None, "though they would hang for ever"
        finally:
            service.stop()
