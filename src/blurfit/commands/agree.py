"""`blurfit agree`: from a schema and a promise to the contract that everyone shares."""

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from blurfit.agreement.agreement import LOSSES, Agreement
from blurfit.agreement.promises import either_in_words, together_in_words
from blurfit.commands.common import answer, as_json, out_file
from blurfit.commands.presentation import report
from blurfit.schema.schema import Schema
from blurfit.theory.calibration import MECHANISMS, RULES
from blurfit.theory.setting import NEIGHBOURS


@click.command(
    epilog="Example: blurfit agree schema.toml --epsilon 1 --delta 1e-6 --quorum 5000 "
    "--out agreement.json"
)
@click.argument("schema", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--epsilon", type=float, required=True, help="ε of the published model.")
@click.option("--delta", type=float, required=True, help="δ of the published model.")
@click.option("--quorum", type=int, required=True, help="The least number of contributors.")
@out_file("Where the agreement is written.", default=Path("agreement.json"), show_default=True)
@click.option("--loss", type=click.Choice(LOSSES), help="Default: the file's, or by the target.")
@click.option("--mechanism", type=click.Choice(MECHANISMS), default="moment", show_default=True)
@click.option("--rule", type=click.Choice(RULES), default="certified", show_default=True)
@click.option("--neighbours", type=click.Choice(NEIGHBOURS), default="replace", show_default=True)
@click.option("--weight-bound", type=float, help="η, bound on the model's ‖w‖; needed by input.")
@click.option("--l1", type=float, default=0.0, show_default=True, help="Weight of ‖w‖₁.")
@click.option("--l2", type=float, default=0.0, show_default=True, help="Weight of ½‖w‖².")
@click.option("--local-epsilon", type=float, help="A target ε for a single submission too.")
@click.option("--local-delta", type=float, help="δ for a single submission.")
@click.option(
    "--split",
    "databases",
    type=(str, str),
    metavar="NAME URL",
    multiple=True,
    help="Split trust: who runs one of two databases, and where; give it twice.",
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
        promise |= {"trust": "split", "databases": databases}
    agreement = Agreement.propose(found.schema, loss=loss or found.loss, **promise)
    agreement.save(out)
    if not as_json:
        Console().print(report(agreement.calibration))
        if databases:
            click.echo(either_in_words(agreement.databases, agreement.epsilon, agreement.delta))
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
