"""`blurfit withdraw`: take back what a receipt is for, before the collection closes."""

from dataclasses import asdict
from pathlib import Path

import click

from blurfit.commands.common import RefusedError, answer, as_json


@click.command(epilog="Example: blurfit withdraw receipt.json")
@click.argument("receipt", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--row",
    "rows",
    type=click.IntRange(1),
    multiple=True,
    help="Only this row of the table, counted from 1; may be given several times. Default: all.",
)
@click.option(
    "--patience",
    type=click.FloatRange(0, 1e9),
    default=60.0,
    show_default=True,
    help="Seconds to go on trying where nobody answers.",
)
@as_json
def withdraw(receipt: Path, rows: tuple[int, ...], patience: float, as_json: bool) -> None:
    """Withdraw what a RECEIPT is for, until its collection closes.

    Nobody can come back: what was withdrawn is refused if it is sent again, and its invitation
    stays used. Do not blur the same people anew: that would be a second look at their records.
    Stopped in the middle, run it again.
    """
    from blurfit.contributor.receipt import Receipt
    from blurfit.contributor.withdrawing import withdraw as ask

    found = ask(
        Receipt.load(receipt),
        {row - 1 for row in rows} if rows else None,
        patience=patience,
    )
    if found.staying and not found.out:
        raise RefusedError(found.reason)
    told = f"{found.out:,} submissions are withdrawn: they are in no sum, and will be in none."
    if found.unknown:
        told += f" {found.unknown:,} of them were never stored."
    if found.staying:
        told += f" {found.staying:,} stay: {found.reason}"
    answer(asdict(found), told, as_json=as_json)
