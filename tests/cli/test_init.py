"""The example that everyone starts with is one that works."""

import json
from types import SimpleNamespace

from click.testing import CliRunner

from blurfit import Binary, Categorical, Numeric
from blurfit.cli import main
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


PEOPLE_CSV = "alter;region;kind;name;lohn\n31;nord;ja;Ada;1.030,50\n;süd;nein;Bo;2.500\n"


def test_from_a_table_of_people_bounds_are_typed_and_never_read(blurfit) -> None:
    rows = "".join(f"4{i % 10};nord;ja;P{i};{i}\n" for i in range(30))
    (blurfit.folder / "people.csv").write_text(PEOPLE_CSV + rows, encoding="utf-8-sig")
    typed = ("init", "made", "--from", "people.csv", "--target", "lohn")
    refused = blurfit(*typed)
    assert refused.returncode == 2
    for words in ("add --bounds alter LOWEST HIGHEST", "add --levels region A,B,…"):
        assert words in refused.stderr
    assert not (blurfit.folder / "made").exists()
    known = ("--bounds", "alter", "0", "120", "--bounds", "lohn", "0", "9000")
    done = blurfit(*typed, *known, "--levels", "region", "nord, süd, west")
    assert done.returncode == 0, done.stderr
    assert "Left out: 'name', which is text." in done.stdout
    schema = read_proposal(blurfit.folder / "made" / "schema.toml").schema
    assert schema.features == (
        Numeric("alter", 0, 120, optional=True),
        Categorical("region", ["nord", "süd", "west"]),
        Binary("kind"),
    )
    assert schema.target == Numeric("lohn", 0, 9000)


def test_what_is_missing_is_asked_for_at_a_terminal(blurfit, monkeypatch) -> None:
    (blurfit.folder / "people.csv").write_text("age,sex,note\n31,f,1\n44,m,2\n")
    with monkeypatch.context() as patch:
        patch.chdir(blurfit.folder)
        terminal = SimpleNamespace(isatty=lambda: True)
        patch.setattr("blurfit.cli.agree.sys", SimpleNamespace(stdin=terminal))
        told = "old\n120 0\n0 120\nf, m, x\n\nage\n"
        done = CliRunner().invoke(main, ("init", "made", "--from", "people.csv"), input=told)
    assert done.exit_code == 0, done.output
    assert "is private" in done.stderr
    assert "31" not in done.stderr
    schema = read_proposal(blurfit.folder / "made" / "schema.toml").schema
    assert schema.features == (Categorical("sex", ["f", "m", "x"]),)
    assert schema.target == Numeric("age", 0, 120)
