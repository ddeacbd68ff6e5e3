"""People who send one submission after another, each from an address of their own.

They run in a process of their own. Whoever gets no answer, or one that says later, sends the same
again on a new connection, as `blurfit.contributor.client` does. What was acknowledged is written
down, with the attack during which it was.
"""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np

from blurfit import Agreement, perturb_table

PEOPLE = 32  # who send at the same time
_AT_ONCE = 2**12  # submissions that are made together
_SECONDS_TO_WAIT = 15.0  # for an answer
_SECONDS_BEFORE_TRYING_AGAIN = 0.25


@dataclass(eq=False)
class Tally:
    """What the processes of a run tell each other."""

    attack: "Synchronized[int]"  # which one it is now
    acknowledged: "Synchronized[int]"
    failures: "Synchronized[int]"  # answers of 500 and above
    unanswered: "Synchronized[int]"
    stop: Event


@dataclass(eq=False)
class Crowd:
    """Some people, and what they were told."""

    port: int
    agreement: Agreement
    tally: Tally
    kept: list[tuple[int, bytes]] = field(default_factory=list)  # attack and identifier

    async def send_all(self) -> None:
        """Until they are told to stop."""
        bodies = self._bodies()
        await asyncio.gather(*(self._send(f"127.2.0.{n + 1}", bodies) for n in range(PEOPLE)))

    def _bodies(self) -> Iterator[bytes]:
        generator, layout = np.random.default_rng(), self.agreement.layout
        while True:
            people = {c: generator.uniform(0, 100, _AT_ONCE) for c in ("age", "income")}
            for row in perturb_table(self.agreement, people).rows(layout):
                yield row.tobytes()

    async def _send(self, address: str, bodies: Iterator[bytes]) -> None:
        tally, writer = self.tally, None
        size = self.agreement.layout.size
        head = (
            f"POST /collections/{self.agreement.fingerprint}/submissions HTTP/1.1\r\nhost: x\r\n"
            f"content-type: application/vnd.blurfit.submission.v2\r\ncontent-length: {size}\r\n\r\n"
        ).encode()
        body = next(bodies)
        while not tally.stop.is_set():
            try:
                async with asyncio.timeout(_SECONDS_TO_WAIT):
                    if writer is None:
                        reader, writer = await asyncio.open_connection(
                            "127.0.0.1", self.port, local_addr=(address, 0)
                        )
                    writer.write(head + body)
                    status, accepted = await _answer(reader)
            except (OSError, TimeoutError, asyncio.IncompleteReadError):
                status, accepted = 0, 0
                tally.unanswered.value += 1
            if accepted == 1:
                self.kept.append((tally.attack.value, identifier_of(self.agreement, body)))
                tally.acknowledged.value += 1
                body = next(bodies)
                continue
            tally.failures.value += status >= 500
            if writer is not None:
                writer.close()
                writer = None
            await asyncio.sleep(_SECONDS_BEFORE_TRYING_AGAIN)


def identifier_of(agreement: Agreement, body: bytes) -> bytes:
    """Under which a submission is counted once."""
    rows = np.frombuffer(body, dtype=np.uint8).reshape(1, -1)
    return bytes(agreement.layout.identifiers(rows)[0])


async def _answer(reader: asyncio.StreamReader) -> tuple[int, int]:
    """The status of an answer, and how many submissions it says were accepted."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length: ")[2].split(b"\r\n")[0])
    body = await reader.readexactly(length)
    status = int(head.split()[1])
    return status, json.loads(body)["accepted"] if status == 200 else 0


def main(port: int, agreement: str, out: str, tally: Tally) -> None:
    """Send until told to stop, and then write down what was acknowledged."""
    crowd = Crowd(port, Agreement.load(agreement), tally)
    asyncio.run(crowd.send_all())
    with Path(out).open("ab") as file:
        file.writelines(attack.to_bytes(4, "little") + name for attack, name in crowd.kept)


def acknowledged(path: Path) -> list[tuple[int, bytes]]:
    """What was written down."""
    data = path.read_bytes()
    cuts = range(0, len(data), 20)
    return [(int.from_bytes(data[at : at + 4], "little"), data[at + 4 : at + 20]) for at in cuts]
