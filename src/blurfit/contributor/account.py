"""What an account remembers: which tables it has blurred, and what it sent to whom.

Both are small files for their owner alone, in BLURFIT_HOME or ~/.blurfit.

**Tables.** A journal knows its own table. It does not know a copy of the table beside another
journal, and a second blur of the same people would let their noise be averaged away. So for each
agreement, or plan of waves, a keyed hash of all rows is kept,

    Σ over rows of BLAKE2b(key, encoded row)  mod 2²⁵⁶,

which is the same in any order of the rows, in CSV or Parquet, and says nothing without the key
(32 random bytes). Single rows are not remembered: two people may give the same answers, and a file
of hashes of single rows could be searched for them. *What it does not see:* a table with a row more
or less is another table to it, and so is a copy on another machine or under another account. There
it is the contributor's part not to blur anyone twice: put new records into a file of their own.

**The ledger** says to whom rows were sent, when, with what promise, and what it adds up to: facts
that are in agreements anyway, no answers, no numbers that were sent. For tables, and for a person's
part in a plan, an entry is written before the first part leaves; single records that a program
sends without a plan are its own affair. Somebody who is in all of the collections has what
`blurfit.budget` adds: the releases of Gaussian mechanisms are √Σμ_i²-GDP together, exactly; of
others ε and δ are added. All waves of a plan are one entry of that sum, with the largest μ among
them, since each person is in one wave. Promises about different neighbours do not add up, and are
told apart. This is about what is published; against a database that keeps single submissions their
own μ count.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from blurfit import private_files
from blurfit.agreement.agreement import Agreement
from blurfit.arrays import FloatArray
from blurfit.budget import Budget, Expense
from blurfit.errors import ConflictError, InvalidValueError
from blurfit.randomness import bits
from blurfit.schema.schema import title_of
from blurfit.theory.guarantees import NEIGHBOURS, Neighbours
from blurfit.theory.moments import MomentCalibration

DELTA = 1e-6
_TABLES = """CREATE TABLE IF NOT EXISTS tables (
    fingerprint TEXT, rows TEXT, journal TEXT, PRIMARY KEY (fingerprint, rows))"""
_ENTRIES = """CREATE TABLE IF NOT EXISTS entries (
    fingerprint TEXT, journal TEXT, entry TEXT NOT NULL, PRIMARY KEY (fingerprint, journal))"""


@contextmanager
def _opened(path: Path, table: str) -> Iterator[sqlite3.Connection]:
    """A file of the account's, in which every statement is on disk when it returns."""
    private_files.create(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA synchronous = FULL")
        file.execute(table)
        yield file


class Memory:
    """The tables that were blurred, in a folder of the user's: BLURFIT_HOME, or ~/.blurfit."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or private_files.home()
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.key = _key(self.folder / "key")
        except OSError as error:
            raise InvalidValueError(
                f"Expected {str(self.folder)!r} to be a folder that can be written, where blurfit "
                f"remembers which tables were blurred: {error}. Set "
                f"{private_files.HOME} to another one."
            ) from error

    def hashed(self, x: FloatArray, y: FloatArray) -> int:
        """The keyed hash of some encoded rows; those of parts add up to the table's, mod 2²⁵⁶."""
        rows = np.ascontiguousarray(np.column_stack([x, y]), dtype="<f8")
        rows += 0.0  # −0.0 and 0.0 are one value
        hashes = (hashlib.blake2b(row.tobytes(), key=self.key, digest_size=32) for row in rows)
        return sum(int.from_bytes(found.digest()) for found in hashes) % 2**256

    def claim(self, fingerprint: str, rows: int, journal: str) -> None:
        """Remember that a journal blurs these rows; refuse if another one did before.

        Args:
            fingerprint: the agreement's, or the plan's if there is one (`Agreement.once`).
            rows: what `hashed` gives for the whole table.
            journal: the journal's identity.
        """
        with _opened(self.folder / "tables.db", _TABLES) as file:
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


def _key(path: Path) -> bytes:
    """The user's own key, drawn when it is first needed, for its owner alone."""
    if not path.exists():
        with suppress(FileExistsError):  # another process was first: its key counts
            private_files.write(path, bits.octets(32), only_new=True)
    key = path.read_bytes()
    if len(key) != 32:
        raise InvalidValueError(
            f"Expected {str(path)!r} to hold 32 bytes, and it holds {len(key)}: it was cut off or "
            "edited. Remove it, and the tables.db beside it."
        )
    return key


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
        """What is written down when so many rows are sent there."""
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
            mu=calibration.mu if isinstance(calibration, MomentCalibration) else None,
            local_mu=calibration.local.mu,
        )


class Ledger:
    """The entries of this account, in BLURFIT_HOME or ~/.blurfit."""

    def __init__(self, folder: Path | None = None) -> None:
        self.path = (folder or private_files.home()) / "ledger.db"

    def note(self, entry: Entry, journal: str) -> None:
        """Write an entry down, once for a journal."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _opened(self.path, _ENTRIES) as file:
            row = (entry.fingerprint, journal, json.dumps(asdict(entry)))
            file.execute("INSERT OR IGNORE INTO entries VALUES (?, ?, ?)", row)

    def entries(self) -> list[Entry]:
        """All entries, the oldest first."""
        if not self.path.exists():
            return []
        with closing(sqlite3.connect(self.path)) as file:
            rows = file.execute("SELECT entry FROM entries ORDER BY rowid").fetchall()
        return [Entry(**json.loads(text)) for (text,) in rows]

    def earlier(self, agreement: Agreement) -> Entry | None:
        """The latest entry for the same purpose under another agreement or plan, if any."""
        mine = Entry.of(agreement, 0, "")
        if mine.purpose is None:
            return None
        same = (
            one
            for one in reversed(self.entries())
            if one.purpose == mine.purpose and one.once != mine.once
        )
        return next(same, None)

    def erase(self) -> int:
        """Forget all entries, and return how many there were. What was sent stays sent."""
        count = len(self.entries())
        self.path.unlink(missing_ok=True)
        return count


def total(entries: Iterable[Entry], delta: float = DELTA) -> dict[Neighbours, float]:
    """ε at δ, for each neighbouring relation, of everything that is published of such entries."""
    all_of_them = list(entries)
    found: dict[Neighbours, float] = {}
    for relation in NEIGHBOURS:
        spent: dict[str, Expense] = {}
        for one in all_of_them:
            if one.neighbours != relation:
                continue
            before = spent.get(one.once)
            if before is None or (one.mu or 0.0) > before.mu:
                gaussian = one.mu is not None
                spent[one.once] = Expense(
                    one.title,
                    mu=one.mu or 0.0,
                    epsilon=0.0 if gaussian else one.epsilon,
                    delta=0.0 if gaussian else one.delta,
                )
        if spent:
            budget = Budget(epsilon=1.0, delta=delta)
            budget.expenses.extend(spent.values())
            found[relation] = budget.spent().epsilon
    return found
