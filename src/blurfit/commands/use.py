"""What a model's user types: `blurfit predict`, `blurfit statement`."""

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from blurfit.commands.common import answer, as_json, out_file
from blurfit.errors import InvalidValueError

if TYPE_CHECKING:
    from blurfit.model.published import PublishedModel
    from blurfit.schema.table_files import TableFile

_model = click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.command(epilog="Example: blurfit predict model.json people.csv --out predictions.csv")
@_model
@click.argument("table", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@out_file("A CSV file with a line for each row; default: standard output.")
@as_json
def predict(model: Path, table: Path, out: Path | None, as_json: bool) -> None:
    """Predict for each row of a TABLE (.csv, .parquet) with a published MODEL."""
    from blurfit.model.published import PublishedModel
    from blurfit.schema.table_files import TableFile

    published = PublishedModel.load(model)
    file = TableFile(table, published.agreement.schema, target=False)
    if out is None:
        if as_json:
            raise InvalidValueError("Expected --out besides --json: predictions are CSV.")
        _write(published, file, sys.stdout)
        return
    if out.exists() and out.samefile(table):
        raise InvalidValueError(f"Expected --out {str(out)!r} to be another file than the table.")
    # Beside it, and renamed at the end: what is refused in the middle leaves nothing behind.
    unfinished = out.with_name(out.name + ".part")
    try:
        with unfinished.open("w", newline="", encoding="utf-8") as stream:
            rows = _write(published, file, stream)
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)
    sentence = f"Wrote {rows:,} predictions to {out}."
    answer({"rows": rows, "out": str(out)}, sentence, as_json=as_json)


@click.command(epilog="Example: blurfit statement model.json")
@_model
@click.option(
    "--format",
    "kind",
    type=click.Choice(["markdown", "html", "yaml"]),
    default="markdown",
    show_default=True,
)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON for scripts.")
def statement(model: Path, kind: str, as_json: bool) -> None:
    """Print the privacy statement of a published MODEL: what is promised to whom."""
    from blurfit.model import statement as written
    from blurfit.model.published import PublishedModel

    published = PublishedModel.load(model)
    promise, local = published.guarantee, published.agreement.calibration.local
    answer(
        {
            "epsilon": promise.epsilon,
            "delta": promise.delta,
            "neighbours": promise.neighbours,
            "releases": promise.releases,
            "proved": promise.proved,
            "count": published.count,
            "quorum": published.agreement.quorum,
            "local_mu": local.mu,
            "local_epsilon": local.epsilon,
            "local_delta": local.delta,
        },
        getattr(written, f"as_{kind}")(published),
        as_json=as_json,
    )


def _write(model: "PublishedModel", file: "TableFile", stream: TextIO) -> int:
    """A heading, and a line for each row; how many rows there were is returned."""
    lines, schema, rows = csv.writer(stream), model.agreement.schema, 0
    name = schema.target.name
    lines.writerow([name, "probability"] if schema.is_label else [name])
    for part in file.chunks():
        with file.located(rows):
            lines.writerows(_lines(model, part))
        rows += len(next(iter(part.values())))
    return rows


def _lines(model: "PublishedModel", part: dict[str, Any]) -> list[list[Any]]:
    if not model.agreement.schema.is_label:
        return [[float(value)] for value in model.predict(part)]
    return [[int(share > 0.5), round(float(share), 6)] for share in model.predict_proba(part)[:, 1]]
