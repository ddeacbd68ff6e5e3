"""What public rows are worth, for people to read: the answer, then the table it comes from."""

import math
from typing import TYPE_CHECKING

from blurfit.commands.forecast_report import number

_LITTLE = 0.01  # of the way, which is about what the draws of a forecast differ by

if TYPE_CHECKING:
    from rich.console import RenderableType

    from blurfit.forecast.choices import Beside, PublicForecast


def public_report(found: "PublicForecast") -> "RenderableType":
    """Answers first; of a sweep, those for the largest number of contributors."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    largest = max(one.contributors for one in found.cases)
    answers = [
        Text(public_answer(found, one)) for one in found.cases if one.contributors == largest
    ]
    table = Table()
    for head in ("contributors", "ε", "local ε", "alone", "with public rows", "no privacy"):
        table.add_column(head, justify="right")
    for one in found.cases:
        table.add_row(
            f"{one.contributors:,}",
            f"{one.epsilon:g}",
            "–" if one.local_epsilon is None else f"{one.local_epsilon:g}",
            *map(_told, (one.alone, one.with_public_rows, one.without_privacy)),
        )
    unit = "share of wrong predictions" if found.is_label else "root mean squared error"
    intro = Text(
        f"Error ({unit}), mean over collections. Population: {found.population}; {found.rows:,} "
        f"public rows are read. Always guessing the same: {number(found.constant)}. It is assumed "
        "that contributors are like the people in the public rows."
    )
    return Group(*answers, Text(), intro, table)


def public_answer(found: "PublicForecast", one: "Beside") -> str:
    """One case in a sentence."""
    promise = f"ε = {one.epsilon:g}"
    if one.local_epsilon is not None:
        promise += f" and a local ε = {one.local_epsilon:g}"
    start = f"With {one.contributors:,} contributors at {promise},"
    if math.isnan(one.with_public_rows):
        return f"{start} no model can be had with these public rows."
    if not min(one.with_public_rows, one.alone) < found.constant:
        return (
            f"{start} the noise leaves no model worth having: always guessing the same has the "
            f"error {number(found.constant)}, the model {_told(one.with_public_rows)} with public "
            f"rows and {_told(one.alone)} without."
        )
    ways = [
        "nothing at all"
        if math.isnan(error)
        else f"{max(found.way(error), 0.0):.0%} of the way from a constant to no privacy"
        for error in (one.alone, one.with_public_rows)
    ]
    return (
        f"{start} public rows {_verdict(found, one)}: the model goes {ways[1]} with them (error "
        f"{_told(one.with_public_rows)}), {ways[0]} without (error {_told(one.alone)})."
    )


def _verdict(found: "PublicForecast", one: "Beside") -> str:
    gain = found.way(one.with_public_rows) - found.way(one.alone)
    if abs(gain) < _LITTLE:
        return "make little difference"
    return "do not help" if gain < 0 else "help"  # where there is nothing else, too


def _told(error: float) -> str:
    return "–" if math.isnan(error) else number(error)
