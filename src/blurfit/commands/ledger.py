"""`blurfit ledger`: what was sent from this account, and what it adds up to."""

from dataclasses import asdict

import click

from blurfit.commands.common import answer, as_json


@click.command(epilog="Example: blurfit ledger --delta 1e-9")
@click.option(
    "--delta",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=1e-6,
    show_default=True,
    help="The δ of the total.",
)
@click.option("--erase", is_flag=True, help="Erase all entries. What was sent stays sent.")
@as_json
def ledger(delta: float, erase: bool, as_json: bool) -> None:
    """Tell what was sent from this account, to whom and when, and what it all adds up to.

    The list is a file of your own, in BLURFIT_HOME or ~/.blurfit, and nobody else sees it.
    """
    from blurfit.agreement.promises import at_most
    from blurfit.contributor.account import Ledger, total

    book = Ledger()
    if erase:
        count = book.erase()
        answer({"erased": count}, f"Erased {count} entries.", as_json=as_json)
        return
    entries = book.entries()
    sums = total(entries, delta)
    lines = [
        f"{one.at}  {one.title}{f' ({one.organiser})' if one.organiser else ''}\n"
        f"    {one.rows:,} rows to {one.where}, ε = {at_most(one.epsilon, 6)}, "
        f"δ = {at_most(one.delta, 6)}, "
        f"{one.neighbours} one record; agreement {one.fingerprint[:12]}"
        for one in entries
    ]
    for relation, epsilon in sums.items():
        lines.append(
            f"For anyone who is in all of them ({relation} one record), everything that is "
            f"published has ε = {at_most(epsilon)} together, at δ = {delta:g}."
        )
    answer(
        {"entries": [asdict(one) for one in entries], "delta": delta, "together": sums},
        "\n".join(lines) or "Nothing has been sent from this account.",
        as_json=as_json,
    )
