"""What the commands share: types of options, what they read, and how they show progress.

`import blurfit as bf` reads nothing: `bf.Agreement` is read when a command needs it, and so are
the modules that functions import, so that `--help` waits for none of them.
"""

import csv
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, TextIO
from urllib.parse import urlsplit

import click

import blurfit as bf
from blurfit.cli._options import for_scripts
from blurfit.errors import InvalidValueError, Progress, optional

if TYPE_CHECKING:
    from collections.abc import Sequence

    from blurfit.agreement.plan import Agreed
    from blurfit.data import FloatArray
    from blurfit.model.course import Course


_FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")


def write_csv(stream: TextIO, rows: Iterable[Iterable[Any]]) -> None:
    """Write rows of CSV in which no name or word is a formula to a spreadsheet.

    A text that begins with =, +, -, @, a tab or a carriage return gets an apostrophe before it, as
    people type it who mean text; numbers stay as they are. A title or a level may come from anyone.

    >>> import sys
    >>> write_csv(sys.stdout, [["=1+1", "income"], [-1.5, "-2.5"], ["@now", 3]])
    '=1+1,income
    -1.5,-2.5
    '@now,3
    """
    csv.writer(stream).writerows([_inert(cell) for cell in row] for row in rows)


def _inert(cell: Any) -> Any:
    if not isinstance(cell, str) or not cell.startswith(_FORMULA_STARTS):
        return cell
    return cell if re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", cell) else f"'{cell}"


def _in_a_folder(_context: object, _option: object, path: Path | None) -> Path | None:
    """Refuse a file that cannot be written before anything is done that cannot be undone."""
    if path is not None and not path.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(path.parent)!r}; make it first.")
    return path


class _FileOrAddress(click.Path):
    """A file, or what is fetched from where it is public, for as long as the command runs."""

    name = "file or url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if ctx is not None and str(value).startswith(("http://", "https://")):
            folder = ctx.find_root().with_resource(TemporaryDirectory())  # gone after a refusal too
            value = _fetched(str(value), Path(folder))
        return super().convert(value, param, ctx)


_LARGEST = 2**31  # bytes that are fetched: some of the rows are enough


def _fetched(address: str, folder: Path) -> Path:
    import httpx2 as httpx

    path = folder / (PurePosixPath(urlsplit(address).path).name or "rows")
    size = 0
    try:
        with httpx.stream("GET", address, follow_redirects=True, timeout=60.0) as answer:
            answer.raise_for_status()
            with path.open("wb") as file:
                for part in answer.iter_bytes():
                    size += file.write(part)
                    if size > _LARGEST:
                        raise InvalidValueError(
                            f"Expected at most {_LARGEST:,} bytes of public rows at {address!r}."
                        )
    except httpx.HTTPError as error:
        raise InvalidValueError(
            f"Cannot fetch the public rows at {address!r}: {' '.join(str(error).split())}."
        ) from error
    return path


ExistingFile = Annotated[Path, click.Path(exists=True, dir_okay=False, path_type=Path)]
AnyFile = Annotated[Path, click.Path(dir_okay=False, path_type=Path)]
NewFile = Annotated[Path, click.Path(dir_okay=False, path_type=Path, writable=True)]
Out = Annotated[NewFile, _in_a_folder]
Picture = Annotated[Out, "Draw into this file (.png, .svg, .pdf)."]
MomentsOut = Annotated[Out, "Also write the blurred sums to this file, for `blurfit fit`. (moment)"]
PublicFile = Annotated[Path, _FileOrAddress(exists=True, dir_okay=False, path_type=Path)]
Releases = Annotated[
    ExistingFile, "With --plan: the published moments of each earlier wave, in order."
]
Share = Annotated[float, click.FloatRange(0, 1, min_open=True, max_open=True)]
AtLeastOne = Annotated[int, click.IntRange(1)]
Address = Annotated[str, "The service's address, such as http://127.0.0.1:8000."]
Patience = Annotated[
    float, click.FloatRange(0, 1e9), "How many seconds to keep trying while nobody answers."
]
StorePlace = Annotated[str, "The service's store."]
STORE = "sqlite:///blurfit.db"  # unless another one is named


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A service, and the file that holds its administrator's token, if that is known.

    Options:
        admin_token_file: The administrator's token: also tell whether contributors look honest (one
            database).
    """

    to: Address
    patience: Patience = 60.0
    admin_token_file: AnyFile | None

    def __str__(self) -> str:
        return f"--to {self.to} --admin-token-file {self.admin_token_file}"

    def database(self) -> Any:
        """Return the service as its administrator sees it."""
        from blurfit import protocol
        from blurfit.protocol import RemoteDatabase

        file = self.admin_token_file
        token = None if file is None else protocol.read_token(file)
        return RemoteDatabase(self.to, token=token, patience=self.patience)

    def page(self, kind: str, fingerprint: str) -> str:
        """Return the address of a page for people: "c" to contribute, "m" about the model."""
        return f"{self.to.rstrip('/')}/{kind}/{fingerprint}"


@dataclass(frozen=True, kw_only=True)
class Administered(Asked):
    """A service that its administrator asks.

    Options:
        admin_token_file: The file that holds the administrator's token.
    """

    admin_token_file: AnyFile


LOOPBACK = ("127.0.0.1", "::1", "localhost")


def wrote(path: Path) -> None:
    """Say where something was written, on standard error: standard output is the answer's."""
    click.echo(f"Wrote {path}.", err=True)


def save_picture(draw: Callable[[], Any], path: Path) -> None:
    """Write what `draw` draws, axes or a figure, without a screen, and say where."""
    optional("matplotlib").use("Agg")
    drawn = draw()
    getattr(drawn, "figure", drawn).savefig(path, dpi=130)
    wrote(path)


@contextmanager
def watched(description: str) -> Iterator[Progress]:
    """Show a bar on standard error, unless for scripts, and yield what tells it how much of how
    much is done.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn(description), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), disable=for_scripts()) as bars:
        task = bars.add_task("", total=None)
        yield lambda done, of: bars.update(task, completed=done, total=of)


def steps(watch: Progress, total: int) -> Progress:
    """Tell a bar of one step after another, until all are done."""
    done = itertools.count(1)
    return lambda *_: watch(next(done), total)


def load_agreed(path: Path) -> "Agreed":
    """Read the agreement in a file, or the plan of waves, and verify it."""
    from blurfit.agreement.plan import load_agreed

    return load_agreed(path)


def format_of(path: Path) -> str | None:
    """Return the format that a file of ours states; None for any other file."""
    try:
        document = json.loads(path.read_bytes())
    except (RecursionError, ValueError):
        return None
    found = document.get("format") if isinstance(document, dict) else None
    return found if isinstance(found, str) else None


def digest_of(path: Path, schema: "bf.Schema") -> str:
    """Return the SHA-256 of a file of public rows, after reading all features of all rows."""
    from blurfit.schema.table_files import TableFile

    names = tuple(feature.name for feature in schema.features)
    read_public(path, schema, names)
    return TableFile(path, schema, only=names).digest()


def read_public(path: Path, schema: "bf.Schema", names: "Sequence[str]") -> dict[str, list[Any]]:
    """Read some columns of a file of public rows; refuse what the schema refuses, with its row."""
    from blurfit.schema.schema import values
    from blurfit.schema.table_files import TableFile

    if path.suffix.lower() not in (".csv", ".gz", ".xlsx", ".parquet"):
        raise InvalidValueError(
            f"Expected --public {str(path)!r} to be a file of public rows, .csv, .xlsx or .parquet."
        )
    file = TableFile(path, schema, only=tuple(names))
    columns: dict[str, list[Any]] = {name: [] for name in file.names}
    rows = 0
    for part in file.chunks():
        with file.located(rows):
            rows += len(values(schema, part, names))
        for name in file.names:
            found = part[name]
            columns[name] += found.to_pylist() if hasattr(found, "to_pylist") else found
    if not rows:
        raise InvalidValueError(f"Expected at least one public row in {str(path)!r}.")
    return columns


def encoded_public(path: Path, schema: "bf.Schema") -> "FloatArray":
    """Read all features of public rows as the columns that joint moments have: (rows, k)."""
    import numpy as np

    from blurfit.schema.schema import values

    names = [feature.name for feature in schema.features]
    return np.atleast_2d(values(schema, read_public(path, schema, names), names))


def require_agreed(path: Path, agreement: "bf.Agreement") -> None:
    """Refuse any file other than the one that the agreement names, if it names one."""
    from blurfit.schema.table_files import TableFile

    agreed = agreement.public_rows
    if agreed is None:
        return
    found = TableFile(path, agreement.schema, only=()).digest()
    if found != agreed:
        raise InvalidValueError(
            f"Expected --public {str(path)!r} to be the file of public rows that was agreed on, "
            f"with SHA-256 {agreed}, and its own is {found}. Fetch the agreed file again."
        )


def read_course(
    agreement: "bf.Agreement", plan_file: Path | None, releases: tuple[Path, ...]
) -> "Course | None":
    """Return the plan's waves so far; None without a plan. The agreement must be the next one.

    Raises:
        NotCertifiedError: the agreement does not follow from the plan and the releases.
    """
    if plan_file is None:
        if releases:
            raise InvalidValueError(
                "Expected --plan PLAN with --release: the rule for the next wave is in the plan."
            )
        return None

    course = course_of(bf.Plan.load(plan_file), releases)
    agreement.verify()
    course.require(agreement)
    return course


def course_of(plan: "bf.Plan", releases: tuple[Path, ...]) -> "Course":
    """Return a plan's waves so far, which follow from the moments in these files."""
    from blurfit.model.course import Course

    return Course.of(plan, [bf.PublishedMoments.load(path) for path in releases])
