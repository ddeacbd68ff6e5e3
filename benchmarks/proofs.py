"""What proofs cost: proving, verifying and bytes for each contributor, on one core.

`python benchmarks/proofs.py`: 119 numbers a submission. Seconds are those of the processor, so that
others on the machine matter less; ratios are against blurring and sharing without proofs, and
against one AES-256 mask, in the same run.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import click
import numpy as np
from measure import best_times, table

from blurfit import Agreement, Numeric, Schema
from blurfit.contributor.blur import share
from blurfit.messages.submissions import sum_of_masks
from blurfit.proofs import field
from blurfit.proofs.prio3 import HELPER, LEADER

SCHEMA = Schema(
    features=[Numeric(f"x{place}", 0, 1) for place in range(13)], target=Numeric("y", 0, 1)
)
DATABASES = [("First", "https://first.example"), ("Second", "https://second.example")]


def timed(work: Callable[[], object]) -> float:
    """Processor seconds of the best round."""
    return best_times(work, processor=True)[0]


@click.command()
@click.option("--quorum", default=5000)
@click.option("--rows", default=64, help="Submissions that are verified together.")
def main(quorum: int, rows: int) -> None:
    """Prove and verify, and print it."""
    terms: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "quorum": quorum, "databases": DATABASES}
    plain, proved = (Agreement.propose(SCHEMA, **terms, proofs=one) for one in (False, True))
    generator = np.random.default_rng(1)
    names = [*(one.name for one in SCHEMA.features), "y"]
    one = dict.fromkeys(names, 0.3)
    many = {name: generator.uniform(0, 1, rows) for name in names}

    without, proving = (timed(partial(share, each, one)) for each in (plain, proved))
    without_each, proving_each = (
        timed(partial(share, each, many)) / rows for each in (plain, proved)
    )

    shared, prio3 = share(proved, many), proved.proving.prio3
    key, nonces = b"k" * 32, shared.first.identifiers
    first = timed(
        lambda: prio3.prepare(LEADER, prio3.leader_halves(shared.first.words), nonces, key)
    )
    second = timed(
        lambda: prio3.prepare(HELPER, prio3.helper_halves(shared.second.words), nonces, key)
    )
    leader = prio3.prepare(LEADER, prio3.leader_halves(shared.first.words), nonces, key)
    helper = prio3.prepare(HELPER, prio3.helper_halves(shared.second.words), nonces, key)
    deciding = timed(lambda: prio3.decide(helper, leader.words()))
    valid, answers = prio3.decide(helper, leader.words())
    assert valid.all()
    assert prio3.confirm(leader, answers).all()
    inputs, circuit = prio3.leader_halves(shared.first.words).inputs, proved.proving.circuit
    adding = timed(lambda: field.total(inputs, axis=0)) / rows
    expanding = timed(lambda: prio3.helper_inputs(shared.second.words)) / rows
    seeds = share(plain, many).second.words
    masks = timed(lambda: sum_of_masks(seeds, plain.width)) / rows

    sizes = [
        len(part) for part in (share(proved, one).first.to_bytes(), leader.words()[:1].tobytes())
    ]
    told: list[tuple[str, ...]] = []

    def show(*row: str) -> None:
        told.append(row)

    show("prove one record", f"{1e3 * proving:.1f} ms", "share it", f"{proving / without:.1f}")
    show(
        f"prove {rows} records, each",
        f"{1e3 * proving_each:.2f} ms",
        "share it",
        f"{proving_each / without_each:.1f}",
    )
    for name, seconds in (("first", first), ("second", second + deciding)):
        each = seconds / rows
        show(
            f"{name} database verifies",
            f"{1 / each:,.0f} a second",
            "a mask",
            f"{each / masks:.1f}",
        )
    for name, each in (("first", adding), ("second", adding + expanding)):
        show(
            f"{name} database adds up", f"{1 / each:,.0f} a second", "a mask", f"{each / masks:.1f}"
        )
    show(
        "upload to the first",
        f"{sizes[0]:,} bytes",
        "without proofs",
        f"{sizes[0] / plain.layout.size:.1f}",
    )
    exchanged = 16 + sizes[1] + 32
    show("between the databases", f"{exchanged:,} bytes", "2 kB", f"{exchanged / 2000:.2f}")
    show("digits of a number, to the base 4", str(circuit.digits), "", "")
    show("a lie is believed", f"2^{proved.proving.soundness:.1f}", "", "")
    noises = [each.parts[0].deviations[0] for each in (proved, plain)]
    show("noise", f"{noises[0]:.4g}", "without proofs", f"{noises[0] / noises[1]:.4f}")
    table("Proofs", ("what", "seen", "against", "ratio"), told)


if __name__ == "__main__":
    main()
