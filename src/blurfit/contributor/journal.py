"""What was blurred and what was received, so that no record is ever blurred twice.

A second blur of the same record would let the database average the noise away, and count the person
twice. So a part of a table is written here before it is sent, as the very bytes that will travel,
and sent from here. When it has been received its bytes are overwritten, and only the fact is kept:
a table that has been sent is not sent again.

**Waves.** All waves of a plan have one journal (`Agreement.once`), in which each part says under
which agreement it was blurred. *A record that may have arrived is never blurred again for another
wave.* Proof that it must not be, and that it is not:

1. A part is on disk before it is sent. So if a record is in no part, nothing of it has left, and it
   may be blurred for whichever wave is open.
2. If it is in a part, its bytes b may have arrived, whatever is known here: an answer that was lost
   and a request that was lost look alike. Were b in wave k's sums and the record blurred anew for
   wave k + 1, it would be in two releases, and its μ would be √(μ_k² + μ_{k+1}²): the promise would
   be broken (`blurfit.theory.planning`). If wave k has closed and its database says that b
   came too late, that is the database's own word, and it has seen b: against the database itself
   two blurs compose, as they do within one wave.
3. So b is sent as it is until it is received or refused as late. A receiver counts an identifier
   once, and acknowledges it after closing, too. If it came too late the record is left out. That
   costs one record of the sums, whichever answers it holds: only the order of rows and the time
   decide.

`blurred` counts the rows of all parts, received or not, of whichever wave, and only rows beyond
them are ever blurred: 3 is all that happens to the others. ∎

**Nobody is left out for having been slow.** A client asks which wave collects before it blurs, and
a service takes the step to the next wave before it answers whoever filled the last one. So what is
blurred is for an open wave, and rows of 3 are those on their way in the very moment when others
fill it. A service that says "closed" for b has seen b, so even then 2 holds, word for word.

**Two databases.** A part is two messages, and what goes to the second is seeds: fresh random bytes
that have nothing to do with any record. The other message depends on records, and leaves only when
the seeds have been received *and this has been written down here* (`leave`). So as long as nothing
is written down, nothing of the records has left, whatever has become of the seeds and whoever lies
about them: 1 holds for the part as if it had never been blurred. If the wave closes meanwhile it is
taken back (`take_back`). The second database closes a wave before the first does, so that is how
nearly all who are late are refused. Once it is written
down, 2 and 3 hold as above.

**A receipt.** If one is asked for, the journal also holds its secret, from which identifiers follow
(`blurfit.messages.signing`), and the signatures so far: until the receipt is written.

A single record's journal is one of a table with one row (`blurfit.contributor.client`).
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np

from blurfit import private_files
from blurfit.contributor.blur import Messages
from blurfit.contributor.noise import new_secret
from blurfit.contributor.receipt import Part, Receipt, Signatures
from blurfit.data import ByteArray
from blurfit.errors import ClosedError, ConflictError, InvalidValueError
from blurfit.randomness import bits

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


@dataclass(frozen=True)
class Portion:
    """Some consecutive rows of a table, blurred: as bytes for each database that gets something.

    `under` is the fingerprint of the agreement that they were blurred under.
    """

    start: int
    rows: int
    messages: Messages
    under: str = ""

    @property
    def stop(self) -> int:
        """The row after the last one."""
        return self.start + self.rows


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
        self.identity = bits.octets(16).hex() if found is None else str(found[0])
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
        return {
            str(one) for (one,) in self._file.execute("SELECT under FROM parts WHERE under <> ''")
        }

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
        """Keep what was blurred, on disk, before it is sent: from now on it may have left, unless
        that is yet to be written down (`leave`).
        """
        self._file.execute("BEGIN")
        self._file.execute(
            "INSERT INTO parts VALUES (?, ?, 0, ?, ?)",
            (part.start, part.rows, part.under, has_left),
        )
        self._file.executemany(
            "INSERT INTO messages VALUES (?, ?, ?)",
            [(part.start, place, message) for place, message in enumerate(part.messages)],
        )
        self._file.execute("COMMIT")

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
        self._file.execute("BEGIN")
        for table in ("parts", "messages"):
            self._file.execute(f"DELETE FROM {table} WHERE start = ?", (part.start,))
        self._file.execute("COMMIT")

    def acknowledge(self, part: Portion, signatures: Signatures = ()) -> None:
        """Forget the bytes of a part that has been received; keep the fact, and the signatures of
        those who have it, if there will be a receipt.
        """
        given = [(part.start, place, one) for place, one in enumerate(signatures)]
        self._forget("WHERE start = ?", (part.start,), given if self.secret is not None else [])

    def acknowledge_all(self) -> None:
        """Forget the bytes of all parts, which have been received together."""
        self._forget("", ())

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
        self._file.execute("BEGIN")
        self._file.execute("DELETE FROM secrets")
        self._file.execute("DELETE FROM signatures")
        self._file.execute("COMMIT")
        self.secret = None

    def finished(self) -> bool:
        """Return whether everything that was blurred has been received."""
        query = "SELECT count(*) FROM parts WHERE NOT acknowledged"
        return self.blurred() > 0 and self._file.execute(query).fetchone() == (0,)

    def discard(self) -> None:
        """Remove a journal that nothing was blurred under."""
        self._file.close()
        self.path.unlink()

    def _forget(
        self,
        which: str,
        given: tuple[int, ...],
        signatures: Sequence[tuple[int, int, str | None]] = (),
    ) -> None:
        self._file.execute("BEGIN")
        self._file.executemany("INSERT INTO signatures VALUES (?, ?, ?)", signatures)
        self._file.execute(f"UPDATE parts SET acknowledged = 1 {which}", given)
        self._file.execute(f"DELETE FROM messages {which}", given)
        self._file.execute("COMMIT")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()
