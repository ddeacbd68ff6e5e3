"""What a collection may achieve, beside the form in which its terms are chosen.

An estimate for typical people (`blurfit.learning.outlook`), as the page says; `blurfit forecast`
simulates collections of people who are publicly known.
"""

from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit.agreement.agreement import Agreement
from blurfit.errors import InfeasibleError
from blurfit.learning.outlook import epsilon_needed, outlook, people_needed
from blurfit.protocol.wire import JSON
from blurfit.schema.schema import Schema
from blurfit.service.answers import as_json
from blurfit.service.authorisation import admit
from blurfit.service.bodies import body_of
from blurfit.service.documents import Expected
from blurfit.service.proposal import Wish, made
from blurfit.store.store import Store


@dataclass(frozen=True, eq=False)
class Outlooks:
    """An endpoint for whoever is about to open a collection."""

    store: Store

    async def estimate(self, request: Request) -> Response:
        """How far off predictions will be; nothing is kept."""
        await admit(self.store, request, "open")
        body = await body_of(request, JSON)
        return as_json(await run_in_threadpool(made, body, Wish, expected))


def expected(wish: Wish, schema: Schema) -> Expected:
    """How far off predictions will be, and what it takes to be off by no more than is wished."""

    def propose(**changes: Any) -> Agreement:
        return Agreement.propose(schema, msgspec.structs.replace(wish, **changes))

    found = outlook(propose())
    people = epsilon = None
    if wish.off is not None:
        try:
            people = people_needed(lambda count: propose(quorum=count), wish.off)
            epsilon = epsilon_needed(lambda one: propose(epsilon=one), wish.off)
        except InfeasibleError:  # noise that nobody could draw: there is no such collection
            pass
    return Expected(found.count, found.off, found.without_privacy, found.spread, people, epsilon)
