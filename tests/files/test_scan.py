"""Where rows are, what is done with them, and who came twice, beside plain ways of doing it."""

from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from blurfit import ConflictError, InvalidValueError, perturb_table
from blurfit.files import scan as duplicates
from blurfit.files.scan import (
    RECORD,
    Identity,
    Stretch,
    apart,
    find,
    identify,
    open_stream,
    records,
    repeated,
    scan,
    suspects,
    tell_apart,
)
from blurfit.messages.files import Writer
from blurfit_server.service.app import in_a_thread
from support.proposals import PEOPLE, write_file


def task_of(path) -> Stretch:
    return Stretch(0, str(path), 0, 1, 40, identify(str(path)))


@pytest.fixture
def written(agreement, tmp_path):
    table = perturb_table(agreement, PEOPLE)
    write_file(tmp_path / "a.parquet", agreement, table)
    return table, task_of(tmp_path / "a.parquet")


def test_another_file_where_the_work_is_done_is_refused(agreement, written) -> None:
    """A worker on another machine may find other people under the same name."""
    _, task = written
    write_file(Path(task.place), agreement, perturb_table(agreement, PEOPLE))
    for work in (scan, partial(records, suspects=None)):
        with pytest.raises(ConflictError, match=r"a\.parquet.*wherever the work is done"):
            work(agreement.to_json(), task)


def test_rows_that_nobody_honest_sends_are_refused_by_place(agreement, tmp_path) -> None:
    table = perturb_table(agreement, PEOPLE)
    numbers = table.numbers
    for wrong, why in ((np.nan, "blurring never makes"), (1e9, "norm"), (1e-30, "no multiple")):
        changed = numbers.copy()
        changed[17, 0] = wrong
        with Writer(tmp_path / "a.parquet", agreement.layout) as writer:
            writer.append(table.identifiers, changed)
        with pytest.raises(InvalidValueError, match=rf"row group 0 .*a\.parquet.*17.*{why}"):
            scan(agreement.to_json(), task_of(tmp_path / "a.parquet"))


@given(
    words=st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5), max_size=60),
    partitions=st.integers(1, 7),
)
def test_repeated_words_are_found_in_their_partitions(words, partitions) -> None:
    array = np.array(words, dtype="<u8")
    parts = apart(array, array, partitions)
    assert len(parts) == partitions
    assert sorted(np.concatenate(parts).tolist()) == sorted(words)
    found = [int(word) for part in parts for word in repeated(part)]
    assert sorted(found) == sorted({word for word in words if words.count(word) > 1})


# ---- sources


@contextmanager
def web(folder: Path):
    """The files of a folder over HTTP; /all gives everything, whatever range is asked for."""
    routes = [
        Route("/all", lambda _request: PlainTextResponse("x" * 1000)),
        Mount("/", StaticFiles(directory=folder)),
    ]
    with in_a_thread(Starlette(routes=routes)) as url:
        yield url


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_words_stand_for_files(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake").mkdir()
    for name in ("b.parquet", "a.parquet", "c.arrow", "d.txt"):
        (tmp_path / "lake" / name).touch()
    full = [str(tmp_path / "lake" / name) for name in ("a.parquet", "b.parquet", "c.arrow")]
    assert find(["lake"]) == full
    assert find(["lake/*.parquet"]) == full[:2]
    assert find([full[1], "lake/b.parquet", "lake/*.parquet"]) == [full[1], full[0]], "each once"
    assert find(["s3://bucket/a.parquet"]) == ["s3://bucket/a.parquet"]
    for wrong in ("nowhere.parquet", "lake/*.csv"):
        with pytest.raises(InvalidValueError, match="a pattern that some match"):
            find([wrong])


def test_the_same_bytes_from_everywhere(tmp_path) -> None:
    data = np.random.default_rng(0).bytes(3_000_000)
    path = tmp_path / "a.bin"
    path.write_bytes(data)
    with web(tmp_path) as url:
        places = (str(path), path.as_uri(), f"{url}/a.bin")
        for place in places:
            with open_stream(place) as stream:
                stream.seek(1_234_567)
                assert stream.read(1000) == data[1_234_567:1_235_567]
                stream.seek(0)
                assert stream.read() == data
        assert len({identify(place) for place in places}) == 1


def test_a_server_may_send_less_than_it_is_asked_for() -> None:
    data = np.random.default_rng(1).bytes(10_000)

    def a_little(request: Request) -> Response:  # RFC 9110, section 15.3.7
        start, stop = map(int, request.headers["range"].removeprefix("bytes=").split("-"))
        part = data[start : min(stop + 1, start + 4000)]
        told = {"content-range": f"bytes {start}-{start + len(part) - 1}/{len(data)}"}
        return Response(part, 206, told)

    with (
        in_a_thread(Starlette(routes=[Route("/a", a_little)])) as url,
        open_stream(f"{url}/a") as stream,
    ):
        assert stream.read() == data
        stream.seek(20_000)
        assert stream.read() == b""


def test_what_a_server_says_of_its_size_is_not_believed_at_once() -> None:
    def boasting(request: Request) -> Response:
        start = request.headers["range"].removeprefix("bytes=").split("-")[0]
        if start == "0":
            return Response(b"x", 206, {"content-range": f"bytes 0-0/{2**60}"})
        return Response(status_code=416)

    with (
        in_a_thread(Starlette(routes=[Route("/a", boasting)])) as url,
        open_stream(f"{url}/a") as stream,
        pytest.raises(OSError, match="416"),
    ):
        stream.read()


@pytest.mark.parametrize("at", [0, 65_535, 3_000_000 - 2**20, 2_999_999])
def test_identities_differ(tmp_path, at) -> None:
    data = bytearray(np.random.default_rng(0).bytes(3_000_000))
    (tmp_path / "a").write_bytes(data)
    before = identify(str(tmp_path / "a"))
    data[at] ^= 1
    (tmp_path / "a").write_bytes(data)
    assert identify(str(tmp_path / "a")) != before
    assert before.size == 3_000_000


def test_what_cannot_be_opened_is_named(tmp_path) -> None:
    with web(tmp_path) as url:
        for place in (
            str(tmp_path / "nothing"),
            f"{url}/nothing",
            f"{url}/all",
            "ftp://host/file",
            "http://127.0.0.1:1/a",
        ):
            with pytest.raises(InvalidValueError, match="Cannot open"):
                open_stream(place)


# ---- duplicates


TASKS = [
    Stretch(number, name, 0, 3, 300, Identity(name, 1, name))
    for number, name in enumerate(("a.parquet", "b.parquet"))
]


def made(identifiers, digests, places):
    found = np.zeros(len(identifiers), dtype=RECORD)
    found["identifier"][:, 0], found["digest"][:, 0] = identifiers, digests
    found["place"] = places
    return found


def everything(generator, different: int):
    """600 rows of two files and three groups each, under few identifiers, each with its digest."""
    identifiers = generator.integers(0, different, 600)
    places = [(file, group, row) for file in (0, 1) for group in range(3) for row in range(100)]
    return made(identifiers, identifiers + 7, places)


@pytest.mark.parametrize("different", [3, 200, 10**9])
@pytest.mark.parametrize("at_once", [2**20, 50])
def test_all_but_the_first_are_told(different, at_once, monkeypatch) -> None:
    monkeypatch.setattr(duplicates, "AT_ONCE", at_once)
    found = everything(np.random.default_rng(different), different)
    bits = tell_apart(np.array_split(found, 5), TASKS, 600)
    seen, expected = set(), set()
    for record in found:
        name, place = record["identifier"].tobytes(), tuple(record["place"].tolist())
        (expected if name in seen else seen).add(place if name in seen else name)
    told = {
        (*where, int(row))
        for where, packed in bits.items()
        for row in np.flatnonzero(np.unpackbits(packed, bitorder="little"))
    }
    assert told == expected


def test_a_conflict_names_both_places() -> None:
    found = made([5, 6, 5], [1, 1, 2], [(0, 1, 4), (0, 2, 0), (1, 2, 9)])
    name = (5).to_bytes(8, "little").hex() + "00" * 8
    second, first = "row 9 of row group 2 of 'b.parquet'", "row 4 of row group 1 of 'a.parquet'"
    with pytest.raises(ConflictError, match=f"{name}.*{second}.*{first}"):
        tell_apart([found], TASKS, 3)


def test_too_many_suspects_are_not_listed(monkeypatch) -> None:
    monkeypatch.setattr(duplicates, "MOST_SUSPECTS", 4)
    parts = [np.array([3, 9, 9, 3], dtype="<u8"), np.array([4, 1, 1, 5, 4], dtype="<u8")]
    found = suspects(parts)
    assert found is not None
    assert found.tolist() == [1, 3, 4, 9]
    assert suspects([*parts, parts[0]]) is None
    assert len(suspects([])) == 0
