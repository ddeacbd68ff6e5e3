"""What administrators may do, with their tokens, and nobody else."""

import io
import json
import logging
import re
from dataclasses import replace

import httpx2 as httpx
import numpy as np
import openpyxl
import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from blurfit import (
    Agreement,
    Binary,
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
    Numeric,
    Schema,
    perturb_table,
)
from blurfit import protocol as tokens
from blurfit.contributor.blur import perturb
from blurfit.errors import ConflictError
from blurfit.learning.outlook import outlook
from blurfit.messages.signing import Signer, new_key
from blurfit.protocol import JSON, counts_at, hashed, new_token, refuse_if_uneven
from blurfit_server import Store
from blurfit_server.service.administration import agreed_from
from blurfit_server.service.answers import HEADERS
from blurfit_server.service.app import Limits, Service, in_a_thread
from blurfit_server.store.arrivals import RIGHTS
from server_support.requests import ADMINISTRATOR, TOKEN, as_json, opened, opening, refused, send
from server_support.sharing import arrival
from support.proposals import PEOPLE, leavers, propose
from support.sharing import marked, new_agreement

DECISIONS = ("invitations", "pause", "resume", "close", "publish")


def test_a_path_that_no_database_can_keep_is_a_refusal_like_any_other(http, store) -> None:
    for what in DECISIONS[1:]:
        answer = http.post(f"/collections/%00{what}/{what}", headers=ADMINISTRATOR)
        refused(answer, 404, "unknown-collection")
    assert {(one.fingerprint, one.outcome) for one in store.audit_log()} == {
        (what, 404) for what in DECISIONS[1:]
    }


@pytest.mark.parametrize(
    ("trouble", "left"), [("max_page_count = 1", "closed"), ("query_only = 1", "collecting")]
)
def test_publishing_goes_on_where_a_store_that_was_full_or_read_only_left_it(
    tmp_path, trouble, left
) -> None:
    """A set that could be fixed stays so, and its model is stored when there is room."""
    agreement = propose()
    with Store(tmp_path / "collection.db") as kept:
        kept.appoint(hashed(TOKEN))
        with TestClient(Service(kept, Limits(requests_per_second=0))) as client:
            path = opened(client, agreement)
            send(client, path, perturb_table(agreement, PEOPLE).to_bytes())

            def troubled(connection, *_: object) -> None:
                connection.execute(f"PRAGMA {trouble}")

            sa.event.listen(kept._engine, "checkout", troubled)
            answer = client.post(f"{path}/publish", headers=ADMINISTRATOR)
            refused(answer, 503, "unavailable")
            sa.event.remove(kept._engine, "checkout", troubled)
            kept._engine.dispose()
            assert client.get(path).json()["state"] == left
            answer = client.post(f"{path}/publish", headers=ADMINISTRATOR)
            assert (answer.status_code, answer.json()["count"]) == (200, 40)


YES_NO = [["list_name", "name", "media"], ["yn", "yes", "x"], ["yn", "no", None], ["x", "y", "z"]]
HEADING = ["type", "name", "label::Deutsch", "relevant", "constraint", "choice_filter", "required"]
PAY = ["integer", "pay", None, None, ". >= 0 and . <= 9", None, "yes", "a note"]
READ = [
    HEADING,
    PAY,
    ["text", "name"],
    ["note"],
    ["select_one yn or_other", "a", "${pay}", "${pay} > 3 or 2", "x", "y", "${pay} > 2"],
    ["select_one yn", "b", "b", "${pay} > 3"],
]
REFUSED = [
    HEADING,
    PAY,
    PAY,
    ["integer", "rent"],
    ["integer"],
    ["select_one none", "a"],
    ["select_multiple none", "b"],
    ["end_group"],
    ["begin_group"],
]


@pytest.mark.parametrize(
    ("rows", "status", "words"),
    [
        (READ, 200, "Freiwillige Zeilen, weil `required` eine Bedingung ist: 5 'a'."),
        (REFUSED, 400, "`: 4 'rent';"),
        ([["title"]], 400, "muss die Spalten nennen"),
        ([HEADING, ["text", "name"]], 400, "es hat 0 Fragen"),
    ],
)
def test_what_a_form_says_and_is_not_applied_is_named_in_german(http, rows, status, words) -> None:
    """With the name of the file, and in no other language."""
    book = openpyxl.Workbook()
    for title, lines in {"survey": rows, "choices": YES_NO, "settings": [["x"], ["y"]]}.items():
        sheet = book.create_sheet(title)
        for line in lines:
            sheet.append(line)
    file = io.BytesIO()
    book.save(file)
    headers = ADMINISTRATOR | {"accept-language": "de", "content-type": tokens.OCTETS}
    address = "/surveys?name=my%20form.xlsx"
    answer = http.post(address, content=file.getvalue(), headers=headers)
    assert answer.status_code == status, answer.text
    said = answer.json()["notes"] if status == 200 else [answer.json()["detail"]]
    assert words in " ".join(said)
    assert status == 200 or "'my form.xlsx'" in said[0]
    for text in said:
        assert not re.search(r"\b(row|the|that|is|are|left|asked|has|must|got)\b", text), text


@pytest.mark.parametrize("role", ["whole", "first", "second"])
def test_an_agreement_that_lacks_a_database_or_its_key_is_refused(http, role) -> None:
    both = ("First", "https://first.example"), ("Second", "https://second.example")
    two = propose(databases=both, signing_keys=(Signer(new_key()).key, Signer(new_key()).key))
    for damaged in (
        replace(two, databases=two.databases[:1], signing_keys=()),
        replace(two, signing_keys=two.signing_keys[:1]),
    ):
        answer = opening(http, damaged, role=role)
        refused(answer, 400, "invalid", "Expected")


def test_an_agreement_that_promises_too_much_is_not_opened(http, agreement) -> None:
    forged = agreement.to_dict()
    forged["calibration"]["model"]["epsilon"] = 0.01
    text = Agreement.from_dict(forged).to_json()
    answer = http.post("/collections", content=text, headers=ADMINISTRATOR | as_json())
    refused(answer, 400, "invalid", "epsilon=0.01")
    assert http.get("/collections").json() == []


def test_invitations(http, agreement) -> None:
    agreement = replace(agreement, admission="invited")
    path = opened(http, agreement)
    tokens = [new_token() for _ in range(2)]
    hashes = {"hashes": [hashed(token).hex() for token in tokens]}
    given = http.post(f"{path}/invitations", json=hashes, headers=ADMINISTRATOR)
    assert given.json() == {"accepted": 2, "new": 2}
    one, other = perturb_table(agreement, {name: v[:2] for name, v in PEOPLE.items()})
    refused(send(http, path, one.to_bytes()), 403, "not-invited")
    refused(send(http, path, one.to_bytes(), **{"blurfit-invitation": "x"}), 403, "not-invited")
    header = {"blurfit-invitation": tokens[0]}

    def usable(given: str) -> bool:
        answer = http.get(f"{path}/invitation", headers={"blurfit-invitation": given})
        assert answer.headers["cache-control"] == "no-store"
        return bool(answer.json()["usable"])

    assert [usable(one) for one in (*tokens, new_token(), "")] == [True, True, False, False]
    assert send(http, path, one.to_bytes(), **header).json() == {"accepted": 1, "new": 1}
    assert send(http, path, one.to_bytes(), **header).json() == {"accepted": 1, "new": 0}
    refused(send(http, path, other.to_bytes(), **header), 403, "not-invited")
    assert [usable(one) for one in tokens] == [False, True]
    for bad in ({}, {"hashes": []}, {"hashes": ["xy"]}, {"hashes": ["ab"]}, [1], {"hashes": [1]}):
        answer = http.post(f"{path}/invitations", json=bad, headers=ADMINISTRATOR)
        refused(answer, 400, "invalid")


def test_what_no_body_could_hold_is_not_opened(store) -> None:
    """One submission of five thousand columns has 95 MiB: it would be refused when it comes."""
    agreement = propose()
    limits = Limits(requests_per_second=0, body_bytes=agreement.layout.size)
    with TestClient(Service(store, limits)) as http:
        answer = opening(http, agreement)
        refused(answer, 409, "infeasible", f"{agreement.width} numbers", "--body-limit")
        assert http.get("/collections").json() == []


def test_sums_without_a_model_are_what_publishing_answers(http) -> None:
    agreement, people = leavers()
    path = opened(http, agreement)
    send(http, path, perturb_table(agreement, people).to_bytes())
    published = http.post(f"{path}/publish", headers=ADMINISTRATOR)
    assert published.status_code == 200
    assert published.json()["format"] == "blurfit-moments"
    assert published.text == http.get(f"{path}/moments").text
    refused(http.get(f"{path}/model"), 404, "not-published")


# ---- every answer carries its headers, and logs tell nothing


def test_every_answer_carries_the_headers(http, agreement) -> None:
    path = opened(http, agreement)
    one = perturb(agreement, {"age": 30, "income": 20})
    for answer in (
        http.get("/healthz"),
        http.get("/nothing"),
        http.get(f"{path}/model"),
        send(http, path, one.to_bytes()),
        send(http, path, b"garbage"),
        http.post("/collections"),
    ):
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, (answer.url, name)
    assert "immutable" in http.get(f"{path}/agreement").headers["cache-control"]


def test_logs_hold_no_values_and_no_addresses(http, agreement, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    path = opened(http, agreement)
    one = perturb(agreement, {"age": 30, "income": 20})
    send(http, path, one.to_bytes())
    send(http, path, one.to_bytes()[:-8] + np.array([2.0**50]).tobytes())
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("blurfit")]
    assert not any("testclient" in text or str(one.numbers[0]) in text for text in ours)


# ---- tokens that are good for one thing


@pytest.fixture
def service():
    with Store() as store:
        given = {name: tokens.new_token() for name in ("administrator", *RIGHTS)}
        store.appoint(tokens.hashed(given["administrator"]))
        for right in RIGHTS:
            store.grant(f"may {right}", right, tokens.hashed(given[right]))
        with TestClient(Service(store)) as client:
            bearers = {name: {"authorization": f"Bearer {given[name]}"} for name in given}
            yield client, bearers


def test_a_token_says_what_it_may_do(service) -> None:
    client, given = service
    told = {who: client.get("/token", headers=headers).json() for who, headers in given.items()}
    assert told["administrator"] == {"name": "administrator", "rights": [*RIGHTS]}
    for right in RIGHTS:
        assert told[right] == {"name": f"may {right}", "rights": [right]}
    _, token = given["administrator"]["authorization"].split()
    for sent in (None, "", "Bearer", "Bearer ", "Bearer of-nothing", f"Basic {token}", token):
        headers = {} if sent is None else {"authorization": sent}
        answer = client.get("/token", headers=headers)
        refused(answer, 401, "unauthorised")
        assert answer.headers["www-authenticate"] == "Bearer"
    assert not client.get("/audit-log", headers=given["administrator"]).json(), "asking is no deed"


def test_what_was_done_is_told_with_who_and_how_it_ended(service) -> None:
    client, given = service
    agreement = propose(admission="invited")
    client.post("/collections", content=agreement.to_json(), headers=as_json() | given["open"])
    path = f"/collections/{agreement.fingerprint}"
    client.post(f"{path}/publish", headers=given["publish"])
    client.post(f"{path}/publish", headers=given["open"])  # is refused: nobody was let in
    found = client.get("/audit-log", headers=given["read"]).json()
    assert [(one["name"], one["what"], one["outcome"]) for one in found] == [
        ("may publish", "publish", 409),
        ("may open", "open", 201),
    ]
    assert found[0]["fingerprint"] == agreement.fingerprint


@pytest.mark.parametrize("peer_token", [None, "p" * 43], ids=["alone", "with a peer"])
def test_every_door_that_needs_a_token_is_shut_without_it(peer_token) -> None:
    """What is described needs a token; that it is asked for is up to each endpoint."""
    both = ("First", "https://first.example"), ("Second", "https://second.example")
    agreement = propose(databases=both)
    with Store() as store, TestClient(Service(store, peer_token=peer_token)) as client:
        administrator = tokens.new_token()
        store.appoint(tokens.hashed(administrator))
        store.open(agreement, role="second")
        wrong = {"administrator": ["x" * 43], "peer": ["x" * 43, administrator]}
        for path, method, kind in guarded():
            for fingerprint in (agreement.fingerprint, "0" * 64):
                for token in (None, *wrong[kind]):
                    headers = {} if token is None else {"authorization": f"Bearer {token}"}
                    address = path.format(fingerprint=fingerprint)
                    answer = client.request(method, address, headers=headers)
                    assert answer.status_code == 401, f"{method} {address}"


def test_every_door_is_shut_to_tokens_of_other_rights(service) -> None:
    client, given = service
    agreement = propose(admission="invited")
    client.post("/collections", content=agreement.to_json(), headers=as_json() | given["open"])
    steered = ("pause", "hold", "resume", "until", "close", "sides")
    fits = {f"/collections/{{fingerprint}}/{what}": {"open"} for what in steered}
    fits |= {place: {"open"} for place in ("/surveys", "/proposals", "/outlooks", "/collections")}
    fits |= {"/collections/{fingerprint}/invitations": {"invite"}, "/audit-log": {"read"}}
    fits |= {"/collections/{fingerprint}/publish": {"publish"}, "/token": set(RIGHTS)}
    doors = [(path, method) for path, method, kind in guarded() if kind == "administrator"]
    assert {path for path, _ in doors} == set(fits)
    for path, method in doors:
        for right in RIGHTS:
            address = path.format(fingerprint=agreement.fingerprint)
            answer = client.request(method, address, headers=given[right])
            assert (answer.status_code != 401) == (right in fits[path]), f"{right}: {address}"


def guarded() -> list[tuple[str, str, str]]:
    return [
        (path, method, next(iter(operation["security"][0])))
        for path, operations in Service(Store()).document["paths"].items()
        for method, operation in operations.items()
        if method != "parameters" and "security" in operation
    ]


# ---- from a form's choices to an agreement


SCHEMA = Schema([Numeric("age", 18, 80), Binary("married")], Numeric("income", 0, 200_000))
CHOICES = {"schema": SCHEMA.to_dict(), "epsilon": 1, "delta": 1e-6, "quorum": 2000}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": None}, "epsilon"),
        ({"delta": 1.5}, "delta"),
        ({"quorum": 2.5}, "quorum"),
        ({"surprise": 1}, "surprise"),
        ({"schema": {"features": []}}, "target"),
        ({"schema": SCHEMA.to_dict() | {"features": [{"name": "", "kind": "binary"}]}}, "name"),
        ({"local_epsilon": 1.0}, "local_delta"),
        ({"epsilon": 1e308}, ""),
        ({"delta": 5e-324}, ""),
        ({"quorum": 10**30}, "quorum"),
        ({"quorum": 2**53 + 1}, "quorum"),
        ({"quorum": 0}, "quorum"),
    ],
)
def test_a_wrong_choice_is_named_or_taken(change, words) -> None:
    """Whatever is sent, the answer is an agreement that verifies or one of our own errors."""
    body = json.dumps(CHOICES | change).encode()
    if words:
        with pytest.raises((InvalidValueError, InfeasibleError), match=words):
            agreed_from(body)
        return
    try:
        found = agreed_from(body)
    except (InvalidValueError, InfeasibleError, NotCertifiedError):
        return
    found.verify()


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"\xff", b"[" * 10_000, b'"' + b"a" * 100])
def test_what_is_no_proposal_is_refused(body) -> None:
    with pytest.raises(InvalidValueError, match="Expected a proposal in JSON"):
        agreed_from(body)


# ---- what to expect, over HTTP


def test_what_to_expect_and_what_it_takes(http) -> None:
    found = http.post("/outlooks", json=CHOICES, headers=ADMINISTRATOR).json()
    expected = outlook(agreed_from(json.dumps(CHOICES).encode()))
    assert found["off"] == pytest.approx(expected.off)
    assert found["without_privacy"] == pytest.approx(expected.without_privacy)
    assert found["people"] is None
    wish = CHOICES | {"off": 0.7 * expected.off}
    found = http.post("/outlooks", json=wish, headers=ADMINISTRATOR).json()
    assert 2000 < found["people"] < 10_000
    assert 1 < found["epsilon"] < 20
    assert http.get("/collections").json() == []


def test_what_cannot_be_told_is_refused(http) -> None:
    refused(
        http.post("/outlooks", json=CHOICES | {"off": -1}, headers=ADMINISTRATOR), 400, "invalid"
    )
    refused(http.post("/outlooks", json=CHOICES), 401, "unauthorised")


WIDE = json.loads(json.dumps(CHOICES))
WIDE["schema"]["target"]["upper"] = 2**53


@pytest.mark.parametrize("path", ["/proposals", "/outlooks", "/collections"])
@pytest.mark.parametrize(
    "body",
    [
        json.dumps(WIDE),
        *(json.dumps(CHOICES | {"epsilon": epsilon}) for epsilon in (2**53, 2**64, 10**400)),
        *(json.dumps(CHOICES | {"quorum": quorum}) for quorum in (2**53, 2**64, 10**400)),
        json.dumps(CHOICES | {"weights": {"age": 10**400}}),
    ],
    ids=lambda body: body[-40:],
)
def test_whole_numbers_beyond_the_safe_ones_are_never_a_fault_of_the_service(
    http, body, path
) -> None:
    answer = http.post(path, content=body, headers=ADMINISTRATOR | {"content-type": JSON})
    # an estimate needs no document, and may be given for any number
    assert answer.status_code in (400, 409, 200 if path == "/outlooks" else 400), answer.text


# ---- closing while too many are at one of two databases alone


INVITED = new_agreement(admission="invited")


@pytest.mark.parametrize("counts", [[None, 5], [0, 0], [50, 100], [10, 9], [90, 81]])
def test_fine(counts) -> None:
    refuse_if_uneven(INVITED, counts)


@pytest.mark.parametrize(("counts", "name"), [([49, 100], "University"), ([90, 80], "Office")])
def test_refused(counts, name) -> None:
    with pytest.raises(ConflictError, match=f"at {name} to be missing at the other database"):
        refuse_if_uneven(INVITED, counts)
    refuse_if_uneven(new_agreement(database_noise=True, admission="invited"), counts)
    refuse_if_uneven(new_agreement(), counts)


def test_nobody_is_asked_for_long() -> None:
    assert counts_at(INVITED, patience=0.0) == [None, None]


def test_whoever_may_close_is_told_before(tmp_path) -> None:
    """By the services of both, at the addresses of the agreement."""
    with (
        Store(tmp_path / "first.db") as first,
        Store(tmp_path / "second.db") as second,
        in_a_thread(Service(first)) as office,
        in_a_thread(Service(second)) as university,
    ):
        first.appoint(hashed(TOKEN))
        both = (("Office", office), ("University", university))
        agreement = new_agreement(admission="invited", databases=both)
        path = f"{office}/collections/{agreement.fingerprint}/sides"
        shares = marked(agreement, *range(20))
        for store, role, part in ((first, "first", None), (second, "second", shares.second)):
            store.open(agreement, role=role)
            if part is not None:
                store.receive(store.collection(agreement.fingerprint), [arrival(part)])
        assert httpx.get(path, timeout=300).status_code == 401
        told = httpx.get(path, headers=ADMINISTRATOR, timeout=300).json()
        assert told["databases"] == [
            {"name": "Office", "count": 0},
            {"name": "University", "count": 20},
        ]
        assert "20 shares at University to be missing at the other database" in told["warning"]
        assert told["warning"].endswith("send again while both collect.")
        first.receive(first.collection(agreement.fingerprint), [arrival(shares.first)])
        assert httpx.get(path, headers=ADMINISTRATOR, timeout=300).json()["warning"] is None
