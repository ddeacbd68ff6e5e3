"""Describe publicly known people who would take part, and draw collections from them.

A forecast needs no secret. Public microdata, a generated table or an assumed spectrum say well
enough how features and target are related; those who take part are then a random sample. For n
people of a population with second moments M = E[zzᵀ], z = (1, v), the sums are

    n ≤ 2¹⁴:  Σ zzᵀ of n rows drawn with replacement, itself;
    beyond:   n·M + √n·D,  D = m^{−½} Σ g_i(z_i z_iᵀ − M) over m public rows, g_i standard normal.

D is Gaussian with exactly the rows' covariance of zzᵀ (a multiplier bootstrap), so by the central
limit theorem the two agree; and as D does not depend on n, a billion people cost as much as a
hundred thousand.

**Several rows of one person** (diaries). A person sends the mean of the products of their m rows.
If a share α of what differs between rows stays the same in a person, those means have α + (1 − α)/m
of the variance that products of single rows have: sums deviate from their mean by the square root
of that, and the noise is that of one row.

**Agreements of other forms** (groups, weights, and exits). Second moments of (1, v) tell what a
joint form sends, and not what these do. So here each public row becomes the numbers that its
contributor would send, and the sums of n people are

    n·mean + √n·D,      D = m^{−½} Σ g_i(row i − mean) over m rows, g_i standard normal,

as above, where a billion people cost as much as a thousand, too.

**Exits** (`Exits`). Of a time to an event the forecast is about hazards: the root mean squared
error of their coefficients, each over its question's whole range, in events per unit of time.
`constant` is what remains if every coefficient is taken for 0.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.mechanisms import model_columns
from blurfit.data import FloatArray
from blurfit.errors import InvalidValueError, finite, inside_unit_interval, whole
from blurfit.learning.hazards import EventSums
from blurfit.learning.sums import Totals
from blurfit.model.release import moments_of
from blurfit.schema.columns import Binary, Categorical, Numeric, TimeToEvent
from blurfit.schema.schema import Schema, values
from blurfit.schema.table_files import TableFile
from blurfit.simulation import totals_of_products, weights_of
from blurfit.theory.coded import CodedForm
from blurfit.theory.hazards import EventForm

MOST_ROWS = 2**15  # are kept for drawing; second moments are of all rows
DRAWN_ONE_BY_ONE = 2**14  # the largest collection whose rows are drawn themselves
ROWS_GENERATED = 2**15


@dataclass(frozen=True, eq=False)
class CollectionSums:
    """Σ(1, v)(1, v)ᵀ of K collections, each of `count` people: (K, 1 + k, 1 + k)."""

    count: int
    products: FloatArray

    def totals(self, agreement: Agreement) -> list[Totals]:
        """Return what each collection sends, not blurred yet."""
        return [totals_of_products(agreement, self.count, one) for one in self.products]


class People(ABC):
    """Whoever is publicly known to be like those who would take part: rows (1, v), and what an
    error is.
    """

    name: str
    rows: FloatArray
    is_label: bool

    @property
    @abstractmethod
    def measure(self) -> str:
        """What an error is."""

    @property
    @abstractmethod
    def constant(self) -> float:
        """What a model must beat to be worth anything."""

    @property
    @abstractmethod
    def best(self) -> float:
        """The error of the whole population's model, without privacy."""

    @abstractmethod
    def weights(self, agreement: Agreement, totals: Totals) -> FloatArray:
        """Return what a blurred collection would tell."""

    @abstractmethod
    def error(self, weights: FloatArray) -> FloatArray:
        """Return the error of what several collections tell."""

    @abstractmethod
    def without_privacy(self, sums: CollectionSums) -> FloatArray:
        """Return the errors of what unblurred sums tell."""


@dataclass(frozen=True, eq=False)
class Population(People):
    """Public rows (1, v), v the columns of every question, the target's last, and their moments.

    The columns are those that joint moments blur (`blurfit.schema.schema`), and all that either
    mechanism sends follows from them. `unit` is what 1 of the target's column is in its own units
    (half its range), or 1 for labels and classes. The last `outputs` columns are the target's: one,
    or one for each class. `used` are the places in (1, v) of what the schema's own model is of.
    """

    name: str
    rows: FloatArray
    products: FloatArray  # E[(1, v)(1, v)ᵀ], of all rows
    outputs: int
    unit: float
    is_label: bool  # or classes: errors are shares of mistakes
    used: tuple[int, ...]

    @classmethod
    def of_table(cls, schema: Schema, table: Any, name: str = "public data") -> "Population":
        """Read a public table of raw records, by the schema's own encoding.

        >>> from blurfit.schema.schema import Numeric, Schema
        >>> schema = Schema([Numeric("age", 0, 100)], Numeric("income", 0, 200_000))
        >>> people = Population.of_table(schema, {"age": [20, 70], "income": [2e4, 6e4]})
        >>> people.columns, people.unit
        (2, 100000.0)
        """
        return cls.of_values(schema, np.atleast_2d(values(schema, table)), name)

    @classmethod
    def of_file(cls, schema: Schema, path: Path) -> "Population":
        """Read a file of public records: .csv, .csv.gz or .parquet."""
        return cls.of_values(schema, values_in(path, schema), path.name)

    @classmethod
    def of_values(cls, schema: Schema, v: FloatArray, name: str) -> "Population":
        """Take the columns of all questions: |v| ≤ 1."""
        rows = np.column_stack([np.ones(len(v)), v])
        return cls(
            name=name,
            rows=np.ascontiguousarray(rows[:MOST_ROWS]),
            products=rows.T @ rows / len(rows),
            outputs=len(schema.target.columns),
            used=(0, *(1 + place for place in model_columns(schema))),
            unit=schema.target.width / 2 if isinstance(schema.target, Numeric) else 1.0,
            is_label=not isinstance(schema.target, Numeric),
        )

    @classmethod
    def generated(cls, schema: Schema, *, explained: float = 0.3, seed: int = 0) -> "Population":
        """Generate people where nothing else is known: each answer by itself.

        Numbers are normal around the middle of their bounds, a quarter of the half range (and cut
        to it), truth values and levels are equally likely, and the target is linear in the encoded
        columns, all of which matter alike, such that they explain the share `explained` of its
        variance.
        """
        inside_unit_interval(explained=explained)
        generator = np.random.default_rng(seed)
        table = generated_answers(schema, generator)
        return cls._explained(schema, table, explained, generator, "generated")

    @classmethod
    def of_spectrum(
        cls, schema: Schema, spectrum: Sequence[float], *, explained: float = 0.3, seed: int = 0
    ) -> "Population":
        """Generate people of whom only the second moments λ of the numbers are assumed: v_j =
        ±√λ_j, each sign at random, beside truth values and levels that are equally likely.
        """
        inside_unit_interval(explained=explained)
        finite(**{f"spectrum[{place}]": value for place, value in enumerate(spectrum)})
        features = (one for one in schema.asked if one != schema.target)
        numbers = [one for one in features if isinstance(one, Numeric)]
        if len(spectrum) != len(numbers) or not all(0 < moment <= 1 for moment in spectrum):
            raise InvalidValueError(
                f"Expected spectrum={list(spectrum)} to be {len(numbers)} numbers > 0 of at most "
                "1, E[v²] of each numeric feature, which is scaled to v in [−1, 1]."
            )
        generator = np.random.default_rng(seed)
        table = generated_answers(schema, generator)
        for column, moment in zip(numbers, spectrum, strict=True):
            signs = generator.choice([-1.0, 1.0], ROWS_GENERATED)
            table[column.name] = column.centre + column.width / 2 * np.sqrt(moment) * signs
        return cls._explained(schema, table, explained, generator, "assumed spectrum")

    @classmethod
    def _explained(
        cls,
        schema: Schema,
        table: dict[str, Any],
        explained: float,
        generator: np.random.Generator,
        name: str,
    ) -> "Population":
        aim = schema.target
        x = values(schema, table, schema.default_predictors(aim.name))
        y = _target(schema, x, explained, generator)
        told = [one.name for one in schema.features if aim.name not in one.of]
        if len(told) < len(schema.features):  # some are derived from the target
            table |= {aim.name: aim.unscale(y)}
            told = [one.name for one in schema.features]
        v = np.column_stack([values(schema, table, told), y])
        return cls.of_values(schema, v, f"{name} (R² = {explained:g})")

    @property
    def columns(self) -> int:
        """How many columns a record has, the target's among them."""
        return len(self.products) - 1

    def error(self, weights: FloatArray) -> FloatArray:
        """Return the error of models of (1, v) on the population: (K, 1 + features), or (K,
        outputs, …).

        For a number the root mean squared error in its own units, from second moments alone:
        E[(y − w·x)²] = E[y²] − 2w·E[yx] + wᵀE[xxᵀ]w. For a label the share of rows that sign(w·x)
        gets wrong, for classes the share in which the largest score is not the row's own class.
        """
        used = list(self.used)
        w = np.asarray(weights).reshape(-1, self.outputs, len(used))
        features, target = self.rows[:, used], self.rows[:, -self.outputs :]
        if self.outputs > 1:
            scores = np.einsum("ni,koi->nko", features, w)
            right = scores.argmax(axis=2) == target.argmax(axis=1)[:, None]
            return np.asarray(1 - right.mean(axis=0))
        if self.is_label:
            likely = features @ w[:, 0].T > 0
            return np.asarray((likely != (target > 0)).mean(axis=0))
        residual = np.column_stack([-w[:, 0], np.ones(len(w))])
        both = np.ix_([*used, -1], [*used, -1])
        squared = np.einsum("ki,ij,kj->k", residual, self.products[both], residual)
        return np.asarray(self.unit * np.sqrt(np.maximum(squared, 0.0)))

    @property
    def measure(self) -> str:
        """What an error is."""
        return "share of wrong predictions" if self.is_label else "root mean squared error"

    def weights(self, agreement: Agreement, totals: Totals) -> FloatArray:
        """Return the weights of the model that a blurred collection would publish."""
        return weights_of(agreement, totals)

    @property
    def constant(self) -> float:
        """The error of the best constant: what a model must beat to be worth anything."""
        mean, square = self.products[0, -self.outputs :], self.products[-1, -1]
        if self.outputs > 1:
            return float(1 - mean.max())
        if self.is_label:
            share = float((mean[0] + 1) / 2)
            return min(share, 1 - share)
        return float(self.unit * np.sqrt(max(0.0, square - mean[0] ** 2)))

    @property
    def best(self) -> float:
        """The error of the linear model from the whole population, without privacy."""
        return float(self.without_privacy(CollectionSums(1, self.products[None]))[0])

    def without_privacy(self, sums: CollectionSums) -> FloatArray:
        """Return the errors of the models from the unblurred sums: of the shortest minimisers, so
        that a direction which nobody shows gets no weight.
        """
        used = np.array(self.used)
        inverse = np.linalg.pinv(sums.products[:, used[:, None], used], rcond=1e-10, hermitian=True)
        cross = sums.products[:, used, -self.outputs :]
        weights = np.einsum("kij,kjo->koi", inverse, cross)
        return self.error(weights)


@dataclass(frozen=True, eq=False)
class Samples:
    """K collections from a population, of any size: the same people's luck at every size.

    `repeated` is what is left of the variance between people, if each has several rows and sends
    their mean.
    """

    population: People
    draws: int
    seed: int
    repeated: float = 1.0

    def __post_init__(self) -> None:
        whole(draws=self.draws)

    @cached_property
    def deviations(self) -> FloatArray:
        """D of each, drawn when the first collection asks for it that is large enough."""
        generator = np.random.default_rng([self.seed, 1])
        z = self.population.rows
        centre = z.T @ z / len(z)
        found = np.empty((self.draws, *centre.shape))
        for place in range(self.draws):
            g = generator.standard_normal((len(z), 1))
            found[place] = (z.T @ (z * g) - g.sum() * centre) / np.sqrt(len(z))
        found[:, 0, 0] = 0.0  # how many people there are is not left to chance
        return found

    def at(self, contributors: int) -> CollectionSums:
        """Return the sums of K collections of this many people."""
        whole(contributors=contributors)
        n, people, left = contributors, self.population, np.sqrt(self.repeated)
        if not isinstance(people, Population):  # what they send is drawn under each agreement
            return CollectionSums(n, np.empty((self.draws, 0, 0)))
        if n > DRAWN_ONE_BY_ONE:
            return CollectionSums(n, n * people.products + left * np.sqrt(n) * self.deviations)
        generator = np.random.default_rng([self.seed, 2, n])
        products = np.empty((self.draws, *people.products.shape))
        for place in range(self.draws):
            z = people.rows[generator.integers(0, len(people.rows), n)]
            products[place] = z.T @ z
        return CollectionSums(n, left * products + (1 - left) * n * people.products)


def values_in(path: Path, schema: Schema) -> FloatArray:
    """Read the columns of all questions from a file of public records."""
    parts = [values(schema, part) for part in TableFile(path, schema).chunks()]
    if not parts:
        raise InvalidValueError(f"Expected at least one row in {str(path)!r}.")
    return np.concatenate(parts)


def generated_answers(schema: Schema, generator: np.random.Generator) -> dict[str, Any]:
    """Make up answers to everything that is asked, but the target: each by itself."""
    target = schema.target
    own = {target.name, getattr(target, "time", target.name)}
    return {one.name: _values(one, generator) for one in schema.asked if one.name not in own}


def _values(column: Any, generator: np.random.Generator) -> npt.NDArray[Any]:
    if isinstance(column, Numeric):
        spread = column.width / 8 * generator.standard_normal(ROWS_GENERATED)
        return np.clip(column.centre + spread, column.lower, column.upper)
    if isinstance(column, Binary):
        return generator.integers(0, 2, ROWS_GENERATED)
    assert isinstance(column, Categorical)
    return generator.choice(np.array(column.levels, dtype=object), ROWS_GENERATED)


def _target(
    schema: Schema, x: FloatArray, explained: float, generator: np.random.Generator
) -> FloatArray:
    """Return y = 0.3·(√R²·signal + √(1 − R²)·noise) in [−1, 1], each of variance 1; for a label its
    sign, for K classes which K-th of the people one is in, by y.
    """
    x = x - x.mean(axis=0)
    spread = x.std(axis=0)
    varying = spread > 0
    if not varying.any():
        raise InvalidValueError("Expected at least one feature that differs between people.")
    signs = np.where(np.arange(varying.sum()) % 2, -1.0, 1.0)  # so that effects do not all add up
    signal = x[:, varying] @ (signs / spread[varying])
    signal = (signal - signal.mean()) / signal.std()
    noise = generator.standard_normal(len(x))
    latent = np.sqrt(explained) * signal + np.sqrt(1 - explained) * noise
    if isinstance(schema.target, Categorical):
        classes = len(schema.target.levels)
        place = latent.argsort().argsort() * classes // len(latent)
        return np.asarray(np.eye(classes)[place])
    return np.where(latent > 0, 1.0, -1.0) if schema.is_label else np.clip(0.3 * latent, -1.0, 1.0)


# ---- agreements of other forms

MOST_SENT = 2**14  # of public people, whose numbers are all held
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
    rows = people.rows[:MOST_SENT]
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
        return cls(name, schema, np.column_stack([np.ones(len(v)), v])[:MOST_SENT])

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

    def weights(self, agreement: Agreement, totals: Totals) -> FloatArray:
        """Return the same of a blurred collection."""
        deviation = moments_of(agreement, totals).deviation
        return self.read(agreement, totals.sums, totals.count, deviation)

    def error(self, weights: FloatArray) -> FloatArray:
        """Return the root mean squared error of each collection's coefficients."""
        return np.asarray(np.sqrt(np.mean((np.atleast_2d(weights) - self._truth) ** 2, axis=1)))

    def without_privacy(self, sums: CollectionSums) -> FloatArray:
        """Return the errors of the coefficients from unblurred sums."""
        return self.error(sums.products)
