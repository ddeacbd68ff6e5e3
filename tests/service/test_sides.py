"""Closing is refused while too many are at one of two databases alone."""

import httpx2 as httpx
import pytest

from blurfit.errors import ConflictError
from blurfit.protocol.http import counts_at, refuse_if_uneven
from blurfit.protocol.tokens import hashed
from blurfit.service.app import Service
from blurfit.service.server import in_a_thread
from blurfit.store.store import Store
from support.requests import ADMINISTRATOR, TOKEN
from support.sharing import arrival, marked, new_agreement

INVITED = new_agreement(admission="invited")


@pytest.mark.parametrize("counts", [[None, 5], [0, 0], [50, 100], [10, 9], [90, 81]])
def test_fine(counts) -> None:
    refuse_if_uneven(INVITED, counts)


@pytest.mark.parametrize(("counts", "name"), [([49, 100], "University"), ([90, 80], "Office")])
def test_refused(counts, name) -> None:
    with pytest.raises(ConflictError, match=f"at {name} to be missing at the other database"):
        refuse_if_uneven(INVITED, counts)
    refuse_if_uneven(new_agreement(database_noise=True, admission="invited"), counts)
    refuse_if_uneven(new_agreement(), counts)


def test_nobody_is_asked_for_long() -> None:
    assert counts_at(INVITED, patience=0.0) == [None, None]


def test_whoever_may_close_is_told_before(tmp_path) -> None:
    """By the services of both, at the addresses of the agreement."""
    with (
        Store(tmp_path / "first.db") as first,
        Store(tmp_path / "second.db") as second,
        in_a_thread(Service(first)) as office,
        in_a_thread(Service(second)) as university,
    ):
        first.appoint(hashed(TOKEN))
        both = (("Office", office), ("University", university))
        agreement = new_agreement(admission="invited", databases=both)
        path = f"{office}/collections/{agreement.fingerprint}/sides"
        shares = marked(agreement, *range(20))
        for store, role, part in ((first, "first", None), (second, "second", shares.second)):
            store.open(agreement, role=role)
            if part is not None:
                store.receive(store.collection(agreement.fingerprint), [arrival(part)])
        assert httpx.get(path, timeout=300).status_code == 401
        told = httpx.get(path, headers=ADMINISTRATOR, timeout=300).json()
        assert told["databases"] == [
            {"name": "Office", "count": 0},
            {"name": "University", "count": 20},
        ]
        assert "20 shares at University to be missing at the other database" in told["warning"]
        assert told["warning"].endswith("send again while both collect.")
        first.receive(first.collection(agreement.fingerprint), [arrival(shares.first)])
        assert httpx.get(path, headers=ADMINISTRATOR, timeout=300).json()["warning"] is None
