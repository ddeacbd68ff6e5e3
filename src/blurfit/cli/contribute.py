"""Invitations and contributions: `blurfit invite`, `contribute`, `withdraw` and `ledger`.

Invitations are written bare or as links, as a table for mail merge, or as QR codes. With two
databases a person needs an invitation from each. `--both` asks both services, with the tokens of
both administrators, and joins the invitations in pairs, each pair in one link. Where nobody holds
both tokens, each side makes its own, and the page for administrators joins the files.

An invitation to a plan of waves is for one group of people, which a lot decides
(`blurfit.agreement.waves`): the table says which, so that each group can be written to in its turn.
"""

import io
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import click

import blurfit as bf
from blurfit import private_files
from blurfit.cli._common import (
    ANY_FILE,
    EXISTING_FILE,
    NEW_FILE,
    Administered,
    RefusedError,
    agreement_file,
    answer,
    as_administrator,
    as_json,
    course_options,
    encoded_public,
    load_agreed,
    next_step,
    out_file,
    patience,
    public_option,
    read_course,
    require_agreed,
    service_or_file,
    watched,
    with_default,
    write_csv,
)
from blurfit.errors import InvalidValueError
from blurfit.optional import optional

Form = Literal["tokens", "links", "csv", "codes"]
_CALLED = {
    "tokens": "invitations",
    "links": "links",
    "csv": "links in a table",
    "codes": "QR codes",
}

_COLUMNS, _IN_GROUPS = ("number", "link"), ("number", "group", "link")

_FRAGMENT = "#invitation="
_SHEET = """<!doctype html><meta charset="utf-8"><title>Invitations</title>
<style>
body {{display: grid; grid-template-columns: repeat(auto-fill, 5cm); gap: 1cm}}
figure {{margin: 0; break-inside: avoid; text-align: center}}
svg {{width: 5cm; height: 5cm}}
</style>
{codes}
"""


@click.command(
    epilog="Example: blurfit invite agreement.json --to http://127.0.0.1:8000 "
    "--admin-token-file token.txt --count 20000 --out invitations.txt"
)
@agreement_file
@as_administrator
@click.option("--count", type=click.IntRange(1), required=True, help="How many invitations.")
@out_file("Where they are written, one per line; no copy is kept.", required=True)
@click.option(
    "--tokens",
    "form",
    flag_value="tokens",
    default="tokens",
    help="As bare tokens, for programs (default).",
)
@click.option("--links", "form", flag_value="links", help="As links to the contributors' page.")
@click.option("--csv", "form", flag_value="csv", help="As a table of links, for mail merge.")
@click.option("--qr", "form", flag_value="codes", help="As QR codes to print, in an HTML page.")
@click.option(
    "--both",
    "other_token_file",
    type=EXISTING_FILE,
    help="Join each with one from the agreement's other database; this file holds the token of its "
    "administrator.",
)
@as_json
def invite(
    agreement: Path,
    at: Administered,
    count: int,
    out: Path,
    form: Form,
    other_token_file: Path | None,
    as_json: bool,
) -> None:
    """Make one-time invitations for a collection or a plan, one for each person.

    An invitation to a plan is good in one of its waves, which a lot decides when it is made: with
    --csv the table has the group of each. Choose who gets which without looking at it, and write to
    a group when its turn comes. In a link, the invitation comes after #, which browsers never send.
    """
    from blurfit.protocol.tokens import hashed, joined

    agreed = load_agreed(agreement)
    if out.exists():
        raise InvalidValueError(
            f"Expected --out {str(out)!r} to be a new file: the existing one may hold invitations."
        )
    if form == "codes":
        optional("segno")  # before any invitation is made
    made: list[list[str]] = []
    shares: list[int] = []
    for place in [at] if other_token_file is None else _both(agreed, at, other_token_file):
        with place.database() as database:
            shares = shares or database.shares(agreed, count)
            made.append(database.invite(agreed, count, shares))
    lot = agreed.lot
    pairs = joined(made, lot)
    groups = [lot.group_of(hashed(first)) for first, *_ in pairs] if len(lot.people) > 1 else []
    page = at.page("c", agreed.fingerprint)
    text = written(form, list(map(",".join, pairs)), page, groups)
    private_files.write(out, text, only_new=True)
    sentence = f"Wrote {count:,} {_CALLED[form]} to {out}. Give each to one person."
    if groups:
        each = ", ".join(f"{n:,} for group {k}" for k, n in enumerate(shares, start=1))
        sentence += f" The lot has drawn {each}."
    facts = {"count": count, "out": str(out)} | ({"groups": shares} if groups else {})
    answer(facts, sentence, as_json=as_json)


def written(form: Form, tokens: Sequence[str], page: str, groups: Sequence[int] = ()) -> str:
    """Return the file's text; `groups` are those of a plan's invitations.

    >>> print(written("links", ["abc"], "https://first.example/c/00"), end="")
    https://first.example/c/00#invitation=abc
    """
    if form == "tokens":
        return "".join(f"{token}\n" for token in tokens)
    links = [f"{page}{_FRAGMENT}{token}" for token in tokens]
    if form == "links":
        return "".join(f"{link}\n" for link in links)
    if form == "csv":
        table = io.StringIO()
        columns = [groups, links] if groups else [links]
        rows = zip(range(1, len(links) + 1), *columns, strict=True)
        write_csv(table, [_IN_GROUPS if groups else _COLUMNS, *rows])
        return table.getvalue()
    names = [
        f"{at}, group {groups[at - 1]}" if groups else f"{at}" for at in range(1, len(links) + 1)
    ]
    return _SHEET.format(codes="\n".join(map(_code, names, links)))


def read(text: str) -> list[list[str]]:
    """Read what `written` wrote, except QR codes: in each line one invitation for each database.

    >>> read(written("csv", ["abc", "first,second"], "https://first.example/c/00"))
    [['abc'], ['first', 'second']]
    """
    headings = (",".join(_COLUMNS), ",".join(_IN_GROUPS))
    lines = [line for line in text.split() if line not in headings]
    return [line.rpartition(_FRAGMENT)[2].rstrip('"').split(",") for line in lines]


def _code(name: str, link: str) -> str:
    picture = optional("segno").make(link, error="m", micro=False).svg_inline(border=4)
    return f"<figure>{picture}<figcaption>{name}</figcaption></figure>"


def _both(agreed: "bf.Agreement | bf.Plan", at: Administered, other: Path) -> list[Administered]:
    """Return the agreement's two databases in order, each with its administrator's token."""
    url, addresses = at.url.rstrip("/"), [one.url for one in agreed.databases]
    if url not in addresses:
        raise InvalidValueError(
            f"Expected --to {at.url!r} to be one of the agreement's two databases with --both, and "
            f"it has {addresses or 'only one database'}."
        )
    files = {url: at.token_file}
    return [replace(at, url=one, token_file=files.get(one, other)) for one in addresses]


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
    type=ANY_FILE,
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
    type=NEW_FILE,
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
    agreed = load_agreed(agreement)
    if public is not None:
        _check_public(agreed, public)
    if not isinstance(agreed, bf.Plan):
        read_course(agreed, plan_file, releases)
    elif plan_file or releases or out:
        raise InvalidValueError(
            "Expected an agreement with --out, --plan or --release: a plan is sent to a service, "
            "which knows the wave that is collecting. `blurfit next` writes a wave's agreement."
        )
    _warn_of_a_second_time(agreed.first() if isinstance(agreed, bf.Plan) else agreed)
    if agreed.databases and out is not None:
        raise InvalidValueError(
            "Expected no --out: the agreement shares each record between two databases, and no "
            "file may hold both shares."
        )
    if (url is None) == (out is None) and not agreed.databases:
        raise InvalidValueError("Expected either --to SERVICE or --out FILE.")
    if out is not None and not isinstance(agreed, bf.Plan):
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
    if isinstance(agreed, bf.Plan):
        facts["waiting"] = {str(group): count for group, count in waiting.items()}
    answer(facts, words, as_json=as_json)
    if url is not None:
        next_step(f"`blurfit status {agreement} --to {url}`.", quiet=as_json)


def _warn_of_a_second_time(agreed: "bf.Agreement") -> None:
    """Tell someone who contributes twice for one purpose what both add up to."""
    from blurfit.contributor.account import DELTA, Entry, Ledger, total
    from blurfit.theory.guarantees import at_most

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


def _check_public(agreed: "bf.Agreement | bf.Plan", public: Path) -> None:
    """Refuse any file other than the public rows that were agreed on."""
    if isinstance(agreed, bf.Plan) or agreed.public_rows is None:
        raise InvalidValueError(
            f"Expected no --public {public}: the agreement names no file of public rows."
        )
    require_agreed(public, agreed)
    encoded_public(public, agreed.schema)


def _send(
    agreed: "bf.Agreement | bf.Plan",
    table: Path,
    url: str | None,
    patience: float,
    tokens: list[list[str]],
    **options: Any,
) -> int:
    """Send everything to one database, or a share to each of two."""
    with bf.Client.of(agreed, url, patience=patience) as client:
        client.check(agreed)
        return client.contribute_table(agreed, table, invitations=tokens, **options)


def _tokens(paths: tuple[Path, ...], wanted: int) -> list[list[str]]:
    """Read each database's invitations, in the order of the rows."""
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


@click.command(epilog="Example: blurfit withdraw receipt.json")
@click.argument("receipt", type=EXISTING_FILE)
@click.option(
    "--row",
    "rows",
    type=click.IntRange(1),
    multiple=True,
    help="Only this row of the table, counting from 1; may be given several times. Default: all.",
)
@patience
@as_json
def withdraw(receipt: Path, rows: tuple[int, ...], patience: float, as_json: bool) -> None:
    """Withdraw the submissions of a RECEIPT, as long as their collection is open.

    This is final: what was withdrawn is refused if it is sent again, and its invitation stays used.
    Do not blur the same people again: that would give a second look at their records. If this is
    interrupted, run it again.
    """
    from blurfit.contributor.receipt import Receipt
    from blurfit.contributor.receipt import withdraw as ask

    chosen = {row - 1 for row in rows} if rows else None
    found = ask(Receipt.load(receipt), chosen, patience=patience)
    if found.staying and not found.out:
        raise RefusedError(found.reason)
    told = f"{found.out:,} submissions are withdrawn: they are in no sum, and never will be."
    if found.unknown:
        told += f" {found.unknown:,} of them were never stored."
    if found.staying:
        told += f" {found.staying:,} stay: {found.reason}"
    answer(asdict(found), told, as_json=as_json)


@click.command(epilog="Example: blurfit ledger --delta 1e-9")
@with_default(
    "--delta",
    1e-6,
    "The δ of the total.",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
)
@click.option("--erase", is_flag=True, help="Erase all entries. What was sent stays sent.")
@as_json
def ledger(delta: float, erase: bool, as_json: bool) -> None:
    """Tell what was sent from this account, to whom and when, and what it all adds up to.

    The list is a file of your own, in BLURFIT_HOME or ~/.blurfit, and nobody else sees it.
    """
    from blurfit.contributor.account import Ledger, total
    from blurfit.theory.guarantees import at_most

    book = Ledger()
    if erase:
        count = book.erase()
        answer({"erased": count}, f"Erased {count} entries.", as_json=as_json)
        return
    entries = book.entries()
    sums = total(entries, delta)
    lines = [
        f"{one.at}  {one.title}{f' ({one.organiser})' if one.organiser else ''}\n"
        f"    {one.rows:,} rows to {one.where}, ε = {at_most(one.epsilon, 6)}, "
        f"δ = {at_most(one.delta, 6)}, "
        f"{one.neighbours} one record; agreement {one.fingerprint[:12]}"
        for one in entries
    ]
    for relation, epsilon in sums.items():
        lines.append(
            f"For anyone who is in all of them ({relation} one record), everything that is "
            f"published has ε = {at_most(epsilon)} together, at δ = {delta:g}."
        )
    answer(
        {"entries": [asdict(one) for one in entries], "delta": delta, "together": sums},
        "\n".join(lines) or "Nothing has been sent from this account.",
        as_json=as_json,
    )
