"""A process that contributes to a plan until it has ended, and writes down what was acknowledged.

`main` takes URL, PLAN, FOLDER, NAME. Every record is blurred for the wave that collects, and kept
as bytes before it is sent; whatever has no answer is sent again as it is. Lines of FOLDER/NAME.sent
and FOLDER/NAME.done are a wave's fingerprint and a submission's identifier; FOLDER/NAME.late has
those that came too late.
"""

from pathlib import Path

import numpy as np

from blurfit.agreement.plan import Plan
from blurfit.contributor.blur import perturb
from blurfit.contributor.client import Client
from blurfit.errors import ClosedError, WaveClosedError
from support.plans import people


def main(url: str, plan_file: str, folder: str, name: str) -> None:
    plan, generator = Plan.load(plan_file), np.random.default_rng(int(name))
    everyone = people(500, int(name))

    def write(kind: str, one) -> None:
        with Path(folder, f"{name}.{kind}").open("a") as file:
            file.write(f"{one.fingerprint} {one.identifier}\n")

    with Client(url, patience=600) as client:
        for place in range(500):
            try:
                wave = client.current(plan)
            except WaveClosedError:
                raise
            except ClosedError:  # the plan has ended
                return
            one = perturb(wave, {key: column[place] for key, column in everyone.items()})
            write("sent", one)
            try:
                client.submit(one)
                if generator.random() < 0.3:
                    client.submit(one)  # somebody who is not sure
            except WaveClosedError:
                write("late", one)
            else:
                write("done", one)


def read(folder: Path, kind: str) -> set[tuple[str, str]]:
    """What all senders wrote down: waves and identifiers."""
    lines = [line for path in folder.glob(f"*.{kind}") for line in path.read_text().splitlines()]
    found = {tuple(line.split()) for line in lines}
    assert len(found) == len(lines)
    return found  # type: ignore[return-value]
