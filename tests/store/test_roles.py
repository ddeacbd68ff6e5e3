import pytest

from blurfit import Agreement, ConflictError, InfeasibleError, InvalidValueError
from blurfit.store import roles
from blurfit.store.store import Store
from support.sharing import SCHEMA, opened, propose


def test_roles_fit_the_agreement() -> None:
    split, one = propose(), Agreement.propose(SCHEMA, epsilon=1, delta=1e-6, quorum=3)
    with Store() as store:
        with pytest.raises(InvalidValueError, match=r"first or second.*--as first"):
            store.open(split)
        with pytest.raises(InvalidValueError, match="to be 'whole'"):
            store.open(one, role="first")
        with pytest.raises(InvalidValueError, match="role="):
            store.open(split, role="third")  # type: ignore[arg-type]
        assert store.open(split, role="second")
        assert not store.open(split, role="second")
        with pytest.raises(ConflictError, match="'second'"):
            store.open(split, role="first")


def test_each_database_does_its_own_part() -> None:
    agreement = propose()
    with Store() as first, Store() as second:
        opened(agreement, first, second)
        with pytest.raises(InfeasibleError, match="opened as 'first'"):
            roles.require_role(first.collection(agreement.fingerprint), "second")
