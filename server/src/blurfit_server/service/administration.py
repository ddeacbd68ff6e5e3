"""What administrators may do: propose, open, invite, steer, publish, and read what was done."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, TypeVar, cast

from msgspec import Meta, Struct
from msgspec.structs import replace
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit import errors, protocol
from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Agreed, Plan, read_agreed
from blurfit.agreement.terms import Terms, require_together
from blurfit.learning.outlook import epsilon_needed, outlook, people_needed
from blurfit.messages.submissions import KIND_OF, OVERHEAD, ROLES, Role
from blurfit.schema.schema import Schema
from blurfit.schema.xlsforms import from_xlsform
from blurfit.wording import Message
from blurfit_server.service import limits
from blurfit_server.service.answers import as_json
from blurfit_server.service.endpoints import (
    AGREED,
    Count,
    Fingerprint,
    Papers,
    bearer_of,
    fingerprint_in,
    guarded,
    newest_wave,
)
from blurfit_server.service.intake import unsealing_key
from blurfit_server.service.operations import (
    BYTES,
    MOMENT,
    OBJECT,
    ROLE,
    TEXT,
    UNTIL,
    answer,
    array,
    get,
    post,
    query,
)
from blurfit_server.service.peers import Jobs
from blurfit_server.store.arrivals import Bearer, LogEntry
from blurfit_server.store.collections import Status
from blurfit_server.store.store import Store

_Kind = TypeVar("_Kind", bound="Proposal")
_MAX_NAME = 100  # characters of a file's name, in messages
_STATE = answer(Status, "How far it is.")


class Proposal(Terms, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A schema, and everything that may be chosen; the rest of the agreement follows.

    With `waves`, so many at most or as many as help, it is a plan; `counts` says that its target
    counts something.
    """

    schema: dict[str, Any]
    waves: Literal["auto"] | Annotated[int, Meta(ge=1, le=9)] | None = None
    counts: bool = False


class Wish(Proposal, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A proposal, and by how much its predictions may be off, in units of the target."""

    off: Annotated[float, Meta(gt=0)] | None = None


class Expected(Struct):
    """How far off predictions may be, for typical people: `blurfit.learning.outlook`.

    `people` is how many people would bring predictions as close as was wished, and `epsilon` which
    ε would with the people agreed on; null where nothing was wished, or nothing suffices.
    """

    count: Count
    off: float
    without_privacy: float
    spread: float
    people: Count | None
    epsilon: float | None


class Survey(Struct):
    """The questions of a form that was made elsewhere, and what somebody should know of them."""

    schema: dict[str, Any]
    notes: list[str]


class Hashes(Struct, forbid_unknown_fields=True):
    """SHA-256 of one-time invitations, in hexadecimal digits; with two databases also of those of
    the other one that they are joined with. Without `hashes`, `pairs` are only checked.
    """

    hashes: Annotated[list[Fingerprint], Meta(max_length=protocol.MOST_SUBMISSIONS)]
    pairs: Annotated[list[Fingerprint], Meta(max_length=protocol.MOST_SUBMISSIONS)] = []


class Until(Struct, forbid_unknown_fields=True):
    """A date, which lasts until its end in UTC, or a time with its zone; null for no date."""

    until: Annotated[str, Meta(extra_json_schema=MOMENT)] | None


class Side(Struct):
    """One of two databases, and how many shares it says that it has; null if it does not say."""

    name: str
    count: Count | None


class Sides(Struct):
    """Both, and why closing now would be in vain; null if it would not."""

    databases: list[Side]
    warning: str | None


@dataclass(frozen=True, eq=False)
class Administration:
    """Endpoints for whoever has the administrator's token, or one for some of this."""

    store: Store
    jobs: Jobs
    papers: Papers
    share_key: str | None = field(default=None, repr=False)
    body_bytes: int = 2**25
    _in_progress: limits.InProgress[Any] = field(default_factory=limits.InProgress, repr=False)

    @get("/token", answer(Bearer, "Whose token it is."), security="administrator")
    def token(self, request: Request) -> Bearer:
        """Whose token is sent, and what it may do."""
        return bearer_of(self.store, request)

    @get("/audit-log", answer(array(LogEntry), "The newest thousand."))
    @guarded("read")
    def audit_log(self, _request: Request) -> list[LogEntry]:
        """What was done with tokens, the last one first."""
        return self.store.audit_log()

    # ---- before anything is collected: nothing is kept, and no record is read

    @post("/proposals", answer(AGREED, "It."), protocol.INFEASIBLE, body=Proposal)
    @guarded("open")  # calibrating takes time that others need
    async def propose(self, request: Request) -> Response:
        """The agreement or the plan that a schema and a promise would give; nothing is kept."""
        agreed = await run_in_threadpool(agreed_from, await limits.body_of(request, protocol.JSON))
        return Response(agreed.to_json(), media_type=protocol.JSON)

    @post("/outlooks", answer(Expected, "An estimate."), protocol.INFEASIBLE, body=Wish)
    @guarded("open")
    async def estimate(self, request: Request) -> Expected:
        """How far off predictions may be, for typical people; nothing is kept."""
        return await run_in_threadpool(expected_from, await limits.body_of(request, protocol.JSON))

    @post(
        "/surveys",
        answer(Survey, "Its questions."),
        body={protocol.OCTETS: BYTES},
        parameters=[query("target", TEXT), query("name", TEXT)],
    )
    @guarded("open")
    async def read_survey(self, request: Request) -> Survey:
        """Read the questions of an XLSForm; nothing is kept."""
        body = await limits.body_of(request, protocol.OCTETS)
        target = request.query_params.get("target", "")
        name = request.query_params.get("name", "survey.xlsx")[:_MAX_NAME]

        def read() -> Survey:
            with TemporaryDirectory() as folder:
                file = Path(folder, "survey.xlsx")
                file.write_bytes(body)
                found = from_xlsform(file, target, name=name)
            return Survey(found.schema.to_dict(), list(found.notes))

        return await run_in_threadpool(read)

    @post(
        protocol.COLLECTIONS,
        answer(Status, "It was open.") | answer(Status, "It is open now.", "201"),
        *(protocol.CONFLICT, protocol.INFEASIBLE),
        body={protocol.JSON: AGREED},
        parameters=[ROLE, UNTIL],
    )
    @guarded("open", "open")
    async def open(self, request: Request) -> Response:
        """Collect under an agreement, or under a plan of waves."""
        role: Role = cast(Role, request.query_params.get("role", "whole"))
        errors.one_of(ROLES, role=role)
        given = request.query_params.get("until")
        closes = None if given is None else errors.instant(given)
        body = await limits.body_of(request, protocol.JSON)

        def begin() -> tuple[bool, Status]:
            agreed = read_agreed(body)
            if isinstance(agreed, Agreement) and agreed.wave is not None:
                raise errors.InvalidValueError(
                    "Expected an agreement that stands alone, and this is wave "
                    "{wave_number} of the plan {plan}: open the plan, and its "
                    "waves open themselves.",
                    wave_number=agreed.wave.number,
                    plan=agreed.wave.plan,
                )
            first = agreed.first()
            first.verify()  # so that each of its databases is there
            require_together(first, served=True)
            if bool(first.databases) == (role != "whole"):  # else the store says what is wrong
                unsealing_key(first, role, self.share_key)  # or it could read no share
                self.papers.signing.refuse_another_key(first, role)
                _refuse_if_too_wide(first, role, self.body_bytes)
            is_new = self.store.open(agreed, role=role, closes=closes)
            return is_new, self.store.status(agreed.fingerprint)

        is_new, status = await run_in_threadpool(begin)
        return as_json(status, 201 if is_new else 200)

    # ---- while it collects

    @post(
        f"{protocol.ONE_COLLECTION}/invitations",
        answer(protocol.Acknowledgement, "They are on disk."),
        *(protocol.INFEASIBLE, protocol.CONFLICT, protocol.CLOSED, protocol.DATE_CLOSED),
        body=Hashes,
    )
    @guarded("invite", "invite")
    async def invite(self, request: Request) -> protocol.Acknowledgement:
        """Keep the hashes of one-time invitations."""
        expected = Message(
            "{example}, 1 to {most} of them, each SHA-256 in hexadecimal digits",
            example='{"hashes": ["…"]}',
            most=protocol.MOST_SUBMISSIONS,
        )
        given = await limits.document_in(request, Hashes, expected)
        hashes, pairs = ([bytes.fromhex(x) for x in part] for part in (given.hashes, given.pairs))
        if not hashes and not pairs:
            raise errors.InvalidValueError(
                "Expected a hash at least, of an invitation or of one to join."
            )
        new = await run_in_threadpool(self.store.invite, fingerprint_in(request), hashes, pairs)
        return protocol.Acknowledgement(len(hashes), new)

    @post(f"{protocol.ONE_COLLECTION}/pause", _STATE, protocol.CLOSED, protocol.INFEASIBLE)
    @guarded("open", "pause")
    def pause(self, request: Request) -> Status:
        """Take no submissions for a while."""
        return self._steer(self.store.pause, request)

    @post(f"{protocol.ONE_COLLECTION}/hold", _STATE, protocol.CLOSED, protocol.INFEASIBLE)
    @guarded("open", "hold")
    def hold(self, request: Request) -> Status:
        """Release no wave of a plan until it is resumed; the open one goes on collecting."""
        return self._steer(self.store.hold, request)

    @post(f"{protocol.ONE_COLLECTION}/resume", _STATE, protocol.CLOSED, protocol.INFEASIBLE)
    @guarded("open", "resume")
    def resume(self, request: Request) -> Status:
        """Go on, after a pause or a hold."""
        return self._steer(self.store.resume, request)

    @post(
        f"{protocol.ONE_COLLECTION}/until",
        answer(Status, "How far it is, and when it closes."),
        *(protocol.CLOSED, protocol.INFEASIBLE),
        body=Until,
    )
    @guarded("open", "move date")
    async def move_date(self, request: Request) -> Status:
        """Close at another moment, or at none."""
        expected = Message("{example}, or null for no date", example='{"until": "2027-01-31"}')
        given = (await limits.document_in(request, Until, expected)).until
        closes = None if given is None else errors.instant(given)
        move = partial(self.store.move_date, closes=closes)
        return await run_in_threadpool(self._steer, move, request)

    @post(
        f"{protocol.ONE_COLLECTION}/close",
        answer(Status, "Closed, or published."),
        protocol.INFEASIBLE,
    )
    @guarded("open", "close")
    def close(self, request: Request) -> Status:
        """Stop collecting; a plan closes its waves by itself."""
        return self._steer(self.store.close_collection, request)

    def _steer(self, change: Callable[[str], Status], request: Request) -> Status:
        status = change(fingerprint_in(request))
        self.jobs.wake()
        return status

    @get(
        f"{protocol.ONE_COLLECTION}/sides",
        answer(Sides, "Both, and why nothing could be published if one closed now."),
        protocol.INFEASIBLE,
    )
    @guarded("open")
    async def compare_sides(self, request: Request) -> Sides:
        """How many shares each of two databases has, before one is closed.

        A set that leaves out too many people, who reached one of them alone, is refused
        (`blurfit_server.store.joint`); while both collect, whoever is missing can send again.
        """
        fingerprint = await run_in_threadpool(newest_wave, self.store, fingerprint_in(request))
        collection = await run_in_threadpool(self.store.collection, fingerprint)
        agreement = collection.agreement
        if collection.role == "whole":
            raise errors.InfeasibleError("Expected a collection that two databases share.")
        counts = await limits.run_in_daemon_thread(lambda: protocol.counts_at(agreement))
        warning = protocol.warning_if_uneven(agreement, counts)
        names = [one.name for one in agreement.databases]
        return Sides([Side(*one) for one in zip(names, counts, strict=True)], warning)

    # ---- the end

    @post(
        f"{protocol.ONE_COLLECTION}/publish",
        answer(OBJECT, "The model, or sums that have none of their own; again, the same."),
        *(
            protocol.NOT_PUBLISHED,
            protocol.BELOW_QUORUM,
            protocol.INFEASIBLE,
            protocol.CONFLICT,
            protocol.OTHER_DATABASE,
            protocol.BUSY,
        ),
    )
    @guarded("publish", "publish")
    async def publish(self, request: Request) -> Response:
        """Close the collection, learn its model and publish it, once; a plan ends early."""
        fingerprint = fingerprint_in(request)
        course = await run_in_threadpool(self.store.steered, fingerprint)
        if course.role == "second" and course.by_hand:
            await self._let_publish(request)
        await self._in_progress.join(
            ("publish", course.fingerprint),
            lambda: limits.run_in_daemon_thread(lambda: self.jobs.publish(course)),
        )
        if course.by_hand and course.document.first().sums_alone:
            return await self.papers.published(request, fingerprint, "moments")
        return await self.papers.model(request, fingerprint)

    @guarded("publish", "let publish")
    def _let_publish(self, request: Request) -> Status:
        """Close a second database's side; written down by itself, as it holds without a model."""
        return self._steer(self.store.close_collection, request)


def agreed_from(body: bytes) -> Agreed:
    """Return the agreement or the plan that a proposal in JSON gives: the same as in Python.

    >>> agreed_from(b'''{"epsilon": 1, "delta": 1e-6, "quorum": 100, "waves": 2, "schema": {
    ...     "features": [{"name": "age", "kind": "numeric", "lower": 0, "upper": 100}],
    ...     "target": {"name": "smokes", "kind": "binary"}}}''').kinds
    ('joint', 'residual')
    """
    with _proposed(body, Proposal) as (given, schema):
        require_together(given, served=True)
        if given.waves is None:
            return Agreement.propose(schema, given)
        plan = Plan.propose(schema, waves=given.waves, counts=given.counts, terms=given)
        require_together(plan.first(), served=True)
        return plan


def expected_from(body: bytes) -> Expected:
    """Return how far off predictions will be, and what it takes to be off by no more than wished.

    This is for typical people; `blurfit forecast` simulates people who are publicly known.
    """
    with _proposed(body, Wish) as (wish, schema):

        def propose(**changes: Any) -> Agreement:
            return Agreement.propose(schema, replace(wish, **changes))

        found = outlook(propose())
        people = epsilon = None
        if wish.off is not None:
            with suppress(
                errors.InfeasibleError
            ):  # noise that nobody could draw: no such collection
                people = people_needed(lambda count: propose(quorum=count), wish.off)
                epsilon = epsilon_needed(lambda one: propose(epsilon=one), wish.off)
        return Expected(
            found.count, found.off, found.without_privacy, found.spread, people, epsilon
        )


@contextmanager
def _proposed(body: bytes, kind: type[_Kind]) -> Iterator[tuple[_Kind, Schema]]:
    """Read a proposal in JSON with its schema; refuse numbers for which there is no noise."""
    expected = Message("a proposal in JSON, with schema, epsilon, delta and quorum")
    proposal = limits.document_from(body, kind, expected)
    try:
        yield proposal, Schema.from_dict(proposal.schema)
    except errors.BlurfitError:
        raise
    except (ArithmeticError, ValueError) as error:
        raise errors.InvalidValueError(
            "Expected numbers for which noise can be computed: {error}. Choose less extreme ones.",
            error=error,
        ) from error


def _refuse_if_too_wide(agreement: Agreement, role: Role, limit: int) -> None:
    """Refuse to collect what could never be taken: one submission that is longer than a body."""
    layout = agreement.layout if role == "whole" else agreement.share_layout(KIND_OF[role])
    if (size := layout.size + OVERHEAD) > limit:
        raise errors.InfeasibleError(
            "Expected submissions of at most {limit:,} bytes, the largest body that this service "
            "takes, and each would have {size:,} ({width:,} numbers): ask fewer "
            "questions, or start it with a larger --body-limit.",
            limit=limit,
            size=size,
            width=agreement.width,
        )
