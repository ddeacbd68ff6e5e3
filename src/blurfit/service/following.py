"""What the second of a plan's two databases answers to the first, which leads it, over HTTP.

Identifiers and sums of masks are asked for as in any collection (`blurfit.service.peering`), with
the same kind of token: one for each wave, and one for the plan.
"""

from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit.protocol import problems
from blurfit.protocol.wire import ONE_PLAN
from blurfit.service.answers import as_json
from blurfit.service.documents import ReleasedWave, ToldPlan
from blurfit.service.limits import document_in
from blurfit.service.operations import answer
from blurfit.service.peering import SHARES, TAKEN, Peering, asked, most_bytes
from blurfit.store import plan_follower, plans
from blurfit.store.joint_plans import News
from blurfit.store.store import Status, Store

_EXPECTED = "what the first database tells"
_TOLD = (problems.INFEASIBLE, problems.CLOSED, problems.CONFLICT)


@dataclass(frozen=True, eq=False)
class Following:
    """The answers of a plan's second database."""

    store: Store
    peering: Peering

    @asked(
        f"{SHARES}/close",
        answer(Status, "No more shares are taken for it."),
        *(problems.INVALID, problems.INFEASIBLE, problems.CLOSED, problems.BELOW_QUORUM),
    )
    async def close(self, request: Request) -> Response:
        """Close a wave of a plan that has its quorum at both databases."""
        fingerprint = self.peering.admit(request)

        def close() -> None:
            self.store.write(plan_follower.close, self.store.collection(fingerprint))

        await run_in_threadpool(close)
        return as_json(await run_in_threadpool(self.store.status, fingerprint))

    @asked(f"{SHARES}/release", TAKEN, *_TOLD, body=ReleasedWave)
    async def release(self, request: Request) -> Response:
        """Publish a wave's sums here too, and open the wave that follows."""
        fingerprint = self.peering.admit(request)
        found = await document_in(request, ReleasedWave, _EXPECTED, most_bytes(request))

        def take() -> None:
            wave = self.store.collection(fingerprint)
            self.store.write(plan_follower.take_release, wave, found.moments, found.following)

        await run_in_threadpool(take)
        return as_json(await run_in_threadpool(self.store.status, fingerprint))

    @asked(
        f"{ONE_PLAN}/shares/state",
        answer(plans.PlanStatus, "How far the plan is."),
        *_TOLD,
        body=ToldPlan,
    )
    async def state(self, request: Request) -> Response:
        """Be held, go on, or end with a model, as the plan's first database does."""
        fingerprint = self.peering.admit(request)
        found = await document_in(request, ToldPlan, _EXPECTED, most_bytes(request))

        def take() -> plans.PlanStatus:
            news = News(found.state, found.reason, found.model)
            if news.state == "ended":
                plan = self.store.read(plans.plan_of, fingerprint)
                releases = self.store.read(plans.releases, fingerprint)
                plan_follower.check_model(plan, releases, news.model)
            self.store.write(plan_follower.take_news, fingerprint, news)
            return self.store.read(plans.status, fingerprint)

        return as_json(await run_in_threadpool(take))
