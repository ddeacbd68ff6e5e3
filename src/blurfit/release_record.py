"""The one record of what was released, from a store or from files: each set has one release.

A second release of almost the same people would give away whom the two differ in
(`blurfit.model.release`). So a release is recorded, on disk, before anyone sees it, under its
agreement and its sources:

| source | is known by | recorded by |
| --- | --- | --- |
| a file of submissions | size and digest, wherever it is | `blurfit.files.learn` |
| a store | a random identity, which its copies and backups have too | `blurfit_server.store` |

The same sources get the recorded release again, to the last byte; if only some of them are the
same, the release is refused. A store looks whether what was recorded is of its own people, as a
copy of it has others.

The record lies in what the account remembers, `releases.db` in BLURFIT_HOME or ~/.blurfit. That of
files also lies in every folder that holds one of them, which another account may name, and where
the caller wants it. Each step is atomic:

1. every place but the first folder gets a claim: "a model of these files is recorded there";
2. the first folder gets the receipt, if there is none: then the model is released;
3. the claims are replaced by copies of that receipt, as is a receipt that was lost.

Only one of several processes can create a receipt, on network file systems too; the others return
its release. Killed before step 2 nothing was released; killed afterwards, the next run completes
step 3. Two sets that share a place meet at its claim or receipt, and the second is refused.

Conditions and limits: `docs/theory/one-release.md`. Tests: `tests/test_release_record.py`,
`server/tests/files/test_one_set.py`, `server/tests/files/test_any_order.py`.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

import msgspec

from blurfit import private_files
from blurfit.data import read_json
from blurfit.errors import BlurfitError, ConflictError, InvalidValueError, StorageError
from blurfit.model.release import Release

FORMAT, VERSION = "blurfit-release", 1
_TABLES = """
CREATE TABLE IF NOT EXISTS receipts (key INTEGER PRIMARY KEY, receipt BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS sources (
    fingerprint TEXT, size INTEGER, digest TEXT, receipt INTEGER NOT NULL,
    PRIMARY KEY (fingerprint, size, digest)
);
CREATE TABLE IF NOT EXISTS stores (identity BLOB PRIMARY KEY, place BLOB NOT NULL);
"""


@dataclass(frozen=True, order=True)
class Identity:
    """A source: a file by its size and `digest`, which `blurfit.files.scan.identify` computes; or a
    store, of size 0, by its random identity. Its name may change.
    """

    name: str
    size: int
    digest: str


class ReleaseReceipt(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A release and its sources: the texts of the model and of its moments, or why there will never
    be any.

    A claim has neither: it says in which folder to look (`decided_in`).
    """

    format: str
    version: int
    fingerprint: str
    files: list[tuple[str, int, str]]
    decided_in: str
    model: str | None = None
    moments: str | None = None
    refusal: str | None = None

    @property
    def is_claim(self) -> bool:
        """Whether this file says of no release yet."""
        return self.model is None and self.moments is None and self.refusal is None

    def release(self) -> Release:
        """Return the recorded release."""
        return Release(self.model, self.moments, self.refusal)

    def text(self) -> bytes:
        """Return the receipt as it is written."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


@dataclass(frozen=True)
class _Beside:
    """A receipt in a file that everyone may read, as what it holds is public."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def receipts(self) -> list[bytes]:
        """Return the receipt, if there is one."""
        try:
            return [self.path.read_bytes()]
        except FileNotFoundError:
            return []

    def swap(self, old: bytes | None, new: bytes | None) -> bool:
        """Replace `old` by `new`, and report whether that was done; None stands for no receipt."""
        if old is not None and self.receipts() != [old]:
            return False
        if new is None:
            self.path.unlink(missing_ok=True)
            return True
        try:
            with private_files.replacing(self.path, only_new=old is None) as part:
                part.write_bytes(new)
                part.chmod(0o644)
        except FileExistsError:
            return False
        except OSError as error:
            raise InvalidValueError(
                f"Expected to be able to write {str(self.path)!r}, where it is recorded what was "
                f"released: {error.strerror}. Make the folder writable, or let its owner learn "
                "from the files."
            ) from error
        return True


@dataclass(frozen=True)
class Remembered:
    """What the account remembers of some sources under an agreement."""

    fingerprint: str
    sources: tuple[Identity, ...]

    def __str__(self) -> str:
        return str(path())

    def receipts(self) -> list[bytes]:
        """Return every receipt that some of the sources are in."""
        with _opened() as file:
            return list(self._found(file).values())

    def swap(self, old: bytes | None, new: bytes | None) -> bool:
        """Replace `old` by `new`, and report whether that was done; None stands for no receipt."""
        with _opened() as file:
            found = self._found(file)
            if list(found.values()) != ([] if old is None else [old]):
                return False
            for key in found:
                file.execute("DELETE FROM sources WHERE receipt = ?", (key,))
                file.execute("DELETE FROM receipts WHERE key = ?", (key,))
            if new is not None:
                row = file.execute("INSERT INTO receipts (receipt) VALUES (?)", (new,)).lastrowid
                rows = [(self.fingerprint, one.size, one.digest, row) for one in self.sources]
                file.executemany("INSERT OR IGNORE INTO sources VALUES (?, ?, ?, ?)", rows)
            return True

    def _found(self, file: sqlite3.Connection) -> dict[int, bytes]:
        query = (
            "SELECT key, receipts.receipt FROM sources JOIN receipts ON key = sources.receipt "
            "WHERE fingerprint = ? AND size = ? AND digest = ?"
        )
        found: dict[int, bytes] = {}
        for one in self.sources:
            found |= dict(file.execute(query, (self.fingerprint, one.size, one.digest)))
        return found


def path() -> Path:
    """Return the file with what the account remembers."""
    return private_files.home() / "releases.db"


@contextmanager
def _opened() -> Iterator[sqlite3.Connection]:
    """Yield the account's file, within one transaction, for which other processes wait."""
    here = path()
    try:
        here.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        private_files.create(here)
        with closing(sqlite3.connect(here, isolation_level=None, timeout=60)) as file:
            file.execute("PRAGMA synchronous = FULL")
            file.execute("BEGIN IMMEDIATE")
            for statement in _TABLES.split(";"):
                file.execute(statement)
            yield file
            file.execute("COMMIT")  # what is closed without is rolled back
    except (OSError, sqlite3.Error) as error:
        raise StorageError(
            f"Expected {str(here)!r} to be a file that can be written, where blurfit remembers "
            f"what was released: {error}. Nothing is released without. Set {private_files.HOME} to "
            "a folder of yours, and keep it."
        ) from error


def require_writable() -> None:
    """Refuse to begin what could not be recorded in the end."""
    with _opened():
        pass


def place_of(identity: bytes) -> Path | None:
    """Return where a store went on that was moved, or restored in place of a lost one."""
    with _opened() as file:
        query = "SELECT place FROM stores WHERE identity = ?"
        row = file.execute(query, (identity,)).fetchone()
    return None if row is None else Path(os.fsdecode(row[0]))


def remember_place(identity: bytes, place: Path) -> None:
    """Remember where a store goes on."""
    with _opened() as file:
        file.execute("REPLACE INTO stores VALUES (?, ?)", (identity, os.fsencode(place)))


def receipt_name(fingerprint: str) -> str:
    """Name the file of a release in a folder."""
    return f"{fingerprint[:12]}.release.json"


@dataclass(frozen=True)
class ReleaseRecord:
    """The places where the release of some sources under an agreement is recorded."""

    fingerprint: str
    sources: tuple[Identity, ...]
    places: tuple[Path, ...] = ()

    @classmethod
    def of_store(cls, fingerprint: str, identity: bytes) -> "ReleaseRecord":
        """Return the record of a collection in a store."""
        return cls(fingerprint, (Identity("a store", 0, identity.hex()),))

    @classmethod
    def of_files(
        cls,
        fingerprint: str,
        places: Sequence[str],
        files: Sequence[Identity],
        receipt: Path | None = None,
    ) -> "ReleaseRecord":
        """Choose a place in every folder here that holds some of the files, and at `receipt`
        too: a file, or a folder in which each agreement has its own.
        """
        here = [Path(place).resolve() for place in places if "://" not in place]
        far = [place for place in places if "://" in place]
        if far and receipt is None:
            raise InvalidValueError(
                f"Expected a place for the receipt, because {far[0]!r} is no file of this machine: "
                "pass --receipt FILE, and use the same one whenever you learn from any of these "
                "files."
            )
        name = receipt_name(fingerprint)
        if receipt is not None and receipt.is_dir():
            receipt = receipt / name
        wanted = sorted({file.parent / name for file in here})
        if receipt is not None and receipt.resolve() not in wanted:
            wanted.append(receipt.resolve())
        return cls(fingerprint, tuple(sorted(files)), tuple(wanted))

    def find(self) -> Release | None:
        """Return what was released from these sources; None if nothing was yet.

        Other sources at one of the places are an error.
        """
        known = [one for one in map(self._read, self._all()) if one is not None]
        decided = [one for one in known if not one.is_claim]
        if not decided:
            return None
        self._copy(decided[0])
        return decided[0].release()

    def record(self, release: Release) -> Release:
        """Record a release, unless another one was recorded before: then that is returned."""
        first, *others = self._all()
        sources = [astuple(one) for one in self.sources]
        claim = ReleaseReceipt(FORMAT, VERSION, self.fingerprint, sources, str(first))
        complete = msgspec.structs.replace(claim, **asdict(release))
        claimed = []
        try:
            for place in others:
                if place.swap(None, claim.text()):
                    claimed.append(place)
                elif (found := self._read(place)) is not None and not found.is_claim:
                    complete = found  # of somebody who named other folders, and was quicker
            if not first.swap(None, complete.text()):
                complete = self._read(first) or complete
        except BlurfitError:
            for place in claimed:
                place.swap(claim.text(), None)
            raise
        self._copy(complete)
        return complete.release()

    def _all(self) -> list[_Beside | Remembered]:
        """Everywhere; the first one decides."""
        return [*map(_Beside, self.places), Remembered(self.fingerprint, self.sources)]

    def _copy(self, decided: ReleaseReceipt) -> None:
        for place in self._all():
            found = self._read(place)
            if found is None or found.is_claim:
                place.swap(None if found is None else found.text(), decided.text())

    def _read(self, place: _Beside | Remembered) -> ReleaseReceipt | None:
        found = [self._checked(place, text) for text in place.receipts()]
        return found[0] if found else None

    def _checked(self, place: _Beside | Remembered, text: bytes) -> ReleaseReceipt:
        try:
            found: ReleaseReceipt = read_json(text, ReleaseReceipt)
        except ValueError as error:
            raise InvalidValueError(
                f"Expected {str(place)!r} to be a receipt that blurfit wrote: {error}. Nothing is "
                "learned while it cannot be read; restore it from a backup."
            ) from error
        if (found.format, found.version, found.fingerprint) != (FORMAT, VERSION, self.fingerprint):
            raise ConflictError(
                f"Expected {str(place)!r} to be a receipt of version {VERSION} for the agreement "
                f"{self.fingerprint}, and it is of version {found.version} for {found.fingerprint}."
            )
        known = sorted((size, digest) for _, size, digest in found.files)
        if known != sorted((one.size, one.digest) for one in self.sources):
            raise ConflictError(self._changed(place, found))
        return found

    def _changed(self, place: _Beside | Remembered, found: ReleaseReceipt) -> str:
        before, now = {name for name, *_ in found.files}, {one.name for one in self.sources}
        words = [
            f"{what}: {', '.join(sorted(names))}"
            for what, names in (("added", now - before), ("missing", before - now))
            if names
        ] or ["the same names, other contents"]
        happened = "has been learned from"
        remedy = "Use those files to get it again; for others collect under a new agreement."
        if found.is_claim:
            # Without what the account remembers, files that were moved could be learned from again.
            or_so = "" if isinstance(place, Remembered) else ", or remove this claim"
            happened = "has been begun for"
            remedy = (
                f"If {found.decided_in!r} does not exist, that was never finished: complete it by "
                f"learning from those files{or_so}."
            )
        return (
            f"A model {happened} other files ({'; '.join(words)}), as {str(place)!r} says. A "
            f"second one from almost the same people would give away whom they differ in. {remedy}"
        )
