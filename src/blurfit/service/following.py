"""What the second of a plan's two databases answers to the first, which leads it, over HTTP.

| request | what |
| --- | --- |
| POST /collections/{fingerprint}/shares/close | close a wave that has its quorum at both |
| POST /collections/{fingerprint}/shares/release | a wave's sums, and which wave follows |
| POST /plans/{fingerprint}/shares/state | the plan is held, goes on, or has ended with a model |

Identifiers and sums of masks are asked for as in any collection (`blurfit.service.peering`), with
the same kind of token: one for each wave, and one for the plan.
"""

from dataclasses import dataclass
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit.agreement.plan import Plan
from blurfit.errors import InvalidValueError
from blurfit.json_reader import read_json
from blurfit.protocol.wire import JSON
from blurfit.service.answers import as_json
from blurfit.service.bodies import body_of
from blurfit.service.documents import ReleasedWave, ToldPlan
from blurfit.service.peering import Peering
from blurfit.store import plan_follower, plans
from blurfit.store.joint_plans import News
from blurfit.store.store import Store

_MOST_BYTES = 64 * 2**20
_Read = TypeVar("_Read")


@dataclass(frozen=True, eq=False)
class Following:
    """The answers of a plan's second database."""

    store: Store
    peering: Peering

    async def close(self, request: Request) -> Response:
        """Close a wave."""
        fingerprint = self.peering.admit(request)

        def close() -> None:
            self.store.write(plan_follower.close, self.store.collection(fingerprint))

        await run_in_threadpool(close)
        return as_json(await run_in_threadpool(self.store.status, fingerprint))

    async def release(self, request: Request) -> Response:
        """Publish a wave's sums here too, and open the wave that follows."""
        fingerprint = self.peering.admit(request)
        found = _read(await body_of(request, JSON, _MOST_BYTES), ReleasedWave)

        def take() -> None:
            wave = self.store.collection(fingerprint)
            self.store.write(plan_follower.take_release, wave, found.moments, found.following)

        await run_in_threadpool(take)
        return as_json(await run_in_threadpool(self.store.status, fingerprint))

    async def state(self, request: Request) -> Response:
        """Be held, go on, or end, as the first database does."""
        fingerprint = self.peering.admit(request)
        found = _read(await body_of(request, JSON, _MOST_BYTES), ToldPlan)

        def take() -> plans.PlanStatus:
            news = News(found.state, found.reason, found.model)
            if news.state == "ended":
                plan = Plan.from_json(self.store.read(plans.document, fingerprint))
                releases = self.store.read(plans.releases, fingerprint)
                plan_follower.check_model(plan, releases, news.model)
            self.store.write(plan_follower.take_news, fingerprint, news)
            return self.store.read(plans.status, fingerprint)

        return as_json(await run_in_threadpool(take))


def _read(body: bytes, kind: type[_Read]) -> _Read:
    try:
        found: _Read = read_json(body, kind)
    except ValueError as error:
        raise InvalidValueError(f"Expected what the first database tells: {error}.") from error
    return found
