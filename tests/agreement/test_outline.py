"""Terms that came later are left out while they have their default."""

import pytest

from blurfit import Agreement, InvalidValueError
from blurfit.agreement import outline
from blurfit.agreement.plan import Plan
from support.stores import SCHEMA

PROMISE = {"epsilon": 1, "delta": 1e-6, "quorum": 20}


def test_a_default_is_not_written_and_keeps_the_fingerprint() -> None:
    plain, said = (
        Agreement.propose(SCHEMA, **PROMISE, **more) for more in ({}, {"admission": "invited"})
    )
    assert not outline.OPTIONAL & set(plain.to_dict())
    assert said.fingerprint == plain.fingerprint
    anyone = Agreement.propose(SCHEMA, **PROMISE, admission="anyone")
    assert anyone.to_dict() == plain.to_dict() | {"admission": "anyone"}
    assert anyone.fingerprint != plain.fingerprint
    assert Agreement.from_json(anyone.to_json()) == anyone


@pytest.mark.parametrize("value", ["invited", "nobody", None, 1])
def test_a_default_that_is_written_out_and_what_nobody_knows_are_refused(value) -> None:
    document = Agreement.propose(SCHEMA, **PROMISE).to_dict() | {"admission": value}
    with pytest.raises(InvalidValueError):
        Agreement.from_dict(document).verify()
    with pytest.raises(InvalidValueError, match="fields"):
        Agreement.from_dict(document | {"more": 1})


def test_a_plan_has_them_too_and_hands_them_to_each_wave() -> None:
    plain, anyone = (
        Plan.propose(SCHEMA, waves=2, **PROMISE, admission=who) for who in ("invited", "anyone")
    )
    assert anyone.to_dict() == plain.to_dict() | {"admission": "anyone"}
    assert Plan.from_json(anyone.to_json()) == anyone
    assert (plain.first().admission, anyone.first().admission) == ("invited", "anyone")
    with pytest.raises(InvalidValueError):
        Plan.from_dict(plain.to_dict() | {"admission": "invited"})
