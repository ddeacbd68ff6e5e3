"""The JSON that the service takes and gives, as types: the OpenAPI document is made from them.

Agreements, submissions, models and moments have readers of their own, which say more about what is
wrong with one; what stands here of them is their outline.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from blurfit.agreement.statement import SeenBy
from blurfit.agreement.terms import Admission, Mechanism, Sends
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


class AgreementDocument(Struct):
    """What everyone agreed on: `blurfit.agreement.agreement`."""

    format: Literal["blurfit-agreement"]
    version: Literal[1]
    fingerprint: Fingerprint
    schema: dict[str, Any]
    mechanism: Mechanism
    weights: dict[str, float] | None  # of the columns, with `moment`
    objective: dict[str, Any] | None  # of the one model, with `input`
    calibration: dict[str, Any]
    grid: dict[str, Any]
    databases: list[dict[str, str]]
    public_rows: str | None  # SHA-256 of a public file, where models use one
    wave: dict[str, Any] | None  # which of a plan it is, where there are several
    admission: Admission = "invited"  # left out where it is that
    database_noise: bool = False  # likewise, and so for those below
    proofs: bool = False
    sends: Sends = "everything"
    signing_keys: list[Fingerprint] = field(default_factory=list)  # of 32 bytes, too


class PlanDocument(Struct):
    """What everyone agreed on, where people are asked in waves: `blurfit.agreement.plan`."""

    format: Literal["blurfit-plan"]
    version: Literal[1]
    rule: Literal[1]  # of how a map follows from releases
    fingerprint: Fingerprint
    schema: dict[str, Any]
    task: Literal["number", "label", "count"]
    waves: list[dict[str, Any]]  # of each: kind, people, and how many must be honest
    epsilon: float
    delta: float
    quorum: Count  # of all waves together
    colluders: float  # the share of any wave that may collude
    weights: dict[str, float]  # these, and what follows, of the first wave
    calibration: dict[str, Any]
    grid: dict[str, float]


class Moments(Struct):
    """The blurred sums: `blurfit.model.moments`."""

    format: Literal["blurfit-moments"]
    version: Literal[1]
    software: str
    caveats: list[str]
    seen_by: SeenBy
    fingerprint: Fingerprint
    admission: Admission | None
    condition: str  # what the promise needs
    count: Count
    deviation: float
    products: list[str]
    sums: Numbers
    agreement: AgreementDocument
