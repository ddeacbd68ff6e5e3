"""Tables of one release, as a user types them."""

import json

import pytest

from support.joint_release import release

MOMENTS = release()


@pytest.fixture
def table(blurfit):
    MOMENTS.save(blurfit.folder / "moments.json")

    def table(*arguments: str):
        return blurfit("table", "moments.json", *arguments)

    return table


@pytest.mark.parametrize(
    ("typed", "ask"),
    [
        ([], lambda m: m.describe()),
        (["income"], lambda m: m.mean("income")),
        (["income", "region"], lambda m: m.mean("income", by="region")),
        (["region"], lambda m: m.table("region")),
        (["region", "married"], lambda m: m.table("region", "married")),
        (
            ["region", "married", "--shares", "row"],
            lambda m: m.table("region", "married", shares="row"),
        ),
    ],
)
def test_the_table_is_the_librarys(table, typed, ask) -> None:
    done = table(*typed)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{ask(MOMENTS)}\n"


def test_for_scripts_spreadsheets_and_eyes(table, tmp_path) -> None:
    done = table("income", "region", "--json", "--out", "means.csv", "--plot", "means.png")
    facts = json.loads(done.stdout)
    assert [row["region"] for row in facts["rows"]] == ["north", "south", "west"]
    assert facts["test"]["p_value"] < 1e-6
    assert (tmp_path / "means.csv").read_text().startswith("region,estimate,standard_error")
    assert (tmp_path / "means.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["shoes"], "one of the columns"),
        (["income", "age"], "declare bands"),
        (["income", "--quantile", "0.5"], "declare Bands"),
        (["--quantile", "0.5"], "a QUESTION"),
    ],
)
def test_what_cannot_be_told_is_refused(table, typed, words: str) -> None:
    done = table(*typed)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_population_and_rows_for_other_tools(table, blurfit) -> None:
    """By a CSV of totals; rows say in their first line what they are not for."""
    totals = (
        "question,level,value\nregion,north,5000\nregion,south,3000\nregion,west,2000\nage,,50\n"
    )
    (blurfit.folder / "totals.csv").write_text(totals)
    known = {"region": {"north": 5000, "south": 3000, "west": 2000}, "age": 50}
    done = table("income", "--population", "totals.csv")
    assert done.stdout == f"{MOMENTS.calibrate(known).mean('income')}\n"
    refused = table("region", "married", "--population", "totals.csv")
    assert "products of three columns" in refused.stderr
    (blurfit.folder / "totals.csv").write_text("question,value\nage,50\n")
    assert "question, level and value" in table("income", "--population", "totals.csv").stderr
    assert table("--draw", "20", "--out", "rows.csv").returncode == 0
    first, heading, *rows = (blurfit.folder / "rows.csv").read_text().splitlines()
    assert first.startswith("# ")
    assert "no standard errors" in first
    assert heading == "region,married"
    assert len(rows) == 20
    assert "--out" in table("--draw", "20").stderr


def test_a_model_is_asked_more(table, blurfit) -> None:
    done = blurfit(
        "fit", "moments.json", "income ~ age + education", "--against", "income ~ age",
        "--test", "age = 300", "--effect", "age", "--plot", "effect.png", "--table", "table.xlsx",
        "--out", "model.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    model = MOMENTS.fit("income ~ age + education")
    for told in (model.compare(MOMENTS.fit("income ~ age")), model.test("age = 300")):
        assert str(told) in done.stdout
    assert str(model.effect("age")) in done.stdout
    assert (blurfit.folder / "effect.png").stat().st_size > 1000
    assert (blurfit.folder / "table.xlsx").stat().st_size > 1000
    shown = blurfit("show", "model.json", "--test", "age = 300", "--json")
    facts = json.loads(shown.stdout)
    assert facts["test"]["p_value"] == pytest.approx(model.test("age = 300").p_value)
    assert "Expected a model" in blurfit("show", "moments.json", "--test", "age = 0").stderr
