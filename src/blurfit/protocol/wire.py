"""Addresses, media types, headers and the acknowledgement: what both ends must spell alike.

**Versions.** Whatever has changed its meaning has changed its name: a collection and a plan of
waves have one set of addresses, behind /collections, two databases meet behind …/peer, and
submissions have a media type of version 2. Under the old names a service answers nothing but that
the other end is of another release (`OUTDATED`), so that nobody is misunderstood.
"""

import msgspec

COLLECTIONS = "/collections"
ONE_COLLECTION = COLLECTIONS + "/{fingerprint}"
SUBMISSIONS = "/submissions"  # behind the path of a collection
WITHDRAWALS = "/withdrawals"
PEER = "/peer"  # what one of two databases asks the other

JSON = "application/json"
BINARY = "application/vnd.blurfit.submission.v2"
OCTETS = "application/octet-stream"
PROBLEM = "application/problem+json"

# Of version 1: places, what is behind the path of a collection, and how submissions were called.
OLD_PLACES = ("/plans", "/agreements", "/deeds")
OLD_SHARES = "/shares/"
OLD_BINARY = "application/vnd.blurfit.submission"
OUTDATED = (
    "This service is of another release of blurfit than whoever asks, and nothing was done. Let "
    "both use the same release: install the current one, or load the page again."
)

INVITATION = "blurfit-invitation"  # the header: an invitation for each submission, with commas
MOST_SUBMISSIONS = 10_000  # in one request


def is_old(path: str) -> bool:
    """Tell whether a path had a meaning in version 1 that it has no more.

    >>> is_old("/plans/1f"), is_old("/collections/1f/shares/sum"), is_old("/collections/1f")
    (True, True, False)
    """
    place = "/" + path[1:].partition("/")[0]
    return place in OLD_PLACES or (place == COLLECTIONS and OLD_SHARES in path)


class Acknowledgement(msgspec.Struct, omit_defaults=True):
    """They are on disk: so many were accepted, and so many of them were new.

    Signed where the agreement names a key (`blurfit.messages.signing`).
    """

    accepted: int
    new: int
    signature: str | None = None


class Withdrawal(msgspec.Struct, omit_defaults=True):
    """So many submissions are withdrawn, so many of them just now; some were never here, and some
    stay, because the collection closed before they were reached.

    The signature is for those that are withdrawn, in the order in which they were asked for.
    """

    withdrawn: int
    new: int
    unknown: list[str] = msgspec.field(default_factory=list)  # identifiers
    signature: str | None = None
    staying: list[str] = msgspec.field(default_factory=list)  # identifiers


def path_of(fingerprint: str) -> str:
    """Return where a service keeps what is collected under an agreement or a plan.

    >>> path_of("1f")
    '/collections/1f'
    """
    return f"{COLLECTIONS}/{fingerprint}"


def media_type(header: str) -> str:
    """Return the media type that a Content-Type header names, without its parameters.

    >>> media_type("Application/JSON; charset=utf-8")
    'application/json'
    """
    return header.partition(";")[0].strip().lower()
