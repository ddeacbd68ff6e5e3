"""The example that everyone starts with is one that works."""

import json

from blurfit.commands.init import PEOPLE, made_up_people
from blurfit.commands.proposals import read_proposal


def test_a_schema_and_people_that_fit_it(blurfit) -> None:
    done = blurfit("init", "a/survey")
    assert done.returncode == 0, done.stderr
    folder = blurfit.folder / "a" / "survey"
    plan = read_proposal(folder / "schema.toml")
    assert plan.terms["quorum"] < PEOPLE
    lines = (folder / "people.csv").read_text().splitlines()
    assert len(lines) == PEOPLE + 1
    assert lines[0].split(",") == [one.name for one in plan.schema.features] + ["income"]
    assert "Next: `cd a/survey`, then `blurfit agree schema.toml`." in done.stderr


def test_nobody_is_outside_of_the_bounds_but_the_rich() -> None:
    people = made_up_people(2000, 1)
    assert people["age"].min() >= 15
    assert people["age"].max() <= 95
    assert people["education"].max() <= 24
    assert set(people["marital"]) == {"single", "married", "formerly"}
    assert (people["income"] > 150_000).mean() < 0.1


def test_nothing_is_written_over(blurfit) -> None:
    (blurfit.folder / "schema.toml").write_text("mine")
    refused = blurfit("init", ".")
    assert refused.returncode == 2
    assert "nothing is written over" in refused.stderr
    assert (blurfit.folder / "schema.toml").read_text() == "mine"
    assert not (blurfit.folder / "people.csv").exists()


def test_for_scripts(blurfit) -> None:
    done = blurfit("init", "survey", "--json")
    assert json.loads(done.stdout) == {
        "schema": "survey/schema.toml",
        "people": "survey/people.csv",
        "rows": PEOPLE,
    }
    assert not done.stderr
