"""Where files of submissions are: paths, patterns and URLs, opened wherever a task runs.

A pattern (`lake/*.parquet`) and a folder stand for files of this machine. URLs are those that
pyarrow knows (file, s3, gs, hdfs), and http and https, of which only what is needed is fetched: the
service must answer requests for a range of bytes.
"""

import glob
import hashlib
import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx2 as httpx

from blurfit.errors import InvalidValueError
from blurfit.messages.files import SUFFIXES
from blurfit.optional import optional

_HEAD, _TAIL = 2**16, 2**20
_AT_ONCE = 2**24  # bytes of a file over HTTP


@dataclass(frozen=True, order=True)
class Identity:
    """What tells a file from another without reading all of it.

    `digest` is SHA-256 of its first 64 KiB and its last MiB: random names, noise, and where
    everything lies.
    """

    name: str
    size: int
    digest: str


def find(words: Iterable[str]) -> list[str]:
    """The files that paths, folders, patterns and URLs stand for, each once."""
    found: dict[str, None] = {}
    for word in words:
        if word.startswith("file://"):  # a file of this machine, whatever it is called
            word = url2pathname(urlsplit(word).path)
        if "://" in word:
            found[word] = None
            continue
        path = Path(word)
        if path.is_dir():
            here = sorted(str(p) for p in path.iterdir() if p.suffix.lower() in SUFFIXES)
        else:
            here = [word] if path.is_file() else sorted(glob.glob(word, recursive=True))  # noqa: PTH207
        if not here:
            raise InvalidValueError(
                f"Expected {word!r} to be a file, a folder of .parquet or .arrow files, a pattern "
                "that some match, or a URL."
            )
        found |= dict.fromkeys(os.path.realpath(one) for one in here)
    return list(found)


def open_stream(place: str) -> Any:
    """A place, open for reading."""
    pa = optional("pyarrow")
    try:
        if place.startswith(("http://", "https://")):
            return io.BufferedReader(_Ranges(place), 2**20)
        if "://" in place:
            system, path = optional("pyarrow.fs").FileSystem.from_uri(place)
            return system.open_input_file(path)
        return pa.OSFile(place)
    except (OSError, pa.ArrowException, httpx.HTTPError) as error:
        raise InvalidValueError(
            f"Cannot open {place!r}: {' '.join(str(error).split())}."
        ) from error


def identify(place: str) -> Identity:
    """The identity of the file at a place."""
    with open_stream(place) as stream:
        size = stream.seek(0, os.SEEK_END)
        size = stream.tell() if size is None else size
        digest = hashlib.sha256()
        for start, length in ((0, _HEAD), (max(0, size - _TAIL), _TAIL)):
            stream.seek(start)
            digest.update(stream.read(length))
    return Identity(place.rstrip("/").rpartition("/")[2], int(size), digest.hexdigest())


class _Ranges(io.RawIOBase):
    """A file behind HTTP, read by ranges of bytes."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._client = httpx.Client(follow_redirects=True, timeout=60.0)
        self._url, self._at = url, 0
        try:
            answer = self._fetch(0, 1)
            self._size = int(answer.headers["content-range"].rpartition("/")[2])
        except BaseException:
            self._client.close()
            raise

    def _fetch(self, start: int, length: int) -> Any:
        wanted = {"range": f"bytes={start}-{start + length - 1}"}
        with self._client.stream("GET", self._url, headers=wanted) as answer:
            if answer.status_code != 206:  # before a whole file comes that nobody asked for
                raise OSError(
                    f"expected 206 (Partial Content) in answer to a range of bytes, and got "
                    f"{answer.status_code}"
                )
            answer.read()
        return answer

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), self._size - self._at)
        if length <= 0:
            return 0
        try:
            data = self._fetch(self._at, length).content
        except httpx.HTTPError as error:
            raise OSError(str(error)) from error
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def readall(self) -> bytes:
        """The rest, in large pieces; a server may send less of each than it is asked for."""
        parts = []
        while part := self.read(min(_AT_ONCE, max(0, self._size - self._at))):
            parts.append(part)
        return b"".join(parts)

    def close(self) -> None:
        self._client.close()
        super().close()
