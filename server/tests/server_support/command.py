"""The command as an administrator meets it, and a real service."""

import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import command, processes


@dataclass(frozen=True)
class Blurfit(command.Blurfit):
    """`blurfit …`, run in a folder, also as a service."""

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
