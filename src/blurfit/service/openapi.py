"""The service described for programs (OpenAPI 3.1): every path, every answer, every refusal.

Endpoints describe themselves (`blurfit.service.operations`); what is added here is what goes past
the router, and the pages. A test sends thousands of requests that it makes from this document, and
compares the answers with it.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from blurfit.protocol import problems
from blurfit.protocol.wire import (
    BINARY,
    INVITATION,
    JSON,
    MOST_SUBMISSIONS,
    ONE_COLLECTION,
    SUBMISSIONS,
    Acknowledgement,
)
from blurfit.service import documents
from blurfit.service.administration import Administration
from blurfit.service.documents import SubmissionDocument
from blurfit.service.following import Following
from blurfit.service.halves import ComparingHalves
from blurfit.service.invitations import Invitations
from blurfit.service.kept import Kept
from blurfit.service.operations import (
    BYTES,
    OBJECT,
    SAME,
    TEXT,
    Operation,
    answer,
    array,
    content,
    declared_by,
    get,
    header,
    operation,
    paths,
    reference,
)
from blurfit.service.peering import Peering
from blurfit.service.planning import Planning
from blurfit.service.reading import Reading
from blurfit.service.sides import ComparingSides
from blurfit.service.withdrawals import Withdrawals
from blurfit.version import __version__


class Description:
    """An endpoint for programs that want to know what there is."""

    def __init__(self) -> None:
        self._document = described()

    @get("/openapi.json", answer(OBJECT, "This document.") | SAME)
    async def openapi(self, request: Request) -> Response:
        """This document."""
        return self._document.answer(request)


_PARTS = (
    *(Administration, Reading, Invitations, Withdrawals, ComparingSides, ComparingHalves),
    *(Planning, Peering, Following, Description),
)


@cache
def described() -> Kept:
    """The document as it is sent: its code says all of it, so it is made once."""
    return Kept.made(msgspec.json.encode(document()), JSON)


def document() -> dict[str, Any]:
    """The whole document."""
    declared = [one for part in _PARTS for _, one in declared_by(part)]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "blurfit",
            "version": __version__,
            "description": "Collect blurred records, lose nothing, publish one private model.",
        },
        "paths": paths([*declared, _submissions(), *_pages()]),
        "components": {
            "schemas": documents.schemas(),
            "securitySchemes": {
                who: {"type": "http", "scheme": "bearer"} for who in ("administrator", "peer")
            },
        },
    }


def _submissions() -> Operation:
    one_or_many = {"oneOf": [reference(SubmissionDocument), array(SubmissionDocument)]}
    each = "An invitation for each submission, separated by commas."
    return operation(
        *("post", f"{ONE_COLLECTION}{SUBMISSIONS}"),
        f"Send one submission or up to {MOST_SUBMISSIONS:,}; answered once they are on disk",
        answer(Acknowledgement, "They are on disk, each counted once."),
        *(problems.NOT_INVITED, problems.OTHER_GROUP, problems.CLOSED),
        *(problems.WAVE_CLOSED, problems.DATE_CLOSED, problems.PAUSED),
        *(problems.CROWDED, problems.CONFLICT, problems.INFEASIBLE),
        body={JSON: one_or_many, BINARY: BYTES},
        parameters=[header(INVITATION, each)],
    )


def _pages() -> Iterator[Operation]:
    """Pages for people; what they show they ask for at the other addresses."""
    page = content("A page.", "text/html") | SAME
    lost = {"404": content("A page that says that this is not a fingerprint.", "text/html")["200"]}
    file = content("A file.", "text/css", "text/javascript", "image/svg+xml") | SAME
    name = {"name": "name", "in": "path", "required": True, "schema": TEXT}
    yield operation("get", "/", "All collections, as a page", page)
    yield operation("get", "/c/{fingerprint}", "Contribute, as a page", page | lost)
    yield operation("get", "/m/{fingerprint}", "A model, as a page", page | lost)
    yield operation("get", "/admin", "Administration, as a page", page)
    yield operation(
        *("get", "/pages/{name}", "Parts of the pages", file, problems.NOT_FOUND),
        parameters=[name],
    )
