"""Read what a request brings, within bounds of size, time and kind."""

import asyncio

from starlette.requests import Request
from starlette.types import Receive

from blurfit.protocol import problems
from blurfit.protocol.problems import RequestError
from blurfit.protocol.wire import media_type

SECONDS_FOR_A_BODY = 30.0
SMALL = 2**20  # bytes: enough for whatever is no submission


async def read_body(headers: dict[bytes, bytes], receive: Receive, limit: int) -> bytes:
    """The whole body, unless it is too large or too slow."""
    stated = headers.get(b"content-length", b"0")
    if not stated.isdigit() or int(stated) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size, more = 0, True
    try:
        async with asyncio.timeout(SECONDS_FOR_A_BODY):
            while more:
                message = await receive()
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limit:
                    raise _too_large(limit)
                more = message.get("more_body", False)
    except TimeoutError:
        raise RequestError(
            problems.TOO_SLOW,
            f"Expected the whole body within {SECONDS_FOR_A_BODY:g} s; send smaller ones.",
        ) from None
    return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)


async def body_of(request: Request, kind: str, limit: int = SMALL) -> bytes:
    """The body of a request, which must be of this media type."""
    given = media_type(request.headers.get("content-type", ""))
    if given != kind:
        raise RequestError(problems.WRONG_TYPE, f"Expected content-type {given!r} to be {kind}.")
    return await read_body(dict(request.scope["headers"]), request.receive, limit)


def _too_large(limit: int) -> RequestError:
    return RequestError(
        problems.TOO_LARGE, f"Expected a body of at most {limit} bytes; send less at once."
    )
