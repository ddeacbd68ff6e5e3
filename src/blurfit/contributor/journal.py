"""What was blurred and what was received, so that no record is ever blurred twice.

A second blur of the same record would let the database average the noise away, and count the person
twice. So a part of a table is written here before it is sent, and sent from here if need be. When
it has been received its numbers are overwritten, and only the fact is kept: a table that has been
sent is not sent again.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from blurfit.errors import ConflictError, InvalidValueError

_TABLES = """
CREATE TABLE IF NOT EXISTS journal (fingerprint TEXT, digest TEXT, rows INTEGER);
CREATE TABLE IF NOT EXISTS parts (
    start INTEGER PRIMARY KEY, rows INTEGER NOT NULL, message BLOB, acknowledged INTEGER NOT NULL
);
"""


class Journal:
    """The journal of one table under one agreement, in a file."""

    def __init__(self, path: Path, fingerprint: str, digest: str, rows: int) -> None:
        try:
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
        except sqlite3.Error as error:
            if hasattr(self, "_file"):
                self._file.close()
            raise InvalidValueError(
                f"Expected {str(path)!r} to be a journal that can be written, and that no other "
                f"run is using: {error}."
            ) from error
        found = self._file.execute("SELECT * FROM journal").fetchone()
        if found is None:
            self._file.execute("INSERT INTO journal VALUES (?, ?, ?)", (fingerprint, digest, rows))
        elif found != (fingerprint, digest, rows):
            self._file.close()
            raise ConflictError(
                f"Expected {str(path)!r} to be the journal of this table: the table has changed "
                "since it was begun, or it was for another agreement, or for a file (--out) and "
                "not for a service (--to). Rows that were sent cannot be told from new ones; put "
                "new records into a file of their own."
            )
        self._file.execute("COMMIT")

    def blurred(self) -> int:
        """How many rows have been blurred, from the first on."""
        (rows,) = self._file.execute("SELECT coalesce(sum(rows), 0) FROM parts").fetchone()
        return int(rows)

    def pending(self) -> Iterator[tuple[int, bytes]]:
        """What was blurred, and may not have been received."""
        query = "SELECT start FROM parts WHERE NOT acknowledged ORDER BY start"
        for (start,) in self._file.execute(query).fetchall():  # one message at a time in memory
            part = "SELECT message FROM parts WHERE start = ?"
            yield start, *self._file.execute(part, (start,)).fetchone()

    def record(self, start: int, rows: int, message: bytes) -> None:
        """Keep what was blurred, on disk, before it is sent."""
        self._file.execute("INSERT INTO parts VALUES (?, ?, ?, 0)", (start, rows, message))

    def acknowledge(self, start: int) -> None:
        """It has been received: forget the numbers, and keep the fact."""
        query = "UPDATE parts SET acknowledged = 1, message = NULL WHERE start = ?"
        self._file.execute(query, (start,))

    def acknowledge_all(self) -> None:
        """The same for all parts at once."""
        self._file.execute("UPDATE parts SET acknowledged = 1, message = NULL")

    def finished(self) -> bool:
        """Whether everything that was blurred has been received."""
        query = "SELECT count(*) FROM parts WHERE NOT acknowledged"
        return self.blurred() > 0 and self._file.execute(query).fetchone() == (0,)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()
