"""A real `blurfit serve` process that tests may kill."""

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2 as httpx

from blurfit_server.service import app as serving
from support import processes
from support.processes import Running


@dataclass
class Port:
    """A port of this machine that nobody else gets while this object lives.

    It stays bound here, and is not listened at, so that on Linux a service may bind it too: again
    and again, for instance after it was killed.
    """

    held: socket.socket = field(default_factory=socket.socket, repr=False)

    def __post_init__(self) -> None:
        self.held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.held.bind(("127.0.0.1", 0))

    @property
    def number(self) -> int:
        return int(self.held.getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.number}"

    def __del__(self) -> None:
        self.held.close()


def impatient(*arguments: str) -> None:
    """`blurfit …` that gives requests less time when it is told to end."""
    serving.SECONDS_TO_END = 0.3
    processes.blurfit(*arguments)


def _client() -> httpx.Client:
    """Without certificates, which take long to read, and with a new connection for each request.

    A connection that is kept would be one to a service that was killed since.
    """
    fresh = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(verify=False, trust_env=False, timeout=300, limits=fresh)


@dataclass
class Serving:
    """The service on a port of its own; it can be killed, and started again in the same place."""

    place: str
    folder: Path
    more: tuple[str, ...] = ()  # options of `blurfit serve`
    command: Callable[..., object] = processes.blurfit
    port: Port = field(default_factory=Port)
    process: Running | None = None
    client: httpx.Client = field(default_factory=_client, repr=False)

    @property
    def url(self) -> str:
        return self.port.url

    @property
    def token_file(self) -> Path:
        return self.folder / "token.txt"

    @property
    def headers(self) -> dict[str, str]:
        token = self.token_file.read_text().strip()
        return {"authorization": f"Bearer {token}", "content-type": "application/json"}

    def start(self, *, wait: bool = True) -> None:
        options = ["--store", self.place, "--port", str(self.port.number)]
        options += ["--requests-per-second", "0", "--admin-token-file", str(self.token_file)]
        self.process = processes.start(
            self.command,
            *("serve", *options, *self.more),
            out=self.folder / "serve.log",
        )
        if wait:
            self.wait()

    def wait(self, seconds: float = 300.0) -> None:
        """Until it answers."""
        deadline = time.monotonic() + seconds
        while self.process and self.process.poll() is None and time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port.number)).close()  # cheap to ask
                if self.client.get(f"{self.url}/healthz").status_code == 200:
                    return
            except (OSError, httpx.TransportError):
                time.sleep(0.01)
        raise TimeoutError((self.folder / "serve.log").read_text())

    def kill(self) -> None:
        """As a power cut would, as far as the process is concerned."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(300)
        self.client.close()

    def post(self, path: str, **arguments: Any) -> httpx.Response:
        return self.client.post(f"{self.url}{path}", headers=self.headers, **arguments)
