"""Talk to a service over a bad connection: try again with patience, and turn refusals into errors.

Everything that blurfit sends may be sent twice and counts once, so whatever got no answer is simply
sent again. Whoever answers is a stranger: an answer is read up to so many bytes and seconds, and a
compressed one, which may stand for far more, is refused.

Whatever has changed its meaning since version 1 has changed its name. Under the old names a service
answers nothing but that the other end is of another release (`OUTDATED`).
"""

import ipaddress
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, Self
from urllib.parse import urlencode
from urllib.request import getproxies

import httpx2 as httpx
import msgspec

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Agreed
from blurfit.agreement.terms import most_left_out
from blurfit.data import read_json
from blurfit.errors import TRY_AGAIN, BlurfitError, ConflictError, InvalidValueError, ServiceError
from blurfit.messages.submissions import KIND_OF, Role
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments
from blurfit.protocol import tokens
from blurfit.protocol.problems import as_error
from blurfit.randomness import bits

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
    """Tell whether a path had a meaning in version 1 that it has no more."""
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


# ---- requests

PATIENCE = 60.0  # seconds after which a service that does not answer is given up
MOST_BYTES = 2**28  # of an answer: the moments of thousands of columns
SECONDS_FOR_AN_ANSWER = 30.0  # from the first byte to the last, unless there is more patience
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0


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
                f"Expected {url!r} to be the address of a service, like http://127.0.0.1:8000."
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
                failure = ServiceError(
                    f"Expected an answer from {self.url}, and got {type(error).__name__}: {error}. "
                    "Is the service running, and is the address right?"
                )
            # Spread out, so that not everyone who was sent away comes back at the same moment.
            wait = max(wait, pause * (0.5 + bits.below(1000) / 1000))
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
                    f"Expected an answer from {self.url} as it is, and got content-encoding "
                    f"{encoding!r}, which was not asked for."
                )
            for part in answer.iter_bytes():
                parts.append(part)
                size += len(part)
                if size > self._most_bytes:
                    raise ServiceError(
                        f"Expected an answer of at most {self._most_bytes} bytes from {self.url}."
                    )
                if time.monotonic() > deadline:
                    raise ServiceError(f"Expected the whole answer from {self.url} in less time.")
        return answer, b"".join(parts)


def decoded(answer: bytes) -> Any:
    """Return an answer in JSON as plain values."""
    try:
        return read_json(answer)
    except ValueError as error:
        raise ServiceError(
            f"Expected JSON from the service: {error}. Is this a blurfit service?"
        ) from error


def texts_in(answer: bytes) -> list[bytes]:
    """Return the members of a list in JSON, each as the bytes that were sent."""
    try:
        return [bytes(one) for one in msgspec.json.decode(answer, type=list[msgspec.Raw])]
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise ServiceError(f"Expected a list in JSON from the service: {error}.") from error


def acknowledged(answer: bytes, rows: int) -> Acknowledgement:
    """Read that all of so many rows are on disk; a proxy's page, say, is no acknowledgement."""
    try:
        found: Acknowledgement = read_json(answer, Acknowledgement)
    except ValueError as error:
        raise ServiceError(
            f"Expected an acknowledgement of {rows} submissions: {error}. Something between here "
            "and the service may have answered in its place; send the same again."
        ) from error
    if found.accepted != rows:
        raise ServiceError(
            f"Expected {rows} submissions to be acknowledged, and got accepted={found.accepted}: "
            "send the same again."
        )
    return found


def refuse_in_the_open(url: str) -> None:
    """Refuse to send a token to another machine without TLS, where anyone in between reads it."""
    if httpx.URL(url).scheme == "http" and not _is_plain_and_here(url):
        raise InvalidValueError(
            f"Expected https:// for {url!r}: a token is not sent to another machine without TLS, "
            "where whoever is in between could use it."
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
_SECONDS_TO_COUNT = 3.0
_MOST_BYTES = 2**16  # of a state
State = dict[str, Any]


class RemoteDatabase(Exchange):
    """A service as its administrator and the model's users see it; arguments as for `Exchange`."""

    def open(self, agreed: Agreed, *, role: Role = "whole", until: str | None = None) -> State:
        """Start collecting, from those whom the agreement admits; the state is returned.

        `until` is a date, or a time with its zone: nothing is taken from then on.
        """
        given = {"role": role} if until is None else {"role": role, "until": until}
        path = f"{COLLECTIONS}?{urlencode(given)}"
        return State(decoded(self.post(path, agreed.to_json().encode())))

    def invite(self, agreed: Agreed, count: int, shares: Sequence[int] = ()) -> list[str]:
        """Make new one-time invitations here; the service gets their hashes alone.

        Those to a plan are for waves that have not been released, by a lot in proportion to what
        each of them waits for; `shares` says how many are for each wave, where that is drawn
        already, for another database.
        """
        made = tokens.new_in_groups(agreed.lot, shares or self.shares(agreed, count))
        for start in range(0, count, HASHES_AT_ONCE):
            some = [tokens.hashed(one).hex() for one in made[start : start + HASHES_AT_ONCE]]
            self._post(agreed, "invitations", {"hashes": some})
        return made

    def shares(self, agreed: Agreed, count: int) -> list[int]:
        """Draw how many of so many invitations are for each wave that is not released."""
        lot = agreed.lot
        if len(lot.people) == 1:
            return [count]
        waves = decoded(self.get(path_of(lot.plan)))["waves"]
        released = sum(one["state"] == "released" for one in waves)
        return tokens.new_shares(lot, count, min(released + 1, len(lot.people)))

    def status(self, agreed: Agreed) -> State:
        """Return state, count and quorum, and those of each wave."""
        return State(decoded(self.get(path_of(agreed.fingerprint))))

    def halves(self, fingerprint: str) -> State:
        """Tell whether those who came first and later send alike: for its administrator alone."""
        return State(decoded(self.get(f"{path_of(fingerprint)}/halves")))

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
        return State(decoded(self._post(agreed, what, body)))


# ---- before one of two databases is closed for good: do both hold about the same?

Counts = Sequence[int | None]


def counts_at(agreement: Agreement, patience: float = _SECONDS_TO_COUNT) -> Counts:
    """Return how many shares each of the two says that it holds; None where one does not say."""
    return [_count_at(agreement, one.url, patience) for one in agreement.databases]


def refuse_if_uneven(agreement: Agreement, counts: Counts) -> None:
    """Refuse to close where so many are at one database alone that nothing could be published."""
    known = [one for one in counts if one is not None]
    if len(known) < len(counts):
        return
    common = min(known)  # at most: those at both
    for database, role, held in zip(agreement.databases, KIND_OF, known, strict=True):
        missing = held - common
        if missing > (most := most_left_out(agreement, role, held)):
            raise ConflictError(
                f"Expected at most {most:,} of the {held:,} shares at {database.name} to be "
                f"missing at the other database, and {missing:,} are: nothing could be published "
                "once this is closed. Let those contributors send again while both collect, or "
                "close with --anyway."
            )


def _count_at(agreement: Agreement, url: str, patience: float) -> int | None:
    try:
        with RemoteDatabase(url, patience=patience, most_bytes=_MOST_BYTES) as database:
            return int(database.status(agreement)["count"])
    except (BlurfitError, KeyError, TypeError, ValueError):  # unreachable, or not a blurfit service
        return None
