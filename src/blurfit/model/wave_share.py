"""What each wave of a plan contributed to the model that was learned from all of them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class WaveShare:
    """One wave of a plan: how many contributed, how many it waited for, how many of these its noise
    needs to be honest, and what one of its submissions keeps by itself.
    """

    count: int
    quorum: int
    honest: int
    local_mu: float
    local_epsilon: float
