"""What was done with the administrator's token, and with others."""

from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit.service.answers import as_json
from blurfit.service.authorisation import admit
from blurfit.store import stewards
from blurfit.store.store import Store


@dataclass(frozen=True, eq=False)
class Deeds:
    """An endpoint for whoever may read them."""

    store: Store

    async def newest(self, request: Request) -> Response:
        """The thousand newest, newest first."""
        await admit(self.store, request, "read")
        return as_json(await run_in_threadpool(self.store.read, stewards.newest))
