"""What proofs cost: bytes from each contributor and between the databases, and time to verify.

Bytes follow from the agreement. Time is what a core of a busy machine was seen to need
(`benchmarks/proofs.py`): the slower of the two databases, for each word of a share.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement

_WORDS_A_SECOND = 4e6
_IDENTIFIER, _ANSWER = 16, 32  # bytes that are exchanged besides the verifiers


@dataclass(frozen=True)
class ProofCosts:
    """Of one contributor in bytes, to the first database and between the two, and of `people` in
    seconds of one core at each database.
    """

    upload: int
    without: int  # the upload, if there were no proofs
    exchanged: int
    people: int
    seconds: float

    @classmethod
    def of(cls, agreement: "Agreement", people: int | None = None) -> "ProofCosts":
        """For an agreement with proofs, and so many people: as many as its quorum, at least."""
        layout, prio3 = agreement.share_layout("masked"), agreement.proving.prio3
        count = agreement.quorum if people is None else people
        return cls(
            upload=layout.size,
            without=agreement.layout.size,
            exchanged=_IDENTIFIER + 8 * prio3.verifier_words + _ANSWER,
            people=count,
            seconds=count * prio3.leader_words / _WORDS_A_SECOND,
        )

    def in_words(self) -> str:
        """One or two sentences."""
        return (
            f"With its proof a contributor's share is {self.upload:,} bytes instead of "
            f"{self.without:,}. The databases exchange {self.exchanged:,} bytes for each, and "
            f"verifying {self.people:,} of them takes each database about "
            f"{_duration(self.seconds)} of one core."
        )


def _duration(seconds: float) -> str:
    for size, unit in ((3600.0, "hour"), (60.0, "minute"), (1.0, "second")):
        if seconds >= size:
            count = round(seconds / size)
            return f"{count:,} {unit}{'' if count == 1 else 's'}"
    return "a second"
