"""Log-odds of an event from the shell: a plan, three files of submissions, one model."""

import json

import numpy as np
import pandas as pd
from scipy.special import expit

from blurfit.agreement.plan import Plan
from cli.conftest import Blurfit

TOML = """
[[features]]
name = "age"
kind = "numeric"
lower = 20
upper = 60
[target]
name = "left"
kind = "exit"
time = "months"
horizon = 12
bands = 3
[terms]
epsilon = 8
delta = 1e-6
quorum = 6000
"""


def staff(people: int) -> pd.DataFrame:
    """Return people of whom the older leave sooner."""
    generator = np.random.default_rng(0)
    age = generator.uniform(20, 60, people)
    happened = generator.random((people, 3)) < expit(0.05 * age - 3)[:, None]
    left, band = happened.any(axis=1), happened.argmax(axis=1)
    months = np.where(left, 4 * (band + generator.random(people)), 12.0)
    return pd.DataFrame({"age": age, "months": months, "left": left.astype(int)})


def test_from_a_plan_to_log_odds_of_all_waves(blurfit: Blurfit) -> None:
    folder, at, earlier = blurfit.folder, 0, []
    (folder / "schema.toml").write_text(TOML)

    def run(*words: str) -> str:
        done = blurfit(*words, BLURFIT_HOME=str(folder / "home"))
        assert done.returncode == 0, done.stderr
        return done.stdout

    agreed = blurfit("agree", "schema.toml", "--waves", "3", "--out", "agreement1.json")
    assert agreed.returncode == 0, agreed.stderr
    assert "blurfit contribute agreement1.json" in agreed.stderr
    assert "blurfit open" not in agreed.stderr, "no service takes such waves"
    table = staff(6000)
    for number, quorum in enumerate(Plan.load(folder / "plan.json").quorums, start=1):
        agreement, moments = f"agreement{number}.json", f"moments{number}.json"
        given = [word for one in earlier for word in ("--release", one)]
        if number > 1:
            run("next", "plan.json", *earlier, "--out", agreement)
        (folder / f"wave{number}").mkdir()
        blurred = f"wave{number}/blurred.parquet"
        people = f"people{number}.csv"
        table.iloc[at : at + quorum].to_csv(folder / people, index=False)
        run("contribute", agreement, people, "--out", blurred, "--plan", "plan.json", *given)
        said = run("learn", agreement, blurred, "--moments", moments, "--plan", "plan.json", *given)
        assert "sums, and no model yet" in said
        at, earlier = at + quorum, [*earlier, moments]
    given = ["--plan", "plan.json", "--release", "moments1.json", "--release", "moments2.json"]
    assert "log-odds" in run("fit", "moments3.json", *given)
    (age,) = json.loads(run("fit", "moments3.json", *given, "--json"))["coefficients"]
    assert abs(age["value"] - 0.05) < 4 * age["standard_error"]
    assert age["standard_error"] < 0.01
    for words, message in (
        (["fit", "moments3.json"], "--plan PLAN"),
        (["fit", "moments3.json", "--plan", "plan.json"], "Expected wave 1"),
    ):
        refused = blurfit(*words)
        assert refused.returncode != 0
        assert message in refused.stderr
