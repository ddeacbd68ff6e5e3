"""Answers that are always the same bytes: made once, and kept as they are sent.

Agreements, plans, models, moments, statements and pages never change; a model that is still to be
signed changes when a signature comes. Each is kept plain and compressed, with the tag by which
browsers ask whether it is still what they have (RFC 9110, `If-None-Match`). What is long is made in
turn (`blurfit.service.detached`), once for all who wait for it; what is kept goes out without being
read, or copied. `Shelf` keeps so many bytes, and forgets what was not asked for longest.
"""

import gzip
import hashlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit.service.detached import LONG, Turns, Underway

FOREVER = {"cache-control": "public, max-age=31536000, immutable"}
ASKED_AFTER = {"cache-control": "no-cache"}  # kept by browsers, but asked after
SHELF_BYTES = 2**25
_LEVEL = 4  # of compression: numbers get as small as at 9, in a tenth of the time


@dataclass(frozen=True)
class Kept:
    """An answer as it is sent; `version` is what must be asked about before it is sent again, and
    None for what never changes.
    """

    plain: bytes = field(repr=False)
    compressed: bytes = field(repr=False)
    tag: str
    media_type: str
    headers: Mapping[str, str]
    version: Hashable = None

    @classmethod
    def made(
        cls,
        plain: str | bytes,
        media_type: str,
        headers: Mapping[str, str] = ASKED_AFTER,
        version: Hashable = None,
    ) -> "Kept":
        """The answer with this content."""
        plain = plain.encode() if isinstance(plain, str) else plain
        compressed = gzip.compress(plain, _LEVEL, mtime=0)
        tag = f'"{hashlib.sha256(plain).hexdigest()[:32]}"'
        return cls(plain, compressed, tag, media_type, headers, version)

    def answer(
        self, request: Request, status: int = 200, more: Mapping[str, str] | None = None
    ) -> Response:
        """What to send to somebody: nothing but the tag, if that is what they have."""
        headers = {
            "content-type": self.media_type,
            "etag": self.tag,
            "vary": "accept-encoding",
            **self.headers,
            **(more or {}),
        }
        if status == 200 and self.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(self.compressed, status, headers | {"content-encoding": "gzip"})
        return Response(self.plain, status, headers)


class Shelf:
    """Answers by name, up to so many bytes; the newest stays however long it is."""

    def __init__(self, turns: Turns, most: int = SHELF_BYTES) -> None:
        self._turns, self._most = turns, most
        self._kept: dict[Hashable, Kept] = {}  # what was not asked for longest comes first
        self._making: Underway[Kept] = Underway()

    async def get(
        self,
        name: Hashable,
        find: Callable[[], str],
        make: Callable[[str], Kept],
        version: Callable[[], Hashable] = lambda: None,
    ) -> Kept:
        """What is kept under a name, if it is of the version that there is now; else made of what
        `find` finds.
        """
        found = self._kept.get(name)
        if found is not None and found.version is not None:
            found = found if await run_in_threadpool(version) == found.version else None
        if found is None:
            found = await self._making.join(name, lambda: self._made(find, make))
        self._keep(name, found)
        return found

    async def _made(self, find: Callable[[], str], make: Callable[[str], Kept]) -> Kept:
        text = await run_in_threadpool(find)
        if len(text) > LONG:
            return await self._turns.take(make, text)
        return await run_in_threadpool(make, text)

    def _keep(self, name: Hashable, found: Kept) -> None:
        self._kept.pop(name, None)
        self._kept[name] = found
        size = sum(len(one.plain) + len(one.compressed) for one in self._kept.values())
        for other in list(self._kept):
            if size <= self._most or other == name:
                return
            gone = self._kept.pop(other)
            size -= len(gone.plain) + len(gone.compressed)
