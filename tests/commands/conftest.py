"""The command as a user meets it: a real process in a folder of its own, and a real service."""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from blurfit.agreement.agreement import Agreement
from blurfit.schema.schema import Numeric, Schema
from support import processes

COMMAND = [sys.executable, "-c", "from blurfit.cli import main; main()"]
SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 1000))
# No proxy may stand between two processes of this machine, and a service must say things at once.


def environment() -> dict[str, str]:
    """That of the test, without proxies."""
    return {name: v for name, v in os.environ.items() if not name.lower().endswith("_proxy")}


@dataclass(frozen=True)
class Blurfit:
    """`blurfit …`, run in a folder."""

    folder: Path

    def __call__(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return processes.run(
            arguments, folder=self.folder, environment=environment() | more, seconds=60
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """The same, without waiting for its end."""
        return subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @contextmanager
    def serving(self, *arguments: str) -> Iterator["Served"]:
        """`blurfit serve` at a free port, ended with the block if it has not ended before."""
        process = self.start("serve", "--port", "0", *arguments)
        try:
            served = Served(self.folder, process, *(_line(process) for _ in range(3)))
            served.wait()
            yield served
        finally:
            process.kill()
            process.communicate()


@dataclass(frozen=True)
class Served:
    """A running service: where it is, what it said about the token, and what is next."""

    folder: Path
    process: subprocess.Popen[str]
    greeting: str
    said: str
    hint: str

    @property
    def url(self) -> str:
        return self.greeting.split()[2]

    def wait(self, seconds: float = 30.0) -> None:
        """Until somebody listens."""
        host, _, port = self.url.partition("://")[2].partition(":")
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection((host, int(port)), timeout=5):
                return
            time.sleep(0.01)
        self.process.kill()
        pytest.fail(f"Nobody listens at {self.url}: {self.process.communicate()[1]}")

    def stop(self, how: int = signal.SIGINT) -> tuple[int, str, str]:
        """Its exit code, and what it wrote at the end."""
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    assert process.stderr is not None
    if not select.select([process.stdout], [], [], 60)[0]:
        process.kill()
    # Unbuffered, so that `select` never waits for what has been read already.
    found = b""
    while not found.endswith(b"\n") and (byte := os.read(process.stdout.fileno(), 1)):
        found += byte
    if not found:
        pytest.fail(f"The service did not start: {process.stderr.read()}")
    return found.decode().rstrip("\n")


@pytest.fixture
def blurfit(tmp_path) -> Blurfit:
    return Blurfit(tmp_path)


@pytest.fixture(scope="session")
def propose() -> Callable[..., Agreement]:
    """An agreement about ages and incomes, quorum 20, open to anyone, with changes."""

    def propose(**changes) -> Agreement:
        promise = {"epsilon": 1.0, "delta": 1e-6, "quorum": 20, "admission": "anyone"}
        return Agreement.propose(SCHEMA, **promise | changes)

    return propose


@pytest.fixture(scope="module")
def service(tmp_path_factory) -> Iterator[Served]:
    """One service for a file of tests, whose store and token are in its folder."""
    folder = tmp_path_factory.mktemp("service")
    with Blurfit(folder).serving("--admin-token-file", "token.txt") as served:
        yield served


@pytest.fixture(scope="module")
def asked(service) -> list[str]:
    """The options by which the service above is asked for something."""
    return ["--to", service.url, "--patience", "20"]


@pytest.fixture(scope="module")
def as_administrator(service, asked) -> list[str]:
    """The same for its administrator."""
    return [*asked, "--admin-token-file", str(service.folder / "token.txt")]
