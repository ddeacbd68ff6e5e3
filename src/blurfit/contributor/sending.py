"""Send a table through a journal to where it is wanted: a service, two services, or a file.

    rows ─ exact numbers ─ blur ─► messages ─► journal (on disk) ─► destination ─► forgotten

All of the table is looked at before any of it is blurred, so that a wrong row is found while
nothing has been sent. Then each part is blurred once, written to the journal as the bytes that will
travel, handed over, and forgotten when it has been received. A run that was stopped is run again:
it hands over what the journal holds, and goes on with the first row that was not blurred.

Under a plan of waves a random draw decides which wave each row is in: that of its invitation, or
where anyone may take part one of its own, which the journal remembers
(`blurfit.agreement.mechanisms`). Rows of a later wave wait for another run; rows of a wave that is
over are left out, and nothing of them leaves. What the journal holds goes where it was blurred for;
if that wave has closed, those rows are left out too.

A **file** of submissions is complete or not there at all: parts wait in the journal until all of
the table is blurred. The table is not blurred again, into another file or for a service.

**An account** remembers which tables it has blurred, by a keyed hash, and what it sent to whom, in
one SQLite file for its owner alone, in BLURFIT_HOME or ~/.blurfit. It does not see a table with a
row more or less, nor a copy on another machine or under another account: there it is the
contributor's duty not to blur anyone twice. Proofs, formulas and limits are in
`docs/theory/blurred-once.md`. Tested by `server/tests/contributor/test_sending.py`.
"""

import hashlib
import json
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from blurfit import errors, private_files, randomness
from blurfit.agreement.agreement import Agreement
from blurfit.agreement.mechanisms import require_group
from blurfit.budget import Budget, Expense
from blurfit.contributor.blur import Portion, codes_of_people, messages_of, named, require_whose
from blurfit.contributor.journal import Journal, Signatures
from blurfit.data import ByteArray, FloatArray, IntArray
from blurfit.messages.files import SUFFIXES, Writer, open_submissions, rows_at_once
from blurfit.messages.submissions import Submissions
from blurfit.protocol import hashed
from blurfit.randomness import new_groups
from blurfit.schema.schema import title_of
from blurfit.schema.table_files import UTF8, TableFile
from blurfit.theory.moments import NEIGHBOURS, Neighbours

ROWS_AT_ONCE, BYTES_AT_ONCE = 1000, 16 * 2**20
INVITED_AT_ONCE = 100  # invitations travel in a header, which must not be long
Invitations = Sequence[Sequence[str]]  # for each database, one for each row or none

_PEOPLE = "\0people"  # beside the columns of a part: whose rows they are
_TOOK_PART = (
    "These rows took part in {where}, and nobody takes part twice: they are in its sums, and "
    "nothing was sent now. Put other people's records into a file of their own."
)
_LATE = (
    "{} rows were blurred for an earlier wave of this plan, which closed before they arrived. They "
    "are left out: a second blur of what may have been seen would break the promise. "
)
_MISSED = (
    "{} rows are in a group that was complete before they came. They are left out: nothing of them "
    "was sent, and nobody can change groups. "
)


class Destination(ABC):
    """Where the blurred parts of a table go."""

    kind: str  # "service" or "file": a table that went to the one does not go to the other
    where: str  # in words, for the ledger
    rows_at_once: int  # for the next part, at most
    services: tuple[str, ...] = ()  # addresses, for the receipt
    moves_on = False  # from wave to wave of a plan, as they open
    invitations: Invitations = ()
    # Sends what says nothing of the records, the seeds, before the rest; None if all of it does.
    announce: Callable[[Portion], object] | None = None

    @abstractmethod
    def agreement(self) -> Agreement:
        """Return what the next part is to be blurred under: asked before each."""

    @abstractmethod
    def send(self, part: Portion) -> Signatures | None:
        """Hand a part over; what those signed who have it for good, None if it is not received."""

    def finish(self, journal: Journal, rows: int) -> None:  # noqa: B027
        """Do what remains when all of the table is in the journal or received."""


def send_table(
    agreement: Agreement,
    table: str | Path,
    destination: Destination,
    *,
    journal: str | Path | None = None,
    person: str | None = None,
    encoding: str = UTF8,
    other_people: bool = False,
    receipt: str | Path | None = None,
    progress: errors.Progress = errors.silent,
    waiting: Callable[[Mapping[int, int]], object] = errors.silent,
) -> int:
    """Blur every row of a CSV or Parquet file and hand it over; how many rows is returned.

    Under a plan, rows whose wave comes later are not among them: run it again then.

    Args:
        agreement: what everyone agreed on, verified by whoever made the destination.
        table: a .csv, .xlsx or .parquet file with a column for each of the schema's.
        destination: where the parts go.
        journal: where to keep track; by default beside the table.
        person: the column that says whose row it is, under an agreement with diaries: each person
            is sent once, with all their rows. The table is read as a whole.
        encoding: of a CSV file, by Python's name, such as "cp1252".
        other_people: the rows are those of other people than a table's that was blurred before,
            though all of their answers are the same.
        receipt: where to write what proves that the rows were stored, and lets their sender
            withdraw them (`blurfit.contributor.journal`); by default nothing of that is kept.
        progress: is told how many rows of how many have been handed over.
        waiting: is told how many rows wait for which wave of a plan.
    """
    file = TableFile(Path(table), agreement.schema, person=person, encoding=encoding)
    account = Account()
    rows = known = 0
    for x, y in file.encoded():
        rows, known = rows + len(x), (known + account.hashed(x, y)) % 2**256
    source: TableFile | _People = file
    if person is not None:
        if not agreement.diaries:
            raise errors.InvalidValueError(
                f"Expected no person={person!r}: the agreement takes one row of each person. "
                "Agree with diaries."
            )
        source = _People.of(file, person)
        rows = source.count
    elif rows > 1:
        require_whose(agreement)
    names = [f"of {one.name} " for one in agreement.databases] or [""]
    each = zip(destination.invitations, names, strict=False)  # a file needs none
    destination.invitations = [invitations_for(rows, some, name) for some, name in each]
    if agreement.wave and any(destination.invitations) and not destination.moves_on:
        groups = groups_of(agreement, destination.invitations, rows)
        require_group(agreement.wave, groups.tolist())
    place = Path(journal) if journal else default_journal(Path(table), agreement)
    with Journal(place, agreement.once, destination.kind, file.digest(), rows) as kept:
        if not other_people:
            try:
                account.claim(agreement.once, known, kept.identity)
            except errors.ConflictError:
                if kept.is_new:
                    kept.discard()
                raise
        if destination.kind == "file" and kept.agreements() - {agreement.fingerprint}:
            raise errors.ConflictError(
                "These rows were blurred for a file of another wave of this plan, and nobody takes "
                "part twice: go on with that wave's agreement, or copy the file."
            )
        if receipt is not None:
            kept.keep_secret()
        account.note(Entry.of(agreement, rows, destination.where), kept.identity)
        groups = np.zeros(rows, dtype=np.uint8)  # there is no lot
        if destination.moves_on:
            given = destination.invitations
            groups = kept.groups(lambda: groups_of(destination.agreement(), given, rows))
            order = np.argsort(groups, kind="stable")
            destination.invitations = [[some[row] for row in order if some] for some in given]
        late, sent, missed = 0, 0, -kept.left_out()
        pinned = None if destination.moves_on else agreement.fingerprint
        for part in _parts(source, destination, kept, groups):
            sent += part.rows
            outcome = kept.hand_over(part, destination.send, destination.announce, pinned)
            if outcome == "taken back":
                continue
            late += part.rows if outcome == "late" else 0
            progress(part.stop, rows)
        destination.finish(kept, rows)
        if receipt is not None:
            found = kept.receipt(destination.services)
            if found.parts:  # else all came too late, and nobody has anything
                found.save(receipt)
            kept.forget_secret()
        missed, done = missed + kept.left_out(), kept.blurred()
        if done < rows:
            later = zip(*np.unique(np.sort(groups)[done:], return_counts=True), strict=True)
            waiting({int(group): int(count) for group, count in later})
        elif destination.moves_on and not sent and not missed:
            raise errors.ConflictError(_TOOK_PART.format(where="this plan"))
        words = f"{_LATE.format(late) if late else ''}{_MISSED.format(missed) if missed else ''}"
        if words:
            raise errors.WaveClosedError(f"{words}All other rows have been sent, or wait.")
        if done and not destination.moves_on and agreement.fingerprint not in kept.agreements():
            raise errors.ConflictError(_TOOK_PART.format(where="an earlier wave of this plan"))
        progress(done, rows)
        return done - kept.left_out()


def _parts(
    file: "TableFile | _People", destination: Destination, kept: Journal, groups: ByteArray
) -> Iterator[Portion]:
    """Yield what was blurred before but perhaps not received, and then the rest, blurred now: all
    rows whose wave does not come later.
    """
    yield from kept.pending()
    start = kept.blurred()
    for group, columns, those in _chunks(file, destination.rows_at_once, groups, start):
        begun, count = start, 1
        while start < begun + count:  # a wave may want less than all of it
            agreement = destination.agreement()
            if group and agreement.wave and agreement.wave.number != group:
                if agreement.wave.number < group:
                    return
                kept.leave_out(start, len(those) - (start - begun))
                start = begun + len(those)
                break
            whose = columns.get(_PEOPLE)
            given = {name: one for name, one in columns.items() if name != _PEOPLE}
            exact = agreement.exact(given, whose)[those]
            count, some = len(exact), exact[start - begun :][: destination.rows_at_once]
            names = None if kept.secret is None else named(kept.secret, start, len(some))
            messages = messages_of(agreement, some, names)
            part = Portion(start, len(some), messages, agreement.fingerprint)
            kept.record(part, has_left=destination.announce is None)
            yield part
            start = kept.blurred()  # unless it was taken back


def _chunks(
    file: "TableFile | _People", most: int, groups: ByteArray, start: int
) -> Iterator[tuple[int, dict[str, Any], IntArray]]:
    """Yield the rows from place `start` of their order on: which group, some columns, and which of
    their rows are meant. The order is group by group, and within each that of the file.
    """
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        left, start = members[min(start, len(members)) :], max(0, start - len(members))
        if not len(left):
            continue
        at = int(left[0])
        size = max(most, ROWS_AT_ONCE) if group else most  # many may be of other groups
        for columns in file.chunks(size, skip=at):
            those = left[(left >= at) & (left < at + size)] - at
            if len(those):
                yield int(group), columns, those
            at += size


@dataclass(frozen=True, eq=False)
class _People:
    """A table in which people have several rows, in parts of so many people."""

    columns: dict[str, list[Any]]
    codes: IntArray
    count: int

    @classmethod
    def of(cls, file: TableFile, person: str) -> "_People":
        columns: dict[str, list[Any]] = {name: [] for name in file.names}
        for part in file.chunks():
            for name, values in part.items():
                columns[name] += values.tolist() if hasattr(values, "tolist") else list(values)
        codes = codes_of_people(columns[person])
        return cls(columns, codes, int(codes.max()) + 1)

    def chunks(self, people: int, *, skip: int = 0) -> Iterator[dict[str, Any]]:
        order = np.argsort(self.codes, kind="stable")
        starts = np.searchsorted(self.codes[order], np.arange(self.count + 1))
        for first in range(skip, self.count, people):
            last = min(first + people, self.count)
            rows = order[starts[first] : starts[last]]
            found: dict[str, Any] = {
                name: [values[row] for row in rows] for name, values in self.columns.items()
            }
            yield found | {_PEOPLE: self.codes[rows] - first}


def groups_of(agreement: Agreement, invitations: Invitations, rows: int) -> ByteArray:
    """Return which wave of a plan each row is in: by the lot of its invitation, or by its own coin
    among the wave that collects, which has this agreement, and those after it.
    """
    wave = agreement.wave
    assert wave is not None
    if agreement.admission == "anyone":
        return new_groups(wave.lot, rows, wave.number)
    if not any(invitations):
        raise errors.NotInvitedError(
            "Expected an invitation for each row: the plan is for people who are invited. Nothing "
            "was blurred or sent. Ask whoever invited you."
        )
    each = [[wave.lot.group_of(hashed(one)) for one in some[:rows]] for some in invitations]
    if any(some != each[0] for some in each):
        raise errors.InvalidValueError(
            "Expected the two invitations of each row to be for the same group: join them within "
            "each group, as `blurfit invite --both` and the administration page do."
        )
    return np.array(each[0], dtype=np.uint8)


def default_journal(table: Path, agreement: Agreement) -> Path:
    """Return where a table's journal is kept: beside it, named after what was agreed."""
    return table.with_name(f"{table.name}.{agreement.once[:12]}.journal")


def invitations_for(rows: int, invitations: Sequence[str], whose: str = "") -> list[str]:
    """Return different invitations, at least as many as there are rows, or none at all."""
    different = list(dict.fromkeys(invitations))
    if different and len(different) < rows:
        raise errors.InvalidValueError(
            f"Expected an invitation {whose}for each of {rows} rows, and got {len(different)} "
            "different ones. `blurfit invite` makes more."
        )
    return different


# ---- a file


def blur_table(agreement: Agreement, table: str | Path, out: str | Path, **options: Any) -> int:
    """Blur every row of a CSV or Parquet file into a new .parquet or .arrow file of submissions;
    how many is returned. The agreement is verified first; options are those of `send_table`.
    """
    agreement.verify()
    path = Path(out)
    if path.suffix.lower() not in SUFFIXES:
        raise errors.InvalidValueError(
            f"Expected --out {str(path)!r} to end in {' or '.join(SUFFIXES)}."
        )
    if path.exists() and path.samefile(table):
        raise errors.InvalidValueError(
            f"Expected --out {str(path)!r} to be another file than the table."
        )
    return send_table(agreement, table, _File(agreement, path), **options)


class _File(Destination):
    """A file of submissions, written when all of them are in the journal."""

    kind = "file"

    def __init__(self, agreement: Agreement, path: Path) -> None:
        self._agreement, self._path = agreement, path
        self.rows_at_once = rows_at_once(agreement.layout)
        self.where = f"the file {path.name}"

    def agreement(self) -> Agreement:
        return self._agreement

    def send(self, part: Portion) -> Signatures | None:  # noqa: ARG002
        return None

    def finish(self, journal: Journal, rows: int) -> None:
        if not journal.finished():
            with Writer(self._path, self._agreement.layout, held=True) as writer:
                for part in journal.pending():
                    writer.add(Submissions.from_bytes(*part.messages))
            journal.acknowledge()
            return
        if self._path.exists():
            with open_submissions(self._path, self._agreement.layout) as written:
                if written.all_rows() == rows:
                    return
        raise errors.ConflictError(
            f"These rows have been blurred and written to a file already, as {str(journal.path)!r} "
            "says: a second blur of the same people would let their noise be averaged. Copy the "
            "file that was written then."
        )


# ---- what an account remembers

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
    mu: float
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
            raise errors.InvalidValueError(
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
            raise errors.ConflictError(
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
    """Return (ε, δ), for each neighbouring relation, of everything that is published of entries."""
    largest: dict[Neighbours, dict[str, float]] = {relation: {} for relation in NEIGHBOURS}
    for one in entries:
        of_relation = largest[one.neighbours]
        of_relation[one.once] = max(one.mu, of_relation.get(one.once, 0.0))
    found: dict[Neighbours, Expense] = {}
    for relation, each in largest.items():
        if each:
            budget = Budget(epsilon=1.0, delta=delta)
            budget.expenses.extend(Expense(once, mu=mu) for once, mu in each.items())
            found[relation] = budget.spent()
    return found
