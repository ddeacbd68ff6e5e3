"""A process that contributes until it is told to stop, and writes down what was acknowledged.

`main` takes URL, AGREEMENT, FOLDER, NAME. What it is about to send goes to
FOLDER/NAME.sent, and to FOLDER/NAME.done once the service has acknowledged it.
"""

from pathlib import Path

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.contributor.blur import perturb_table
from blurfit.contributor.client import Client
from blurfit.messages.submissions import Submissions


def main(url: str, agreement_file: str, folder: str, name: str) -> None:
    agreement = Agreement.load(agreement_file)
    generator = np.random.default_rng(int(name))
    stop = Path(folder, "stop")
    with (
        Client(url, patience=600) as client,
        Path(folder, f"{name}.sent").open("ab") as sent,
        Path(folder, f"{name}.done").open("ab") as done,
    ):
        while not stop.exists():
            count = int(generator.choice([1, 1, 1, 2, 50]))
            people = {c: generator.uniform(0, 100, count) for c in ("age", "income")}
            batch = perturb_table(agreement, people)
            raw = b"".join(one.to_bytes() for one in batch)
            sent.write(raw)
            sent.flush()
            message = next(iter(batch)) if count == 1 else batch
            client.submit(message)
            if generator.random() < 0.1:
                client.submit(message)  # somebody who is not sure
            done.write(raw)
            done.flush()


def read(path: Path, agreement: Agreement) -> Submissions:
    """What a sender wrote down."""
    layout = agreement.layout
    rows = np.frombuffer(path.read_bytes(), dtype=np.uint8).reshape(-1, layout.size)
    return Submissions(layout.identifiers(rows), agreement.fingerprint, layout.numbers(rows))
