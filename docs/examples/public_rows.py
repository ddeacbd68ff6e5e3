"""Census rows as public features: who earns more than 37,000, from labels that nobody hands over?

    BLURFIT_DATA=folder python docs/examples/public_rows.py

With the American Community Survey (`blurfit_lab.datasets.load_acs`) where BLURFIT_DATA names its
folder, else with generated people. Contributors, public rows and those whom the models are tried on
are different people. The public rows are written to a file, which the agreement names by its
SHA-256: everybody can check it.
"""

import hashlib
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from blurfit import Agreement, PublishedModel, perturb_table
from blurfit.simulation import Census, make_census
from blurfit_lab.datasets import load_acs
from blurfit_server import Store

CONTRIBUTORS, PUBLIC, TRIED = 2**15, 5_000, 50_000


def main(people: Census, contributors: int, public: int, tried: int) -> dict[str, float]:
    """The share of right predictions, by models with public rows and without."""
    schema = people.label_schema
    rows = people.take(public, start=contributors).frame()[[one.name for one in schema.features]]
    with TemporaryDirectory() as folder, Store() as store:
        file = Path(folder) / "rows.parquet"
        rows.to_parquet(file)
        agreement = Agreement.propose(
            schema,
            epsilon=1,
            delta=1e-6,
            quorum=contributors,
            public_rows=hashlib.sha256(file.read_bytes()).hexdigest(),
        )
        store.add(agreement, perturb_table(agreement, people.take(contributors).table))
        store.publish(agreement)
        moments = store.moments(agreement)
    others = people.take(tried, start=contributors + public)
    truth = schema.encode(others.table).target > 0

    def right(model: PublishedModel) -> float:
        return float(np.mean(model.predict(others.table) == truth))

    return {
        "with public rows": right(moments.fit(public=rows)),
        "without": right(moments.fit()),
        "always the more frequent": float(max(truth.mean(), 1 - truth.mean())),
    }


if __name__ == "__main__":
    needed = CONTRIBUTORS + PUBLIC + TRIED
    people = load_acs() if os.environ.get("BLURFIT_DATA") else make_census(needed, seed=1)
    print(people)
    for what, share in main(people, CONTRIBUTORS, PUBLIC, TRIED).items():
        print(f"{share:.4f}  {what}")
