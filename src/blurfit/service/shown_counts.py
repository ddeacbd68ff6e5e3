"""How many have come, as strangers are told: rounded, so that no single arrival shows.

Whoever watches an exact count sees when each person sends, to the millisecond, and may know who was
at her device then. So from a hundred on a count is told in two digits, rounded down: it changes
with every tenth to hundredth arrival, and then tells that somebody came, and not who. Two facts are
never rounded away: that a quorum is reached, and how many are in what is published, which the model
says anyway. (Below a hundred there is no crowd to hide in, and counts are told as they are.)
"""

from dataclasses import replace

from blurfit.store.plans import PlanStatus, WaveStatus
from blurfit.store.store import Status


def shown(count: int, quorum: int) -> int:
    """Two digits of a count, rounded down, but never below a quorum that is reached.

    >>> shown(87, 2000), shown(1999, 2000), shown(2044, 2000), shown(123_456, 2000)
    (87, 1900, 2000, 120000)
    """
    step: int = 10 ** max(0, len(str(count)) - 2)
    rounded = count - count % step
    return max(rounded, quorum) if count >= quorum else rounded


def for_strangers(status: Status) -> Status:
    """A collection's state with a count that no single arrival changes."""
    if status.state == "published" or status.sums:
        return status
    return replace(status, count=shown(status.count, status.quorum))


def plan_for_strangers(status: PlanStatus) -> PlanStatus:
    """A plan's state with such counts for the waves that are not released."""

    def wave(one: WaveStatus) -> WaveStatus:
        if one.state == "released":
            return one
        return replace(one, count=shown(one.count, one.quorum))

    return replace(status, waves=tuple(map(wave, status.waves)))
