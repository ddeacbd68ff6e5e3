"""What a contributor types: sending a table, withdrawing it, and looking at the ledger.

With two databases a person needs an invitation from each, and gets both in one link.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

import blurfit as bf
from blurfit.cli import RefusedError
from blurfit.cli import _common as common
from blurfit.cli._common import Answer, ExistingFile, command
from blurfit.errors import InvalidValueError, optional

# The columns of a table of links, that of links to a plan, and what precedes an invitation in one.
COLUMNS, IN_GROUPS = ("number", "link"), ("number", "group", "link")
FRAGMENT = "#invitation="
# Before the agreement's fingerprint and the database, in the first line of a file to join.
TO_JOIN = "blurfit-invitations"


def joining_line(fingerprint: str, role: str) -> str:
    """Return the first line of a file of invitations to one of two databases."""
    return f"{TO_JOIN}:{fingerprint}:{role}"


def read_invitations(text: str) -> list[list[str]]:
    r"""Read what `blurfit invite` wrote, except QR codes: in each line one invitation for each
    database.

    >>> read_invitations("number,link\r\n1,https://first.example/c/00#invitation=abc\r\n")
    [['abc']]
    >>> read_invitations("first,second")
    [['first', 'second']]
    """
    headings = (",".join(COLUMNS), ",".join(IN_GROUPS))
    lines = [
        line for line in text.split() if line not in headings and not line.startswith(f"{TO_JOIN}:")
    ]
    return [line.rpartition(FRAGMENT)[2].rstrip('"').split(",") for line in lines]


@command(
    "contribute",
    "agreement.json people.csv --to http://127.0.0.1:8000 --invitations invitations.txt",
)
def contribute(
    agreement: ExistingFile,
    table: ExistingFile,
    *,
    to: common.Address | None,
    patience: common.Patience = 60.0,
    out: common.Out | None,
    invitations: tuple[ExistingFile, ...],
    journal: common.AnyFile | None,
    person: str | None,
    encoding: str = "utf-8-sig",
    other_people: bool,
    receipt: common.NewFile | None,
    plan: ExistingFile | None,
    release: tuple[common.Releases, ...],
) -> Answer:
    """Blur each row of a TABLE and send it once, or write all to a file (--out).

    TABLE is a .csv, .xlsx or .parquet file. If this is interrupted, run it again: it continues
    where it stopped, and no row is blurred twice. With a plan instead of an AGREEMENT, a lot
    decides which wave each row is in: that of its invitation, or in a collection that is open to
    anyone a coin, which the journal remembers. Rows whose wave comes later wait: run it again then.

    Options:
        out: Write submissions to this .parquet or .arrow file, for `blurfit learn`, and send
            nothing.
        invitations: A file with an invitation or a link for each row. With two databases: one file
            of joined invitations (`blurfit invite --both`), or a file for each database.
        journal: Where to keep track of what was sent; default: beside the table.
        person (COLUMN): The column that says whose row it is, where people have several and the
            agreement has diaries: each person is sent once, with all their rows. Invitations are
            for people then.
        encoding: The encoding of a CSV file, such as cp1252.
        other_people: These are other people than those of a table that was blurred before, although
            all of their answers are the same.
        receipt: Where to write a receipt, for `blurfit withdraw` and `blurfit verify`. Anyone who
            has it can withdraw. Ask for it from the start.
        plan: First check that the agreement follows from this plan and its --release files.
    """
    agreed = common.load_agreed(agreement)
    if isinstance(agreed, bf.Agreement):
        common.read_course(agreed, plan, release)
    elif plan or release or out:
        raise InvalidValueError(
            "Expected an agreement with --out, --plan or --release: a plan is sent to a service, "
            "which knows the wave that is collecting. `blurfit next` writes a wave's agreement."
        )
    _warn_of_a_second_time(agreed.first())
    if agreed.databases and out is not None:
        raise InvalidValueError(
            "Expected no --out: the agreement shares each record between two databases, and no "
            "file may hold both shares."
        )
    if (to is None) == (out is None) and not agreed.databases:
        raise InvalidValueError("Expected either --to SERVICE or --out FILE.")
    options: dict[str, Any] = {"journal": journal, "other_people": other_people, "person": person}
    options["encoding"] = encoding
    one = "row" if person is None else "person"
    if out is not None:
        if invitations:
            raise InvalidValueError("Expected no --invitations with --out: a file needs none.")
        if receipt is not None:
            raise InvalidValueError("Expected no --receipt with --out: nobody acknowledges a file.")
        from blurfit.contributor.sending import blur_table

        optional("pyarrow")  # before anything is blurred that could then not be written
        with common.watched("blur") as watch:
            rows = blur_table(agreed.first(), table, out, progress=watch, **options)
        return Answer(
            {"rows": rows, "fingerprint": agreed.fingerprint, "out": str(out)},
            f"Wrote {rows:,} submissions to {out}, one for each {one} of {table}.",
            f"`blurfit learn {agreement} {out}`, alone or with the files of others.",
        )
    tokens = _tokens(invitations, len(agreed.databases) or 1)
    waiting: dict[int, int] = {}
    with (
        common.watched("blur and send") as watch,
        bf.Client.of(agreed, to, patience=patience) as client,
    ):
        client.agreed(agreed.fingerprint)
        options |= {"receipt": receipt, "progress": watch, "waiting": waiting.update}
        rows = client.contribute_table(agreed, table, invitations=tokens, **options)
    counted = "rows" if person is None else "people"
    words = f"{rows:,} {counted} of {table} are stored there, each counted once."
    if waiting:
        each = ", ".join(f"{count:,} for group {group}" for group, count in waiting.items())
        words += f" Others wait, {each}: run this again when that group is asked."
    if receipt and receipt.exists():
        words += f" The receipt is in {receipt}: keep it to yourself."
    facts = {"rows": rows, "fingerprint": agreed.fingerprint}
    if isinstance(agreed, bf.Plan):
        facts["waiting"] = {str(group): count for group, count in waiting.items()}
    step = "" if to is None else f"`blurfit status {agreement} --to {to}`."
    return Answer(facts, words, step)


def _warn_of_a_second_time(agreed: "bf.Agreement") -> None:
    """Tell someone who contributes twice for one purpose what both add up to."""
    from blurfit.contributor.sending import Account, Entry, total
    from blurfit.theory.moments import at_most

    before = Account().earlier(agreed)
    if before is None:
        return
    together = total([before, Entry.of(agreed, 0, "")])
    sums = " and ".join(
        f"ε = {at_most(one.epsilon)} at δ = {at_most(one.delta, 3)} ({relation})"
        for relation, one in together.items()
    )
    click.echo(
        f"Warning: rows were sent for the same purpose before, to {before.where} on {before.at}. "
        f"For anyone who is in both, all that is published has {sums}.",
        err=True,
    )


def _tokens(paths: tuple[Path, ...], wanted: int) -> list[list[str]]:
    """Read each database's invitations, in the order of the rows."""
    found: list[list[str]] = []
    for path in paths:
        try:
            lines = read_invitations(path.read_text(encoding="utf-8"))
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


@command("withdraw", "receipt.json")
def withdraw(
    receipt: ExistingFile, *, row: tuple[common.AtLeastOne, ...], patience: common.Patience = 60.0
) -> Answer:
    """Withdraw the submissions of a RECEIPT, as long as their collection is open.

    This is final: what was withdrawn is refused if it is sent again, and its invitation stays used.
    Do not blur the same people again: that would give a second look at their records. If this is
    interrupted, run it again.

    Options:
        row: Only this row of the table, counting from 1; may be given several times. Default: all.
    """
    from blurfit.contributor.journal import Receipt
    from blurfit.contributor.journal import withdraw as ask

    chosen = {one - 1 for one in row} if row else None
    found = ask(Receipt.load(receipt), chosen, patience=patience)
    if found.staying and not found.out:
        raise RefusedError(found.reason)
    told = f"{found.out:,} submissions are withdrawn: they are in no sum, and never will be."
    if found.unknown:
        told += f" {found.unknown:,} of them were never stored."
    if found.staying:
        told += f" {found.staying:,} stay: {found.reason}"
    return Answer(asdict(found), told)


@command("ledger", "--delta 1e-9")
def ledger(*, delta: common.Share = 1e-6, erase: bool) -> Answer:
    """Tell what was sent from this account, to whom and when, and what it all adds up to.

    The list is a file of your own, in BLURFIT_HOME or ~/.blurfit, and nobody else sees it.

    Options:
        delta: The δ of the total.
        erase: Erase all entries. What was sent stays sent.
    """
    from blurfit.contributor.sending import Account, total
    from blurfit.theory.moments import at_most

    book = Account()
    if erase:
        count = book.erase()
        return Answer({"erased": count}, f"Erased {count} entries.")
    entries = book.entries()
    sums = total(entries, delta)
    lines = [
        f"{one.at}  {one.title}{f' ({one.organiser})' if one.organiser else ''}\n"
        f"    {one.rows:,} rows to {one.where}, ε = {at_most(one.epsilon, 6)}, "
        f"δ = {at_most(one.delta, 6)}, "
        f"{one.neighbours} one record; agreement {one.fingerprint[:12]}"
        for one in entries
    ]
    lines += [
        f"For anyone who is in all of them ({relation} one record), everything that is published "
        f"has ε = {at_most(one.epsilon)} together, at δ = {at_most(one.delta, 3)}."
        for relation, one in sums.items()
    ]
    together = {name: {"epsilon": one.epsilon, "delta": one.delta} for name, one in sums.items()}
    return Answer(
        {"entries": [asdict(one) for one in entries], "delta": delta, "together": together},
        "\n".join(lines) or "Nothing has been sent from this account.",
    )
