"""`blurfit invite`: one-time invitations, bare or as links, a table for mail merge, or QR codes.

With two databases a person needs an invitation from each. `--both` asks both services, with the
tokens of both administrators, and joins the invitations in pairs, each pair in one link. Where
nobody holds both tokens, each side makes its own, and the page for administrators joins the files.

An invitation to a plan of waves is for one group of people, which a lot decides
(`blurfit.agreement.lot`): the table says which, so that each group can be written to in its turn.
"""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from blurfit import private_files
from blurfit.commands.common import (
    EXISTING_FILE,
    Administered,
    agreement_file,
    answer,
    as_administrator,
    as_json,
    load_agreed,
    out_file,
    write_csv,
)
from blurfit.errors import InvalidValueError
from blurfit.optional import optional

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.agreement.plan import Plan

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
    from blurfit.service.remote import lot_of

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
    lot = lot_of(agreed)
    pairs = joined(made, lot)
    groups = [] if lot is None else [lot.group_of(hashed(first)) for first, *_ in pairs]
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
    """The file's text; `groups` are those of a plan's invitations.

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
    """What `written` wrote, except QR codes: for each line one invitation, or one per database.

    >>> read(written("csv", ["abc", "first,second"], "https://first.example/c/00"))
    [['abc'], ['first', 'second']]
    """
    headings = (",".join(_COLUMNS), ",".join(_IN_GROUPS))
    lines = [line for line in text.split() if line not in headings]
    return [line.rpartition(_FRAGMENT)[2].rstrip('"').split(",") for line in lines]


def _code(name: str, link: str) -> str:
    picture = optional("segno").make(link, error="m", micro=False).svg_inline(border=4)
    return f"<figure>{picture}<figcaption>{name}</figcaption></figure>"


def _both(agreed: "Agreement | Plan", at: Administered, other: Path) -> list[Administered]:
    """The agreement's two databases in their order, each with its administrator's token."""
    url, addresses = at.url.rstrip("/"), [one.url for one in agreed.databases]
    if url not in addresses:
        raise InvalidValueError(
            f"Expected --to {at.url!r} to be one of the agreement's two databases with --both, and "
            f"it has {addresses or 'only one database'}."
        )
    files = {url: at.token_file}
    return [replace(at, url=one, token_file=files.get(one, other)) for one in addresses]
