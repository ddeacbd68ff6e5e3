"""What was blurred and what was received, so that no record is ever blurred twice; and the receipt.

**A receipt** says what was acknowledged, by whose signature, and has the secret to withdraw with:

    {"format": "blurfit-receipt", "version": 1, "services": ["https://…"], "secret": "…",
     "parts": [{"start": 0, "rows": 1, "under": fingerprint, "signatures": ["…"]}]}

Whoever has it can withdraw, and tell which of the rows in a database are theirs. It has neither
answers nor blurred numbers. Where the agreement names a key, an acknowledgement without its
signature does not count; elsewhere signatures are null.

**The journal.** A part of a table is written here before it is sent, as the very bytes that will
travel, and sent from here. Once it is received its bytes are overwritten, and only the fact stays:
a table that has been sent is not sent again. All waves of a plan have one journal
(`Agreement.once`), and a record that may have arrived is never blurred again for another wave, as
long as the journal is the one that was begun for the table. A single record's journal is one of a
table with one row. If a receipt is wanted, the journal holds its secret and signatures until the
receipt is written.

Proofs: `docs/theory/blurred-once.md`; of withdrawing from two databases: `docs/theory/shares.md`.
Tested by `server/tests/contributor/test_journal.py`, `test_plans.py` and `test_receipt.py`.
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import httpx2 as httpx
import msgspec
import numpy as np

from blurfit import private_files, randomness
from blurfit.agreement.agreement import Agreement
from blurfit.contributor.blur import Portion, roles
from blurfit.data import ByteArray, read_json
from blurfit.errors import (
    BlurfitError,
    ClosedError,
    ConflictError,
    InvalidValueError,
    ServiceError,
    StorageError,
)
from blurfit.messages.signing import about_submissions, is_signed
from blurfit.messages.submissions import identifiers_of, secrets_of
from blurfit.protocol import MOST_SUBMISSIONS, PATIENCE, WITHDRAWALS, Exchange, Withdrawal, path_of
from blurfit.randomness import new_secret

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


# ---- withdrawing


@dataclass
class WithdrawalOutcome:
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
) -> WithdrawalOutcome:
    """Withdraw all rows of a receipt, or those of these numbers, counted from 0."""
    held = {row for part in receipt.parts for row in range(part.start, part.stop)}
    if strangers := set(rows or ()) - held:
        raise InvalidValueError(
            f"Expected rows that the receipt is for, from {min(held) + 1} to {max(held) + 1}, and "
            f"got {min(strangers) + 1}."
        )
    ways = transports or [None] * len(receipt.services)
    found = WithdrawalOutcome()
    with ExitStack() as stack:
        exchanges = [
            stack.enter_context(closing(Exchange(url, patience=patience, transport=way, **options)))
            for url, way in zip(receipt.services, ways, strict=True)
        ]
        for part in receipt.parts:
            wanted = [row for row in range(part.start, part.stop) if rows is None or row in rows]
            for start in range(0, len(wanted), MOST_SUBMISSIONS):
                _ask(receipt, part, wanted[start : start + MOST_SUBMISSIONS], exchanges, found)
    return found


def _ask(
    receipt: Receipt,
    part: Part,
    rows: list[int],
    exchanges: list[Exchange],
    found: WithdrawalOutcome,
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


Outcome = Literal["sent", "taken back", "late"]

_TABLES = """
CREATE TABLE IF NOT EXISTS journal (
    identity TEXT, fingerprint TEXT, destination TEXT, digest TEXT, rows INTEGER
);
CREATE TABLE IF NOT EXISTS parts (
    start INTEGER PRIMARY KEY, rows INTEGER NOT NULL, acknowledged INTEGER NOT NULL, under TEXT,
    has_left INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS messages (start INTEGER, place INTEGER, message BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS secrets (secret TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS lots (groups BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS signatures (start INTEGER, place INTEGER, signature TEXT);
CREATE INDEX IF NOT EXISTS of_parts ON messages (start);
"""


class Journal:
    """The journal of one table, for one destination under one agreement or plan, in a file.

    `identity` is random, and stays with the file wherever it is moved; `is_new` says that nothing
    was blurred under it before.
    """

    def __init__(
        self, path: Path, fingerprint: str, destination: str, digest: str, rows: int
    ) -> None:
        self.path = path
        self._refused: set[str] = set()  # waves that took no more seeds
        try:
            private_files.create(path)
            self._file = sqlite3.connect(path, isolation_level=None)
            self._file.execute("PRAGMA synchronous = FULL")
            self._file.execute("PRAGMA secure_delete = ON")
            # Truncated after each commit: it holds what was overwritten.
            self._file.execute("PRAGMA journal_mode = TRUNCATE")
            # Held to the end: two runs at once would blur the same rows twice.
            self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._file.execute("BEGIN IMMEDIATE")
            for statement in _TABLES.split(";"):
                self._file.execute(statement)
        except (sqlite3.Error, OSError) as error:
            if hasattr(self, "_file"):
                self._file.close()
            raise InvalidValueError(
                f"Expected {str(path)!r} to be a journal that can be written, and that no other "
                f"run is using: {error}."
            ) from error
        asked = (fingerprint, destination, digest, rows)
        found = self._file.execute("SELECT * FROM journal").fetchone()
        self.is_new = found is None
        self.identity = randomness.octets(16).hex() if found is None else str(found[0])
        if found is None:
            self._file.execute(
                "INSERT INTO journal VALUES (?, ?, ?, ?, ?)", (self.identity, *asked)
            )
        elif found[1:] != asked:
            self._file.close()
            raise ConflictError(
                f"Expected {str(path)!r} to be the journal of this table: the table has changed "
                "since it was begun, or it was for another agreement, or for a file (--out) and "
                "not for a service (--to). Rows that were sent cannot be told from new ones; put "
                "new records into a file of their own."
            )
        self._file.execute("COMMIT")
        kept = self._file.execute("SELECT secret FROM secrets").fetchone()
        self.secret: str | None = None if kept is None else str(kept[0])

    def blurred(self) -> int:
        """Count the rows that have been blurred, from the first on."""
        (rows,) = self._file.execute("SELECT coalesce(sum(rows), 0) FROM parts").fetchone()
        return int(rows)

    def pending(self) -> Iterator[Portion]:
        """Yield what was blurred, and may not have been received, in the order of the table."""
        query = "SELECT start, rows, under FROM parts WHERE NOT acknowledged ORDER BY start"
        for start, rows, under in self._file.execute(query).fetchall():  # one at a time in memory
            part = "SELECT message FROM messages WHERE start = ? ORDER BY place"
            messages = self._file.execute(part, (start,)).fetchall()
            yield Portion(start, rows, tuple(message for (message,) in messages), under)

    def agreements(self) -> set[str]:
        """Return the agreements that rows were blurred under, by fingerprint: waves of a plan."""
        query = "SELECT under FROM parts WHERE under <> ''"
        return {str(one) for (one,) in self._file.execute(query)}

    def groups(self, draw: Callable[[], ByteArray]) -> ByteArray:
        """Return which wave of a plan each row is in: drawn once, and written down before
        anything is blurred, so that nobody's lot is drawn until it pleases.
        """
        found = self._file.execute("SELECT groups FROM lots").fetchone()
        if found is None:
            found = (draw().tobytes(),)
            self._file.execute("INSERT INTO lots VALUES (?)", found)
        return np.frombuffer(found[0], dtype=np.uint8)

    def leave_out(self, start: int, rows: int) -> None:
        """Write down that some rows are not blurred: their group was complete before they came."""
        self._file.execute("INSERT INTO parts VALUES (?, ?, 1, '', 0)", (start, rows))

    def left_out(self) -> int:
        """Count the rows that have been left out so."""
        query = "SELECT coalesce(sum(rows), 0) FROM parts WHERE under = ''"
        return int(self._file.execute(query).fetchone()[0])

    def record(self, part: Portion, *, has_left: bool = True) -> None:
        """Keep what was blurred before it is sent: it may have left, or `leave` is to say so."""
        row = part.start, part.rows, part.under, has_left
        messages = [(part.start, place, message) for place, message in enumerate(part.messages)]
        with self._at_once() as file:
            file.execute("INSERT INTO parts VALUES (?, ?, 0, ?, ?)", row)
            file.executemany("INSERT INTO messages VALUES (?, ?, ?)", messages)

    def hand_over(
        self,
        part: Portion,
        send: Callable[[Portion], Signatures | None],
        announce: Callable[[Portion], object] | None = None,
        pinned: str | None = None,
    ) -> Outcome:
        """Send a part, and write down what became of it; first what says nothing of its records, if
        there is such a thing: the seeds.

        If its wave closed before anything else had left, it is taken back, as if it had never been
        blurred; if it closed later its rows are late, and never blurred again.

        Raises ClosedError if there is no other wave, because `pinned` is the agreement of the part,
        or if a wave that took nothing is said to collect, and takes nothing again.
        """
        try:
            if not self.has_left(part):
                if announce is not None:
                    announce(part)
                self.leave(part)  # also if an earlier run announced it, and this one does not
            signatures = send(part)
        except ClosedError:
            late = self.has_left(part)
            if not late:
                self.take_back(part)
            if part.under == pinned or (not late and part.under in self._refused):
                raise
            if not late:
                self._refused.add(part.under)
                return "taken back"
            self.acknowledge(part)
            return "late"
        if signatures is not None:
            self.acknowledge(part, signatures)
        return "sent"

    def has_left(self, part: Portion) -> bool:
        """Return whether anything that depends on the records of a part may have left."""
        query = "SELECT has_left FROM parts WHERE start = ?"
        return bool(self._file.execute(query, (part.start,)).fetchone()[0])

    def leave(self, part: Portion) -> None:
        """Write down that a part may have left from now on."""
        self._file.execute("UPDATE parts SET has_left = 1 WHERE start = ?", (part.start,))

    def take_back(self, part: Portion) -> None:
        """Forget the newest part, of which nothing has left, as if it had never been blurred."""
        if self.has_left(part) or part.stop != self.blurred():
            raise ConflictError(
                "Expected the newest part, of which nothing has left: a second blur of what may "
                "have been seen would break the promise."
            )
        with self._at_once() as file:
            for table in ("parts", "messages"):
                file.execute(f"DELETE FROM {table} WHERE start = ?", (part.start,))

    def acknowledge(self, part: Portion | None = None, signatures: Signatures = ()) -> None:
        """Forget the bytes of a part that has been received, or of all of them; keep the fact, and
        the signatures of those who have it, if there will be a receipt.
        """
        which, given = ("", ()) if part is None else ("WHERE start = ?", (part.start,))
        kept = signatures if self.secret is not None else ()
        with self._at_once() as file:
            file.executemany(
                "INSERT INTO signatures VALUES (?, ?, ?)",
                [(*given, place, one) for place, one in enumerate(kept)],
            )
            file.execute(f"UPDATE parts SET acknowledged = 1 {which}", given)
            file.execute(f"DELETE FROM messages {which}", given)

    def keep_secret(self) -> None:
        """Draw the secret of a receipt, before anything is blurred; one that is there stays."""
        if self.secret is not None:
            return
        if self.blurred():
            raise InvalidValueError(
                "Expected a receipt to be asked for from the start: these rows were blurred "
                "without one, or it was written before. Nothing was sent now."
            )
        self.secret = new_secret()
        self._file.execute("INSERT INTO secrets VALUES (?)", (self.secret,))

    def receipt(self, services: tuple[str, ...]) -> Receipt:
        """Return the receipt for all rows that have been received."""
        if self.secret is None:
            raise InvalidValueError("Expected a journal with a secret: no receipt was asked for.")
        query = "SELECT start, rows, under FROM parts WHERE acknowledged ORDER BY start"
        signed = "SELECT signature FROM signatures WHERE start = ? ORDER BY place"
        parts = [
            Part(start, rows, under, tuple(one for (one,) in self._file.execute(signed, (start,))))
            for start, rows, under in self._file.execute(query).fetchall()
        ]
        received = tuple(part for part in parts if part.signatures)  # others came too late
        return Receipt(services, self.secret, received)

    def forget_secret(self) -> None:
        """Forget which submissions they were, once the receipt is in other hands."""
        with self._at_once() as file:
            file.execute("DELETE FROM secrets")
            file.execute("DELETE FROM signatures")
        self.secret = None

    def finished(self) -> bool:
        """Return whether everything that was blurred has been received."""
        query = "SELECT count(*) FROM parts WHERE NOT acknowledged"
        return self.blurred() > 0 and self._file.execute(query).fetchone() == (0,)

    def discard(self) -> None:
        """Remove a journal that nothing was blurred under."""
        self._file.close()
        self.path.unlink()

    @contextmanager
    def _at_once(self) -> Iterator[sqlite3.Connection]:
        """Write several things together, or none of them."""
        self._file.execute("BEGIN")
        yield self._file
        self._file.execute("COMMIT")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()
