"""Invitations to a plan whose groups are known, and coins that fall as a test says."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from blurfit.agreement.plan import Plan
from blurfit.contributor import sending
from blurfit.protocol import hashed


def invitations(plan: Plan, group: int, count: int, whose: str = "guest") -> list[str]:
    """The first so many of endless invitations that the lot has put into a group."""
    return list(itertools.islice(_endless(plan, group, whose), count))


def hashes(plan: Plan, group: int, count: int, whose: str = "guest") -> list[bytes]:
    """What a store keeps of them."""
    return [hashed(one) for one in invitations(plan, group, count, whose)]


def toss(monkeypatch: pytest.MonkeyPatch, *groups: int) -> None:
    """Each table's rows, or each person, are in these groups, one after the other again and again;
    or in the wave that collects, if that is later.
    """
    tossed = itertools.cycle(groups)

    def new_groups(_lot: object, count: int, first: int = 1) -> np.ndarray:
        return np.array([max(first, next(tossed)) for _ in range(count)], dtype=np.uint8)

    monkeypatch.setattr(sending, "new_groups", new_groups)


def _endless(plan: Plan, group: int, whose: str) -> Iterator[str]:
    names = (f"{whose}-{number:040}" for number in itertools.count())
    return (one for one in names if plan.lot.group_of(hashed(one)) == group)
