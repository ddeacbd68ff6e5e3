"""What people read of a survey: languages, what is refused, and what is left out."""

import pytest

from blurfit import About, Agreement, Binary, Categorical, Numeric, Schema, Wording
from blurfit.errors import InvalidValueError
from blurfit.schema.columns import Text
from blurfit.schema.imports import to_toml
from blurfit.schema.schema import asked_in_words, title_of, titles
from support.surveys import survey_schema

PLAIN = Schema([Numeric("age", 0, 100), Binary("married")], Numeric("income", 0, 1e5))
TERMS = {"epsilon": 1, "delta": 1e-6, "quorum": 500}


def test_a_text_is_found_in_the_readers_language() -> None:
    text = Text.of("title", {"en": "Work", "de": "Arbeit", "pt-BR": "Trabalho"})
    found = [text.in_language(tag) for tag in ("de", "de-CH", "pt-BR", "en-GB")]
    assert found == ["Arbeit", "Arbeit", "Trabalho", "Work"]
    assert text.in_language("fr") == text.in_language(None) == "Work"
    assert Text.of("title", {"nl": "Werk", "fi": "Työ"}).in_language("de") == "Työ"  # the first
    assert Text.of("title", "Work").in_language("de") == "Work"
    assert Text.of("title", text) is text


def test_a_text_is_one_line() -> None:
    assert str(Text.of("purpose", "two\n  lines\tof it ")) == "two lines of it"
    assert str(Text.of("title", "a\u2028b\x85c")) == "a b c"


@pytest.mark.parametrize("harmful", ["\x07", "\x1b[31m", "\u202e", "\u2066", "\ud800", "\x9b"])
def test_what_hides_or_reorders_is_refused(harmful) -> None:
    with pytest.raises(InvalidValueError, match=r"without the character U\+"):
        Wording(question=f"How{harmful}old?")


@pytest.mark.parametrize(
    "given", ["", " ", 3, {}, {"en": ""}, {"english": "x"}, {"EN": "x"}, ["x"], "x" * 2001]
)
def test_what_says_nothing_is_refused(given) -> None:
    with pytest.raises(InvalidValueError, match="Expected title"):
        About(title=given)


def test_labels_are_of_answers() -> None:
    with pytest.raises(InvalidValueError, match=r"labels of 'sex' for its answers \(f, m\)"):
        Categorical("sex", ["f", "m"], wording=Wording(labels={"x": "other"}))
    assert Binary("a", wording=Wording(labels={"yes": "I do"})).wording.label("yes") == "I do"


def test_what_is_absent_leaves_no_trace() -> None:
    """So agreements without any words keep the fingerprints that they had."""
    written = PLAIN.to_dict()
    assert set(written) == {"features", "target", "intercept", "targets"}
    assert set(written["features"][0]) == {"name", "kind", "lower", "upper", "outside"}
    assert set(written["features"][1]) == {"name", "kind"}


def test_words_are_under_the_fingerprint_in_one_spelling_and_change_nothing_else() -> None:
    words = Wording(question={"en": "How old are you?", "de": "Wie alt sind Sie?"}, unit="years")
    features = [Numeric("age", 0, 100, wording=words), Binary("married")]
    about = About(title="Work", organiser={"en": "The Office", "de": "Das Amt"})
    worded = Schema(features, PLAIN.target, about=about)
    plain, told = (Agreement.propose(schema, **TERMS) for schema in (PLAIN, worded))
    assert plain.fingerprint != told.fingerprint
    assert (plain.calibration, plain.weights) == (told.calibration, told.weights)
    assert Agreement.from_json(told.to_json()) == told
    told.verify()
    record = {"age": 30, "married": True, "income": 10}
    assert (plain.exact(record) == told.exact(record)).all()
    document = Agreement.propose(
        Schema(PLAIN.features, PLAIN.target, about=About(title="Work")), **TERMS
    ).to_dict()
    document["schema"]["title"] = "  Work"
    with pytest.raises(InvalidValueError, match="the same values differently"):
        Agreement.from_dict(document)


# ---- what columns are called where people read
REGION = Wording(
    title={"en": "Region", "de": "Gegend"}, labels={"n": {"en": "north", "de": "Nord"}}
)
TITLED = Schema(
    [
        Numeric("age", 18, 90, optional=True, wording=Wording(title="Age", unit="years")),
        Categorical("region", ["n", "s"], wording=REGION),
        Categorical("plain", ["a", "b"], optional=True),
        Binary("pets", wording=Wording(question="Do you keep pets?")),
    ],
    Numeric("income", 0, 1e5).above(40_000),
)


def test_titles_and_questions_in_words() -> None:
    assert titles(TITLED) == {
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
    assert titles(TITLED, "de")["region=n"] == "Gegend: Nord"
    assert [asked_in_words(one) for one in (*TITLED.features, TITLED.target)] == [
        "Age (18 to 90 years, or not said)",
        "Region (north | s)",
        "plain (a | b, or not said)",
        "pets (yes or no)",
        "income (above 40,000)",
    ]
    assert title_of(TITLED.features[1], "de") == "Gegend"


# ---- A schema as a file for people, and back
ODD = Schema(
    [
        Numeric("a b", -1.5, 1e20, outside="refuse", wording=Wording(hint='"\\ üñ')),
        Categorical("c", ["x=y", "1.5", 'quo"te'], wording=Wording(labels={"x=y": "an x"})),
    ],
    Numeric("z", 0, 10).above(5),
    intercept=False,
    targets=["z"],
)


@pytest.mark.parametrize("schema", [survey_schema(), ODD, Schema([Binary("a")], Binary("b"))])
def test_written_and_read(schema, tmp_path) -> None:
    file = tmp_path / "schema.toml"
    file.write_text(to_toml(schema), encoding="utf-8")
    assert Schema.from_toml(file) == schema
