"""A population as columns with the schema to collect it under, and one that is generated."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from blurfit import validate
from blurfit.errors import InvalidValueError
from blurfit.optional import optional
from blurfit.schema.columns import Binary, Numeric
from blurfit.schema.schema import Schema
from blurfit.simulation.people import draw_population

Column = npt.NDArray[Any]

GENERATED = "generated population (synthetic)"

# Above it, an income counts as high: the published median of the people in `load_acs`.
HIGH_INCOME = 37_000

# Half of all incomes are below 40,000 dollars and a few are in the millions. The bound is a choice:
# what is above it counts as 200,000, and in exchange the noise is scaled to that.
INCOME = Numeric("annual_income", 0, 200_000)


@dataclass(frozen=True, eq=False, repr=False)
class Census:
    """Columns, the schema for them, what they are called, and whether the people are made up.

    `schema` predicts income or, where there is none, the population's own label. Its bounds are
    constants: whatever the columns hold, they are the same. The columns cannot be written to.

    >>> from blurfit.simulation import make_census
    >>> census = make_census(1000, seed=1)
    >>> census
    Census('generated population (synthetic)': 1,000 rows, 14 columns, synthetic)
    >>> census.schema.encode(census.table).features.shape
    (1000, 14)
    """

    table: dict[str, Column]
    schema: Schema
    name: str
    synthetic: bool
    removed: int = 0  # rows of the source with unknown values, which are not in the table

    def __post_init__(self) -> None:
        table = {name: np.asarray(column).view() for name, column in self.table.items()}
        lengths = {name: len(column) for name, column in table.items()}
        if len(set(lengths.values())) != 1:
            raise InvalidValueError(f"Expected columns of one length, got {lengths}.")
        for attribute in (*self.schema.features, self.schema.target):
            if attribute.name not in table:
                raise InvalidValueError(
                    f"Expected a column {attribute.name!r} as the schema says, got {list(table)}."
                )
        for column in table.values():
            column.flags.writeable = False
        object.__setattr__(self, "table", table)

    def __len__(self) -> int:
        return len(next(iter(self.table.values())))

    def __repr__(self) -> str:
        kind = "synthetic" if self.synthetic else "real"
        removed = f", {self.removed:,} rows with unknown values removed" if self.removed else ""
        return (
            f"Census({self.name!r}: {len(self):,} rows, {len(self.table)} columns, {kind}{removed})"
        )

    @property
    def label_schema(self) -> Schema:
        """For classification: whether the income is above 37,000, or the population's own label."""
        return self.schema if self.schema.is_label else self.above(HIGH_INCOME)

    def above(self, threshold: float) -> Schema:
        """The schema with the label "the target is above the threshold", in the target's units."""
        target = self.schema.target
        if not isinstance(target, Numeric):
            raise InvalidValueError(
                f"Expected a numeric target for threshold={threshold!r}, but {target.name!r} is a "
                "label already: use schema as it is."
            )
        return replace(self.schema, target=target.above(threshold))

    @property
    def is_test(self) -> npt.NDArray[np.bool_]:
        """Which rows the publisher set aside for testing, where the source says so (Adult does)."""
        if "is_test_split" not in self.table:
            raise InvalidValueError(
                f"Expected a column 'is_test_split': {self.name!r} sets no rows aside; "
                "take(n) and take(m, start=n) do."
            )
        return self.table["is_test_split"].astype(np.bool_)

    def head(self, n: int) -> "Census":
        """The first n rows: a simple random sample, where rows are in random order, as they are in
        all but an IPUMS extract.
        """
        return self.take(n)

    def take(self, n: int, start: int = 0) -> "Census":
        """n rows from row `start` on: never fewer, so that a quorum counted on it is met."""
        validate.whole(n=n)
        validate.whole_from_zero(start=start)
        if start + n > len(self):
            raise InvalidValueError(
                f"Expected n={n} rows from start={start} on, but there are {len(self)} rows."
            )
        return self._rows(slice(start, start + n))

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Census":
        """The rows where `chosen` is true: `adult.where(~adult.is_test)` is for training."""
        if chosen.shape != (len(self),) or chosen.dtype != np.bool_:
            raise InvalidValueError(
                f"Expected chosen to be {len(self)} booleans, got shape {chosen.shape} of "
                f"{chosen.dtype}."
            )
        return self._rows(chosen)

    def frame(self) -> Any:
        """The columns as a pandas DataFrame."""
        return optional("pandas").DataFrame(self.table)

    def _rows(self, rows: slice | npt.NDArray[np.bool_]) -> "Census":
        return replace(self, table={name: column[rows] for name, column in self.table.items()})


def census_schema(*, education: Numeric, residence: Numeric, dwelling: Numeric) -> Schema:
    """The paper's 14 attributes, of which income is the target; the sources differ in three.

    Bounds of codes (education, hours, bands, 9 children and more) are the code book's. Those of
    age, family size, rooms and income are round numbers by judgement, set with the distributions of
    the American Community Survey's public file in view: fewer than 1 in 1,000 of its people have a
    feature clipped. No record that is loaded changes them. For a collection of your own there is
    nothing to look at beforehand: agree on bounds from what is public.
    """
    features = (
        Numeric("age", 0, 100),
        Binary("is_male"),
        Binary("is_single"),
        Binary("is_married"),
        education,
        Binary("has_disability"),
        Binary("is_native_born"),
        Numeric("hours_per_week", 0, 99),
        residence,
        Binary("owns_dwelling"),
        Numeric("family_size", 1, 12),
        Numeric("num_children", 0, 9),
        dwelling,
    )
    return Schema(features, INCOME)


def make_census(n: int, seed: int) -> Census:
    """n made-up people with the paper's attributes: a synthetic census, of nobody.

    Incomes rise with schooling, hours and, until about 50, age; are higher for men and the married;
    are zero for about a tenth; and are above 200,000 for a few in a hundred: `simulation.people`
    has the whole model. A linear model of the clipped income explains a little less than half of
    its variance, and about 47 in 100 earn more than 37,000. The same n and seed give the same
    people.

    >>> make_census(3, seed=7).synthetic
    True
    """
    validate.whole(n=n)
    validate.whole_from_zero(seed=seed)
    schema = census_schema(
        education=Numeric("education", 1, 24),
        residence=Numeric("residence_years", 0, 100),
        dwelling=Numeric("num_automobiles", 0, 6),
    )
    return Census(draw_population(n, int(seed)), schema, GENERATED, synthetic=True)
