"""`blurfit contribute`: blur the rows of a table, and send them once."""

from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from blurfit.commands.common import agreement_file, answer, as_json, load_agreement, service
from blurfit.errors import InvalidValueError


@click.command(
    epilog="Example: blurfit contribute agreement.json people.csv --to http://127.0.0.1:8000"
)
@agreement_file
@click.argument("table", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@service
@click.option(
    "--invitations",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with an invitation for each row.",
)
@click.option(
    "--journal",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to keep track of what was sent; default: beside the table.",
)
@click.option(
    "--fast",
    is_flag=True,
    help="Draw noise with a vectorised generator, at a small cost in δ (see the documentation).",
)
@as_json
def contribute(
    agreement: Path,
    table: Path,
    url: str,
    patience: float,
    invitations: Path | None,
    journal: Path | None,
    fast: bool,
    as_json: bool,
) -> None:
    """Blur each row of a TABLE (.csv, .parquet) and send it, once.

    Stopped in the middle, run it again: it goes on where it was, and no row is blurred twice.
    """
    from blurfit.contributor.client import Client

    agreed = load_agreement(agreement)
    tokens = _tokens(invitations) if invitations else []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with (
        Client(url, patience=patience) as client,
        Progress(*columns, console=Console(stderr=True), disable=as_json) as progress,
    ):
        client.agreement(agreed.fingerprint)  # the service is collecting under this very one
        task = progress.add_task("blur and send", total=None)
        rows = client.contribute_table(
            agreed,
            table,
            journal=journal,
            invitations=tokens,
            fast=fast,
            progress=lambda done, of: progress.update(task, completed=done, total=of),
        )
    answer(
        {"rows": rows, "fingerprint": agreed.fingerprint},
        f"{rows:,} rows of {table} are stored there, each counted once.",
        as_json=as_json,
    )


def _tokens(path: Path) -> list[str]:
    """Invitations, or the links that hold them, one a line."""
    try:
        lines = path.read_text(encoding="utf-8").split()
    except UnicodeError as error:
        raise InvalidValueError(
            f"Expected --invitations {str(path)!r} to be what `blurfit invite` wrote: {error}."
        ) from error
    return [line.rpartition("#")[2] for line in lines]
