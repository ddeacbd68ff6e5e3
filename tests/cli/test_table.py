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
