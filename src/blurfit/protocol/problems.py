"""Refusals as problem documents (RFC 9457): what was wrong, and what to do.

`type` is what a program looks at, `detail` what a person reads. Nothing that was submitted is ever
repeated. One table says which error is which kind of problem, for the service that writes the
document and for the client that turns it into the same error again.
"""

from dataclasses import dataclass

import msgspec

from blurfit import errors
from blurfit.errors import BlurfitError, ServiceError

_TYPE = "urn:blurfit:problem:"


class Problem(msgspec.Struct):
    """A problem document."""

    type: str = ""
    title: str = ""
    status: int = 0
    detail: str = ""


@dataclass(frozen=True)
class Kind:
    """A kind of refusal: the last part of its `type`, its status, its title, and when to return."""

    name: str
    status: int
    title: str
    retry_after: int | None = None

    def problem(self, detail: str) -> Problem:
        """Return the document of one such refusal."""
        return Problem(_TYPE + self.name, self.title, self.status, detail)


INVALID = Kind("invalid", 400, "This cannot be accepted")
UNAUTHORISED = Kind("unauthorised", 401, "The administrator's token is needed")
NOT_INVITED = Kind("not-invited", 403, "You need an invitation")
NOT_FOUND = Kind("not-found", 404, "There is nothing here")
UNKNOWN = Kind("unknown-collection", 404, "There is no such survey here")
NOT_PUBLISHED = Kind("not-published", 404, "Nothing has been published yet")
NOT_ALLOWED = Kind("method-not-allowed", 405, "This cannot be done here")
TOO_SLOW = Kind("too-slow", 408, "The body did not arrive in time")
OTHER_GROUP = Kind("other-group", 409, "Another group is asked now")
CONFLICT = Kind("conflict", 409, "This contradicts what is there already")
CLOSED = Kind("closed", 409, "The survey has closed")
WAVE_CLOSED = Kind("wave-closed", 409, "This group has closed")
DATE_CLOSED = Kind("date-closed", 409, "The survey closed at its date")
BELOW_QUORUM = Kind("below-quorum", 409, "Too few contributors")
INFEASIBLE = Kind("infeasible", 409, "This is not possible as things stand")
TOO_LARGE = Kind("too-large", 413, "The body is too large")
WRONG_TYPE = Kind("unsupported-media-type", 415, "The body is of another kind")
OUTDATED = Kind("outdated", 426, "Another release of blurfit is needed")
TOO_MANY = Kind("too-many-requests", 429, "Too many requests from this address", retry_after=1)
CROWDED = Kind("crowded", 429, "Too much comes to this survey", retry_after=2)
UNEXPECTED = Kind("unexpected", 500, "Something went wrong here")
OTHER_DATABASE = Kind("other-database", 502, "The other database did not help", retry_after=2)
BETWEEN_WAVES = Kind("between-waves", 503, "The next group is about to be asked", retry_after=1)
PAUSED = Kind("paused", 503, "The survey is paused", retry_after=30)
BUSY = Kind("busy", 503, "Too much comes at once", retry_after=2)
UNAVAILABLE = Kind("unavailable", 503, "Storage is not available", retry_after=2)

# Which error is which kind; the first that fits, so the particular come before the general.
KINDS: tuple[tuple[type[BlurfitError], Kind], ...] = (
    (errors.UnknownCollectionError, UNKNOWN),
    (errors.NotPublishedError, NOT_PUBLISHED),
    (errors.NotInvitedError, NOT_INVITED),
    (errors.ConflictError, CONFLICT),
    (errors.OtherGroupError, OTHER_GROUP),
    (errors.WaveClosedError, WAVE_CLOSED),
    (errors.DateClosedError, DATE_CLOSED),
    (errors.PausedError, PAUSED),
    (errors.BetweenWavesError, BETWEEN_WAVES),
    (errors.ClosedError, CLOSED),
    (errors.BelowQuorumError, BELOW_QUORUM),
    (errors.InvalidValueError, INVALID),
    (errors.InfeasibleError, INFEASIBLE),
    (errors.StorageError, UNAVAILABLE),
    (ServiceError, OTHER_DATABASE),
    (BlurfitError, INVALID),
)


class RequestError(Exception):
    """A refusal that is about the request and not about what is in it."""

    def __init__(self, kind: Kind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


def of_error(error: BlurfitError | RequestError) -> tuple[Kind, Problem]:
    """Return what a service answers when an error was raised."""
    if isinstance(error, RequestError):
        return error.kind, error.kind.problem(str(error))
    kind = next(kind for cause, kind in KINDS if isinstance(error, cause))
    detail = str(error)
    if kind is UNAVAILABLE:  # the words of the storage itself are for the log
        detail = "Nothing was kept. Send the same request again later; it will be counted once."
    return kind, kind.problem(detail)


def as_error(document: bytes, status: int) -> BlurfitError:
    """Return the error that a refusal stands for; of the request itself, a ServiceError."""
    try:
        problem = msgspec.json.decode(document, type=Problem)
    except (msgspec.MsgspecError, UnicodeError):
        problem = Problem()
    detail = problem.detail or f"The service answered {status}."
    for cause, kind in KINDS:
        if problem.type == _TYPE + kind.name and cause is not ServiceError:
            return cause(detail)
    return ServiceError(detail, status)
