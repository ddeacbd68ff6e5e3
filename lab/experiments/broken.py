"""The audit's teeth: what it finds of mechanisms that are broken on purpose, and of their twins.

`PYTHONPATH=tests python lab/experiments/broken.py` prints a table for docs/audit.md: what is broken
on purpose lives with the tests, and not in the package. Contributors take no seed, so the last
digits change from run to run.
"""

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from support.broken import broken_mechanisms  # type: ignore[import-not-found]


@click.command()
@click.option("--confidence", default=0.9999, show_default=True, help="Of each lower bound.")
def main(confidence: float) -> None:
    """Attack each of them."""
    table = Table("mechanism", "promised ε", "audited", "honest twin", "attack", "caught")
    for name, one in track(broken_mechanisms().items(), description="Attacking"):
        found, twin = (one.audit(honest=honest, confidence=confidence) for honest in (False, True))
        numbers = (f"{value:.3g}" for value in (found.promised, found.audited, twin.audited))
        table.add_row(name, *numbers, found.attack, "yes" if found.broken else "no")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
