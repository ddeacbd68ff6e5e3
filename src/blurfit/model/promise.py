"""What a release promises, as data: numbers, caveats, conditions, and who could see a record.

Every paper about a release is written from its `Promise`: the statement, the registry's entry, the
card, summaries, `blurfit show`, `blurfit verify` and what scripts read. So two rules stand in one
place.

* **Where a caveat stands, nothing is promised.** ε and δ are None then, and so is what a single
  submission keeps: no paper can print a number that does not hold.
* **Who could see a record** decides against whom anything is promised:

| `seen_by` | how the records came together | who could see one |
| --- | --- | --- |
| "nobody" | shared between two databases | neither, while both keep to the protocol |
| "collector" | blurred, and sent to one database | that database, each blurred submission |
| "holder" | rows that somebody held: `fit(X, y)`, a table blurred by its owner | the holder, all |

Several models of one fit (`models`) share one promise: ε and δ are those of all of them together,
by basic composition K times those of the agreement that each model carries.
"""

from dataclasses import dataclass
from typing import Any, Literal

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.checks import promised_in_all
from blurfit.agreement.conditions import counted_in_words, premise_in_words
from blurfit.agreement.grid import DISCRETE_SHARE, LATTICE_SHARE
from blurfit.agreement.promises import caveats_of, condition_in_words, local_in_words
from blurfit.theory.guarantees import LocalGuarantee, Neighbours, at_most

SeenBy = Literal["nobody", "collector", "holder"]

HOLDER = "They saw every record, before any noise: nothing is promised against them."
_ROUNDED = 1e-14
_HONEST_HOLDER = (
    "This needs whoever held the rows to be honest: the noise agreed on was added, once, and is "
    "told to nobody. Another release from the same rows reveals more."
)


@dataclass(frozen=True)
class Promise:
    """(ε, δ) for everyone in a release, on a condition; or why there is no promise.

    Attributes:
        epsilon: ε of everything that is published together; None where a caveat stands.
        delta: δ of it; None where a caveat stands.
        neighbours: what one person may change.
        releases: how often one may publish.
        caveats: why nothing is promised, where that is so.
        seen_by: who could see a record.
        models: how many models of one fit the numbers cover together.
        local: what one submission keeps by itself; None where there was none, or a caveat stands.
        condition: what the promise needs, and whether anybody can check it.
        counted: what the release is from: so many people, submissions or rows.
        seen: who could see a record, in words.
    """

    epsilon: float | None
    delta: float | None
    neighbours: Neighbours
    releases: int | Literal["any"]
    caveats: tuple[str, ...]
    seen_by: SeenBy
    models: int
    local: LocalGuarantee | None
    condition: str
    counted: str
    seen: str

    @classmethod
    def of(
        cls,
        agreement: Agreement,
        count: int,
        quorum: str,
        local: LocalGuarantee,
        *,
        caveats: tuple[str, ...],
        held: bool,
        models: int,
    ) -> "Promise":
        """The promise of a release of so many; `quorum` and `local` are those of all waves."""
        caveats = tuple(dict.fromkeys((*caveats, *caveats_of(agreement))))
        if caveats:
            condition = f"Nothing is promised. {' '.join(caveats)}"
        else:
            condition = _HONEST_HOLDER if held else premise_in_words(agreement, quorum)
        one = agreement.calibration.model
        kept_back = LATTICE_SHARE[agreement.mechanism], DISCRETE_SHARE
        return cls(
            epsilon=None if caveats else _together(one.epsilon, kept_back[0], models),
            delta=None if caveats else min(1.0, _together(one.delta, kept_back[1], models)),
            neighbours=one.neighbours,
            releases=one.releases,
            caveats=caveats,
            seen_by="holder" if held else "nobody" if agreement.databases else "collector",
            models=models,
            local=None if caveats or held else local,
            condition=condition,
            counted=f"{count:,} rows" if held else counted_in_words(agreement.admission, count),
            seen=_seen(agreement, quorum, None if caveats else local, held=held),
        )

    @property
    def private(self) -> bool:
        """Whether anything is promised."""
        return not self.caveats

    @property
    def numbers(self) -> str:
        """ε and δ, rounded up, or that there are none."""
        if self.epsilon is None or self.delta is None:
            return "nothing is promised"
        found = f"ε = {at_most(self.epsilon, 6)}, δ = {at_most(self.delta, 6)}"
        return found if self.models == 1 else f"{found} for all {self.models} models of one fit"

    @property
    def in_words(self) -> str:
        """What is promised to everyone who reads what is published."""
        if self.epsilon is None or self.delta is None:
            return self.condition
        what = "What is published is"
        if self.models > 1:
            what = f"This is one of {self.models} models of one fit. Together they are"
        return (
            f"{what} ({at_most(self.epsilon, 6)}, {at_most(self.delta, 6)})-differentially private "
            f"(neighbours: {self.neighbours})."
        )

    def facts(self) -> dict[str, Any]:
        """Everything for scripts: null where nothing is promised."""
        local = self.local
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbours": self.neighbours,
            "releases": self.releases,
            "models": self.models,
            "caveats": list(self.caveats),
            "seen_by": self.seen_by,
            "condition": self.condition,
            "local_mu": None if local is None else local.mu,
            "local_epsilon": None if local is None else local.epsilon,
            "local_delta": None if local is None else local.delta,
        }


def _seen(agreement: Agreement, quorum: str, local: LocalGuarantee | None, *, held: bool) -> str:
    """Who could see a record; what a database learns from one follows from its numbers."""
    if held:
        return f"Somebody held the rows. {HOLDER}"
    if agreement.databases:
        condition = condition_in_words(agreement, quorum)
        return (
            "Each record was blurred, and shared between two databases, so that neither sees it. "
            f"{condition}"
        )
    found = "Each record was blurred before it was sent to the database."
    return found if local is None else f"{found} {local_in_words(local)}"


def _together(kept: float, kept_back: float, models: int) -> float:
    """What so many models promise together, of which each keeps so much; with what is kept back.

    What the division among them and this product round off, less than 1e-14 of it, is put back.
    """
    rounded = _ROUNDED if models > 1 else 0.0
    return promised_in_all(models * kept * (1 - rounded), kept_back)
