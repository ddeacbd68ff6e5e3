"""A process that shares records with two databases until it is told to stop.

`main` takes AGREEMENT, FOLDER, NAME. What it has blurred, which no database may see,
goes to FOLDER/NAME.sent before it is shared, and to FOLDER/NAME.done once both have acknowledged.
"""

from pathlib import Path

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.contributor.blur import blur, in_steps, proved_with, shared_with
from blurfit.contributor.client import Client

WIDTH = 16 + 5 * 8


def main(agreement_file: str, folder: str, name: str) -> None:
    agreement = Agreement.load(agreement_file)
    generator = np.random.default_rng(int(name))
    stop = Path(folder, "stop")
    with (
        Client.of(agreement, patience=600) as client,
        Path(folder, f"{name}.sent").open("ab") as sent,
        Path(folder, f"{name}.done").open("ab") as done,
    ):
        while not stop.exists():
            count = int(generator.choice([1, 1, 2, 50]))
            people = {c: generator.uniform(0, 100, count) for c in ("age", "income")}
            blurred = blur(agreement, agreement.exact(people))
            steps = in_steps(agreement, blurred)
            raw = np.hstack([blurred.identifiers, steps.view(np.uint8)]).tobytes()
            sent.write(raw)
            sent.flush()
            if agreement.proofs:
                shared = proved_with(agreement, blurred, [generator.bytes(128) for _ in steps])
            else:
                seeds = generator.integers(0, 2**64, (count, 4), dtype=np.uint64)
                shared = shared_with(agreement, blurred, seeds)
            client.submit(shared)
            done.write(raw)
            done.flush()


def read(path: Path) -> dict[bytes, np.ndarray]:
    """What a sender wrote down, by identifier."""
    rows = np.frombuffer(path.read_bytes(), dtype=np.uint8).reshape(-1, WIDTH)
    return {row[:16].tobytes(): row[16:].copy().view(np.int64) for row in rows}
