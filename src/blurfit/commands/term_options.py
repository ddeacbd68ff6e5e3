"""The terms of an agreement as a command's options: names, types, defaults, help from `Terms`.

An option that is not given is None, so that what is typed can come before what a file says, and a
file before the defaults.
"""

from collections.abc import Callable, Collection
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import click
import msgspec

from blurfit.agreement.terms import Terms
from blurfit.commands.common import options

# Terms that hold several things, each typed with an option of its own.
_SEVERAL = {
    "databases": ("--database", (str, str), "NAME URL", " Give it twice."),
    "signing_keys": ("--signing-key", str, "KEY", " Then give it twice."),
    "weights": ("--weight", (str, float), "NAME VALUE", " Give it for every column."),
}

# Terms of which only one choice is typed, because the other is what nothing typed means.
_SAID_OUT_LOUD = {"admission": ("--anyone", "anyone", "Let anyone take part, without invitations")}


def term_options(*names: str, required: Collection[str] = ()) -> Callable[[Any], Any]:
    """An option for each of some terms, such as --weight-bound for `weight_bound`."""
    hints = get_type_hints(Terms, include_extras=True)
    fields = {field.name: field for field in msgspec.structs.fields(Terms)}
    return options(*(_option(name, hints[name], fields[name], name in required) for name in names))


def given(typed: dict[str, Any]) -> dict[str, Any]:
    """The terms among what was typed, as `Terms` has them."""
    found = {name: value for name, value in typed.items() if value not in (None, ())}
    if "weights" in found:
        found["weights"] = dict(found["weights"])
    return found


def _option(name: str, hint: Any, field: Any, required: bool) -> Callable[[Any], Any]:
    kind, *details = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    said = next((one.description for one in details if isinstance(one, msgspec.Meta)), None) or ""
    if name in _SEVERAL:
        flag, several, metavar, how = _SEVERAL[name]
        return click.option(
            flag, name, type=several, metavar=metavar, multiple=True, help=said + how
        )
    if name in _SAID_OUT_LOUD:
        flag, value, what = _SAID_OUT_LOUD[name]
        return click.option(
            flag,
            name,
            flag_value=value,
            default=None,
            help=f"{what}: then nobody can tell how many of the submissions are honest people's, "
            "whom the promise needs.",
        )
    flag = name.replace("_", "-")
    unset: dict[str, Any] = {}
    if _type(kind) is bool:
        flag, unset = f"{flag}/--no-{flag}", {"default": None}  # which click takes for False
    default = None if field.required else field.default
    if default not in (None, 0.0) and not isinstance(default, bool):
        said += f"  [default: {default}]"
    return click.option(f"--{flag}", type=_type(kind), required=required, help=said, **unset)


def _type(kind: Any) -> Any:
    """What click checks: a number, or one of some words; None is what is not given."""
    if get_origin(kind) is UnionType or NoneType in get_args(kind):
        (kind,) = (one for one in get_args(kind) if one is not NoneType)
    return click.Choice(get_args(kind)) if get_origin(kind) is Literal else kind
