"""What the administrator may do: propose, open, invite, close, publish."""

from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit.agreement.agreement import Agreement
from blurfit.dates import instant
from blurfit.errors import InfeasibleError, InvalidValueError, NotPublishedError
from blurfit.messages.shares import KIND_OF, OVERHEAD, ROLES, Role
from blurfit.protocol import problems
from blurfit.protocol.wire import (
    COLLECTIONS,
    JSON,
    MOST_SUBMISSIONS,
    ONE_COLLECTION,
    Acknowledgement,
)
from blurfit.service.answers import as_json
from blurfit.service.authorisation import bearer_of, steward
from blurfit.service.background import InProgress, run_in_daemon_thread
from blurfit.service.documents import AgreementDocument, Hashes, Until
from blurfit.service.intake import Collector, unsealing_key
from blurfit.service.limits import body_of, document_in
from blurfit.service.operations import OBJECT, ROLE, UNTIL, answer, get, post
from blurfit.service.peer import publish_remotely
from blurfit.service.proposal import Expected, Proposal, Wish, agreement_from, expected_from
from blurfit.service.reading import fingerprint_in
from blurfit.service.signatory import Signatory
from blurfit.store import joint_publication, publication, roles, stewards
from blurfit.store.stewards import Bearer
from blurfit.store.store import Status, Store

_STATE = answer(Status, "How far it is.")


@dataclass(frozen=True, eq=False)
class Administration:
    """Endpoints for whoever has the administrator's token."""

    store: Store
    collector: Collector
    signing: Signatory
    peer_token: str | None = field(repr=False)
    peer_options: dict[str, Any] = field(repr=False)
    share_key: str | None = field(default=None, repr=False)
    body_bytes: int = 2**25
    _publishing: InProgress[str] = field(default_factory=InProgress, repr=False)

    @get("/token", answer(Bearer, "Whose token it is."), security="administrator")
    async def token(self, request: Request) -> Response:
        """Whose token is sent, and what it may do."""
        return as_json(await bearer_of(self.store, request))

    @post(
        "/agreements",
        answer(AgreementDocument, "The agreement."),
        problems.INFEASIBLE,
        body=Proposal,
    )
    @steward("open")  # calibrating takes time that others need
    async def propose(self, request: Request) -> Response:
        """The agreement that a schema and a promise would give; nothing is kept."""
        body = await body_of(request, JSON)
        agreement = await run_in_threadpool(agreement_from, body)
        return Response(agreement.to_json(), media_type=JSON)

    @post("/outlooks", answer(Expected, "An estimate."), problems.INFEASIBLE, body=Wish)
    @steward("open")
    async def estimate(self, request: Request) -> Response:
        """How far off predictions may be, for typical people; nothing is kept."""
        body = await body_of(request, JSON)
        return as_json(await run_in_threadpool(expected_from, body))

    @post(
        COLLECTIONS,
        answer(Status, "It was open.") | answer(Status, "It is open now.", "201"),
        *(problems.CONFLICT, problems.INFEASIBLE),
        body=AgreementDocument,
        parameters=[ROLE, UNTIL],
    )
    @steward("open", "open")
    async def open(self, request: Request) -> Response:
        """Open a collection from an agreement."""
        role, closes = role_in(request), closes_at_opening(request)
        body = await body_of(request, JSON)
        agreement = await run_in_threadpool(Agreement.from_json, body)
        if agreement.wave is not None:
            raise InvalidValueError(
                f"Expected an agreement that stands alone, and this is wave "
                f"{agreement.wave.number} of the plan {agreement.wave.plan}: open the plan "
                "(POST /plans), and its waves open themselves."
            )
        await run_in_threadpool(agreement.verify)  # so that each of its databases is there
        roles.refuse_unless_fitting(agreement, role)
        unsealing_key(agreement, role, self.share_key)  # or it could read no share
        self.signing.refuse_another_key(agreement, role)
        refuse_if_too_wide(agreement, role, self.body_bytes)

        def open_collection() -> tuple[bool, Status]:
            is_new = self.store.open(agreement, role=role, closes=closes)
            return is_new, self.store.status(agreement.fingerprint)

        is_new, status = await run_in_threadpool(open_collection)
        return as_json(status, 201 if is_new else 200)

    @post(
        f"{ONE_COLLECTION}/invitations",
        answer(Acknowledgement, "They are on disk."),
        problems.INFEASIBLE,
        body=Hashes,
    )
    @steward("invite", "invite")
    async def invite(self, request: Request) -> Response:
        """Keep the hashes of one-time invitations."""
        hashes = await hashes_in(request)
        new = await run_in_threadpool(self.store.invite, fingerprint_in(request), hashes)
        return as_json(Acknowledgement(len(hashes), new))

    @post(f"{ONE_COLLECTION}/pause", _STATE, problems.CLOSED, problems.INFEASIBLE)
    @steward("open", "pause")
    async def pause(self, request: Request) -> Response:
        """Take no submissions for a while."""
        return await self._pause(request, resume=False)

    @post(f"{ONE_COLLECTION}/resume", _STATE, problems.CLOSED, problems.INFEASIBLE)
    @steward("open", "resume")
    async def resume(self, request: Request) -> Response:
        """Go on collecting."""
        return await self._pause(request, resume=True)

    async def _pause(self, request: Request, *, resume: bool) -> Response:
        collection = await run_in_threadpool(self.store.collection, fingerprint_in(request))
        await self.collector.between_commits(
            self.store.write, publication.pause, collection, resume=resume
        )
        return as_json(await run_in_threadpool(self.store.status, collection.fingerprint))

    @post(
        f"{ONE_COLLECTION}/until",
        answer(Status, "How far it is, and when it closes."),
        *(problems.CLOSED, problems.INFEASIBLE),
        body=Until,
    )
    @steward("open", "move date")
    async def move_closing(self, request: Request) -> Response:
        """Close at another moment, or at none."""
        closes = await closes_in(request)
        move, fingerprint = self.store.move_closing, fingerprint_in(request)
        return as_json(await self.collector.between_commits(move, fingerprint, closes))

    @post(f"{ONE_COLLECTION}/close", answer(Status, "Closed, or published."), problems.INFEASIBLE)
    @steward("open", "close")
    async def close(self, request: Request) -> Response:
        """Stop collecting."""
        close, fingerprint = self.store.close_collection, fingerprint_in(request)
        return as_json(await self.collector.between_commits(close, fingerprint))

    @post(
        f"{ONE_COLLECTION}/publish",
        answer(OBJECT, "The model, or sums that have none of their own; again, the same."),
        *(
            problems.NOT_PUBLISHED,
            problems.BELOW_QUORUM,
            problems.INFEASIBLE,
            problems.CONFLICT,
            problems.OTHER_DATABASE,
        ),
    )
    @steward("publish", "publish")
    async def publish(self, request: Request) -> Response:
        """Close the collection, learn its model and publish it, once."""
        fingerprint = fingerprint_in(request)
        collection = await run_in_threadpool(self.store.collection, fingerprint)
        text: str | None
        if collection.role == "whole":  # learning takes long: others write meanwhile
            write = self.collector.in_turn()
            text = await self._publishing.join(
                fingerprint,
                lambda: run_in_daemon_thread(lambda: self.store.publish_text(fingerprint, write)),
            )
        elif collection.role == "first":  # and so does the wire
            text = await self._publishing.join(
                fingerprint,
                lambda: run_in_daemon_thread(
                    lambda: publish_remotely(
                        self.store, fingerprint, self.peer_token, **self.peer_options
                    )
                ),
            )
            await run_in_daemon_thread(
                lambda: self.signing.exchange(fingerprint, self.peer_token, **self.peer_options)
            )
        else:
            text = bytes((await self._let_publish(request)).body).decode()
            if not text:
                name = collection.agreement.databases[0].name
                raise NotPublishedError(
                    f"The collection is closed here, and its shares may be summed. The next step "
                    f"is {name}'s: once it publishes, the model appears here too."
                )
        signed = await run_in_threadpool(self.signing.signed, fingerprint, "model", text)
        return Response(signed.text, media_type=JSON)

    @steward("publish", "let publish")
    async def _let_publish(self, request: Request) -> Response:
        """Close a second database's side; its model, if the first has sent it already.

        A deed of its own: that no model is there yet, which is what the one who asked for it is
        told, does not undo it.
        """
        collection = await run_in_threadpool(self.store.collection, fingerprint_in(request))
        text = await self.collector.between_commits(
            self.store.write, joint_publication.consent, collection
        )
        return Response(text, media_type=JSON)

    @get("/deeds", answer({"type": "array", "items": OBJECT}, "The newest thousand."))
    @steward("read")
    async def deeds(self, _request: Request) -> Response:
        """What was done with tokens, the last one first."""
        return as_json(await run_in_threadpool(self.store.read, stewards.newest))


async def hashes_in(request: Request) -> list[bytes]:
    """The hashes of invitations that a request brings."""
    expected = (
        f'{{"hashes": ["…"]}}, 1 to {MOST_SUBMISSIONS} of them, each SHA-256 in hexadecimal digits'
    )
    return [bytes.fromhex(one) for one in (await document_in(request, Hashes, expected)).hashes]


def closes_at_opening(request: Request) -> int | None:
    """When whatever a request opens is to close: `until`, after the question mark."""
    given = request.query_params.get("until")
    return None if given is None else instant(given)


async def closes_in(request: Request) -> int | None:
    """The moment to which a request moves a date."""
    expected = '{"until": "2027-01-31"}, or null for no date'
    given = (await document_in(request, Until, expected)).until
    return None if given is None else instant(given)


def refuse_if_too_wide(agreement: Agreement, role: Role, limit: int) -> None:
    """Refuse to collect what could never be taken: one submission that is longer than a body."""
    layout = agreement.layout if role == "whole" else agreement.share_layout(KIND_OF[role])
    if (size := layout.size + OVERHEAD) > limit:
        raise InfeasibleError(
            f"Expected submissions of at most {limit:,} bytes, the largest body that this service "
            f"takes, and each would have {size:,} ({agreement.width:,} numbers): ask fewer "
            "questions, or start it with a larger --body-limit."
        )


def role_in(request: Request) -> Role:
    """Which of the databases this is, as whoever opens something says."""
    given = request.query_params.get("role", "whole")
    for role in ROLES:
        if given == role:
            return role
    raise InvalidValueError(f"Expected role={given!r} to be one of {list(ROLES)}.")
