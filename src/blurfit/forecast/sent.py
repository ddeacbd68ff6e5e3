"""Draw what collections send under agreements of other forms: groups, weights, and exits.

Second moments of (1, v) tell what a joint form sends, and not what these do. So here each public
row becomes the numbers that its contributor would send, and the sums of n people are

    n·mean + √n·D,      D = m^{−½} Σ g_i(row i − mean) over m rows, g_i standard normal,

as in `blurfit.forecast.population`, where a billion people cost as much as a thousand, too.

**Exits** (`Exits`). Of a time to an event the forecast is about hazards: the root mean squared
error of their coefficients, each over its question's whole range, in events per unit of time.
`constant` is what remains if every coefficient is taken for 0.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.data import FloatArray
from blurfit.errors import InvalidValueError, inside_unit_interval
from blurfit.forecast.population import (
    CollectionSums,
    People,
    Population,
    Samples,
    generated_answers,
    values_in,
)
from blurfit.learning.hazards import EventSums
from blurfit.learning.sums import Totals
from blurfit.model.release import moments_of
from blurfit.schema.columns import TimeToEvent
from blurfit.schema.schema import Schema, values
from blurfit.theory.coded import CodedForm
from blurfit.theory.hazards import EventForm

MOST_ROWS = 2**14  # of public people, whose numbers are all held
EVENTS = 1 / 3  # the share of generated people who have the event until the horizon
_MATTER = 0.8  # of the mean hazard, which all features together can add or take
_STOPPED = 0.2  # of generated people stop being observed, at any time
_EVERYBODY = 10**7  # people whose sums stand for those of a whole population


@dataclass(frozen=True, eq=False)
class SentSums(CollectionSums):
    """Sums of what K collections of `count` people send under one agreement: (K, width)."""

    sent: FloatArray

    def totals(self, agreement: Agreement) -> list[Totals]:
        """Return the sums of each collection, not blurred yet."""
        return [Totals(self.count, one, agreement.fingerprint) for one in self.sent]


def under(agreement: Agreement, samples: Samples, count: int) -> tuple[People, CollectionSums]:
    """Return whom errors are about under an agreement of groups, weights or exits, and what
    collections of this many of them send.
    """
    form, people = agreement.form, samples.population
    rows = people.rows[:MOST_ROWS]
    numbers = form.products(rows[:, 1:])
    mean = numbers.mean(axis=0)
    g = np.random.default_rng([samples.seed, 5]).standard_normal((samples.draws, len(numbers)))
    moved = (g @ numbers - g.sum(axis=1, keepdims=True) * mean) / math.sqrt(len(numbers))
    sent = count * mean + math.sqrt(count * samples.repeated) * moved
    if isinstance(form, EventForm):
        assert isinstance(people, Exits)
        plain = np.array([people.read(agreement, one, count, 0.0) for one in sent])
        return people, SentSums(count, plain, sent)
    assert isinstance(form, CodedForm)
    assert isinstance(people, Population)
    joint = form.joint
    products = np.array([form.matrix(one, count) for one in sent])
    products /= np.outer(joint.scale, joint.scale)
    return _of_form(people, form), SentSums(count, products, sent)


def _of_form(people: Population, form: CodedForm) -> Population:
    """Return the people as the pooled model sees them: the columns that are multiplied, and those
    who count more as often as they count.
    """
    rows = people.rows[:, [0, *(1 + place for place in form.kept)]]
    if form.weighting is not None:
        weights = form.weighting.of(people.rows[:, 1:])
        if not weights.sum() > 0:
            raise InvalidValueError("Expected public people of whom somebody has a weight above 0.")
        drawn = np.random.default_rng(0).choice(len(rows), len(rows), p=weights / weights.sum())
        rows = rows[drawn]
    used = tuple(range(rows.shape[1] - people.outputs))
    return replace(people, rows=rows, products=rows.T @ rows / len(rows), used=used)


@dataclass(frozen=True, eq=False)
class Exits(People):
    """Public people of whom it is known when they left: (1, v), the exit's columns last."""

    name: str
    schema: Schema
    rows: FloatArray
    is_label = False
    outputs = 1

    @classmethod
    def of_file(cls, schema: Schema, path: Path) -> "Exits":
        """Read a file of public records: .csv, .csv.gz or .parquet."""
        return cls.of_values(schema, values_in(path, schema), path.name)

    @classmethod
    def of_values(cls, schema: Schema, v: FloatArray, name: str) -> "Exits":
        """Take the columns of all questions."""
        return cls(name, schema, np.column_stack([np.ones(len(v)), v])[:MOST_ROWS])

    @classmethod
    def generated(cls, schema: Schema, *, events: float = EVENTS, seed: int = 0) -> "Exits":
        """Generate people whose hazard is additive: all features matter alike, such that this share
        has the event until the horizon; a fifth stops being observed at any time.
        """
        inside_unit_interval(events=events)
        target, generator = schema.target, np.random.default_rng(seed)
        assert isinstance(target, TimeToEvent)
        table = generated_answers(schema, generator)
        names = [one.name for one in schema.features if one.name != target.time]
        x = values(schema, table, names)
        x = x - x.mean(axis=0)
        signs = np.where(np.arange(x.shape[1]) % 2, -1.0, 1.0)
        beside = np.abs(x).max(axis=0).sum()
        hazard = 1 + _MATTER * (x @ signs) / max(beside, 1e-9)
        count = len(hazard)
        until = np.where(generator.random(count) < _STOPPED, generator.random(count), 1.0)
        drawn = generator.exponential(size=count) / hazard
        low, high = 0.0, 50.0
        for _ in range(60):  # so that the share is as asked for
            rate = (low + high) / 2
            low, high = (low, rate) if np.mean(drawn / rate <= until) > events else (rate, high)
        time = np.minimum(drawn / rate, until)
        table |= {
            target.time: time * target.horizon,
            target.name: (drawn / rate <= until).astype(np.int64),
        }
        return cls.of_values(schema, values(schema, table), f"generated ({events:.0%} events)")

    @property
    def columns(self) -> int:
        """How many columns a record has."""
        return int(self.rows.shape[1]) - 1

    @cached_property
    def _truth(self) -> FloatArray:
        """The coefficients that everybody's exits tell, without noise."""
        agreement = Agreement.propose(self.schema, epsilon=1, delta=1e-6, quorum=10**6)
        mean = agreement.form.products(self.rows[:, 1:]).mean(axis=0)
        return self.read(agreement, _EVERYBODY * mean, _EVERYBODY, 0.0)

    measure = "root mean squared error of hazards, over a question's whole range"
    best = 0.0  # the error of everybody's own coefficients

    @property
    def constant(self) -> float:
        """The error of taking every coefficient for 0."""
        return float(np.sqrt(np.mean(self._truth**2)))

    def read(
        self, agreement: Agreement, sums: FloatArray, count: int, deviation: float
    ) -> FloatArray:
        """Return each coefficient over its question's whole range, per unit of time."""
        form, target = agreement.form, self.schema.target
        assert isinstance(form, EventForm)
        assert isinstance(target, TimeToEvent)
        found = EventSums(form, sums, count, max(deviation, 1e-9))
        columns = [form.inner.columns[place] for place in found.used]
        widths = np.array([one.weight * (1.0 if one.is_share else 2.0) for one in columns])
        return np.asarray(found.solved[0][: len(columns)] * widths / target.horizon)

    def weights(self, agreement: Agreement, totals: Totals, **how: Any) -> FloatArray:
        """Return the same of a blurred collection."""
        del how  # exits are read in one way
        deviation = moments_of(agreement, totals).deviation
        return self.read(agreement, totals.sums, totals.count, deviation)

    def error(self, weights: FloatArray) -> FloatArray:
        """Return the root mean squared error of each collection's coefficients."""
        return np.asarray(np.sqrt(np.mean((np.atleast_2d(weights) - self._truth) ** 2, axis=1)))

    def without_privacy(self, sums: CollectionSums) -> FloatArray:
        """Return the errors of the coefficients from unblurred sums."""
        return self.error(sums.products)
