"""From a schema and its terms to an agreement, and an example to begin with."""

import json
from types import SimpleNamespace

import click
import openpyxl
import pytest
from click.testing import CliRunner

from blurfit import Binary, Categorical
from blurfit.agreement.agreement import Agreement
from blurfit.agreement.numbers import records_worth
from blurfit.agreement.statement import premise_in_words
from blurfit.cli import main
from blurfit.cli.agree import PEOPLE, read_proposal
from blurfit.cli.forecast import Numbers
from blurfit.schema.schema import Numeric, Schema
from support.surveys import schema_text

NUMBER = schema_text()
LABEL = NUMBER + "above = 370\n"
TERMS = NUMBER + "[terms]\nepsilon = 2\ndelta = 1e-7\nquorum = 900\nneighbours = 'zero-out'\n"
FEATURES = [Numeric("age", 0, 100)]
TARGET = Numeric("income", 0, 1000)
SCHEMA = Schema(features=FEATURES, target=TARGET)
PROMISE = ["--epsilon", "1", "--delta", "1e-6", "--quorum", "5000"]


@pytest.fixture
def agree(blurfit):
    """`blurfit agree` for a schema's text."""

    def agree(text: str, *arguments: str):
        (blurfit.folder / "schema.toml").write_text(text)
        return blurfit("agree schema.toml", *arguments)

    return agree


def test_every_option_reaches_the_agreement(agree, tmp_path) -> None:
    result = agree(
        LABEL,
        *["--epsilon", "2", "--delta", "1e-5", "--quorum", "3000"],
        *["--neighbours", "zero-out", "--constant", "0.8"],
        *["--local-epsilon", "9", "--local-delta", "1e-4", "--out", "other.json", "--json"],
    )
    assert result.returncode == 0, result.stderr
    expected = Agreement.propose(
        Schema(features=FEATURES, target=TARGET.above(370)),
        epsilon=2.0,
        delta=1e-5,
        quorum=3000,
        neighbours="zero-out",
        constant=0.8,
        local_epsilon=9.0,
        local_delta=1e-4,
    )
    assert Agreement.load(tmp_path / "other.json") == expected
    assert not (tmp_path / "agreement.json").exists()
    assert json.loads(result.stdout) == {
        "agreement": "other.json",
        "fingerprint": expected.fingerprint,
        "epsilon": 2.0,
        "delta": 1e-5,
        "neighbours": "zero-out",
        "quorum": 3000,
        "trust": "one",
        "admission": "invited",
        "database_noise": False,
        "condition": premise_in_words(expected),
        "liar_records": records_worth(expected),
        "proofs": False,
        "numbers": 4,
        "bytes": expected.layout.size,
        "local_epsilon": expected.calibration.local.epsilon,
        "local_delta": 1e-4,
        "signing_keys": [],
        "warnings": [],
    }
    assert not result.stderr


def test_two_databases_are_told_with_their_condition(agree, tmp_path) -> None:
    places = ("Office", "https://first.example"), ("Union", "https://second.example")
    typed = [word for place in places for word in ("--database", *place)]
    result = agree(NUMBER, *PROMISE, *typed)
    assert result.returncode == 0, result.stderr
    assert [one.name for one in Agreement.load(tmp_path / "agreement.json").databases] == [
        "Office",
        "Union",
    ]
    words = " ".join(result.stdout.split())
    assert "Office gets a masked share of each submission and Union the seed of its mask." in words
    assert "only if the two do not put their shares together" in words
    assert "One submission by itself" not in words  # which no database sees
    assert "Each contributor proves to both databases" in words
    assert "With its proof a contributor's share is" in words
    assert "One contributor who lies can move the sums at most as far as" in words
    assert Agreement.load(tmp_path / "agreement.json").proofs, "by invitation too"
    result = agree(NUMBER, *PROMISE, *typed, "--no-proofs")
    words = " ".join(result.stdout.split())
    assert "proof" not in words
    assert "One contributor who lies can move the sums by any amount" in words


def test_terms_of_the_file_are_taken_unless_others_are_typed(agree, tmp_path) -> None:
    assert agree(TERMS, "--epsilon", "1").returncode == 0
    expected = Agreement.propose(SCHEMA, epsilon=1, delta=1e-7, quorum=900, neighbours="zero-out")
    assert Agreement.load(tmp_path / "agreement.json") == expected


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        (["--epsilon", "8", "--delta", "1e-6", "--quorum", "5000"], "ε = 8 promises little"),
        (["--epsilon", "1", "--delta", "1e-3", "--quorum", "5000"], "more than one in 5,000"),
        (["--epsilon", "1", "--delta", "1e-6", "--quorum", "50"], "With 50 contributors the noise"),
    ],
)
def test_what_makes_little_sense_is_said(agree, typed: list[str], word: str) -> None:
    result = agree(NUMBER, *typed)
    assert result.returncode == 0
    assert word in result.stderr
    (said,) = json.loads(agree(NUMBER, *typed, "--json").stdout)["warnings"]
    assert word in said


# ---- init


def test_a_schema_and_people_that_fit_it(blurfit) -> None:
    done = blurfit.done("init a/survey")
    folder = blurfit.folder / "a" / "survey"
    plan = read_proposal(folder / "schema.toml")
    assert plan.terms["quorum"] < PEOPLE
    lines = (folder / "people.csv").read_text().splitlines()
    assert len(lines) == PEOPLE + 1
    assert lines[0].split(",") == [one.name for one in plan.schema.features] + ["income"]
    assert "Next: `cd a/survey`, then `blurfit agree schema.toml`." in done.stderr


def test_from_a_survey_that_exists(blurfit) -> None:
    """A Table Schema in, a schema that can be agreed on, and the Table Schema out again."""
    bounds = {"minimum": 0, "maximum": 100, "required": True}
    fields = [{"name": name, "type": "number", "constraints": bounds} for name in ("age", "income")]
    (blurfit.folder / "table.json").write_text(json.dumps({"fields": fields}))
    blurfit.refused(
        "init made --from table.json", says="Name the one to be predicted with `--target`"
    )
    done = blurfit.done("init made --from table.json --target income")
    assert "with 2 questions from table.json" in done.stdout
    plan = read_proposal(blurfit.folder / "made" / "schema.toml")
    assert [one.name for one in plan.schema.features] == ["age"]
    shown = blurfit("show made/schema.toml --table-schema")
    (blurfit.folder / "again.json").write_text(shown.stdout)
    blurfit.done("init again --from again.json")
    assert read_proposal(blurfit.folder / "again" / "schema.toml").schema == plan.schema


def test_from_a_form_that_exists(blurfit) -> None:
    """Bounds may be added to those of the form, and what was left out is printed."""
    book = openpyxl.Workbook()
    book.active.title = "survey"
    rows = (["type", "name"], ["int", "age"], ["integer", "pay"], ["text", "name"])
    for row in rows:
        book.active.append(row)
    book.save(blurfit.folder / "form.xlsx")
    typed = ("init", "made", "--from", "form.xlsx", "--target", "pay", "--bounds", "age", "0", "99")
    blurfit.refused(*typed, says=("`--bounds NAME LOWEST HIGHEST`: 3 'pay'.", "form.xlsx"))
    typed += ("--bounds", "pay", "0", "9")
    blurfit.refused(*typed, "--levels", "age", "a,b", says="`--levels` cannot be combined with")
    blurfit.refused(*typed, "--bounds", "ag", "0", "9", says="'ag' has `--bounds`, and no number")
    assert "can be blurred: 4 'name' (text)." in blurfit.done(*typed).stdout
    schema = read_proposal(blurfit.folder / "made" / "schema.toml").schema
    assert schema.features == (Numeric("age", 0, 99, "refuse", optional=True),)
    shown = blurfit("show made/schema.toml --table-schema")
    (blurfit.folder / "own.json").write_text(shown.stdout)
    more = ("--from", "own.json", "--bounds", "age", "0", "9")
    blurfit.refused("init", "again", *more, says="a Table Schema that blurfit wrote")
    fields = [{"name": name, "type": "number"} for name in ("age", "pay")]
    (blurfit.folder / "other.json").write_text(json.dumps({"fields": fields}))
    typed = ("init", "other", "--from", "other.json", *typed[4:])
    blurfit.done(*typed)
    schema = read_proposal(blurfit.folder / "other" / "schema.toml").schema
    assert (schema.target.lower, schema.target.upper) == (0, 9)


PEOPLE_CSV = "alter;region;kind;name;lohn\n31;nord;ja;Ada;1.030,50\n;süd;nein;Bo;2.500\n"


def test_from_a_table_of_people_bounds_are_typed_and_never_read(blurfit) -> None:
    rows = "".join(f"4{i % 10};nord;ja;P{i};{i}\n" for i in range(30))
    (blurfit.folder / "people.csv").write_text(PEOPLE_CSV + rows, encoding="utf-8-sig")
    typed = ("init", "made", "--from", "people.csv", "--target", "lohn")
    refused = blurfit.refused(*typed)
    lines = refused.stderr.splitlines()
    for words in ("    --bounds alter LOWEST HIGHEST \\", "    --levels region A,B,… \\"):
        assert words in lines
    assert not (blurfit.folder / "made").exists()
    known = ("--bounds", "alter", "0", "120", "--bounds", "lohn", "0", "9000")
    done = blurfit.done(*typed, *known, "--levels", "region", "nord, süd, west")
    assert "Left out: 'name', which is text." in done.stdout
    schema = read_proposal(blurfit.folder / "made" / "schema.toml").schema
    assert schema.features == (
        Numeric("alter", 0, 120, optional=True),
        Categorical("region", ["nord", "süd", "west"]),
        Binary("kind"),
    )
    assert schema.target == Numeric("lohn", 0, 9000)


def test_identifiers_and_dates_are_left_out_and_flags_can_be_pasted(blurfit) -> None:
    rows = [f"{7000 + 3 * i},{1 + i % 28:02}.04.2019,{i + 1},{30_000 + 7 * i}" for i in range(40)]
    heading = "Personalnummer,Eintritt,row,Gehalt (€)"
    (blurfit.folder / "staff.csv").write_text("\n".join([heading, *rows]), encoding="utf-8")
    refused = blurfit.refused("init made --from staff.csv")
    assert "    --bounds 'Gehalt (€)' LOWEST HIGHEST" in refused.stderr.splitlines()
    typed = ("--target", "Gehalt (€)", "--bounds", "Gehalt (€)", "0", "150000")
    kept = ("--bounds", "row", "0", "100")
    done = blurfit.done("init", "made", "--from", "staff.csv", *typed, *kept)
    assert "Left out: 'Personalnummer', whose numbers name people." in done.stdout
    assert "Left out: 'Eintritt', which has dates." in done.stdout
    schema = read_proposal(blurfit.folder / "made" / "schema.toml").schema
    assert schema.features == (Numeric("row", 0, 100),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,a,c,b\n1,2,3,4,5\n", "columns 1 and 3 have the same name; columns 2 and 5 have the"),
        ("Staff,,\nname,age,pay\nx,1,2\n", "columns 2, 3 have no name. Remove what stands above"),
        ("name,age,\nx,1,2\n", "column 3 has no name"),
        ("name,age\n", "must have rows below its first"),
    ],
)
def test_which_headings_are_wrong_is_said(blurfit, text, message) -> None:
    (blurfit.folder / "people.csv").write_text(text)
    blurfit.refused("init made --from people.csv", says=message)


def test_a_table_of_an_older_spreadsheet_is_read_if_its_encoding_is_said(blurfit) -> None:
    (blurfit.folder / "people.csv").write_text("größe;lohn\n31;5\n180;7\n", encoding="cp1252")
    typed = ["init", "made", "--from", "people.csv", "--target", "lohn"]
    typed += ["--bounds", "größe", "0", "250", "--bounds", "lohn", "0", "9"]
    blurfit.refused(*typed, says="often `--encoding cp1252`")
    blurfit.refused(*typed, "--encoding", "ansi-9", says="`encoding` must name an encoding")
    blurfit.done(*typed, "--encoding", "cp1252")
    agree = "agree made/schema.toml --epsilon 1 --delta 1e-6 --quorum 5000 --out agreement.json"
    blurfit.done(agree)
    contribute = "contribute agreement.json people.csv --out blurred.parquet"
    blurfit.refused(contribute, says="often `--encoding cp1252`")
    facts = json.loads(blurfit.done(f"{contribute} --encoding cp1252 --json").stdout)
    assert facts["rows"] == 2


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


# ---- proposals


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1", (1.0,)),
        ("0.1,1,10", (0.1, 1.0, 10.0)),
        ("0.1:10", (0.1, 0.32, 1.0, 3.2, 10.0)),
        ("1e3:1e4", (1000.0, 3200.0, 10_000.0)),
        ("5:5", (5.0,)),
    ],
)
def test_ranges(text: str, numbers: tuple[float, ...]) -> None:
    assert Numbers().convert(text, None, None) == numbers


@pytest.mark.parametrize("text", ["", "one", "3:1", "0:1", "1:inf", "-1", "1,,2"])
def test_bad_ranges_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="neither a list"):
        Numbers().convert(text, None, None)
