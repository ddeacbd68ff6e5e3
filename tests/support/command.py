"""The command as a user meets it, in a folder of its own."""

import os
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from blurfit.agreement.agreement import Agreement
from blurfit.cli import main
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


@pytest.fixture(scope="session")
def propose() -> Callable[..., Agreement]:
    """An agreement about ages and incomes, quorum 20, open to anyone, with changes."""

    def propose(**changes) -> Agreement:
        promise = {"epsilon": 1.0, "delta": 1e-6, "quorum": 20, "admission": "anyone"}
        return Agreement.propose(SCHEMA, **promise | changes)

    return propose
