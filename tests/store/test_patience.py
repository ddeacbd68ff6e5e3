"""PostgreSQL that hangs is an error within seconds, and never a wait without end."""

import socket
import time

import pytest
import sqlalchemy as sa

from blurfit.errors import InvalidValueError, StorageError
from blurfit.store import connecting
from blurfit.store.store import Store
from support.stores import propose


def test_a_server_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        began = time.monotonic()
        with pytest.raises(InvalidValueError, match="is the server running"):
            Store(f"postgresql://nobody@127.0.0.1:{port}/nothing?sslmode=disable&connect_timeout=2")
        assert time.monotonic() - began < 120


def test_a_lock_that_somebody_holds_is_given_up(places, monkeypatch) -> None:
    monkeypatch.setattr(connecting, "_SECONDS_FOR_A_LOCK", 1)
    agreement, other = propose(), propose(epsilon=101)
    with Store(places.fresh()) as store:
        store.open(agreement)
        store.open(other)
        held = sa.text("SELECT 1 FROM collections WHERE fingerprint = :name FOR UPDATE")
        with store._engine.connect() as holder:
            holder.execute(held, {"name": agreement.fingerprint})
            with pytest.raises(StorageError, match="lock timeout"):
                store.close_collection(agreement.fingerprint)
            assert store.close_collection(other.fingerprint).state == "closed"
            holder.rollback()
        assert store.close_collection(agreement.fingerprint).state == "closed"


def test_what_an_address_says_of_patience_is_kept() -> None:
    engine = connecting.connect("postgresql://nobody@127.0.0.1/nothing?connect_timeout=17")
    assert "connect_timeout" not in connecting._patience(engine.url)
    assert "statement_timeout" in connecting._patience(engine.url)["options"]
    engine.dispose()
