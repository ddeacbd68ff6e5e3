"""Closing is refused while too many are at one of two databases alone."""

import pytest

from blurfit.commands.uneven import counts_at, refuse_if_uneven
from blurfit.errors import ConflictError
from support.sharing import new_agreement

INVITED = new_agreement(admission="invited")


@pytest.mark.parametrize("counts", [None, [0, 0], [50, 100], [10, 9], [90, 81]])
def test_fine(counts) -> None:
    refuse_if_uneven(INVITED, counts)


@pytest.mark.parametrize(("counts", "name"), [([49, 100], "University"), ([90, 80], "Office")])
def test_refused(counts, name) -> None:
    with pytest.raises(ConflictError, match=f"at {name} to be there alone"):
        refuse_if_uneven(INVITED, counts)
    refuse_if_uneven(new_agreement(database_noise=True, admission="invited"), counts)
    refuse_if_uneven(new_agreement(), counts)


def test_nobody_is_asked_for_long() -> None:
    assert counts_at(INVITED, patience=0.0) is None
