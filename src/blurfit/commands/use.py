"""What a model's user types: `blurfit predict`, `blurfit statement`."""

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from blurfit.commands.common import (
    EXISTING_FILE,
    answer,
    as_json,
    format_of,
    next_step,
    out_file,
    write_csv,
)
from blurfit.errors import InvalidValueError
from blurfit.private_files import replacing

if TYPE_CHECKING:
    from blurfit.model.published import PublishedModel
    from blurfit.model.statement import Published
    from blurfit.schema.table_files import TableFile

DIGITS = 5  # of a number's whole range: 1 where it goes from 0 to 100,000


@click.command(epilog="Example: blurfit predict model.json people.csv --out predictions.csv")
@click.argument("model", type=EXISTING_FILE)
@click.argument("table", type=EXISTING_FILE)
@click.option(
    "--intervals", is_flag=True, help="Add a lower and an upper bound to each prediction."
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Confidence of the intervals.",
)
@out_file("A CSV file with a line for each row; default: standard output.")
@as_json
def predict(
    model: Path, table: Path, intervals: bool, confidence: float, out: Path | None, as_json: bool
) -> None:
    """Predict for each row of a TABLE (.csv, .parquet) with a published MODEL."""
    from blurfit.model.published import PublishedModel
    from blurfit.schema.table_files import TableFile

    published = PublishedModel.load(model)
    file = TableFile(table, published.agreement.schema, only=published.features)
    level = confidence if intervals else None
    if out is None:
        if as_json:
            raise InvalidValueError("Expected --out besides --json: predictions are CSV.")
        _write(published, file, level, sys.stdout)
        return
    if out.exists() and out.samefile(table):
        raise InvalidValueError(
            f"Expected --out {str(out)!r} to differ from the table, which it would overwrite."
        )
    # What is refused in the middle leaves nothing behind; and what is predicted tells of the rows.
    with replacing(out) as part, part.open("w", newline="", encoding="utf-8") as stream:
        rows = _write(published, file, level, stream)
    sentence = f"Wrote {rows:,} predictions to {out}."
    answer({"rows": rows, "out": str(out)}, sentence, as_json=as_json)
    next_step(f"`blurfit statement {model}` says what the model promises.", quiet=as_json)


@click.command(epilog="Example: blurfit statement model.json")
@click.argument("file", type=EXISTING_FILE)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["markdown", "html", "yaml", "card"]),
    default="markdown",
    show_default=True,
    help="markdown is rendered on a terminal; yaml is for OpenDP's registry of deployments, card "
    "for a model hub.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON for scripts.")
def statement(file: Path, kind: str, as_json: bool) -> None:
    """Print the privacy statement of a published model or of moments in FILE."""
    from blurfit.model.card import as_card
    from blurfit.model.published import PublishedModel
    from blurfit.model.registry import as_yaml
    from blurfit.model.statement import as_html, as_markdown

    published = _published(file)
    facts = published.guarantee.facts() | {
        "count": published.count,
        "quorum": published.agreement.quorum,
    }
    if kind != "card":
        text = {"markdown": as_markdown, "html": as_html, "yaml": as_yaml}[kind](published)
    elif isinstance(published, PublishedModel):
        text = as_card(published)
    else:
        raise InvalidValueError(
            "Expected a model for --format card: fit one to the moments with `blurfit fit`."
        )
    if kind == "markdown" and not as_json and sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
        return
    answer(facts, text, as_json=as_json)


def _published(file: Path) -> "Published":
    """The model, or the moments, in a file."""
    from blurfit.model.moments import PublishedMoments
    from blurfit.model.published import PublishedModel

    return (
        PublishedMoments if format_of(file) == PublishedMoments.FORMAT else PublishedModel
    ).load(file)


def _write(
    model: "PublishedModel", file: "TableFile", confidence: float | None, stream: TextIO
) -> int:
    """A heading, and a line for each row; how many rows there were is returned."""
    rows = 0
    heading = [_heading(model, confidence)]
    for part in file.chunks():
        with file.located(rows):
            found = list(_lines(model, part, confidence))  # before anything of it is written
        write_csv(stream, [*heading, *found])
        heading, rows = [], rows + len(found)
    write_csv(stream, heading)
    return rows


def _heading(model: "PublishedModel", confidence: float | None) -> list[str]:
    if model.is_label:
        more = ["probability"]
    elif len(model.outputs) > 1:
        more = [f"probability of {level}" for level in model.outputs]
    else:
        more = []
    return [model.target, *more, *([] if confidence is None else ["lower", "upper"])]


def _lines(
    model: "PublishedModel", part: dict[str, Any], confidence: float | None
) -> Iterator[tuple[Any, ...]]:
    if confidence is not None:
        bounds = model.prediction_intervals(part, confidence)  # refused unless it is a number
        digits = _digits(model)
        for value, (lower, upper) in zip(model.predict(part), bounds, strict=True):
            yield _round(value, digits), _round(lower, digits), _round(upper, digits)
    elif model.is_label:
        for share in model.predict_proba(part)[:, 1]:
            yield int(share > 0.5), round(float(share), 4)
    elif len(model.outputs) > 1:
        for level, shares in zip(model.predict(part), model.predict_proba(part), strict=True):
            yield level, *(round(float(share), 4) for share in shares)
    else:
        digits = _digits(model)
        yield from ((_round(value, digits),) for value in model.predict(part))


def _digits(model: "PublishedModel") -> int:
    """As many decimals as give the target's whole range `DIGITS` digits."""
    width = model.aim.upper - model.aim.lower  # type: ignore[union-attr]
    return DIGITS - math.floor(math.log10(width))


def _round(value: float, digits: int) -> float | int:
    """Without decimals that nobody could rely on, and without a point where there are none."""
    found = round(float(value), digits)
    return int(found) if digits <= 0 else found
