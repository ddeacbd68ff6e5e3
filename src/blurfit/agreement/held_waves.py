"""Waves of whoever holds all rows: every row is in every wave, and the waves share one μ.

    wave 1: Σ ─ noise ─► release ─► the map of wave 2: Σ ─ noise ─► release ─► … ─► model

**A fit spends μ once, however many waves there are.** Wave k keeps μ_k = √f_k·μ for every fixed
past, whatever map is announced, and maps are functions of earlier releases; Σf_k = 1. By adaptive
composition all releases together are μ-GDP, and with what each of them keeps back for discrete
noise they are (ε, δ)-DP (`blurfit.theory.planning` has both proofs). Each release is an agreement
of its own, which states what it keeps by itself: (ε_k, f_kδ). What all of them keep is the
agreement of the fit, `in_all`: that of one wave which would spend everything at once. A wave
between the first and the last may read every k-th row, k public: whoever is not read loses nothing,
and the others no more than in a wave of all rows.

Contributors send once, and are divided among waves (`blurfit.agreement.plan`). The course is the
same (`blurfit.model.course`); what differs is who is in a wave, and how much of μ it has.
"""

import math
from dataclasses import dataclass
from functools import cached_property

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.numbers import DISCRETE_SHARE
from blurfit.agreement.terms import Terms
from blurfit.agreement.waves import Wave, kept_columns, task_of
from blurfit.errors import NotCertifiedError
from blurfit.schema.schema import Schema
from blurfit.theory.gaussian import mu_of
from blurfit.theory.maps import Announced
from blurfit.theory.moments import MomentCalibration
from blurfit.theory.planning import (
    StageKind,
    Stages,
    Task,
    promise_of_share,
    shared_mu,
    stride_of,
)


@dataclass(frozen=True, eq=False)
class HeldWaves:
    """The waves of a fit, in their order.

    Attributes:
        in_all: the agreement of the fit, which all waves together keep.
        stages: what each wave sends, and its share of μ².
        local: (ε, δ) of each blurred record, over all waves, where that is asked for.
    """

    in_all: Agreement
    stages: Stages
    local: tuple[float, float] | None = None

    def __len__(self) -> int:
        return len(self.stages.stages)

    @property
    def schema(self) -> Schema:
        """What a row is."""
        return self.in_all.schema

    @property
    def task(self) -> Task:
        """Whether a number, a label or a count is learned."""
        return self.stages.task

    @property
    def kinds(self) -> tuple[StageKind, ...]:
        """What each wave sends."""
        return self.stages.kinds

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Every how many-th row each wave reads: all in the first, whose release is for other
        questions too, and in the last, which decides; fewer between them where there are very many.
        """
        p, rows = len(kept_columns(self.schema)), self.in_all.quorum
        between = [
            stride_of(rows, mu, p, gauge=kind == "gauge")
            for kind, mu in zip(self.kinds[1:-1], self.mus[1:-1], strict=True)
        ]
        return (1, *between, 1)[: len(self)]

    @property
    def quorums(self) -> tuple[int, ...]:
        """How many rows each wave has."""
        return tuple(-(-self.in_all.quorum // stride) for stride in self.strides)

    @cached_property
    def mu(self) -> float:
        """μ of all waves together, which with their shares of δ keeps the fit's (ε, δ)."""
        fit = self.in_all
        return shared_mu(fit.epsilon, fit.delta, len(self), DISCRETE_SHARE)

    @property
    def mus(self) -> tuple[float, ...]:
        """μ of each wave."""
        return tuple(math.sqrt(share) * self.mu for share in self.stages.fractions)

    @property
    def count_bound(self) -> float | None:
        """The largest count, where counts are learned."""
        return float(self.schema.target.upper) if self.task == "count" else None  # type: ignore[union-attr]

    def first(self) -> Agreement:
        """Return the agreement of the first wave, unless the terms of some wave are refused."""
        task_of(self.schema, counts=self.task == "count")
        for place in range(len(self)):
            self._terms(place)
        return self._wave((), None)

    def following(self, follows: tuple[str, ...], chart: Announced) -> Agreement:
        """Return the agreement of the wave after these releases, with this map."""
        return self._wave(follows, chart)

    def require(self, agreement: Agreement) -> None:
        """Refuse an agreement that is none of these waves, or whose noise exceeds its share."""
        wave, found = agreement.wave, agreement.calibration
        if wave is None or wave.plan != self.in_all.fingerprint or wave.number > len(self):
            raise NotCertifiedError("Expected a wave of this fit, and got another's.")
        assert isinstance(found, MomentCalibration)
        if found.mu > self.mus[wave.number - 1] * (1 + 1e-12):
            raise NotCertifiedError("Expected a wave that spends no more than its share of μ.")

    def _terms(self, place: int) -> Terms:
        """What a wave promises by itself, and of how many rows."""
        fit, share = self.in_all, self.stages.fractions[place]
        epsilon, delta = promise_of_share(self.mu, fit.delta, share, DISCRETE_SHARE)
        local: dict[str, float] = {}
        if self.local is not None:  # a row that is blurred in each wave shares this μ alike
            of_record = promise_of_share(mu_of(*self.local), self.local[1], share, 0.0)
            local = dict(zip(("local_epsilon", "local_delta"), of_record, strict=True))
        return Terms.of(
            epsilon=epsilon,
            delta=delta,
            quorum=self.quorums[place],
            neighbours=fit.calibration.model.neighbours,
            diaries=fit.diaries,
            **local,
        )

    def _wave(self, follows: tuple[str, ...], chart: Announced | None) -> Agreement:
        place = len(follows)
        wave = Wave(self.in_all.fingerprint, place + 1, self.quorums, follows, chart)
        made = Agreement.propose_wave(self.schema, self._terms(place), wave)
        self.require(made)
        return made
