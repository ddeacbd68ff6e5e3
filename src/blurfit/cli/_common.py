"""What the commands share: how they follow from functions, types of options, what they read, and
how they show progress.

`import blurfit as bf` reads nothing: `bf.Agreement` is read when a command needs it, and so are
the modules that functions import, so that `--help` waits for none of them.

**Commands follow from functions**: their signature and docstring say which arguments and options
there are. A positional parameter is an argument; a keyword-only one is an option: `weight_bound:
float | None` is --weight-bound. Types are checked by click. What has neither a default nor None is
required, a default is shown, and `tuple[X, ...]` may be given several times. A parameter that is a
dataclass stands for options, its fields. Each option is explained under `Options:` in a docstring,
as `name: text` or `name (METAVAR): text`; where many commands share it, in its annotation.

Annotations are `Annotated` with a type of click's, words for the help, or a callback.
"""

import csv
import functools
import inspect
import itertools
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TextIO, get_args, get_origin

import click

import blurfit as bf
from blurfit.errors import InvalidValueError, Progress, optional

if TYPE_CHECKING:
    from rich.console import RenderableType

    from blurfit.agreement.plan import Agreed
    from blurfit.model.course import Course


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
            if self.step:
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


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


class Together(NamedTuple):
    """In an annotation: options of click's own that make one parameter."""

    options: Sequence[click.Option]
    make: Callable[..., Any] = dict


def command(
    name: str, example: str, *, answers: bool = True
) -> Callable[[Callable[..., Answer | None]], click.Command]:
    """Return a decorator for a command, with an example in its help; unless it `answers` nothing,
    it prints the `Answer` that it returns, with --json for scripts.
    """

    def decorate(function: Callable[..., Answer | None]) -> click.Command:
        text, told = _documented(function)
        groups: dict[str, Together] = {}
        params: list[click.Parameter] = []
        for one in inspect.signature(function).parameters.values():
            if (found := _together(one.annotation)) is not None:
                groups[one.name] = found
                params += found.options
            elif one.kind is one.KEYWORD_ONLY:
                params.append(_option(one.name, one.annotation, one.default, told))
            else:
                params.append(_argument(one.name, one.annotation, one.default))

        @functools.wraps(function)
        def run(as_json: bool = False, **typed: Any) -> None:
            del as_json  # which `for_scripts` tells whoever needs it
            for parameter, group in groups.items():
                names = [str(one.name) for one in group.options]
                typed[parameter] = group.make(
                    **{one: typed.pop(one) for one in dict.fromkeys(names)}
                )
            if (found := function(**typed)) is not None:
                found.tell()

        epilog = f"Example: blurfit {name} {example}"
        made = click.Command(name, params=params, callback=run, help=text, epilog=epilog)
        return as_json(made) if answers else made

    return decorate


class _Told(NamedTuple):
    metavar: str | None
    help: str


def _documented(described: Any) -> tuple[str, dict[str, _Told]]:
    """Return the text of a docstring, and what it says of each option."""
    text, _, listed = inspect.cleandoc(described.__doc__).partition("\n\nOptions:\n")
    entries = re.findall(r"^    (\w+)(?: \((.+?)\))?: (.*(?:\n     .*)*)", listed, re.MULTILINE)
    return text, {name: _Told(meta or None, " ".join(said.split())) for name, meta, said in entries}


def _together(hint: Any) -> Together | None:
    """Return the options that one parameter stands for, if it stands for several."""
    if isinstance(hint, type) and is_dataclass(hint):
        _, told = _documented(hint)
        listed = [
            _option(
                one.name,
                one.type,
                inspect.Parameter.empty if one.default is MISSING else one.default,
                told,
            )
            for one in fields(hint)
        ]
        return Together(listed, hint)
    return next((one for one in _details(hint)[1] if isinstance(one, Together)), None)


def _details(hint: Any) -> tuple[Any, list[Any], bool]:
    """Return a type without its annotations, these, and whether it may be None."""
    details, may_be_none = [], False
    while True:
        if get_origin(hint) is Annotated:
            hint, *more = get_args(hint)
            details += more
        elif NoneType in get_args(hint):
            (hint,) = (one for one in get_args(hint) if one is not NoneType)
            may_be_none = True
        else:
            return hint, details, may_be_none


def _settings(hint: Any, default: Any) -> dict[str, Any]:
    """Return what click is told of a type; `help` where its annotation has words."""
    hint, details, may_be_none = _details(hint)
    found: dict[str, Any] = {"required": default is inspect.Parameter.empty and not may_be_none}
    if get_origin(hint) is tuple and get_args(hint)[1:] == (...,) and not details:
        inner = _settings(get_args(hint)[0], default)
        return inner | {"multiple": True, "required": False}
    found["type"] = click.Choice(get_args(hint)) if get_origin(hint) is Literal else hint
    if hint is Any:
        found["type"] = None
    if get_origin(hint) is tuple:
        found["type"] = get_args(hint)
    for one in details:
        if isinstance(one, click.ParamType):
            found["type"] = one
        elif isinstance(one, str):
            found["help"] = one
        else:
            found["callback"] = one
    return found


def _option(name: str, hint: Any, default: Any, told: dict[str, _Told]) -> click.Option:
    settings = _settings(hint, default)
    flag = f"--{name.strip('_').replace('_', '-')}"
    if settings["type"] is bool:
        settings |= {"is_flag": True, "required": False}
        if default is True:
            flag, settings["default"] = f"{flag}/--no-{flag[2:]}", True
    elif default is not inspect.Parameter.empty:
        settings |= {"default": default, "show_default": True}
    if name in told:
        settings |= told[name]._asdict()
    return click.Option([flag, name], **settings)


def _argument(name: str, hint: Any, default: Any) -> click.Argument:
    settings = _settings(hint, default)
    if settings.pop("multiple", False):
        settings |= {"nargs": -1, "required": default is inspect.Parameter.empty}
    return click.Argument([name], **settings)


# ---- what commands read and write

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


ExistingFile = Annotated[Path, click.Path(exists=True, dir_okay=False, path_type=Path)]
AnyFile = Annotated[Path, click.Path(dir_okay=False, path_type=Path)]
NewFile = Annotated[Path, click.Path(dir_okay=False, path_type=Path, writable=True)]
Out = Annotated[NewFile, _in_a_folder]
Picture = Annotated[Out, "Draw into this file (.png, .svg, .pdf)."]
MomentsOut = Annotated[Out, "Also write the blurred sums to this file, for `blurfit fit`."]
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
    patience: Patience = 10.0
    admin_token_file: AnyFile | None

    def __str__(self) -> str:
        return f"--to {self.to} --admin-token-file {self.admin_token_file}"

    def database(self) -> Any:
        """Return the service as its administrator sees it."""
        from blurfit import protocol
        from blurfit.protocol import RemoteDatabase

        file = self.admin_token_file
        token = None if file is None else protocol.read_token(file)
        return RemoteDatabase(self.to, token=token, patience=self.patience, pause=self._wait())

    def _wait(self) -> Callable[[float], object]:
        """Return how to wait until a service is asked again: say so, the first time."""
        first = itertools.count()

        def wait(seconds: float) -> None:
            if next(first) == 0:
                words = f"{self.to} does not answer. Trying again for {self.patience:g} seconds …"
                click.echo(words, err=True)
            time.sleep(seconds)

        return wait

    def page(self, kind: str, fingerprint: str) -> str:
        """Return the address of a page for people: "c" to contribute, "m" about the model."""
        return f"{self.to.rstrip('/')}/{kind}/{fingerprint}"


@dataclass(frozen=True, kw_only=True)
class Administered(Asked):
    """A service that its administrator asks.

    Options:
        admin_token_file: The file that holds the administrator's token.
    """

    patience: Patience = 60.0
    admin_token_file: AnyFile


LOOPBACK = ("127.0.0.1", "::1", "localhost")


def wrote(path: Path) -> None:
    """Say where something was written, on standard error: standard output is the answer's."""
    click.echo(f"Wrote {path}.", err=True)


def save_picture(draw: Callable[[], Any], path: Path) -> None:
    """Write what `draw` draws, axes or a figure, without a screen, and say where."""
    optional("matplotlib").use("Agg")
    drawn = draw()
    first = getattr(drawn, "flat", [drawn])[0]  # of an array of axes
    getattr(first, "figure", first).savefig(path, dpi=130)
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
