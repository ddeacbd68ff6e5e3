"""`blurfit verify`: what a signed file shows, and what it does not."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from blurfit.commands.common import EXISTING_FILE, as_json, format_of, load_agreed
from blurfit.errors import InvalidValueError

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.model.signed import Examination

NOT_VERIFIED = 1


@click.command(epilog="Example: blurfit verify model.json --agreement agreement.json")
@click.argument("file", type=EXISTING_FILE)
@click.option(
    "--agreement",
    "agreed",
    type=EXISTING_FILE,
    multiple=True,
    help="The agreement that you were invited under: its key is the one that counts. For a receipt "
    "over several waves, give one for each.",
)
@as_json
@click.pass_context
def verify(context: click.Context, file: Path, agreed: tuple[Path, ...], as_json: bool) -> None:
    """Check who signed a model, moments or a receipt (FILE, .json), and say what that shows.

    Exit code 0 if everything that can be checked is right, 1 otherwise.
    """
    from blurfit.agreement.agreement import Agreement
    from blurfit.contributor.receipt import FORMAT
    from blurfit.model.signed import examine

    agreements = []
    for path in agreed:
        agreement = load_agreed(path)
        if not isinstance(agreement, Agreement):
            raise InvalidValueError(
                f"Expected --agreement {str(path)!r} to be an agreement, and it is a plan: give "
                "the one of the wave that the file is from."
            )
        agreements.append(agreement)
    text = file.read_bytes()
    if format_of(file) == FORMAT:
        found = _receipt(text, agreements)
    elif len(agreements) > 1:
        raise InvalidValueError(
            f"Expected one --agreement, and got {len(agreements)}: what was published belongs to "
            "one agreement."
        )
    else:
        found = examine(text, *agreements)
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


def _receipt(text: bytes, agreements: "list[Agreement]") -> "Examination":
    from blurfit.contributor.receipt import Receipt
    from blurfit.model.signed import Examination, signers

    receipt = Receipt.from_json(text)
    if not agreements:
        raise InvalidValueError(
            "Expected --agreement with a receipt: it holds the key that counts. Its fingerprint is "
            f"{receipt.fingerprint}."
        )
    wrong = tuple(receipt.wrong_with(*agreements))
    rows = sum(part.rows for part in receipt.parts)
    # Not at which addresses: these are not signed.
    names = dict.fromkeys(name for one in agreements for name in signers(one))
    shown = (
        f"{' and '.join(names)} signed, with the key of the agreement, that {rows:,} submissions "
        "are stored under these names."
    )
    return Examination(
        "a receipt",
        receipt.fingerprint,
        () if wrong else (shown,),
        wrong,
        (
            "That the submissions are in what is published, or are still stored: they may have "
            "been withdrawn by anyone who has the receipt.",
            "What was sent: a receipt contains neither answers nor blurred numbers.",
        ),
    )
