"""The example in R reads what we publish: run where R is installed."""

import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from blurfit import (
    Agreement,
    Bands,
    Binary,
    Categorical,
    Condition,
    Cross,
    Curve,
    Numeric,
    Poly,
    Product,
    PublishedMoments,
    Schema,
)
from blurfit.simulation import exact_totals
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
        [
            Numeric("age", 18, 90),
            Categorical("region", ["north", "south"]),
            Binary("member"),
            Curve("age", knots=[18, 30, 55.5, 90]),
            Bands("age", edges=[30, 60]),
            Poly("age", degree=3),
            Cross("region", "member"),
            Product("age", "region"),
            Product("age", "member"),
            Condition("young", "age", above=40),
        ],
        Numeric("income", 0, 90_000),
    )
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=500)
    totals = exact_totals(agreement, people)  # without noise: R and Python shall agree
    return PublishedMoments(agreement, totals.count, totals.sums)


def quiet(moments):
    """The same release, said to have hardly any noise, so that it tells errors."""
    kind = type("Quiet", (PublishedMoments,), {"deviation": 1e-3})
    return kind(moments.agreement, moments.count, moments.sums)


@pytest.mark.usefixtures("rscript")
class TestInR:
    def run(self, *words):
        asked = ["Rscript", str(EXAMPLE), *map(str, words)]
        done = subprocess.run(asked, check=True, capture_output=True, text=True)
        return done.stdout.split()

    @pytest.mark.parametrize("formula", ["income ~ age + region", "member ~ age + income"])
    def test_it_predicts_what_the_model_does(self, moments, people, tmp_path, formula):
        model = moments.fit(formula)
        model.save(tmp_path / "model.json")
        people.head(20).to_csv(tmp_path / "people.csv", index=False)
        found = self.run(tmp_path / "model.json", tmp_path / "people.csv")
        expected = model.predict(people.head(20))
        if model.is_label:
            assert model.curve is not None
            expected = model.predict_proba(people.head(20))[:, 1]
        np.testing.assert_allclose(np.array(found, float), expected)

    @pytest.mark.parametrize(
        "formula",
        [
            "income ~ age + region + member",
            "income ~ curve(age) + region*member",
            "income ~ age*region + age*member",
            "income ~ age + poly3(age) + young + age:region",
            "income ~ bands(age)",
        ],
    )
    def test_a_model_is_like_one_of_lm(self, moments, people, tmp_path, formula):
        """coef, vcov, confint and predict say what Python says, whatever is derived."""
        model = quiet(moments).fit(formula)
        model.save(tmp_path / "model.json")
        people.head(20).to_csv(tmp_path / "people.csv", index=False)
        asked = f"""
            source("{EXAMPLE}")
            fit <- read_model("{tmp_path / "model.json"}")
            people <- read.csv("{tmp_path / "people.csv"}")
            stopifnot(nobs(fit) == 500, df.residual(fit) == 500 - length(coef(fit)))
            invisible(capture.output(print(summary(fit))))
            told <- predict(fit, people, interval = "confidence")
            for (one in list(coef(fit), vcov(fit), confint(fit), told,
                             predict_published(fit$published, people)))
              cat(format(c(one), digits = 15), "\\n")
        """
        done = subprocess.run(
            ["Rscript", "-e", asked], check=True, capture_output=True, text=True
        ).stdout.splitlines()
        coefficients, covariance, interval, told, predicted = (
            np.array(line.split(), float) for line in done
        )
        inference = model.inference_of()
        np.testing.assert_allclose(coefficients, inference.coefficients)
        np.testing.assert_allclose(covariance, inference.covariance.ravel(), rtol=1e-6, atol=1e-6)
        bounds = [(one.lower, one.upper) for one in model.estimates()]
        np.testing.assert_allclose(interval, np.array(bounds).T.ravel(), rtol=1e-9)
        response = model.mean_response(people.head(20)).answer.values
        np.testing.assert_allclose(told[:20], response)
        np.testing.assert_allclose(predicted, model.predict(people.head(20)))

    def test_it_fits_least_squares_to_the_moments(self, moments, people, tmp_path):
        moments.save(tmp_path / "moments.json")
        found = self.run(tmp_path / "moments.json", "income", "age")
        slope, intercept = np.polyfit(people["age"], people["income"], 1)
        np.testing.assert_allclose(np.array(found[1::2], float), [intercept, slope], rtol=1e-6)
