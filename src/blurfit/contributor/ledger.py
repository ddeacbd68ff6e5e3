"""What was sent from this account: to whom, when, with what promise, and what it adds up to.

The ledger is a small file beside the user's memory (`blurfit.contributor.memory`), of facts that
are in agreements anyway: no answers, no numbers that were sent. For tables, and for a person's part
in a plan, an entry is written before the first part leaves; single records that a program sends
without a plan are its own affair.

**What it adds up to.** Somebody who is in all of the collections has what `blurfit.budget` adds:
the releases of Gaussian mechanisms are √Σμ_i²-GDP together, exactly; of others ε and δ are added.
All waves of a plan are one entry of that sum, with the largest μ among them, since each person is
in one wave. Promises about different neighbours do not add up, and are told apart. This is about
what is published; against a database that keeps single submissions their own μ count.
"""

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from blurfit import private_files
from blurfit.agreement.agreement import Agreement
from blurfit.budget import Budget, Expense
from blurfit.schema.titles import title_of
from blurfit.theory.moment_calibration import MomentCalibration
from blurfit.theory.setting import NEIGHBOURS, Neighbours

DELTA = 1e-6
_TABLE = """CREATE TABLE IF NOT EXISTS entries (
    fingerprint TEXT, journal TEXT, entry TEXT NOT NULL, PRIMARY KEY (fingerprint, journal))"""


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
        private_files.create(self.path)
        with closing(sqlite3.connect(self.path, isolation_level=None)) as file:
            file.execute("PRAGMA synchronous = FULL")
            file.execute(_TABLE)
            row = (entry.fingerprint, journal, json.dumps(asdict(entry)))
            file.execute("INSERT OR IGNORE INTO entries VALUES (?, ?, ?)", row)

    def entries(self) -> list[Entry]:
        """All entries, the oldest first."""
        if not self.path.exists():
            return []
        with closing(sqlite3.connect(self.path)) as file:
            rows = file.execute("SELECT entry FROM entries ORDER BY rowid").fetchall()
        return [_read(json.loads(text)) for (text,) in rows]

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


def _read(entry: dict[str, Any]) -> Entry:
    return Entry(**{one.name: entry[one.name] for one in fields(Entry)})
