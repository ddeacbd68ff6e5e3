"""The JSON that the service takes and gives, as types: the OpenAPI document is made from them.

Those of agreements, plans, models and moments are beside their readers: `AgreementDocument`,
`PlanDocument`, `ModelDocument`, `MomentsDocument`.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from blurfit.messages.signing import Signature
from blurfit.protocol.wire import MOST_SUBMISSIONS

Fingerprint = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Meta(ge=0)]
Numbers = Annotated[list[float], Meta(min_length=1)]


class Hour(Struct):
    """How many came in an hour, which is counted since 1970 in UTC."""

    hour: Count
    count: Count


class Hashes(Struct, forbid_unknown_fields=True):
    """SHA-256 of one-time invitations, in hexadecimal digits."""

    hashes: Annotated[list[Fingerprint], Meta(min_length=1, max_length=MOST_SUBMISSIONS)]


class Side(Struct):
    """One of two databases, and how many shares it says that it has; null if it does not say."""

    name: str
    count: Count | None


class Sides(Struct):
    """Both, and why closing now would be in vain; null if it would not."""

    databases: list[Side]
    warning: str | None


class Until(Struct, forbid_unknown_fields=True):
    """A date, which lasts until its end in UTC, or a time with its zone; null for no date."""

    until: str | None


class Invitation(Struct):
    """Whether a submission with an invitation would be let in."""

    usable: bool


class Sums(Struct, forbid_unknown_fields=True):
    """Σ mask mod 2⁶⁴ over a set; whole numbers as texts, since JSON's are too short."""

    digest: Fingerprint
    count: Count
    sums: list[Annotated[str, Meta(pattern="^[0-9]{1,20}$")]]


class Published(Struct, forbid_unknown_fields=True):
    """What the first of two databases found: the texts of the moments, and of the model if they
    have one of their own.
    """

    model: str | None
    moments: str


class ReleasedWave(Struct, forbid_unknown_fields=True):
    """What the first of a plan's two databases has published of a wave, and the text of the
    agreement that follows, if one does.
    """

    moments: str
    following: str | None


class ToldPlan(Struct, forbid_unknown_fields=True):
    """How a plan stands at the first of its two databases; when ended, why and with which model."""

    state: Literal["collecting", "held", "ended"]
    reason: Annotated[str, Meta(max_length=2000)] | None = None
    model: str | None = None


class Signatures(Struct):
    """Of what two databases have published, by either of them."""

    model: list[Signature] = field(default_factory=list)
    moments: list[Signature] = field(default_factory=list)


class Secrets(Struct, forbid_unknown_fields=True):
    """Of submissions that are to be withdrawn: `blurfit.messages.signing`."""

    secrets: Annotated[list[Fingerprint], Meta(min_length=1, max_length=MOST_SUBMISSIONS)]


class SubmissionDocument(Struct, forbid_unknown_fields=True):
    """One blurred record: `blurfit.messages.submissions`."""

    format: Literal["blurfit-submission"]
    version: Literal[1]
    identifier: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    fingerprint: Fingerprint
    numbers: Numbers
