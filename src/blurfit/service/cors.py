"""Which pages of another origin may send here: those of an agreement's two databases, and no other.

The page that a contributor sees comes from one database and sends a share to the other as well. A
browser lets it do so only if the other service says that it may (CORS): for submissions alone, with
the two headers that they need, and for the two origins that the agreement names. Nothing of this
concerns collections of whole submissions.
"""

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Send

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.protocol.wire import INVITATION
from blurfit.service.answers import adding

_PREFLIGHT = (
    (b"access-control-allow-methods", b"POST"),
    (b"access-control-allow-headers", f"content-type, {INVITATION}".encode()),
    (b"access-control-max-age", b"600"),
    (b"content-length", b"0"),
)


def origins_of(agreement: Agreement | Plan) -> tuple[str, ...]:
    """The origins whose pages may send shares."""
    return tuple(one.url for one in agreement.databases)


def origin_in(headers: list[tuple[bytes, bytes]]) -> str | None:
    """The origin of the page that asks; programs have none."""
    return next((value.decode("latin-1") for name, value in headers if name == b"origin"), None)


def admitting(send: Send, origin: str) -> Send:
    """Let a page of this origin read the answer."""
    allowed = (b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"origin")
    return adding(send, allowed)


def crossing(request: Request, agreement: Agreement, response: Response) -> Response:
    """Let a page of either database read an answer that the router gives."""
    origin = request.headers.get("origin")
    if origin in origins_of(agreement):
        response.headers["access-control-allow-origin"] = origin
    response.headers["vary"] = "origin"
    return response


def preflight(request: Request, agreement: Agreement, method: str, header: str) -> Response:
    """Tell a browser that a page of either database may ask something, with one header."""
    headers = {
        "access-control-allow-methods": method,
        "access-control-allow-headers": header,
        "access-control-max-age": "600",
    }
    return crossing(request, agreement, Response(status_code=204, headers=headers))


async def answer_preflight(send: Send) -> None:
    """Tell a browser what a page may send."""
    await send({"type": "http.response.start", "status": 204, "headers": [*_PREFLIGHT]})
    await send({"type": "http.response.body", "body": b""})
