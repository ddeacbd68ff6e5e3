"""A real `blurfit serve` process that tests may kill."""

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2 as httpx


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Serving:
    """The service on a port of its own; it can be killed, and started again in the same place."""

    place: str
    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    more: tuple[str, ...] = ()  # options of `blurfit serve`

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token_file(self) -> Path:
        return self.folder / "token.txt"

    @property
    def headers(self) -> dict[str, str]:
        token = self.token_file.read_text().strip()
        return {"authorization": f"Bearer {token}", "content-type": "application/json"}

    def start(self, *, wait: bool = True) -> None:
        options = ["--store", self.place, "--port", str(self.port), "--requests-per-second", "0"]
        command = [sys.executable, "-c", "from blurfit.cli import main; main()", "serve"]
        with (self.folder / "serve.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *options, "--admin-token-file", str(self.token_file), *self.more],
                stdout=log,
                stderr=log,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
        if wait:
            self.wait()

    def wait(self, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if httpx.get(f"{self.url}/healthz", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        raise TimeoutError((self.folder / "serve.log").read_text())

    def kill(self) -> None:
        """As a power cut would, as far as the process is concerned."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)

    def post(self, path: str, **arguments: Any) -> httpx.Response:
        return httpx.post(f"{self.url}{path}", headers=self.headers, timeout=60, **arguments)
