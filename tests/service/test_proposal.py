"""From a form's choices to an agreement: what Python would have made, or an error that says why."""

import json

import pytest

from blurfit import (
    Agreement,
    Binary,
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
    Numeric,
    Schema,
)
from blurfit.learning.outlook import outlook
from blurfit.protocol.http import JSON
from blurfit.service.administration import agreed_from
from support.requests import ADMINISTRATOR, refused

SCHEMA = Schema([Numeric("age", 18, 80), Binary("married")], Numeric("income", 0, 200_000))
CHOICES = {"schema": SCHEMA.to_dict(), "epsilon": 1, "delta": 1e-6, "quorum": 2000}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"constant": 0.5, "weights": {"age": 1.0, "married": 0.5, "income": 0.8}},
        {
            "databases": [
                {"name": "Office", "url": "https://first.example"},
                {"name": "Clinic", "url": "https://second.example"},
            ]
        },
        {"neighbours": "zero-out"},
        {"local_epsilon": 2.0, "local_delta": 1e-7},
    ],
)
def test_it_is_what_python_makes(options) -> None:
    found = agreed_from(json.dumps(CHOICES | options).encode())
    pairs = [tuple(one.values()) for one in options.get("databases", ())]
    chosen = options | {"databases": pairs}
    expected = Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=2000, **chosen)
    assert found.fingerprint == expected.fingerprint
    found.verify()


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
        ({"mechanism": "other"}, "mechanism"),
        ({"epsilon": 1e308}, ""),
        ({"delta": 5e-324}, ""),
        ({"quorum": 10**30}, "quorum"),
        ({"quorum": 2**53 + 1}, "quorum"),
        ({"quorum": 0}, "quorum"),
        ({"weight_bound": 2.0, "mechanism": "input"}, "Collect it in files"),
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
    by_input = CHOICES | {"mechanism": "input", "weight_bound": 1}
    refused(http.post("/outlooks", json=by_input, headers=ADMINISTRATOR), 409, "infeasible")
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
