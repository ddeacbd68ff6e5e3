"""Over a bad network, to a real service: each record is blurred once and counted once."""

import itertools
import random
from copy import deepcopy
from pathlib import Path

import httpx2 as httpx
import pytest

from blurfit import protocol as tokens
from blurfit.agreement.agreement import Agreement
from blurfit.contributor import sending as module
from blurfit.contributor.blur import perturb, perturb_table
from blurfit.contributor.client import Client
from blurfit.contributor.sending import default_journal
from blurfit.errors import (
    InvalidValueError,
    NotCertifiedError,
    NotInvitedError,
)
from blurfit.messages.submissions import Submission, Submissions
from blurfit.protocol import new_token
from blurfit.schema.schema import Numeric, Schema
from blurfit.theory.moments import MomentCalibration
from blurfit_server.store.store import Store

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))
PROMISE = {"epsilon": 1.0, "delta": 1e-6, "quorum": 20, "admission": "anyone"}
AGREEMENT = Agreement.propose(SCHEMA, **PROMISE)
INVITED = Agreement.propose(SCHEMA, **PROMISE | {"admission": "invited"})
RECORD = {"age": 31.0, "income": 42.0}
ROWS, AT_ONCE = 23, 5
FATES = ["lose request", "lose response", "twice"]


class PowerCut(BaseException):
    """Nothing catches this: the process is gone."""


@pytest.fixture(autouse=True)
def small_parts(monkeypatch) -> None:
    monkeypatch.setattr(module, "ROWS_AT_ONCE", AT_ONCE)
    monkeypatch.setattr(module, "INVITED_AT_ONCE", AT_ONCE - 1)


@pytest.fixture
def people(tmp_path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("age,income\n" + "".join(f"{row},{2 * row}\n" for row in range(ROWS)))
    return path


@pytest.fixture
def client(url, store, network):
    store.open(AGREEMENT)
    with connected(url, network) as client:
        yield client


def connected(url: str, network: httpx.BaseTransport, patience: float = 60.0) -> Client:
    return Client(url, transports=[network], patience=patience, pause=lambda _seconds: None)


def identifiers(body: bytes) -> list[str]:
    """The identifiers in a message."""
    if body.startswith(b"\x89BLURS"):
        return [one.identifier for one in Submissions.from_bytes(body)]
    return [Submission.from_bytes(body).identifier]


def stored(store: Store, agreement: Agreement = AGREEMENT) -> dict[str, Submission]:
    """What the service has, by name; no name is there twice, and the count agrees."""
    found = [one for part in store.submissions(agreement.fingerprint) for one in part]
    by_name = {one.identifier: one for one in found}
    assert len(found) == len(by_name) == store.count(agreement)
    return by_name


def require_each_row_once(
    store: Store, network, rows: int = ROWS, agreement: Agreement = AGREEMENT
) -> None:
    """As many submissions as rows, and never two blurs of one row, not even on the way."""
    kept = stored(store, agreement)
    on_the_way = set(itertools.chain.from_iterable(identifiers(body) for body in network.sent))
    assert set(kept) == on_the_way
    assert len(kept) == rows


# ---- one record


def test_a_record_is_blurred_sent_and_receipted(url, store, network) -> None:
    agreement = Agreement.propose(SCHEMA, **PROMISE)
    store.open(agreement)
    with connected(url + "/", network) as client:
        by_fingerprint = client.contribute(agreement.fingerprint, RECORD)
        by_agreement = client.contribute(agreement, RECORD)
    assert by_fingerprint.services == (url,)
    assert by_fingerprint.fingerprint == agreement.fingerprint
    kept = stored(store, agreement)
    assert list(kept) == [by_fingerprint.identifier, by_agreement.identifier]
    assert [Submission.from_bytes(body) for body in network.sent] == list(kept.values())


@pytest.mark.parametrize(
    "fates",
    [[], *([fate] for fate in FATES), FATES, ["lose response"] * 6],
    ids=" ".join,
)
def test_a_record_is_counted_once_whatever_the_network_does(client, store, network, fates) -> None:
    network.fates += fates
    receipt = client.contribute(AGREEMENT, RECORD)
    assert list(stored(store)) == [receipt.identifier]
    assert not network.fates
    assert len(set(network.sent)) == 1  # the very same bytes, so no second blur


def test_what_is_blurred_already_can_be_sent_again_even_after_closing(client, store) -> None:
    one, many = perturb(AGREEMENT, RECORD), perturb_table(AGREEMENT, {"age": [1], "income": [2]})
    assert client.submit(one) == 1
    assert client.submit(one) == 0
    assert client.submit(many) == 1
    store.close_collection(AGREEMENT.fingerprint)
    assert client.submit(one) == client.submit(many) == 0
    assert store.count(AGREEMENT) == 2


def test_a_table_is_no_record_and_nothing_is_sent(client, network) -> None:
    with pytest.raises(InvalidValueError, match="contribute_table"):
        client.contribute(AGREEMENT, {"age": [1, 2], "income": [3, 4]})
    assert not network.sent


# ---- whom it refuses


def with_less_noise(path: tuple[str, ...]) -> Agreement:
    document = deepcopy(AGREEMENT.to_dict())
    part = document
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] *= 0.9
    weak = Agreement.from_dict(document)
    assert weak.fingerprint != AGREEMENT.fingerprint
    assert Agreement.from_json(weak.to_json()).fingerprint == weak.fingerprint  # its own, and right
    return weak


class Impostor(httpx.BaseTransport):
    """A service that hands out one text as every agreement, and takes whatever comes."""

    def __init__(self, text: str) -> None:
        self.text, self.sent = text, []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, text=self.text)
        self.sent.append(request.read())
        return httpx.Response(200, json={"accepted": 1, "new": 1})


@pytest.mark.parametrize(
    "path",
    [("calibration", "sigma"), ("calibration", "mu"), ("calibration", "model", "epsilon")],
    ids=".".join,
)
def test_an_agreement_with_too_little_noise_is_refused(people, path) -> None:
    kept = MomentCalibration.from_dict(AGREEMENT.to_dict()["calibration"])
    assert kept == AGREEMENT.calibration
    weak = with_less_noise(path)
    impostor = Impostor(weak.to_json())
    with connected("http://impostor", impostor) as client:
        for attempt in (
            lambda: client.agreement(weak.fingerprint),
            lambda: client.contribute(weak.fingerprint, RECORD),
            lambda: client.contribute(weak, RECORD),
            lambda: client.contribute_table(weak, people),
        ):
            with pytest.raises(NotCertifiedError):
                attempt()
    assert not impostor.sent
    assert not default_journal(people, weak).exists()


def test_another_agreement_than_one_was_invited_to_is_refused() -> None:
    other = Agreement.propose(SCHEMA, **PROMISE | {"epsilon": 50.0})
    other.verify()  # it keeps what it promises, which is little
    impostor = Impostor(other.to_json())
    with connected("http://impostor", impostor) as client:
        for attempt in (
            lambda: client.agreement(AGREEMENT.fingerprint),
            lambda: client.contribute(AGREEMENT.fingerprint, RECORD),
        ):
            with pytest.raises(NotCertifiedError, match="not the one that you were invited to"):
                attempt()
    assert not impostor.sent


# ---- a table


@pytest.mark.parametrize("seed", range(4))
def test_each_row_is_counted_once_whatever_the_network_does(
    client, store, network, people, seed: int
) -> None:
    network.fates += random.Random(seed).choices(["fine", *FATES], k=25)
    client.contribute_table(AGREEMENT, people)
    require_each_row_once(store, network)


def cut_before(_request: httpx.Request) -> httpx.Response:
    raise PowerCut


def cut_after(request: httpx.Request) -> httpx.Response:
    """The service has it; the sender will never know."""
    with httpx.HTTPTransport(verify=False) as wire:
        wire.handle_request(request).read()
    raise PowerCut


@pytest.mark.parametrize("cut", [cut_before, cut_after])
@pytest.mark.parametrize("parts_before", [0, 2, 4])
def test_an_interrupted_run_goes_on_where_it_was(
    url, store, network, people, cut, parts_before: int
) -> None:
    store.open(AGREEMENT)
    network.fates += ["fine"] * parts_before + [cut]
    with connected(url, network) as client, pytest.raises(PowerCut):
        client.contribute_table(AGREEMENT, people)
    before = len(network.sent)
    assert before == parts_before + 1
    arrived = min(AT_ONCE * (parts_before + (cut is cut_after)), ROWS)
    assert store.count(AGREEMENT) == arrived
    with connected(url, network) as client:
        assert client.contribute_table(AGREEMENT, people) == ROWS
    assert network.sent[before] == network.sent[before - 1]  # not blurred again: the same bytes
    require_each_row_once(store, network)


# ---- invitations


@pytest.fixture(name="tokens")
def invitations(store) -> list[str]:
    store.open(INVITED)
    made = [tokens.new_token() for _ in range(ROWS)]
    store.invite(INVITED.fingerprint, [tokens.hashed(token) for token in made])
    return made


@pytest.fixture
def guest(url, tokens, network):
    with connected(url, network) as client:
        yield client


def test_an_invitation_is_for_one_submission(guest, store, tokens) -> None:
    with pytest.raises(NotInvitedError):
        guest.contribute(INVITED, RECORD)
    with pytest.raises(NotInvitedError):
        guest.contribute(INVITED, RECORD, invitations=[new_token()])
    receipt = guest.contribute(INVITED, RECORD, invitations=[tokens[0]])
    with pytest.raises(NotInvitedError, match="have been used"):
        guest.contribute(INVITED, RECORD, invitations=[tokens[0]])
    assert list(stored(store, INVITED)) == [receipt.identifier]
    assert store.unused_invitations(INVITED.fingerprint) == ROWS - 1


def test_a_table_uses_an_invitation_for_each_row(guest, store, network, people, tokens) -> None:
    network.fates += ["fine", "lose response", cut_after]
    with pytest.raises(PowerCut):
        guest.contribute_table(INVITED, people, invitations=[tokens])
    guest.contribute_table(INVITED, people, invitations=[tokens])
    require_each_row_once(store, network, agreement=INVITED)
    assert store.unused_invitations(INVITED.fingerprint) == 0
    given = [headers["blurfit-invitation"].split(",") for headers in network.headers]
    assert max(map(len, given)) <= AT_ONCE - 1  # so that no header is long
