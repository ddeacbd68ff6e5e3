"""`blurfit contribute`: blur the rows of a table, and send them once, or write them to a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blurfit.commands.common import (
    EXISTING_FILE,
    agreement_file,
    answer,
    as_json,
    load_agreed,
    next_step,
    out_file,
    service_or_file,
    watched,
)
from blurfit.commands.public import public_option
from blurfit.commands.waves import course_options, read_course
from blurfit.errors import InvalidValueError

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.agreement.plan import Plan


@click.command(
    epilog="Example: blurfit contribute agreement.json people.csv --to http://127.0.0.1:8000 "
    "--invitations invitations.txt"
)
@agreement_file
@click.argument("table", type=EXISTING_FILE)
@service_or_file
@out_file(
    "Write submissions to this .parquet or .arrow file, for `blurfit learn`, and send nothing."
)
@click.option(
    "--invitations",
    type=EXISTING_FILE,
    multiple=True,
    help="A file with an invitation or a link for each row. With two databases: one file of joined "
    "invitations (`blurfit invite --both`), or a file for each database.",
)
@click.option(
    "--journal",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to keep track of what was sent; default: beside the table.",
)
@click.option(
    "--other-people",
    is_flag=True,
    help="These are other people than those of a table that was blurred before, although all of "
    "their answers are the same.",
)
@click.option(
    "--receipt",
    type=click.Path(dir_okay=False, path_type=Path, writable=True),
    help="Where to write a receipt, for `blurfit withdraw` and `blurfit verify`. Anyone who has it "
    "can withdraw. Ask for it from the start.",
)
@public_option(
    "First check that this is the file of public rows that the agreement names by its SHA-256."
)
@course_options("First check that the agreement follows from this plan and its --release files.")
@as_json
def contribute(
    agreement: Path,
    table: Path,
    url: str | None,
    patience: float,
    out: Path | None,
    invitations: tuple[Path, ...],
    journal: Path | None,
    other_people: bool,
    receipt: Path | None,
    public: Path | None,
    plan_file: Path | None,
    releases: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Blur each row of a TABLE (.csv, .parquet) and send it once, or write all to a file (--out).

    If this is interrupted, run it again: it continues where it stopped, and no row is blurred
    twice. With a plan instead of an AGREEMENT, a lot decides which wave each row is in: that of its
    invitation, or in a collection that is open to anyone a coin, which the journal remembers. Rows
    whose wave comes later wait: run it again then.
    """
    from blurfit.agreement.plan import Plan

    agreed = load_agreed(agreement)
    if public is not None:
        _check_public(agreed, public)
    if not isinstance(agreed, Plan):
        read_course(agreed, plan_file, releases)
    elif plan_file or releases or out:
        raise InvalidValueError(
            "Expected an agreement with --out, --plan or --release: a plan is sent to a service, "
            "which knows the wave that is collecting. `blurfit next` writes a wave's agreement."
        )
    _warn_of_a_second_time(agreed.first() if isinstance(agreed, Plan) else agreed)
    if agreed.databases and out is not None:
        raise InvalidValueError(
            "Expected no --out: the agreement shares each record between two databases, and no "
            "file may hold both shares."
        )
    if (url is None) == (out is None) and not agreed.databases:
        raise InvalidValueError("Expected either --to SERVICE or --out FILE.")
    if out is not None and not isinstance(agreed, Plan):
        if invitations:
            raise InvalidValueError("Expected no --invitations with --out: a file needs none.")
        if receipt is not None:
            raise InvalidValueError("Expected no --receipt with --out: nobody acknowledges a file.")
        from blurfit.contributor.sending import blur_table
        from blurfit.optional import optional

        optional("pyarrow")  # before anything is blurred that could then not be written

        with watched("blur", quiet=as_json) as watch:
            rows = blur_table(
                agreed, table, out, journal=journal, other_people=other_people, progress=watch
            )
        answer(
            {"rows": rows, "fingerprint": agreed.fingerprint, "out": str(out)},
            f"Wrote {rows:,} submissions to {out}, one for each row of {table}.",
            as_json=as_json,
        )
        next_step(
            f"`blurfit learn {agreement} {out}`, alone or with the files of others.", quiet=as_json
        )
        return
    tokens = _tokens(invitations, len(agreed.databases) or 1)
    waiting: dict[int, int] = {}
    with watched("blur and send", quiet=as_json) as watch:
        rows = _send(
            agreed,
            table,
            url,
            patience,
            tokens,
            journal=journal,
            other_people=other_people,
            receipt=receipt,
            progress=watch,
            waiting=waiting.update,
        )
    words = f"{rows:,} rows of {table} are stored there, each counted once."
    if waiting:
        each = ", ".join(f"{count:,} for group {group}" for group, count in waiting.items())
        words += f" Others wait, {each}: run this again when that group is asked."
    if receipt and receipt.exists():
        words += f" The receipt is in {receipt}: keep it to yourself."
    facts = {"rows": rows, "fingerprint": agreed.fingerprint}
    if isinstance(agreed, Plan):
        facts["waiting"] = {str(group): count for group, count in waiting.items()}
    answer(facts, words, as_json=as_json)
    if url is not None:
        next_step(f"`blurfit status {agreement} --to {url}`.", quiet=as_json)


def _warn_of_a_second_time(agreed: "Agreement") -> None:
    """Tell someone who contributes twice for one purpose what both add up to."""
    from blurfit.agreement.promises import at_most
    from blurfit.contributor.account import DELTA, Entry, Ledger, total

    before = Ledger().earlier(agreed)
    if before is None:
        return
    together = total([before, Entry.of(agreed, 0, "")])
    sums = ", ".join(f"ε = {at_most(one)} ({relation})" for relation, one in together.items())
    click.echo(
        f"Warning: rows were sent for the same purpose before, to {before.where} on {before.at}. "
        f"For anyone who is in both, all that is published has {sums} at δ = {DELTA:g}.",
        err=True,
    )


def _check_public(agreed: "Agreement | Plan", public: Path) -> None:
    """Refuse any file other than the public rows that were agreed on."""
    from blurfit.agreement.plan import Plan
    from blurfit.commands.public import encoded_public, require_agreed

    if isinstance(agreed, Plan) or agreed.public_rows is None:
        raise InvalidValueError(
            f"Expected no --public {public}: the agreement names no file of public rows."
        )
    require_agreed(public, agreed)
    encoded_public(public, agreed.schema)


def _send(
    agreed: "Agreement | Plan",
    table: Path,
    url: str | None,
    patience: float,
    tokens: list[list[str]],
    **options: Any,
) -> int:
    """Send everything to one database, or a share to each of two."""
    from blurfit.contributor.client import Client

    with Client.of(agreed, url, patience=patience) as client:
        client.check(agreed)
        return client.contribute_table(agreed, table, invitations=tokens, **options)


def _tokens(paths: tuple[Path, ...], wanted: int) -> list[list[str]]:
    """For each database, its invitations in the order of the rows."""
    from blurfit.commands.invite import read

    found: list[list[str]] = []
    for path in paths:
        try:
            lines = read(path.read_text(encoding="utf-8"))
        except UnicodeError as error:
            raise InvalidValueError(
                f"Expected --invitations {str(path)!r} to be what `blurfit invite` wrote: {error}."
            ) from error
        each = wanted if len(paths) == 1 else 1
        if wrong := [row for row, line in enumerate(lines, start=1) if len(line) != each]:
            raise InvalidValueError(
                f"Expected {each} in each line of --invitations {str(path)!r}, and line {wrong[0]} "
                f"has {len(lines[wrong[0] - 1])}: one from each database, joined as `blurfit "
                "invite --both` writes them, or in a file for each database."
            )
        found += [list(column) for column in zip(*lines, strict=True)] or [[] for _ in range(each)]
    if paths and len(found) != wanted:
        raise InvalidValueError(
            f"Expected {wanted} files of --invitations, one for each database, and got "
            f"{len(paths)}."
        )
    return found or [[] for _ in range(wanted)]
