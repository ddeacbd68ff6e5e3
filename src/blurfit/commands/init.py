"""`blurfit init`: an example to adapt, so that nobody starts with an empty folder."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from blurfit.commands.common import EXISTING_FILE, answer, as_json, next_step, write_csv
from blurfit.errors import InvalidValueError

PEOPLE, SEED = 20_000, 2026
EXAMPLE = files("blurfit.commands").joinpath("survey/schema.toml")


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
    """Generated people, with the columns of the example's schema."""
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
