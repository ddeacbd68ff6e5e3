"""Before a collection of shares is closed for good: do the two databases hold about the same?

People who reached one of them alone are left out of the model, and a set that leaves out too many
is refused by the database that holds them (`blurfit.store.commitment`). While both collect, whoever
is missing can send again; once one is closed, nobody can. Both counts are public.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit.agreement.agreement import Agreement
from blurfit.errors import BlurfitError, ConflictError, InfeasibleError
from blurfit.messages.shares import KIND_OF
from blurfit.protocol import problems
from blurfit.protocol.wire import ONE_COLLECTION
from blurfit.service.answers import as_json
from blurfit.service.authorisation import steward
from blurfit.service.background import run_in_daemon_thread
from blurfit.service.documents import Side, Sides
from blurfit.service.operations import answer, get
from blurfit.service.reading import fingerprint_in
from blurfit.service.remote import RemoteDatabase
from blurfit.store.commitment import most_left_out
from blurfit.store.store import Store

Counts = Sequence[int | None]
_PATIENCE = 3.0
_MOST_BYTES = 2**16  # of a state


def counts_at(agreement: Agreement, patience: float = _PATIENCE) -> Counts:
    """How many shares each of the two says that it holds; None where one does not say."""
    return [_count_at(agreement, one.url, patience) for one in agreement.databases]


def refuse_if_uneven(agreement: Agreement, counts: Counts) -> None:
    """Refuse to close where so many are at one database alone that nothing could be published."""
    known = [one for one in counts if one is not None]
    if len(known) < len(counts):
        return
    common = min(known)  # at most: those at both
    for database, role, held in zip(agreement.databases, KIND_OF, known, strict=True):
        missing = held - common
        if missing > (most := most_left_out(agreement, role, held)):
            raise ConflictError(
                f"Expected at most {most:,} of the {held:,} shares at {database.name} to be "
                f"missing at the other database, and {missing:,} are: nothing could be published "
                "once this is closed. Let those contributors send again while both collect, or "
                "close with --anyway."
            )


@dataclass(frozen=True, eq=False)
class ComparingSides:
    """An endpoint for whoever may close."""

    store: Store

    @get(
        f"{ONE_COLLECTION}/sides",
        answer(Sides, "Both, and why nothing could be published if one closed now."),
        problems.INFEASIBLE,
    )
    @steward("open")
    async def compare(self, request: Request) -> Response:
        """How many shares each of two databases has, before one is closed."""
        collection = await run_in_threadpool(self.store.collection, fingerprint_in(request))
        agreement = collection.agreement
        if collection.role == "whole":
            raise InfeasibleError("Expected a collection that two databases share.")
        counts = await run_in_daemon_thread(lambda: counts_at(agreement))
        warning = None
        try:
            refuse_if_uneven(agreement, counts)
        except ConflictError as error:
            warning = str(error).removesuffix(", or close with --anyway.") + "."
        names = [one.name for one in agreement.databases]
        return as_json(Sides([Side(*one) for one in zip(names, counts, strict=True)], warning))


def _count_at(agreement: Agreement, url: str, patience: float) -> int | None:
    try:
        with RemoteDatabase(url, patience=patience, most_bytes=_MOST_BYTES) as database:
            return int(database.status(agreement)["count"])
    except (BlurfitError, KeyError, TypeError, ValueError):  # unreachable, or not a blurfit service
        return None
