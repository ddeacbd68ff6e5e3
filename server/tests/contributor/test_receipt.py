"""Receipts as files, acknowledgements that are none, and withdrawing over a line that breaks.

`tests/service/test_withdrawals.py` withdraws at a real service.
"""

from dataclasses import replace

import httpx2 as httpx
import msgspec
import pytest

from blurfit import Agreement, InvalidValueError, perturb
from blurfit.contributor import journal as module
from blurfit.contributor.blur import roles
from blurfit.contributor.client import checked
from blurfit.contributor.journal import Part, Receipt, withdraw
from blurfit.errors import ServiceError
from blurfit.messages.signing import Signer, about_submissions, new_key
from blurfit.messages.submissions import secrets_of
from blurfit.protocol import Acknowledgement
from blurfit.randomness import new_secret
from support import ed25519
from support.proposals import PEOPLE, propose

SIGNER = Signer(new_key())
AGREEMENT = propose(signing_keys=[SIGNER.key])
MARK = AGREEMENT.fingerprint
PLAIN = propose()


def signed(receipt: Receipt, by: Signer = SIGNER) -> Receipt:
    (part,) = receipt.parts
    message = about_submissions("receipt", MARK, "whole", receipt.identifiers(part))
    return replace(receipt, parts=(replace(part, signatures=(by.sign(message).signature,)),))


BLANK = Receipt(("https://a.example",), new_secret(), (Part(3, 40, MARK, (None,)),))
GOOD = signed(BLANK)


def test_a_file_is_read_as_it_was_written(tmp_path) -> None:
    GOOD.save(tmp_path / "receipt.json")
    GOOD.save(tmp_path / "receipt.json")
    assert Receipt.load(tmp_path / "receipt.json") == GOOD
    assert (tmp_path / "receipt.json").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["receipt.json"]
    assert "40 rows" in repr(GOOD)
    assert GOOD.secret not in repr(GOOD)
    for text in ("", "[]", "{}", '{"format": "blurfit-receipt", "version": 1}', BLANK.secret):
        with pytest.raises(InvalidValueError):
            Receipt.from_json(text)


@pytest.mark.parametrize(("start", "rows"), [(-1, 1), (0, 0), (5, -3), (0, 2**40)])
def test_rows_that_no_table_has_are_refused(start, rows) -> None:
    with pytest.raises(InvalidValueError, match="rows"):
        Receipt.from_json(replace(BLANK, parts=(Part(start, rows, MARK, (None,)),)).to_json())


def test_the_signature_is_checked_under_the_agreement() -> None:
    assert GOOD.wrong_with(AGREEMENT) == []
    message = about_submissions("receipt", MARK, "whole", GOOD.identifiers(GOOD.parts[0]))
    (signature,) = GOOD.parts[0].signatures
    assert ed25519.verifies(message, SIGNER.key, signature)
    assert "is not by" in BLANK.wrong_with(AGREEMENT)[0]
    assert "is not by" in signed(BLANK, Signer(new_key())).wrong_with(AGREEMENT)[0]
    assert "is not by" in replace(GOOD, secret=new_secret()).wrong_with(AGREEMENT)[0]
    assert "were sent under" in GOOD.wrong_with(propose(signing_keys=[SIGNER.key], quorum=9))[0]
    other = propose(signing_keys=[SIGNER.key], quorum=9)  # a later wave's, as it were
    later = replace(GOOD.parts[0], start=7, under=other.fingerprint, signatures=(None,))
    both = replace(GOOD, parts=(*GOOD.parts, later))
    assert "give that agreement, too" in both.wrong_with(AGREEMENT)[0]
    assert ["is not by" in one for one in both.wrong_with(AGREEMENT, other)] == [True]
    plain: Agreement = propose()
    unsigned = replace(BLANK, parts=(replace(BLANK.parts[0], under=plain.fingerprint),))
    assert "names no key" in unsigned.wrong_with(plain)[0]
    assert roles(AGREEMENT) == ("whole",)


def test_an_acknowledgement_that_is_not_signed_as_agreed_is_none() -> None:
    sent = perturb(AGREEMENT, PEOPLE, secret=BLANK.secret)
    one = next(iter(sent))
    for message, names in (
        (sent.to_bytes(), sent.identifiers.tobytes()),
        (one.to_bytes(), bytes.fromhex(one.identifier)),
    ):
        right = SIGNER.sign(about_submissions("receipt", MARK, "whole", names)).signature
        answer = Acknowledgement(1, 1, right)
        assert checked(answer, AGREEMENT.signing_keys, MARK, "whole", message) == right
        assert checked(Acknowledgement(1, 1), (), MARK, "whole", message) is None
        for wrong in (None, "", right[:-1] + "x", right[2:] + "00"):
            with pytest.raises(ServiceError, match="signed with the key"):
                checked(
                    Acknowledgement(1, 1, wrong), AGREEMENT.signing_keys, MARK, "whole", message
                )


# ---- withdrawing


class Place(httpx.BaseTransport):
    """A service that notes what it is asked, and breaks off where it is told to."""

    def __init__(self, breaks_after: int = 99) -> None:
        self.asked, self.left = [], breaks_after

    def handle_request(self, request):
        if request.method == "GET":
            return httpx.Response(200, text=PLAIN.to_json())
        if not self.left:
            raise httpx.ConnectError("gone")
        self.left -= 1
        secrets = msgspec.json.decode(request.read())["secrets"]
        self.asked.append(secrets)
        return httpx.Response(200, json={"withdrawn": len(secrets), "new": len(secrets)})


def test_each_secret_is_asked_for_once_in_bounded_parts(monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST_SUBMISSIONS", 4)
    parts = (Part(0, 6, PLAIN.fingerprint, (None,)), Part(6, 5, PLAIN.fingerprint, (None,)))
    receipt, place = Receipt(("http://a.example",), new_secret(), parts), Place()
    assert withdraw(receipt, transports=[place], patience=0.0).out == 11
    assert [len(some) for some in place.asked] == [4, 2, 4, 1]
    asked = [one for some in place.asked for one in some]
    assert asked == [one.hex() for one in secrets_of(receipt.secret, 0, 11)]
    place.asked.clear()
    assert withdraw(receipt, [5, 6, 10], transports=[place], patience=0.0).out == 3
    assert [one for some in place.asked for one in some] == [asked[5], asked[6], asked[10]]


def test_of_two_databases_one_that_answers_is_enough() -> None:
    receipt = Receipt(
        ("http://a.example", "http://b.example"),
        new_secret(),
        (Part(0, 2, PLAIN.fingerprint, (None, None)),),
    )
    for places in ((Place(0), Place()), (Place(), Place(0))):
        found = withdraw(receipt, transports=places, patience=0.0)
        assert (found.out, found.unknown, found.staying) == (2, 0, 0)
        assert "gone" in found.reason
    with pytest.raises(ServiceError, match="gone"):
        withdraw(receipt, transports=[Place(0), Place(0)], patience=0.0)
