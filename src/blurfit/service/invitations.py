"""Whether an invitation is still good: for whoever holds it, before she answers anything.

Only the token itself is asked about, in the header in which it would be sent, so nobody learns more
than the holder knows or would learn by sending. A token is 256 random bits: nothing can be guessed.
Of one that is not good nobody can tell whether it was used or never given out, as using one removes
it. Pages of the other of two databases may ask as well, since one link carries both invitations.
"""

from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit.protocol import tokens
from blurfit.protocol.wire import INVITATION, ONE_COLLECTION
from blurfit.service.answers import as_json
from blurfit.service.documents import Invitation
from blurfit.service.operations import answer, get, header
from blurfit.service.reading import fingerprint_in
from blurfit.store import credentials
from blurfit.store.store import Store


@dataclass(frozen=True, eq=False)
class Invitations:
    """An endpoint for people with an invitation."""

    store: Store

    @get(
        f"{ONE_COLLECTION}/invitation",
        answer(Invitation, "Of one that is not good, nobody can tell why."),
        parameters=[header(INVITATION)],
    )
    async def check(self, request: Request) -> Response:
        """Whether a submission with this invitation would be let in."""
        collection = await run_in_threadpool(self.store.collection, fingerprint_in(request))
        given = request.headers.get(INVITATION, "")
        usable = not collection.invited or await run_in_threadpool(
            self.store.read, credentials.is_unused, collection, tokens.hashed(given)
        )
        response = as_json(Invitation(usable))
        response.headers["cache-control"] = "no-store"
        return response
