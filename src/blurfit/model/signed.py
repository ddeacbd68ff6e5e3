"""What a signed file shows, and what it does not: for whoever reads a model that others published.

A file is signed by the keys that its agreement names (`blurfit.messages.signing`), one of each
database. So whoever has the agreement from somewhere else, the link or the file that contributors
were invited with, can tell whether this is what those services published. Whoever has the file
alone can tell that nobody changed it since, unless he changed the key as well.
"""

from dataclasses import dataclass

from blurfit.agreement.agreement import Agreement
from blurfit.errors import BlurfitError, InvalidValueError
from blurfit.json_reader import read_json
from blurfit.messages.signing import about_release, is_signed
from blurfit.model.moments import PublishedMoments
from blurfit.model.published import PublishedModel

KINDS: tuple[type[PublishedModel | PublishedMoments], ...] = (PublishedModel, PublishedMoments)


@dataclass(frozen=True)
class Examination:
    """What was found of a file: whether all is well, what that shows, what is wrong, and what
    nobody can see from here.
    """

    called: str
    fingerprint: str | None
    shown: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    not_shown: tuple[str, ...] = ()

    @property
    def verified(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong


def examine(text: str | bytes, agreement: Agreement | None = None) -> Examination:
    """Look at a model or a release of moments; `agreement` is the one that it should be under."""
    try:
        document = read_json(text)
        stated = document.get("format") if isinstance(document, dict) else None
    except ValueError as error:
        raise InvalidValueError(f"Expected a file in JSON: {error}.") from error
    kind = next((one for one in KINDS if stated == one.FORMAT), None)
    if kind is None:
        raise InvalidValueError(
            f"Expected a model or moments that a service published, and got format={stated!r}."
        )
    try:
        found = kind.from_dict(document)
        message = about_release(document)
    except (BlurfitError, ValueError) as error:  # or numbers that have no canonical text
        return Examination(kind.CALLED, None, wrong=(str(error),))
    named, promise = found.agreement, found.guarantee
    shown, wrong = [], []
    if promise.private:
        shown.append(
            f"Its promise, {promise.numbers}, follows from the noise of the agreement that it "
            f"carries, {named.fingerprint}."
        )
    else:
        wrong.append(promise.in_words)
    if agreement is not None and agreement.fingerprint != named.fingerprint:
        wrong.append(
            f"It belongs to another agreement: you gave {agreement.fingerprint}, and it carries "
            f"{named.fingerprint}."
        )
    elif agreement is not None:
        shown.append("That is the agreement that you gave.")
    signed = {one.key: one.signature for one in found.signatures}
    for key, name in zip(named.signing_keys, signers(named), strict=False):  # or no key at all
        if is_signed(message, key, signed.get(key)):
            shown.append(f"{name} signed this very file with the key of the agreement, {key}.")
        elif key in signed:
            wrong.append(
                f"The signature of {name} does not match this file: one of them was changed."
            )
        else:
            wrong.append(f"{name} has not signed it with the key of the agreement, {key}.")
    if not named.signing_keys:
        wrong.append(
            "The agreement names no key, so nobody's signature could be told from another's. Agree "
            "with --signing-key, where it matters."
        )
    return Examination(
        kind.CALLED,
        named.fingerprint,
        tuple(shown),
        tuple(wrong),
        _not_shown(found, given=agreement is not None),
    )


def signers(agreement: Agreement) -> tuple[str, ...]:
    """Whose key is whose, in words: the names of two databases, or the service."""
    return tuple(one.name for one in agreement.databases) or ("The service",)


def _not_shown(found: PublishedModel | PublishedMoments, *, given: bool) -> tuple[str, ...]:
    """What no signature can say."""
    told = []
    if not given:
        told.append(
            "Whose key it is: it stands in the agreement that the file carries itself. Give the "
            "agreement that you have from elsewhere (--agreement), or compare its fingerprint."
        )
    if found.held:
        told.append(
            "That whoever held the rows was honest: the noise was added, and nothing more of the "
            "rows was published."
        )
    else:
        told += [
            "That whoever holds a key counted everyone who sent something, and nobody else; a "
            "receipt says that a submission was stored, and not that it is in the sums.",
            "That the contributors were honest, or as many people as there are submissions.",
        ]
    if isinstance(found, PublishedModel) and len(found.waves) > 1:
        told.append(
            "That earlier waves had as much noise: the agreement is the last one's. Verify the "
            "release of each."
        )
    if found.models > 1:
        told.append("That the other models of the fit have as much noise, and how many there are.")
    if found.agreement.database_noise:
        told.append("That noise of the database itself was added.")
    return tuple(told)
