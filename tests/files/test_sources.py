"""Paths, patterns and URLs; the last over a real HTTP server."""

from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from blurfit import InvalidValueError
from blurfit.files.scan import find, identify, open_stream
from blurfit.service.server import in_a_thread


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
