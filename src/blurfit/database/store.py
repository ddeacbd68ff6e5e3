"""An embedded store: submissions in one SQLite file, each counted once.

A submission is stored under its random name. The same name with the same numbers is accepted again
and counted once, so a sender who is not sure may simply send again; with other numbers it is a
conflict. What was accepted is on disk (write-ahead log, full synchronisation).
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.submission import Submission, Submissions
from blurfit.database.learner import learn
from blurfit.database.statistics import Statistics
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.model.published import PublishedModel

Row = tuple[str, bytes, bytes, bytes]

_ROWS_AT_ONCE = 4096
_TABLES = """
CREATE TABLE IF NOT EXISTS models (
    fingerprint TEXT PRIMARY KEY,
    model TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS submissions (
    fingerprint TEXT NOT NULL,
    identifier BLOB NOT NULL,
    quadratic BLOB NOT NULL,
    linear BLOB NOT NULL,
    PRIMARY KEY (fingerprint, identifier)
) WITHOUT ROWID;
"""


class Store:
    """Submissions of any number of agreements in one file (or in memory, with ":memory:")."""

    def __init__(self, path: str | Path = ":memory:") -> None:
        try:
            self._connection = sqlite3.connect(path, isolation_level=None)
        except sqlite3.OperationalError as error:
            raise InvalidValueError(
                f"Expected path={str(path)!r} to be a file that can be opened: {error}. Does its "
                "folder exist?"
            ) from error
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.executescript(_TABLES)

    def add(self, agreement: Agreement, received: Submission | Submissions) -> int:
        """Store what was received, all of it or nothing; how many were new is returned."""
        if not isinstance(received, Submission | Submissions):
            raise InvalidValueError(
                f"Expected a Submission or Submissions, and got {type(received).__name__}: "
                "records are blurred by their contributors, with perturb."
            )
        batch = received if isinstance(received, Submissions) else Submissions.gather([received])
        _refuse_unless_under(agreement, batch)
        rows = [
            (batch.fingerprint, name.tobytes(), quadratic.tobytes(), linear.tobytes())
            for name, quadratic, linear in zip(
                batch.identifiers, batch.quadratic, batch.linear, strict=True
            )
        ]
        with self._transaction() as cursor:
            before = self.count(agreement)
            if self._published(cursor, agreement) is not None:
                if all(self._stored(cursor, row) == row[2:] for row in rows):
                    return 0  # sent again by somebody who was not sure
                raise InfeasibleError(
                    "The collection is closed: its model has been published, and a later "
                    "submission could be told from what it would change."
                )
            cursor.executemany("INSERT OR IGNORE INTO submissions VALUES (?, ?, ?, ?)", rows)
            new = self.count(agreement) - before
            if new < len(rows):  # some names were there: they must have meant the same
                for row in rows:
                    self._refuse_conflict(cursor, row)
        return new

    def count(self, agreement: Agreement) -> int:
        """How many different submissions there are under the agreement."""
        (count,) = self._connection.execute(
            "SELECT count(*) FROM submissions WHERE fingerprint = ?", (agreement.fingerprint,)
        ).fetchone()
        return int(count)

    def statistics(self, agreement: Agreement) -> Statistics:
        """N, A and c of everything that was stored under the agreement, each counted once."""
        total = Statistics.empty(agreement.dimension)
        for quadratic, linear in self._chunks(agreement):
            if agreement.mechanism == "moment":
                total = total + Statistics.of_moments(quadratic, linear)
            else:
                total = total + Statistics.of_records(quadratic, linear)
        return total.under(agreement.fingerprint)

    def publish(self, agreement: Agreement) -> PublishedModel:
        """Learn the collection's model, once: it closes the collection, and is the same for ever.

        A model from a collection that goes on growing would give away whoever came in between, so
        nothing is learned before it is closed, and nothing is accepted afterwards.
        """
        with self._transaction() as cursor:
            row = self._published(cursor, agreement)
            if row is None:
                row = learn(agreement, self.statistics(agreement)).to_json()
                cursor.execute("INSERT INTO models VALUES (?, ?)", (agreement.fingerprint, row))
        return PublishedModel.from_json(row)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Cursor]:
        """All or nothing: committed at the end of the block, rolled back if it fails."""
        cursor = self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield cursor
        except BaseException:
            cursor.execute("ROLLBACK")
            raise
        cursor.execute("COMMIT")

    def _published(self, cursor: sqlite3.Cursor, agreement: Agreement) -> str | None:
        query = "SELECT model FROM models WHERE fingerprint = ?"
        row = cursor.execute(query, (agreement.fingerprint,)).fetchone()
        return None if row is None else str(row[0])

    def _chunks(self, agreement: Agreement) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        query = "SELECT quadratic, linear FROM submissions WHERE fingerprint = ?"
        with closing(self._connection.execute(query, (agreement.fingerprint,))) as cursor:
            while rows := cursor.fetchmany(_ROWS_AT_ONCE):
                yield _array(row[0] for row in rows), _array(row[1] for row in rows)

    def _stored(self, cursor: sqlite3.Cursor, row: Row) -> tuple[bytes, bytes] | None:
        query = "SELECT quadratic, linear FROM submissions WHERE fingerprint = ? AND identifier = ?"
        found: tuple[bytes, bytes] | None = cursor.execute(query, row[:2]).fetchone()
        return found

    def _refuse_conflict(self, cursor: sqlite3.Cursor, row: Row) -> None:
        if self._stored(cursor, row) != row[2:]:
            raise InvalidValueError(
                f"Expected identifier={row[1].hex()!r} to carry the numbers that it carried "
                "before: a name is for one submission. Blur the record again only if it was "
                "never accepted."
            )


def _refuse_unless_under(agreement: Agreement, batch: Submissions) -> None:
    if batch.fingerprint != agreement.fingerprint:
        raise InvalidValueError(
            f"Expected fingerprint={batch.fingerprint} to be {agreement.fingerprint}: the "
            "submission was made for another agreement."
        )
    if (batch.mechanism, batch.dimension) != (agreement.mechanism, agreement.dimension):
        raise InvalidValueError(
            f"Expected {agreement.mechanism} submissions of dimension {agreement.dimension}, and "
            f"got {batch.mechanism} of dimension {batch.dimension}."
        )


def _array(blobs: Iterable[bytes]) -> np.ndarray:
    parts = list(blobs)
    return np.frombuffer(b"".join(parts)).reshape(len(parts), -1)
