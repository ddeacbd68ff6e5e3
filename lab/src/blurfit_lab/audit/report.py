"""Findings in words: the promised ε, the lower bound of each attack, and the verdict."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from blurfit_lab.audit.agreements import Lie
from blurfit_lab.audit.examination import Finding

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


def report(
    findings: Sequence[Finding], confidence: float, subject: str = "agreement"
) -> "RenderableType":
    """Show what was promised, what was found, and how they compare."""
    from rich.console import Group
    from rich.text import Text

    scope = "each" if subject == "agreement" else "all together"
    views = dict.fromkeys((one.view, one.promised) for one in findings)
    tables = (
        _findings_table([one for one in findings if (one.view, one.promised) == key])
        for key in views
    )
    heading = Text(f"Lower bounds on ε, {scope} with confidence {confidence:g}.")
    return Group(Text(verdict(findings, subject)), Text(), heading, *tables)


def _findings_table(findings: Sequence[Finding]) -> "Table":
    """Show the findings of one view, its title, so that the table fits into 80 columns."""
    from rich.table import Table

    view, promised = findings[0].view, findings[0].promised
    table = Table(title=f"{view}: ε = {promised:.4g} is promised", title_justify="left")
    for name in ("neighbours", "attack"):
        table.add_column(name)
    for name in ("counted", "Gaussian", "exact", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in findings:
        table.add_row(
            one.pair,
            one.attack,
            *(_number(x) for x in (one.counted, one.gaussian, one.exact)),
            f"{one.ratio:.2f}",
            style="bold red" if one.broken else None,
        )
    return table


def verdict(findings: Sequence[Finding], subject: str = "agreement") -> str:
    """Return a sentence that says no more than was found."""
    broken = [one for one in findings if one.broken]
    if broken:
        worst = max(broken, key=lambda one: one.ratio)
        return (
            f"BROKEN: the {worst.view} has ε of at least {worst.audited:.3g} where "
            f"{worst.promised:.3g} is promised ({worst.pair}). Do not use this {subject}."
        )
    tightest = max(findings, key=lambda one: one.ratio)
    proof = ": proofs are in blurfit.theory.moments"
    proof = proof if subject == "agreement" else ""
    return (
        f"No attack exceeded what is promised; the best reached {tightest.ratio:.0%} of it "
        f"({tightest.view}, {tightest.pair}). This refutes nothing, and proves nothing{proof}."
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def proofs_in_words(told: Sequence[Lie]) -> str:
    """Say how many false proofs were accepted."""
    honest, *others = told
    tries = sum(one.tries for one in others)
    believed = [one for one in others if one.broken]
    if honest.broken:
        return f"Proofs: {honest.believed} of {honest.tries} honest ones were rejected: BROKEN."
    if believed:
        names = "; ".join(f"{one.name} ({one.believed} of {one.tries})" for one in believed)
        return f"Proofs: lies were accepted: BROKEN. {names}."
    return (
        f"Proofs: {len(others)} ways to lie, {tries:,} tries, none accepted; {honest.tries} honest "
        "ones, as long as they may be, all accepted."
    )
