"""`blurfit contribute`: blur the rows of a table, and send them once, or write them to a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blurfit.commands.common import (
    WrongError,
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
@click.argument("table", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@service_or_file
@out_file("Instead of sending: a .parquet or .arrow file of submissions, for `blurfit learn`.")
@click.option(
    "--invitations",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="A file with an invitation for each row, or a link; where trust is shared, with those of "
    "both databases joined (`blurfit invite --both`), or else a file of each.",
)
@click.option(
    "--journal",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to keep track of what was sent; default: beside the table.",
)
@click.option(
    "--other-people",
    is_flag=True,
    help="These are not the people of a table that was blurred before, though all answers agree.",
)
@click.option(
    "--receipt",
    type=click.Path(dir_okay=False, path_type=Path, writable=True),
    help="Where to write a receipt, for `blurfit withdraw` and `blurfit verify`; whoever has it "
    "can withdraw. Ask for it from the start.",
)
@public_option(
    "Check first that this is the file of public rows that the agreement names, by its SHA-256."
)
@course_options("Check first that the agreement follows from this plan and its --release files.")
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
    """Blur each row of a TABLE (.csv, .parquet) and send it, once; or write all to a file (--out).

    Stopped in the middle, run it again: it goes on where it was, and no row is blurred twice. With
    a plan instead of an AGREEMENT, each part of the table is for the wave that collects then.
    """
    from blurfit.agreement.plan import Plan

    agreed = load_agreed(agreement)
    if public is not None:
        _check_public(agreed, public)
    if not isinstance(agreed, Plan):
        read_course(agreed, plan_file, releases)
    elif plan_file or releases or out:
        raise WrongError(
            "Expected an agreement with --out, --plan or --release: a plan is for a service, which "
            "tells the wave that collects. `blurfit next` writes a wave's agreement."
        )
    _warn_of_a_second_time(agreed.first() if isinstance(agreed, Plan) else agreed)
    if agreed.databases and out is not None:
        raise WrongError(
            "Expected no --out: the agreement's trust is shared, so a record is shared between two "
            "databases and is nowhere in one piece."
        )
    if (url is None) == (out is None) and not agreed.databases:
        raise WrongError("Expected either --to SERVICE or --out FILE.")
    if out is not None and not isinstance(agreed, Plan):
        if invitations:
            raise WrongError("Expected no --invitations with --out: a file invites nobody.")
        if receipt is not None:
            raise WrongError("Expected no --receipt with --out: nobody acknowledges a file.")
        from blurfit.contributor.bulk import blur_table
        from blurfit.optional import optional

        optional("pyarrow")  # before anything is blurred that could then not be written

        with watched("blur", quiet=as_json) as progress:
            task = progress.add_task("", total=None)
            rows = blur_table(
                agreed,
                table,
                out,
                journal=journal,
                other_people=other_people,
                progress=lambda done, of: progress.update(task, completed=done, total=of),
            )
        answer(
            {"rows": rows, "fingerprint": agreed.fingerprint, "out": str(out)},
            f"Wrote {rows:,} submissions to {out}, one for each row of {table}.",
            as_json=as_json,
        )
        next_step(f"`blurfit learn {agreement} {out}`, with others' files or alone.", quiet=as_json)
        return
    tokens = _tokens(invitations, len(agreed.databases) or 1)
    with watched("blur and send", quiet=as_json) as progress:
        task = progress.add_task("", total=None)

        def watch(done: int, of: int) -> None:
            progress.update(task, completed=done, total=of)

        options = {
            "journal": journal,
            "other_people": other_people,
            "receipt": receipt,
            "progress": watch,
        }
        if not agreed.databases:
            rows = _send(agreed, table, url, patience, tokens, options)
        else:
            rows = _share(agreed, table, url, patience, tokens, options)
    answer(
        {"rows": rows, "fingerprint": agreed.fingerprint},
        f"{rows:,} rows of {table} are stored there, each counted once."
        + (
            f" The receipt is in {receipt}: keep it to yourself."
            if receipt and receipt.exists()
            else ""
        ),
        as_json=as_json,
    )
    if url is not None:
        next_step(f"`blurfit status {agreement} --to {url}`.", quiet=as_json)


def _warn_of_a_second_time(agreed: "Agreement") -> None:
    """Somebody who contributes to one purpose twice is told what both add up to."""
    from blurfit.agreement.promises import at_most
    from blurfit.contributor.ledger import DELTA, Entry, Ledger, total

    before = Ledger().earlier(agreed)
    if before is None:
        return
    together = total([before, Entry.of(agreed, 0, "")])
    sums = ", ".join(f"ε = {at_most(one)} ({relation})" for relation, one in together.items())
    click.echo(
        f"Warning: rows were sent for the same purpose before, to {before.where} on {before.at}. "
        f"Whoever is in both has {sums} at δ = {DELTA:g} for what is published of them together.",
        err=True,
    )


def _check_public(agreed: "Agreement | Plan", public: Path) -> None:
    """Refuse any file but the one whose rows everyone takes for public."""
    from blurfit.agreement.plan import Plan
    from blurfit.commands.public import encoded_public, require_agreed

    if isinstance(agreed, Plan) or agreed.public_rows is None:
        raise WrongError(
            f"Expected an agreement that names a file of public rows with --public {public}: this "
            "one names none."
        )
    require_agreed(public, agreed)
    encoded_public(public, agreed.schema)


def _send(
    agreed: "Agreement | Plan",
    table: Path,
    url: str | None,
    patience: float,
    tokens: list[list[str]],
    options: dict[str, Any],
) -> int:
    """Everything to one database."""
    from blurfit.agreement.plan import Plan
    from blurfit.contributor.client import Client

    if url is None:
        raise InvalidValueError("Expected --to: the service, like http://127.0.0.1:8000.")
    with Client(url, patience=patience) as client:
        if isinstance(agreed, Plan):
            client.plan(agreed.fingerprint)  # the service has this very one
        else:
            client.agreement(agreed.fingerprint)
        return client.contribute_table(agreed, table, invitations=tokens[0], **options)


def _share(
    agreed: "Agreement | Plan",
    table: Path,
    url: str | None,
    patience: float,
    tokens: list[list[str]],
    options: dict[str, Any],
) -> int:
    """A share to each of the agreement's, or the plan's, two databases."""
    from blurfit.agreement.plan import Plan
    from blurfit.contributor.shared_client import SharedClient
    from blurfit.contributor.shared_plan import SharedPlanClient

    if url is not None:
        raise InvalidValueError(
            f"Expected no --to {url}: the agreement names its two databases, "
            f"{' and '.join(one.url for one in agreed.databases)}."
        )
    both = (
        SharedPlanClient(agreed, patience=patience)
        if isinstance(agreed, Plan)
        else SharedClient(agreed, patience=patience)
    )
    with both as client:
        client.check()
        return client.contribute_table(table, invitations=tokens, **options)


def _tokens(paths: tuple[Path, ...], wanted: int) -> list[list[str]]:
    """The invitations of each database, for one row after the other."""
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
                f"has {len(lines[wrong[0] - 1])}: one of each database that gets something, joined "
                "as `blurfit invite --both` writes them, or in a file of each."
            )
        found += [list(column) for column in zip(*lines, strict=True)] or [[] for _ in range(each)]
    if paths and len(found) != wanted:
        raise InvalidValueError(
            f"Expected {wanted} files of --invitations, and got {len(paths)}: one of each database "
            "that gets something."
        )
    return found or [[] for _ in range(wanted)]
