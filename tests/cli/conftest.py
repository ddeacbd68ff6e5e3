"""The command as a user meets it, in a folder of its own, and a real service."""

import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from blurfit import protocol as tokens
from blurfit.agreement.agreement import Agreement
from blurfit.cli import main
from blurfit.protocol import RemoteDatabase
from blurfit.schema.schema import Numeric, Schema
from support import processes

SCHEMA = Schema(features=[Numeric("age", 0, 100)], target=Numeric("income", 0, 1000))


def environment() -> dict[str, str]:
    """That of the test: no proxy may stand between two processes of this machine."""
    return {name: v for name, v in os.environ.items() if not name.lower().endswith("_proxy")}


@dataclass(frozen=True)
class Blurfit:
    """`blurfit …`, run in a folder."""

    folder: Path

    def __call__(self, line: str, *others: str, **more: str) -> subprocess.CompletedProcess[str]:
        """In this process, to its end: the first words may be typed as one line."""
        arguments = [*shlex.split(line), *others]
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            given = dict.fromkeys(os.environ.keys() - environment().keys()) | more
            done = CliRunner(env=given).invoke(main, arguments, catch_exceptions=False)
        return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)

    def done(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """In this process, and with success."""
        done = self(*arguments, **more)
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done

    def refused(
        self, *arguments: str, says: str | tuple[str, ...] = (), code: int = 2, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """In this process: refused with this exit code, in words, and with nothing else."""
        done = self(*arguments, **more)
        told = " ".join(done.stderr.split())
        assert done.returncode == code, f"{arguments}: {done.stdout}{done.stderr}"
        for words in (says,) if isinstance(says, str) else says:
            assert words in told, arguments
        assert "Traceback" not in told
        assert not done.stdout
        return done

    def apart(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """In a process of its own, to its end."""
        return processes.run(arguments, folder=self.folder, environment=environment() | more)

    def start(self, *arguments: str) -> processes.Talking:
        """In a process of its own, without waiting for its end."""
        return processes.Talking.start(arguments, folder=self.folder, environment=environment())

    @contextmanager
    def serving(self, *arguments: str) -> Iterator["Served"]:
        """`blurfit serve` at a free port, ended with the block if it has not ended before."""
        process = self.start("serve", "--port", "0", *arguments)
        try:
            served = Served(self.folder, process, *(process.line() for _ in range(3)))
            if not served.greeting:
                pytest.fail(f"The service did not start: {process.err}")
            served.wait()
            yield served
        finally:
            process.kill()


@dataclass(frozen=True)
class Served:
    """A running service: where it is, what it said about the token, and what is next."""

    folder: Path
    process: processes.Talking
    greeting: str
    said: str
    hint: str

    @property
    def url(self) -> str:
        return self.greeting.split()[2]

    def wait(self, seconds: float = 300.0) -> None:
        """Until somebody listens."""
        host, _, port = self.url.partition("://")[2].partition(":")
        deadline = time.monotonic() + seconds
        while self.process.process.poll() is None and time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection((host, int(port)), timeout=5):
                return
            time.sleep(0.01)
        pytest.fail(f"Nobody listens at {self.url}: {self.process.err}")

    def stop(self, how: int = signal.SIGINT) -> tuple[int, str, str]:
        """Its exit code, and what it wrote at the end."""
        self.process.process.send_signal(how)
        return self.process.end()


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
    return ["--to", service.url, "--patience", "120"]


@pytest.fixture(scope="module")
def as_administrator(service, asked) -> list[str]:
    """The same for its administrator."""
    return [*asked, "--admin-token-file", str(service.folder / "token.txt")]


@pytest.fixture
def agreed(blurfit, propose, request) -> Agreement:
    """An agreement in agreement.json that no other test has: each has its own ε."""
    name = request.node.name
    epsilon = 1 + int.from_bytes(tokens.hashed(name)[:2]) / 2**16
    agreement = propose(epsilon=epsilon, admission="invited" if "invit" in name else "anyone")
    agreement.save(blurfit.folder / "agreement.json")
    return agreement


@pytest.fixture
def database(service) -> Iterator[RemoteDatabase]:
    """The service above as its administrator sees it."""
    token = tokens.read_token(service.folder / "token.txt")
    with RemoteDatabase(service.url, token=token) as database:
        yield database
