"""Withdraw what was sent, for whoever names its secret: `blurfit.store.withdrawal`.

The blocks of a collection are searched for it, so a withdrawal costs as much as a hundred requests
of the same address, or as one for each block where there are more, whether it is of one submission
or of ten thousand; that is paid before its body is read. One is looked after at a time, beside
whoever writes, and others write between any few of its blocks: so however many withdraw, and
wherever their rows are, nobody else waits for long. Pages of the other of two databases may ask as
well, since a receipt is for both.
"""

import asyncio
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from blurfit.arrays import ByteArray
from blurfit.messages.signing import identifiers_of
from blurfit.protocol import problems
from blurfit.protocol.wire import MOST_SUBMISSIONS, ONE_COLLECTION, WITHDRAWALS, Withdrawal
from blurfit.service.answers import as_json
from blurfit.service.background import run_in_daemon_thread
from blurfit.service.documents import Secrets
from blurfit.service.intake import Collector
from blurfit.service.limits import document_in, held_by
from blurfit.service.operations import answer, post
from blurfit.service.reading import fingerprint_in
from blurfit.service.signatory import Signatory
from blurfit.store import blocks
from blurfit.store.collections import Collection
from blurfit.store.store import Store
from blurfit.store.withdrawal import Withdrawn, withdraw

_REQUESTS = 100  # that one withdrawal costs as much as, at least
_EXPECTED = (
    f'{{"secrets": ["…"]}}, 1 to {MOST_SUBMISSIONS} of them, each in 64 hexadecimal digits, as a '
    "receipt gives them"
)


@dataclass(frozen=True, eq=False)
class Withdrawals:
    """An endpoint for people with a receipt."""

    store: Store
    collector: Collector
    signing: Signatory
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    @post(
        f"{ONE_COLLECTION}{WITHDRAWALS}",
        answer(Withdrawal, "They are not in the sums; asked again, the same."),
        *(problems.CLOSED, problems.WAVE_CLOSED),
        body=Secrets,
    )
    async def withdraw(self, request: Request) -> Response:
        """Withdraw submissions by their secrets, until the collection closes."""
        held = held_by(request)
        held.pay(_REQUESTS)  # before anything of it is read
        collection = await run_in_threadpool(self.store.collection, fingerprint_in(request))
        held.owe(await run_in_threadpool(self.store.read, blocks.number, collection))
        secrets = (await document_in(request, Secrets, _EXPECTED)).secrets
        write = self.collector.in_turn()

        def work() -> Withdrawal:
            names = identifiers_of([bytes.fromhex(one) for one in dict.fromkeys(secrets)])
            return self._answer(collection, names, withdraw(self.store, collection, names, write))

        async with self._turn:
            done = await run_in_daemon_thread(work)
        return as_json(done)

    def _answer(self, collection: Collection, names: ByteArray, done: Withdrawn) -> Withdrawal:
        others = {*done.unknown, *done.staying}
        told = b"".join(one for one in map(bytes, names) if one not in others)
        signature = self.signing.of_submissions("withdrawal", collection, told) if told else None
        unknown, staying = ([one.hex() for one in some] for some in (done.unknown, done.staying))
        return Withdrawal(done.withdrawn, done.new, unknown, signature, staying)
