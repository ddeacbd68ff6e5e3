"""XLSForm: constraints become bounds, lists become levels, groups become sections."""

import openpyxl
import pytest

from blurfit import Binary, Categorical, Numeric, Wording
from blurfit.errors import InvalidValueError
from blurfit.schema.xlsform import _bounds, from_xlsform

HEAD = ["type", "name", "label", "label::Deutsch (de)", "hint", "required", "constraint"]
HEAD += ["relevant", "parameters"]
CHOICES = [
    ["list_name", "name", "label", "label::Deutsch (de)"],
    ["yesno", "yes", "Yes", "Ja"],
    ["yesno", "no", "No", "Nein"],
    ["state", "n", "North", "Norden"],
    ["state", "s", "South", None],
    ["one", "x", "X", None],
]


def form(folder, *rows, settings=("Work",)):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "survey"
    for row in (HEAD, *rows):
        sheet.append([*row, *[None] * (len(HEAD) - len(row))])
    choices = book.create_sheet("choices")
    for row in CHOICES:
        choices.append(row)
    facts = book.create_sheet("settings")
    facts.append(["form_title"])
    facts.append(list(settings))
    path = folder / "form.xlsx"
    book.save(path)
    return path


INCOME = ["integer", "income", "Your income?", None, None, "yes", ". >= 0 and . <= 100000"]


def test_a_form_with_all_kinds(tmp_path) -> None:
    path = form(
        tmp_path,
        ["start", "start"],
        ["note", "welcome", "Hello"],
        ["begin_group", "you", "About you", "Über Sie"],
        ["integer", "age", "How old?", "Wie alt?", "In years", "yes", ".>=18 and .<= 90"],
        ["select_one yesno", "married", "Married?", None, None, "true()"],
        ["end_group"],
        ["select_one state", "state", "Where?"],
        ["range", "mood", "How are you?", None, None, "yes", None, None, "start=-5 end=5 step=1"],
        ["decimal", "rent", "Your rent?", None, None, "yes", "0 < . and 5000 >= .", "${age} > 20"],
        INCOME,
    )
    found = from_xlsform(path, "income")
    about = {"de": "Über Sie", "en": "About you"}
    assert found.schema.features == (
        Numeric(
            "age",
            18,
            90,
            wording=Wording(
                question={"en": "How old?", "de": "Wie alt?"}, hint="In years", section=about
            ),
        ),
        Binary(
            "married",
            wording=Wording(
                question="Married?",
                section=about,
                labels={"yes": {"en": "Yes", "de": "Ja"}, "no": {"en": "No", "de": "Nein"}},
            ),
        ),
        Categorical(
            "state",
            ["n", "s"],
            optional=True,
            wording=Wording(
                question="Where?", labels={"n": {"en": "North", "de": "Norden"}, "s": "South"}
            ),
        ),
        Numeric("mood", -5, 5, wording=Wording(question="How are you?")),
        Numeric("rent", 0, 5000, optional=True, wording=Wording(question="Your rent?")),
    )
    assert found.schema.target.name == "income"
    assert str(found.schema.about.title) == "Work"
    assert found.notes == (
        "'rent' is asked of everybody, who need not say.",
        "Left out, as nothing is asked: start, welcome.",
        "May be left unsaid: 'state', 'rent'.",
    )


def test_what_is_missing_is_named(tmp_path) -> None:
    path = form(
        tmp_path,
        ["integer", "age", "How old?"],
        ["decimal", "rent", "Rent?", None, None, None, ". > 0"],
        ["decimal", "debt", "Debt?", None, None, None, ". > 0 and . < ${rent}"],
        ["decimal", "pay", "Pay?", None, None, None, ". > 0 and . < 5 or . = 99"],
        ["text", "name", "Name?"],
        ["select_multiple state", "states", "Where?"],
        ["select_one one", "single", "Which?"],
        ["begin_repeat", "children", "Children"],
        INCOME,
    )
    with pytest.raises(InvalidValueError) as refused:
        from_xlsform(path, "income")
    for words in (
        "'age' is a number without bounds",
        "'rent' is a number without bounds",
        "'debt' is a number without bounds",
        "'pay' is a number without bounds",
        "'name' is of type 'text'",
        "'states' takes several answers",
        "'single' has fewer than two choices in the list 'one'",
        "'children' is",
    ):
        assert words in str(refused.value)


@pytest.mark.parametrize(
    ("constraint", "bounds"),
    [
        (". >= 18 and . <= 90", (18, 90)),
        ("(.>=18) and (.<90.5)", (18, 90.5)),
        ("-5 <= . and 7 > . and . < 6", (-5, 6)),
        (". >= 0 and . <= 1e5", None),
        (". >= 0 and . <= 100 * 12", None),
        (". >= 0 and . <= 100 and . != 50", None),
        (". >= 0 and not(. <= 100)", None),
        ("string-length(.) <= 5 and . >= 0", None),
        (". >= 0 and . <= 10.5.2", None),
        ("", None),
    ],
)
def test_a_constraint_is_read_as_a_whole_or_not_at_all(constraint, bounds) -> None:
    """Bounds that were read wrong would cut everybody's answers without a word."""
    assert _bounds({"constraint": constraint}) == bounds


def test_a_range_has_numbers_for_its_ends() -> None:
    assert _bounds({"parameters": "start=-5 end = 5 step=1"}) == (-5, 5)
    assert _bounds({"parameters": "start=0 end=1e5"}) is None


def test_what_is_no_form(tmp_path) -> None:
    book = openpyxl.Workbook()
    book.save(tmp_path / "other.xlsx")
    with pytest.raises(InvalidValueError, match="a sheet named survey; it has sheet"):
        from_xlsform(tmp_path / "other.xlsx")
    (tmp_path / "text.xlsx").write_text("no workbook")
    with pytest.raises(InvalidValueError, match="to be a workbook"):
        from_xlsform(tmp_path / "text.xlsx")
