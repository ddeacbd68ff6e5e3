"""Two services that publish together over HTTP, what they refuse, and hostile answers."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

import httpx2 as httpx
import numpy as np
import pytest
from starlette.testclient import TestClient

from blurfit import Agreement, PublishedModel, ServiceError, private_files
from blurfit import protocol as http
from blurfit import protocol as tokens
from blurfit.agreement.plan import Agreed, Plan
from blurfit.contributor.blur import share
from blurfit.contributor.client import Client
from blurfit.errors import ClosedError
from blurfit.messages.signing import Signer, new_key
from blurfit.model.release import examine
from blurfit.model.statement import as_markdown
from blurfit.protocol import BINARY, Exchange, RemoteDatabase, joined
from blurfit_server.service import peers as module
from blurfit_server.service.answers import Signatory
from blurfit_server.service.app import Service, in_a_thread
from blurfit_server.service.peers import RemotePeer
from blurfit_server.store import blocks as sets
from blurfit_server.store.blocks import held_identifiers
from blurfit_server.store.joint import digest_of
from blurfit_server.store.store import Store
from server_support.joint_plans import joint_plan
from server_support.requests import ADMINISTRATOR, TOKEN, as_json, refused
from server_support.services import NO_LIMIT, PEER, two_services
from server_support.serving import Serving, impatient
from server_support.sharing import arrival, counted
from server_support.stores import whatever_it_keeps
from support.plans import people, rows, written
from support.sharing import marked, new_agreement, propose

OCTETS = {"content-type": "application/octet-stream"}
NOBODY = np.zeros((0, 16), dtype=np.uint8)
PRIVATE = new_key(), new_key()
KEYS = tuple(Signer(one).key for one in PRIVATE)
COLUMNS = ("age", "education", "region", "married", "income")


@dataclass
class Two:
    """Two services, and what they have agreed on."""

    agreed: Agreed
    first: TestClient
    second: TestClient
    stores: tuple[Store, Store]

    @property
    def agreement(self) -> Agreement:
        return self.agreed.first()

    @property
    def path(self) -> str:
        return f"/collections/{self.agreement.fingerprint}"

    @property
    def other(self) -> dict[str, str]:
        token = tokens.for_agreement(PEER, self.agreed.fingerprint)
        return {"authorization": f"Bearer {token}"}

    def send(self, *senders: int, to: tuple[int, ...] = (0, 1)) -> None:
        shared = marked(self.agreement, *senders)
        for side in to:
            shares = (shared.first, shared.second)[side]
            answer = (self.first, self.second)[side].post(
                f"{self.path}/submissions",
                content=shares.to_bytes(),
                headers={"content-type": BINARY},
            )
            assert answer.json() == {"accepted": len(senders), "new": len(senders)}, answer.text

    def publish(self, side: int):
        return (self.first, self.second)[side].post(f"{self.path}/publish", headers=ADMINISTRATOR)


@contextmanager
def running(agreed: Agreed, place, tmp_path) -> Iterator[Two]:
    with (
        Store(place) as one,
        Store(tmp_path / "second.db") as other,
        # nobody else uses the way of the first meanwhile
        two_services(agreed, (one, other), look_every=(3600, 1)) as (first, second),
    ):
        yield Two(agreed, first, second, (one, other))


@dataclass
class Served:
    """Two services at ports of this machine, which drive a plan by themselves."""

    plan: Plan
    stores: list[Store]
    databases: list[RemoteDatabase]

    def states(self) -> list[list[str]]:
        here = [one.status(self.plan) for one in self.databases]
        return [[one["state"], *(wave["state"] for wave in one["waves"])] for one in here]


@contextmanager
def serving(place, tmp_path, **terms) -> Iterator[Served]:
    with ExitStack() as stack:
        stores, urls = [], []
        for where, key in zip((place, tmp_path / "second.db"), PRIVATE, strict=True):
            stores.append(stack.enter_context(Store(where)))
            stores[-1].appoint(tokens.hashed(TOKEN))
            given = {"peer_token": PEER, "signing_key": key, "look_every": 0.05}
            service = Service(stores[-1], NO_LIMIT, **given)
            urls.append(stack.enter_context(in_a_thread(service)))
        plan = joint_plan(databases=tuple(zip(("Office", "Uni"), urls, strict=True)), **terms)
        databases = [stack.enter_context(RemoteDatabase(url, token=TOKEN)) for url in urls]
        for one, role in zip(databases, ("first", "second"), strict=True):
            one.open(plan, role=role)
        yield Served(plan, stores, databases)


@pytest.fixture
def two(place, tmp_path) -> Iterator[Two]:
    with running(new_agreement(), place, tmp_path) as both:
        yield both


def until(done: Callable[[], object]) -> None:
    """Wait for what the services do by themselves."""
    deadline = time.monotonic() + 300
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# ---- from opening to one model at both


def test_one_wave(two, monkeypatch) -> None:
    monkeypatch.setattr(module, "IDENTIFIERS_AT_ONCE", 4)  # so that names come on several pages
    two.send(*range(9))
    two.send(20, to=(0,))
    two.send(30, 31, to=(1,))
    refused(two.publish(0), 409, "infeasible", "University to have closed")
    refused(two.publish(1), 404, "not-published", "The next step is Office's")
    done = [(one.what, one.outcome) for one in two.stores[1].audit_log()][:2]
    assert done == [("publish", 404), ("let publish", 200)], "it is closed, and written down so"
    answer = two.publish(0)
    assert answer.status_code == 200, answer.text
    for client in (two.first, two.second):
        assert client.get(f"{two.path}/model").content == answer.content
        moments = client.get(f"{two.path}/moments")
        assert moments.json()["count"] == 9
        assert "Either of the two databases" in client.get(f"{two.path}/statement").text
    assert two.publish(1).content == two.publish(0).content == answer.content
    assert counted(two.stores[1], two.agreement) == set(range(9))
    assert PublishedModel.from_json(answer.text).count == 9
    late = marked(two.agreement, 40).first.to_bytes()
    sent = two.first.post(f"{two.path}/submissions", content=late, headers={"content-type": BINARY})
    refused(sent, 409, "closed")


def test_several_waves_signed_by_both(place, tmp_path) -> None:
    terms = {"task": "label", "admission": "invited", "signing_keys": KEYS}
    with serving(place, tmp_path, **terms) as two:
        plan, databases = two.plan, two.databases
        made = [one.invite(plan, 60) for one in databases]
        invitations = list(zip(*joined(made, plan.lot), strict=True))
        table = written(tmp_path / "people.csv", rows(people(60, 4), 0, 60), COLUMNS)
        with Client.of(plan) as client:
            # Part for part: it waits while the two publish a wave, and goes on with the next one.
            assert client.contribute_table(plan, table, invitations=invitations) == 60
        until(lambda: two.states() == [["ended", "released", "released"]] * 2)
        until(lambda: all(len(one.model(plan).signatures) == 2 for one in databases))
        here, there = (one.model(plan).to_json() for one in databases)
        assert here == there
        assert examine(here).verified, "both have signed"
        texts = [store.releases(plan.fingerprint) for store in two.stores]
        assert texts[0] == texts[1]
        model = PublishedModel.from_json(here)
        assert [one.count for one in model.waves] == list(plan.quorums)
        told = " ".join(as_markdown(model).split())
        assert "(at least 18 in wave 1 and 42 in wave 2 were required)" in told
        assert "Either of the two databases alone" in told
        with Client.of(plan) as client, pytest.raises(ClosedError, match="come to its end"):
            client.current(plan)


def test_proofs_are_verified_over_http_and_garbage_is_left_out(
    place, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(module, "BATCH", 3)
    with running(new_agreement(proofs=True), place, tmp_path) as two:
        proofs = f"{two.path}/peer/proofs"
        two.send(*range(7))
        garbage = marked(two.agreement, 9).first
        garbage.words[0, 0] ^= np.uint64(1)
        for client, shares in ((two.first, garbage), (two.second, marked(two.agreement, 9).second)):
            sent = client.post(
                f"{two.path}/submissions",
                content=shares.to_bytes(),
                headers={"content-type": BINARY},
            )
            assert sent.json() == {"accepted": 1, "new": 1}
        one = 16 + 8 * two.agreement.proving.prio3.verifier_words
        refused(two.second.post(proofs, content=b"", headers=OCTETS), 401, "unauthorised")
        early = two.second.post(proofs, content=bytes(one), headers=OCTETS | two.other)
        refused(early, 409, "infeasible", "University to have closed")
        two.publish(1)
        cut = two.second.post(proofs, content=bytes(one - 1), headers=OCTETS | two.other)
        refused(cut, 400, "invalid", "cut short")
        unknown = two.second.post(proofs, content=bytes(one), headers=OCTETS | two.other)
        assert unknown.content == bytes(32)
        answer = two.publish(0)
        assert answer.status_code == 200, answer.text
        assert counted(two.stores[1], two.agreement) == set(range(7))
        assert "has proved" in two.first.get(f"{two.path}/statement").text


# ---- who may ask, and for what


@whatever_it_keeps
def test_only_its_own_share_is_taken_by_each(two) -> None:
    shared = marked(two.agreement, 1)
    for client, wrong in ((two.first, shared.second), (two.second, shared.first)):
        answer = client.post(
            f"{two.path}/submissions", content=wrong.to_bytes(), headers={"content-type": BINARY}
        )
        refused(answer, 400, "invalid", "one of two shares")
        answer = client.post(f"{two.path}/submissions", content=b"{}", headers=as_json())
        refused(answer, 415, "unsupported-media-type")
    assert [store.count(two.agreement) for store in two.stores] == [0, 0]


@pytest.mark.parametrize("waves", [1, 2])
def test_only_the_other_database_may_ask(place, tmp_path, waves) -> None:
    agreed = new_agreement() if waves == 1 else joint_plan()
    with running(agreed, place, tmp_path) as two:
        for headers in (
            {},
            ADMINISTRATOR,
            {"authorization": "Bearer "},
            {"authorization": f"Basic {PEER}"},
            {"authorization": f"Bearer {PEER}"},  # the secret itself never travels
            {"authorization": f"Bearer {tokens.for_agreement(PEER, '00' * 32)}"},
        ):
            for method, path in (
                ("GET", "identifiers"),
                ("POST", f"sum?digest={'0' * 64}&count=5"),
                *(("POST", one) for one in ("close", "proofs", "news", "signatures")),
            ):
                answer = two.second.request(method, f"{two.path}/peer/{path}", headers=headers)
                refused(answer, 401, "unauthorised", "--peer-token-file")
        gone = two.second.get(f"/collections/{'0' * 64}/peer/identifiers", headers=two.other)
        refused(gone, 401, "unauthorised")


@whatever_it_keeps
def test_a_service_without_a_token_has_no_other_database(two) -> None:
    with TestClient(Service(two.stores[1], NO_LIMIT)) as client:
        for token in ("", "x", PEER):
            headers = {"authorization": f"Bearer {token}"}
            answer = client.get(f"{two.path}/peer/identifiers", headers=headers)
            refused(answer, 401, "unauthorised")
    with TestClient(Service(two.stores[0], NO_LIMIT)) as client:
        answer = client.post(f"{two.path}/publish", headers=ADMINISTRATOR)
        refused(answer, 409, "infeasible", "--peer-token-file")


@whatever_it_keeps
def test_another_token_or_nobody_is_told(two) -> None:
    two.send(*range(4))
    wrong = {"peer_token": "x" * 40, "peer_options": {"transport": two.second._transport}}
    away = {"peer_token": PEER, "peer_options": {"patience": 0.0}}
    for given, words in ((wrong, "same --peer-token-file"), (away, "nothing is done twice")):
        with TestClient(Service(two.stores[0], NO_LIMIT, **given)) as client:
            answer = client.post(f"{two.path}/publish", headers=ADMINISTRATOR)
            refused(answer, 502, "other-database", "University", words)
    assert two.first.get(two.path).json()["state"] == "collecting"


def test_what_the_other_asks_is_checked(two) -> None:
    two.send(*range(5))
    path = f"{two.path}/peer"

    def ask(query: str, content: bytes = b"", kind: str = "application/octet-stream"):
        headers = two.other | {"content-type": kind}
        return two.second.post(f"{path}/sum?{query}", content=content, headers=headers)

    digest = "0" * 64
    early = two.second.get(f"{path}/identifiers", headers=two.other)
    refused(early, 409, "infeasible", "blurfit close")
    refused(ask(f"digest={digest}&count=5"), 409, "infeasible", "blurfit close")
    two.publish(1)
    assert len(two.second.get(f"{path}/identifiers", headers=two.other).content) == 5 * 16
    strange = two.second.get(f"{path}/identifiers?after=xyz", headers=two.other)
    refused(strange, 400, "invalid", "xyz")
    proofs = two.second.post(f"{path}/proofs", content=bytes(16), headers=OCTETS | two.other)
    refused(proofs, 400, "invalid", "this one has none")
    refused(ask("digest=12&count=5"), 400, "invalid", "64 hexadecimal")
    refused(ask(f"digest={digest}&count=-5"), 400, "invalid", "-5")
    everyone, two_of_them = bytes([0b11111000]), bytes([0b00011000])
    for cut in (b"", b"xx"):
        refused(ask(f"digest={digest}&count=5", cut), 400, "invalid", "a bit for each of the 5")
    refused(ask(f"digest={digest}&count=5", everyone), 400, "invalid", "damaged")
    refused(ask(f"digest={digest}&count=5", kind="text/plain"), 415, "unsupported-media-type")
    refused(ask(f"digest={digest}&count=2", two_of_them), 409, "below-quorum", "there are 2")
    for body in (b"", b"[]", b'{"state": "gone"}', b'{"state": "held", "state": "ended"}'):
        answer = two.second.post(f"{path}/news", content=body, headers=two.other | as_json())
        refused(answer, 400, "invalid", "Expected what the first database tells")
    for one in ("identifiers", "sum?digest=" + digest + "&count=5"):
        method = "GET" if one == "identifiers" else "POST"
        answer = two.first.request(method, f"{path}/{one}", headers=two.other | OCTETS)
        refused(answer, 409, "infeasible", "opened as 'first'")
    assert two.publish(0).status_code == 200, "nothing of this was in the way"


def test_a_wave_below_its_quorum_is_not_closed(place, tmp_path) -> None:
    plan = joint_plan()
    with running(plan, place, tmp_path) as two:
        answer = two.second.post(f"{two.path}/peer/close", headers=two.other)
        refused(answer, 409, "below-quorum")
        status = two.second.get(f"/collections/{plan.fingerprint}").json()
        assert [one["state"] for one in status["waves"]] == ["collecting", "planned"]


def test_a_sum_that_was_found_before_is_not_told_while_the_plan_is_held(place, tmp_path) -> None:
    plan = joint_plan()
    with running(plan, place, tmp_path) as two:
        quorum = plan.quorums[0]
        shares = share(plan.first(), people(quorum, 4)).second
        wave = two.stores[1].collection(plan.first().fingerprint)
        assert two.stores[1].receive(wave, [arrival(shares)]) == [quorum]
        assert two.second.post(f"{two.path}/peer/close", headers=two.other).status_code == 200
        digest = digest_of(wave, two.stores[1].read(held_identifiers, wave.key)).hex()
        bits = sets.members(two.stores[1].read(held_identifiers, wave.key), NOBODY)

        def ask():
            path = f"{two.path}/peer/sum?digest={digest}&count={quorum}"
            return two.second.post(path, content=bits, headers=two.other | OCTETS)

        found = ask()
        assert found.status_code == 200, found.text
        two.stores[1].hold(plan.fingerprint)
        refused(ask(), 409, "infeasible", "holds the plan")
        two.stores[1].resume(plan.fingerprint)
        assert ask().content == found.content


# ---- what the first makes of the answers


@contextmanager
def answering(content: object) -> Iterator[tuple[RemotePeer, object]]:
    """The second database, which answers this to whatever is asked but who is there: nobody."""
    body = json.dumps(content).encode()

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=b"" if "/identifiers" in str(request.url) else body)

    agreement = new_agreement()
    options = {"transport": httpx.MockTransport(answer), "patience": 0.0}
    with Store() as store:
        store.open(agreement, role="first")
        course, wave = (of(agreement.fingerprint) for of in (store.course, store.collection))
        with RemotePeer(store, course, "x" * 40, Signatory(store), **options) as peer:
            yield peer, wave


@pytest.mark.parametrize(
    "change",
    [
        *({"sums": sums} for sums in ([str(2**64)], ["-1"], ["1.5"], 7)),
        *({"x": 1}, {"digest": "11" * 32}, {"count": 6}, {"sums": ["7"]}),
    ],
)
def test_sums_are_whole_numbers_of_64_bits_over_the_set_that_was_asked_for(change) -> None:
    width = new_agreement().width
    sums = [0, 2**64 - 1, *range(width - 2)]
    message = {"digest": "00" * 32, "count": 5, "sums": list(map(str, sums))}
    with answering(message) as (peer, wave):
        assert peer.masks(wave, bytes(32), 5, NOBODY).tolist() == sums
    with answering(message | change) as (peer, wave), pytest.raises(ServiceError, match="sums"):
        peer.masks(wave, bytes(32), 5, NOBODY)


def test_what_the_other_gets_wrong_is_told_as_its_fault(two) -> None:
    """Seen before: 400, which is not among what `publish` says of itself."""
    two.send(*range(9))
    refused(two.publish(1), 404, "not-published")  # closed
    wrong: list[Callable[[str], bytes]] = [
        lambda _: b"<html>Accept the terms of this network</html>",
        lambda _: b"{}",
        lambda path: identified if "/identifiers" in path else b'{"digest": 7}',
        lambda path: identified if "/identifiers" in path else false_count,
    ]
    identified = two.second.get(f"{two.path}/peer/identifiers", headers=two.other).content
    sums = {"digest": "00" * 32, "count": 1, "sums": ["0"] * two.agreement.width}
    false_count = json.dumps(sums).encode()
    for say in wrong:

        def answer(asked: httpx.Request, say: Callable[[str], bytes] = say) -> httpx.Response:
            return httpx.Response(200, content=say(str(asked.url)))

        options = {"transport": httpx.MockTransport(answer), "patience": 0.0}
        alone = Service(two.stores[0], NO_LIMIT, peer_token=PEER, peer_options=options)
        with TestClient(alone) as client:
            told = client.post(f"{two.path}/publish", headers=ADMINISTRATOR)
        refused(told, 502, "other-database", "University did not help")
    assert two.publish(0).status_code == 200, "with the truth it goes on"


# ---- a database that answers without end, compressed, dripping, or not at all


HEAD = b"HTTP/1.1 200 OK\r\n"
SECRET = "the-secret-that-both-databases-share"


@contextmanager
def saying(say: Callable[[socket.socket], None]) -> Iterator[str]:
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
        saying(flood) as url,
        Exchange(url, patience=0.0, most_bytes=2**20) as exchange,
        pytest.raises(ServiceError, match="at most 1048576 bytes"),
    ):
        exchange.get("/")
    assert sent < 32 * 2**20


def test_a_compressed_answer_is_refused() -> None:
    def compressed(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"content-encoding: gzip\r\ncontent-length: 5\r\n\r\nxxxxx")

    with (
        saying(compressed) as url,
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
        saying(slow) as url,
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

    private_files.write(tmp_path / "peer.txt", SECRET)
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
                url = others.enter_context(saying(hanging(place)))
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
