"""What each wave of a plan contributed to the model that was learned from all of them."""

from dataclasses import dataclass

from blurfit.errors import InvalidValueError
from blurfit.validate import whole


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

    def __post_init__(self) -> None:
        whole(count=self.count, quorum=self.quorum, honest=self.honest)
        if not self.honest <= self.quorum <= self.count:
            raise InvalidValueError(
                f"Expected honest={self.honest} <= quorum={self.quorum} <= count={self.count}: no "
                "wave is released below what it waits for, or with noise for more than that."
            )
