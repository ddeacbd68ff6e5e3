"""What columns are called where people read."""

from blurfit import Binary, Categorical, Numeric, Schema, Wording
from blurfit.schema.schema import asked_in_words, title_of, titles

REGION = Wording(
    title={"en": "Region", "de": "Gegend"}, labels={"n": {"en": "north", "de": "Nord"}}
)
SCHEMA = Schema(
    [
        Numeric("age", 18, 90, optional=True, wording=Wording(title="Age", unit="years")),
        Categorical("region", ["n", "s"], wording=REGION),
        Categorical("plain", ["a", "b"], optional=True),
        Binary("pets", wording=Wording(question="Do you keep pets?")),
    ],
    Numeric("income", 0, 1e5).above(40_000),
)


def test_titles_where_there_are_some_and_names_elsewhere() -> None:
    assert titles(SCHEMA) == {
        "age": "Age (years)",
        "age=(not said)": "Age: not said",
        "region=n": "Region: north",
        "region=s": "Region: s",
        "plain=a": "plain=a",
        "plain=b": "plain=b",
        "plain=(not said)": "plain=(not said)",
        "pets": "pets",
        "income": "income",
    }
    assert titles(SCHEMA, "de")["region=n"] == "Gegend: Nord"


def test_questions_in_words() -> None:
    assert [asked_in_words(one) for one in (*SCHEMA.features, SCHEMA.target)] == [
        "Age (18 to 90 years, or not said)",
        "Region (north | s)",
        "plain (a | b, or not said)",
        "pets (yes or no)",
        "income (above 40,000)",
    ]
    assert title_of(SCHEMA.features[1], "de") == "Gegend"
