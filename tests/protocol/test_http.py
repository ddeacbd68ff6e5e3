"""A bad network: whatever gets no answer is sent again, whatever is refused is not."""

import itertools
import json
import ssl
from importlib.resources import files

import httpx2 as httpx
import pytest

from blurfit import errors
from blurfit import protocol as http
from blurfit import protocol as problems
from blurfit.errors import BlurfitError, InvalidValueError, ServiceError
from blurfit.protocol import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    TRY_AGAIN,
    Exchange,
    acknowledged,
    decoded,
    state_in,
)

URL = "http://127.0.0.1:8000"
OK = httpx.Response(200, content=b"fine")
# Errors that are no problem of their own: the last resort, and what never crosses the network.
PARTICULAR = [(cause, kind) for cause, kind in problems.KINDS if cause is not BlurfitError]


class Network:
    """Answers requests in turn, the last answer for ever; an exception is no answer."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.requests: list[httpx.Request] = []
        self._answers = itertools.chain(answers, itertools.repeat(answers[-1]))

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


class Clock:
    """Time that passes only while somebody waits."""

    def __init__(self) -> None:
        self.now, self.waits = 0.0, []

    def monotonic(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(http, "time", clock)
    return clock


def over(network: Network, clock: Clock, **options) -> Exchange:
    return Exchange(URL, transport=httpx.MockTransport(network), pause=clock.pause, **options)


def problem(kind: problems.Kind, detail: str = "Expected less.") -> httpx.Response:
    body = {"type": f"urn:blurfit:problem:{kind.name}", "title": kind.title, "detail": detail}
    return httpx.Response(kind.status, json=body | {"status": kind.status})


# ---- again and again


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("refused"),
        httpx.ConnectTimeout("nobody"),
        httpx.ReadTimeout("slow"),
        httpx.ReadError("reset"),
        httpx.WriteError("broken pipe"),
        httpx.RemoteProtocolError("cut off"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_what_got_no_answer_is_sent_again_to_the_letter(clock, failure: Exception) -> None:
    network = Network(failure, failure, failure, OK)
    with over(network, clock) as service:
        answer = service.post("/x", b"body", content_type="a/b", headers={"c": "d"})
    assert answer == b"fine"
    assert len(network.requests) == 4
    assert len(clock.waits) == 3
    for sent in network.requests:
        assert (sent.method, str(sent.url), sent.content) == ("POST", f"{URL}/x", b"body")
        assert (sent.headers["content-type"], sent.headers["c"]) == ("a/b", "d")


@pytest.mark.parametrize("status", sorted(TRY_AGAIN))
def test_a_service_that_is_busy_is_asked_again(clock, status: int) -> None:
    network = Network(httpx.Response(status), httpx.Response(status), OK)
    with over(network, clock) as service:
        assert service.get("/x") == b"fine"
    assert len(network.requests) == 3


def test_pauses_double_up_to_the_longest_and_are_spread_out(clock) -> None:
    network = Network(*[httpx.ConnectError("refused")] * 12, OK)
    with over(network, clock, patience=1000.0) as service:
        service.get("/x")
    ideal = [min(FIRST_PAUSE * 2**n, LONGEST_PAUSE) for n in range(12)]
    shares = [wait / pause for wait, pause in zip(clock.waits, ideal, strict=True)]
    assert all(0.5 <= share < 1.5 for share in shares)
    assert len(set(shares)) > 6  # not everyone at the same moment


def test_retry_after_is_obeyed_but_not_for_ever(clock) -> None:
    answers = [httpx.Response(503, headers={"retry-after": s}) for s in ("2", "7", "86400")]
    answers.append(httpx.Response(429, headers={"retry-after": "3"}))
    with over(Network(*answers, OK), clock) as service:
        service.get("/x")
    assert clock.waits[0] == 2
    assert clock.waits[1] == 7
    assert clock.waits[2] == LONGEST_PAUSE
    assert clock.waits[3] == 3


@pytest.mark.parametrize(
    "text", ["", "soon", "-5", "1e9", "nan", "²", "Wed, 21 Oct 2026 07:28:00 GMT"]
)
def test_retry_after_that_is_no_number_of_seconds_changes_nothing(clock, text: str) -> None:
    busy = httpx.Response(503, headers=[(b"retry-after", text.encode())])
    with over(Network(busy, OK), clock) as service:
        assert service.get("/x") == b"fine"
    assert FIRST_PAUSE / 2 <= clock.waits[0] < FIRST_PAUSE * 1.5


# ---- and then no more


def test_who_never_answers_is_given_up_after_the_patience_and_named(clock) -> None:
    network = Network(httpx.ConnectError("Connection refused"))
    with (
        over(network, clock, patience=60.0) as service,
        pytest.raises(ServiceError, match="ConnectError: Connection refused") as failure,
    ):
        service.get("/x")
    assert URL in str(failure.value)
    assert failure.value.status == 0
    assert 60 - 1.5 * LONGEST_PAUSE <= clock.now <= 60  # patient to the end, and not beyond it
    assert len(network.requests) == len(clock.waits) + 1


def test_a_certificate_that_is_not_trusted_is_said_at_once_with_what_to_set(clock) -> None:
    network = Network(httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"))
    with over(network, clock) as service, pytest.raises(ServiceError, match="SSL_CERT_FILE"):
        service.get("/x")
    assert not clock.waits


# ---- refusals


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 413, 415, 422, 500, 501])
def test_a_refusal_is_not_sent_again(clock, status: int) -> None:
    network = Network(httpx.Response(status, content=b"<html>no</html>"))
    with (
        over(network, clock) as service,
        pytest.raises(ServiceError, match=f"answered {status}") as refusal,
    ):
        service.post("/x", b"body")
    assert refusal.value.status == status
    assert len(network.requests) == 1
    assert not clock.waits


def test_a_redirection_is_not_followed_with_the_token(clock) -> None:
    network = Network(httpx.Response(307, headers={"location": "http://elsewhere/"}))
    with over(network, clock, token="secret") as service, pytest.raises(ServiceError, match="307"):
        service.post("/x")
    assert [str(sent.url) for sent in network.requests] == [f"{URL}/x"]


def test_every_error_has_a_problem_of_its_own_or_never_leaves_a_service() -> None:
    classes = {
        one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, Exception)
    } - {BlurfitError}
    local = {errors.NotCertifiedError, errors.NotPrivateWarning, errors.AdviceWarning}
    assert {cause for cause, _ in PARTICULAR} == classes - local


@pytest.mark.parametrize(
    "kind",
    [problems.UNAUTHORISED, problems.NOT_FOUND, problems.TOO_LARGE, problems.WRONG_TYPE],
    ids=lambda kind: kind.name,
)
def test_what_is_about_the_request_keeps_its_words_and_status(clock, kind) -> None:
    with (
        over(Network(problem(kind, "Send less.")), clock) as service,
        pytest.raises(ServiceError, match=r"^Send less\.$") as refusal,
    ):
        service.get("/x")
    assert refusal.value.status == kind.status


# ---- what is sent


def test_the_token_is_sent_to_those_who_have_one(clock) -> None:
    network = Network(OK)
    with over(network, clock, token="secret") as service:
        service.get("/x")
    with over(network, clock) as service:
        service.get("/x")
    first, second = network.requests
    assert first.headers["authorization"] == "Bearer secret"
    assert "authorization" not in second.headers


@pytest.mark.parametrize(
    "url",
    [
        *("127.0.0.1:8000", "ftp://here", "", "localhost", "//here", "http://127.0.0.1:port"),
        *("http://127.0.0.1:99999", "http://[::1", "http://"),
    ],
)
def test_what_is_no_address_is_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(InvalidValueError, match="address of a service"):
        Exchange(url)


def test_an_answer_is_json_or_an_error() -> None:
    assert decoded(json.dumps({"new": 3}).encode()) == {"new": 3}
    for answer in (b"", b"<html>", b"\xff", b"{"):
        with pytest.raises(ServiceError, match="Is this a blurfit service"):
            decoded(answer)


HOSTILE = "\x1b]0;owned\x07\r\nStored: all rows.\x9b"
STATE = {
    **{"fingerprint": "ab" * 32, "state": "collecting", "count": 1, "quorum": 9, "invited": False},
    **{"closes": None, "awaits": None, "sums": False, "reason": None},
    "waves": [
        {"number": 1, "quorum": 9, "state": "collecting", "count": 1, "fingerprint": "ab" * 32}
    ],
}


@pytest.mark.parametrize("status", [409, 418])
def test_what_a_service_says_is_printable_and_cut(clock, status) -> None:
    body = {"type": "urn:blurfit:problem:conflict", "detail": HOSTILE + "x" * 500_000}
    with (
        over(Network(httpx.Response(status, json=body)), clock) as service,
        pytest.raises(BlurfitError) as refusal,
    ):
        service.get("/x")
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) == 1001
    hostile = {"content-encoding": HOSTILE.encode("latin-1", "replace") + b"x" * 10_000}
    with (
        over(Network(httpx.Response(200, headers=hostile)), clock) as service,
        pytest.raises(ServiceError) as refusal,
    ):
        service.get("/x")
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 1500


def test_a_state_is_one_and_its_texts_are_printable() -> None:
    assert state_in(json.dumps(STATE).encode()) == STATE
    evil = STATE | {"awaits": HOSTILE, "reason": HOSTILE, HOSTILE: [HOSTILE]}
    found = state_in(json.dumps(evil).encode())
    assert found["state"] == "collecting"
    assert found["awaits"] == found["reason"] == "�]0;owned���Stored: all rows.�"
    assert all(map(str.isprintable, found))
    missing = [{key: STATE[key] for key in STATE if key != name} for name in STATE]
    for other in ([], {}, [STATE], STATE | {"state": "fine"}, STATE | {"waves": []}, *missing):
        with pytest.raises(ServiceError, match="the state of a collection"):
            state_in(json.dumps(other).encode())


# ---- acknowledgements


def test_only_an_acknowledgement_of_all_rows_counts() -> None:
    assert acknowledged(b'{"accepted":30,"new":12}', 30).new == 12
    for answer in (b"<html>Welcome</html>", b"", b"{}", b"[30]", b'{"accepted":"30","new":0}'):
        with pytest.raises(ServiceError, match="acknowledgement of 30 submissions"):
            acknowledged(answer, 30)
    with pytest.raises(ServiceError, match="accepted=29"):
        acknowledged(b'{"accepted":29,"new":29}', 30)


@pytest.mark.parametrize(
    "url", ["http://survey.example", "http://10.0.0.1:8000", "http://[2001:db8::1]"]
)
def test_a_token_is_not_sent_in_the_open(url) -> None:
    with pytest.raises(InvalidValueError, match="https"):
        Exchange(url, token="x" * 43)
    Exchange(url).close()  # without a token, blurred numbers may travel as the agreement says


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1", "http://[::1]:1", "http://localhost:1", "https://a.example"]
)
def test_a_token_is_sent_within_a_machine_or_over_tls(url) -> None:
    Exchange(url, token="x" * 43).close()


# ---- certificates


@pytest.mark.parametrize(
    ("url", "proxies", "checked"),
    [
        ("http://127.0.0.1:8000", {}, False),
        ("http://[::1]:8000", {}, False),
        ("http://localhost", {}, False),
        ("https://127.0.0.1:8000", {}, True),
        ("https://localhost", {}, True),
        ("http://example.org", {}, True),  # which may lead through a proxy that speaks TLS
        ("https://example.org", {}, True),
        ("http://127.0.0.1:8000", {"http": "https://proxy.example"}, True),
    ],
)
def test_certificates_are_checked_wherever_tls_may_be_spoken(
    monkeypatch, url: str, proxies: dict[str, str], checked: bool
) -> None:
    given: list[object] = []
    client = httpx.Client
    monkeypatch.setattr(http, "getproxies", lambda: proxies)
    monkeypatch.setattr(
        http.httpx, "Client", lambda **options: given.append(options["verify"]) or client(**options)
    )
    Exchange(url, transport=httpx.MockTransport(lambda _: OK)).close()
    (context,) = given
    if checked:
        assert isinstance(context, ssl.SSLContext)
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    else:
        assert context is False


def test_the_pages_use_the_same_words() -> None:
    pages = files("blurfit_server.service").joinpath("pages")
    outbox, submission = (
        pages.joinpath(f"{name}.js").read_text() for name in ("outbox", "submission")
    )
    assert f'headers["{http.INVITATION}"]' in outbox
    assert f"{http.path_of('${fingerprint}')}{http.SUBMISSIONS}`" in outbox
    assert f'"{http.BINARY}"' in submission
