"""What a model's user types: `blurfit predict`, `blurfit statement`."""

import csv
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from blurfit.agreement.files import TableFile
from blurfit.commands.common import answer, as_json
from blurfit.errors import InvalidValueError
from blurfit.model.published import PublishedModel
from blurfit.model.statement import as_html, as_markdown, as_yaml

_FORMATS: dict[str, Callable[[PublishedModel], str]] = {
    "markdown": as_markdown,
    "html": as_html,
    "yaml": as_yaml,
}
_model = click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.command(epilog="Example: blurfit predict model.json people.csv --out predictions.csv")
@_model
@click.argument("table", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A CSV file with a line for each row; default: standard output.",
)
@as_json
def predict(model: Path, table: Path, out: Path | None, as_json: bool) -> None:
    """Predict for each row of a TABLE (.csv, .parquet) with a published MODEL."""
    published = PublishedModel.load(model)
    schema = published.agreement.schema
    rows = 0
    if as_json and out is None:
        raise InvalidValueError("Expected --out besides --json: predictions are written as CSV.")
    with out.open("w", newline="", encoding="utf-8") if out else sys.stdout as file:
        lines = csv.writer(file)
        name = schema.target.name
        lines.writerow([name, "probability"] if schema.is_label else [name])
        for part in TableFile(table, schema, target=False).chunks():
            lines.writerows(_lines(published, part))
            rows += len(next(iter(part.values())))
    if out is not None:
        sentence = f"Wrote {rows:,} predictions to {out}."
        answer({"rows": rows, "out": str(out)}, sentence, as_json=as_json)


@click.command(epilog="Example: blurfit statement model.json")
@_model
@click.option(
    "--format", "kind", type=click.Choice(list(_FORMATS)), default="markdown", show_default=True
)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON for scripts.")
def statement(model: Path, kind: str, as_json: bool) -> None:
    """Print the privacy statement of a published MODEL: what is promised to whom."""
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
        _FORMATS[kind](published),
        as_json=as_json,
    )


def _lines(model: PublishedModel, part: dict[str, Any]) -> list[list[Any]]:
    predicted = model.predict(part)
    if not model.agreement.schema.is_label:
        return [[float(value)] for value in predicted]
    likely = model.predict_proba(part)[:, 1]
    return [
        [int(value), round(float(share), 6)] for value, share in zip(predicted, likely, strict=True)
    ]
