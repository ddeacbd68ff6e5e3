"""Withdrawing in parts, and over a line that breaks; test_withdrawals.py has a real service."""

import httpx2 as httpx
import msgspec
import pytest

from blurfit.contributor import receipt as module
from blurfit.contributor.noise import new_secret
from blurfit.contributor.receipt import Part, Receipt, withdraw
from blurfit.errors import ServiceError
from blurfit.messages.receipts import secrets_of
from support.stores import propose

AGREEMENT = propose()
MARK = AGREEMENT.fingerprint


class Place(httpx.BaseTransport):
    """A service that notes what it is asked, and breaks off where it is told to."""

    def __init__(self, breaks_after: int = 99) -> None:
        self.asked, self.left = [], breaks_after

    def handle_request(self, request):
        if request.method == "GET":
            return httpx.Response(200, text=AGREEMENT.to_json())
        if not self.left:
            raise httpx.ConnectError("gone")
        self.left -= 1
        secrets = msgspec.json.decode(request.read())["secrets"]
        self.asked.append(secrets)
        return httpx.Response(200, json={"withdrawn": len(secrets), "new": len(secrets)})


def test_each_secret_is_asked_for_once_in_bounded_parts(monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST_SUBMISSIONS", 4)
    parts = (Part(0, 6, MARK, (None,)), Part(6, 5, MARK, (None,)))
    receipt, place = Receipt(("http://a.example",), new_secret(), parts), Place()
    assert withdraw(receipt, transports=[place], patience=0.0).out == 11
    assert [len(some) for some in place.asked] == [4, 2, 4, 1]
    asked = [one for some in place.asked for one in some]
    assert asked == [one.hex() for one in secrets_of(receipt.secret, 0, 11)]
    place.asked.clear()
    assert withdraw(receipt, [5, 6, 10], transports=[place], patience=0.0).out == 3
    assert [one for some in place.asked for one in some] == [asked[5], asked[6], asked[10]]


def test_a_broken_line_is_an_error_and_the_same_may_be_asked_again() -> None:
    parts = (Part(0, 2, MARK, (None,)), Part(2, 1, MARK, (None,)))
    receipt = Receipt(("http://a.example",), new_secret(), parts)
    with pytest.raises(ServiceError, match="gone"):
        withdraw(receipt, transports=[Place(breaks_after=1)], patience=0.0)
    assert withdraw(receipt, transports=[Place()], patience=0.0).out == 3


def test_of_two_databases_one_that_answers_is_enough() -> None:
    receipt = Receipt(
        ("http://a.example", "http://b.example"), new_secret(), (Part(0, 2, MARK, (None, None)),)
    )
    for places in ((Place(0), Place()), (Place(), Place(0))):
        found = withdraw(receipt, transports=places, patience=0.0)
        assert (found.out, found.unknown, found.staying) == (2, 0, 0)
        assert "gone" in found.reason
    with pytest.raises(ServiceError, match="gone"):
        withdraw(receipt, transports=[Place(0), Place(0)], patience=0.0)
