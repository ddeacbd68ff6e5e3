"""Files that are for their owner alone: what somebody answered, what was blurred, and secrets.

Everything of that kind is created here, with mode 0600 from the first moment, whatever the umask:
there is no time in which others could open it. What is replaced gets a new file in its place, so
that a mode which somebody widened does not stay with the new contents. Modes are those of POSIX;
on Windows the folder's rights decide.

Public are agreements, plans, models, moments, statements, and the records of releases beside files
of submissions (`blurfit.release_record`), which others must be able to read.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from blurfit.errors import InvalidValueError, StorageError

HOME = "BLURFIT_HOME"  # the environment's word for the user's own folder


def home() -> Path:
    """Return the user's own folder, where blurfit remembers what was blurred and released."""
    try:
        return Path(os.environ.get(HOME) or Path.home() / ".blurfit")
    except RuntimeError as error:
        raise StorageError(
            f"{HOME} must name a folder, as this account has no home folder: blurfit remembers "
            "there what was blurred and released. Set it to a folder of yours, and keep it."
        ) from error


def create(path: Path) -> None:
    """Create an empty file, if there is none.

    This is for what SQLite then opens by its name. The logs that it keeps beside a database get the
    mode of the database.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


@contextmanager
def replacing(
    path: Path, *, only_new: bool = False, before: Callable[[str], object] | None = None
) -> Iterator[Path]:
    """Yield an empty file beside `path`, which takes its name, on disk, if the block ends well.

    Killed before, the name is as it was. With `only_new` an existing file stays, and
    FileExistsError is raised: of several processes, only one can create it. `before` is told the
    name of the complete file, on disk, before it is renamed; from then on it is never removed.
    """
    try:
        descriptor, name = tempfile.mkstemp(".part", f".{path.name}.", path.parent)
    except OSError as error:
        error.filename = str(path)  # what somebody asked for
        raise
    os.close(descriptor)
    part, told = Path(name), False
    try:
        yield part
        _on_disk(part)
        if before is not None:
            before(part.name)
            told = True
        if only_new:
            os.link(part, path)
        else:
            part.replace(path)
        with suppress(OSError):  # a folder cannot be opened everywhere
            _on_disk(path.parent)
    finally:
        if not told:
            part.unlink(missing_ok=True)


def write(path: Path, text: str | bytes, *, only_new: bool = False) -> None:
    """Put a text into a file, all of it or nothing; `only_new` is as for `replacing`."""
    with replacing(path, only_new=only_new) as part:
        part.write_bytes(text.encode() if isinstance(text, str) else text)


def read_secret(path: Path) -> str:
    """Read a secret without the space around it; refuse a file that every account can read."""
    mode = path.stat().st_mode & 0o777
    if os.name == "posix" and mode & 0o007:
        raise InvalidValueError(
            "{path!r} must be closed to other accounts of this machine, got mode {mode:04o}: it "
            "holds a secret. Make a new secret if others may have read it, or run `chmod 600` on "
            "the file.",
            path=str(path),
            mode=mode,
        )
    return path.read_text(encoding="utf-8").strip()


def _on_disk(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
