"""What the commands share: options, what they read, and how they answer.

`import blurfit as bf` reads nothing: `bf.Agreement` is read when a command needs it, and so are
the modules that functions import, so that `--help` waits for none of them.
"""

import csv
import functools
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TextIO

import click

import blurfit as bf
from blurfit.errors import InvalidValueError, Progress, optional

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

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


def options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Combine several decorators into one."""

    def apply(command: Any) -> Any:
        for decorate in reversed(decorators):
            command = decorate(command)
        return command

    return apply


def with_default(
    flag: str, default: Any, help_text: str, *, name: str | None = None, **more: Any
) -> Callable[[Any], Any]:
    """Return an option whose help shows its default, which also decides its type."""
    names = (flag,) if name is None else (flag, name)
    return click.option(*names, default=default, show_default=True, help=help_text, **more)


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


@dataclass(frozen=True)
class Answer:
    """What a command found: facts for scripts, words for people, and what is usually done next."""

    facts: Any
    words: "RenderableType | list[RenderableType]"
    step: str = ""
    code: int = 0

    def tell(self) -> None:
        """Print JSON for scripts, or words; the next step goes to standard error."""
        if for_scripts():
            click.echo(json.dumps(self.facts, indent=2))
        else:
            for one in self.words if isinstance(self.words, list) else [self.words]:
                _show(one)
        if self.step and not for_scripts():
            click.echo(f"Next: {self.step}", err=True)
        if self.code:
            raise SystemExit(self.code)


def _show(words: "RenderableType") -> None:
    """Print a text as it is, and anything else as wide as the terminal is."""
    if isinstance(words, str):
        click.echo(words)
        return
    from rich.console import Console

    Console().print(words)


def for_scripts() -> bool:
    """Return whether the command that runs was typed with --json."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("as_json"))


def command(name: str, example: str) -> Callable[[Callable[..., Answer | None]], click.Command]:
    """Return a decorator for a command that prints the `Answer` that it returns, with --json for
    scripts, and with an example in its help.
    """

    def decorate(function: Callable[..., Answer | None]) -> click.Command:
        @functools.wraps(function)
        def run(as_json: bool, **typed: Any) -> None:
            del as_json  # which `for_scripts` tells whoever needs it
            if (found := function(**typed)) is not None:
                found.tell()

        as_json(run)
        listed = run.__click_params__  # type: ignore[attr-defined]
        listed.insert(0, listed.pop())  # click shows them from the last to the first
        return click.command(name, epilog=f"Example: blurfit {name} {example}")(run)

    return decorate


EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path, writable=True)
ANY_FILE = click.Path(dir_okay=False, path_type=Path)
agreement_file = click.argument("agreement", type=EXISTING_FILE)
patience = with_default(
    "--patience",
    60.0,
    "How many seconds to keep trying while nobody answers.",
    type=click.FloatRange(0, 1e9),
)


def _service(*, required: bool) -> Callable[[Any], Any]:
    help_text = "The service's address, such as http://127.0.0.1:8000."
    return options(click.option("--to", "url", required=required, help=help_text), patience)


service = _service(required=True)
service_or_file = _service(required=False)


def token_option(help_text: str, *, required: bool = True) -> Callable[[Any], Any]:
    """Return the option for the file with the administrator's token."""
    return click.option(
        "--admin-token-file", "token_file", type=ANY_FILE, required=required, help=help_text
    )


_token_file = token_option("The file that holds the administrator's token.")


@dataclass(frozen=True)
class Administered:
    """A service, and the file that holds its administrator's token, if that is known."""

    url: str
    patience: float
    token_file: Path | None

    def __str__(self) -> str:
        return f"--to {self.url} --admin-token-file {self.token_file}"

    def database(self) -> Any:
        """Return the service as its administrator sees it."""
        from blurfit.protocol import tokens
        from blurfit.protocol.http import RemoteDatabase

        token = None if self.token_file is None else tokens.read_token(self.token_file)
        return RemoteDatabase(self.url, token=token, patience=self.patience)

    def page(self, kind: str, fingerprint: str) -> str:
        """Return the address of a page for people: "c" to contribute, "m" about the model."""
        return f"{self.url.rstrip('/')}/{kind}/{fingerprint}"


LOOPBACK = ("127.0.0.1", "::1", "localhost")


def as_administrator(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """Add options that say which service is administered; the command gets them as `at`."""

    @functools.wraps(command)
    def typed(url: str, patience: float, token_file: Path, **rest: Any) -> Answer:
        return command(at=Administered(url, patience, token_file), **rest)

    return options(service, _token_file)(typed)  # type: ignore[no-any-return]


def store_option(help_text: str = "The service's store.") -> Callable[[Any], Any]:
    """Return the option for the store."""
    return with_default("--store", "sqlite:///blurfit.db", help_text, name="place")


def _in_a_folder(_context: object, _option: object, path: Path | None) -> Path | None:
    """Refuse a file that cannot be written before anything is done that cannot be undone."""
    if path is not None and not path.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(path.parent)!r}; make it first.")
    return path


picture_file = click.option(
    "--plot",
    "picture",
    type=NEW_FILE,
    callback=_in_a_folder,
    help="Draw into this file (.png, .svg, .pdf).",
)


def wrote(path: Path) -> None:
    """Say where something was written, on standard error: standard output is the answer's."""
    click.echo(f"Wrote {path}.", err=True)


def save_picture(draw: Callable[[], Any], path: Path) -> None:
    """Write what `draw` draws, axes or a figure, without a screen, and say where."""
    optional("matplotlib").use("Agg")
    drawn = draw()
    getattr(drawn, "figure", drawn).savefig(path, dpi=130)
    wrote(path)


def out_file(help_text: str, **options: Any) -> Callable[[Any], Any]:
    """Return the option for the file that is written."""
    return click.option("--out", type=NEW_FILE, callback=_in_a_folder, help=help_text, **options)


moments_file = click.option(
    "--moments",
    type=NEW_FILE,
    callback=_in_a_folder,
    help="Also write the blurred sums to this file, for `blurfit fit`. (moment)",
)


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


_KINDS = (".csv", ".gz", ".xlsx", ".parquet")
_LARGEST = 2**31  # bytes that are fetched: some of the rows are enough


class _FileOrAddress(click.Path):
    """A file, or what is fetched from where it is public, for as long as the command runs."""

    name = "file or url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from tempfile import TemporaryDirectory

        if ctx is not None and str(value).startswith(("http://", "https://")):
            folder = ctx.find_root().with_resource(TemporaryDirectory())  # gone after a refusal too
            value = _fetched(str(value), Path(folder))
        return super().convert(value, param, ctx)


def _fetched(address: str, folder: Path) -> Path:
    from urllib.parse import urlsplit

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


def public_option(help_text: str) -> Callable[[Any], Any]:
    """Return the option for a file of public rows, on this machine or at an address."""
    return click.option(
        "--public", type=_FileOrAddress(exists=True, dir_okay=False, path_type=Path), help=help_text
    )


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

    if path.suffix.lower() not in _KINDS:
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


def course_options(plan_help: str) -> Callable[[Any], Any]:
    """Return the options for a plan and the releases of its waves so far."""
    return options(
        click.option("--plan", "plan_file", type=EXISTING_FILE, help=plan_help),
        click.option(
            "--release",
            "releases",
            type=EXISTING_FILE,
            multiple=True,
            help="With --plan: the published moments of each earlier wave, in order.",
        ),
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
