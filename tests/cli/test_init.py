"""The example that everyone starts with is one that works."""

import json

from blurfit.cli.agree import PEOPLE, read_proposal


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


def test_nothing_is_written_over(blurfit) -> None:
    (blurfit.folder / "schema.toml").write_text("mine")
    refused = blurfit("init", ".")
    assert refused.returncode == 2
    assert "nothing is overwritten" in refused.stderr
    assert (blurfit.folder / "schema.toml").read_text() == "mine"
    assert not (blurfit.folder / "people.csv").exists()


def test_from_a_survey_that_exists(blurfit) -> None:
    """A Table Schema in, a schema that can be agreed on, and the Table Schema out again."""
    bounds = {"minimum": 0, "maximum": 100, "required": True}
    fields = [{"name": name, "type": "number", "constraints": bounds} for name in ("age", "income")]
    (blurfit.folder / "table.json").write_text(json.dumps({"fields": fields}))
    refused = blurfit("init", "made", "--from", "table.json")
    assert refused.returncode == 2
    assert "which one is to be predicted?" in refused.stderr
    done = blurfit("init", "made", "--from", "table.json", "--target", "income")
    assert done.returncode == 0, done.stderr
    assert "with 2 questions from table.json" in done.stdout
    plan = read_proposal(blurfit.folder / "made" / "schema.toml")
    assert [one.name for one in plan.schema.features] == ["age"]
    shown = blurfit("show", "made/schema.toml", "--table-schema")
    (blurfit.folder / "again.json").write_text(shown.stdout)
    assert blurfit("init", "again", "--from", "again.json").returncode == 0
    assert read_proposal(blurfit.folder / "again" / "schema.toml").schema == plan.schema
