"""Work of which a service that stops does not wait for the end."""

import asyncio
import subprocess
import sys
import threading

import pytest

from blurfit.service.limits import InProgress, Turns, run_in_daemon_thread


def test_the_answer_and_the_error_come_back() -> None:
    assert asyncio.run(run_in_daemon_thread(lambda: 6 * 7)) == 42

    def fails() -> None:
        raise LookupError("not there")

    with pytest.raises(LookupError, match="not there"):
        asyncio.run(run_in_daemon_thread(fails))


def test_whoever_gives_up_is_not_answered() -> None:
    async def gives_up() -> None:
        gate = threading.Event()
        waiting = asyncio.ensure_future(run_in_daemon_thread(lambda: gate.wait(30)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        gate.set()
        await asyncio.sleep(0.01)

    asyncio.run(gives_up())


def test_a_process_ends_though_the_work_does_not() -> None:
    script = """
import asyncio, threading
from blurfit.service.limits import run_in_daemon_thread

async def main():
    asyncio.ensure_future(run_in_daemon_thread(threading.Event().wait))
    await asyncio.sleep(0.1)

asyncio.run(main())
"""
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=600).returncode == 0


def test_whoever_asks_again_waits_for_what_is_under_way() -> None:
    begun: list[str] = []
    gate = threading.Event()

    def work(name: str) -> str:
        begun.append(name)
        gate.wait(30)
        if name == "wrong":
            raise LookupError(name)
        return name

    async def run() -> None:
        underway: InProgress[str] = InProgress()

        def ask(name: str) -> asyncio.Task[str]:
            return asyncio.create_task(
                underway.join(name, lambda: run_in_daemon_thread(lambda: work(name)))
            )

        gone, *asking = [ask(name) for name in ("one", "one", "one", "other", "wrong")]
        await asyncio.sleep(0)
        gone.cancel()  # the others go on
        gate.set()
        found = await asyncio.gather(*asking, return_exceptions=True)
        assert found[:3] == ["one", "one", "other"]
        assert isinstance(found[3], LookupError)
        assert sorted(begun) == ["one", "other", "wrong"]
        assert await underway.join("one", lambda: run_in_daemon_thread(lambda: "again")) == "again"

    asyncio.run(run())


def test_turns_are_taken_one_after_the_other_and_beside_the_loop() -> None:
    inside: list[int] = []
    most: list[int] = []

    def work(number: int) -> int:
        inside.append(number)
        most.append(len(inside))
        assert threading.current_thread().daemon, "or it would keep the service from ending"
        inside.remove(number)
        if number == 3:
            raise LookupError(number)
        return number

    async def run() -> None:
        turns = Turns()
        found = await asyncio.gather(
            *(turns.take(work, n) for n in range(5)), return_exceptions=True
        )
        assert [one for one in found if isinstance(one, int)] == [0, 1, 2, 4]
        assert isinstance(found[3], LookupError)

    asyncio.run(run())
    assert most == [1] * 5
