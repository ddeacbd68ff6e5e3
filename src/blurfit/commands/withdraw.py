"""`blurfit withdraw`: take back what a receipt is for, before the collection closes."""

from dataclasses import asdict
from pathlib import Path

import click

from blurfit.commands.common import EXISTING_FILE, RefusedError, answer, as_json, patience


@click.command(epilog="Example: blurfit withdraw receipt.json")
@click.argument("receipt", type=EXISTING_FILE)
@click.option(
    "--row",
    "rows",
    type=click.IntRange(1),
    multiple=True,
    help="Only this row of the table, counting from 1; may be given several times. Default: all.",
)
@patience
@as_json
def withdraw(receipt: Path, rows: tuple[int, ...], patience: float, as_json: bool) -> None:
    """Withdraw the submissions of a RECEIPT, as long as their collection is open.

    This is final: what was withdrawn is refused if it is sent again, and its invitation stays used.
    Do not blur the same people again: that would give a second look at their records. If this is
    interrupted, run it again.
    """
    from blurfit.contributor.receipt import Receipt
    from blurfit.contributor.receipt import withdraw as ask

    chosen = {row - 1 for row in rows} if rows else None
    found = ask(Receipt.load(receipt), chosen, patience=patience)
    if found.staying and not found.out:
        raise RefusedError(found.reason)
    told = f"{found.out:,} submissions are withdrawn: they are in no sum, and never will be."
    if found.unknown:
        told += f" {found.unknown:,} of them were never stored."
    if found.staying:
        told += f" {found.staying:,} stay: {found.reason}"
    answer(asdict(found), told, as_json=as_json)
