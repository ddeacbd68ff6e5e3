"""`blurfit quickstart` ends when it is told to, and says what is next."""

import signal
import time

import pytest

from support import processes


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_it_is_told_to(how, blurfit) -> None:
    typed = ("quickstart", "--people", "1000", "--seconds", "3600", "--no-browser")
    process: processes.Talking = blurfit.start(*typed)
    try:
        deadline = time.monotonic() + 300
        while "http://127.0.0.1" not in process.out:
            assert process.process.poll() is None, process.err
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.process.send_signal(how)
        code, out, err = process.end()
        assert (code, err) == (0, "")
        assert "Ended. Next: `blurfit init survey`" in out
    finally:
        process.kill()
