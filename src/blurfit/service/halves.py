"""What only the administrator of one database may ask: do its contributors look honest?

It is found out from submissions that nobody else may see, so no further token is good for it. A
wave of a plan is a collection of its own, and is asked for under its own fingerprint. (Whether
waves that are released agree with each other is part of the plan's model: that follows from what is
published.)
"""

from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit.protocol import problems
from blurfit.protocol.problems import RequestError
from blurfit.protocol.wire import ONE_COLLECTION
from blurfit.service.answers import as_json
from blurfit.service.authorisation import bearer_of, steward
from blurfit.service.background import InProgress, run_in_daemon_thread
from blurfit.service.metrics import shown
from blurfit.service.operations import answer, get
from blurfit.service.reading import fingerprint_in
from blurfit.store import halves
from blurfit.store.halves import Comparison
from blurfit.store.stewards import ADMINISTRATOR
from blurfit.store.store import Store

_MOST_KEPT = 64


@dataclass(frozen=True, eq=False)
class ComparingHalves:
    """An endpoint for the administrator alone."""

    store: Store
    _underway: InProgress[Comparison] = field(default_factory=InProgress, repr=False)
    _known: dict[tuple[str, int], Comparison] = field(default_factory=dict, repr=False)

    @get(
        f"{ONE_COLLECTION}/halves",
        answer(Comparison, "Whether halves by arrival differ by more than chance."),
        problems.INFEASIBLE,
    )
    @steward("publish")
    async def compare(self, request: Request) -> Response:
        """Whether those who came first and those who came later send alike (one database)."""
        if (await bearer_of(self.store, request)).name != ADMINISTRATOR:
            raise RequestError(
                problems.UNAUTHORISED,
                "Send the administrator's own token: this is found out from submissions, which "
                "nobody else may see.",
            )
        fingerprint = fingerprint_in(request)
        status = await run_in_threadpool(self.store.status, fingerprint)
        at = fingerprint, shown(status.count, status.quorum)  # reading all takes long
        if at not in self._known:
            collection = await run_in_threadpool(self.store.collection, fingerprint)
            found = await self._underway.join(
                fingerprint,
                lambda: run_in_daemon_thread(lambda: self.store.read(halves.compared, collection)),
            )
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            self._known[at] = found
        return as_json(self._known[at])
