"""Which tables somebody has blurred before, whatever they are called now.

A journal knows its own table. It does not know a copy of the table beside another journal, and a
second blur of the same people would let their noise be averaged away. So each user has a small file
of the tables that were blurred under her account: for each agreement, or plan of waves, a keyed
hash of all rows,

    Σ over rows of BLAKE2b(key, encoded row)  mod 2²⁵⁶,

which is the same in any order of the rows, in CSV or Parquet, and says nothing without the key
(32 random bytes, readable by their owner alone). Single rows are not remembered: two people may
give the same answers, and a file of hashes of single rows could be searched for them.

**What it does not see:** a table with a row more or less is another table to it, and so is a copy
on another machine or under another account. There it is the contributor's part not to blur anyone
twice: put new records into a file of their own.
"""

import hashlib
import secrets
import sqlite3
from contextlib import suppress
from pathlib import Path

import numpy as np

from blurfit import private_files
from blurfit.arrays import FloatArray
from blurfit.errors import ConflictError, InvalidValueError

_TABLE = """CREATE TABLE IF NOT EXISTS tables (
    fingerprint TEXT, rows TEXT, journal TEXT, PRIMARY KEY (fingerprint, rows))"""


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
        path = self.folder / "tables.db"
        private_files.create(path)
        with sqlite3.connect(path, isolation_level=None) as file:
            file.execute("PRAGMA synchronous = FULL")
            file.execute(_TABLE)
            names = (fingerprint, f"{rows:064x}")
            file.execute("INSERT OR IGNORE INTO tables VALUES (?, ?, ?)", (*names, journal))
            query = "SELECT journal FROM tables WHERE fingerprint = ? AND rows = ?"
            (before,) = file.execute(query, names).fetchone()
        file.close()
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
            private_files.write(path, secrets.token_bytes(32), only_new=True)
    key = path.read_bytes()
    if len(key) != 32:
        raise InvalidValueError(
            f"Expected {str(path)!r} to hold 32 bytes, and it holds {len(key)}: it was cut off or "
            "edited. Remove it, and the tables.db beside it."
        )
    return key
