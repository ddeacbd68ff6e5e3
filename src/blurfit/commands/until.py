"""`blurfit until`: move the date at which a collection or a plan closes by itself."""

from pathlib import Path

import click

from blurfit.commands.administer import ONE_DATE, database_at, in_words
from blurfit.commands.common import (
    administrator,
    agreement_file,
    answer,
    as_json,
    load_agreed,
    service,
)

NEVER = "never"


@click.command(
    epilog="Example: blurfit until agreement.json 2027-02-28 --to http://127.0.0.1:8000 "
    "--admin-token-file token.txt"
)
@agreement_file
@click.argument("date")
@service
@administrator
@as_json
def until(
    agreement: Path, date: str, url: str, patience: float, token_file: Path, as_json: bool
) -> None:
    """Move the DATE at which a collection or a plan closes by itself.

    DATE is a date, which lasts until its end in UTC, a time with its zone such as
    2027-01-31T18:00+01:00, or "never". Once its date has come, a collection is closed for good.
    """
    agreed = load_agreed(agreement)
    with database_at(url, patience, token_file) as database:
        state = database.move_closing(agreed, None if date == NEVER else date)
    words = in_words(state)
    answer(state, f"{words}\n{ONE_DATE}" if agreed.databases else words, as_json=as_json)
