"""The command `blurfit verify`: what a signed file shows, and what no signature shows."""

from pathlib import Path
from typing import TYPE_CHECKING

import blurfit as bf
from blurfit.cli import _common as common
from blurfit.cli._common import Answer, ExistingFile, command
from blurfit.errors import InvalidValueError

if TYPE_CHECKING:
    from blurfit.model.release import Examination

NOT_VERIFIED = 1  # exit code


@command("verify", "model.json --agreement agreement.json")
def verify(file: ExistingFile, *, agreement: tuple[ExistingFile, ...]) -> Answer:
    """Check who signed a model, moments or a receipt (FILE), and say what that shows.

    Exit code 0 if everything that can be checked is right, 1 otherwise.

    Options:
        agreement: The agreement that you were invited under: its key is the one that counts. For a
            receipt over several waves, give one for each.
    """
    from blurfit.contributor.journal import FORMAT
    from blurfit.model.release import examine

    agreements = []
    for path in agreement:
        agreed = common.load_agreed(path)
        if not isinstance(agreed, bf.Agreement):
            raise InvalidValueError(
                f"Expected --agreement {str(path)!r} to be an agreement, and it is a plan: give "
                "the one of the wave that the file is from."
            )
        agreements.append(agreed)
    text = file.read_bytes()
    if common.format_of(file) == FORMAT:
        found = _receipt(text, agreements)
    elif len(agreements) > 1:
        raise InvalidValueError(
            f"Expected one --agreement, and got {len(agreements)}: what was published belongs to "
            "one agreement."
        )
    else:
        found = examine(text, *agreements)
    names = ("verified", "fingerprint", "shown", "wrong", "not_shown")
    facts = {name: getattr(found, name) for name in names}
    return Answer(facts, in_words(file, found), code=0 if found.verified else NOT_VERIFIED)


def in_words(file: Path, found: "Examination") -> str:
    """Say what was found, for people."""
    lines = [f"{file} is {found.called}: {'verified' if found.verified else 'NOT verified'}."]
    for heading, sentences in (
        ("Wrong:", found.wrong),
        ("Shown:", found.shown),
        ("Not shown, and no signature can:", found.not_shown),
    ):
        if sentences:
            lines += ["", heading, *(f"  - {one}" for one in sentences)]
    return "\n".join(lines)


def _receipt(text: bytes, agreements: "list[bf.Agreement]") -> "Examination":
    from blurfit.contributor.journal import Receipt
    from blurfit.model.release import Examination, signers

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
