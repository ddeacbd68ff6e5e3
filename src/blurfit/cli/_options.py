"""Commands whose arguments and options follow from a function's signature and docstring.

A positional parameter is an argument; a keyword-only one is an option: `weight_bound: float | None`
is --weight-bound. Types are checked by click. What has neither a default nor None is required, a
default is shown, and `tuple[X, ...]` may be given several times. A parameter that is a dataclass
stands for options, its fields. Each option is explained under `Options:` in a docstring, as
`name: text` or `name (METAVAR): text`; where many commands share it, in its annotation.

Annotations are `Annotated` with a type of click's, words for the help, or a callback.
"""

import functools
import inspect
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args, get_origin

import click

if TYPE_CHECKING:
    from rich.console import RenderableType


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
