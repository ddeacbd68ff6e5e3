"""Tables as people have them: what is meant is read, and what is wrong is named."""

import hashlib
import re

import numpy as np
import openpyxl
import pyarrow as pa
import pytest
from pyarrow import parquet

from blurfit.errors import InvalidValueError
from blurfit.schema.columns import Binary, Categorical, Numeric, Wording
from blurfit.schema.schema import Schema
from blurfit.schema.table_files import _ROWS_AT_ONCE, TableFile

SCHEMA = Schema(
    features=[Numeric("age", 0, 100), Binary("married"), Categorical("sex", ["f", "m"])],
    target=Numeric("income", 0, 1000),
)
PEOPLE = {"age": [31.0, 42.5, 53.0, 64.0, 75.0], "married": [0, 1, 1, 0, 1]}
PEOPLE |= {"sex": ["f", "m", "m", "f", "f"], "income": [100.0, 200.0, 300.0, 400.0, 500.0]}
NAMES = list(PEOPLE)
TEXT = "age,married,sex,income\n31,0,f,100\n42.5,1,m,200\n53,1,m,300\n64,0,f,400\n75,1,f,500\n"


def checked(file: TableFile) -> int:
    """How many rows there are, all of them encoded."""
    return sum(len(x) for x, _ in file.encoded())


def csv_file(folder, content: str | bytes) -> TableFile:
    path = folder / "people.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return TableFile(path, SCHEMA)


def parquet_file(folder, columns: dict, **options) -> TableFile:
    path = folder / "people.parquet"
    parquet.write_table(pa.table(columns), path, **options)
    return TableFile(path, SCHEMA)


@pytest.fixture(params=["csv", "parquet"])
def people(request, tmp_path) -> TableFile:
    if request.param == "csv":
        return csv_file(tmp_path, TEXT)
    return parquet_file(tmp_path, PEOPLE, row_group_size=2)


def joined(file: TableFile, rows: int = 10, *, skip: int = 0) -> dict[str, list]:
    """All chunks as one table of plain values."""
    whole: dict[str, list] = {name: [] for name in file.names}
    for part in file.chunks(rows, skip=skip):
        lengths = {len(column) for column in part.values()}
        assert len(lengths) == 1
        assert 0 < lengths.pop() <= rows
        for name, column in part.items():
            whole[name].extend(np.asarray(column).tolist())
    return whole


# ---- both kinds
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 100])
def test_chunks_are_the_table_in_order(people, rows: int) -> None:
    assert joined(people, rows) == PEOPLE


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
@pytest.mark.parametrize("skip", range(7))
def test_skipped_rows_are_the_first_and_no_others(people, rows: int, skip: int) -> None:
    assert joined(people, rows, skip=skip) == {name: v[skip:] for name, v in PEOPLE.items()}


def test_a_good_file_is_counted_and_encodes_as_the_values_do(people) -> None:
    assert checked(people) == 5
    (part,) = people.chunks()
    read, expected = SCHEMA.encode(part), SCHEMA.encode(PEOPLE)
    np.testing.assert_array_equal(read.features, expected.features)
    np.testing.assert_array_equal(read.target, expected.target)


def test_those_who_predict_need_no_target(tmp_path) -> None:
    without = {name: column for name, column in PEOPLE.items() if name != "income"}
    for file in (csv_file(tmp_path, "age,married,sex\n31,0,f\n"), parquet_file(tmp_path, without)):
        with pytest.raises(InvalidValueError, match="income"):
            checked(file)
        asked = TableFile(file.path, SCHEMA, only=("age", "married", "sex"))
        assert asked.names == ["age", "married", "sex"]
        assert joined(asked)["sex"][0] == "f"


def test_order_does_not_matter_and_other_columns_are_left_alone(tmp_path) -> None:
    text = "name,income,sex,married,age\nAnn,100,f,0,31\n"
    assert joined(csv_file(tmp_path, text)) == {name: v[:1] for name, v in PEOPLE.items()}
    more = {"name": ["Ann"], **{name: PEOPLE[name][:1] for name in reversed(NAMES)}}
    assert joined(parquet_file(tmp_path, more)) == {name: v[:1] for name, v in PEOPLE.items()}


def test_a_missing_column_is_named_beside_those_that_there_are(tmp_path) -> None:
    for file in (
        csv_file(tmp_path, "age,sex,Income\n31,f,100\n"),
        parquet_file(tmp_path, {"age": [31.0], "sex": ["f"], "Income": [100.0]}),
    ):
        with pytest.raises(InvalidValueError, match="married, income in 'people") as refusal:
            checked(file)
        assert "none of its 3 columns" in str(refusal.value)


def test_no_rows_and_no_file_are_refused_with_what_is_lacking(tmp_path) -> None:
    empty = {name: pa.array(column[:0], pa.array(column).type) for name, column in PEOPLE.items()}
    for file in (csv_file(tmp_path, TEXT.splitlines()[0] + "\n"), parquet_file(tmp_path, empty)):
        with pytest.raises(InvalidValueError, match="at least one row"):
            checked(file)
    for path in (tmp_path / "nowhere.csv", tmp_path):
        with pytest.raises(InvalidValueError, match="age, married, sex, income") as refusal:
            TableFile(path, SCHEMA)
        assert str(path) in str(refusal.value)


def test_the_digest_is_that_of_the_bytes(people) -> None:
    assert people.digest() == hashlib.sha256(people.path.read_bytes()).hexdigest()


# ---- CSV
SPREADSHEETS = {
    "byte order mark": b"\xef\xbb\xbf" + TEXT.encode(),
    "Windows": TEXT.replace("\n", "\r\n"),
    "old Macintosh": TEXT.replace("\n", "\r"),
    "blank lines": TEXT.replace("\n", "\n\n\n"),
    "no end of line": TEXT.rstrip("\n"),
    "quotes": re.sub("([^,\n]+)", r'"\1"', TEXT),
    "spaces": TEXT.replace(",m,", ", m ,").replace("42.5", " 42.5"),
    "exponent": TEXT.replace("42.5", "4.25e1"),
    "words for binary": TEXT.replace(",1,", ",True,").replace(",0,", ",FALSE,"),
}


@pytest.mark.parametrize("kind", SPREADSHEETS)
def test_what_a_spreadsheet_writes_is_read(tmp_path, kind: str) -> None:
    file = csv_file(tmp_path, SPREADSHEETS[kind])
    assert checked(file) == 5
    assert joined(file) == PEOPLE


def test_quotes_may_hold_commas_quotes_and_lines(tmp_path) -> None:
    text = 'note,age,married,sex,income\n"one, ""two""\nthree",31,0,f,100\n,42.5,1,m,200\n'
    assert joined(csv_file(tmp_path, text)) == {name: v[:2] for name, v in PEOPLE.items()}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("53,1,m", "Expected 4 values in each row of 'people.csv', as in its heading, and row 4"),
        ("53,1,m,300,", "row 4 has 5"),
        ("53,1,,300", "a missing value of 'sex'"),
        (",1,m,300", "a missing value of 'age'"),
        ("53, ,m,300", "a missing value of 'married'"),
        ("old,1,m,300", "a value of 'age' which is not a number"),
        ("5 3,1,m,300", "a value of 'age' which is not a number"),
        ('"53,0",1,m,300', "a value of 'age' which is not a number"),
        ("nan,1,m,300", "a missing value of 'age'"),
        ("53,1,m,inf", "a value of 'income' which is not finite"),
        ("53,perhaps,m,300", "a value of 'married' which is neither 0 nor 1"),
        ("53,2,m,300", "a value of 'married'"),
        ("53,1,x,300", "a value of 'sex' which is none of its levels 'f', 'm'"),
    ],
)
def test_a_bad_row_is_named_with_its_value(tmp_path, line: str, message: str) -> None:
    file = csv_file(tmp_path, TEXT.replace("53,1,m,300", line))
    with pytest.raises(InvalidValueError) as refusal:
        checked(file)
    assert message in str(refusal.value)
    assert re.match(
        "Row 4 of 'people.csv' .the heading is row 1. has|.* row 4 has", str(refusal.value)
    )


@pytest.mark.parametrize(("last", "words"), [("bad,1,m,200", "^Row {} of"), ("42,1,m", "row {} h")])
def test_a_bad_row_far_down_is_found_where_it_is(tmp_path, last: str, words: str) -> None:
    lines = ["31,0,f,100"] * _ROWS_AT_ONCE + ["42,1,m,200"] * 7 + [last]
    file = csv_file(tmp_path, "\n".join(["age,married,sex,income", *lines]))
    with pytest.raises(InvalidValueError, match=words.format(_ROWS_AT_ONCE + 9)):
        checked(file)


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (TEXT.replace("sex", "größe").encode("cp1252"), "cp1252"),
        (TEXT.replace("sex", "größe").encode("utf-16"), "utf-16"),
        (TEXT.replace("sex", "größe").encode("utf-8-sig"), "utf-8-sig"),
    ],
)
def test_the_encoding_may_be_said(tmp_path, content: bytes, encoding: str) -> None:
    path = csv_file(tmp_path, content).path
    schema = Schema([Categorical("größe", ["f", "m"])], Numeric("income", 0, 1000))
    file = TableFile(path, schema, encoding=encoding)
    assert joined(file)["größe"] == ["f", "m", "m", "f", "f"]
    for unknown in ("rot13", "cp9999", "a\0b"):
        with pytest.raises(InvalidValueError, match="`encoding` must name an encoding"):
            joined(TableFile(path, schema, encoding=unknown))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "none of its 0 columns"),
        (b"\xef\xbb\xbf", "none of its 0 columns"),
        (b"\n\n", "none of its 0 columns"),
        (TEXT.replace("f", "\xfc").encode("latin-1"), "often `--encoding cp1252`"),
        (TEXT.encode("utf-16"), "people.csv"),
        (TEXT.encode() + b"1,\x00,f,3\n", "people.csv"),
        (TEXT.encode() + b'1,"' + b"x" * 200_000 + b'",f,3\n', "people.csv"),
        (b"PAR1" + bytes(range(256)), "people.csv"),
        (b"age,age,married,sex,income\n31,99,0,f,100\n", "the columns age once"),
    ],
    ids=["empty", "mark alone", "blank", "Latin-1", "UTF-16", "zero", "endless", "binary", "twice"],
)
def test_what_is_no_csv_file_is_refused(tmp_path, content: bytes, message: str) -> None:
    file = csv_file(tmp_path, content)
    with pytest.raises(InvalidValueError) as refusal:
        checked(file)
    assert message in str(refusal.value)


GERMAN = "age;married;sex;income\n31;nein;Frau;100\n42,5;ja;Mann;200\n53;ja;m;300\n"
GERMAN += "64;Nein;f;400,0\n75;1;FRAU;500\n"
IN_GERMAN = Schema(
    [
        SCHEMA.features[0],
        Binary("married", wording=Wording(labels={"yes": {"de": "ja"}, "no": {"de": "nein"}})),
        Categorical("sex", ["f", "m"], wording=Wording(labels={"f": {"de": "Frau"}, "m": "Mann"})),
    ],
    SCHEMA.target,
)


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_what_a_german_spreadsheet_writes_is_read(tmp_path, separator: str) -> None:
    path = tmp_path / "people.csv"
    path.write_text("\ufeff" + GERMAN.replace(";", separator), encoding="utf-8")
    assert joined(TableFile(path, IN_GERMAN)) == PEOPLE


def test_numbers_of_two_meanings_are_refused_and_points_separate_thousands(tmp_path) -> None:
    far = Schema(SCHEMA.features, Numeric("income", 0, 1e9))
    path = tmp_path / "people.csv"
    body = "31;0;f;1.030,63\n42,5;1;m;1.234.567\n53;1;m;-2.000\n64;0;f;12,5\n75;1;f;1 000\n"
    path.write_text("age;married;sex;income\n" + body)
    assert joined(TableFile(path, far))["income"] == [1030.63, 1234567.0, -2000.0, 12.5, 1000.0]
    path.write_text("age;married;sex;income\n31;0;f;1.030\n42;1;m;2.000\n")
    with pytest.raises(InvalidValueError, match="may separate thousands, or decimals"):
        checked(TableFile(path, SCHEMA))
    path.write_text("age;married;sex;income\n31;0;f;1.030\n42;1;m;2.5\n")  # now it is clear
    assert joined(TableFile(path, SCHEMA))["income"] == [1.03, 2.5]


def test_what_two_answers_are_called_is_neither(tmp_path) -> None:
    words = {"f": {"en": "a person", "de": "Frau"}, "m": {"en": "A person", "de": "Mann"}}
    sex = Categorical("sex", ["f", "m"], wording=Wording(labels=words))
    path = tmp_path / "people.csv"
    path.write_text("sex,income\nMann,1\na person,2\n")
    with pytest.raises(InvalidValueError, match=r"^Row 3 .* none of its levels"):
        checked(TableFile(path, Schema([sex], SCHEMA.target)))


# ---- workbooks
def workbook_file(folder, rows: list[list]) -> TableFile:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.create_sheet("notes").append(["not", "read"])
    book.save(folder / "people.xlsx")
    return TableFile(folder / "people.xlsx", IN_GERMAN)


def test_a_workbook_is_read_as_its_first_sheet_and_named_as_it_does(tmp_path) -> None:
    rows = [list(row) for row in zip(*PEOPLE.values(), strict=True)]
    rows[0][1], rows[1][1], rows[2][2] = False, "ja", "Mann"
    file = workbook_file(tmp_path, [NAMES, *rows, [None] * 4])
    assert checked(file) == 5
    assert joined(file, 2) == PEOPLE
    assert joined(file, 2, skip=3) == {name: v[3:] for name, v in PEOPLE.items()}
    file = workbook_file(tmp_path, [NAMES, [31, 0, "f", 100], [42, None, "m", 200]])
    with pytest.raises(InvalidValueError, match=r"^Row 3 of 'people\.xlsx' .* missing value"):
        checked(file)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("people.xlsx", one) for one in (b"", b"PK", b"age,married\n", bytes(range(256)) * 8)),
        *(("people.parquet", one) for one in (b"", b"a,b\n", b"PAR1" * 10, b"PAR1\0\0\0\0PAR1")),
    ],
)
def test_what_is_no_workbook_or_parquet_file_is_refused(tmp_path, name, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidValueError, match=r"to be a (workbook that|Parquet file)"):
        checked(TableFile(tmp_path / name, SCHEMA))


# ---- Parquet
def test_kinds_of_parquet_columns_that_mean_the_same_are_read_alike(tmp_path) -> None:
    other = {
        "age": pa.array(PEOPLE["age"], pa.float32()),
        "married": pa.array([bool(one) for one in PEOPLE["married"]]),
        "sex": pa.array(PEOPLE["sex"]).dictionary_encode(),
        "income": pa.array([int(one) for one in PEOPLE["income"]], pa.int16()),
    }
    test_a_good_file_is_counted_and_encodes_as_the_values_do(parquet_file(tmp_path, other))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("age", None, "a missing value"),
        ("sex", None, "a missing value"),
        ("married", 3, "a value of 'married'"),
        ("sex", "x", "a value of 'sex'"),
        ("income", float("inf"), "a value of 'income'"),
    ],
)
def test_a_bad_row_of_parquet_is_named(tmp_path, column: str, value, message: str) -> None:
    bad = {**PEOPLE, column: [*PEOPLE[column][:2], value, *PEOPLE[column][3:]]}
    with pytest.raises(InvalidValueError, match=r"^Row 3 of 'people\.parquet' ") as refusal:
        checked(parquet_file(tmp_path, bad))
    assert message in str(refusal.value)
