"""Plans of waves over HTTP: open one, see how far it is, and take part in the wave that collects.

| request | who | what |
| --- | --- | --- |
| POST /plans?role= | administrator | keep a plan, and open its first wave |
| GET /plans, /plans/{fingerprint} | anyone | state, waves, counts and quorums |
| GET …/plan | anyone | the plan itself, always the same bytes |
| GET …/agreement | anyone | the agreement of the wave that collects *now* |
| GET …/releases | anyone | what the waves so far have published, in order |
| GET …/model, …/statement | anyone | the plan's model, when it has ended |
| POST …/invitations | administrator | for the whole plan, whichever wave collects |
| POST …/hold, …/resume | administrator | release no wave for a while |
| POST …/until | administrator | when it ends at the latest: `blurfit.service.closing_dates` |
| POST …/publish | administrator | end it now, with the best model so far |
| POST /plans/proposal | administrator | what a schema and a promise would give; nothing is kept |

A wave is a collection like any other: submissions go to /collections/{its fingerprint}, and its
sums are at …/moments once it is released. The model is shown there too, with its last wave.

Of two databases the first leads: it takes the plan forward and ends it, and the second follows. To
hold the plan is the right of each.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy.engine import Connection
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit.agreement.plan import Plan
from blurfit.errors import NotPublishedError, UnknownCollectionError
from blurfit.protocol.wire import JSON, Acknowledgement
from blurfit.service.administration import (
    hashes_in,
    refuse_another_key,
    refuse_if_too_wide,
    role_in,
)
from blurfit.service.advancing import Advancing
from blurfit.service.answers import FOREVER, as_json
from blurfit.service.authorisation import admit, steward
from blurfit.service.bodies import body_of
from blurfit.service.closing_dates import closes_at_opening
from blurfit.service.collector import Collector
from blurfit.service.detached import detached
from blurfit.service.proposal import plan_from
from blurfit.service.reading import fingerprint_in, published, statement_of
from blurfit.service.shown_counts import plan_for_strangers
from blurfit.service.signatory import Signatory
from blurfit.store import plans, roles
from blurfit.store.advance import advance
from blurfit.store.plans import PlanStatus
from blurfit.store.store import Store

_Found = TypeVar("_Found")


@dataclass(frozen=True, eq=False)
class Planning:
    """Endpoints for plans."""

    store: Store
    collector: Collector
    advancing: Advancing
    signing: Signatory
    share_key: str | None = field(default=None, repr=False)
    body_bytes: int = 2**25

    async def plans(self, _request: Request) -> Response:
        """The states of all plans."""

        def everything() -> list[PlanStatus]:
            found = self.store.read(plans.fingerprints)
            return [plan_for_strangers(self.store.read(plans.status, one)) for one in found]

        return as_json(await run_in_threadpool(everything))

    @steward("open plan", "open")
    async def open(self, request: Request) -> Response:
        """Keep a plan, and open its first wave."""
        role = role_in(request)
        body = await body_of(request, JSON)
        plan = await run_in_threadpool(Plan.from_json, body)
        closes = closes_at_opening(request)

        def begin() -> tuple[bool, PlanStatus]:
            first = plan.first()
            roles.refuse_unless_fitting(first, role)
            refuse_if_too_wide(first, role, self.body_bytes)
            refuse_another_key(first, role, self.share_key)
            self.signing.refuse_another_key(first, role)
            try:
                before = self.store.read(plans.status, plan.fingerprint)
            except UnknownCollectionError:
                before = None
            self.store.write(plans.begin, plan, closes, role=role)
            return before is None, self.store.read(plans.status, plan.fingerprint)

        is_new, status = await run_in_threadpool(begin)
        return as_json(status, 201 if is_new else 200)

    async def propose(self, request: Request) -> Response:
        """The plan that a schema and a promise would give; nothing is kept."""
        await admit(self.store, request, "open")
        plan = await run_in_threadpool(plan_from, await body_of(request, JSON))
        return Response(plan.to_json(), media_type=JSON)

    async def status(self, request: Request) -> Response:
        """How far a plan is."""
        return as_json(plan_for_strangers(await self._read(plans.status, request)))

    async def plan(self, request: Request) -> Response:
        """The plan itself."""
        text = await self._read(plans.document, request)
        return Response(text, media_type=JSON, headers=FOREVER)

    async def agreement(self, request: Request) -> Response:
        """The agreement of the wave that collects now."""
        found = await self._read(plans.current, request)
        return Response(found.to_json(), media_type=JSON)

    async def releases(self, request: Request) -> Response:
        """What the waves so far have published."""
        texts = await self._read(plans.release_texts, request)
        return Response(f"[{','.join(texts)}]", media_type=JSON)

    async def model(self, request: Request) -> Response:
        """The plan's model."""
        text = await self._read(plans.model, request)
        text = await run_in_threadpool(self.signing.signed_model, text)
        return published(text)

    async def statement(self, request: Request) -> Response:
        """Its privacy statement."""
        return await statement_of(request, lambda one: self.store.read(plans.model, one))

    @steward("invite to plan", "invite")
    async def invite(self, request: Request) -> Response:
        """Keep the hashes of one-time invitations to the plan."""
        hashes = hashes_in(await body_of(request, JSON))
        newest = await self._read(plans.still_open, request)
        new = await run_in_threadpool(self.store.invite, newest.fingerprint, hashes)
        return as_json(Acknowledgement(len(hashes), new))

    @steward("hold plan", "open")
    async def hold(self, request: Request) -> Response:
        """Release no wave until the plan is resumed."""
        return await self._change(plans.hold, request)

    @steward("resume plan", "open")
    async def resume(self, request: Request) -> Response:
        """Let the plan go on."""
        return await self._change(plans.resume, request)

    @steward("publish plan", "publish")
    async def publish(self, request: Request) -> Response:
        """End the plan now, with the best model so far."""
        fingerprint = fingerprint_in(request)
        role = await run_in_threadpool(self.store.read, plans.role_in, fingerprint)
        if role == "first":  # the wire is slow: others write meanwhile
            text = await detached(lambda: self.advancing.leading.end(fingerprint))
            self.advancing.look()
        elif role == "second":
            text = await self._led_by_the_first(fingerprint)
        else:
            await self.collector.between_commits(self.store.write, advance, fingerprint, end=True)
            text = await self.advancing.learned(fingerprint)
        if text is None:
            status = await run_in_threadpool(self.store.read, plans.status, fingerprint)
            raise NotPublishedError(status.reason or "The plan has no model.")
        text = await run_in_threadpool(self.signing.signed_model, text)
        return Response(text, media_type=JSON)

    async def _led_by_the_first(self, fingerprint: str) -> str | None:
        """The model of a plan that the other database leads, if it has ended."""
        status = await run_in_threadpool(self.store.read, plans.status, fingerprint)
        if status.state != "ended":
            plan = Plan.from_json(
                await run_in_threadpool(self.store.read, plans.document, fingerprint)
            )
            raise NotPublishedError(
                f"{plan.databases[0].name} leads this plan, and ends it. It may be held here: then "
                "no wave is released until it is resumed."
            )
        return await run_in_threadpool(self.store.read, plans.model_text, fingerprint)

    async def _read(self, what: Callable[[Connection, str], _Found], request: Request) -> _Found:
        return await run_in_threadpool(self.store.read, what, fingerprint_in(request))

    async def _change(self, what: Callable[[Connection, str], None], request: Request) -> Response:
        fingerprint = fingerprint_in(request)
        await run_in_threadpool(self.store.write, what, fingerprint)
        self.advancing.look()
        return as_json(await run_in_threadpool(self.store.read, plans.status, fingerprint))
