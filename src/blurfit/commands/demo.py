"""`blurfit demo`: all parties on this machine, with people who do not exist."""

from pathlib import Path

import click
from rich.console import Console

from blurfit.commands.common import answer, as_json


@click.command(epilog="Example: blurfit demo --split --contributors 2000 --out demo")
@click.option("--split", is_flag=True, help="Share between two databases that publish together.")
@click.option(
    "--contributors",
    type=click.IntRange(1000),
    default=50_000,
    show_default=True,
    help="How many generated people take part.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build/demo"),
    show_default=True,
    help="Where the plot and the model are written.",
)
@as_json
def demo(split: bool, contributors: int, out: Path, as_json: bool) -> None:
    """Let generated people agree, blur, send, and get a model."""
    from blurfit.demo import one_database, two_databases

    play = two_databases.main if split else one_database.main
    play(out, contributors, Console(stderr=as_json))
    answer(
        {"contributors": contributors, "split": split, "out": str(out)},
        f"{contributors:,} people took part; everything is in {out}.",
        as_json=as_json,
    )
