"""A plan of waves: everything that is fixed before the first person is asked.

    plan ─ first() ─► wave 1 ─► its release ─┐
      │                                      ├─ next_agreement (blurfit.model.course) ─► wave 2 ─► …
      └──────────────────────────────────────┘

It has the schema, the promise, how many waves there are at most, what each of them sends, how many
people it waits for and how many of these must be honest, and by which version of the rule the next
map follows from the releases so far. So the agreement of every wave is a function of the plan and
of published releases, and its fingerprint carries theirs. Which waves there are follows from public
facts alone (`blurfit.theory.waves.choose_plan`); releases decide the maps, and nothing else.

**Who is promised what.** A person is in one wave, and that wave's noise keeps the whole (ε, δ) for
her; by the theorem of `blurfit.theory.waves` so does everything that is ever published under the
plan. Which wave that is a lot decides, and how many of a wave's people may collude the plan states
(`blurfit.agreement.lot`). Whoever took part in two waves would have √2 times the μ:
`Agreement.once` is the name under which contributors remember that they took part, and it is the
plan's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import msgspec

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.databases import Database
from blurfit.agreement.fingerprinted import Fingerprinted
from blurfit.agreement.grid import DISCRETE_SHARE
from blurfit.agreement.lot import Lot, honest_among
from blurfit.agreement.terms import COLLUDERS, LATER_TERMS, Terms, later_read, later_written
from blurfit.agreement.wave import Wave, kept_columns, task_of
from blurfit.errors import InvalidValueError
from blurfit.schema.schema import Schema
from blurfit.theory import waves
from blurfit.theory.gaussian import mu_of
from blurfit.theory.maps import WaveMap
from blurfit.theory.waves import StageKind, Task, choose_plan
from blurfit.validate import whole

RULE = 1  # of how a map follows from releases: `blurfit.learning.belief`
_TERMS = (
    "epsilon",
    "delta",
    "quorum",
    "colluders",
    "neighbours",
    "local_epsilon",
    "local_delta",
    "databases",
    "constant",
    "weights",
)


@dataclass(frozen=True)
class Plan(Fingerprinted):
    """The waves of a collection, in their order. Make one with `Plan.propose`.

    Attributes:
        schema: what a record is.
        terms: the promise; its quorum is how many people all waves together wait for, and its
            colluders the share of them in any wave who need not be honest.
        task: whether a "number", a "label" or a "count" is learned.
        kinds: what each wave sends: "joint" products, "residual"s or "newton"'s quadratic.
        quorums: how many people each wave waits for.
    """

    CALLED = "a plan"
    STATED: ClassVar = {"format": "blurfit-plan", "version": 1, "rule": RULE}
    FIELDS = frozenset(["schema", "task", "waves", *_TERMS])
    OPTIONAL = frozenset(LATER_TERMS)

    schema: Schema
    terms: Terms
    task: Task
    kinds: tuple[StageKind, ...]
    quorums: tuple[int, ...]

    def __post_init__(self) -> None:
        whole(**{f"quorums[{place}]": one for place, one in enumerate(self.quorums)})
        if len(self.quorums) != len(self.kinds) or sum(self.quorums) != self.terms.quorum:
            raise InvalidValueError(
                f"Expected a quorum for each of {self.kinds}, with a sum of {self.terms.quorum}, "
                f"and got {self.quorums}."
            )
        if self.terms.colluders is None:
            raise InvalidValueError("Expected a share of colluders, such as 0.1.")
        whole(**{f"honest[{place}]": one for place, one in enumerate(self.honest)})
        if self.terms.mechanism != "moment":
            raise InvalidValueError(
                "Expected mechanism='moment' for waves: they learn from sums that are published."
            )
        if self.terms.public_rows is not None:
            raise InvalidValueError(
                "Expected no public_rows with waves: public rows give the exact curve from one "
                "wave, and waves give it without them."
            )
        if self.terms.proofs is not False:  # nor is it left open, which would be a second text
            raise InvalidValueError(
                "Expected no proofs with waves: between two databases they exist for one wave "
                "alone, so far. Propose one wave, or leave proofs out: then nothing limits what "
                "one contributor who lies can do to the model."
            )
        if task_of(self.schema, counts=self.task == "count") != self.task:
            raise InvalidValueError(
                f"Expected task={self.task!r} to suit the target {self.schema.target.name!r}."
            )
        shares = [one / self.terms.quorum for one in self.quorums]
        stages = tuple(map(waves.Stage, self.kinds, shares))
        waves.Stages(self.task, stages)  # refuses kinds in another order

    @classmethod
    def propose(
        cls,
        schema: Schema,
        *,
        waves: int | Literal["auto"] = "auto",
        counts: bool = False,
        terms: Terms | None = None,
        **choices: Any,
    ) -> "Plan":
        """Waves for a schema and a promise: "auto" for as many as help, which may be one.

        The other choices are those of `Agreement.propose`; `quorum` is how many people all waves
        together wait for, and `colluders` the share of those in any wave who may collude.
        `counts` says that the target is a count, with lower bound 0 (Poisson's model).
        """
        chosen = Terms.of(**choices) if terms is None else terms
        colluders = COLLUDERS if chosen.colluders is None else chosen.colluders
        chosen = msgspec.structs.replace(chosen, proofs=chosen.proofs or False, colluders=colluders)
        if waves != "auto":
            whole(waves=waves)
        task = task_of(schema, counts=counts)
        stages = choose_plan(
            task,
            coefficients=len(kept_columns(schema)),
            count=chosen.quorum,
            mu=mu_of(chosen.epsilon, chosen.delta * (1 - DISCRETE_SHARE)),
            waves=None if waves == "auto" else waves,
        )
        plan = cls(schema, chosen, task, stages.kinds, stages.quorums(chosen.quorum))
        plan.first()  # which refuses what cannot be kept
        return plan

    def __repr__(self) -> str:
        stages = ", ".join(
            f"{kind} {quorum:,}" for kind, quorum in zip(self.kinds, self.quorums, strict=True)
        )
        return (
            f"<Plan {self.fingerprint[:12]}: {self.schema.target.name!r} in {len(self)} waves "
            f"({stages}), epsilon={self.terms.epsilon:g}, delta={self.terms.delta:g}>"
        )

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def mu(self) -> float:
        """μ of every person, in all."""
        return mu_of(self.terms.epsilon, self.terms.delta * (1 - DISCRETE_SHARE))

    @property
    def honest(self) -> tuple[int, ...]:
        """How many of each wave's people must be honest: as many as its noise is sized for."""
        assert self.terms.colluders is not None
        return honest_among(self.quorums, self.terms.colluders)

    @property
    def lot(self) -> Lot:
        """By which it is decided who is in which wave."""
        return Lot(self.fingerprint, self.quorums)

    @property
    def databases(self) -> tuple[Database, ...]:
        """The two databases, where trust is shared."""
        return self.terms.databases

    @property
    def count_bound(self) -> float | None:
        """The largest count, where counts are learned."""
        return float(self.schema.target.upper) if self.task == "count" else None  # type: ignore[union-attr]

    def first(self) -> Agreement:
        """The agreement of the first wave."""
        return self.agreement((), None)

    def agreement(self, follows: tuple[str, ...], chart: WaveMap | None) -> Agreement:
        """The agreement of the wave that follows so many releases, with this map.

        Deterministic: whoever has the plan, the marks and the map gets the same fingerprint.
        """
        if len(follows) >= len(self):
            raise InvalidValueError(
                f"Expected fewer than {len(self)} releases: the plan has no wave after them."
            )
        given = {name: getattr(self.terms, name) for name in (*_TERMS, *LATER_TERMS)}
        later = {"constant": None, "weights": None} if follows else {}
        terms = Terms(**(given | later | {"quorum": self.honest[len(follows)]}))
        wave = Wave(self.fingerprint, len(follows) + 1, self.quorums, follows, chart)
        wave.verify()
        return Agreement.propose_wave(self.schema, terms, wave)

    # ---- files

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values, without its fingerprint."""
        terms = {name: getattr(self.terms, name) for name in _TERMS}
        return {
            **self.STATED,
            "schema": self.schema.to_dict(),
            "task": self.task,
            "waves": [
                {"kind": kind, "quorum": quorum, "honest": honest}
                for kind, quorum, honest in zip(self.kinds, self.quorums, self.honest, strict=True)
            ],
            **terms,
            "databases": [one.to_dict() for one in self.terms.databases],
            **later_written(self.terms),
        }

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> Self:
        databases = [Database(**one) for one in document["databases"]]
        given = {name: document[name] for name in _TERMS} | later_read(document)
        terms = Terms.of(**given | {"databases": databases})
        return cls(
            Schema.from_dict(document["schema"]),
            terms,
            document["task"],
            tuple(one["kind"] for one in document["waves"]),
            tuple(one["quorum"] for one in document["waves"]),
        )
