"""Plans of waves over HTTP: open one, see how far it is, and take part in the wave that collects.

A wave is a collection like any other: submissions go to /collections/{its fingerprint}, and its
sums are at …/moments once it is released. The model is shown there too, with its last wave.

Of two databases the first leads: it takes the plan forward and ends it, and the second follows. To
hold the plan is the right of each.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from sqlalchemy.engine import Connection
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit.agreement.plan import Plan
from blurfit.errors import NotPublishedError, UnknownCollectionError
from blurfit.protocol import problems
from blurfit.protocol.wire import JSON, ONE_PLAN, PLANS, Acknowledgement
from blurfit.service.administration import (
    closes_at_opening,
    closes_in,
    hashes_in,
    refuse_if_too_wide,
    role_in,
)
from blurfit.service.advancing import Advancing
from blurfit.service.answers import Kept, as_json
from blurfit.service.authorisation import steward
from blurfit.service.background import run_in_daemon_thread
from blurfit.service.documents import AgreementDocument, Hashes, Moments, PlanDocument, Until
from blurfit.service.intake import Collector, unsealing_key
from blurfit.service.limits import body_of
from blurfit.service.metrics import plan_for_strangers
from blurfit.service.operations import ROLE, SAME, UNTIL, answer, array, get, post
from blurfit.service.proposal import PlanProposal, plan_from
from blurfit.service.reading import FORMAT, MODEL, STATEMENT, Papers, fingerprint_in
from blurfit.store import closing, plans, roles
from blurfit.store.advance import advance
from blurfit.store.plans import PlanStatus
from blurfit.store.store import Store

_Found = TypeVar("_Found")
_STATE = answer(PlanStatus, "How far the plan is.")


@dataclass(frozen=True, eq=False)
class Planning:
    """Endpoints for plans."""

    store: Store
    collector: Collector
    advancing: Advancing
    papers: Papers
    share_key: str | None = field(default=None, repr=False)
    body_bytes: int = 2**25

    @get(PLANS, answer(array(PlanStatus), "Their states."))
    async def plans(self, _request: Request) -> Response:
        """All plans."""

        def everything() -> list[PlanStatus]:
            found = self.store.read(plans.fingerprints)
            return [plan_for_strangers(self.store.read(plans.status, one)) for one in found]

        return as_json(await run_in_threadpool(everything))

    @post(
        PLANS,
        answer(PlanStatus, "It was open.") | answer(PlanStatus, "It is open now.", "201"),
        *(problems.CONFLICT, problems.INFEASIBLE),
        body=PlanDocument,
        parameters=[ROLE, UNTIL],
    )
    @steward("open", "open plan")
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
            unsealing_key(first, role, self.share_key)  # or it could read no share
            self.papers.signing.refuse_another_key(first, role)
            try:
                before = self.store.read(plans.status, plan.fingerprint)
            except UnknownCollectionError:
                before = None
            self.store.write(plans.begin, plan, closes, role=role)
            return before is None, self.store.read(plans.status, plan.fingerprint)

        is_new, status = await run_in_threadpool(begin)
        return as_json(status, 201 if is_new else 200)

    @post(
        f"{PLANS}/proposal",
        answer(PlanDocument, "The plan."),
        problems.INFEASIBLE,
        body=PlanProposal,
    )
    @steward("open")
    async def propose(self, request: Request) -> Response:
        """The plan that a schema and a promise would give; nothing is kept."""
        plan = await run_in_threadpool(plan_from, await body_of(request, JSON))
        return Response(plan.to_json(), media_type=JSON)

    @get(ONE_PLAN, _STATE)
    async def status(self, request: Request) -> Response:
        """State, waves, counts and quorums of a plan."""
        return as_json(plan_for_strangers(await self._read(plans.status, request)))

    @get(f"{ONE_PLAN}/plan", answer(PlanDocument, "Always the same bytes.") | SAME)
    async def plan(self, request: Request) -> Response:
        """The plan itself."""
        fingerprint = fingerprint_in(request)
        find = partial(self.store.read, plans.document, fingerprint)
        return await self.papers.constant(request, "plan", fingerprint, find)

    @get(
        f"{ONE_PLAN}/agreement",
        answer(AgreementDocument, "The agreement; later, another.") | SAME,
        *(problems.CLOSED, problems.DATE_CLOSED, problems.BETWEEN_WAVES),
    )
    async def agreement(self, request: Request) -> Response:
        """The agreement of the wave that collects now."""
        found = await self._read(plans.current, request)
        response = await self.papers.agreement(request, found.fingerprint)
        response.headers["cache-control"] = "no-cache"  # later, another
        return response

    @get(f"{ONE_PLAN}/releases", answer(array(Moments), "The releases.") | SAME)
    async def releases(self, request: Request) -> Response:
        """What the waves so far have published, in order."""
        fingerprint = fingerprint_in(request)
        count = await self._read(plans.released, request)

        def find() -> str:
            return f"[{','.join(self.store.read(plans.release_texts, fingerprint))}]"

        make = partial(Kept.made, media_type=JSON)
        found = await self.papers.shelf.get(("releases", fingerprint, count), find, make)
        return found.answer(request)

    @get(f"{ONE_PLAN}/model", MODEL, problems.NOT_PUBLISHED)
    async def model(self, request: Request) -> Response:
        """The model of a plan that has ended."""
        return await self.papers.published(request, await self._shown_at(request), "model")

    @get(
        f"{ONE_PLAN}/statement",
        STATEMENT,
        problems.INVALID,
        problems.NOT_PUBLISHED,
        parameters=[FORMAT],
    )
    async def statement(self, request: Request) -> Response:
        """The privacy statement in words."""
        return await self.papers.statement(request, await self._shown_at(request))

    @post(
        f"{ONE_PLAN}/invitations",
        answer(Acknowledgement, "They are on disk."),
        *(problems.INFEASIBLE, problems.CLOSED, problems.DATE_CLOSED),
        body=Hashes,
    )
    @steward("invite", "invite to plan")
    async def invite(self, request: Request) -> Response:
        """Keep the hashes of one-time invitations to the plan."""
        hashes = await hashes_in(request)
        newest = await self._read(plans.still_open, request)
        new = await run_in_threadpool(self.store.invite, newest.fingerprint, hashes)
        return as_json(Acknowledgement(len(hashes), new))

    @post(f"{ONE_PLAN}/hold", _STATE, problems.CLOSED)
    @steward("open", "hold plan")
    async def hold(self, request: Request) -> Response:
        """Release no wave until the plan is resumed; the open one goes on collecting."""
        return await self._change(plans.hold, request)

    @post(f"{ONE_PLAN}/resume", _STATE, problems.CLOSED)
    @steward("open", "resume plan")
    async def resume(self, request: Request) -> Response:
        """Let a plan go on."""
        return await self._change(plans.resume, request)

    @post(f"{ONE_PLAN}/until", _STATE, problems.CLOSED, body=Until)
    @steward("open", "move date of plan")
    async def move_closing(self, request: Request) -> Response:
        """End the plan at another moment at the latest, or at none."""
        closes = await closes_in(request)
        fingerprint = fingerprint_in(request)
        await self._read(plans.document, request)  # there is one
        await self.collector.between_commits(
            self.store.write, closing.move_plan, fingerprint, closes
        )
        return as_json(await self._read(plans.status, request))

    @post(
        f"{ONE_PLAN}/publish",
        MODEL,
        *(
            problems.NOT_PUBLISHED,
            problems.BELOW_QUORUM,
            problems.INFEASIBLE,
            problems.OTHER_DATABASE,
        ),
    )
    @steward("publish", "publish plan")
    async def publish(self, request: Request) -> Response:
        """End the plan now, with the best model so far."""
        fingerprint = fingerprint_in(request)
        role = await run_in_threadpool(self.store.read, plans.role_in, fingerprint)
        if role == "first":  # the wire is slow: others write meanwhile
            text = await run_in_daemon_thread(lambda: self.advancing.leading.end(fingerprint))
            self.advancing.look_soon()
        elif role == "second":
            text = await self._led_by_the_first(fingerprint)
        else:
            await self.collector.between_commits(self.store.write, advance, fingerprint, end=True)
            text = await self.advancing.learned(fingerprint)
        if text is None:
            status = await run_in_threadpool(self.store.read, plans.status, fingerprint)
            raise NotPublishedError(status.reason or "The plan has no model.")
        return await self.papers.published(request, await self._shown_at(request), "model")

    async def _shown_at(self, request: Request) -> str:
        """The fingerprint of the wave that shows the model of a plan."""
        return await self._read(plans.shown_at, request)

    async def _led_by_the_first(self, fingerprint: str) -> str | None:
        """The model of a plan that the other database leads, if it has ended."""
        status = await run_in_threadpool(self.store.read, plans.status, fingerprint)
        if status.state != "ended":
            plan = await run_in_threadpool(self.store.read, plans.plan_of, fingerprint)
            raise NotPublishedError(
                f"{plan.databases[0].name} leads this plan, and only there can it be ended. It can "
                "be held here: then no wave is released until it is resumed."
            )
        return await run_in_threadpool(self.store.read, plans.model_text, fingerprint)

    async def _read(self, what: Callable[[Connection, str], _Found], request: Request) -> _Found:
        return await run_in_threadpool(self.store.read, what, fingerprint_in(request))

    async def _change(self, what: Callable[[Connection, str], None], request: Request) -> Response:
        fingerprint = fingerprint_in(request)
        await run_in_threadpool(self.store.write, what, fingerprint)
        self.advancing.look_soon()
        return as_json(await run_in_threadpool(self.store.read, plans.status, fingerprint))
