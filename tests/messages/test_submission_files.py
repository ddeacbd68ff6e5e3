"""Files of submissions: what was written is read, and what is wrong is refused by name."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blurfit import Agreement, InvalidValueError, Numeric, Schema, perturb_table
from blurfit.messages import files
from blurfit.messages.files import Writer, open_submissions

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 100))


def propose(**changes) -> Agreement:
    promise = {"epsilon": 1, "delta": 1e-6, "quorum": 20}
    return Agreement.propose(SCHEMA, **promise | changes)


AGREEMENT = propose()
TABLE = perturb_table(AGREEMENT, {c: np.linspace(0, 100, 50) for c in ("age", "income")})


@pytest.fixture(params=[".parquet", ".arrow"])
def path(request, tmp_path):
    return tmp_path / f"blurred{request.param}"


def write(path, table=TABLE, agreement=AGREEMENT, **options) -> None:
    with Writer(path, agreement.layout, **options) as writer:
        writer.add(table)


def read(path, agreement=AGREEMENT):
    with open_submissions(path, agreement.layout) as file:
        parts = [part for group in range(file.groups) for part in file.parts(group)]
        assert sum(file.rows(group) for group in range(file.groups)) == file.all_rows()
        return [np.concatenate(column) for column in zip(*parts, strict=True)]


def test_what_was_written_is_read(path, monkeypatch) -> None:
    monkeypatch.setattr(files, "MOST_ROWS", 16)
    agreement = propose()
    table = perturb_table(agreement, {c: np.linspace(0, 100, 50) for c in ("age", "income")})
    with Writer(path, agreement.layout, released="ab") as writer:
        for cut in (slice(0, 3), slice(3, 40), slice(40, 50)):
            writer.append(table.identifiers[cut], table.numbers[cut])
    assert writer.rows == 50
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    identifiers, found = read(path, agreement)
    np.testing.assert_array_equal(identifiers, table.identifiers)
    np.testing.assert_array_equal(found, table.numbers)
    with open_submissions(path, agreement.layout) as file:
        assert [file.rows(group) for group in range(file.groups)] == [16, 16, 16, 2]
        assert file.released == "ab"


@pytest.fixture
def parquet(tmp_path):
    write(tmp_path / "blurred.parquet")
    return tmp_path / "blurred.parquet"


@pytest.fixture
def arrow(tmp_path):
    write(tmp_path / "blurred.arrow")
    return tmp_path / "blurred.arrow"


def test_numbers_are_read_in_place(arrow) -> None:
    with open_submissions(arrow, AGREEMENT.layout) as file:
        ((_, numbers),) = file.parts(0)
        assert not numbers.flags.owndata
        assert numbers.flags.c_contiguous


def test_large_row_groups_of_others_are_read_in_parts(parquet, monkeypatch) -> None:
    monkeypatch.setattr(files, "MOST_ROWS", 16)
    with open_submissions(parquet, AGREEMENT.layout) as file:
        assert file.groups == 1
        assert max(len(identifiers) for identifiers, _ in file.parts(0)) <= 16
    np.testing.assert_array_equal(read(parquet)[0], TABLE.identifiers)


def test_other_kinds_of_file_are_neither_read_nor_written(tmp_path) -> None:
    (tmp_path / "x.parquet").write_text("age,income\n")
    with pytest.raises(InvalidValueError, match=r"x\.parquet.*begins with b'age,in'"):
        read(tmp_path / "x.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "y.parquet")
    with pytest.raises(InvalidValueError, match=r"format=None.*y\.parquet"):
        read(tmp_path / "y.parquet")
    with (
        pytest.raises(InvalidValueError, match=r"end in one of \.parquet, \.arrow"),
        Writer(tmp_path / "blurred.csv", AGREEMENT.layout),
    ):
        pass


def test_another_agreement_is_refused(path) -> None:
    write(path)
    with pytest.raises(InvalidValueError, match="made for another agreement"):
        read(path, propose(epsilon=2))


@pytest.mark.parametrize(
    ("place", "name", "column", "words"),
    [
        (1, "numbers", lambda _: pa.array([[1.0, 2.0]] * 50, pa.list_(pa.float64(), 2)), r"\[2\]"),
        (0, "identifier", lambda old: pa.array([None, *old[1:]], pa.binary(16)), "row group 0"),
    ],
)
def test_other_columns_and_empty_values_are_refused(parquet, place, name, column, words) -> None:
    table = pq.read_table(parquet)
    wrong = table.set_column(place, name, column(table[name].to_pylist()))
    pq.write_table(wrong.replace_schema_metadata(table.schema.metadata), parquet)
    expected = "no empty values in" if place == 0 else "submissions of 5 numbers.*"
    with pytest.raises(InvalidValueError, match=rf"{expected} ?{words}"):
        read(parquet)


def test_files_of_other_writers_are_read(parquet) -> None:
    """Compressed, with a dictionary, and with fields that may be missing: all the same."""
    table = pq.read_table(parquet)
    loose = pa.schema(
        [("identifier", pa.binary(16)), ("numbers", pa.list_(pa.float64(), 5)), ("x", pa.int8())],
        metadata=table.schema.metadata,
    )
    columns = [*(c.combine_chunks() for c in table.columns), pa.array([1] * 50, pa.int8())]
    columns[1] = columns[1].cast(loose.field(1).type)
    made = pa.table(columns, schema=loose)
    pq.write_table(made, parquet, compression="zstd", row_group_size=20)
    np.testing.assert_array_equal(read(parquet)[0], TABLE.identifiers)


@pytest.mark.parametrize("keep", [0.3, 0.9, 0.999])
def test_a_file_that_was_cut_short_is_refused(path, keep) -> None:
    write(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data))])
    with pytest.raises(
        InvalidValueError, match=rf"(?s)blurred\{path.suffix}.*cut short or damaged"
    ):
        read(path)


@pytest.mark.parametrize("seed", range(40))
def test_a_flipped_bit_in_parquet_is_noticed(parquet, seed) -> None:
    """Anywhere: in a page, whose checksum tells, or in what describes the file."""
    data = bytearray(parquet.read_bytes())
    place = int(np.random.default_rng(seed).integers(len(data)))
    data[place] ^= 1 << (seed % 8)
    parquet.write_bytes(data)
    try:
        identifiers, numbers = read(parquet)
    except InvalidValueError as error:
        refusal = str(error)
    else:  # in words that say nothing about the rows, such as who wrote the file
        np.testing.assert_array_equal(identifiers, TABLE.identifiers)
        np.testing.assert_array_equal(numbers, TABLE.numbers)
        return
    assert "blurred.parquet" in refusal


def test_the_row_group_is_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(files, "MOST_ROWS", 16)
    path = tmp_path / "blurred.parquet"
    write(path)
    data = bytearray(path.read_bytes())
    place = pq.read_metadata(path).row_group(2).column(1).data_page_offset + 100
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(InvalidValueError, match=r"Cannot read row group 2, in .*blurred\.parquet"):
        read(path)


# ---- bombs: files that would take far more memory than they have bytes
def test_copies_of_one_row_that_take_no_room_are_refused_before_they_are_read(parquet) -> None:
    """Two million rows in some kilobytes: told from the footer, whatever they hold."""
    table = pq.read_table(parquet)
    with pq.ParquetWriter(parquet, table.schema, compression="zstd") as writer:
        for _ in range(4):
            writer.write_table(table.take(np.zeros(500_000, dtype=np.int64)))
    assert parquet.stat().st_size < 2**17
    with pytest.raises(InvalidValueError, match=r"rows in .*, and it says 2,000,000: so many diff"):
        open_submissions(parquet, AGREEMENT.layout)


def test_columns_that_unpack_to_more_than_their_rows_are_refused(parquet, monkeypatch) -> None:
    """Of another column nothing is unpacked; were it one of ours, the footer would tell."""
    wide = pa.array([b"\0" * 2**26] + [b"x"] * 49, pa.binary())
    table = pq.read_table(parquet).append_column("picture", wide)
    pq.write_table(table, parquet, compression="zstd", use_dictionary=["picture"])
    np.testing.assert_array_equal(read(parquet)[0], TABLE.identifiers)
    monkeypatch.setattr(files, "_COLUMNS", [*files._COLUMNS, "picture"])
    with pytest.raises(InvalidValueError, match=r"row group 0 of .* to unpack to what its 50 rows"):
        open_submissions(parquet, AGREEMENT.layout)


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_a_compressed_arrow_file_is_refused_before_it_is_unpacked(arrow, codec) -> None:
    with pa.ipc.open_file(arrow) as file:
        table = file.read_all()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_file(arrow, table.schema, options=options) as writer:
        writer.write_table(table.take(np.zeros(100_000, dtype=np.int64)))
    with pytest.raises(InvalidValueError, match="not to be compressed: write it as Parquet"):
        open_submissions(arrow, AGREEMENT.layout)


def test_an_arrow_file_that_lies_about_its_rows_is_refused(arrow) -> None:
    data, count = arrow.read_bytes(), (50).to_bytes(8, "little")
    for place in range(len(data) - 8):
        if data[place : place + 8] == count:
            arrow.write_bytes(data[:place] + (10**12).to_bytes(8, "little") + data[place + 8 :])
            with pytest.raises(InvalidValueError, match="blurred"):
                read(arrow)


# ---- A file has its name when it is complete, and nothing remains of one that is not
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_an_error_leaves_nothing(tmp_path, suffix) -> None:
    with pytest.raises(KeyError), Writer(tmp_path / f"blurred{suffix}", AGREEMENT.layout) as writer:
        writer.add(TABLE)
        (unfinished,) = tmp_path.iterdir()
        assert unfinished.suffix == ".part"
        raise KeyError
    assert not list(tmp_path.iterdir())
