"""What commands read from their command line and files: a proposal or an agreement, and tables.

A proposal is a schema's file (see `blurfit.schema.schema`) with what is proposed beside it, all of
it optional:

    [terms]
    epsilon = 1.0        # any of `blurfit.agreement.terms`
    delta = 1e-6
    quorum = 5000
"""

import math
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blurfit.agreement.terms import TERMS
from blurfit.errors import InvalidValueError

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.schema.schema import Schema

PER_DECADE = 2  # points of a range such as 1e3:1e9


@dataclass(frozen=True)
class ProposalFile:
    """A schema, and what is proposed for its agreement; or an agreement that is made already."""

    schema: "Schema"
    terms: dict[str, Any] = field(default_factory=dict)
    agreement: "Agreement | None" = None


def read_proposal(path: Path) -> ProposalFile:
    """An agreement from .json, verified, or a proposal from .toml."""
    from blurfit.agreement.agreement import Agreement
    from blurfit.schema.schema import Schema

    if path.suffix == ".json":
        agreement = Agreement.load(path)
        return ProposalFile(agreement.schema, agreement=agreement)
    schema = Schema.from_toml(path)
    terms = tomllib.loads(path.read_text(encoding="utf-8")).get("terms", {})
    if not isinstance(terms, dict):
        raise InvalidValueError(f"{path}: Expected terms={terms!r} to be a table, [terms].")
    unknown = sorted(set(terms) - set(TERMS))
    if unknown:
        raise InvalidValueError(
            f"{path}: Expected terms to be among {', '.join(sorted(TERMS))}, and got {unknown}."
        )
    return ProposalFile(schema, terms)


class Numbers(click.ParamType):  # type: ignore[type-arg]
    """Numbers as 1,3,10 or as a range 0.1:10, of which two points a decade are taken."""

    name = "range"

    def convert(
        self, value: Any, _param: click.Parameter | None, _ctx: click.Context | None
    ) -> tuple[float, ...]:
        """The numbers themselves."""
        if isinstance(value, tuple):
            return value
        try:
            return _numbers(str(value))
        except ValueError:
            self.fail(f"{value!r} is neither a list such as 1,3,10 nor a range such as 0.1:10.")


def _numbers(text: str) -> tuple[float, ...]:
    if ":" not in text:
        found = [float(part) for part in text.split(",")]
    else:
        first, last = (float(part) for part in text.split(":"))
        if not 0 < first <= last < float("inf"):
            raise ValueError
        steps = max(1, round(PER_DECADE * math.log10(last / first)))
        ratio = last / first
        found = [float(f"{first * ratio ** (k / steps):.2g}") for k in range(steps + 1)]
    if not all(0 < value < float("inf") for value in found):
        raise ValueError
    return tuple(dict.fromkeys(found))
