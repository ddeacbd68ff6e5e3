"""An application in a thread answers while the block lasts, and is gone after it."""

import io
import logging

import httpx2 as httpx
import pytest

from blurfit.service.app import Service
from blurfit.service.serving import configured, in_a_thread
from blurfit.store.store import Store


def test_it_answers_for_as_long_as_the_block_lasts(tmp_path) -> None:
    with Store(tmp_path / "collection.db") as store, in_a_thread(Service(store)) as url:
        answer = httpx.get(f"{url}/healthz", trust_env=False, verify=False, timeout=300)
        assert answer.json() == {"status": "ok"}
        assert "server" not in answer.headers, "nobody needs to know"
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{url}/healthz", trust_env=False, verify=False, timeout=300)


def test_options_are_uvicorns() -> None:
    with Store() as store:
        assert not configured(Service(store)).access_log
        assert configured(Service(store), access_log=True).access_log


def test_whoever_serves_keeps_the_handlers_of_logs_that_were_there() -> None:
    class Owner(logging.StreamHandler):
        """Closes its stream when it is closed, as some libraries' do."""

        def close(self) -> None:
            self.stream.close()
            super().close()

    handler = Owner(io.StringIO())
    with Store() as store:
        configured(Service(store))
    assert not handler.stream.closed
    handler.close()
