"""What an account remembers: which tables it has blurred, and what it sent to whom.

All of it is one small SQLite file for its owner alone, in BLURFIT_HOME or ~/.blurfit.

**Tables.** A journal knows its own table. It does not know a copy of the table beside another
journal, and a second blur of the same people would let their noise be averaged away. So for each
agreement, or plan of waves, a keyed hash of all rows is kept,

    Σ over rows of BLAKE2b(key, encoded row)  mod 2²⁵⁶,

which is the same in any order of the rows, in CSV or Parquet, and says nothing without the key
(32 random bytes). Single rows are not remembered: two people may give the same answers, and a file
of hashes of single rows could be searched for them. *What it does not see:* a table with a row more
or less, or a copy on another machine or under another account. There it is the contributor's part
not to blur anyone twice: put new records into a file of their own.

**The ledger** says to whom rows were sent, when, with what promise: facts that are in agreements
anyway, no answers, no numbers that were sent. For tables, and for a person's part in a plan, an
entry is written before the first part leaves; single records that a program sends without a plan
are its own affair. Somebody who is in all of the collections has what `blurfit.budget` adds. All
waves of a plan are one entry of that sum, with the largest μ among them, since each person is in
one wave. Promises about different neighbours do not add up, and are told apart. This is about what
is published; against a database that keeps single submissions their own μ count.
"""

import hashlib
import json
import math
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import numpy as np

from blurfit import private_files, randomness
from blurfit.agreement.agreement import Agreement
from blurfit.budget import Budget, Expense
from blurfit.data import FloatArray
from blurfit.errors import ConflictError, InvalidValueError
from blurfit.schema.schema import title_of
from blurfit.theory.guarantees import NEIGHBOURS, Neighbours

DELTA = 1e-6
_TABLES = (
    "CREATE TABLE IF NOT EXISTS keys (place INTEGER PRIMARY KEY, key BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS tables "
    "(fingerprint, rows, journal, PRIMARY KEY (fingerprint, rows))",
    "CREATE TABLE IF NOT EXISTS entries "
    "(fingerprint, journal, entry NOT NULL, PRIMARY KEY (fingerprint, journal))",
)


@dataclass(frozen=True)
class Entry:
    """One table that was sent under one agreement."""

    at: str
    title: str
    organiser: str | None
    purpose: str | None
    where: str
    rows: int
    fingerprint: str
    once: str
    epsilon: float
    delta: float
    neighbours: Neighbours
    mu: float | None
    local_mu: float

    @classmethod
    def of(cls, agreement: Agreement, rows: int, where: str) -> "Entry":
        """Return what is written down when so many rows are sent there."""
        about, calibration = agreement.schema.about, agreement.calibration
        title = about.title or title_of(agreement.schema.target)
        purpose = about.purpose or about.title
        return cls(
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            title=str(title),
            organiser=None if about.organiser is None else str(about.organiser),
            purpose=None if purpose is None else json.dumps(purpose.to_plain(), sort_keys=True),
            where=where,
            rows=rows,
            fingerprint=agreement.fingerprint,
            once=agreement.once,
            epsilon=agreement.epsilon,
            delta=agreement.delta,
            neighbours=calibration.model.neighbours,
            mu=agreement.mu,
            local_mu=calibration.local.mu,
        )


class Account:
    """The tables that were blurred and the entries of the ledger, in a folder of the user's."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or private_files.home()
        self.path = self.folder / "account.db"

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Open the file; every statement is on disk when it returns."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            private_files.create(self.path)
        except OSError as error:
            raise InvalidValueError(
                f"Expected {str(self.folder)!r} to be a folder that can be written, where blurfit "
                f"remembers which tables were blurred: {error}. Set {private_files.HOME} to "
                "another one."
            ) from error
        with closing(sqlite3.connect(self.path, timeout=60, isolation_level=None)) as file:
            file.execute("PRAGMA synchronous = FULL")
            file.execute("PRAGMA secure_delete = ON")
            for table in _TABLES:
                file.execute(table)
            yield file

    # ---- tables

    @cached_property
    def key(self) -> bytes:
        """The user's own key, drawn when it is first needed: whoever is first, for everyone."""
        with self._opened() as file:
            file.execute("INSERT OR IGNORE INTO keys VALUES (0, ?)", (randomness.octets(32),))
            return bytes(file.execute("SELECT key FROM keys").fetchone()[0])

    def hashed(self, x: FloatArray, y: FloatArray) -> int:
        """Return the keyed hash of some encoded rows; those of parts add up, mod 2²⁵⁶."""
        rows = np.ascontiguousarray(np.column_stack([x, y]), dtype="<f8")
        rows += 0.0  # −0.0 and 0.0 are one value
        hashes = (hashlib.blake2b(row.tobytes(), key=self.key, digest_size=32) for row in rows)
        return sum(int.from_bytes(found.digest()) for found in hashes) % 2**256

    def claim(self, fingerprint: str, rows: int, journal: str) -> None:
        """Remember that a journal blurs these rows, as `hashed` for the whole table, under what is
        agreed (`Agreement.once`); refuse if another one did before.
        """
        with self._opened() as file:
            names = (fingerprint, f"{rows:064x}")
            file.execute("INSERT OR IGNORE INTO tables VALUES (?, ?, ?)", (*names, journal))
            query = "SELECT journal FROM tables WHERE fingerprint = ? AND rows = ?"
            (before,) = file.execute(query, names).fetchone()
        if before != journal:
            raise ConflictError(
                "These very rows were blurred before under this agreement, from this or another "
                "file, with another journal. A second blur of the same people would let their "
                "noise be averaged: go on with the first journal. If they are other people who "
                "happen to have given the same answers, pass --other-people."
            )

    # ---- the ledger

    def note(self, entry: Entry, journal: str) -> None:
        """Write an entry down, once for a journal."""
        with self._opened() as file:
            row = (entry.fingerprint, journal, json.dumps(asdict(entry)))
            file.execute("INSERT OR IGNORE INTO entries VALUES (?, ?, ?)", row)

    def entries(self) -> list[Entry]:
        """Return all entries, the oldest first."""
        if not self.path.exists():
            return []
        with self._opened() as file:
            rows = file.execute("SELECT entry FROM entries ORDER BY rowid").fetchall()
        return [Entry(**json.loads(text)) for (text,) in rows]

    def earlier(self, agreement: Agreement) -> Entry | None:
        """Return the latest entry for the same purpose under another agreement or plan, if any."""
        mine = Entry.of(agreement, 0, "")
        same = (
            one
            for one in reversed(self.entries())
            if one.purpose == mine.purpose and one.once != mine.once
        )
        return None if mine.purpose is None else next(same, None)

    def erase(self) -> int:
        """Forget all entries, and return how many there were. What was sent stays sent."""
        if not self.path.exists():
            return 0
        with self._opened() as file:
            return file.execute("DELETE FROM entries").rowcount


def total(entries: Iterable[Entry], delta: float = DELTA) -> dict[Neighbours, Expense]:
    """Return (ε, δ), for each neighbouring relation, of everything that is published of entries.

    The promises of other mechanisms than Gaussian ones have a δ each, which is added to `delta`.
    """
    spent: dict[Neighbours, dict[str, Expense]] = {relation: {} for relation in NEIGHBOURS}
    for one in entries:
        before = spent[one.neighbours].get(one.once)
        if before and (one.mu or 0.0) <= before.mu:
            continue
        kept = {"epsilon": one.epsilon, "delta": one.delta} if one.mu is None else {"mu": one.mu}
        spent[one.neighbours][one.once] = Expense(one.title, **kept)
    found: dict[Neighbours, Expense] = {}
    for relation, each in spent.items():
        at = delta + math.fsum(one.delta for one in each.values())
        if each and at < 1:
            budget = Budget(epsilon=1.0, delta=at)
            budget.expenses.extend(each.values())
            found[relation] = budget.spent()
        elif each:  # which promises nothing
            found[relation] = Expense("all", epsilon=math.inf, delta=1.0)
    return found
