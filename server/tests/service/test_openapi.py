"""The document tells the truth: requests made from it get answers that it lists."""

import json
import re
import zlib
from collections import Counter

import numpy as np
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.pytest.lazy import get_all_tests
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

from blurfit import Agreement, InvalidValueError, Numeric, Schema, perturb_table
from blurfit import protocol as tokens
from blurfit.agreement.plan import Plan
from blurfit.agreement.terms import TERMS
from blurfit.errors import instant
from blurfit_server import Store
from blurfit_server.service.app import Limits, Service, in_a_thread

TOKEN = "a-token-that-is-long-enough-for-tests"
SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
AGREEMENTS = [
    Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=3, admission=admission)
    for admission in ("anyone", "invited")
]
AGREEMENTS.append(Agreement.propose(SCHEMA, epsilon=3, delta=1e-6, quorum=3))
PLAN = Plan.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=6, waves=2)
KNOWN = [one.fingerprint for one in (*AGREEMENTS, PLAN, PLAN.first())]
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
)
DOCUMENT = Service(Store()).document
PARTS = 4  # so that several processes share the work


@schemathesis.serializer("application/vnd.blurfit.submission.v2")
def as_bytes(_context, value):
    return value if isinstance(value, bytes) else str(value).encode()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A real server with a collection that anyone, the invited, and nobody may send to."""
    with Store(tmp_path_factory.mktemp("openapi") / "collection.db") as store:
        store.appoint(tokens.hashed(TOKEN))
        store.open(AGREEMENTS[0])
        store.open(AGREEMENTS[1])
        people = {c: np.arange(9.0) for c in ("age", "income")}
        store.add(AGREEMENTS[2], perturb_table(AGREEMENTS[2], people))
        store.publish(AGREEMENTS[2])
        store.open(PLAN)
        app = Service(store, Limits(requests_per_second=0), linger=0.0)
        with in_a_thread(app, log_level="critical") as url:
            yield url


@pytest.fixture(scope="module")
def session():
    """Connections are kept; where the service closes one, schemathesis opens another."""
    with requests.Session() as session:
        session.trust_env = False  # no proxies, for which it would look through all variables
        yield session


def try_one(case, address, session) -> None:
    # Most random fingerprints are unknown: let half of the requests reach a collection.
    drawn = case.path_parameters, case.body, case.query, case.headers
    chance = zlib.crc32(repr(drawn).encode())
    if "fingerprint" in case.path_parameters and chance % 2:
        case.path_parameters["fingerprint"] = KNOWN[chance // 2 % len(KNOWN)]
    headers = {} if chance % 5 == 0 else {"authorization": f"Bearer {TOKEN}"}
    case.call_and_validate(base_url=address, headers=headers, checks=CHECKS, session=session)


EXAMPLES = settings(
    max_examples=5,  # beside forty that cover each parameter and field of an operation
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("part", range(PARTS))
def test_answers_are_those_of_the_document(part, address, session) -> None:
    """Cases are made here and not when tests are collected, which every process does."""
    load_all_checks()
    api = schemathesis.openapi.from_dict(DOCUMENT)
    # To a route, the other methods are like "delete": none of those that it has.
    api.config.phases.coverage.unexpected_methods = {"delete", "get", "options", "post"}
    labels = sorted(one.ok().label for one in api.get_all_operations())
    mine = labels[part::PARTS]
    chosen = api.include(lambda context: context.operation.label in mine)
    tried = []
    for found in get_all_tests(
        schema=chosen, test_func=try_one, settings=EXAMPLES, given_kwargs={}
    ):
        operation, attempt = found.ok()
        attempt(address=address, session=session)
        tried.append(operation.label)
    assert sorted(tried) == mine


def test_every_route_is_described() -> None:
    described = {
        (path, method)
        for path, operations in DOCUMENT["paths"].items()
        for method in operations
        if method != "parameters"
    }
    served = {
        (route.path, method.lower())
        for route in Service(Store())._router.routes
        if not getattr(route, "name", "").startswith("page")
        for method in route.methods
        if method not in ("HEAD", "OPTIONS")  # which ask what may be asked
    }
    assert described == served | {("/collections/{fingerprint}/submissions", "post")}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Withdrawal", ("`unknown`", "`staying`")),
        ("Status", ("`reason`", "`model`", "held")),
        ("WaveStatus", ("dropped",)),
    ],
)
def test_what_a_name_does_not_tell_is_described(name, words) -> None:
    told = DOCUMENT["components"]["schemas"][name]["description"]
    assert all(word in told for word in words)


def test_all_terms_are_listed() -> None:
    for name in ("Proposal", "Wish"):
        listed = DOCUMENT["components"]["schemas"][name]["properties"]
        assert not set(TERMS) - set(listed)


def test_reading_needs_no_token_and_changing_one_of_those_who_may() -> None:
    free = {"/collections/{fingerprint}/submissions", "/collections/{fingerprint}/withdrawals"}
    one = "/collections/{fingerprint}"
    # what administrators alone may read
    told = {"/audit-log", "/token", f"{one}/sides"}
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            if method == "parameters":
                continue
            needed = None
            if "/peer/" in path:
                needed = [{"peer": []}]
            elif path in told or (method == "post" and path not in free):
                needed = [{"administrator": []}]
            assert operation.get("security") == needed, f"{method} {path}"
            assert {"429", "503"} <= set(operation["responses"]), f"{method} {path}"
            assert operation["summary"], f"{method} {path}"


# ---- bytes

ONE = AGREEMENTS[0]
VALID = perturb_table(ONE, {c: np.array([30.0, 40.0, 50.0]) for c in ("age", "income")})
TEXTS = {
    "application/vnd.blurfit.submission.v2": [next(iter(VALID)).to_bytes(), VALID.to_bytes()],
    "application/json": [next(iter(VALID)).to_json().encode(), VALID.to_json().encode()],
}
ANSWERS: Counter[int] = Counter()


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """A message with some bytes changed, cut, doubled, or put in."""
    kind = draw(st.sampled_from(sorted(TEXTS)))
    data = bytearray(draw(st.sampled_from(TEXTS[kind])))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(0, len(data) - 1)))
        change = draw(st.sampled_from(["flip", "cut", "double", "insert", "truncate", "replace"]))
        if change == "flip" and data:
            data[place] ^= 1 << draw(st.integers(0, 7))
        elif change == "cut":
            del data[place : place + draw(st.integers(1, 64))]
        elif change == "double":
            data[place:place] = data[place : place + draw(st.integers(1, 64))]
        elif change == "insert":
            data[place:place] = draw(st.binary(min_size=1, max_size=16))
        elif change == "truncate":
            del data[place:]
        else:
            data[place : place + 8] = draw(
                st.sampled_from(
                    [b"\0" * 8, b"\xff" * 8, np.array([np.nan]).tobytes(), b"1e999999", b"[[[[[[[["]
                )
            )
    return kind, bytes(data)


@pytest.mark.statistical
def test_damaged_messages_are_refused_and_garbage_is_never_stored() -> None:
    with Store() as store:
        store.open(ONE)
        with TestClient(Service(store, Limits(requests_per_second=0), linger=0.0)) as http:

            @settings(max_examples=200, suppress_health_check=list(HealthCheck))
            @given(damaged())
            def send(message: tuple[str, bytes]) -> None:
                kind, body = message
                answer = http.post(
                    f"/collections/{ONE.fingerprint}/submissions",
                    content=body,
                    headers={"content-type": kind},
                )
                ANSWERS[answer.status_code] += 1
                assert answer.status_code in (200, 400, 409), answer.text
                if answer.status_code != 200:
                    assert json.loads(answer.content)["detail"]

            send()
        screen = store.collection(ONE.fingerprint).screen
        for part in store.submissions(ONE.fingerprint):
            assert screen.passes(part.numbers).all()
        assert ANSWERS[400] > 80, ANSWERS


def test_schemas_say_what_is_accepted() -> None:
    """Seen before: they allowed any number, any text, and a question without a name."""
    kinds, paths = DOCUMENT["components"]["schemas"], DOCUMENT["paths"]
    for kind in ("Proposal", "Wish"):
        found = kinds[kind]["properties"]
        assert found["epsilon"]["exclusiveMinimum"] == 0
        assert (found["delta"]["exclusiveMinimum"], found["delta"]["exclusiveMaximum"]) == (0, 1)
        assert found["quorum"]["minimum"] == 1
    tables = paths["/collections/{fingerprint}/tables"]["get"]["parameters"]
    lengths = {
        one["name"]: one["schema"].get("minLength") for one in tables if one["in"] == "query"
    }
    assert (lengths["of"], lengths["by"]) == (1, 1)
    (until,) = (
        one for one in paths["/collections"]["post"]["parameters"] if one["name"] == "until"
    )
    (text, null) = kinds["Until"]["properties"]["until"]["anyOf"]
    assert null == {"type": "null"}
    assert text["pattern"] == until["schema"]["pattern"]
    for moment in ("2027-01-31", "2027-01-31T18:00+01:00", "2027-01-31T17:00:00.000Z"):
        assert re.search(text["pattern"], moment)
        assert instant(moment)
    for moment in ("", "tomorrow", "2027-01-31T18:00", "2027-1-31", "2027-01-31 "):
        assert not re.search(text["pattern"], moment)
        with pytest.raises(InvalidValueError):
            instant(moment)
