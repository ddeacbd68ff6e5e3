"""When a collection or a plan closes, over HTTP: named when it is opened, and moved while it is
open.
"""

from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit.dates import instant
from blurfit.errors import InvalidValueError
from blurfit.json_reader import read_json
from blurfit.protocol.wire import JSON
from blurfit.service.answers import as_json
from blurfit.service.authorisation import steward
from blurfit.service.bodies import body_of
from blurfit.service.collector import Collector
from blurfit.service.documents import Until
from blurfit.service.reading import fingerprint_in
from blurfit.store import closing, plans
from blurfit.store.store import Store


@dataclass(frozen=True, eq=False)
class ClosingDates:
    """Endpoints for whoever may open and close."""

    store: Store
    collector: Collector

    @steward("move date", "open")
    async def move(self, request: Request) -> Response:
        """Let a collection close at another moment, or at none."""
        closes = closes_in(await body_of(request, JSON))
        fingerprint = fingerprint_in(request)
        return as_json(
            await self.collector.between_commits(self.store.move_closing, fingerprint, closes)
        )

    @steward("move date of plan", "open")
    async def move_plan(self, request: Request) -> Response:
        """Let a plan end at another moment, or at none."""
        closes = closes_in(await body_of(request, JSON))
        fingerprint = fingerprint_in(request)
        await run_in_threadpool(self.store.read, plans.document, fingerprint)  # there is one
        await self.collector.between_commits(
            self.store.write, closing.move_plan, fingerprint, closes
        )
        return as_json(await run_in_threadpool(self.store.read, plans.status, fingerprint))


def closes_at_opening(request: Request) -> int | None:
    """When whatever a request opens is to close: `until`, after the question mark."""
    given = request.query_params.get("until")
    return None if given is None else instant(given)


def closes_in(body: bytes) -> int | None:
    """The moment that a body names."""
    try:
        given = read_json(body, Until).until
    except ValueError as error:
        raise InvalidValueError(
            f'Expected {{"until": "2027-01-31"}}, or null for no date: {error}.'
        ) from error
    return None if given is None else instant(given)
