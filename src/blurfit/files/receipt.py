"""One model from each set of files, recorded in a receipt beside them.

The rules are those of the service. A model from files that are then added to would give away
whoever came in between; so a set of files has one model, the receipt holds it, and whoever asks
again gets the same bytes. A set that has changed since is refused. If the sums allow no model (for
`input` an event that the guarantee excludes), that is recorded too, and there will be none.

There is a receipt in every folder that holds one of the files, because a later run may name some of
the folders only. The first of them, by the alphabet, decides. In this order, each step atomic:

1. every other folder gets a claim: "a model of these files is recorded in that folder";
2. the first folder gets the receipt, if there is none: then the model is released;
3. the claims are replaced by copies of that receipt.

A file is created by linking a complete one to its name, which only one of several processes can do,
on network file systems too; the others find the first one's, and return its model. Killed before
step 2 nothing was released, and the same run may be repeated; killed afterwards, the next run
completes step 3. Two sets that share a folder meet at its claim or receipt, and the second is
refused.
"""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import msgspec

from blurfit.errors import ConflictError, InfeasibleError, InvalidValueError
from blurfit.files.sources import Identity
from blurfit.model.published import PublishedModel

FORMAT, VERSION = "blurfit-release", 1


class Receipt(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What is recorded: of which files, and the model's text, or why there will never be one.

    A claim has neither: it says in which folder to look (`decided_in`).
    """

    format: str
    version: int
    fingerprint: str
    files: list[tuple[str, int, str]]
    decided_in: str
    model: str | None = None
    statistics: str | None = None
    refusal: str | None = None

    @property
    def is_claim(self) -> bool:
        """Whether nothing is released yet, as far as this file says."""
        return self.model is None and self.refusal is None

    def outcome(self) -> str:
        """The model's text; an error where there is none."""
        if self.model is None:
            raise InfeasibleError(self.refusal or "")
        return self.model


@dataclass(frozen=True)
class Release:
    """The release of a set of files under an agreement, at the places where it is recorded."""

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
    ) -> "Release":
        """Recorded in `receipt`, or beside the files if they are of this machine."""
        if receipt is not None:
            return cls(fingerprint, tuple(sorted(files)), (receipt.absolute(),))
        if far := [place for place in places if "://" in place]:
            raise InvalidValueError(
                f"Expected a place for the receipt, because {far[0]!r} is no file of this machine: "
                "say --receipt FILE, and use the same one whenever you learn from these files."
            )
        folders = sorted({Path(place).absolute().parent for place in places})
        name = f"{fingerprint[:12]}.release.json"
        return cls(fingerprint, tuple(sorted(files)), tuple(folder / name for folder in folders))

    def find(self) -> str | None:
        """The model that was released from these files; None if there is none yet.

        Other files at one of the places, or a model that cannot be, are an error.
        """
        for place in self.places:
            self._read(place)
        decided = self._read(self.places[0])
        if decided is None or decided.is_claim:
            return None
        self._copy(decided)
        return decided.outcome()

    def record(
        self, *, model: str | None, statistics: str | None = None, refusal: str | None = None
    ) -> str:
        """Release a model, or the fact that there is none; the first one's if there is one."""
        claim = Receipt(
            FORMAT,
            VERSION,
            self.fingerprint,
            [astuple(one) for one in self.files],
            str(self.places[0]),
        )
        complete = msgspec.structs.replace(
            claim, model=model, statistics=statistics, refusal=refusal
        )
        claimed: list[Path] = []
        try:
            for place in self.places[1:]:
                if _create(place, claim):
                    claimed.append(place)
                else:
                    self._read(place)
            if not _create(self.places[0], complete):
                complete = self._read(self.places[0]) or complete
        except ConflictError:
            for place in claimed:
                place.unlink(missing_ok=True)
            raise
        self._copy(complete)
        return complete.outcome()

    def _copy(self, decided: Receipt) -> None:
        for place in self.places[1:]:
            found = self._read(place)
            if found is None or found.is_claim:
                unfinished = _written(place, decided)
                unfinished.replace(place)
                _sync(place.parent)

    def _read(self, place: Path) -> Receipt | None:
        try:
            text = place.read_bytes()
        except FileNotFoundError:
            return None
        try:
            found = msgspec.json.decode(text, type=Receipt)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise InvalidValueError(
                f"Expected {str(place)!r} to be a receipt that blurfit wrote: {error}. Nothing is "
                "learned while it cannot be read; restore it from a backup."
            ) from error
        if (found.format, found.version, found.fingerprint) != (FORMAT, VERSION, self.fingerprint):
            raise ConflictError(
                f"Expected {str(place)!r} to be a receipt of version {VERSION} for the agreement "
                f"{self.fingerprint}, and it is of version {found.version} for {found.fingerprint}."
            )
        if found.files != [astuple(one) for one in self.files]:
            raise ConflictError(self._changed(place, found))
        return found

    def _changed(self, place: Path, found: Receipt) -> str:
        before = {name for name, *_ in found.files}
        now = {one.name for one in self.files}
        words = [
            f"{what}: {', '.join(sorted(names))}"
            for what, names in (("added", now - before), ("missing", before - now))
            if names
        ] or ["the same names, other contents"]
        happened = "has been begun for" if found.is_claim else "has been learned from"
        remedy = (
            f"If {found.decided_in!r} does not exist, that was never finished: complete it by "
            "learning from those files, or remove this claim."
            if found.is_claim
            else "Use those files to get it again; for others collect under a new agreement."
        )
        return (
            f"A model {happened} other files ({'; '.join(words)}), as {str(place)!r} says. A "
            "second one from almost the same people would give away whom they differ in. " + remedy
        )


def mark(model: PublishedModel) -> str:
    """What a file of exported submissions says of the model that was published from them."""
    numbers = json.dumps([model.fingerprint, model.count, model.weights.tolist()])
    return hashlib.sha256(numbers.encode()).hexdigest()


def _create(place: Path, receipt: Receipt) -> bool:
    """Whether it was created: only one can."""
    unfinished = _written(place, receipt)
    try:
        os.link(unfinished, place)
    except FileExistsError:
        return False
    finally:
        unfinished.unlink()
    _sync(place.parent)
    return True


def _written(place: Path, receipt: Receipt) -> Path:
    """The complete text on disk, under a name that nobody else uses."""
    number, name = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
    with os.fdopen(number, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(receipt), indent=2) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    Path(name).chmod(0o644)
    return Path(name)


def _sync(folder: Path) -> None:
    """Let the folder's list of names be on disk too, where folders can be opened."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
