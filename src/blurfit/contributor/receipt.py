"""A receipt: what was acknowledged, by whose signature, and the secret to withdraw it.

    {"format": "blurfit-receipt", "version": 1, "services": ["https://…"], "secret": "…",
     "parts": [{"start": 0, "rows": 1, "under": fingerprint, "signatures": ["…"]}]}

It names what somebody sent, so it is hers alone: whoever has it can withdraw, and tell which of the
rows in a database is hers. It has neither answers nor blurred numbers. Where the agreement names a
key, an acknowledgement without its signature does not count; elsewhere signatures are null.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from blurfit import private_files
from blurfit.agreement.agreement import Agreement
from blurfit.errors import InvalidValueError, ServiceError
from blurfit.json_reader import read_json
from blurfit.messages.layout import BATCH_MAGIC, rows_in
from blurfit.messages.receipts import identifiers_of, secrets_of
from blurfit.messages.shares import Role
from blurfit.messages.signing import about_submissions, is_signed
from blurfit.protocol.wire import Acknowledgement

FORMAT, VERSION = "blurfit-receipt", 1
_MOST_ROWS = 2**32
Signatures = tuple[str | None, ...]  # one of each database that got something


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
    """What a contributor keeps: who has stored what she sent, and what proves that it is hers."""

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
        """Those of a part, one after another."""
        return identifiers_of(secrets_of(self.secret, part.start, part.stop)).tobytes()

    def wrong_with(self, *agreements: Agreement) -> list[str]:
        """What is wrong with the signatures, for whoever has the agreements; nothing, if all is
        well. Rows that went into several waves were sent under as many agreements.
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
        """Whether the database in this place signed, as agreed, that it has the rows of a part."""
        if place >= min(len(agreement.signing_keys), len(part.signatures)):
            return False
        role, key = roles(agreement)[place], agreement.signing_keys[place]
        message = about_submissions("receipt", part.under, role, self.identifiers(part))
        return is_signed(message, key, part.signatures[place])

    # ---- files

    def to_json(self) -> str:
        """The file's text."""
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
    """Those of the databases that get something, in their order."""
    return ("first", "second") if agreement.databases else ("whole",)


def checked(
    found: Acknowledgement, keys: Sequence[str], fingerprint: str, role: Role, message: bytes
) -> str | None:
    """The signature of an acknowledgement of a message, if the agreement names keys.

    An acknowledgement that is not signed by the right one is refused: whatever answered is not the
    service that everyone agreed on, and nobody could hold it to its word.
    """
    if not keys:
        return None
    key = keys[role == "second"]
    signed = about_submissions("receipt", fingerprint, role, b"".join(_identifiers(message)))
    if not is_signed(signed, key, found.signature):
        raise ServiceError(
            f"Expected an acknowledgement that is signed with the key of the agreement, {key}, and "
            "got one that is not: something else answered in place of the service. Nothing counts "
            "as stored; send the same again when the service is back."
        )
    return found.signature


def _identifiers(message: bytes) -> Iterator[bytes]:
    """Those of one submission, or of a batch, whole or shares of them."""
    body, count = rows_in(message) if message[:6] == BATCH_MAGIC else (memoryview(message), 1)
    size = len(body) // count
    for start in range(0, size * count, size):
        yield bytes(body[start + 8 : start + 24])
