"""`blurfit verify`: what a signed file shows, and what it does not."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from blurfit.commands.common import as_json, load_agreed
from blurfit.errors import InvalidValueError

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.model.signed import Examination

NOT_VERIFIED = 1


@click.command(epilog="Example: blurfit verify model.json --agreement agreement.json")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--agreement",
    "agreed",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The agreement that you were invited with: its key is the one that counts.",
)
@as_json
@click.pass_context
def verify(context: click.Context, file: Path, agreed: Path | None, as_json: bool) -> None:
    """Check who signed a model, moments or a receipt (FILE, .json), and say what that shows.

    Exit code 0 if all that can be checked is right, 1 if something is not.
    """
    from blurfit.agreement.agreement import Agreement
    from blurfit.contributor.receipt import FORMAT
    from blurfit.model.signed import examine

    agreement = None if agreed is None else load_agreed(agreed)
    if agreement is not None and not isinstance(agreement, Agreement):
        raise InvalidValueError(
            f"Expected --agreement {str(agreed)!r} to be an agreement, and it is a plan: give the "
            "one of the wave that the model is from (`blurfit next`)."
        )
    text = file.read_bytes()
    look = _receipt if _format_of(text) == FORMAT else examine
    found = look(text, agreement)
    if as_json:
        values = {
            "verified": found.verified,
            "fingerprint": found.fingerprint,
            "shown": found.shown,
            "wrong": found.wrong,
            "not_shown": found.not_shown,
        }
        click.echo(json.dumps(values, indent=2, ensure_ascii=False))
    else:
        click.echo(in_words(file, found))
    if not found.verified:
        context.exit(NOT_VERIFIED)


def in_words(file: Path, found: "Examination") -> str:
    """What was found, for people."""
    lines = [f"{file} is {found.called}: {'verified' if found.verified else 'NOT verified'}."]
    for heading, sentences in (
        ("Wrong:", found.wrong),
        ("Shown:", found.shown),
        ("Not shown, and no signature can:", found.not_shown),
    ):
        if sentences:
            lines += ["", heading, *(f"  - {one}" for one in sentences)]
    return "\n".join(lines)


def _receipt(text: bytes, agreement: "Agreement | None") -> "Examination":
    from blurfit.contributor.receipt import Receipt
    from blurfit.model.signed import Examination, signers

    receipt = Receipt.from_json(text)
    if agreement is None:
        raise InvalidValueError(
            "Expected --agreement with a receipt: the key that counts stands there, under the "
            f"fingerprint {receipt.fingerprint}."
        )
    wrong = tuple(receipt.wrong_with(agreement))
    rows = sum(part.rows for part in receipt.parts)
    # Not at which addresses: these are not signed.
    shown = (
        f"{' and '.join(signers(agreement))} signed, with the key of the agreement, that {rows:,} "
        "submissions are stored under these names."
    )
    return Examination(
        "a receipt",
        receipt.fingerprint,
        () if wrong else (shown,),
        wrong,
        (
            "That the submissions are in what is published, or are still stored: they may have "
            "been withdrawn by whoever has the receipt.",
            "What was sent: a receipt has neither answers nor blurred numbers.",
        ),
    )


def _format_of(text: bytes) -> str | None:
    try:
        document = json.loads(text)
    except (RecursionError, ValueError):
        return None  # which is told in better words
    return document.get("format") if isinstance(document, dict) else None
