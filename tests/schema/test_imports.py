"""XLSForm: constraints become bounds, lists become levels, groups become sections."""

import contextlib
import itertools
import json
from zipfile import ZIP_DEFLATED, ZipFile

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blurfit import About, Binary, Categorical, Numeric, Schema, Wording
from blurfit.errors import InvalidValueError
from blurfit.schema import imports
from blurfit.schema.imports import (
    SurveyReader,
    _bounds,
    from_table_schema,
    from_xlsform,
    to_table_schema,
    to_toml,
)
from support.surveys import survey_schema

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


INCOMES = Numeric("income", 0, 9)


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
    old, yes_or_no = {"en": "How old?", "de": "Wie alt?"}, {"yes": {"en": "Yes", "de": "Ja"}}
    yes_or_no["no"] = {"en": "No", "de": "Nein"}
    states = {"n": {"en": "North", "de": "Norden"}, "s": "South"}
    age = Wording(question=old, hint="In years", section=about)
    married = Wording(question="Married?", section=about, labels=yes_or_no)
    rent = Wording(question="Your rent?", only_if="age > 20")
    assert found.schema.features == (
        Numeric("age", 18, 90, "refuse", wording=age),
        Binary("married", wording=married),
        Categorical("state", ["n", "s"], True, Wording(question="Where?", labels=states)),
        Numeric("mood", -5, 5, wording=Wording(question="How are you?")),
        Numeric("rent", 0, 5000, "refuse", optional=True, wording=rent),
    )
    assert found.schema.target.name == "income"
    assert str(found.schema.about.title) == "Work"
    assert found.notes == (
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
        ["select_multiple none", "states", "Where?"],
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
        "'states' has no choices in the list 'none'",
        "'single' has fewer than two choices in the list 'one'",
        "'children' is",
    ):
        assert words in str(refused.value)


def test_several_answers_become_a_yes_or_no_for_each(tmp_path) -> None:
    row = ["select_multiple state", "lived", "Where did you live?", "Wo haben Sie gelebt?"]
    found = from_xlsform(form(tmp_path, row, INCOME), "income").schema.features
    north = {"en": "Where did you live? – North", "de": "Wo haben Sie gelebt? – Norden"}
    assert found[0] == Binary("lived_n", True, Wording(question=north))
    assert [one.name for one in found] == ["lived_n", "lived_s"]


@pytest.mark.parametrize(
    ("relevant", "only_if"),
    [
        ("${kids} = 'yes'", "kids = yes"),
        ("selected(${state}, 'n')", "state = n"),
        ("${state} != 's'", "state != s"),
        (" ${age}>=30 ", "age >= 30"),
        ("${state} = 'west'", None),
        ("${later} = 'yes'", None),
        ("${kids} = 'yes' and ${age} > 30", None),
        ("count-selected(${kids}) > 1", None),
    ],
)
def test_what_is_relevant_to_some_is_asked_of_them(tmp_path, relevant, only_if) -> None:
    path = form(
        tmp_path,
        ["integer", "age", "How old?", None, None, "yes", ". >= 18 and . <= 90"],
        ["select_one yesno", "kids", "Children?", None, None, "yes"],
        ["select_one state", "state", "Where?", None, None, "yes"],
        ["integer", "visits", "Visits?", None, None, "yes", ". >= 0 and . <= 9", relevant],
        ["select_one yesno", "later", "Later?", None, None, "yes"],
        INCOME,
    )
    found = from_xlsform(path, "income")
    visits = found.schema.features[3]
    assert visits.optional
    assert (visits.wording.only_if and str(visits.wording.only_if)) == only_if
    assert any("asked of everybody" in note for note in found.notes) == (only_if is None)
    (tmp_path / "schema.toml").write_text(to_toml(found.schema), encoding="utf-8")
    assert Schema.from_toml(tmp_path / "schema.toml") == found.schema


@pytest.mark.parametrize(
    "only_if", ["kids", "kids = perhaps", "kids > yes", "age = old", "self = yes", "income > 3", ""]
)
def test_a_skip_that_nobody_can_follow_is_refused(only_if) -> None:
    with pytest.raises(InvalidValueError):
        Schema(
            [
                Numeric("age", 0, 99),
                Binary("kids"),
                Binary("self", optional=True, wording=Wording(only_if=only_if)),
            ],
            INCOMES,
        )
    with pytest.raises(InvalidValueError, match="to be optional"):
        Schema([Binary("kids"), Binary("x", wording=Wording(only_if="kids = yes"))], INCOMES)


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


# ---- bombs: workbooks that would take far more than they have bytes
def changed(path, sheet: bytes, name: str = "xl/worksheets/sheet1.xml"):
    """The workbook with another text for one of its members."""
    with ZipFile(path) as archive:
        members = {one: archive.read(one) for one in archive.namelist()}
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for one, text in (members | {name: sheet}).items():
            archive.writestr(one, text)
    return path


SHEET = (
    b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
    b"%s</sheetData></worksheet>"
)


def test_workbooks_that_unpack_to_too_much_or_lie_about_it_are_refused(tmp_path) -> None:
    path = changed(form(tmp_path, INCOME), SHEET % (b"<row/>" * 2**22))
    assert path.stat().st_size < 2**17
    with pytest.raises(InvalidValueError, match="to unpack to at most 16,777,216 bytes, and it"):
        from_xlsform(path)
    data = path.read_bytes()
    with ZipFile(path) as archive:
        size = archive.getinfo("xl/worksheets/sheet1.xml").file_size
    path.write_bytes(data.replace(size.to_bytes(4, "little"), (1000).to_bytes(4, "little")))
    with pytest.raises(InvalidValueError, match="to be a workbook"):
        from_xlsform(path)


def test_lists_that_multiply_are_refused_before_columns_are_made(tmp_path, monkeypatch) -> None:
    """33 kB, a thousand questions of a thousand choices, took 58 s and a gigabyte."""

    def made(*_columns: object) -> None:
        raise AssertionError("a column was made")

    monkeypatch.setattr(imports, "Binary", made)
    monkeypatch.setattr(imports, "Categorical", made)
    book = openpyxl.load_workbook(form(tmp_path, INCOME))
    for number in range(1000):
        book["choices"].append(["many", str(number), f"Choice {number}"])
    for kind, number in itertools.product(("select_one", "select_multiple"), range(3)):
        book["survey"].append([f"{kind} many", f"{kind}{number}", "Which?"])
    path = tmp_path / "many.xlsx"
    book.save(path)
    with pytest.raises(InvalidValueError, match=r"at most 5,000 columns, .* got 6,001\. Leave"):
        from_xlsform(path)
    book["survey"].delete_rows(5, 4)
    long = book["survey"].cell(row=3, column=3)
    long.value = "?" * 32_000
    book["survey"].cell(row=3, column=1).value = "select_multiple many"
    book.save(path)
    with pytest.raises(InvalidValueError, match=r"at most 16,777,216 letters, .* got 32,"):
        from_xlsform(path)
    fields = [{"name": "a", "constraints": {"enum": list(range(5000))}}, {"name": "b"}]
    with pytest.raises(InvalidValueError, match=r"The Table Schema must .* got 5,001\."):
        from_table_schema({"fields": fields})


def test_a_table_that_is_too_wide_is_refused_by_its_heading(tmp_path) -> None:
    wide = [f"c{number}" for number in range(5001)]
    (tmp_path / "wide.csv").write_text(",".join(wide) + "\n")
    pq.write_table(pa.table({name: [1] for name in wide}), tmp_path / "wide.parquet")
    for name in ("wide.csv", "wide.parquet"):
        with pytest.raises(InvalidValueError, match=rf"'{name}' must .* 5,000 columns, got 5,001"):
            imports.TableGlance.at(tmp_path / name)


@pytest.mark.filterwarnings("ignore:Workbook contains no stylesheet")
@pytest.mark.parametrize(
    "text",
    [
        b'<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "' + b"&b;" * 10**4 + b'">]><a>&c;</a>',
        b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
        b"<worksheet",
        b"",
        b"\xff\xfe\0",
        SHEET % b'<row r="x"><c r="!!" t="s"><v>1e9</v></c></row>',
        SHEET % b'<row><c r="A1" t="s"><v>999999</v></c></row>',
        SHEET % b'<row><c r="A1" t="d"><v>yesterday</v></c></row>',
    ],
)
@pytest.mark.parametrize(
    "name",
    [
        "xl/worksheets/sheet1.xml",
        "xl/workbook.xml",
        "xl/sharedStrings.xml",
        "xl/styles.xml",
        "[Content_Types].xml",
    ],
)
def test_broken_xml_is_refused_with_a_reason_if_it_is_needed(tmp_path, text, name) -> None:
    path = changed(form(tmp_path, INCOME, ["select_one state", "state", "Where?"]), text, name)
    with contextlib.suppress(InvalidValueError):
        from_xlsform(path, "income")


def test_an_entity_is_never_followed_nor_a_cell_far_away(tmp_path) -> None:
    outside = b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]>'
    path = changed(form(tmp_path, INCOME), outside + SHEET % b"<row><c><v>&b;</v></c></row>")
    with pytest.raises(InvalidValueError, match=r"'form\.xlsx' to be a workbook .*ParseError"):
        from_xlsform(path)
    # A few bytes that stand for a million rows.
    far = b'<row r="1"><c r="A1"/></row><row r="1048576"><c r="XFD1048576"/></row>'
    with pytest.raises(InvalidValueError, match=r"fewer than 65,536 rows in the sheet 'survey'"):
        from_xlsform(changed(form(tmp_path, INCOME), SHEET % far))


# ---- what surveys from elsewhere have in common: a target, and all that is lacking at once
def test_the_target_is_answered_by_everybody() -> None:
    columns = [Binary("a", optional=True), Numeric("b", 0, 1, optional=True)]
    found = SurveyReader("It", columns).finish(About(), "b")
    assert found.schema.target == Numeric("b", 0, 1)
    assert found.schema.features == (Binary("a", optional=True),)
    assert found.notes == (
        "'b' is to be predicted, so everybody answers it.",
        "May be left unsaid: 'a'.",
    )
    with pytest.raises(InvalidValueError, match="target=None to be one of the questions 'a', 'b' "):
        SurveyReader("It", columns).finish(About(), None)


AGE = {"name": "age", "type": "integer", "constraints": {"minimum": 18, "maximum": 90}}
PAID = {"name": "income", "type": "number", "constraints": {"minimum": 0, "maximum": 1e5}}


@pytest.mark.parametrize(
    "schema", [survey_schema(), Schema([Binary("a")], Numeric("b", 0, 9).above(3), intercept=False)]
)
def test_table_schemas_are_written_and_read(schema) -> None:
    document = json.loads(json.dumps(to_table_schema(schema)))
    assert from_table_schema(document).schema == schema
    assert from_table_schema({"resources": [{"schema": document}]}).schema == schema


def test_what_other_tools_read() -> None:
    fields = {one["name"]: one for one in to_table_schema(survey_schema())["fields"]}
    assert fields["age"]["type"] == "number"
    assert fields["age"]["constraints"] == {"required": False, "minimum": 18, "maximum": 90}
    assert fields["field"]["constraints"] == {"required": True, "enum": ["a", "b", "c"]}
    assert (fields["age"]["title"], fields["age"]["description"]) == ("Age", "How old are you?")
    assert fields["married"]["type"] == "boolean"


def test_constraints_become_bounds_and_levels() -> None:
    document = {
        "title": "Work",
        "fields": [
            {**AGE, "title": "Age", "description": "How old?"},
            {"name": "sex", "constraints": {"enum": ["f", "m"], "required": False}},
            {"name": "size", "type": "integer", "constraints": {"enum": [1, 2, 3]}},
            {
                "name": "state",
                "type": "string",
                "categories": [{"value": "n", "label": "North"}, "s"],
            },
            {"name": "married", "type": "boolean", "constraints": {"required": True}},
            PAID,
        ],
    }
    found = from_table_schema(document, "income")
    assert found.schema.features == (
        Numeric("age", 18, 90, wording=Wording(title="Age", question="How old?")),
        Categorical("sex", ["f", "m"], optional=True),
        Categorical("size", ["1", "2", "3"]),
        Categorical("state", ["n", "s"], wording=Wording(labels={"n": "North"})),
        Binary("married"),
    )
    assert found.schema.target == Numeric("income", 0, 1e5)
    assert str(found.schema.about.title) == "Work"
    assert found.notes == ("May be left unsaid: 'sex'.",)


def test_what_a_table_schema_lacks_is_named() -> None:
    fields = [
        {"name": "age", "type": "integer", "constraints": {"minimum": 18}},
        {"name": "weight", "type": "number"},
        {"name": "name", "type": "string"},
        {"name": "born", "type": "date"},
        PAID,
    ]
    with pytest.raises(InvalidValueError) as refused:
        from_table_schema({"fields": fields}, "income")
    for words in (
        "'age' is a number without constraints.maximum;",
        "'weight' is a number without constraints.minimum and maximum",
        "'name' is text without constraints.enum",
        "'born' is of type 'date'",
    ):
        assert words in str(refused.value)


@pytest.mark.parametrize("document", [[], {}, {"fields": "x"}, {"fields": [3]}, {"resources": []}])
def test_what_is_no_table_schema(document) -> None:
    with pytest.raises(InvalidValueError, match="Expected a Table Schema in JSON"):
        from_table_schema(document, "income")
