"""Keep to one release from each set of files, recorded in receipts beside them.

A model from files that are then added to would give away whoever came in between; so a set of files
has one release, the receipt holds it, and whoever asks again gets the same bytes. A set that has
changed since is refused (`blurfit.model.release` has the reasons).

There is a receipt in every folder that holds one of the files, because a later run may name some of
the folders only; one in what the account remembers, because files can be moved away from their
receipts; and one where the caller wants it, which is needed as soon as one of the files is on
another machine: the next run may name that one with other folders. What any of them holds is the
release: for a place that has no receipt yet, or has lost its own, it is copied, and never learned
again, since noise of the database would be drawn again. Where there is none, the alphabetically
first folder decides. In this order, each step atomic:

1. every other place gets a claim: "a model of these files is recorded in that folder";
2. the first folder gets the receipt, if there is none: then the model is released;
3. the claims are replaced by copies of that receipt.

A file is created by linking a complete one to its name, which only one of several processes can do,
on network file systems too; the others find the first one's, and return its model. Killed before
step 2 nothing was released; killed afterwards, the next run completes step 3. Two sets that share a
place meet at its claim or receipt, and the second is refused.

**What the account remembers**, in BLURFIT_HOME or ~/.blurfit, is every file of submissions by its
size and digest, under each agreement, with the receipt of the release that it is in. Together with
other files it is refused then, from any folder or URL. It does not see other accounts and machines,
nor the same rows in a file that was written anew.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

import msgspec

from blurfit import private_files
from blurfit.data import read_json
from blurfit.errors import BlurfitError, ConflictError, InvalidValueError
from blurfit.files.scan import Identity
from blurfit.model.release import Release

FORMAT, VERSION = "blurfit-release", 1
_TABLES = """
CREATE TABLE IF NOT EXISTS receipts (key INTEGER PRIMARY KEY, receipt BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS files (
    fingerprint TEXT, size INTEGER, digest TEXT, receipt INTEGER NOT NULL,
    PRIMARY KEY (fingerprint, size, digest)
);
"""


class ReleaseReceipt(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What is recorded: of which files, the texts of the model and of its moments, or why there
    will never be any.

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
    database_noise: bool = False  # whether noise was drawn for this release, which is nowhere else

    @property
    def is_claim(self) -> bool:
        """Whether nothing is released yet, as far as this file says."""
        return self.model is None and self.refusal is None

    def release(self) -> Release:
        """Return what was released."""
        return Release(self.model, self.moments, self.refusal)

    def contents(self) -> list[tuple[int, str]]:
        """Return the files without their names, which may change."""
        return sorted((size, digest) for _, size, digest in self.files)

    def text(self) -> bytes:
        """Write it as it is kept."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


@dataclass(frozen=True)
class _Beside:
    """A receipt in a file that everyone may read, as what it holds is public."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def receipts(self) -> list[bytes]:
        """Return what is there, if anything is."""
        try:
            return [self.path.read_bytes()]
        except FileNotFoundError:
            return []

    def create(self, receipt: bytes) -> bool:
        """Tell whether it was created: of several processes only one can."""
        try:
            self._write(receipt, only_new=True)
        except FileExistsError:
            return False
        return True

    def replace(self, receipt: bytes) -> None:
        """Put a receipt in place of a claim."""
        self._write(receipt)

    def remove(self, claim: bytes) -> None:
        """Remove a claim, unless somebody else has put a receipt in its place."""
        if self.receipts() == [claim]:
            self.path.unlink(missing_ok=True)

    def _write(self, receipt: bytes, *, only_new: bool = False) -> None:
        try:
            with private_files.replacing(self.path, only_new=only_new) as part:
                part.write_bytes(receipt)
                part.chmod(0o644)
        except FileExistsError:
            raise
        except OSError as error:
            raise InvalidValueError(
                f"Expected to be able to write {str(self.path)!r}, where it is recorded what was "
                f"released: {error.strerror}. Make the folder writable, or let its owner learn "
                "from the files."
            ) from error


@dataclass(frozen=True)
class Remembered:
    """What the account remembers of some files under an agreement."""

    fingerprint: str
    files: tuple[Identity, ...]

    def __str__(self) -> str:
        return str(_path())

    def receipts(self) -> list[bytes]:
        """Return every receipt that some of the files are in."""
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
    """Yield the account's file, within one transaction, for which other processes wait."""
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


@dataclass(frozen=True)
class Receipts:
    """The places where the release of a set of files under an agreement is recorded."""

    fingerprint: str
    files: tuple[Identity, ...]
    places: tuple[Path, ...]

    @classmethod
    def of(
        cls,
        fingerprint: str,
        places: Sequence[str],
        files: Sequence[Identity],
        receipt: Path | None = None,
    ) -> "Receipts":
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
        name = f"{fingerprint[:12]}.release.json"
        if receipt is not None and receipt.is_dir():
            receipt = receipt / name
        wanted = sorted({file.parent / name for file in here})
        if receipt is not None and receipt.resolve() not in wanted:
            wanted.append(receipt.resolve())
        return cls(fingerprint, tuple(sorted(files)), tuple(wanted))

    def find(self) -> Release | None:
        """Return what was released from these files; None if nothing was yet.

        Other files at one of the places are an error.
        """
        known = [one for one in map(self._read, self._all()) if one is not None]
        decided = [one for one in known if not one.is_claim]
        if not decided:
            return None
        self._copy(decided[0])
        return decided[0].release()

    def record(self, release: Release, *, database_noise: bool = False) -> Release:
        """Release something, unless something was released before: then that is returned."""
        claim = ReleaseReceipt(
            FORMAT,
            VERSION,
            self.fingerprint,
            [astuple(one) for one in self.files],
            str(self.places[0]),
        )
        complete = msgspec.structs.replace(claim, **asdict(release), database_noise=database_noise)
        first, *others = self._all()
        claimed = []
        try:
            for place in others:
                if place.create(claim.text()):
                    claimed.append(place)
                elif (found := self._read(place)) is not None and not found.is_claim:
                    complete = found  # of somebody who named other folders, and was quicker
            if not first.create(complete.text()):
                complete = self._read(first) or complete
        except BlurfitError:
            for place in claimed:
                place.remove(claim.text())
            raise
        self._copy(complete)
        return complete.release()

    def _all(self) -> list[_Beside | Remembered]:
        """Everywhere; the first one decides."""
        return [*map(_Beside, self.places), Remembered(self.fingerprint, self.files)]

    def _copy(self, decided: ReleaseReceipt) -> None:
        for place in self._all():
            found = self._read(place)
            if found is None or found.is_claim:
                place.replace(decided.text())

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
        if found.contents() != sorted((one.size, one.digest) for one in self.files):
            raise ConflictError(self._changed(place, found))
        return found

    def _changed(self, place: _Beside | Remembered, found: ReleaseReceipt) -> str:
        before = {name for name, *_ in found.files}
        now = {one.name for one in self.files}
        words = [
            f"{what}: {', '.join(sorted(names))}"
            for what, names in (("added", now - before), ("missing", before - now))
            if names
        ] or ["the same names, other contents"]
        happened = "has been begun for" if found.is_claim else "has been learned from"
        # Without what the account remembers, files that were moved could be learned from again.
        or_so = "" if isinstance(place, Remembered) else ", or remove this claim"
        remedy = (
            f"If {found.decided_in!r} does not exist, that was never finished: complete it by "
            f"learning from those files{or_so}."
            if found.is_claim
            else "Use those files to get it again; for others collect under a new agreement."
        )
        return (
            f"A model {happened} other files ({'; '.join(words)}), as {str(place)!r} says. A "
            "second one from almost the same people would give away whom they differ in. " + remedy
        )
