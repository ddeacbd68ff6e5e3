"""A plan of waves: everything that is fixed before the first person is asked.

    plan ─ first() ─► wave 1 ─► its release ─┐
      │                                      ├─ next_agreement (blurfit.model.course) ─► wave 2 ─► …
      └──────────────────────────────────────┘

It has the schema, the guarantee, how many waves there are at most, what each of them submits, how
many people it waits for and how many of these must be honest, and by which version of the rule the
next map follows from the releases so far. Which waves there are follows from public facts alone
(`blurfit.theory.planning.choose_plan`); releases decide the maps, and nothing else. An agreement by
itself has the same interface, as the course of one wave (`Agreed`).

The plan states the first wave's weights, noise and step, so every reader has the same first
agreement, byte by byte. A later wave's agreement is announced with its map and its noise, and all
others check it against the plan by `Plan.require`; it is never computed a second time, since
another machine would round otherwise.

Guarantee (`docs/theory/waves.md`): a person is in one wave, and that wave's noise satisfies the
whole (ε, δ) for them; so does everything that is ever published under the plan, for every map that
`Plan.require` and `Agreement.verify` accept, if at most the stated fraction of each wave's people
collude. A person who took part in two waves would have √2 times the μ: `Agreement.once` is the name
under which contributors remember that they took part, and it is the plan's. Tests:
`tests/agreement/test_plan.py`, `tests/theory/test_waves.py`.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import msgspec
from msgspec import UNSET, Struct, UnsetType

from blurfit.agreement.agreement import Agreement, Fingerprint, Fingerprinted, alike
from blurfit.agreement.mechanisms import (
    Lot,
    Stated,
    Wave,
    contract,
    honest_among,
    kept_columns,
    kept_promise,
    local_delta,
    refuse_repeats,
    task_of,
)
from blurfit.agreement.numbers import DISCRETE_SHARE, PublicWeights, multiplied
from blurfit.agreement.terms import (
    COLLUDERS,
    LATER_TERMS,
    Database,
    LaterTerms,
    Terms,
    require_together,
)
from blurfit.data import read_json
from blurfit.errors import InvalidValueError, NotCertifiedError, whole
from blurfit.schema.schema import Schema
from blurfit.theory import gaussian, planning
from blurfit.theory.gaussian import mu_of
from blurfit.theory.maps import WaveMap
from blurfit.theory.moments import BEYOND, ModelGuarantee, MomentCalibration, Neighbours, at_most
from blurfit.wording import Series

RULE = 1  # of how a map follows from releases: `blurfit.learning.waves`
_TERMS = (
    *("epsilon", "delta", "quorum", "colluders", "neighbours", "local_epsilon", "local_delta"),
    "databases",
)
_SAME = ("databases", *LATER_TERMS)  # of a plan's terms and of each agreement


class PlannedWave(Struct, frozen=True, forbid_unknown_fields=True):
    """What a wave sends, how many people it waits for, and how many of them must be honest."""

    kind: planning.StageKind
    quorum: int
    honest: int


class PlanDocument(LaterTerms, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A plan as it is written; the fingerprint is that of all other fields."""

    format: Literal["blurfit-plan"]
    version: Literal[1]
    rule: Literal[1]  # of how a map follows from releases
    fingerprint: Fingerprint | UnsetType = UNSET
    schema: dict[str, Any]
    task: planning.Task
    waves: tuple[PlannedWave, ...]
    epsilon: float
    delta: float
    quorum: int  # of all waves together
    colluders: float  # the share of any wave that may collude
    neighbours: Neighbours
    local_epsilon: float | None
    local_delta: float | None
    databases: tuple[Database, ...]
    weights: dict[str, float]  # these, and what follows, of the first wave
    calibration: dict[str, Any]
    step: float


@dataclass(frozen=True, eq=False)
class Plan(Fingerprinted):
    """The waves of a collection, in their order. Make one with `Plan.propose`.

    The quorum of the `terms` is how many people all waves together wait for, and their colluders
    the share of any wave's people who need not be honest. `quorums` and `kinds` are how many people
    each wave waits for, and what it sends; `weights`, `calibration` and `step` those of the first.
    """

    CALLED = "a plan"
    release: ClassVar = "at quorum"
    STATED: ClassVar = {"format": "blurfit-plan", "version": 1, "rule": RULE}
    DOCUMENT = PlanDocument

    schema: Schema
    terms: Terms
    task: planning.Task
    kinds: tuple[planning.StageKind, ...]
    quorums: tuple[int, ...]
    weights: PublicWeights
    calibration: MomentCalibration
    step: float

    def __post_init__(self) -> None:
        whole(**{f"quorums[{place}]": one for place, one in enumerate(self.quorums)})
        if len(self.quorums) != len(self.kinds) or sum(self.quorums) != self.terms.quorum:
            raise InvalidValueError(
                "Expected a quorum for each of {kinds}, with a sum of {quorum}, and got {quorums}.",
                kinds=self.kinds,
                quorum=self.terms.quorum,
                quorums=self.quorums,
            )
        if self.terms.colluders is None:
            raise InvalidValueError("Expected a share of colluders, such as 0.1.")
        whole(**{f"honest[{place}]": one for place, one in enumerate(self.honest)})
        if self.terms.proofs is None:  # which would be a second text
            raise InvalidValueError("Expected proofs to be true or false in a plan's terms.")
        require_together(self.terms, waves=True)
        refuse_repeats(self.schema)
        if task_of(self.schema, counts=self.task == "count") != self.task:
            raise InvalidValueError(
                "Expected task={task!r} to suit the target {target_name!r}.",
                task=self.task,
                target_name=self.schema.target.name,
            )
        shares = [one / self.terms.quorum for one in self.quorums]
        stages = tuple(map(planning.Stage, self.kinds, shares))
        planning.Stages(self.task, stages)  # refuses kinds in another order
        if wrong := self._broken(self.calibration, 0):
            raise NotCertifiedError(
                "Expected what the plan promises of its first wave too, and the first wave's "
                "{wrong} differs. Do not rely on this plan; make a new one.",
                wrong=Series(wrong),
            )

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

        Other choices are those of `Agreement.propose`; `quorum` is how many people all waves
        together wait for, and `colluders` the share of those in any wave who may collude.
        `counts` says that the target is a count, with lower bound 0 (Poisson's model).
        """
        chosen = Terms.of(**choices) if terms is None else terms
        colluders = COLLUDERS if chosen.colluders is None else chosen.colluders
        chosen = msgspec.structs.replace(chosen, proofs=chosen.proofs or False, colluders=colluders)
        if waves != "auto":
            whole(waves=waves)
        task = task_of(schema, counts=counts)
        stages = planning.choose_plan(
            task,
            coefficients=len(kept_columns(schema)),
            count=chosen.quorum,
            mu=mu_of(*kept_promise(chosen)),
            waves=None if waves == "auto" else waves,
        )
        return cls.of(schema, chosen, task, stages.kinds, stages.quorums(chosen.quorum))

    @classmethod
    def of(
        cls,
        schema: Schema,
        terms: Terms,
        task: planning.Task,
        kinds: tuple[planning.StageKind, ...],
        quorums: tuple[int, ...],
    ) -> "Plan":
        """These waves: weights are chosen for the first one, and its noise is calibrated."""
        require_together(terms, waves=True)
        assert terms.colluders is not None
        honest = honest_among(quorums, terms.colluders)
        first = msgspec.structs.replace(terms, quorum=honest[0])
        made = contract(schema, first)
        stated = made["weights"], made["calibration"], made["step"]
        terms = msgspec.structs.replace(terms, constant=None, weights=None)  # which are among them
        plan = cls(schema, terms, task, kinds, quorums, *stated)
        plan.first()  # which refuses what cannot be kept
        return plan

    def __repr__(self) -> str:
        stages = ", ".join(
            f"{kind} {quorum:,}" for kind, quorum in zip(self.kinds, self.quorums, strict=True)
        )
        return (
            f"<Plan {self.fingerprint[:12]}: {self.schema.target.name!r} in {len(self)} waves "
            f"({stages}), epsilon={at_most(self.terms.epsilon, 6)}, "
            f"delta={at_most(self.terms.delta, 6)}>"
        )

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def once(self) -> str:
        """The name under which a person takes part once: its fingerprint."""
        return self.fingerprint

    @property
    def mu(self) -> float:
        """μ of every person, in all."""
        return mu_of(*kept_promise(self.terms))

    @property
    def mus(self) -> tuple[float, ...]:
        """μ of each wave: everybody is in one alone, which spends all of it."""
        return (self.mu,) * len(self)

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

    @cached_property
    def _first(self) -> Agreement:
        stated = self.weights, self.calibration, self.step
        return self._wave(Wave(self.fingerprint, 1, self.quorums), stated)

    def first(self) -> Agreement:
        """Return the agreement of the first wave: what the plan states, and nothing is computed."""
        return self._first

    def following(self, follows: tuple[str, ...], chart: WaveMap) -> Agreement:
        """Return the agreement of the wave after these releases, to be announced with this map."""
        if len(follows) >= len(self):
            raise InvalidValueError(
                "Expected fewer than {self_count} releases: the plan has no wave after them.",
                self_count=len(self),
            )
        wave = Wave(self.fingerprint, len(follows) + 1, self.quorums, follows, chart)
        wave.verify()
        return self._wave(wave)

    def _wave(self, wave: Wave, stated: Stated | None = None) -> Agreement:
        terms = msgspec.structs.replace(self.terms, quorum=self.honest[wave.number - 1])
        return Agreement.propose_wave(self.schema, terms, wave, stated)

    def require(self, agreement: Agreement) -> None:
        """Refuse an agreement that is not one of this plan's waves. `Agreement.verify` it as well.

        Everything but the noise and the map is compared with what the plan states; the noise may be
        no larger than the plan's promises need, but for rounding. The first wave is what the plan
        states, to the last byte. Why that is enough: `docs/theory/waves.md`.
        """
        _require_wave(self, agreement)

    def _differences(self, agreement: Agreement, place: int) -> list[str]:
        """Return the names of what a wave's agreement states differently."""
        calibration = agreement.calibration
        assert agreement.wave is not None
        pairs = {
            "schema": (agreement.schema, self.schema),
            "people": (agreement.wave.people, self.quorums),
            "map": (agreement.wave.kind, self.kinds[place]),
            **{name: (getattr(agreement, name), getattr(self.terms, name)) for name in _SAME},
        }
        wrong = [name for name, (stated, expected) in pairs.items() if stated != expected]
        return wrong + self._broken(calibration, place)

    def _broken(self, calibration: MomentCalibration, place: int) -> list[str]:
        """Return what a wave's calibration promises differently, or keeps with far more noise."""
        terms, asked = self.terms, self.terms.local_epsilon
        promise = ModelGuarantee(*kept_promise(terms), terms.neighbours, "any")
        pairs = {
            "promise": (calibration.model, promise),
            "honest people": (calibration.quorum, self.honest[place]),
            "local.delta": (calibration.local.delta, local_delta(terms)),
        }
        wrong = [name for name, (stated, expected) in pairs.items() if stated != expected]
        if asked is not None and calibration.local.epsilon > asked:
            wrong.append("local.epsilon")
        if not (
            _would_break(calibration.mu, *kept_promise(terms))
            or (asked is not None and _would_break(calibration.local.mu, asked, local_delta(terms)))
        ):
            wrong.append("noise, which is far more than enough,")
        return wrong

    # ---- files

    def document(self) -> PlanDocument:
        """Return the plan's document, without its fingerprint."""
        return PlanDocument(
            **self.STATED,
            schema=self.schema.to_dict(),
            task=self.task,
            waves=tuple(map(PlannedWave, self.kinds, self.quorums, self.honest)),
            weights=self.weights.to_dict(multiplied(self.schema, self.terms)),
            calibration=self.calibration.to_dict(),
            step=self.step,
            **{name: getattr(self.terms, name) for name in (*_TERMS, *LATER_TERMS)},
        )

    @classmethod
    def _read(cls, document: PlanDocument) -> Self:
        schema = Schema.from_dict(document.schema)
        terms = Terms(**{name: getattr(document, name) for name in (*_TERMS, *LATER_TERMS)})
        plan = cls(
            schema,
            terms,
            document.task,
            tuple(one.kind for one in document.waves),
            tuple(one.quorum for one in document.waves),
            PublicWeights.from_dict(document.weights, multiplied(schema, terms)),
            MomentCalibration.from_dict(document.calibration),
            document.step,
        )
        plan.verify()
        return plan

    def verify(self, fingerprint: str | None = None) -> None:
        """Refuse a plan whose first wave keeps less than it promises, or that is not expected."""
        self.require_fingerprint(fingerprint)
        self.first().verify()
        self.require(self.first())


Agreed = Agreement | Plan


def read_agreed(text: str | bytes) -> Agreed:
    """Read an agreement or a plan, whichever the text says that it is; `verify` it."""
    try:
        document = read_json(text)
    except ValueError as error:
        raise InvalidValueError(
            "Expected an agreement or a plan in JSON: {error}.", error=error
        ) from error
    of_plan = isinstance(document, dict) and document.get("format") == Plan.STATED["format"]
    return (Plan if of_plan else Agreement).from_json(text)


def load_agreed(path: str | Path) -> Agreed:
    """Read an agreement or a plan from a file, and verify it."""
    found = read_agreed(Path(path).read_bytes())
    if isinstance(found, Agreement):
        found.verify()
    return found


@lru_cache(maxsize=256)
def _require_wave(plan: Plan, agreement: Agreement) -> None:
    """Refuse what `Plan.require` does; what was found right is not looked at again."""
    wave = agreement.wave
    if wave is None or not alike(wave.plan, plan.fingerprint):
        raise NotCertifiedError(
            "Expected an agreement of the plan {plan_fingerprint}, and this one belongs to "
            "{words}. Send nothing under it.",
            plan_fingerprint=plan.fingerprint,
            words=None if wave is None else wave.plan,
        )
    if not 1 <= wave.number <= len(plan):
        raise NotCertifiedError(
            "Expected one of the plan's {plan_count} waves, and got wave {wave_number}.",
            plan_count=len(plan),
            wave_number=wave.number,
        )
    wrong = plan._differences(agreement, wave.number - 1)
    if wave.number == 1 and agreement.fingerprint != plan.first().fingerprint:
        wrong.append("text")
    if wrong:
        raise NotCertifiedError(
            "Expected what the plan states in wave {wave_number}, and the agreement's "
            "{wrong} differs. Send nothing under it.",
            wave_number=wave.number,
            wrong=Series(wrong),
        )


def _would_break(mu: float, epsilon: float, delta: float | None) -> bool:
    """Return whether a little more μ, which is a little less noise, would break a promise."""
    assert delta is not None
    return gaussian.log_delta_of(mu * (1 + 4 * BEYOND), epsilon) > math.log(delta)


# ---- waves of whoever holds all rows


@dataclass(frozen=True, eq=False)
class HeldWaves:
    """The waves of a fit, in their order: every row is in every wave, and the waves share one μ.

    Wave k is μ_k-GDP, μ_k = √f_k·μ with Σf_k = 1, for every fixed past, whatever map is announced;
    all releases together are μ-GDP, and with what each of them reserves for discrete noise they are
    (ε, δ)-DP (`docs/theory/waves.md`). Each release is an agreement of its own, which states what
    it keeps by itself: (ε_k, f_kδ). A wave between the first and the last may read one of each k
    rows, k public.

    Contributors send once, and are divided among waves (`Plan`). The course is the same
    (`blurfit.model.course`); what differs is who is in a wave, and how much of μ it has.

    Attributes:
        in_all: the agreement of the fit, which all waves together keep: that of one wave which
            would spend everything at once.
        stages: what each wave sends, and its share of the μ² of all waves.
        local: (ε, δ) of each blurred record, over all waves, where that is asked for.
    """

    in_all: Agreement
    stages: planning.Stages
    local: tuple[float, float] | None = None

    def __len__(self) -> int:
        return len(self.stages.stages)

    @property
    def fractions(self) -> tuple[float, ...]:
        """The share of μ² of each wave."""
        return self.stages.fractions

    @property
    def schema(self) -> Schema:
        """What a row is."""
        return self.in_all.schema

    @property
    def task(self) -> planning.Task:
        """Whether a number, a label or a count is learned."""
        return self.stages.task

    @property
    def kinds(self) -> tuple[planning.StageKind, ...]:
        """What each wave sends."""
        return self.stages.kinds

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Of how many rows each wave reads one (`blurfit.theory.planning`)."""
        p = len(kept_columns(self.schema))
        return planning.strides_of(self.kinds, self.mus, self.in_all.quorum, p)

    @property
    def quorums(self) -> tuple[int, ...]:
        """How many rows each wave has."""
        return tuple(-(-self.in_all.quorum // stride) for stride in self.strides)

    @cached_property
    def mu(self) -> float:
        """μ of all waves together, which with their shares of δ keeps the fit's (ε, δ)."""
        fit = self.in_all
        return planning.shared_mu(fit.epsilon, fit.delta, len(self), DISCRETE_SHARE)

    @property
    def mus(self) -> tuple[float, ...]:
        """μ of each wave."""
        return tuple(math.sqrt(share) * self.mu for share in self.fractions)

    @property
    def count_bound(self) -> float | None:
        """The largest count, where counts are learned."""
        return float(self.schema.target.upper) if self.task == "count" else None  # type: ignore[union-attr]

    def first(self) -> Agreement:
        """Return the agreement of the first wave, unless the terms of some wave are refused."""
        task_of(self.schema, counts=self.task == "count")
        for place in range(len(self)):
            self._terms(self.fractions[place], self.quorums[place])
        return self.following((), None)

    def following(self, follows: tuple[str, ...], chart: WaveMap | None) -> Agreement:
        """Return the agreement of the wave after these releases, with this map."""
        place = len(follows)
        wave = Wave(self.in_all.fingerprint, place + 1, self.quorums, follows, chart)
        terms = self._terms(self.fractions[place], self.quorums[place])
        made = Agreement.propose_wave(self.schema, terms, wave)
        self.require(made)
        return made

    def require(self, agreement: Agreement) -> None:
        """Refuse an agreement that is none of these waves, or whose noise exceeds its share."""
        wave, found = agreement.wave, agreement.calibration
        if wave is None or wave.plan != self.in_all.fingerprint or wave.number > len(self):
            raise NotCertifiedError("Expected a wave of this fit, and got another's.")
        assert isinstance(found, MomentCalibration)
        if found.mu > self.mus[wave.number - 1] * (1 + 1e-12):
            raise NotCertifiedError("Expected a wave that spends no more than its share of μ.")

    def _terms(self, share: float, quorum: int) -> Terms:
        """Return what a release with this share of μ² promises by itself, of so many rows."""
        fit = self.in_all
        epsilon, delta = planning.promise_of_share(self.mu, fit.delta, share, DISCRETE_SHARE)
        local: dict[str, float] = {}
        if self.local is not None:  # a row that is blurred in each wave shares this μ alike
            of_record = planning.promise_of_share(mu_of(*self.local), self.local[1], share, 0.0)
            local = dict(zip(("local_epsilon", "local_delta"), of_record, strict=True))
        return Terms.of(
            epsilon=epsilon,
            delta=delta,
            quorum=quorum,
            neighbours=fit.calibration.model.neighbours,
            diaries=fit.diaries,
            **local,
        )
