"""Documents are made on one machine and read on another: none is refused, and models are the same.

Each process below computes with other instructions: another kernel of the linear algebra, NumPy
without its widest vectors. All of them make plans, agreements, releases and models, and each reads
what all the others have made: verifies, follows to the next wave, and learns.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.errors import BlurfitError
from blurfit.learning.sums import Totals
from blurfit.model.course import follows, learn_plan, next_agreement
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments, Release, alike, learn, moments_of
from blurfit.schema.schema import Binary, Categorical, Numeric, Schema

NARROW = "AVX512_SPR AVX512_ICL X86_V4 X86_V3"  # NumPy's names of its wider instructions
KERNELS = {
    "this machine's own": {},
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "Nehalem": {"OPENBLAS_CORETYPE": "Nehalem"},
    "narrow": {"OPENBLAS_CORETYPE": "Sandybridge", "NPY_DISABLE_CPU_FEATURES": NARROW},
}
PLANS, ALONE = 15, 8  # that each of them makes; a plan has three waves
DATABASES = [("Office", "https://first.example"), ("University", "https://second.example")]


def schema(generator: np.random.Generator, target: Any) -> Schema:
    features = [Numeric(f"x{place}", 0, 10) for place in range(generator.integers(6, 13))]
    levels = ["north", "south", "west", "east"][: generator.integers(2, 5)]
    return Schema([*features, Binary("married"), Categorical("region", levels)], target)


def released(agreement: Agreement, generator: np.random.Generator) -> PublishedMoments:
    """Sums such as noise alone would give, around those of a few records: whole steps."""
    (part,) = agreement.parts
    count = agreement.quorum + int(generator.integers(0, 9))
    sums = 0.2 * count * part.bound / np.sqrt(part.counts) * (part.counts < 2)
    sums = sums + generator.normal(size=len(sums)) * part.deviations * count**0.5
    whole = np.round(sums / part.step) * part.step
    return moments_of(agreement, Totals(count, whole, agreement.fingerprint))


def made(seed: int) -> Iterator[dict[str, Any]]:
    """Plans with all that comes of them, and agreements of one wave with their releases."""
    generator = np.random.default_rng(seed)
    for place in range(PLANS):
        task = ("number", "label", "count")[place % 3]
        target = Binary("y") if task == "label" else Numeric("y", 0, 12)
        promise = {
            "epsilon": float(np.exp(generator.uniform(-1, 1.5))),
            "delta": float(10.0 ** -generator.uniform(4, 9)),
            "quorum": int(generator.integers(2000, 40_000)),
            "neighbours": ("replace", "zero-out")[place % 2],
            "databases": DATABASES if place % 5 == 0 else (),
        }
        if place % 4 == 3:
            promise |= {"local_epsilon": 4.0, "local_delta": 1e-6}
        chosen = schema(generator, target)
        plan = Plan.propose(chosen, waves=3, counts=task == "count", **promise)
        releases: list[PublishedMoments] = []
        for _ in range(len(plan)):
            releases.append(released(next_agreement(plan, releases), generator))
        yield {
            "plan": plan.to_json(),
            "releases": [one.to_json() for one in releases],
            "model": learn_plan(plan, releases).to_json(),
        }
    for place in range(ALONE):
        promise = {"epsilon": 1.0 + place, "delta": 1e-6, "quorum": 500 + 700 * place}
        kinds: tuple[dict[str, Any], ...] = (
            {},
            {"databases": DATABASES, "proofs": True},
        )
        target = (Numeric("y", 0, 3), Binary("y"))[place // 4 % 2]
        agreement = Agreement.propose(schema(generator, target), **promise, **kinds[place % 2])
        document = {"agreement": agreement.to_json()}
        found = released(agreement, generator)
        again = Totals(found.count, found.sums, agreement.fingerprint)
        document |= {"moments": found.to_json(), "model": learn(agreement, again).to_json()}
        yield document


def refusal(document: dict[str, Any]) -> str | None:
    """Why somebody else's document is not taken; None if all is well."""
    try:
        if "plan" not in document:
            agreement = Agreement.from_json(document["agreement"])
            agreement.verify()
            if "moments" in document:
                found = Release(document["model"], document["moments"])
                count = PublishedMoments.from_json(document["moments"]).count
                return None if found.follows(agreement, count) else "another model"
            return None
        plan = Plan.from_json(document["plan"])
        releases = [PublishedMoments.from_json(one) for one in document["releases"]]
        for place, one in enumerate(releases):
            announced = Agreement.from_json(one.agreement.to_json())
            follows(plan, releases[:place], announced)
        model = PublishedModel.from_json(document["model"])
        return None if alike(model, learn_plan(plan, releases)) else "another model"
    except BlurfitError as error:
        return str(error)


def main() -> None:
    """One machine: make documents for all to read, and then read everyone else's."""
    folder, name, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    (folder / name).write_text(json.dumps(list(made(seed))))
    print("made", flush=True)
    sys.stdin.readline()  # until all are made
    counted, refused = 0, []
    for other in sorted(folder.iterdir()):
        if other.name != name:
            for document in json.loads(other.read_text()):
                counted += 1
                if reason := refusal(document):
                    refused.append(f"{other.name} to {name}: {reason}")
    print(json.dumps({"read": counted, "refused": refused}), flush=True)


def test_documents_of_every_machine_are_read_by_every_other(tmp_path: Path) -> None:
    """Numbers of models are compared to one part in 10⁶: see `blurfit.model.release.alike`."""
    inherited = {name: value for name, value in os.environ.items() if "OPENBLAS_CORE" not in name}
    inherited.pop("NPY_DISABLE_CPU_FEATURES", None)
    machines = [
        subprocess.Popen(
            [sys.executable, __file__, str(tmp_path), name, str(seed)],
            env=inherited | change | {"OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed, (name, change) in enumerate(KERNELS.items())
    ]
    assert [one.stdout.readline() for one in machines] == ["made\n"] * len(machines)
    documents = [json.loads(one.read_text()) for one in tmp_path.iterdir()]
    texts = sum(
        3 + 2 * len(one["releases"]) if "plan" in one else len(one)
        for some in documents
        for one in some
    )
    assert texts >= 200
    found = [json.loads(one.communicate("go\n")[0]) for one in machines]
    assert [one.returncode for one in machines] == [0] * len(machines)
    assert sum(one["read"] for one in found) == 3 * sum(map(len, documents))
    assert [one for machine in found for one in machine["refused"]] == []


if __name__ == "__main__":
    main()
