"""Processes that start at once: forked from one that has imported everything and done nothing.

Each has its own process id, signals, files and environment, and can be killed like any other; it
only need not import NumPy, SciPy and the rest again, which takes most of a short process's time.
"""

import atexit
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# What most commands come to import. What cannot be imported is left to the process itself.
PRELOADED = [
    "anyio._backends._asyncio",
    "blurfit.cli",
    "blurfit_server.cli.administer",
    "blurfit_server.cli.serve",
    "blurfit.contributor.client",
    "blurfit.files.learn",
    "blurfit.forecast.choices",
    "blurfit.forecast.sweep",
    "blurfit.messages.files",
    "blurfit.model.course",
    "blurfit.model.summary",
    "blurfit.protocol",
    "blurfit_server.service.app",
    "blurfit.simulation",
    "blurfit_server.store.store",
    "formulaic",
    "matplotlib.backends.backend_agg",
    "matplotlib.figure",
    "pandas",
    "psycopg",
    "pyarrow.parquet",
    "rich.markdown",
    "rich.progress",
    "rich.table",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.stats",
    "sqlalchemy.dialects.postgresql.psycopg",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
]
context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(PRELOADED)
_started: "list[Running]" = []


@atexit.register
def _end_all() -> None:
    """End what a test has left running: it may start processes itself, so it is no daemon."""
    for one in _started:
        one.kill()


@dataclass(frozen=True)
class Running:
    """A process that was started."""

    process: Any

    @property
    def pid(self) -> int:
        return int(self.process.pid)

    def poll(self) -> int | None:
        code: int | None = self.process.exitcode
        return code

    def wait(self, seconds: float | None = None) -> int:
        """Its exit code, when it has ended."""
        self.process.join(seconds)
        if self.process.exitcode is None:
            raise subprocess.TimeoutExpired(str(self.process), seconds or 0)
        return int(self.process.exitcode)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start(
    work: Callable[..., object],
    *arguments: object,
    out: Path | None = None,
    err: Path | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Running:
    """Call a function of a module in a process of its own; what it writes is added to files."""
    given = os.environ if environment is None else environment
    files = [None if path is None else str(path.resolve()) for path in (out, err or out)]
    where = None if folder is None else str(folder)
    process = context.Process(target=_prepared, args=(files, where, dict(given), work, arguments))
    process.start()
    _started.append(found := Running(process))
    return found


def run(
    arguments: Sequence[str],
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    seconds: float = 600.0,
) -> subprocess.CompletedProcess[str]:
    """`blurfit …` in a process of its own, with its exit code and what it wrote."""
    with tempfile.TemporaryDirectory(prefix="blurfit-") as written:
        out, err = Path(written, "out"), Path(written, "err")
        process = start(
            blurfit, *arguments, out=out, err=err, folder=folder, environment=environment
        )
        try:
            code = process.wait(seconds)
        finally:
            process.kill()
        return subprocess.CompletedProcess(arguments, code, out.read_text(), err.read_text())


@dataclass
class Talking:
    """`blurfit …` in a process of its own, that is heard while it runs."""

    process: Running
    folder: Path  # where its output is
    heard: int = 0  # characters of its output that were read

    @classmethod
    def start(
        cls, arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str]
    ) -> "Talking":
        written = Path(tempfile.mkdtemp(prefix="blurfit-"))
        out, err = written / "out", written / "err"
        out.touch()
        err.touch()
        process = start(
            blurfit, *arguments, out=out, err=err, folder=folder, environment=environment
        )
        return cls(process, written)

    @property
    def out(self) -> str:
        """What it said since it was last heard."""
        return (self.folder / "out").read_text()[self.heard :]

    @property
    def err(self) -> str:
        return (self.folder / "err").read_text()

    def line(self, seconds: float = 300.0) -> str:
        """The next line that it says, or nothing if it ends before, or says nothing for long."""
        deadline = time.monotonic() + seconds
        while "\n" not in self.out and self.process.poll() is None:
            if time.monotonic() > deadline:
                self.process.kill()
            time.sleep(0.005)
        line = self.out.partition("\n")[0]
        self.heard += len(line) + 1
        return line

    def end(self, seconds: float = 300.0) -> tuple[int, str, str]:
        """Its exit code, and what it wrote at the end."""
        return self.process.wait(seconds), self.out, self.err

    def kill(self) -> None:
        """Whatever it does; what it said is gone with it."""
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def blurfit(*arguments: str) -> None:
    """The command, as the script that is installed calls it."""
    from blurfit.cli import main

    sys.argv = ["blurfit", *arguments]
    main()


def _prepared(
    files: list[str | None],
    folder: str | None,
    environment: dict[str, str],
    work: Callable[..., object],
    arguments: tuple[object, ...],
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    if folder is not None:
        os.chdir(folder)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    for number, (path, name) in enumerate(zip(files, ("stdout", "stderr"), strict=True), start=1):
        if path is not None:
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), number)
        stream = open(number, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
    work(*arguments)
