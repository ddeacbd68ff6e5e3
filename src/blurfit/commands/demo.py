"""`blurfit demo`: all parties on this machine, with people who do not exist."""

from pathlib import Path

import click

from blurfit.commands.common import answer, as_json


@click.command(epilog="Example: blurfit demo --two-databases --contributors 2000 --out demo")
@click.option(
    "--two-databases",
    is_flag=True,
    help="Share each record between two databases that publish together.",
)
@click.option(
    "--waves", is_flag=True, help="Ask for a label in waves, for the exact logistic model."
)
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
def demo(two_databases: bool, waves: bool, contributors: int, out: Path, as_json: bool) -> None:
    """Let generated people agree, blur, send and get a model."""
    from rich.console import Console

    from blurfit.demo import in_waves, one_database, waves_at_two
    from blurfit.demo import two_databases as with_two

    plays = {
        (False, False): one_database.main,
        (True, False): with_two.main,
        (False, True): in_waves.main,
        (True, True): waves_at_two.main,
    }
    play = plays[two_databases, waves]
    play(out, contributors, Console(stderr=as_json))
    answer(
        {
            "contributors": contributors,
            "two_databases": two_databases,
            "waves": waves,
            "out": str(out),
        },
        f"{contributors:,} people took part; everything is in {out}.",
        as_json=as_json,
    )
