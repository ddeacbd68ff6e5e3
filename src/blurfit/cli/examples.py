"""Examples with people who do not exist: `blurfit init`, `quickstart` and `demo`."""

import json
import signal
import threading
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import click

import blurfit as bf
from blurfit.cli._common import (
    EXISTING_FILE,
    answer,
    as_json,
    next_step,
    with_default,
    write_csv,
)
from blurfit.errors import InvalidValueError

PEOPLE, SEED = 20_000, 2026

EXAMPLE = files("blurfit.cli").joinpath("survey/schema.toml")


@click.command(epilog="Example: blurfit init survey")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--from",
    "source",
    type=EXISTING_FILE,
    help="An existing survey: an XLSForm (.xlsx), a Table Schema or a Data Package (.json).",
)
@click.option("--target", help="With --from: the question to predict.")
@as_json
def init(folder: Path, source: Path | None, target: str | None, as_json: bool) -> None:
    """Write an example survey into a FOLDER: a schema to adapt, and people to try it with.

    The people are generated, so that you can try every command. With --from, the schema is that of
    an existing survey, and no people are generated.
    """
    if source is not None:
        _from_survey(folder, source, target, as_json=as_json)
        return
    if target is not None:
        raise InvalidValueError("Expected --from FILE with --target.")
    schema, people = folder / "schema.toml", folder / "people.csv"
    if taken := [str(path) for path in (schema, people) if path.exists()]:
        raise InvalidValueError(
            f"Expected a folder without {' and '.join(taken)}: nothing is overwritten. Name "
            "another folder."
        )
    folder.mkdir(parents=True, exist_ok=True)
    schema.write_bytes(EXAMPLE.read_bytes())
    with people.open("w", newline="", encoding="utf-8") as stream:
        table = made_up_people(PEOPLE, SEED)
        rows = zip(*(column.tolist() for column in table.values()), strict=True)
        write_csv(stream, [table, *rows])
    answer(
        {"schema": str(schema), "people": str(people), "rows": PEOPLE},
        f"Wrote {schema}, and {people} with {PEOPLE:,} people who do not exist.",
        as_json=as_json,
    )
    next_step(f"`cd {folder}`, then `blurfit agree schema.toml`.", quiet=as_json)


TERMS = """
[terms]                 # what `blurfit agree` promises, unless you type something else
epsilon = 1.0           # the smaller, the stronger; 1 is usual
delta = 1e-6            # the chance that the promise fails; far below one in the quorum
quorum = 10000          # nothing is published from fewer honest people
"""


def _from_survey(folder: Path, source: Path, target: str | None, *, as_json: bool) -> None:
    from blurfit.schema.imports import from_table_schema, from_xlsform
    from blurfit.schema.schema import to_toml

    schema = folder / "schema.toml"
    if schema.exists():
        raise InvalidValueError(
            f"Expected a folder without {schema}: nothing is overwritten. Name another folder."
        )
    if source.suffix.lower() in (".xlsx", ".xlsm"):
        found = from_xlsform(source, target)
    else:
        try:
            document = json.loads(source.read_bytes())
        except ValueError as error:
            raise InvalidValueError(
                f"Expected {str(source)!r} to be an XLSForm (.xlsx), or a Table Schema in JSON: "
                f"{error}."
            ) from error
        found = from_table_schema(document, target)
    folder.mkdir(parents=True, exist_ok=True)
    head = f"# From {source.name}. Check every bound: it must be known before anyone answers.\n\n"
    schema.write_text(f"{head}{to_toml(found.schema)}\n{TERMS}", encoding="utf-8")
    asked = len(found.schema.features) + 1
    words = "".join(f"\n{note}" for note in found.notes)
    answer(
        {"schema": str(schema), "questions": asked, "notes": list(found.notes)},
        f"Wrote {schema}, with {asked} questions from {source.name}.{words}",
        as_json=as_json,
    )
    next_step(f"check {schema}, then `blurfit agree {schema}`.", quiet=as_json)


def made_up_people(count: int, seed: int) -> dict[str, Any]:
    """Generate people, with the columns of the example's schema."""
    import numpy as np

    from blurfit.simulation.census import draw_population

    drawn = draw_population(count, seed)
    marital = np.where(
        drawn["is_married"] == 1, "married", np.where(drawn["is_single"] == 1, "single", "formerly")
    )
    return {
        "age": drawn["age"],
        "education": drawn["education"],
        "marital": marital,
        "owns_home": drawn["owns_dwelling"],
        "income": drawn["annual_income"],
    }


@click.command(epilog="Example: blurfit quickstart --people 2000 --seconds 20")
@with_default(
    "--people",
    20_000,
    "How many generated people take part; this is also the quorum.",
    type=click.IntRange(1000, 100_000),
)
@with_default("--seconds", 30.0, "How long they take to arrive.", type=click.FloatRange(0, 3600))
@click.option("--browser/--no-browser", default=True, help="Open the pages in a browser or not.")
def quickstart(people: int, seconds: float, browser: bool) -> None:
    """Run an example on this machine: watch it fill up, take part, read the model.

    Nothing is kept afterwards.
    """
    import webbrowser

    from rich.console import Console

    from blurfit.demo.quickstart import main

    ended = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: ended.set())
    with as_file(EXAMPLE) as example:
        schema = bf.Schema.from_toml(example)
    main(
        schema,
        made_up_people(people, SEED),
        seconds,
        console=Console(),
        ended=ended,
        opened=webbrowser.open if browser else lambda _: None,
    )
    click.echo("Ended. Next: `blurfit init survey` writes a survey of your own.")


@click.command(epilog="Example: blurfit demo --two-databases --contributors 2000 --out demo")
@click.option(
    "--two-databases",
    is_flag=True,
    help="Share each record between two databases that publish together.",
)
@click.option(
    "--waves", is_flag=True, help="Ask for a label in waves, for the exact logistic model."
)
@with_default(
    "--contributors", 50_000, "How many generated people take part.", type=click.IntRange(1000)
)
@with_default(
    "--out",
    Path("build/demo"),
    "Where the plot and the model are written.",
    type=click.Path(path_type=Path, file_okay=False),
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
