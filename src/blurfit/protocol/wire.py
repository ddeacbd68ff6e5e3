"""Addresses, media types, headers and the acknowledgement: what both ends must spell alike."""

import msgspec

COLLECTIONS = "/collections"
SUBMISSIONS = "/submissions"  # behind the path of a collection
WITHDRAWALS = "/withdrawals"
ONE_COLLECTION = COLLECTIONS + "/{fingerprint}"
PLANS = "/plans"
ONE_PLAN = PLANS + "/{fingerprint}"

JSON = "application/json"
BINARY = "application/vnd.blurfit.submission"
OCTETS = "application/octet-stream"
PROBLEM = "application/problem+json"

INVITATION = "blurfit-invitation"  # the header: an invitation for each submission, with commas
MOST_SUBMISSIONS = 10_000  # in one request


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
    """Where a service keeps the collection of an agreement.

    >>> path_of("1f")
    '/collections/1f'
    """
    return f"{COLLECTIONS}/{fingerprint}"


def plan_path(fingerprint: str) -> str:
    """Where a service keeps a plan of waves.

    >>> plan_path("1f")
    '/plans/1f'
    """
    return f"{PLANS}/{fingerprint}"


def media_type(header: str) -> str:
    """The media type that a Content-Type header names, without its parameters.

    >>> media_type("Application/JSON; charset=utf-8")
    'application/json'
    """
    return header.partition(";")[0].strip().lower()
