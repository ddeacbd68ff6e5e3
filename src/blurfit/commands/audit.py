"""`blurfit audit`: attack an agreement's guarantees, by the code that it is carried out with."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from blurfit.audit import CONFIDENCE, TRIALS
from blurfit.commands.common import load_agreement, picture_file, wrote

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.audit.examination import Finding


@click.command(name="audit", epilog="Example: blurfit audit docs/examples/survey.json --trials 200")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--trials",
    type=int,
    default=TRIALS,
    show_default=True,
    help="Models learned for each of two neighbours; up to 50 times as many submissions.",
)
@click.option(
    "--confidence", type=float, default=CONFIDENCE, show_default=True, help="Of each lower bound."
)
@click.option("--seed", type=int, default=0, show_default=True, help="For the crowd's noise.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
@picture_file
def audit_command(
    file: Path, trials: int, confidence: float, seed: int, as_json: bool, picture: Path | None
) -> None:
    """Attack what the agreement in FILE (.json) promises; exit code 1 if a promise is broken."""
    from rich.console import Console

    from blurfit.commands.audit_report import plot, report

    findings = _attack(load_agreement(file), trials, confidence, seed)
    if picture is not None:
        plot(findings, picture)
        wrote(picture)
    if as_json:
        click.echo(json.dumps([one.to_dict() for one in findings], indent=2))
    else:
        Console().print(report(findings, confidence))
    if any(one.broken for one in findings):
        raise SystemExit(1)


def _attack(agreement: "Agreement", trials: int, confidence: float, seed: int) -> "list[Finding]":
    from rich.console import Console
    from rich.progress import Progress

    from blurfit.audit.findings import audit_agreement, number_of_attacks

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("Attacking", total=number_of_attacks(agreement))

        def begin(name: str) -> None:
            progress.update(task, description=name, advance=1)

        return audit_agreement(
            agreement, trials=trials, confidence=confidence, seed=seed, progress=begin
        )
