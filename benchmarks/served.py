"""The real service in processes of its own, and how much memory they take at most."""

import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_BETWEEN_LOOKS = 0.02  # seconds
_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident(pid: int) -> int:
    """Bytes that a process and those that it started hold in memory; shared pages count in each."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        return 0
    return pages * _PAGE + sum(resident(int(child)) for child in children)


@dataclass
class Peak:
    """The most bytes that a tree of processes was seen to hold."""

    bytes: int = 0

    @property
    def megabytes(self) -> float:
        """In units of 10⁶."""
        return self.bytes / 1e6


@contextmanager
def watched(*pids: int) -> Iterator[Peak]:
    """The peak of the memory of some trees of processes together, while the block lasts."""
    peak, done = Peak(), threading.Event()

    def look() -> None:
        while not done.is_set():
            peak.bytes = max(peak.bytes, sum(map(resident, pids)))
            done.wait(_BETWEEN_LOOKS)

    watching = threading.Thread(target=look, daemon=True)
    watching.start()
    try:
        yield peak
    finally:
        done.set()
        watching.join()


@dataclass
class Served:
    """`blurfit serve` at a port of this machine; it can be killed, and started again."""

    place: str
    folder: Path
    more: tuple[str, ...] = ()  # options of `blurfit serve`
    port: int = field(default_factory=lambda: free_port())
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Of the process that was started."""
        assert self.process is not None
        return self.process.pid

    @property
    def token(self) -> str:
        """The administrator's."""
        return (self.folder / "token.txt").read_text().strip()

    def start(self, seconds: float = 60.0) -> None:
        """Until it answers."""
        options = ["--store", self.place, "--port", str(self.port)]
        options += ["--admin-token-file", str(self.folder / "token.txt"), *self.more]
        with (self.folder / "serve.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "blurfit", "serve", *options],
                stdout=log,
                stderr=log,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"{self.url}/healthz", timeout=5).close()
            except (urllib.error.URLError, OSError):
                time.sleep(0.02)
            else:
                return
        raise TimeoutError((self.folder / "serve.log").read_text())

    def kill(self) -> None:
        """As a power cut would, as far as the process is concerned."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """As an operator would."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)

    def __enter__(self) -> "Served":
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()


@dataclass(frozen=True)
class Running:
    """Where a server listens, and its process."""

    port: int
    pid: int

    def processor_seconds(self) -> float:
        """What the server has taken of processors so far, all of its threads together."""
        words = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(script: str, folder: str, *server: str) -> Iterator[Running]:
    """A server that a script runs by `--serve …`, with a store in a folder, once it listens."""
    port = free_port()
    place = str(Path(folder, f"{'-'.join(server)}-{port}.db"))
    command = [sys.executable, script, "--serve", *server, place, str(port)]
    process = subprocess.Popen(command, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    try:
        while process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        yield Running(port, process.pid)
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
