"""Withdraw what a receipt is for: ask every database that has it, and say what came of it.

With one database a row is out when it has been withdrawn there. With two, a row counts where both
have their share, so it is out as soon as one of them has withdrawn it, or never had it; the first
is asked first, since it may leave out fewer (`blurfit.store.commitment`). A database that is closed
refuses, and one that is away says nothing: then the other's answer decides. So it does where one
signed that it has a row, and now says that it never had it: no signature says that a row is
nowhere, so the receipt counts. What got no answer anywhere may be asked for again: to
withdraw twice is to withdraw once.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2 as httpx
import msgspec

from blurfit.agreement.agreement import Agreement
from blurfit.contributor.receipt import Part, Receipt, roles
from blurfit.errors import (
    BlurfitError,
    ClosedError,
    InvalidValueError,
    ServiceError,
    StorageError,
)
from blurfit.json_reader import read_json
from blurfit.messages.receipts import identifiers_of, secrets_of
from blurfit.messages.signing import about_submissions, is_signed
from blurfit.protocol.http import PATIENCE, Exchange
from blurfit.protocol.wire import MOST_SUBMISSIONS, WITHDRAWALS, Withdrawal, path_of

_DISOWNED = (
    "{url} signed that it has stored what the receipt is for, and now says that it never had all "
    "of it: either it has lost some, as a store has that was restored from a backup, or this "
    "answer is not true. Keep the receipt, and ask whoever runs it."
)

_TOO_LATE = "The collection at {url} closed before all of it was withdrawn: the others stay in it."


@dataclass
class Outcome:
    """How many rows are out of the sums, how many of them were never stored, how many stay in.

    `signatures` has what each service signed, by its address, for the rows in their order.
    """

    out: int = 0
    unknown: int = 0
    staying: int = 0
    reason: str = ""
    signatures: list[dict[str, str]] = field(default_factory=list)


def withdraw(
    receipt: Receipt,
    rows: Collection[int] | None = None,
    *,
    patience: float = PATIENCE,
    transports: Sequence[httpx.BaseTransport | None] | None = None,
    **options: Any,
) -> Outcome:
    """Withdraw all rows of a receipt, or those of these numbers, counted from 0."""
    held = {row for part in receipt.parts for row in range(part.start, part.stop)}
    if strangers := set(rows or ()) - held:
        raise InvalidValueError(
            f"Expected rows that the receipt is for, from {min(held) + 1} to {max(held) + 1}, and "
            f"got {min(strangers) + 1}."
        )
    ways = transports or [None] * len(receipt.services)
    exchanges = [
        Exchange(url, patience=patience, transport=way, **options)
        for url, way in zip(receipt.services, ways, strict=True)
    ]
    found = Outcome()
    try:
        for part in receipt.parts:
            wanted = [row for row in range(part.start, part.stop) if rows is None or row in rows]
            for start in range(0, len(wanted), MOST_SUBMISSIONS):
                _ask(receipt, part, wanted[start : start + MOST_SUBMISSIONS], exchanges, found)
    finally:
        for exchange in exchanges:
            exchange.close()
    return found


def _ask(
    receipt: Receipt, part: Part, rows: list[int], exchanges: list[Exchange], found: Outcome
) -> None:
    """Some rows of a part, at every database."""
    secrets = [secrets_of(receipt.secret, row, row + 1)[0] for row in rows]
    names = [one.tobytes() for one in identifiers_of(secrets)]
    body = msgspec.json.encode({"secrets": [one.hex() for one in secrets]})
    agreement: Agreement | None = None
    out: set[bytes] = set()
    nowhere = set(names)
    silent: list[BlurfitError] = []
    for place, exchange in enumerate(exchanges):
        try:
            if agreement is None:
                agreement = _agreement(exchange, part.under)
            answer = _read(exchange.post(f"{path_of(part.under)}{WITHDRAWALS}", body))
            said = set(answer.unknown)
            unknown = {one for one in names if one.hex() in said}
            stay = {one for one in names if one.hex() in set(answer.staying)}
            told = [one for one in names if one not in unknown | stay]
            _check(agreement, place, told, answer)
        except (ClosedError, ServiceError, StorageError) as error:
            if not isinstance(error, ClosedError):
                silent.append(error)
            found.reason = str(error)
            nowhere.clear()
            continue
        if stay:
            found.reason = _TOO_LATE.format(url=exchange.url)
        if unknown and receipt.is_signed_at(place, agreement, part):
            found.reason = _DISOWNED.format(url=exchange.url)
            nowhere.clear()
            out |= set(told)
        else:
            out |= set(names) - stay  # withdrawn, or never here: in no sum, and in no common set
            nowhere &= unknown
        if answer.signature is not None:
            found.signatures.append({"service": exchange.url, "signature": answer.signature})
    if len(silent) == len(exchanges):
        raise silent[0]
    found.out += len(out)
    found.unknown += len(nowhere & out)
    found.staying += len(set(names) - out)


def _agreement(exchange: Exchange, fingerprint: str) -> Agreement:
    """What the rows were sent under; its fingerprint says that it is the right one."""
    found = Agreement.from_json(exchange.get(f"{path_of(fingerprint)}/agreement"))
    if found.fingerprint != fingerprint:
        raise ServiceError(f"Expected the agreement {fingerprint} from {exchange.url}.")
    return found


def _read(answer: bytes) -> Withdrawal:
    try:
        found: Withdrawal = read_json(answer, Withdrawal)
    except ValueError as error:
        raise ServiceError(f"Expected an answer to a withdrawal: {error}. Ask again.") from error
    return found


def _check(agreement: Agreement, place: int, told: list[bytes], answer: Withdrawal) -> None:
    """Refuse an answer that is not about these rows, or not signed as agreed."""
    if answer.withdrawn != len(told):
        raise ServiceError(
            f"Expected {len(told)} submissions to be withdrawn, and got {answer.withdrawn}. Ask "
            "again."
        )
    if not agreement.signing_keys or not told:
        return
    role, key = roles(agreement)[place], agreement.signing_keys[place]
    message = about_submissions("withdrawal", agreement.fingerprint, role, b"".join(told))
    if not is_signed(message, key, answer.signature):
        raise ServiceError(
            f"Expected an answer that is signed with the key of the agreement, {key}, and got one "
            "that is not: something else answered in place of the service. Ask again."
        )
