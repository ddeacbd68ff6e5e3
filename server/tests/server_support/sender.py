"""A process that contributes until its course has ended or it is told to stop, and writes down
what it sent.

`main` takes DOCUMENT, URL (nothing where the document names two databases), FOLDER, NAME. Each
line of FOLDER/NAME.sent is a wave, an identifier and the blurred numbers, which no database of two
may see, and is written before anything leaves. FOLDER/NAME.done has those that were acknowledged,
FOLDER/NAME.late those that came after their wave.
"""

from pathlib import Path

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import load_agreed
from blurfit.contributor.blur import blur, proved_with, shared_with
from blurfit.contributor.client import Client
from blurfit.errors import ClosedError, WaveClosedError
from support.plans import people, rows


def main(document: str, url: str, folder: str, name: str) -> None:
    agreed, generator = load_agreed(document), np.random.default_rng(int(name))
    at_once = [1, 1, 1, 2, 50] if isinstance(agreed, Agreement) else [1, 1, 2]
    everyone = people(600, int(name))

    def write(kind: str, wave: Agreement, sent) -> None:
        with Path(folder, f"{name}.{kind}").open("a") as file:
            for one in sent:
                file.write(f"{wave.fingerprint} {one.identifier} {one.numbers.tobytes().hex()}\n")

    with Client.of(agreed, url or None, patience=600) as client:
        while not Path(folder, "stop").exists():
            try:
                wave = client.current(agreed)
            except WaveClosedError:
                raise
            except ClosedError:  # the plan has ended
                return
            count, start = int(generator.choice(at_once)), int(generator.integers(500))
            blurred = blur(wave, wave.exact(rows(everyone, start, start + count)))
            write("sent", wave, blurred)
            message = next(iter(blurred)) if count == 1 else blurred
            if wave.proofs:
                message = proved_with(wave, blurred, [generator.bytes(128) for _ in range(count)])
            elif wave.databases:
                seeds = generator.integers(0, 2**64, (count, 4), dtype=np.uint64)
                message = shared_with(wave, blurred, seeds)
            try:
                client.submit(message)
                if generator.random() < 0.2:
                    client.submit(message)  # somebody who is not sure
            except WaveClosedError:
                write("late", wave, blurred)
            else:
                write("done", wave, blurred)


def read(folder: Path, kind: str) -> dict[tuple[str, bytes], np.ndarray]:
    """What all senders wrote down, by wave and identifier."""
    lines = [line for path in folder.glob(f"*.{kind}") for line in path.read_text().splitlines()]
    found = {}
    for wave, name, numbers in (line.split() for line in lines):
        found[wave, bytes.fromhex(name)] = np.frombuffer(bytes.fromhex(numbers))
    assert len(found) == len(lines)
    return found
