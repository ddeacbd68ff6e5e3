"""`blurfit init`: an example to change, so that nobody starts with an empty folder."""

import csv
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from blurfit.commands.common import answer, as_json, next_step
from blurfit.errors import InvalidValueError

PEOPLE, SEED = 20_000, 2026


@click.command(epilog="Example: blurfit init survey")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@as_json
def init(folder: Path, as_json: bool) -> None:
    """Write an example survey into a FOLDER: a schema to change, and people to try it with.

    The people are generated and do not exist: they are there so that every command can be tried.
    """
    schema, people = folder / "schema.toml", folder / "people.csv"
    if taken := [str(path) for path in (schema, people) if path.exists()]:
        raise InvalidValueError(
            f"Expected a folder without {' and '.join(taken)}: nothing is written over. Name "
            "another folder."
        )
    folder.mkdir(parents=True, exist_ok=True)
    schema.write_bytes(files("blurfit.commands").joinpath("survey/schema.toml").read_bytes())
    with people.open("w", newline="", encoding="utf-8") as stream:
        lines = csv.writer(stream)
        table = made_up_people(PEOPLE, SEED)
        lines.writerow(table)
        lines.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
    answer(
        {"schema": str(schema), "people": str(people), "rows": PEOPLE},
        f"Wrote {schema}, and {people} with {PEOPLE:,} people who do not exist.",
        as_json=as_json,
    )
    next_step(f"`cd {folder}`, then `blurfit agree schema.toml`.", quiet=as_json)


def made_up_people(count: int, seed: int) -> dict[str, Any]:
    """Generated people, with the columns of the example's schema."""
    import numpy as np

    from blurfit.simulation.people import draw_population

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
