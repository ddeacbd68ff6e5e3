"""The terms of an agreement as a command's options: names, types, defaults, help from `Terms`."""

from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import click
import msgspec

from blurfit.agreement.terms import Terms
from blurfit.commands.common import options


def term_options(*names: str) -> Callable[[Any], Any]:
    """An option for each of some terms, such as --weight-bound for `weight_bound`."""
    hints = get_type_hints(Terms, include_extras=True)
    fields = {field.name: field for field in msgspec.structs.fields(Terms)}
    return options(*(_option(name, hints[name], fields[name]) for name in names))


def _option(name: str, hint: Any, field: Any) -> Callable[[Any], Any]:
    kind, *details = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    said = next((one.description for one in details if isinstance(one, msgspec.Meta)), "")
    default = {} if field.required else {"default": field.default}
    return click.option(
        f"--{name.replace('_', '-')}",
        type=_type(kind),
        required=field.required,
        show_default=default.get("default") is not None,
        help=said,
        **default,
    )


def _type(kind: Any) -> Any:
    """What click checks: a number, or one of some words; None is what is not given."""
    if get_origin(kind) is UnionType or NoneType in get_args(kind):
        (kind,) = (one for one in get_args(kind) if one is not NoneType)
    return click.Choice(get_args(kind)) if get_origin(kind) is Literal else kind
