"""Workers of pytest-xdist that start at once, like all `support.processes`."""

import atexit
import multiprocessing
import os
import sys
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType

import pytest
from execnet import gateway_io
from execnet.gateway_base import ExecModel, Popen2IO

from support import processes

TESTS = Path(__file__).parents[1]


class Forked(Popen2IO):
    """What execnet keeps of a process that it starts, of one that is forked instead."""

    def __init__(self, command: list[str], model: ExecModel) -> None:
        read, asked = multiprocessing.Pipe(duplex=False)
        answered, written = multiprocessing.Pipe(duplex=False)
        self.process = processes.start(_work, read, written)
        requests = os.fdopen(os.dup(asked.fileno()), "wb")  # execnet closes them
        answers = os.fdopen(os.dup(answered.fileno()), "rb")
        for end in (read, asked, answered, written):
            end.close()
        super().__init__(requests, answers, execmodel=model)

    def wait(self) -> int:
        return self.process.wait()

    def kill(self) -> None:
        self.process.kill()


def fork() -> None:
    """From now on, workers are forked, from a process that imports what they need meanwhile."""
    processes.context.set_forkserver_preload(["support.preloaded"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(TESTS), prepend=os.pathsep)  # where `support` is
        forkserver.ensure_running()
    gateway_io.Popen2IOMaster = Forked  # type: ignore[misc,assignment]


def _work(requests: Connection, answers: Connection) -> None:
    """Do what `python -c` does in a worker that is not forked."""
    os.dup2(requests.fileno(), 0)
    os.dup2(answers.fileno(), 1)
    requests.close()
    answers.close()
    if sys.version_info < (3, 14):  # its own processes are forked from where it comes from itself
        forkserver._forkserver.ensure_running = lambda: None  # type: ignore[method-assign]
    sys.modules["__main__"] = ModuleType("__main__")  # which nobody imports again
    exec(eval(sys.stdin.readline()), {})
    atexit._run_exitfuncs()
