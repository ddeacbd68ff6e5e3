"""XLSForm: each cell is applied, refused by name, or named as left out."""

import contextlib
import itertools
from zipfile import ZIP_DEFLATED, ZipFile

import openpyxl
import pytest

from blurfit import Binary, Categorical, Numeric, Schema, Wording
from blurfit.errors import InvalidValueError
from blurfit.schema import xlsforms
from blurfit.schema.imports import to_toml
from blurfit.schema.xlsforms import Row, _bounds, from_xlsform

HEAD = ["type", "name", "label", "label::Deutsch (de)", "hint", "required", "constraint"]
HEAD += ["relevant", "parameters"]
CHOICES = [
    ["list_name", "name", "label", "label::Deutsch (de)"],
    ["yesno", "yes", "Yes", "Ja"],
    ["yesno", "no", "No", "Nein"],
    ["state", "n", "North", "Norden"],
    ["state", "s", "South", None],
    ["one", "x", "X", None],
    ["twice", "x", "X", None],
    ["twice", "y", "Y", None],
    ["twice", "x", "Z", None],
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


LEFT_OUT = "Rows left out, as only numbers, yes or no and choices can be blurred"
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
        f"{LEFT_OUT}: 2 'start' (start), 3 'welcome' (note).",
        "Lists of choices that no question has: 'one', 'twice'.",
        "May be left unsaid: 'state', 'rent'.",
    )


def test_what_is_missing_is_named(tmp_path) -> None:
    path = form(
        tmp_path,
        ["integer", "age", "How old?"],
        ["decimal", "rent", "Rent?", None, None, None, ". > 0"],
        ["decimal", "debt", "Debt?", None, None, None, ". > 0 and . < ${rent}"],
        ["decimal", "pay", "Pay?", None, None, None, ". > 0 and . < 5 or . = 99"],
        ["select_multiple none", "states", "Where?"],
        ["select_one none", "single", "Which?"],
        ["end_group"],
        ["integer", None, "Nameless?"],
        ["integer", "income", "The same name?", None, None, None, ". >= 0 and . <= 9"],
        ["decimal", "low", "Rent?", None, None, None, ". > 9 and . < 3"],
        ["end_group"],
        ["begin_group", "you", "You"],
        INCOME,
    )
    with pytest.raises(InvalidValueError) as refused:
        from_xlsform(path, "income", bounds={"absent": (0, 1)})
    for words in (
        "which need a constraint such as `.>=0 and .<=100` or `--bounds NAME LOWEST HIGHEST`: "
        "2 'age', 3 'rent', 4 'debt', 5 'pay';",
        "questions without choices in their list: 6 'states' (none), 7 'single' (none);",
        "questions without a name: 9;",
        "row 11: Expected lower=9.0 < upper=3.0 for 'low'",
        "ends of groups that did not begin: 8, 12;",
        "groups without an end: 13 'you';",
        "questions with the name of an earlier one: 14 'income';",
        "'absent' has `--bounds`, and no number is called so",
    ):
        assert words in str(refused.value)
    with pytest.raises(InvalidValueError) as refused:
        from_xlsform(path, "income", name="the form of mine.xlsx")
    assert "'the form of mine.xlsx'" in str(refused.value)
    assert "--bounds" not in str(refused.value)


def test_lists_that_say_too_little_or_too_much(tmp_path) -> None:
    """One choice is nobody's answer; a value that is listed twice is one answer."""
    rows = (["select_one one", "single", "Which?"], ["select_one twice", "again", "Which?"])
    found = from_xlsform(form(tmp_path, *rows, INCOME), "income")
    labels = {"x": "X", "y": "Y"}
    question = Wording(question="Which?", labels=labels)
    assert found.schema.features == (Categorical("again", ["x", "y"], True, question),)
    assert f"{LEFT_OUT}: 2 'single' (one choice)." in found.notes
    twice = "Rows whose list has a choice twice, of which the first is shown: 3 'again' (x)."
    assert twice in found.notes


def test_several_answers_that_some_are_asked_for_are_not_predicted(tmp_path) -> None:
    several = ["select_multiple state", "lived", "Where?", *[None] * 4, "${income} > 3"]
    found = from_xlsform(form(tmp_path, INCOME, several), "")
    assert found.schema.target.name == "income"
    with pytest.raises(InvalidValueError, match="that everybody is asked, 'income', got 'lived_n'"):
        from_xlsform(tmp_path / "form.xlsx", "lived_n")


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
    assert _bounds(Row(2, {("constraint", ""): constraint})) == bounds


@pytest.mark.parametrize(
    ("parameters", "bounds"),
    [
        ("start=-5 end = 5 step=1", (-5, 5)),
        ("end=5", (1, 5)),
        ("", (1, 10)),
        ("start=0 end=1e5", None),
    ],
)
def test_a_range_has_numbers_for_its_ends(parameters, bounds) -> None:
    assert _bounds(Row(2, {("parameters", ""): parameters}), is_range=True) == bounds


def test_what_is_no_form(tmp_path) -> None:
    book = openpyxl.Workbook()
    book.save(tmp_path / "other.xlsx")
    with pytest.raises(InvalidValueError, match="a sheet named survey, got the sheets 'sheet'"):
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

    monkeypatch.setattr(xlsforms, "Binary", made)
    monkeypatch.setattr(xlsforms, "Categorical", made)
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


def cells(*rows: str) -> bytes:
    return SHEET % "".join(rows).encode()


def test_what_a_sheet_has_in_a_few_bytes(tmp_path, monkeypatch) -> None:
    """Empty rows to the last that there can be are read over; what stands in them is counted."""
    text = '<c r="{}" t="inlineStr"><is><t>{}</t></is></c>'
    head = "".join(text.format(*one) for one in (("A1", "type"), ("B1", "name")))
    head = f'<row r="1">{head}</row>'
    far = '<row r="1048576"><c r="XFD1048576"/></row>'
    path = changed(form(tmp_path, INCOME), cells(head, far))
    with pytest.raises(InvalidValueError, match="at least two questions"):
        from_xlsform(path)
    wide = f'<row r="2">{text.format("IW2", "x")}</row>'
    with pytest.raises(InvalidValueError, match="must have at most 65,536 rows and 256 columns"):
        from_xlsform(changed(path, cells(head, wide)))
    rows = "<row>" + text.format("A2", "x").replace(' r="A2"', "") + "</row>"
    monkeypatch.setattr("blurfit.schema.xlsforms._MAX_ROWS", 100)
    with pytest.raises(InvalidValueError, match="must have at most 100 rows and 256 columns"):
        from_xlsform(changed(path, cells(head, rows * 100)))


# ---- what forms say in other ways, and what is left out of them
def book_of(path, **sheets):
    """A workbook with these rows in its sheets."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


KIDS = ["select_one yn", "kids", "Children?", "yes", None]
PAY = ["integer", "pay", "Pay?", "yes", ". >= 0 and . <= 9"]
YES_NO = [["list_name", "name", "label"], ["yn", "yes", "Yes"], ["yn", "no", "No"]]
PLAIN = ["type", "name", "label", "required", "constraint"]


def read(tmp_path, heading, *rows, target="pay", **more):
    """Read a form: a heading and rows between a question on children and one on pay."""
    width = len(heading) - len(PLAIN)
    pad = [None] * width
    rows = [[*PLAIN, *heading[len(PLAIN) :]], [*KIDS, *pad], *rows, [*PAY, *pad]]
    rows[0][: len(PLAIN)] = heading[: len(PLAIN)]
    sheets = {"survey": rows, "choices": YES_NO} | more
    return from_xlsform(book_of(tmp_path / "form.xlsx", **sheets), target)


@pytest.mark.parametrize(
    "heading",
    ["relevant", "Relevant", "relevance", "bind::relevant", "bind:relevant", " RELEVANCE"],
)
def test_whom_a_question_is_asked_of_by_any_name(tmp_path, heading) -> None:
    ages = ["integer", "ages", "Ages?", "yes", ". >= 0 and . <= 99", '${kids} = "yes"']
    found = read(tmp_path, [*PLAIN, heading], ages)
    question = found.schema.features[1]
    assert question.optional
    assert str(question.wording.only_if) == "kids = yes"
    assert found.notes == ("May be left unsaid: 'ages'.",)


def test_whom_a_group_is_asked_of(tmp_path) -> None:
    """Its questions are conditional, those of groups in it too: never compulsory for everybody."""
    heading = [*PLAIN, "relevant"]
    limits = ". >= 0 and . <= 99"
    found = read(
        tmp_path,
        heading,
        ["begin_group", "family", "Family", None, None, "${kids} = 'yes'"],
        ["integer", "number", "How many?", "yes", limits],
        ["begin group", "old", None, None, None, "${number} > 3"],
        ["integer", "ages", "Ages?", "yes", limits],
        ["end group"],
        ["begin group", "same", None, None, None, " ${kids}  = 'yes'"],
        ["integer", "costs", "Costs?", "yes", limits, "true()"],
        ["end group"],
        ["end_group"],
        ["begin_group", "nobody", None, None, None, "false()"],
        ["integer", "never", "Never?", "yes", limits],
        ["end_group"],
    )
    number, ages, costs = found.schema.features[1:]
    assert [one.optional for one in (number, ages, costs)] == [True] * 3
    assert str(number.wording.only_if) == str(costs.wording.only_if) == "kids = yes"
    assert ages.wording.only_if is None
    assert str(costs.wording.section) == "Family"
    assert found.notes == (
        "Rows asked of everybody, who need not say, because `relevant` is more than one comparison "
        "of an earlier answer: 6 'ages'.",
        f"{LEFT_OUT}: 12 'nobody' (never asked), 13 'never' (never asked).",
        "May be left unsaid: 'number', 'ages', 'costs'.",
    )
    for target in ("number", "ages"):
        with pytest.raises(InvalidValueError, match=r"that everybody is asked, 'kids', 'pay', got"):
            from_xlsform(tmp_path / "form.xlsx", target)
    assert from_xlsform(tmp_path / "form.xlsx", "").schema.target.name == "pay"


def test_what_is_predicted_is_asked_last(tmp_path) -> None:
    ages = ["integer", "ages", "Ages?", "yes", ". >= 0 and . <= 99", "${kids} = 'yes'"]
    found = read(tmp_path, [*PLAIN, "relevant"], ages, target="kids")
    assert found.schema.features[0] == Numeric(
        "ages", 0, 99, "refuse", optional=True, wording=Wording(question="Ages?")
    )
    assert "Asked of everybody, because 'kids' is asked last: 'ages'." in found.notes


def test_older_headings_and_types(tmp_path) -> None:
    heading = ["Type", "Name", "Caption", "bind::required", "Constraint"]
    limits = ". >= 0 and . <= 99"
    found = read(
        tmp_path,
        heading,
        ["select one from yn", "a", "A?", "TRUE"],
        ["select1 yn", "b", "B?", "yes"],
        ["add select one prompt using yn", "c", "C?", True],
        ["select all that apply from yn", "d", "D?", "yes"],
        ["select multiple yn", "e", "E?", "yes"],
        ["int", "f", "F?", "yes", limits],
        ["add integer prompt", "g", "G?", "true()", limits],
    )
    names = ["kids", "a", "b", "c", "d_yes", "d_no", "e_yes", "e_no", "f", "g"]
    assert [one.name for one in found.schema.features] == names
    assert not any(one.optional for one in found.schema.features)
    assert str(found.schema.features[1].wording.question) == "A?"
    assert found.notes == ()


def test_other_is_a_choice_of_its_own(tmp_path) -> None:
    found = read(
        tmp_path,
        PLAIN,
        ["select_one yn or_other", "moved", "Moved?", "yes"],
        ["select_multiple yn or specify other", "why", "Why?", "yes"],
    )
    moved, *why = found.schema.features[1:]
    assert moved == Categorical("moved", ["yes", "no", "other"], wording=moved.wording)
    assert [one.name for one in why] == ["why_yes", "why_no", "why_other"]
    assert found.notes == ("Rows without free text where people choose other: 3 'moved', 4 'why'.",)


def test_what_cannot_be_blurred_is_left_out_by_name(tmp_path) -> None:
    """One question in words, or on a date, does not block a form."""
    heading = [*PLAIN, "disabled", "calculation", "appearance", "read_only"]
    found = read(
        tmp_path,
        heading,
        ["text", "name", "Name?", "yes"],
        ["date", "born", "Born?", "yes"],
        ["geopoint", "home", "Home?"],
        ["note", None, "Thank you"],
        ["intger", "typo", "A number?"],
        ["integer", "old", "Old?", None, None, "yes"],
        ["integer", "twice", "Twice?", None, None, None, "${pay} * 2"],
        ["select_one yn", "town", "Town?", None, None, None, None, "minimal search('towns')"],
        ["integer", "fixed", "Fixed?", None, None, None, None, None, "yes"],
        ["begin repeat", "children", "Children"],
        ["begin group", "one", "One"],
        ["integer", "size", "Size?", "yes"],
        ["end group"],
        ["end repeat"],
        [None, None, None, None, "a remark"],
        ["select_one_from_file towns.csv", "place", "Place?"],
    )
    assert [one.name for one in found.schema.asked] == ["kids", "pay"]
    assert found.notes == (
        f"{LEFT_OUT}: 3 'name' (text), 4 'born' (date), 5 'home' (geopoint), 6 (note), "
        "7 'typo' (intger), 8 'old' (disabled), 9 'twice' (calculated), 10 'town' (search()), "
        "11 'fixed' (read_only), 12 'children' (repeat), 13 'one' (repeat), 14 'size' (repeat), "
        "17 (no type), 18 'place' (select_one_from_file towns.csv).",
    )


def test_what_else_stands_in_a_form_is_named(tmp_path) -> None:
    heading = [
        *PLAIN,
        "choice_filter",
        "appearance",
        "default",
        "label::Français",
        None,
        "required ",
    ]
    heading = heading[:-1]
    choices = [[*YES_NO[0], "image"], [*YES_NO[1], "yes.png"], YES_NO[2], ["spare", "x", "X"]]
    choices += [["yn", None, "Nameless"]]
    settings = [["form_title", "version", "default_language"], ["Pay", "3", "English (en)"]]
    found = read(
        tmp_path,
        heading,
        ["select_one yn", "a", "A, ${pay}?", "${kids} = 'yes'", None, "x = ${kids}"],
        ["select_multiple yn", "b", "B?", "yes", "count-selected(.) < 2", None, "minimal"],
        ["integer", "c", "C?", "yes", ". >= 0 and . <= 5", None, None, 3, "C ?", "remark"],
        choices=choices,
        settings=settings,
        entities=[["list_name"]],
    )
    assert str(found.schema.about.title) == "Pay"
    assert found.schema.features[1].optional
    assert set(found.notes) == {
        "Rows of choices left out, as they have no list or no name: 5.",
        "Rows that show `${…}` as written, as no answer is put into a text: 3 'a'.",
        "Rows that may be left unsaid, as `required` is a condition: 3 'a'.",
        "Rows with all their choices, as `choice_filter` is left out: 3 'a'.",
        "Rows with every answer accepted, as `constraint` is left out: 4 'b'.",
        "Columns of the sheet survey that are left out: 'appearance', 'default', "
        "'label::Français', 'column 10'.",
        "Columns of the sheet choices that are left out: 'image'.",
        "Settings that are left out: 'version'.",
        "Lists of choices that no question has: 'spare'.",
        "Sheets that are left out: 'entities'.",
        "A language has a code, as in label::Deutsch (de); without one: 'label::Français'.",
        "May be left unsaid: 'a'.",
    }


def test_a_language_without_a_code_is_that_of_the_form(tmp_path) -> None:
    heading = ["type", "name", "label::English", "required", "constraint", "label::Deutsch (de)"]
    row = ["select_one yn", "moved", "Moved?", "yes", None, "Umgezogen?"]
    found = read(tmp_path, heading, row)
    question = found.schema.features[1].wording.question
    assert question.to_plain() == {"en": "Moved?", "de": "Umgezogen?"}
    assert found.notes == ()
    heading = ["type", "name", "label:English", "required", "constraint", "label:Français"]
    settings = [["default_language"], ["Français"]]
    found = read(tmp_path, heading, row, settings=settings)
    assert str(found.schema.features[1].wording.question) == "Umgezogen?"
    assert found.notes == (
        "Columns of the sheet survey that are left out: 'label:English'.",
        "A language has a code, as in label::Deutsch (de); without one: 'label:English'.",
    )


def test_a_column_that_is_there_twice_is_refused(tmp_path) -> None:
    with pytest.raises(InvalidValueError, match="each column once, got 'relevant' and 'Relevance'"):
        read(tmp_path, [*PLAIN, "relevant", "Relevance"])
    with pytest.raises(InvalidValueError, match=r"type among them, got 'My form'"):
        from_xlsform(book_of(tmp_path / "form.xlsx", survey=[["My form"], PLAIN, KIDS, PAY]))


def test_bounds_may_be_said_by_hand(tmp_path) -> None:
    rows = [PLAIN, KIDS, PAY[:4], ["integer", "rent", "Rent?", "yes", ". >= 0 or . = 99"]]
    path = book_of(tmp_path / "form.xlsx", survey=rows, choices=YES_NO)
    found = from_xlsform(path, "pay", bounds={"pay": (0, 5), "rent": (0, 99)})
    assert (found.schema.target.lower, found.schema.target.upper) == (0, 5)
    assert found.notes == (
        "Rows with every answer accepted, as `constraint` is left out: 4 'rent'.",
    )


def test_a_form_without_anything_to_predict(tmp_path) -> None:
    path = book_of(tmp_path / "form.xlsx", survey=[PLAIN, ["text", "name", "Name?"]])
    with pytest.raises(InvalidValueError) as refused:
        from_xlsform(path, "")
    assert "at least two questions that can be blurred" in str(refused.value)
    assert "2 'name' (text)" in str(refused.value)
