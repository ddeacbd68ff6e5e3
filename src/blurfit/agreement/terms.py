"""Terms: what may be chosen about a collection, in one list from which every way to choose is made;
and the two databases between which trust may be shared.

`Agreement.propose`, the options of `blurfit agree`, the [terms] of a plan's file, the form of the
administration page and the service's description all take these fields; each field's description is
the help that people read. What terms need is checked when they are chosen, and again when an
agreement is verified.

Two databases add shares mod 2⁶⁴. Their sum is exact if every honest number is at most B < 2³¹
steps, for up to 2³² contributors, and the noise is paid for if it spans at least 2¹⁰ steps (with
proofs, that of the sums). Both are checked when an agreement is made, and by everyone who receives
one (`docs/theory/grid.md`).
"""

import ipaddress
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from blurfit import errors
from blurfit.theory.moments import NEIGHBOURS, Neighbours
from blurfit.wording import Series

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement
    from blurfit.theory.moments import MomentCalibration

Trust = Literal["one", "shared"]
MOST_CONTRIBUTORS = 2**32
LEAST_NOISE = 2.0**10  # steps that the deviation of a number's noise spans, at least
DEVIATIONS = 40.0  # beyond which noise does not go
_LARGEST_NAME = 100
# 1/ϱ: a common set may leave out at most one in so many of a database
# (`blurfit_server.store.joint`).
LEFT_OUT_ONE_IN: dict[str, int] = {"first": 10, "second": 2}


class Database(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of two databases: the name of whoever runs it, where its service is, and its public key
    if shares are sealed to it (`blurfit.messages.submissions`).

    >>> Database("Statistics Office", "https://first.example")
    Database(name='Statistics Office', url='https://first.example', key=None)
    """

    name: str
    url: str
    key: str | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and 0 < len(self.name.strip()) <= _LARGEST_NAME):
            raise errors.InvalidValueError(
                "Expected name={name!r} to say who runs a database, in 1 to {largest_name} "
                "characters.",
                name=self.name,
                largest_name=_LARGEST_NAME,
            )
        if not self.name.isprintable() or self.name != self.name.strip():
            raise errors.InvalidValueError(
                "Expected name={name!r} to be one line without spaces around it.", name=self.name
            )
        if not isinstance(self.url, str) or not _is_origin(self.url):
            raise errors.InvalidValueError(
                "Expected url={url!r} to be an origin such as https://first.example: https, "
                "a host in lower case and perhaps a port (http only for this machine itself). "
                "Otherwise somebody who listens on the way could put the shares together.",
                url=self.url,
            )
        if self.key is not None:
            from blurfit.messages.submissions import require_key

            require_key(self.key)


def require_two(databases: Sequence[Database]) -> None:
    """Refuse anything but two databases of different names, at different addresses."""
    names, urls = ({getattr(one, part) for one in databases} for part in ("name", "url"))
    if not len(databases) == len(names) == len(urls) == 2:
        raise errors.InvalidValueError(
            "Expected two databases of different names and addresses, and got "
            "{databases}: whoever has both shares has "
            "the blurred record.",
            databases=[(one.name, one.url) for one in databases],
        )
    keys = [one.key for one in databases]
    if keys != [None, None] and (None in keys or keys[0] == keys[1]):
        raise errors.InvalidValueError(
            "Expected a different key for each of the two databases, or none: shares are sealed to "
            "both, or to neither."
        )


def largest_steps(calibration: "MomentCalibration", step: float, scale: float = 1.0) -> float:
    """B; `scale` is how much larger than on the diagonal numbers and their noise are where they are
    the largest: τ for Newton's p (`blurfit.theory.forms`), else 1.
    """
    one = calibration.reach.submission + DEVIATIONS * calibration.noise
    return scale * one / step + 1


def refuse_unless_shareable(
    calibration: "MomentCalibration", step: float, scale: float = 1.0, *, proofs: bool = False
) -> None:
    """Refuse a step that is too coarse for its noise, or noise too large for 2³² to add."""
    least = calibration.noise / 2**0.5  # off the diagonal there is less
    if proofs:
        least *= calibration.quorum**0.5
    if least < LEAST_NOISE * step:
        raise errors.InfeasibleError(
            "Expected the noise {least:.4g} to span {least_noise:g} steps of {step:.4g}. Propose "
            "the agreement again: its grid is too coarse for sharing.",
            least=least,
            least_noise=LEAST_NOISE,
            step=step,
        )
    largest = largest_steps(calibration, step, scale)
    if largest * MOST_CONTRIBUTORS >= 2.0**63:
        raise errors.InfeasibleError(
            "Expected a blurred number to stay below 2**31 steps, so that 2**32 contributors "
            "cannot overflow, but it may have {largest:.4g}: the noise is too large for its grid. "
            "Leave local_epsilon out, or raise it: neither of the two sees a submission anyway.",
            largest=largest,
        )


def most_left_out(agreement: "Agreement", role: str, held: int) -> int:
    """Return how many of those whom a database holds a set may leave out."""
    if agreement.database_noise or agreement.admission == "anyone":
        return held
    return held // LEFT_OUT_ONE_IN[role]


def _is_origin(url: str) -> bool:
    """Return whether this is scheme, host and perhaps port as browsers write an origin."""
    if not re.fullmatch(r"https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?", url):
        return False
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if port == {"http": 80, "https": 443}[parts.scheme]:
        return False
    with suppress(ValueError):
        return parts.scheme == "https" or ipaddress.ip_address(host).is_loopback
    return host == "localhost"


LEAST_DELTA = 1e-30
MOST_EPSILON_BEHIND_NOISE = 500.0


def require_rules(agreed: Any, *, waves: bool = False) -> None:
    """Refuse terms, or an agreement, with a value that is none of its term, or that others exclude.

    δ is at least what the random bits are worth: noise comes of a block cipher in counter mode,
    whose blocks differ from chance by up to 10⁻³⁷ in one submission (`blurfit.randomness`).
    With database_noise sums must be exact before noise is added to them, so each submission must be
    bounded: for an ε beyond some hundreds nothing is refused by its size (`blurfit.learning.sums`).
    """
    errors.one_of(ADMISSIONS, admission=agreed.admission)
    for name in ("database_noise", "diaries", "proofs"):
        value = getattr(agreed, name)
        if type(value) is not bool and (name, value) != ("proofs", None):
            raise errors.InvalidValueError(
                "Expected {name}={value!r} to be true or false.", name=name, value=value
            )
    if agreed.delta < LEAST_DELTA:
        raise errors.InvalidValueError(
            "Expected delta={delta!r} to be at least {least_delta:g}: noise from a "
            "cipher's bits cannot promise less.",
            delta=agreed.delta,
            least_delta=LEAST_DELTA,
        )
    if agreed.database_noise and agreed.epsilon > MOST_EPSILON_BEHIND_NOISE:
        raise errors.InvalidValueError(
            "Expected epsilon={epsilon!r} to be at most {most_epsilon_behind_noise:g} with "
            "database_noise: a larger one promises nothing that noise could keep.",
            epsilon=agreed.epsilon,
            most_epsilon_behind_noise=MOST_EPSILON_BEHIND_NOISE,
        )
    if agreed.databases:
        require_two(agreed.databases)
    _require_signing_keys(agreed.signing_keys, databases=agreed.databases)
    require_together(agreed, waves=waves)


def require_together(
    agreed: Any, *, target: Any = None, waves: bool = False, served: bool = False
) -> None:
    """Refuse what cannot be had together, of terms, an agreement or a plan: here and nowhere else.

    Terms have no schema, so whoever knows one gives its `target`; `served` says that a store is to
    collect it.
    """
    proofs = bool(agreed.proofs)
    target = target or getattr(getattr(agreed, "schema", None), "target", None)
    exits = getattr(target, "kind", None) == "exit"  # by its word: `--help` waits for no columns
    coded = agreed.groups is not None or agreed.weighting is not None
    for together, reason in (
        (
            proofs and not agreed.databases,
            "Expected two databases with proofs=True: one database sees how long a submission is.",
        ),
        (
            proofs and waves,
            "Expected no proofs with waves: between two databases they exist for one wave alone, "
            "so far. Propose one wave, or leave proofs out: then nothing limits what one "
            "contributor who lies can do to the model.",
        ),
        (
            exits and agreed.groups is not None,
            "Expected no groups with a time to an event as the target: curves by group follow "
            "from features.",
        ),
        (
            exits and agreed.weighting is not None,
            "Expected no weighting with a time to an event as the target.",
        ),
        (
            exits and proofs,
            "Expected no proofs with a time to an event as the target: they are about products of "
            "answers.",
        ),
        (
            exits and getattr(agreed, "wave", None) is not None,
            "Expected one wave for a time to an event as the target: additive hazards, curves and "
            "tests follow from it.",
        ),
        (
            exits and served and agreed.diaries,
            "Expected no diaries with a time to an event at a service: its page asks for one "
            "exit. Collect several spells of a person in files (`blurfit contribute --person`).",
        ),
        (
            coded and waves,
            "Expected no groups and no weighting with waves: a wave's map is for everybody alike, "
            "and says nothing of groups or weights. Propose one wave.",
        ),
        (
            agreed.overlap != 0 and agreed.groups is None,
            "Expected groups with overlap: it is how far their codes overlap.",
        ),
        (
            agreed.factors and agreed.weighting is None,
            "Expected weighting with factors: it names the question whose levels they belong to.",
        ),
    ):
        if together:
            raise errors.InfeasibleError(reason)


def _require_signing_keys(keys: Any, *, databases: tuple[Database, ...]) -> None:
    """Refuse what are no public keys, and more or fewer of them than databases that sign."""
    if not isinstance(keys, tuple | list):  # null would be a second text for none
        raise errors.InvalidValueError(
            "Expected signing_keys={keys!r} to be a list of public keys.", keys=keys
        )
    if not keys:
        return
    from blurfit.messages.signing import require_public_key  # `--help` needs no cryptography

    for key in keys:
        require_public_key(key)
    wanted = max(1, len(databases))
    if len(set(keys)) != len(keys) or len(keys) != wanted:
        raise errors.InvalidValueError(
            "Expected {wanted} different signing_keys, one for each database in their order, and "
            "got {keys_count}.",
            wanted=wanted,
            keys_count=len(keys),
        )


Admission = Literal["invited", "anyone"]
ADMISSIONS: tuple[Admission, ...] = ("invited", "anyone")
Factors = tuple[tuple[str, float], ...]  # a level, and the weight of whoever has it
COLLUDERS, MOST_COLLUDERS = 0.1, 0.5  # of the people of any wave


class LaterTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the documents of agreements and plans leave out while it has its default.

    So those that do not use one keep their fingerprint. A default that is written out is refused,
    for one fingerprint has one text.
    """

    admission: Admission = "invited"
    database_noise: bool = False
    proofs: bool = False
    groups: str | None = None
    overlap: float = 0.0
    weighting: str | None = None
    factors: Factors = ()
    signing_keys: tuple[str, ...] = ()
    diaries: bool = False

    @classmethod
    def of(cls, agreed: Any) -> dict[str, Any]:
        """Return those of an agreement, of terms, or of a document."""
        return {name: getattr(agreed, name) for name in LATER_TERMS}


LATER_TERMS: tuple[str, ...] = LaterTerms.__struct_fields__


class Terms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The promise, and for whom.

    >>> Terms(epsilon=1, delta=1e-6, quorum=5000).neighbours
    'replace'
    """

    epsilon: Annotated[
        float,
        Meta(
            description="ε of everything that is published.",
            extra_json_schema={"exclusiveMinimum": 0},
        ),
    ]
    delta: Annotated[
        float,
        Meta(
            description="δ of everything that is published.",
            extra_json_schema={"exclusiveMinimum": 0, "exclusiveMaximum": 1},
        ),
    ]
    quorum: Annotated[
        int,
        Meta(
            description="The least number of honest contributors; in waves, how many people all of "
            "them wait for, colluders included.",
            extra_json_schema={"minimum": 1},
        ),
    ]
    neighbours: Annotated[
        Neighbours,
        Meta(
            description="What may change of one person: their record is replaced, or blanked out."
        ),
    ] = "replace"
    local_epsilon: Annotated[
        float | None, Meta(description="A target ε for each single submission as well.")
    ] = None
    local_delta: Annotated[float | None, Meta(description="δ for a single submission.")] = None
    databases: Annotated[
        tuple[Database, ...],
        Meta(description="Name and URL of each of two databases, neither of which sees an answer."),
    ] = ()
    admission: Annotated[
        Admission,
        Meta(
            description="Who may take part: people who are invited, or anyone. With anyone, nobody "
            "can tell how many submissions come from honest people, whom the promise needs."
        ),
    ] = "invited"
    database_noise: Annotated[
        bool,
        Meta(
            description="The database adds noise of its own, once, so that the promise to readers "
            "holds even if every other contributor lies. It doubles the variance; two databases "
            "triple it."
        ),
    ] = False
    colluders: Annotated[
        float | None,
        Meta(
            description="In waves: the share of the people of any wave who may collude, from 0 to "
            "0.5. Noise is sized for the others. Default: 0.1."
        ),
    ] = None
    proofs: Annotated[
        bool | None,
        Meta(
            description="Contributors prove to the two databases that what they send is no longer "
            "than an honest submission; otherwise one liar can move the model anywhere. Default: "
            "with two databases, in one wave. Waves have no proofs yet."
        ),
    ] = None
    groups: Annotated[
        str | None,
        Meta(
            description="A question with levels, by which sums are kept apart: a model in each "
            "group, and differences between groups. Which group somebody is in stays private."
        ),
    ] = None
    overlap: Annotated[
        float,
        Meta(
            description="With groups: 0 is best for each group and for differences, 0.5 for a "
            "model of everybody together, from four groups on."
        ),
    ] = 0.0
    weighting: Annotated[
        str | None,
        Meta(
            description="The question that gives each person's weight in all sums: a number from "
            "0, divided by its upper bound, or levels with factors."
        ),
    ] = None
    factors: Annotated[
        Factors,
        Meta(
            description="With weighting by a question with levels: the weight of each level, from "
            "0 to 1."
        ),
    ] = ()
    signing_keys: Annotated[
        tuple[str, ...],
        Meta(
            description="The public key with which the service signs receipts and what it "
            "publishes, as `blurfit serve` prints it; with two databases, one for each."
        ),
    ] = ()
    diaries: Annotated[
        bool,
        Meta(
            description="A person may have several rows, whose mean is sent: one submission, with "
            "the noise of one row, and a promise for all of them together."
        ),
    ] = False
    constant: Annotated[float | None, Meta(description="Public weight of the intercept.")] = None
    weights: Annotated[
        dict[str, float] | None,
        Meta(description="Public weight of each column, by its name."),
    ] = None

    def __post_init__(self) -> None:
        errors.positive(epsilon=self.epsilon)
        errors.inside_unit_interval(delta=self.delta)
        errors.whole(quorum=self.quorum)
        if self.quorum >= 2**53:
            raise errors.InvalidValueError(
                "Expected quorum={quorum} below 2**53, which every party can represent.",
                quorum=self.quorum,
            )
        errors.one_of(NEIGHBOURS, neighbours=self.neighbours)
        for name in ("local_epsilon", "local_delta", "constant"):
            if (value := getattr(self, name)) is not None:
                errors.finite(**{name: value})
        require_rules(self)
        if self.colluders is not None and not 0 <= self.colluders <= MOST_COLLUDERS:
            raise errors.InvalidValueError(
                "Expected colluders={colluders!r} to be a share from 0 to {most_colluders}.",
                colluders=self.colluders,
                most_colluders=MOST_COLLUDERS,
            )

    @classmethod
    def of(cls, **choices: Any) -> "Terms":
        """From whatever numbers Python has (NumPy's too), and databases and factors as pairs."""
        plain = {name: _plain(value) for name, value in choices.items() if value is not None}
        databases = choices.get("databases") or ()
        plain["databases"] = tuple(
            one if isinstance(one, Database) else Database(*one) for one in databases
        )
        plain["signing_keys"] = tuple(choices.get("signing_keys") or ())
        factors = choices.get("factors") or ()
        pairs = factors.items() if isinstance(factors, dict) else factors
        plain["factors"] = tuple((level, _plain(value)) for level, value in pairs)
        try:
            return cls(**plain)
        except TypeError as error:
            raise errors.InvalidValueError(
                "Expected terms among {struct_fields}: {error}.",
                struct_fields=Series(cls.__struct_fields__),
                error=error,
            ) from error

    @property
    def proved(self) -> bool:
        """Whether an agreement of one wave has proofs: by default, if there are two databases."""
        return bool(self.databases) if self.proofs is None else self.proofs


TERMS: tuple[str, ...] = Terms.__struct_fields__


def _plain(value: Any) -> Any:
    """As Python's own numbers, the only ones that canonical JSON is written from."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, bool | str | list | tuple):
        return value
    return value.item() if hasattr(value, "item") else value
