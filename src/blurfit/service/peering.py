"""What a database answers, over HTTP, to the other one, which knows the secret that both share.

What is sent is not the secret itself, but what follows from it for one agreement
(`blurfit.protocol.tokens.for_agreement`); it is compared in constant time.
"""

import re
import threading
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit.errors import InvalidValueError
from blurfit.protocol import problems, tokens
from blurfit.protocol.problems import RequestError
from blurfit.protocol.wire import OCTETS, ONE_COLLECTION
from blurfit.service.answers import as_json
from blurfit.service.background import run_in_daemon_thread
from blurfit.service.documents import Published, Signatures, Sums
from blurfit.service.limits import body_of, document_in, held_by
from blurfit.service.operations import BYTES, PRINT, answer, get, post, query
from blurfit.service.peer import IDENTIFIERS_AT_ONCE
from blurfit.service.reading import fingerprint_in
from blurfit.service.signatory import EXPECTED, Signatory
from blurfit.service.verifying import BATCH, judge
from blurfit.store import (
    commitment,
    identifier_sets,
    joint_publication,
    plan_follower,
    roles,
    shared_sums,
)
from blurfit.store.collections import Collection
from blurfit.store.store import Status, Store

SHARES = f"{ONE_COLLECTION}/shares"
TAKEN = answer(Status, "It is published here too.")
_A_GROUP = 2**13  # bits, in bytes, of those who came together with the last one that fits


# Everything here needs the token that both databases have, and an agreement between two of them.
asked = partial(post, security="peer")


def _octets(words: str) -> dict[str, Any]:
    return {"200": {"description": words, "content": {OCTETS: {"schema": BYTES}}}}


@dataclass(frozen=True)
class Peering:
    """The answers of a second database; `secret` is None where nobody may ask."""

    store: Store
    secret: str | None = field(repr=False)
    signing: Signatory
    # What was summed, by set: whoever gave up waiting, and asks again, finds it done.
    _summed: dict[tuple[str, bytes], Sums] = field(default_factory=dict, repr=False)
    _summing: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @get(
        f"{SHARES}/identifiers",
        _octets("16 bytes each, 2¹⁸ of them at most."),
        *(problems.INVALID, problems.INFEASIBLE),
        parameters=[query("after", {"pattern": "^([0-9a-f]{32})?$"})],
        security="peer",
    )
    async def identifiers(self, request: Request) -> Response:
        """The identifiers of the shares here, in order, once the collection is closed."""
        fingerprint = self.admit(request)
        after = _hexadecimal(request, "after", (0, 32))
        found = await run_in_threadpool(
            lambda: self.store.read(
                plan_follower.shown_identifiers,
                self.store.collection(fingerprint),
                after,
                IDENTIFIERS_AT_ONCE,
            )
        )
        return Response(found, media_type=OCTETS)

    @asked(
        f"{SHARES}/proofs",
        _octets("32 bytes each."),
        *(problems.INFEASIBLE, problems.CONFLICT),
        body={OCTETS: BYTES},
    )
    async def proofs(self, request: Request) -> Response:
        """Verify what some contributors have proved: answers to the first database's half."""
        fingerprint = self.admit(request)
        collection = await run_in_threadpool(self.store.collection, fingerprint)
        if not collection.agreement.proofs:
            raise InvalidValueError("Expected an agreement with proofs: this one has none.")
        width = collection.agreement.proving.prio3.verifier_words
        data = await body_of(request, OCTETS, BATCH * (16 + 8 * width))
        if len(data) % (16 + 8 * width):
            raise InvalidValueError(
                f"Expected identifiers of 16 bytes with {width} words each, and got {len(data)} "
                "bytes: it was cut short."
            )
        table = np.frombuffer(data, dtype=np.uint8).reshape(-1, 16 + 8 * width)
        names = np.ascontiguousarray(table[:, :16])
        words = np.ascontiguousarray(table[:, 16:]).view("<u8").astype(np.uint64)
        key = tokens.verification_key(self.secret or "", fingerprint)
        answers = await run_in_threadpool(judge, self.store, collection, names, words, key)
        return Response(answers.astype("<u8").tobytes(), media_type=OCTETS)

    @asked(
        f"{SHARES}/sum",
        answer(Sums, "The sums mod 2⁶⁴; asked again, the same."),
        *(problems.INFEASIBLE, problems.CONFLICT, problems.BELOW_QUORUM),
        body={OCTETS: BYTES},
        parameters=[query("digest", PRINT), query("count", {"type": "integer", "minimum": 0})],
    )
    async def sum(self, request: Request) -> Response:
        """Commit to one set of contributors, for ever, and tell the sum of their masks."""
        fingerprint = self.admit(request)
        digest = _hexadecimal(request, "digest", (64,))
        count = request.query_params.get("count", "")
        if not (count.isascii() and count.isdigit() and len(count) <= 18):
            raise InvalidValueError(f"Expected count={count!r} to be how many are in the set.")
        bits = await body_of(request, OCTETS, identifier_sets.MOST_SHARES // 8 + _A_GROUP)

        def commit_and_sum() -> Sums:
            collection = self.store.collection(fingerprint)
            with self._summing:
                if (found := self._summed.get((fingerprint, digest))) is None:
                    found = self._summed[fingerprint, digest] = summed(collection)
            return found

        def fix(collection: Collection) -> None:
            self.store.read(joint_publication.require_consent, collection)
            held = self.store.read(identifier_sets.identifiers_of, collection)
            left_out = identifier_sets.left_out_by(held, bits)
            self.store.write(plan_follower.accept, collection, digest, int(count), left_out, held)

        def summed(collection: Collection) -> Sums:
            fix(collection)  # what it takes of memory is given back before anything is summed
            chosen, words = self.store.read(shared_sums.sums_over, collection)
            return Sums(chosen.digest.hex(), chosen.count, [str(int(word)) for word in words])

        return as_json(await run_in_daemon_thread(commit_and_sum))

    @asked(
        f"{SHARES}/result",
        TAKEN,
        *(problems.INFEASIBLE, problems.CONFLICT, problems.BELOW_QUORUM),
        body=Published,
    )
    async def result(self, request: Request) -> Response:
        """Check the result against the set, store it, and serve it from now on."""
        fingerprint = self.admit(request)
        found = await document_in(request, Published, "a model and moments", most_bytes(request))

        def take() -> None:
            collection = self.store.collection(fingerprint)
            roles.require_role(collection, "second")
            chosen = self.store.read(commitment.recorded, collection)
            joint_publication.check_result(collection, chosen, found.model, found.moments)
            self.store.write(joint_publication.take_result, collection, found.model, found.moments)

        await run_in_threadpool(take)
        return as_json(await run_in_threadpool(self.store.status, fingerprint))

    @asked(
        f"{SHARES}/signatures",
        answer(Signatures, "Those of both databases."),
        problems.INFEASIBLE,
        body=Signatures,
    )
    async def signatures(self, request: Request) -> Response:
        """Keep the other database's signatures of the result, and tell all that there are."""
        fingerprint = self.admit(request)
        given = await document_in(request, Signatures, EXPECTED)

        def take() -> Signatures:
            collection = self.store.collection(fingerprint)
            roles.require_role(collection, "second")
            self.signing.take(collection, given)
            return self.signing.all_of(collection)

        return as_json(await run_in_threadpool(take))

    def admit(self, request: Request) -> str:
        """What a request is about, if it comes from the other database."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        fingerprint = fingerprint_in(request)
        # Something is compared in any case, so that one cannot tell by time whether there is one.
        expected = tokens.for_agreement(self.secret or tokens.new_token(), fingerprint)
        right = tokens.matches(token, tokens.hashed(expected))
        if scheme.lower() != "bearer" or self.secret is None or not right:
            raise RequestError(
                problems.UNAUTHORISED,
                "This is for the agreement's other database. Start both services with "
                "`blurfit serve --peer-token-file`, and the same token.",
            )
        held_by(request).is_peer = True
        return fingerprint


def most_bytes(request: Request) -> int:
    """How long what is published may be: as long as all that comes to one collection."""
    return held_by(request).allowance.total // 4 * 3


def _hexadecimal(request: Request, name: str, lengths: tuple[int, ...]) -> bytes:
    text = request.query_params.get(name, "")
    if len(text) in lengths and re.fullmatch("[0-9a-fA-F]*", text):
        return bytes.fromhex(text)
    raise InvalidValueError(
        f"Expected {name}={text!r} to be {' or '.join(map(str, lengths))} hexadecimal digits."
    )
