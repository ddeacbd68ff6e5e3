"""A receipt: what was acknowledged, by whose signature, and the secret to withdraw it with.

    {"format": "blurfit-receipt", "version": 1, "services": ["https://…"], "secret": "…",
     "parts": [{"start": 0, "rows": 1, "under": fingerprint, "signatures": ["…"]}]}

It names what somebody sent, so it is for them alone: whoever has it can withdraw, and tell which of
the rows in a database are theirs. It has neither answers nor blurred numbers. Where the agreement
names a key, an acknowledgement without its signature does not count; elsewhere signatures are null.

**To withdraw** what a receipt is for, every database that has it is asked. With one database a row
is out when it has been withdrawn there. With two, a row counts where both have their share, so it
is out as soon as one of them has withdrawn it, or never had it; the first is asked first, since it
may leave out fewer (`blurfit.store.joint`). A database that is closed refuses, and one that is
away says nothing: then the other's answer decides. So it does where one signed that it has a row,
and now says that it never had it: no signature says that a row is nowhere, so the receipt counts.
What got no answer anywhere may be asked for again: to withdraw twice is to withdraw once.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx2 as httpx
import msgspec

from blurfit import private_files
from blurfit.agreement.agreement import Agreement
from blurfit.data import read_json
from blurfit.errors import BlurfitError, ClosedError, InvalidValueError, ServiceError, StorageError
from blurfit.messages.shares import Role
from blurfit.messages.signing import about_submissions, identifiers_of, is_signed, secrets_of
from blurfit.messages.submissions import BATCH_MAGIC, rows_in
from blurfit.protocol.http import (
    MOST_SUBMISSIONS,
    PATIENCE,
    WITHDRAWALS,
    Acknowledgement,
    Exchange,
    Withdrawal,
    path_of,
)

FORMAT, VERSION = "blurfit-receipt", 1
_MOST_ROWS = 2**32
Signatures = tuple[str | None, ...]  # one of each database that got something

_DISOWNED = (
    "{url} signed that it has stored what the receipt is for, and now says that it never had all "
    "of it: either it has lost some, as a store has that was restored from a backup, or this "
    "answer is not true. Keep the receipt, and ask whoever runs it."
)

_TOO_LATE = "The collection at {url} closed before all of it was withdrawn: the others stay in it."


@dataclass(frozen=True)
class Part:
    """Some consecutive rows that were acknowledged together, under one agreement."""

    start: int
    rows: int
    under: str
    signatures: Signatures

    @property
    def stop(self) -> int:
        """The row after the last one."""
        return self.start + self.rows


@dataclass(frozen=True)
class Receipt:
    """What a contributor keeps: who has stored what they sent, and what proves that."""

    services: tuple[str, ...]
    secret: str
    parts: tuple[Part, ...]

    def __repr__(self) -> str:
        rows = sum(part.rows for part in self.parts)
        return f"<Receipt for {rows:,} rows at {' and '.join(self.services)}>"

    @property
    def url(self) -> str:
        """The first service."""
        return self.services[0]

    @property
    def fingerprint(self) -> str:
        """Of the agreement that the first row was sent under."""
        return self.parts[0].under

    @property
    def identifier(self) -> str:
        """Under which the first row is stored."""
        start = self.parts[0].start
        return identifiers_of(secrets_of(self.secret, start, start + 1)).tobytes().hex()

    def identifiers(self, part: Part) -> bytes:
        """Return the identifiers of a part, one after another."""
        return identifiers_of(secrets_of(self.secret, part.start, part.stop)).tobytes()

    def wrong_with(self, *agreements: Agreement) -> list[str]:
        """Return what is wrong with the signatures, for whoever has the agreements.

        Rows that went into several waves were sent under as many agreements.
        """
        known = {agreement.fingerprint: agreement for agreement in agreements}
        found = []
        for part in self.parts:
            rows = f"{part.start + 1} to {part.stop}"
            agreement = known.get(part.under)
            if agreement is None:
                found.append(f"Rows {rows} were sent under {part.under}: give that agreement, too.")
            elif not agreement.signing_keys:
                found.append(f"The agreement of rows {rows} names no key: they are not signed for.")
            else:
                found += [
                    f"The signature for rows {rows} is not by {key}."
                    for place, key in enumerate(agreement.signing_keys)
                    if not self.is_signed_at(place, agreement, part)
                ]
        return found

    def is_signed_at(self, place: int, agreement: Agreement, part: Part) -> bool:
        """Return whether the database in this place signed that it has the rows of a part."""
        if place >= min(len(agreement.signing_keys), len(part.signatures)):
            return False
        role, key = roles(agreement)[place], agreement.signing_keys[place]
        message = about_submissions("receipt", part.under, role, self.identifiers(part))
        return is_signed(message, key, part.signatures[place])

    # ---- files

    def to_json(self) -> str:
        """Return the file's text."""
        document = {"format": FORMAT, "version": VERSION, **asdict(self)}
        return json.dumps(document, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> "Receipt":
        """Read what `to_json` wrote."""
        try:
            document: dict[str, Any] = read_json(text)
            if (document.get("format"), document.get("version")) != (FORMAT, VERSION):
                raise InvalidValueError(
                    f"Expected format={FORMAT!r}, version={VERSION}: is this a receipt, and of "
                    "this version of blurfit?"
                )
            fields = {name: document[name] for name in ("services", "secret", "parts")}
            found = msgspec.convert(fields, cls)
        except (AttributeError, KeyError, ValueError) as error:
            raise InvalidValueError(f"Expected a receipt in JSON: {error}.") from error
        if not found.services or not found.parts:
            raise InvalidValueError("Expected a receipt with a service, and something that it has.")
        if any(part.start < 0 or part.rows < 1 or part.stop > _MOST_ROWS for part in found.parts):
            raise InvalidValueError("Expected a receipt for rows that a table can have.")
        return found

    def save(self, path: str | Path) -> None:
        """Write it to a file that nobody else can read, and on disk when this returns."""
        private_files.write(Path(path), self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> "Receipt":
        """Read it from a file."""
        return cls.from_json(Path(path).read_bytes())


def roles(agreement: Agreement) -> tuple[Role, ...]:
    """Return the roles of the databases that get something, in their order."""
    return ("first", "second") if agreement.databases else ("whole",)


def checked(
    found: Acknowledgement, keys: Sequence[str], fingerprint: str, role: Role, message: bytes
) -> str | None:
    """Return the signature of an acknowledgement, if the agreement names keys.

    An acknowledgement that is not signed by the right one is refused: whatever answered is not the
    service that everyone agreed on, and nobody could hold it to its word.
    """
    if not keys:
        return None
    key = keys[role == "second"]
    signed = about_submissions("receipt", fingerprint, role, _identifiers(message))
    if not is_signed(signed, key, found.signature):
        raise ServiceError(
            f"Expected an acknowledgement that is signed with the key of the agreement, {key}, and "
            "got one that is not: something else answered in place of the service. Nothing counts "
            "as stored; send the same again when the service is back."
        )
    return found.signature


def _identifiers(message: bytes) -> bytes:
    """Return the identifiers in a message: of one submission, or of a batch, whole or shares."""
    body, count = rows_in(message) if message[:6] == BATCH_MAGIC else (memoryview(message), 1)
    size = len(body) // count
    return b"".join(body[start + 8 : start + 24] for start in range(0, size * count, size))


# ---- withdrawing


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
    """Ask every database to withdraw some rows of a part."""
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
                agreement = agreement_at(exchange, part.under)
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


def agreement_at(exchange: Exchange, fingerprint: str) -> Agreement:
    """Return the agreement that a service has under a fingerprint; refuse any other."""
    found = Agreement.from_json(exchange.get(f"{path_of(fingerprint)}/agreement"))
    if found.fingerprint != fingerprint:
        raise ServiceError(
            f"Expected the agreement {fingerprint} from {exchange.url}, and got "
            f"{found.fingerprint}."
        )
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
