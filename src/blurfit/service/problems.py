"""Refusals as problem documents (RFC 9457): what was wrong, which value, what to do.

`type` is what a program looks at, `detail` what a person reads: the message of the error, which
names the value and the remedy. Nothing that was submitted is ever repeated but the number that was
wrong.
"""

from dataclasses import dataclass

import msgspec

from blurfit.errors import (
    BelowQuorumError,
    BlurfitError,
    ClosedError,
    ConflictError,
    InfeasibleError,
    InvalidValueError,
    NotInvitedError,
    NotPublishedError,
    ServiceError,
    StorageError,
    UnknownCollectionError,
)

MEDIA_TYPE = "application/problem+json"


class Problem(msgspec.Struct, omit_defaults=True):
    """The document."""

    type: str
    title: str
    status: int
    detail: str


@dataclass(frozen=True)
class Kind:
    """A kind of refusal: the last part of its `type`, its status, its title, and when to return."""

    name: str
    status: int
    title: str
    retry_after: int | None = None

    def problem(self, detail: str) -> Problem:
        """The document of one such refusal."""
        return Problem(f"urn:blurfit:problem:{self.name}", self.title, self.status, detail)


INVALID = Kind("invalid", 400, "This cannot be accepted")
UNAUTHORISED = Kind("unauthorised", 401, "The administrator's token is needed")
NOT_INVITED = Kind("not-invited", 403, "An invitation is needed")
NOT_FOUND = Kind("not-found", 404, "There is nothing here")
UNKNOWN = Kind("unknown-collection", 404, "Nothing is collected under this fingerprint")
NOT_PUBLISHED = Kind("not-published", 404, "Nothing has been published")
NOT_ALLOWED = Kind("method-not-allowed", 405, "This cannot be done here")
TOO_SLOW = Kind("too-slow", 408, "The body did not arrive in time")
CONFLICT = Kind("conflict", 409, "The name is taken by something else")
CLOSED = Kind("closed", 409, "The collection is closed")
BELOW_QUORUM = Kind("below-quorum", 409, "Too few contributors")
INFEASIBLE = Kind("infeasible", 409, "This cannot be had")
TOO_LARGE = Kind("too-large", 413, "The body is too large")
WRONG_TYPE = Kind("unsupported-media-type", 415, "The body is of another kind")
TOO_MANY = Kind("too-many-requests", 429, "Too many requests from this address", retry_after=1)
OTHER_DATABASE = Kind("other-database", 502, "The other database did not help", retry_after=2)
UNAVAILABLE = Kind("unavailable", 503, "Storage is not available", retry_after=2)

# The first that fits, so the particular come before the general.
_KINDS: tuple[tuple[type[BlurfitError], Kind], ...] = (
    (UnknownCollectionError, UNKNOWN),
    (NotPublishedError, NOT_PUBLISHED),
    (NotInvitedError, NOT_INVITED),
    (ConflictError, CONFLICT),
    (ClosedError, CLOSED),
    (BelowQuorumError, BELOW_QUORUM),
    (InvalidValueError, INVALID),
    (InfeasibleError, INFEASIBLE),
    (StorageError, UNAVAILABLE),
    (ServiceError, OTHER_DATABASE),
    (BlurfitError, INVALID),
)


class RequestError(Exception):
    """A refusal that is about the request and not about what is in it."""

    def __init__(self, kind: Kind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


def of_error(error: BlurfitError | RequestError) -> tuple[Kind, Problem]:
    """What to answer."""
    if isinstance(error, RequestError):
        return error.kind, error.kind.problem(str(error))
    kind = next(kind for cause, kind in _KINDS if isinstance(error, cause))
    detail = str(error)
    if kind is UNAVAILABLE:  # the words of the storage itself are for the log
        detail = "Nothing was kept. Send the same again after a while; it will be counted once."
    return kind, kind.problem(detail)
