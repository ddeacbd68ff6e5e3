"""What is publicly known of the people who would take part: rows to draw collections from.

A forecast needs no secret. Public microdata, a generated table or an assumed spectrum say well
enough how features and target hang together; whoever really takes part is then a random sample. For
n people of a population with second moments M = E[zzᵀ], z = (x, y), the sums are

    n ≤ 2¹⁴:  Σ zzᵀ of n rows drawn with replacement, itself;
    beyond:   n·M + √n·D,  D = m^{−½} Σ g_i(z_i z_iᵀ − M) over m public rows, g_i standard normal.

D is Gaussian with exactly the rows' covariance of zzᵀ (a multiplier bootstrap), so by the central
limit theorem the two agree; and as D does not depend on n, a billion people cost as much as a
hundred thousand.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from blurfit.errors import InvalidValueError
from blurfit.schema.columns import Binary, Categorical, Numeric
from blurfit.schema.schema import Schema
from blurfit.validate import finite, inside_unit_interval, whole

FloatArray = npt.NDArray[np.float64]

MOST_ROWS = 2**15  # are kept for drawing; second moments are of all rows
DRAWN_ONE_BY_ONE = 2**14  # the largest collection whose rows are drawn themselves
ROWS_GENERATED = 2**15


@dataclass(frozen=True, eq=False)
class CollectionSums:
    """Σxxᵀ (K, d, d) and Σyx (K, d) of K collections, each of `count` people."""

    count: int
    gram: FloatArray
    moment: FloatArray


@dataclass(frozen=True, eq=False)
class Population:
    """Encoded public rows (x, y), their second moments, and the units of their target.

    `unit` is what an encoded 1 of the target is in its own units (half its range), or 1 for labels.
    """

    name: str
    features: FloatArray
    target: FloatArray
    gram: FloatArray  # E[xxᵀ], of all rows
    moment: FloatArray  # E[yx]
    energy: float  # E[y²]
    mean: float  # E[y]
    unit: float
    is_label: bool

    @classmethod
    def of_table(cls, schema: Schema, table: Any, name: str = "public data") -> "Population":
        """From a public table of raw records, by the schema's own encoding.

        >>> from blurfit.schema.schema import Numeric, Schema
        >>> schema = Schema([Numeric("age", 0, 100)], Numeric("income", 0, 200_000))
        >>> people = Population.of_table(schema, {"age": [20, 70], "income": [2e4, 6e4]})
        >>> people.dimension, people.unit
        (2, 100000.0)
        """
        x, y = (np.asarray(part) for part in schema.encode(table))
        return cls.of_rows(schema, np.atleast_2d(x), np.atleast_1d(y), name)

    @classmethod
    def of_rows(cls, schema: Schema, x: FloatArray, y: FloatArray, name: str) -> "Population":
        """From encoded rows: ‖x‖ ≤ 1 and |y| ≤ 1."""
        rows = len(x)
        kept = slice(0, MOST_ROWS)
        unit = schema.target.width / 2 if isinstance(schema.target, Numeric) else 1.0
        return cls(
            name=name,
            features=np.ascontiguousarray(x[kept]),
            target=np.ascontiguousarray(y[kept]),
            gram=x.T @ x / rows,
            moment=x.T @ y / rows,
            energy=float(y @ y) / rows,
            mean=float(y.mean()),
            unit=unit,
            is_label=schema.is_label,
        )

    @classmethod
    def generated(cls, schema: Schema, *, explained: float = 0.3, seed: int = 0) -> "Population":
        """People who do not exist, where nothing else is known: each answer by itself.

        Numbers are normal around the middle of their bounds, a quarter of the half range (and cut
        to it), truth values and levels are equally likely, and the target is linear in the encoded
        columns, all of which matter alike, such that they explain the share `explained` of its
        variance.
        """
        inside_unit_interval(explained=explained)
        generator = np.random.default_rng(seed)
        table = {column.name: _values(column, generator) for column in schema.features}
        x = schema.encode_features(table)
        y = _target(x - x.mean(axis=0), explained, schema.is_label, generator)
        return cls.of_rows(schema, x, y, f"generated (R² = {explained:g})")

    @classmethod
    def of_spectrum(
        cls, schema: Schema, spectrum: Sequence[float], *, explained: float = 0.3, seed: int = 0
    ) -> "Population":
        """People of whom only the eigenvalues of E[xxᵀ] are assumed: x_j = ±√λ_j, at random."""
        inside_unit_interval(explained=explained)
        finite(**{f"spectrum[{place}]": value for place, value in enumerate(spectrum)})
        values = np.asarray(spectrum, dtype=np.float64)
        if len(values) != schema.dimension or (values <= 0).any() or values.sum() > 1 + 1e-9:
            raise InvalidValueError(
                f"Expected spectrum={list(spectrum)} to be {schema.dimension} numbers > 0, one for "
                "each encoded column, which sum to at most 1: encoded records lie in the unit ball."
            )
        generator = np.random.default_rng(seed)
        signs = generator.choice([-1.0, 1.0], (ROWS_GENERATED, schema.dimension))
        x = signs * np.sqrt(values)
        y = _target(x, explained, schema.is_label, generator)
        return cls.of_rows(schema, x, y, f"assumed spectrum (R² = {explained:g})")

    @property
    def dimension(self) -> int:
        """d, the number of weights."""
        return len(self.moment)

    def error(self, weights: FloatArray) -> FloatArray:
        """The error of models (K, d) on the population.

        For a number the root mean squared error in its own units, from second moments alone:
        E[(y − w·x)²] = E[y²] − 2w·E[yx] + wᵀE[xxᵀ]w. For a label the share of rows that sign(w·x)
        gets wrong.
        """
        w = np.atleast_2d(weights)
        if self.is_label:
            likely = self.features @ w.T > 0
            return np.asarray((likely != (self.target > 0)[:, None]).mean(axis=0))
        quadratic = np.einsum("ki,ij,kj->k", w, self.gram, w)
        squared = self.energy - 2 * w @ self.moment + quadratic
        return np.asarray(self.unit * np.sqrt(np.maximum(squared, 0.0)))

    @property
    def constant(self) -> float:
        """The error of the best constant: what a model must beat to be worth anything."""
        if self.is_label:
            share = float((self.target > 0).mean())
            return min(share, 1 - share)
        return float(self.unit * np.sqrt(max(0.0, self.energy - self.mean**2)))

    @property
    def best(self) -> float:
        """The error of the linear model from the whole population, without privacy."""
        return float(self.error(_least_squares(self.gram[None], self.moment[None]))[0])

    def without_privacy(self, sums: CollectionSums) -> FloatArray:
        """The errors of the models from the unblurred sums."""
        return self.error(_least_squares(sums.gram, sums.moment))


@dataclass(frozen=True, eq=False)
class Samples:
    """K collections from a population, of any size: the same people's luck at every size."""

    population: Population
    draws: int
    gram_deviation: FloatArray  # D, the part that belongs to xxᵀ
    moment_deviation: FloatArray
    seed: int

    @classmethod
    def of(cls, population: Population, draws: int, seed: int) -> "Samples":
        """Draw the K deviations D."""
        whole(draws=draws)
        generator = np.random.default_rng([seed, 1])
        x, y = population.features, population.target
        rows, d = x.shape
        z = np.column_stack([x, y])
        centre = z.T @ z / rows
        gram, moment = np.empty((draws, d, d)), np.empty((draws, d))
        for place in range(draws):
            g = generator.standard_normal((rows, 1))
            deviation = (z.T @ (z * g) - g.sum() * centre) / np.sqrt(rows)
            gram[place], moment[place] = deviation[:d, :d], deviation[:d, d]
        return cls(population, draws, gram, moment, seed)

    def at(self, contributors: int) -> CollectionSums:
        """The sums of K collections of so many people."""
        whole(contributors=contributors)
        n, people = contributors, self.population
        if n > DRAWN_ONE_BY_ONE:
            gram = n * people.gram + np.sqrt(n) * self.gram_deviation
            moment = n * people.moment + np.sqrt(n) * self.moment_deviation
            return CollectionSums(n, gram, moment)
        generator = np.random.default_rng([self.seed, 2, n])
        gram, moment = np.empty_like(self.gram_deviation), np.empty_like(self.moment_deviation)
        for place in range(self.draws):
            chosen = generator.integers(0, len(people.target), n)
            x, y = people.features[chosen], people.target[chosen]
            gram[place], moment[place] = x.T @ x, y @ x
        return CollectionSums(n, gram, moment)


def _least_squares(gram: FloatArray, moment: FloatArray) -> FloatArray:
    """The shortest minimisers: a direction that nobody shows gets no weight."""
    inverse = np.linalg.pinv(gram, rcond=1e-10, hermitian=True)
    return np.asarray(np.einsum("kij,kj->ki", inverse, moment))


def _values(column: Any, generator: np.random.Generator) -> npt.NDArray[Any]:
    if isinstance(column, Numeric):
        spread = column.width / 8 * generator.standard_normal(ROWS_GENERATED)
        return np.clip(column.centre + spread, column.lower, column.upper)
    if isinstance(column, Binary):
        return generator.integers(0, 2, ROWS_GENERATED)
    assert isinstance(column, Categorical)
    return generator.choice(np.array(column.levels, dtype=object), ROWS_GENERATED)


def _target(
    x: FloatArray, explained: float, label: bool, generator: np.random.Generator
) -> FloatArray:
    """y = 0.3·(√R²·signal + √(1 − R²)·noise) in [−1, 1], each of variance 1; for a label its
    sign.
    """
    spread = x.std(axis=0)
    varying = spread > 0
    if not varying.any():
        raise InvalidValueError("Expected at least one feature that differs between people.")
    signs = np.where(np.arange(varying.sum()) % 2, -1.0, 1.0)  # so that effects do not all add up
    signal = x[:, varying] @ (signs / spread[varying])
    signal = (signal - signal.mean()) / signal.std()
    noise = generator.standard_normal(len(x))
    latent = np.sqrt(explained) * signal + np.sqrt(1 - explained) * noise
    return np.where(latent > 0, 1.0, -1.0) if label else np.clip(0.3 * latent, -1.0, 1.0)
