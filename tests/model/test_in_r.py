"""The example in R reads what we publish: run where R is installed."""

import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from blurfit import Agreement, Categorical, Numeric, PublishedMoments, Schema
from blurfit.schema.schema import Binary
from blurfit.simulation.sampler import exact_totals
from support.programs import missing, program

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "r" / "blurfit.R"


@pytest.fixture(scope="module")
def rscript() -> None:
    asked = [program("Rscript"), "-e", "library(jsonlite)"]
    if subprocess.run(asked, check=False, capture_output=True).returncode != 0:
        missing("jsonlite for R")


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    age, region = rng.uniform(18, 90, 500), rng.choice(["north", "south"], 500)
    member = rng.integers(0, 2, 500)
    income = 500 * age + 9000 * (region == "south") + 4000 * member + rng.normal(0, 3000, 500)
    columns = {"age": age, "region": region, "member": member, "income": np.clip(income, 0, 90_000)}
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def moments(people):
    schema = Schema(
        [Numeric("age", 18, 90), Categorical("region", ["north", "south"]), Binary("member")],
        Numeric("income", 0, 90_000),
    )
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=500)
    totals = exact_totals(agreement, people)  # without noise: R and Python shall agree
    return PublishedMoments(agreement, totals.count, totals.sums)


@pytest.mark.usefixtures("rscript")
class TestInR:
    def run(self, *words):
        asked = ["Rscript", str(EXAMPLE), *map(str, words)]
        done = subprocess.run(asked, check=True, capture_output=True, text=True)
        return done.stdout.split()

    def test_it_predicts_what_the_model_does(self, moments, people, tmp_path):
        model = moments.fit(target="income")
        model.save(tmp_path / "model.json")
        people.head(20).to_csv(tmp_path / "people.csv", index=False)
        found = self.run(tmp_path / "model.json", tmp_path / "people.csv")
        np.testing.assert_allclose(np.array(found, float), model.predict(people.head(20)))

    def test_it_fits_least_squares_to_the_moments(self, moments, people, tmp_path):
        moments.save(tmp_path / "moments.json")
        found = self.run(tmp_path / "moments.json", "income", "age")
        slope, intercept = np.polyfit(people["age"], people["income"], 1)
        np.testing.assert_allclose(np.array(found[1::2], float), [intercept, slope], rtol=1e-6)
