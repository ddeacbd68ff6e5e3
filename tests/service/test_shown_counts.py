"""Counts for strangers: no single arrival shows, and a quorum that is reached does."""

import itertools

import pytest

from blurfit.service.metrics import for_strangers, plan_for_strangers, shown
from blurfit.store.plans import PlanStatus, WaveStatus
from blurfit.store.store import Status


@pytest.mark.parametrize("quorum", [1, 150, 2000, 10**6])
def test_what_is_told_of_every_count(quorum) -> None:
    told = [shown(count, quorum) for count in range(5000)]
    assert told == sorted(told)
    for count, one in enumerate(told):
        assert (one >= quorum) is (count >= quorum)
        assert one <= count
        assert count - one <= max(0, count // 10)
    changes = sum(one != other for one, other in itertools.pairwise(told[100:]))
    assert changes <= 90 + 40 + 1, "90 steps to a thousand, 40 from there, and the quorum"


def test_states_keep_everything_else() -> None:
    one = Status("ab", "collecting", 1234, 2000, invited=True)
    assert for_strangers(one) == Status("ab", "collecting", 1200, 2000, invited=True)
    done = Status("ab", "published", 1234, 1000, invited=True)
    assert for_strangers(done) == done, "the model says it anyway"
    sums = Status("ab", "closed", 1234, 1000, invited=True, sums=True)
    assert for_strangers(sums) == sums, "and so do sums without a model"
    waves = (
        WaveStatus(1, "joint", 1000, "released", 1234, "ab"),
        WaveStatus(2, "newton", 2000, "collecting", 567, "cd"),
    )
    told = plan_for_strangers(PlanStatus("ef", "collecting", True, waves))
    assert [wave.count for wave in told.waves] == [1234, 560]
