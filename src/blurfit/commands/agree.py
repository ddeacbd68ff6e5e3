"""`blurfit agree`: from a schema and a promise to the contract that everyone shares."""

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.promises import either_in_words, together_in_words
from blurfit.commands.common import answer, as_json, out_file
from blurfit.commands.presentation import report
from blurfit.commands.terms import term_options
from blurfit.schema.schema import Schema


@click.command(
    epilog="Example: blurfit agree schema.toml --epsilon 1 --delta 1e-6 --quorum 5000 "
    "--out agreement.json"
)
@click.argument("schema", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@term_options("epsilon", "delta", "quorum")
@out_file("Where the agreement is written.", default=Path("agreement.json"), show_default=True)
@term_options(
    *("loss", "mechanism", "neighbours", "weight_bound"),
    *("l1", "l2", "local_epsilon", "local_delta", "local_share", "split", "balance"),
)
@click.option(
    "--database",
    "databases",
    type=(str, str),
    metavar="NAME URL",
    multiple=True,
    help="Shared trust: who runs one of two databases, and where; give it twice.",
)
@as_json
def agree(
    schema: Path,
    out: Path,
    loss: Any,
    databases: tuple[tuple[str, str], ...],
    as_json: bool,
    **promise: Any,
) -> None:
    """Write the agreement for a SCHEMA: what is asked, how it is blurred, what is promised.

    SCHEMA is a TOML file with the columns and their public bounds.
    """
    found = Schema.from_toml(schema)
    if databases:
        promise |= {"trust": "shared", "databases": databases}
    agreement = Agreement.propose(found.schema, loss=loss or found.loss, **promise)
    agreement.save(out)
    if not as_json:
        Console().print(report(agreement.calibration))
        if databases:
            promised = (agreement.epsilon, agreement.delta, agreement.quorum)
            names = [one.name for one in agreement.databases]
            click.echo(either_in_words(names, *promised))
            click.echo(together_in_words(agreement.calibration.local))
    answer(
        {
            "agreement": str(out),
            "fingerprint": agreement.fingerprint,
            "dimension": agreement.dimension,
            "local_epsilon": agreement.calibration.local.epsilon,
        },
        f"Wrote {out}, fingerprint {agreement.fingerprint}.",
        as_json=as_json,
    )
