"""What the commands share: options, how answers are printed, and which exit code says what.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 2 | a wrong option, file or value; nothing was done |
| 3 | no service answered; the same command may be run again |
| 4 | refused as things stand: below quorum, closed, a conflict, not invited |
"""

import csv
import functools
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from blurfit.errors import (
    TRY_AGAIN,
    BelowQuorumError,
    BetweenWavesError,
    BlurfitError,
    ClosedError,
    ConflictError,
    NotInvitedError,
    NotPublishedError,
    OtherGroupError,
    PausedError,
    ServiceError,
    StorageError,
)
from blurfit.optional import EXTRAS, missing
from blurfit.progress import Progress

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.agreement.plan import Plan

WRONG, UNREACHABLE, REFUSED = 2, 3, 4
_REFUSALS = (
    BelowQuorumError,
    BetweenWavesError,
    ClosedError,
    ConflictError,
    NotInvitedError,
    NotPublishedError,
    OtherGroupError,
    PausedError,
)

Command = Callable[..., Any]
_FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")


class WrongError(click.ClickException):
    """A wrong option, file or value."""

    exit_code = WRONG


class UnreachableError(click.ClickException):
    """Nobody answers."""

    exit_code = UNREACHABLE


class RefusedError(click.ClickException):
    """Refused as things stand."""

    exit_code = REFUSED


class Commands(click.Group):
    """Turns what blurfit refuses into one line on standard error and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except BlurfitError as error:
            raise as_exit(error) from error
        except ModuleNotFoundError as error:
            package = str(error.name).partition(".")[0]
            if package not in EXTRAS:
                raise
            raise WrongError(str(missing(package))) from error
        except OSError as error:
            if error.filename is None:
                raise
            raise WrongError(f"{error.strerror}: {str(error.filename)!r}.") from error
        except ArithmeticError as error:
            message = f"These numbers are too large or too small for floating point ({error})."
            raise WrongError(message) from error


def as_exit(error: BlurfitError) -> click.ClickException:
    """One line on standard error, and an exit code that scripts can use."""
    if isinstance(error, StorageError) or (
        isinstance(error, ServiceError) and error.status in (0, *TRY_AGAIN)
    ):
        return UnreachableError(str(error))
    if isinstance(error, (*_REFUSALS, ServiceError)):
        return RefusedError(str(error))
    return WrongError(str(error))


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


def options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several decorators as one."""

    def apply(command: Any) -> Any:
        for decorate in reversed(decorators):
            command = decorate(command)
        return command

    return apply


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
agreement_file = click.argument("agreement", type=EXISTING_FILE)
patience = click.option(
    "--patience",
    type=click.FloatRange(0, 1e9),
    default=60.0,
    show_default=True,
    help="How many seconds to keep trying while nobody answers.",
)


def _service(*, required: bool) -> Callable[[Any], Any]:
    help_text = "The service's address, such as http://127.0.0.1:8000."
    return options(click.option("--to", "url", required=required, help=help_text), patience)


service = _service(required=True)
service_or_file = _service(required=False)


def token_option(help_text: str, *, required: bool = True) -> Callable[[Any], Any]:
    """Where the administrator's token is."""
    return click.option(
        "--admin-token-file",
        "token_file",
        type=click.Path(path_type=Path, dir_okay=False),
        required=required,
        help=help_text,
    )


_token_file = token_option("The file that holds the administrator's token.")


@dataclass(frozen=True)
class Administered:
    """A service, and the file that holds its administrator's token."""

    url: str
    patience: float
    token_file: Path

    def __str__(self) -> str:
        return f"--to {self.url} --admin-token-file {self.token_file}"

    def database(self) -> Any:
        """The service as its administrator sees it."""
        from blurfit.protocol import tokens
        from blurfit.service.remote import RemoteDatabase

        token = tokens.read_token(self.token_file)
        return RemoteDatabase(self.url, token=token, patience=self.patience)

    def page(self, kind: str, fingerprint: str) -> str:
        """The address of a page for people: "c" to contribute, "m" about the model."""
        return f"{self.url.rstrip('/')}/{kind}/{fingerprint}"


def as_administrator(command: Callable[..., None]) -> Callable[..., None]:
    """Options that say which service is administered; the command gets them as `at`."""

    @functools.wraps(command)
    def typed(url: str, patience: float, token_file: Path, **rest: Any) -> None:
        command(at=Administered(url, patience, token_file), **rest)

    return options(service, _token_file)(typed)  # type: ignore[no-any-return]


def store_option(help_text: str = "The service's store.") -> Callable[[Any], Any]:
    """Where the store is."""
    return click.option(
        "--store", "place", default="sqlite:///blurfit.db", show_default=True, help=help_text
    )


def _in_a_folder(_context: object, _option: object, path: Path | None) -> Path | None:
    """Refuse a file that cannot be written before anything is done that cannot be undone."""
    if path is not None and not path.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(path.parent)!r}; make it first.")
    return path


picture_file = click.option(
    "--plot",
    "picture",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    callback=_in_a_folder,
    help="Draw into this file (.png, .svg, .pdf).",
)


def wrote(path: Path) -> None:
    """Say where something was written, on standard error: standard output is the answer's."""
    click.echo(f"Wrote {path}.", err=True)


def save_picture(draw: Callable[[], Any], path: Path) -> None:
    """Write what `draw` draws, axes or a figure, without a screen, and say where."""
    from blurfit.optional import optional

    optional("matplotlib").use("Agg")
    drawn = draw()
    getattr(drawn, "figure", drawn).savefig(path, dpi=130)
    wrote(path)


def out_file(help_text: str, **options: Any) -> Callable[[Any], Any]:
    """Where something is written."""
    return click.option(
        "--out",
        type=click.Path(dir_okay=False, path_type=Path, writable=True),
        callback=_in_a_folder,
        help=help_text,
        **options,
    )


moments_file = click.option(
    "--moments",
    type=click.Path(dir_okay=False, path_type=Path, writable=True),
    callback=_in_a_folder,
    help="Also write the blurred sums to this file, for `blurfit fit`. (moment)",
)


@contextmanager
def watched(description: str, *, quiet: bool) -> Iterator[Progress]:
    """A bar on standard error, which is told how much of how much is done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn(description), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), disable=quiet) as bars:
        task = bars.add_task("", total=None)
        yield lambda done, of: bars.update(task, completed=done, total=of)


def steps(watch: Progress, total: int) -> Progress:
    """Tell a bar of one step after another, until all are done."""
    done = itertools.count(1)
    return lambda *_: watch(next(done), total)


def load_agreement(path: Path) -> "Agreement":
    """The agreement in a file, verified."""
    from blurfit.agreement.agreement import Agreement

    return Agreement.load(path)


def load_agreed(path: Path) -> "Agreement | Plan":
    """The agreement in a file, verified, or the plan of waves."""
    from blurfit.agreement.plan import Plan

    return Plan.load(path) if format_of(path) == Plan.STATED["format"] else load_agreement(path)


def format_of(path: Path) -> str | None:
    """What a file of ours says that it is; None for any other file."""
    try:
        document = json.loads(path.read_bytes())
    except (RecursionError, ValueError):
        return None
    found = document.get("format") if isinstance(document, dict) else None
    return found if isinstance(found, str) else None


def answer(values: dict[str, Any], sentence: str, *, as_json: bool) -> None:
    """JSON for scripts, or a sentence for people."""
    click.echo(json.dumps(values, indent=2) if as_json else sentence)


def next_step(sentence: str, *, quiet: bool) -> None:
    """Say what is usually done next, on standard error: standard output is the answer's."""
    if not quiet:
        click.echo(f"Next: {sentence}", err=True)
