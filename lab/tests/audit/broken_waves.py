"""Sequences of waves that are broken on purpose, each beside the honest one.

A hostile database announces maps that make two people as different as any map can: directions
that vanish or explode, and scores that saturate. It chooses the map of wave 2 by what wave 1
published, and the attacker sees everything: both releases, and the map. Nothing broken here can be
reached from a plan: `Agreement.once` keeps a person out of a second wave, the map is in the
fingerprint that submissions carry, and `blurfit.theory.maps` cuts to the ball.
"""

import math

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.plan import Plan
from blurfit.data import FloatArray
from blurfit.schema.schema import Binary, Numeric, Schema
from blurfit.theory.maps import LogisticNewton, NewtonMap, ResidualMap, WaveMap, Whitening
from blurfit_lab.audit import agreements
from blurfit_lab.audit.agreements import Crowd, collection_pairs, farthest_under_a_map
from blurfit_lab.audit.examination import Draw, Score

from .broken import SEED, Broken

MARK = "cd" * 32
PEOPLE = 2  # in each wave
FEATURES = (Numeric("x0", -1, 1), Numeric("x1", -1, 1))
TARGETS = {"residual": Numeric("y", -1, 1), "newton": Binary("y")}


def plan(kind: str) -> Plan:
    """Two waves of two people each."""
    schema = Schema(FEATURES, TARGETS[kind])
    made = Plan.propose(schema, waves=1, epsilon=1.0, delta=1e-5, quorum=2 * PEOPLE, colluders=0)
    return Plan.of(schema, made.terms, made.task, ("joint", kind), (PEOPLE, PEOPLE))


def maps(kind: str) -> tuple[WaveMap, WaveMap]:
    """Two hostile maps, between which wave 1's release decides."""
    found: list[WaveMap] = []
    for alive in (np.array([1.0, 0.0]), np.array([0.0, 1.0])):
        seen = np.diag(alive + 1e-320)  # the other column is in no feature, and decides the score
        if kind == "residual":
            # at the edge of the ball, beyond which a record weighs less
            white = Whitening([0.0, 0.0], seen, [1e6, -1e6], 0.0)
            found.append(ResidualMap(white, math.sqrt(0.5), 1e-6, 0.01))
        else:  # as long as a record can be before its weight makes its slope small
            white = Whitening([0.0, 0.0], seen * math.sqrt(2), 1e6 * (1 - alive), 0.0)
            found.append(NewtonMap(white, LogisticNewton()))
    return found[0], found[1]


class Sequence:
    """Both waves: what is published, for a target in the first or the second of them."""

    def __init__(self, kind: str) -> None:
        made = plan(kind)
        self.first = made.first()
        self.later = tuple(made.following((MARK,), chart) for chart in maps(kind))
        self.promise = self.first.epsilon, self.first.delta
        self.one = collection_pairs(self.first)[0]
        self.two = [farthest_under_a_map(agreement.form) for agreement in self.later]

    def draw(
        self,
        firsts: tuple[FloatArray, FloatArray],
        seconds: list[tuple[FloatArray, FloatArray]],
        *,
        peeking: bool = False,
    ) -> Draw:
        """R₁, which map was announced, and R₂, of either of two collections."""
        generator = np.random.default_rng(SEED)

        def drawn(which: bool, trials: int) -> FloatArray:
            past = _sums(self.first, firsts[which], trials, generator)
            choice = past[:, 0] > np.median(past[:, 0]) if not peeking else np.full(trials, which)
            later = np.empty((trials, self.later[0].width))
            for place, agreement in enumerate(self.later):
                chosen = choice == bool(place)
                if chosen.any():
                    record = seconds[place][which]
                    later[chosen] = _sums(agreement, record, int(chosen.sum()), generator)
            return np.hstack([past, choice[:, None].astype(float), later])

        return drawn

    def nobody(self, wave: int) -> FloatArray:
        """A record of zeros."""
        return agreements.nobody(self.first if wave == 1 else self.later[0])

    def in_first(self, **options: bool) -> Draw:
        """The target is in wave 1."""
        nobody = self.nobody(2)
        return self.draw((self.one.first, self.one.second), [(nobody, nobody)] * 2, **options)

    def in_second(self, **options: bool) -> Draw:
        """The target is in wave 2."""
        nobody = self.nobody(1)
        return self.draw((nobody, nobody), self.two, **options)

    def in_both(self) -> Draw:
        """The target is in both."""
        return self.draw((self.one.first, self.one.second), self.two)

    def uncut(self) -> Draw:
        """As `in_second`, for records ten times as far out as the ball that nobody puts them into.

        Both people share the feature that the map sees, and differ in the column that it does not.
        """
        pairs = []
        for place, agreement in enumerate(self.later):
            v = np.array([[1.0, 1.0], [1.0, -1.0]])[:, [place, 1 - place]]
            y = np.array([-1.0, 1.0])
            chart = agreement.form.chart
            f = chart.whitening.features(v)
            far = 10 * f / np.abs(f).max()
            rows, columns = np.triu_indices(4 if isinstance(chart, ResidualMap) else 3)
            if isinstance(chart, ResidualMap):
                z = np.column_stack([np.full(2, chart.constant), far, chart.target_weight * y])
                sent = z[:, rows] * z[:, columns]
            else:
                x = np.column_stack([far, np.full(2, chart.scale[1])])
                g, h = chart.loss.slopes(chart.whitening.score(v), y)
                sent = np.hstack([h[:, None] * x[:, rows] * x[:, columns], -g[:, None] * x])
            pairs.append((sent[0], sent[1]))
        nobody = self.nobody(1)
        return self.draw((nobody, nobody), pairs)


def broken_waves(kind: str) -> dict[str, Broken]:
    """One of each way to break a sequence, by name."""
    course = Sequence(kind)

    def broken(wrong: Draw, honest: Draw, *waves: int) -> Broken:
        attacks = {"known direction": _known(course, waves)}
        trials = 60_000 if len(waves) > 1 else 12_000  # √2 of μ is less to see
        return Broken(wrong, honest, course.promise, trials, True, attacks)

    return {
        "a person in two waves": broken(course.in_both(), course.in_second(), 1, 2),
        "a map that peeks": broken(course.in_second(peeking=True), course.in_first(), 1),
        "no cut to the ball": broken(course.uncut(), course.in_second(), 2),
    }


def _known(course: Sequence, waves: tuple[int, ...]) -> Score:
    """How the two neighbours differ in these waves, under the map that was announced."""
    width = course.first.width
    past = (course.one.first - course.one.second) / agreements.noise_scales(course.first) ** 2
    scales = agreements.noise_scales(course.later[0])
    later = np.array([one - other for one, other in course.two]) / scales**2

    def score(seen: FloatArray) -> FloatArray:
        found = seen[:, :width] @ past * (1 in waves)
        chosen = later[seen[:, width].astype(int)]
        return np.asarray(found + np.sum(seen[:, width + 1 :] * chosen, axis=1) * (2 in waves))

    return score


def _sums(
    agreement: Agreement, record: FloatArray, trials: int, generator: np.random.Generator
) -> FloatArray:
    crowd = Crowd(PEOPLE - 1, agreements.nobody(agreement))
    return agreements.sums(agreement, record, crowd, trials, generator)
