"""A forecast for people to read: answers in sentences, and a table of errors."""

import math
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from blurfit.agreement.terms import Mechanism
from blurfit.forecast.choices import Advice
from blurfit.forecast.sweep import LEVEL, Case, Forecast
from blurfit.model.liars import SHARE, moved_in_words


def report(found: Forecast, tolerance: float, advice: Sequence[Advice] = ()) -> RenderableType:
    """What people ask first, and then the tables that the answers come from."""
    unit = "share of wrong predictions" if found.is_label else "root mean squared error"
    intro = Text(
        f"Error ({unit}) over that of the same people's model without privacy, with its "
        f"{LEVEL:.0%} band. Population: {found.population}. Without privacy and with everyone: "
        f"{number(found.best)}; always guessing the same: {number(found.constant)}."
    )
    tables = [
        _table(found, mechanism, local)
        for mechanism, local in dict.fromkeys(
            (one.mechanism, one.local_epsilon) for one in found.cases
        )
    ]
    chosen = (Text(advice_in_words(one)) for one in advice)
    return Group(*answers(found, tolerance), *chosen, Text(), intro, *tables)


def liars_in_words(moved: Mapping[str, float | None], called: Mapping[str, str]) -> str:
    """What one liar in a hundred contributors could do at worst, by columns as people call them."""
    return (
        f"If {SHARE} of the contributors lie together, knowing everything, they can move "
        f"coefficients by up to: {moved_in_words(moved, called)}."
    )


def number(value: float) -> str:
    """Four digits, never an exponent: 26,480 and 0.3142."""
    digits = 3 - math.floor(math.log10(abs(value))) if value else 0
    return f"{round(value, digits):,.{max(digits, 0)}f}"


def answers(found: Forecast, tolerance: float) -> list[RenderableType]:
    """How many contributors, with which ε; which mechanism; and what a local target costs."""
    needed = {line: found.contributors_needed(line, tolerance) for line in found.lines()}
    least = min(one.contributors for one in found.cases)
    epsilons = list(dict.fromkeys(epsilon for _, epsilon, _ in needed))
    kinds = list(dict.fromkeys((mechanism, local) for mechanism, _, local in needed))
    title = Text(f"Contributors needed for an error within {tolerance:.0%} of no privacy, about:")
    table = Table()
    table.add_column("mechanism")
    for epsilon in epsilons:
        table.add_column(f"ε = {epsilon:g}", justify="right")
    for mechanism, local in kinds:
        counts = (needed[mechanism, epsilon, local] for epsilon in epsilons)
        table.add_row(_kind(mechanism, local), *(_count(count, least) for count in counts))
    # a size that the sweep's smallest already suffices for says nothing about ratios
    sure = {line: count for line, count in needed.items() if count is not None and count > least}
    lines = []
    for mechanism, local in kinds:
        if local is not None:
            costs = _ratios(sure, epsilons, (mechanism, local), (mechanism, None))
            if costs:
                lines.append(f"A local ε of {local:g} takes {costs} times as many ({mechanism}).")
    for local in dict.fromkeys(local for _, local in kinds):
        gain = _ratios(sure, epsilons, ("input", local), ("moment", local))
        where = f" with a local ε of {local:g}" if local is not None else ""
        if gain:
            lines.append(f"input takes {gain} times as many as moment{where}.")
    return [title, table, *(Text(line) for line in lines)]


def _kind(mechanism: str, local: float | None) -> str:
    return mechanism + (f", local ε = {local:g}" if local is not None else "")


def _count(count: int | None, least: int) -> str:
    if count is None:
        return "more"
    return f"≤ {least:,}" if count <= least else f"{float(f'{count:.2g}'):,.0f}"


def _ratios(
    counts: Mapping[tuple[Mechanism, float, float | None], int],
    epsilons: Sequence[float],
    one: tuple[Mechanism, float | None],
    other: tuple[Mechanism, float | None],
) -> str:
    """The least and the largest ratio over ε of what the one and the other need."""
    found = [
        counts[one[0], epsilon, one[1]] / counts[other[0], epsilon, other[1]]
        for epsilon in epsilons
        if (one[0], epsilon, one[1]) in counts and (other[0], epsilon, other[1]) in counts
    ]
    texts = [f"{value:,.2g}" if value < 10 else f"{value:,.0f}" for value in sorted(found)]
    return " to ".join(dict.fromkeys((texts[0], texts[-1]))) if texts else ""


def advice_in_words(advice: Advice) -> str:
    """What to write into the contract, and what it gains."""
    before, after = advice.before, advice.after
    place = f"{before.mechanism}, ε = {before.epsilon:g}" + (
        f", local ε = {before.local_epsilon:g}" if before.local_epsilon else ""
    )
    place += f", {before.contributors:,} contributors"
    if not advice.terms or number(before.error) == number(after.error):
        return f"{place}: the default terms are as good as any that were tried."
    chosen = ", ".join(
        f"{name} = {value if isinstance(value, dict) else format(value, 'g')}"
        for name, value in advice.terms.items()
    )
    return (
        f"{place}: {chosen} brings the error from {number(before.error)} to {number(after.error)} "
        f"({before.ratio:.3f} to {after.ratio:.3f} times that without privacy)."
    )


def _table(found: Forecast, mechanism: str, local: float | None) -> Table:
    chosen = [
        one for one in found.cases if (one.mechanism, one.local_epsilon) == (mechanism, local)
    ]
    title = mechanism + (f", local ε = {local:g}" if local else "")
    epsilons = list(dict.fromkeys(one.epsilon for one in chosen))
    table = Table(title=title, title_justify="left")
    table.add_column("contributors", justify="right", no_wrap=True)
    for epsilon in epsilons:
        table.add_column(f"ε = {epsilon:g}", justify="right", no_wrap=True)
    rows: dict[int, list[str]] = {}
    for one in chosen:  # by contributors, and for each of them by ε
        rows.setdefault(one.contributors, []).append(_cell(one))
    for count, cells in rows.items():
        rest = [later for larger, later in rows.items() if larger > count]
        if rest and all(later == cells for later in rest):
            table.add_row(f"{count:,} to {max(rows):,}", *cells)  # nothing is known of more
            break
        table.add_row(f"{count:,}", *cells)
    return table


def _cell(case: Case) -> str:
    if not math.isfinite(case.error):
        return "–"
    base = case.without_privacy
    text = f"{case.ratio:.3f}\n{case.lower / base:.2f}–{case.upper / base:.2f}"
    return text + (f"\n{case.refused:.0%} refused" if case.refused else "")
