"""Which files this account has learned from, wherever they are now and whatever they are called.

A receipt stays in its folder when a file is moved out of it. So each account has one file more, in
BLURFIT_HOME or ~/.blurfit, that knows every file of submissions by its size and digest, under each
agreement, with the receipt of the release that it is in. Together with other files it is refused
then, from any folder or URL; with the same ones the release is given again, so that noise of the
database is not drawn a second time either.

**What it does not see:** other accounts and machines, and the same rows in a file that was written
anew.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from blurfit import private_files
from blurfit.errors import InvalidValueError
from blurfit.files.sources import Identity

_TABLES = """
CREATE TABLE IF NOT EXISTS receipts (key INTEGER PRIMARY KEY, receipt BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS files (
    fingerprint TEXT, size INTEGER, digest TEXT, receipt INTEGER NOT NULL,
    PRIMARY KEY (fingerprint, size, digest)
);
"""


@dataclass(frozen=True)
class Remembered:
    """What the account remembers of some files under an agreement."""

    fingerprint: str
    files: tuple[Identity, ...]

    def __str__(self) -> str:
        return str(_path())

    def receipts(self) -> list[bytes]:
        """Every receipt that some of the files are in."""
        with _opened() as file:
            return [text for _, text in self._found(file)]

    def create(self, receipt: bytes) -> bool:
        """Remember a receipt of all of the files, unless there is one of some of them."""
        with _opened() as file:
            if self._found(file):
                return False
            self._insert(file, receipt)
            return True

    def replace(self, receipt: bytes) -> None:
        """Remember this receipt of the files in place of what was remembered."""
        with _opened() as file:
            self._delete(file)
            self._insert(file, receipt)

    def remove(self, claim: bytes) -> None:
        """Forget a claim that was created for the files, because nothing was released; what
        somebody else has put in its place stays.
        """
        with _opened() as file:
            self._delete(file, claim)

    def _found(self, file: sqlite3.Connection) -> list[tuple[int, bytes]]:
        query = (
            "SELECT key, receipts.receipt FROM files JOIN receipts ON key = files.receipt "
            "WHERE fingerprint = ? AND size = ? AND digest = ?"
        )
        rows = (file.execute(query, names).fetchone() for names in self._names())
        return list(dict.fromkeys(row for row in rows if row is not None))

    def _insert(self, file: sqlite3.Connection, receipt: bytes) -> None:
        key = file.execute("INSERT INTO receipts (receipt) VALUES (?)", (receipt,)).lastrowid
        rows = [(*names, key) for names in self._names()]
        file.executemany("INSERT OR IGNORE INTO files VALUES (?, ?, ?, ?)", rows)

    def _delete(self, file: sqlite3.Connection, only: bytes | None = None) -> None:
        for key in [key for key, text in self._found(file) if only in (None, text)]:
            file.execute("DELETE FROM files WHERE receipt = ?", (key,))
            file.execute("DELETE FROM receipts WHERE key = ?", (key,))

    def _names(self) -> Sequence[tuple[str, int, str]]:
        return [(self.fingerprint, one.size, one.digest) for one in self.files]


def _path() -> Path:
    return private_files.home() / "releases.db"


@contextmanager
def _opened() -> Iterator[sqlite3.Connection]:
    """The account's file, within one transaction, for which other processes wait."""
    path = _path()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        private_files.create(path)
        with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as file:
            file.execute("PRAGMA synchronous = FULL")
            file.execute("BEGIN IMMEDIATE")
            for statement in _TABLES.split(";"):
                file.execute(statement)
            yield file
            file.execute("COMMIT")  # what is closed without is rolled back
    except (OSError, sqlite3.Error) as error:
        raise InvalidValueError(
            f"Expected {str(path)!r} to be a file that can be written, where blurfit remembers "
            f"what was released from which files: {error}. Set {private_files.HOME} to a folder "
            "of yours, and keep it."
        ) from error
