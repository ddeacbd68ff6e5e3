"""`blurfit quickstart`: watch a collection fill up, take part in it, and read its model."""

import signal
import threading
from importlib.resources import as_file

import click


@click.command(epilog="Example: blurfit quickstart --people 2000 --seconds 20")
@click.option(
    "--people",
    type=click.IntRange(1000, 100_000),
    default=20_000,
    show_default=True,
    help="How many generated people take part; this is also the quorum.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, 3600),
    default=30.0,
    show_default=True,
    help="How long they take to arrive.",
)
@click.option("--browser/--no-browser", default=True, help="Open the pages in a browser or not.")
def quickstart(people: int, seconds: float, browser: bool) -> None:
    """Run an example on this machine: watch it fill up, take part, read the model.

    Nothing is kept afterwards.
    """
    import webbrowser

    from rich.console import Console

    from blurfit.commands.init import EXAMPLE, SEED, made_up_people
    from blurfit.commands.proposals import read_proposal
    from blurfit.demo.quickstart import main

    ended = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: ended.set())
    with as_file(EXAMPLE) as example:
        schema = read_proposal(example).schema
    main(
        schema,
        made_up_people(people, SEED),
        seconds,
        console=Console(),
        ended=ended,
        opened=webbrowser.open if browser else lambda _: None,
    )
    click.echo("Ended. Next: `blurfit init survey` writes a survey of your own.")
