"""What both ends of the wire share: names, refusals, secrets, and requests over a bad connection.

**Refusals** are problem documents (RFC 9457): programs look at `type`, people read `detail`.
Nothing that was submitted is ever repeated. `KINDS` turns errors into documents and back.

**Tokens and invitations** are 256 random bits each. Whoever checks one keeps its SHA-256 alone.
There are no short tokens to guess, so no slow hash is needed.

**Requests.** Everything may be sent twice and counts once, so whatever got no answer is sent again.
The other end is a stranger: an answer is bounded in bytes and seconds, and a compressed one, which
may stand for far more, is refused.
"""

import hashlib
import hmac
import ipaddress
import re
import time
from abc import ABC, abstractmethod
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlencode
from urllib.request import getproxies

import httpx2 as httpx
import msgspec

from blurfit import errors, private_files, randomness
from blurfit.agreement.agreement import Agreement
from blurfit.agreement.mechanisms import Lot
from blurfit.agreement.plan import Agreed
from blurfit.agreement.terms import most_left_out
from blurfit.data import read_json
from blurfit.errors import TRY_AGAIN, BlurfitError, ConflictError, InvalidValueError, ServiceError
from blurfit.messages.submissions import KIND_OF, Role
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments
from blurfit.wording import Language, Message, Quote

COLLECTIONS = "/collections"
ONE_COLLECTION = COLLECTIONS + "/{fingerprint}"
SUBMISSIONS = "/submissions"  # behind the path of a collection
WITHDRAWALS = "/withdrawals"
PEER = "/peer"  # what one of two databases asks the other

JSON = "application/json"
BINARY = "application/vnd.blurfit.submission.v2"
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
    """So many submissions are withdrawn, so many of them just now; identifiers that are `unknown`
    were never here, and those that are `staying` were not reached before the collection closed.

    The signature is for those that are withdrawn, in the order in which they were asked for.
    """

    withdrawn: int
    new: int
    unknown: list[str] = msgspec.field(default_factory=list)
    signature: str | None = None
    staying: list[str] = msgspec.field(default_factory=list)


def path_of(fingerprint: str) -> str:
    """Return where a service keeps what is collected under an agreement or a plan."""
    return f"{COLLECTIONS}/{fingerprint}"


def media_type(header: str) -> str:
    """Return the media type that a Content-Type header names, without its parameters."""
    return header.partition(";")[0].strip().lower()


# ---- refusals

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

    def problem(self, detail: Message, language: Language) -> Problem:
        """Return the document of one such refusal, for a reader of a language."""
        title, words = language.render(self.title), language.render(detail)
        return Problem(_TYPE + self.name, title, self.status, words)


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

    def __init__(self, kind: Kind, detail: str, /, **values: Any) -> None:
        self.message = Message(detail, **values)
        super().__init__(self.message)
        self.kind = kind


def of_error(error: BlurfitError | RequestError) -> tuple[Kind, Message]:
    """Return the kind and the detail of the refusal that a service answers an error with."""
    if isinstance(error, RequestError):
        return error.kind, error.message
    kind = next(kind for cause, kind in KINDS if isinstance(error, cause))
    if kind is UNAVAILABLE:  # the words of the storage itself are for the log
        return kind, Message(
            "Nothing was kept. Send the same request again later; it will be counted once."
        )
    return kind, error.message


def as_error(document: bytes, status: int) -> BlurfitError:
    """Return the error that a refusal stands for; of the request itself, a ServiceError."""
    try:
        problem = msgspec.json.decode(document, type=Problem)
    except (msgspec.MsgspecError, UnicodeError):
        problem = Problem()
    detail = Message("The service answered {status}.", status=status)
    if problem.detail:  # another program's words
        detail = Message("{words}", words=Quote(problem.detail))
    for cause, kind in KINDS:
        if problem.type == _TYPE + kind.name and cause is not ServiceError:
            return cause(detail)
    return ServiceError(detail, status)


# ---- tokens and invitations

LEAST_LENGTH = 32


def new_token() -> str:
    """Return a fresh secret that can be put into a link: 43 letters, digits, - and _."""
    return urlsafe_b64encode(randomness.octets(32)).rstrip(b"=").decode()


def is_new_token(text: str) -> bool:
    """Tell whether `new_token` could have returned a text."""
    return re.fullmatch(r"[\w-]{43}", text, re.ASCII) is not None


def new_shares(lot: Lot, count: int, first: int = 1) -> list[int]:
    """Draw how many of so many invitations are for each wave of a plan, from wave `first` on."""
    return lot.shares(count, randomness.below(lot.in_all(first)), first)


def new_in_groups(lot: Lot, shares: Sequence[int]) -> list[str]:
    """Return fresh invitations to a plan, so many for each of its waves, in a random order.

    A token's lot is a hash of it, so tokens that are sorted by their letters are in an order that
    has nothing to do with their groups.
    """
    found: list[list[str]] = [[] for _ in shares]
    while any(len(some) < wanted for some, wanted in zip(found, shares, strict=True)):
        token = new_token()
        place = lot.group_of(hashed(token)) - 1
        if len(found[place]) < shares[place]:
            found[place].append(token)
    return sorted(token for some in found for token in some)


def joined(made: Sequence[Sequence[str]], lot: Lot | None = None) -> list[tuple[str, ...]]:
    """Pair the invitations of both databases, one of each for every person: for a plan within a
    group, so that both databases find the same one, and in a random order again.
    """
    if lot is None:
        return list(zip(*made, strict=True))
    by_group = [sorted(some, key=lambda one: lot.group_of(hashed(one))) for some in made]
    return sorted(zip(*by_group, strict=True))


def hashed(token: str) -> bytes:
    """Return what a store keeps of a token."""
    return hashlib.sha256(token.encode()).digest()


def matches(token: str, expected: bytes) -> bool:
    """Tell whether a token's hash was kept; it takes the same time whatever differs."""
    return hmac.compare_digest(hashed(token), expected)


def for_agreement(secret: str, fingerprint: str) -> str:
    """Return what two databases that share a secret know each other by under one agreement.

    HMAC-SHA256 of the fingerprint, which covers both addresses: whoever is named by an agreement
    learns what is good under that agreement alone, and neither the secret nor anything for another.
    """
    message = b"blurfit peer " + fingerprint.encode()
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def verification_key(secret: str, fingerprint: str) -> bytes:
    """Return the key with which two databases that share a secret verify proofs."""
    message = b"blurfit proofs " + fingerprint.encode()
    return hmac.new(secret.encode(), message, hashlib.sha256).digest()


def read_token(path: Path) -> str:
    """Read the token in a file; refuse one that could be guessed."""
    try:
        token = private_files.read_secret(path)
    except (OSError, UnicodeError) as error:
        raise InvalidValueError(
            "Expected {path!r} to be a file with the administrator's token, which "
            "`blurfit serve` prints and writes at its first start: {error}.",
            path=str(path),
            error=error,
        ) from error
    if len(token) < LEAST_LENGTH or not token.isascii() or not token.isprintable():
        raise InvalidValueError(
            "Expected a token of at least {least_length} printable characters in {path!r}; "
            "remove the file, and `blurfit serve` writes a good one.",
            least_length=LEAST_LENGTH,
            path=str(path),
        )
    return token


def write_token(path: Path, token: str) -> None:
    """Put a token into a new file that nobody else can read."""
    private_files.write(path, token + "\n", only_new=True)


# ---- requests

State = dict[str, Any]  # of a collection

PATIENCE = 60.0  # seconds after which a service that does not answer is given up
MOST_BYTES = 2**28  # of an answer: the moments of thousands of columns
SECONDS_FOR_AN_ANSWER = 30.0  # from the first byte to the last, unless there is more patience
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
SILENT = "Is the service running, and is the address right?"
UNTRUSTED = (
    "This machine does not trust its certificate. If an authority of your own signed it, name the "
    "authority's file in the environment variable SSL_CERT_FILE."
)


class Closeable(ABC):
    """What is open until it is closed, or its `with` ends."""

    @abstractmethod
    def close(self) -> None:
        """Hang up."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class Exchange(Closeable):
    """A service at a URL.

    Args:
        url: where it is, such as "http://127.0.0.1:8000".
        token: the administrator's, for what needs it.
        patience: for how many seconds to go on trying.
        transport: how bytes travel; tests let the service answer in the same process.
        pause: how to wait.
        most_bytes: how long an answer may be.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        patience: float = PATIENCE,
        transport: httpx.BaseTransport | None = None,
        pause: Callable[[float], object] = time.sleep,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        if not _is_address(url):
            raise InvalidValueError(
                "Expected {url!r} to be the address of a service, like http://127.0.0.1:8000.",
                url=url,
            )
        self.url = url.rstrip("/")
        self._patience, self._pause, self._most_bytes = patience, pause, most_bytes
        headers = {"accept-encoding": "identity"}
        if token and transport is None:
            refuse_in_the_open(url)
        if token:
            headers["authorization"] = f"Bearer {token}"
        no_tls = _is_plain_and_here(url) and not getproxies()
        verify = False if no_tls else _certificates()
        self._http = httpx.Client(headers=headers, timeout=30.0, transport=transport, verify=verify)

    def close(self) -> None:
        """Hang up."""
        self._http.close()

    def get(self, path: str) -> bytes:
        """Return what is at a path."""
        return self._ask("GET", path)

    def post(
        self,
        path: str,
        content: bytes = b"",
        *,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Send something, if need be again and again, and return the answer."""
        return self._ask("POST", path, content, {"content-type": content_type, **(headers or {})})

    def submit(
        self, fingerprint: str, message: bytes, rows: int, invitations: Sequence[str] = ()
    ) -> Acknowledgement:
        """Send so many submissions, or shares, to a collection; they are on disk on return."""
        headers = {INVITATION: ",".join(invitations)} if invitations else {}
        path = path_of(fingerprint) + SUBMISSIONS
        return acknowledged(self.post(path, message, content_type=BINARY, headers=headers), rows)

    def _ask(
        self, method: str, path: str, content: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> bytes:
        deadline = time.monotonic() + self._patience
        pause = FIRST_PAUSE
        while True:
            wait = 0.0
            failure: BlurfitError
            try:
                answer, found = self._answer(method, path, content, headers)
                if answer.is_success:
                    return found
                failure = as_error(found, answer.status_code)
                if answer.status_code not in TRY_AGAIN:
                    raise failure
                wait = _seconds(answer.headers.get("retry-after"))
            except httpx.TransportError as error:
                is_untrusted = "CERTIFICATE_VERIFY_FAILED" in str(error)
                failure = ServiceError(
                    "Expected an answer from {url}, and got {name}: {error}. {remedy}",
                    url=self.url,
                    name=type(error).__name__,
                    error=Quote(str(error)),
                    remedy=UNTRUSTED if is_untrusted else SILENT,
                )
                if is_untrusted:
                    raise failure from error
            # Spread out, so that not everyone who was sent away comes back at the same moment.
            wait = max(wait, pause * (0.5 + randomness.below(1000) / 1000))
            if time.monotonic() + wait > deadline:
                raise failure
            self._pause(wait)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _answer(
        self, method: str, path: str, content: bytes, headers: Mapping[str, str] | None
    ) -> tuple[httpx.Response, bytes]:
        """Return an answer and what it holds, within bounds."""
        deadline = time.monotonic() + max(SECONDS_FOR_AN_ANSWER, self._patience)
        parts, size = [], 0
        with self._http.stream(method, self.url + path, content=content, headers=headers) as answer:
            if (encoding := answer.headers.get("content-encoding", "identity")) != "identity":
                raise ServiceError(
                    "Expected an answer from {url} as it is, and got content-encoding "
                    "{encoding!r}, which was not asked for.",
                    url=self.url,
                    encoding=Quote(encoding),
                )
            for part in answer.iter_bytes():
                parts.append(part)
                size += len(part)
                if size > self._most_bytes:
                    raise ServiceError(
                        "Expected an answer of at most {most_bytes} bytes from {url}.",
                        most_bytes=self._most_bytes,
                        url=self.url,
                    )
                if time.monotonic() > deadline:
                    raise ServiceError(
                        "Expected the whole answer from {url} in less time.", url=self.url
                    )
        return answer, b"".join(parts)


class _WaveState(msgspec.Struct):
    number: int
    quorum: int
    state: Literal["planned", "collecting", "fixed", "released", "dropped"]
    count: int
    fingerprint: str | None


class _State(msgspec.Struct):
    """What is read of a state; a service may say more."""

    fingerprint: str
    state: Literal["collecting", "paused", "held", "closed", "published", "ended"]
    count: int
    quorum: int
    invited: bool
    closes: int | None
    awaits: str | None
    sums: bool
    waves: Annotated[list[_WaveState], msgspec.Meta(min_length=1)]
    reason: str | None


def state_in(answer: bytes) -> State:
    """Return a state, whose texts are printable."""
    found = decoded(answer)
    try:
        msgspec.convert(found, _State)
    except msgspec.ValidationError as error:
        raise ServiceError(
            "Expected the state of a collection from the service: {error}. Is this a blurfit "
            "service of this version?",
            error=Quote(str(error)),
        ) from error
    return State(_quoted(found))


def _quoted(value: Any) -> Any:
    """Return plain values, each text in them as a quotation."""
    if isinstance(value, str):
        return str(Quote(value))
    if isinstance(value, list):
        return [_quoted(item) for item in value]
    if isinstance(value, dict):
        return {_quoted(key): _quoted(item) for key, item in value.items()}
    return value


def decoded(answer: bytes) -> Any:
    """Return an answer in JSON as plain values."""
    try:
        return read_json(answer)
    except ValueError as error:
        raise ServiceError(
            "Expected JSON from the service: {error}. Is this a blurfit service?",
            error=Quote(str(error)),
        ) from error


def texts_in(answer: bytes) -> list[bytes]:
    """Return the members of a list in JSON, each as the bytes that were sent."""
    try:
        return [bytes(one) for one in msgspec.json.decode(answer, type=list[msgspec.Raw])]
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise ServiceError(
            "Expected a list in JSON from the service: {error}.", error=Quote(str(error))
        ) from error


def acknowledged(answer: bytes, rows: int) -> Acknowledgement:
    """Read that all of so many rows are on disk; a proxy's page, say, is no acknowledgement."""
    try:
        found: Acknowledgement = read_json(answer, Acknowledgement)
    except ValueError as error:
        raise ServiceError(
            "Expected an acknowledgement of {rows} submissions: {error}. Something between here "
            "and the service may have answered in its place; send the same again.",
            rows=rows,
            error=Quote(str(error)),
        ) from error
    if found.accepted != rows:
        raise ServiceError(
            "Expected {rows} submissions to be acknowledged, and got accepted={accepted}: "
            "send the same again.",
            rows=rows,
            accepted=found.accepted,
        )
    return found


def refuse_in_the_open(url: str) -> None:
    """Refuse to send a token to another machine without TLS, where anyone in between reads it."""
    if httpx.URL(url).scheme == "http" and not _is_plain_and_here(url):
        raise InvalidValueError(
            "Expected https:// for {url!r}: a token is not sent to another machine without TLS, "
            "where whoever is in between could use it.",
            url=url,
        )


def _is_plain_and_here(url: str) -> bool:
    parsed = httpx.URL(url)
    host = parsed.host.strip("[]")
    try:
        here = ipaddress.ip_address(host).is_loopback
    except ValueError:
        here = host == "localhost"
    return parsed.scheme == "http" and here


_certificates = cache(httpx.create_ssl_context)  # which takes longer than a request


def _is_address(url: str) -> bool:
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        return False
    return parsed.scheme in ("http", "https") and bool(parsed.host) and (parsed.port or 0) < 2**16


def _seconds(text: str | None) -> float:
    return min(float(text), LONGEST_PAUSE) if text and text.isascii() and text.isdigit() else 0.0


# ---- a database from afar

HASHES_AT_ONCE = 5000
SAMPLED_INVITATIONS = 20  # of a file to join, each asked for in a request of its own
_SECONDS_TO_COUNT = 3.0
_MOST_BYTES = 2**16  # of a state


class RemoteDatabase(Exchange):
    """A service as its administrator and the model's users see it; arguments as for `Exchange`."""

    def open(self, agreed: Agreed, *, role: Role = "whole", until: str | None = None) -> State:
        """Start collecting, from those whom the agreement admits; the state is returned.

        `until` is a date, or a time with its zone: nothing is taken from then on.
        """
        given = {"role": role} if until is None else {"role": role, "until": until}
        path = f"{COLLECTIONS}?{urlencode(given)}"
        return state_in(self.post(path, agreed.to_json().encode()))

    def invite(
        self,
        agreed: Agreed,
        count: int,
        shares: Sequence[int] = (),
        pairs: Sequence[str] = (),
    ) -> list[str]:
        """Make new one-time invitations here; the service gets their hashes alone.

        Args:
            agreed: the agreement, or a plan: its invitations are for waves that are not released,
                by a lot in proportion to what each of them waits for.
            count: how many.
            shares: how many are for each wave, where that is drawn already, for another database.
            pairs: the other database's invitations, to be joined with these.
        """
        made = new_in_groups(agreed.lot, shares or self.shares(agreed, count))
        # Sorted: the service does not learn which are joined with which.
        theirs = sorted(hashed(token).hex() for token in pairs)
        for start in range(0, count, HASHES_AT_ONCE):
            part = slice(start, start + HASHES_AT_ONCE)
            hashes = [hashed(token).hex() for token in made[part]]
            self._post(agreed, "invitations", {"hashes": hashes, "pairs": theirs[part]})
        return made

    def refuse_pairs(self, agreed: Agreed, pairs: Sequence[str]) -> None:
        """Refuse invitations that are this database's own, or that were joined before."""
        hashes = [hashed(token).hex() for token in pairs]
        for start in range(0, len(hashes), HASHES_AT_ONCE):
            part = hashes[start : start + HASHES_AT_ONCE]
            self._post(agreed, "invitations", {"hashes": [], "pairs": part})

    def refuse_unusable(self, agreed: Agreed, invitations: Sequence[str]) -> None:
        """Refuse invitations that this service does not admit now, judged by a sample.

        Of those to a plan, only the ones for the wave that is collecting can be judged.
        """
        lot = agreed.lot
        if len(lot.people) > 1:
            waves = state_in(self.get(path_of(lot.plan)))["waves"]
            wave = 1 + sum(row["state"] == "released" for row in waves)
            invitations = [one for one in invitations if lot.group_of(hashed(one)) == wave]
        for token in invitations[:: max(1, len(invitations) // SAMPLED_INVITATIONS)]:
            path = f"{path_of(agreed.fingerprint)}/invitation"
            answer = decoded(self._ask("GET", path, headers={INVITATION: token}))
            if answer != {"usable": True}:
                raise ConflictError(
                    "Invitations to join must be usable at {url}, and some of them are not: "
                    "they are of another collection, or were used. Ask that database's "
                    "administrator for new ones.",
                    url=self.url,
                )

    def shares(self, agreed: Agreed, count: int) -> list[int]:
        """Draw how many of so many invitations are for each wave that is not released."""
        lot = agreed.lot
        if len(lot.people) == 1:
            return [count]
        waves = state_in(self.get(path_of(lot.plan)))["waves"]
        released = sum(one["state"] == "released" for one in waves)
        return new_shares(lot, count, min(released + 1, len(lot.people)))

    def status(self, agreed: Agreed) -> State:
        """Return state, count and quorum, and those of each wave."""
        return state_in(self.get(path_of(agreed.fingerprint)))

    def steer(self, agreed: Agreed, what: Literal["pause", "hold", "resume"]) -> State:
        """Take nothing until it is resumed; or release no wave of a plan; or let it go on."""
        return self._changed(agreed, what)

    def move_date(self, agreed: Agreed, until: str | None) -> State:
        """Let it close at another moment, or at none."""
        return self._changed(agreed, "until", {"until": until})

    def close_collection(self, agreed: Agreed) -> State:
        """Stop collecting without publishing anything; a plan closes its waves by itself."""
        return self._changed(agreed, "close")

    def publish(self, agreed: Agreed) -> PublishedModel:
        """Close the collection, and publish its model, once; asked again, the same is returned.

        A plan publishes by itself; this ends it early, with the best model so far.
        """
        return PublishedModel.from_json(self._post(agreed, "publish").decode())

    def publish_sums(self, agreed: Agreed) -> PublishedMoments:
        """Close the collection, and publish sums that have no model of their own, once."""
        return PublishedMoments.from_json(self._post(agreed, "publish"))

    def model(self, agreed: Agreed) -> PublishedModel:
        """Return the published model."""
        found = self.get(f"{path_of(agreed.fingerprint)}/model")
        return PublishedModel.from_json(found.decode())

    def moments(self, agreement: Agreement) -> PublishedMoments:
        """Return the blurred sums of one wave, from which further models follow."""
        path = f"{path_of(agreement.fingerprint)}/moments"
        return PublishedMoments.from_json(self.get(path))

    def releases(self, agreed: Agreed) -> list[PublishedMoments]:
        """Return what the waves have published so far, in their order."""
        texts = texts_in(self.get(f"{path_of(agreed.fingerprint)}/releases"))
        return [PublishedMoments.from_json(text) for text in texts]

    def _post(self, agreed: Agreed, what: str, body: Any = None) -> bytes:
        content = b"" if body is None else msgspec.json.encode(body)
        return self.post(f"{path_of(agreed.fingerprint)}/{what}", content)

    def _changed(self, agreed: Agreed, what: str, body: Any = None) -> State:
        return state_in(self._post(agreed, what, body))


# ---- before one of two databases is closed for good: do both hold about the same?

Counts = Sequence[int | None]


def counts_at(agreement: Agreement, patience: float = _SECONDS_TO_COUNT) -> Counts:
    """Return how many shares each of the two says that it holds; None where one does not say."""
    return [_count_at(agreement, one.url, patience) for one in agreement.databases]


def refuse_if_uneven(agreement: Agreement, counts: Counts) -> None:
    """Refuse to close where so many are at one database alone that nothing could be published."""
    if (warning := warning_if_uneven(agreement, counts)) is not None:
        raise ConflictError("{warning} Or close with --anyway.", warning=warning)


def warning_if_uneven(agreement: Agreement, counts: Counts) -> Message | None:
    """Warn where so many are at one database alone that nothing could be published."""
    known = [one for one in counts if one is not None]
    if len(known) < len(counts):
        return None
    common = min(known)  # at most: those at both
    for database, role, held in zip(agreement.databases, KIND_OF, known, strict=True):
        missing = held - common
        if missing > (most := most_left_out(agreement, role, held)):
            return Message(
                "Expected at most {most:,} of the {held:,} shares at {database_name} to be "
                "missing at the other database, and {missing:,} are: nothing could be published "
                "once this is closed. Let those contributors send again while both collect.",
                most=most,
                held=held,
                database_name=database.name,
                missing=missing,
            )
    return None


def _count_at(agreement: Agreement, url: str, patience: float) -> int | None:
    try:
        with RemoteDatabase(url, patience=patience, most_bytes=_MOST_BYTES) as database:
            return int(database.status(agreement)["count"])
    except (BlurfitError, KeyError, TypeError, ValueError):  # unreachable, or not a blurfit service
        return None
