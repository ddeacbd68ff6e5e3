"""The first of two databases publishes with the second: `blurfit.store.joint_publication`, step by
step, over a wire that may break at any of them.

The wire is HTTP with a token for this agreement, which follows from a secret that both services
were started with, and TLS where it leaves the machine (the agreement allows no other address).
Whatever gets no answer is asked again; whoever drives may be killed anywhere, and be driven again.

The other database is a stranger: what it answers has a bound in bytes, in pages and in seconds.
"""

from typing import Any, Protocol

import msgspec
import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import ByteArray, WordArray
from blurfit.errors import InfeasibleError, NotCertifiedError, ServiceError
from blurfit.json_reader import read_json
from blurfit.proofs.prio3 import SEED_WORDS
from blurfit.protocol import tokens
from blurfit.protocol.http import Caller
from blurfit.protocol.wire import OCTETS, path_of
from blurfit.service.documents import Published, Sums
from blurfit.service.verifying import verify
from blurfit.store import identifier_sets, joint_publication, publication, shared_sums
from blurfit.store.joint_publication import Result
from blurfit.store.store import Store

IDENTIFIERS_AT_ONCE = 2**18
MOST_PAGES = identifier_sets.MOST_SHARES // IDENTIFIERS_AT_ONCE + 1  # the last is not full
_BYTES_FOR_A_NUMBER = 32  # of a sum, in JSON
_SECONDS_AT_MOST = 15.0  # an administrator waits for the answer, and may ask again


class Peer(Protocol):
    """The second database, as the first sees it."""

    def identifiers(self) -> ByteArray:
        """Everyone whose share it has, in order."""

    def verify(self, names: ByteArray, words: WordArray) -> WordArray:
        """Its answers to the first's half of some verifiers (`blurfit.service.verifying`)."""

    def masks(self, digest: bytes, count: int, left_out: ByteArray) -> WordArray:
        """Σ mask over the set that is left without these, which it commits to."""

    def deliver(self, model: str | None, moments: str) -> None:
        """Give it the result, to be stored and served."""


def publish(store: Store, fingerprint: str, peer: Peer, key: bytes = b"") -> str:
    """The model's text, now or from before; the second database has it too when this returns.

    `key` is the verification key, for agreements with proofs.
    """
    collection = store.collection(fingerprint)
    found = store.read(joint_publication.result, collection)
    if found is None:
        theirs = peer.identifiers()
        if collection.agreement.proofs:
            verify(store, collection, peer, theirs, key)
        chosen, left_out = store.write(joint_publication.fix, collection, theirs)
        masks = peer.masks(chosen.digest, chosen.count, left_out)
        count, words = store.read(shared_sums.together, collection, masks)
        release = joint_publication.release_of(collection, count, words)
        found = Result(store.write(publication.keep, collection, release), delivered=False)
    release = found.release
    if release.moments is not None and not found.delivered:
        peer.deliver(release.model, release.moments)
        store.write(joint_publication.deliver, collection)
    return release.shown()


class RemotePeer(Caller):
    """The second database over HTTP; options as for `blurfit.protocol.http.Exchange`."""

    def __init__(self, agreement: Agreement, token: str, **options: Any) -> None:
        sums = 2**12 + _BYTES_FOR_A_NUMBER * agreement.width
        bounds = {
            "patience": _SECONDS_AT_MOST,
            "most_bytes": max(2**20, 16 * IDENTIFIERS_AT_ONCE, sums),
        }
        secret = tokens.for_agreement(token, agreement.fingerprint)
        super().__init__(agreement.databases[1].url, token=secret, **bounds | options)
        self._path = f"{path_of(agreement.fingerprint)}/shares"
        self._held: ByteArray | None = None  # everyone whose share it has

    def identifiers(self) -> ByteArray:
        """Everyone whose share it has, in order."""
        parts, after = [], b""
        for _ in range(MOST_PAGES):
            part = self._exchange.get(f"{self._path}/identifiers?after={after.hex()}")
            parts.append(identifier_sets.as_identifiers(part))
            if len(parts[-1]) < IDENTIFIERS_AT_ONCE:
                self._held = np.concatenate(parts)
                return self._held
            before, after = after, parts[-1][-1].tobytes()
            if after <= before:
                raise ServiceError(f"Expected identifiers in order from {self._exchange.url}.")
        raise ServiceError(
            f"Expected at most {MOST_PAGES * IDENTIFIERS_AT_ONCE:,} identifiers from "
            f"{self._exchange.url}, and there are more: somebody has sent it shares that are not "
            "here."
        )

    def verify(self, names: ByteArray, words: WordArray) -> WordArray:
        """Its answers to the first's half of some verifiers."""
        rows = np.hstack([names, words.astype("<u8").view(np.uint8)])
        answer = self._exchange.post(f"{self._path}/proofs", rows.tobytes(), content_type=OCTETS)
        if len(answer) != 8 * SEED_WORDS * len(names):
            raise ServiceError(
                f"Expected {len(names)} answers to proofs from {self._exchange.url}, and got "
                f"{len(answer)} bytes."
            )
        return np.frombuffer(answer, dtype="<u8").reshape(-1, SEED_WORDS).astype(np.uint64)

    def masks(self, digest: bytes, count: int, left_out: ByteArray) -> WordArray:
        """Σ mask over the set that is left without these, which it commits to."""
        held = self.identifiers() if self._held is None else self._held
        answer = self._exchange.post(
            f"{self._path}/sum?digest={digest.hex()}&count={count}",
            identifier_sets.members(held, left_out),
            content_type=OCTETS,
        )
        try:
            found = read_json(answer, Sums)
            words = np.array([int(one) for one in found.sums], dtype=np.uint64)
        except (OverflowError, ValueError) as error:
            raise ServiceError(f"Expected sums from {self._exchange.url}: {error}.") from error
        if (found.digest, found.count) != (digest.hex(), count):
            raise NotCertifiedError(
                f"Expected sums over the set {digest.hex()} of {count}, and got some over "
                f"{found.digest} of {found.count}."
            )
        return words

    def deliver(self, model: str | None, moments: str) -> None:
        """Give it the result, to be stored and served."""
        body = msgspec.json.encode(Published(model, moments))
        self._exchange.post(f"{self._path}/result", body)


def shared_secret(token: str | None) -> str:
    """What both services were started with; an error if this one was not."""
    if token is None:
        raise InfeasibleError(
            "Expected a token that both databases share: start both services with "
            "`blurfit serve --peer-token-file peer.txt`, and the same token in the file."
        )
    return token


def publish_remotely(store: Store, fingerprint: str, token: str | None, **options: Any) -> str:
    """`publish` with the second database of the agreement, at its address."""
    agreement, token = store.collection(fingerprint).agreement, shared_secret(token)
    with RemotePeer(agreement, token, **options) as peer:
        try:
            key = tokens.verification_key(token, fingerprint)
            return publish(store, fingerprint, peer, key)
        except ServiceError as error:
            # Nothing that was done is lost: whoever asked may ask again.
            name = agreement.databases[1].name
            remedy = "Ask for the same again when it is back; nothing is done twice."
            if error.status == 401:
                remedy = "Start both services with the same --peer-token-file."
            raise ServiceError(f"{name} did not help: {error} {remedy}", error.status) from error
