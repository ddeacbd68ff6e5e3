"""What an operator types about tokens: `blurfit token`, `blurfit deeds`."""

import datetime as dt
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from blurfit.commands.common import answer, as_json, out_file, store_option
from blurfit.errors import InvalidValueError

if TYPE_CHECKING:
    from blurfit.store.stewards import Right

_RIGHTS = ("open", "invite", "publish", "read")  # of `blurfit.store.stewards`, without its imports


@click.command(epilog="Example: blurfit token --name 'mail office' --right invite --out mail.txt")
@store_option()
@click.option("--name", help="The name of the token's holder.")
@click.option("--right", type=click.Choice(_RIGHTS), help="What the new token allows.")
@out_file("Where the new token is written; no copy is kept.")
@click.option("--revoke", is_flag=True, help="Revoke the token of that name.")
@as_json
def token(
    place: str,
    name: str | None,
    right: "Right | None",
    out: Path | None,
    revoke: bool,
    as_json: bool,
) -> None:
    """Grant or revoke a token for one kind of task; without options, list all tokens.

    This takes effect at once, without restarting any service. To rotate a token, grant another
    under a new name, and revoke the first one when nobody uses it any more.
    """
    from blurfit.protocol import tokens
    from blurfit.store import stewards
    from blurfit.store.store import Store

    with Store(place) as store:
        if name is None:
            found = store.read(stewards.granted)
            lines = [f"{one}: {may}" for one, may in found.items()] or ["There are none."]
            answer({"tokens": found}, "\n".join(lines), as_json=as_json)
            return
        if revoke:
            store.write(stewards.revoke, name)
            answer({"revoked": name}, f"The token of {name!r} is revoked.", as_json=as_json)
            return
        if right is None or out is None:
            raise InvalidValueError("Expected --right and --out with --name, or --revoke.")
        if out.exists():
            raise InvalidValueError(
                f"Expected --out {str(out)!r} to be a new file: the existing one may hold a token."
            )
        secret = tokens.new_token()
        tokens.write_token(out, secret)
        try:
            store.write(stewards.grant, name, right, tokens.hashed(secret))
        except BaseException:
            out.unlink()
            raise
    sentence = f"Wrote a token for {name!r} to {out}: it allows `{right}`."
    answer({"name": name, "right": right, "out": str(out)}, sentence, as_json=as_json)


@click.command(epilog="Example: blurfit deeds --store sqlite:///collection.db")
@store_option()
@click.option(
    "--most", type=click.IntRange(1), default=50, show_default=True, help="How many to list."
)
@as_json
def deeds(place: str, most: int, as_json: bool) -> None:
    """List what administrators did, newest first: when, who, what, and the outcome."""
    from blurfit.store import stewards
    from blurfit.store.store import Store

    with Store(place) as store:
        found = store.read(stewards.newest, most)
    lines = [
        f"{dt.datetime.fromtimestamp(one.second, dt.UTC):%Y-%m-%d %H:%M:%S}Z  {one.outcome}  "
        f"{one.steward}: {one.what} {one.fingerprint or ''}".rstrip()
        for one in found
    ]
    facts = {"deeds": [asdict(one) for one in found]}
    answer(facts, "\n".join(lines) or "Nothing yet.", as_json=as_json)
