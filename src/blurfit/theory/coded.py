"""Groups and weights: forms in which each person's products are multiplied by public numbers.

Used if an agreement has groups or weights (`blurfit.agreement.mechanisms.form_of`). A record's
products are w·zzᵀ ⊗ a_g: zzᵀ of `JointForm`, times a weight w in [0, 1] that follows from the
answers by a public rule, times a public vector a_g of the person's group g. The database gets one
sum for each entry of a_g, from which the sum of every group follows, and learns neither w nor g.

Guarantee, with z = (c, u), ‖u‖ ≤ ρ, ‖a_g‖ ≤ 1 and a_g·a_h ≥ 0 for all g and h (Lemma C). Proof:
`docs/theory/groups-and-weights.md`; test: `tests/theory/test_coded.py`.

* Groups, with or without weights, `replace` and one submission: Δ = √2(c² + ρ²). For c ≤ ρ it is
  the Δ of zzᵀ alone, so groups cost no noise.
* Weights alone, `replace` and one submission: Δ = max(`moments.sensitivity`, c² + ρ²).
* `zero-out`, where a blanked record adds 0: Δ = c² + ρ².

The number of people in a group is not public, so c² and the squares of signs are submitted
(`counted=False`), and are counted in these bounds.

Reading. With X = (a_g·a_h), least squares gives the sum of every group; the noise of two groups has
covariance s²(X⁻¹)_gh, times ½ off the diagonal of a block. Σw² is among the products, so n =
(Σw)²/Σw², the number of people without weights with the same sampling error if the spread is
unrelated to w, is released too.

Codes: X = (1 − κ)I + κ11ᵀ with overlap κ from 0 to 0.9. κ = 0 is best for groups and their
differences, ½ for all people together from four groups on. Entries that are no whole numbers are
taken 2⁻⁴⁰ smaller, so that ‖a_g‖ ≤ 1 for the numbers as they are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from blurfit.data import FloatArray, fixed
from blurfit.errors import InvalidValueError, whole
from blurfit.theory.forms import Form, JointForm
from blurfit.theory.moments import NUDGE, Neighbours

MOST_CLASSES = 256
MOST_OVERLAP = 0.9
_LESS = 1 - 2.0**-40
_LEAST_WORTH = 0.01  # of f, which noise may have made smaller than any weight


@dataclass(frozen=True)
class Code:
    """A public vector for each group: a row of `rows`, none longer than 1, no two at an angle of
    more than 90°.

    >>> Code.overlapping(2, 0.0).rows
    ((1.0, 0.0), (0.0, 1.0))
    >>> Code.overlapping(6, 0.5).noise.sum().round(3)  # of everybody together; 6 without overlap
    np.float64(1.714)
    """

    rows: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        table = np.array(self.rows, dtype=np.float64)
        if table.ndim != 2 or not 1 <= len(table) <= MOST_CLASSES or not np.isfinite(table).all():
            raise InvalidValueError(
                "Expected a code of 1 to {most_classes} groups, a row of finite numbers for each, "
                "and got shape {shape}.",
                most_classes=MOST_CLASSES,
                shape=table.shape,
            )
        products = table @ table.T
        if (longest := products.diagonal().max()) > 1:
            raise InvalidValueError(
                "Expected no row of a code to be longer than 1, and one has the squared length "
                "{longest!r}: the noise would be too small for it.",
                longest=longest,
            )
        # what floating point may have taken from a product, unless nothing can be negative
        least = 0.0 if (table >= 0).all() else table.shape[1] * 2.0**-50
        off = products[~np.eye(len(table), dtype=bool)]
        if off.size and not off.min() >= least:
            raise InvalidValueError(
                "Expected rows of a code whose products are at least 0, and two have "
                "{min!r}: the noise would be too small for such a pair.",
                min=off.min(),
            )
        if np.linalg.matrix_rank(table) < len(table):
            raise InvalidValueError("Expected rows of a code that tell all groups apart.")

    @classmethod
    def overlapping(cls, classes: int, overlap: float = 0.0) -> "Code":
        """Return the code whose rows have the length 1 and the product `overlap`, all alike."""
        whole(classes=classes)
        if not 0 <= overlap <= MOST_OVERLAP:
            raise InvalidValueError(
                "Expected overlap={overlap!r} from 0, for groups and their differences, to "
                "{most_overlap}; 0.5 suits a model of everybody together.",
                overlap=overlap,
                most_overlap=MOST_OVERLAP,
            )
        if overlap == 0 or classes == 1:
            return cls(tuple(map(tuple, np.eye(classes).tolist())))
        own = math.sqrt(1 - overlap)
        beside = (math.sqrt(1 + (classes - 1) * overlap) - own) / classes
        rows = np.full((classes, classes), beside * _LESS)
        np.fill_diagonal(rows, (own + beside) * _LESS)
        return cls(tuple(map(tuple, rows.tolist())))

    @cached_property
    def table(self) -> FloatArray:
        """The rows as an array, (groups, blocks)."""
        return fixed(np.array(self.rows))

    @cached_property
    def noise(self) -> FloatArray:
        """X⁻¹: the covariance of the noise in the sums of any two groups, in units of s²."""
        return fixed(np.asarray(np.linalg.inv(self.table @ self.table.T), dtype=np.float64))

    def sums(self, blocks: FloatArray) -> FloatArray:
        """Return the sums of each group (groups, width) from those of each block."""
        return np.asarray(np.linalg.pinv(self.table.T) @ blocks)


ONE = Code(((1.0,),))


@dataclass(frozen=True)
class Weighting:
    """A public rule for w: a factor for each level of a question, by the places of its columns; or,
    without factors, (1 + v)/2 of a number's one column v.
    """

    places: tuple[int, ...]
    factors: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.factors and not all(0 <= one <= 1 for one in self.factors):
            raise InvalidValueError(
                "Expected factors from 0 to 1, and got {factors}: divide them by their "
                "largest possible value, which is public.",
                factors=list(self.factors),
            )
        if len(self.places) != (len(self.factors) or 1) or max(self.factors, default=1.0) <= 0:
            raise InvalidValueError(
                "Expected a factor for each level of a question, at least one of them above 0; or "
                "the one column of a number."
            )

    def of(self, values: FloatArray) -> FloatArray:
        """Return each record's weight: (…,) from columns v (…, k)."""
        return self.total(values[..., list(self.places)], 1.0)

    def total(self, own: FloatArray, whole: FloatArray | float) -> FloatArray:
        """Return Σw·x from Σv·x of its columns and Σx."""
        if self.factors:
            return np.asarray(own @ np.array(self.factors))
        return np.asarray((whole + own[..., 0]) / 2)


@dataclass(frozen=True)
class CodedForm(Form):
    """w·zzᵀ ⊗ a_g of records with a group g, a weight w, or both.

    >>> from blurfit.theory.forms import JointColumn
    >>> inner = JointForm(0.5, (JointColumn("age", 0.8),), counted=False)
    >>> form = CodedForm(inner, (0,), Code.overlapping(2), (1, 2), labels=("north", "south"))
    >>> form.names
    ('north·1·1', 'north·1·age', 'north·age·age', 'south·1·1', 'south·1·age', 'south·age·age')
    >>> form.products(np.array([0.5, 0.0, 1.0])).round(3).tolist()
    [0.0, 0.0, 0.0, 0.25, 0.2, 0.16]
    """

    inner: JointForm  # the products of zzᵀ, none of them left out (`counted=False`)
    kept: tuple[int, ...]  # which of a record's columns those of `inner` are
    code: Code = ONE  # a public vector for each group
    groups: tuple[int, ...] = ()  # the columns that say the group, one 1 among zeros, if any
    weighting: Weighting | None = None  # the rule for w; without it everybody counts 1
    labels: tuple[str, ...] = field(default=("weight",), kw_only=True)

    def __post_init__(self) -> None:
        classes = max(1, len(self.groups))
        if self.inner.counted or len(self.kept) != len(self.inner.columns):
            raise InvalidValueError("Expected all products of the columns that are kept.")
        if {len(self.code.rows), len(self.labels), self.code.table.shape[1]} != {classes}:
            raise InvalidValueError(
                "Expected a code of {classes} groups and as many blocks.", classes=classes
            )

    def sensitivity(self, neighbours: Neighbours) -> float:
        """Δ by Lemma C for groups, and by Lemma H for weights alone."""
        length = (self.inner.constant**2 + self.inner.radius**2) * NUDGE
        if neighbours == "zero-out":
            return length
        return (
            math.sqrt(2) * length if self.groups else max(self.inner.sensitivity("replace"), length)
        )

    @property
    def counts(self) -> FloatArray:
        """How often each number that is sent counts in the squared norm: twice off a diagonal."""
        return np.tile(self.inner.counts, len(self.code.rows))

    @property
    def names(self) -> tuple[str, ...]:
        """What each number is the product of, block by block."""
        return tuple(f"{label}·{one}" for label in self.labels for one in self.inner.names)

    @property
    def joint(self) -> JointForm:
        """The form of the sum over all groups; how many people that has is public, and how much
        weight is not.
        """
        return replace(self.inner, counted=self.weighting is None)

    @property
    def gain(self) -> float:
        """√(1ᵀX⁻¹1), of the sum over all groups."""
        return math.sqrt(float(self.code.noise.sum()))

    def products(self, values: FloatArray) -> FloatArray:
        """Return the numbers that are sent, not blurred yet: (…, width) from columns v (…, k)."""
        own = self.inner.products(values[..., list(self.kept)])
        vectors = np.ones((*own.shape[:-1], 1))
        if self.groups:
            vectors = values[..., list(self.groups)] @ self.code.table
        if self.weighting is not None:
            vectors = vectors * self.weighting.of(values)[..., None]
        blocks: FloatArray = vectors[..., :, None] * own[..., None, :]
        return blocks.reshape(*own.shape[:-1], -1)

    def blocks(self, sums: Sequence[float] | FloatArray) -> FloatArray:
        """Return Σw·zzᵀ of each group, (groups, size, size)."""
        each = self.code.sums(np.reshape(sums, (len(self.code.rows), -1)))
        return np.array([self.inner.matrix(one, 0) for one in each])

    def worth(self, sums: Sequence[float] | FloatArray) -> tuple[FloatArray, float]:
        """Return f = Σw²/Σw of each group and of all together, as the blurred sums tell them."""
        blocks, c = self.blocks(sums), self.inner.constant
        whole = blocks[:, 0, 0] / c**2
        if self.weighting is None:
            return np.ones(len(whole)), 1.0
        if self.weighting.places == self.groups:
            squares = np.array(self.weighting.factors) * whole
        else:
            at = [1 + self.kept.index(place) for place in self.weighting.places]
            squares = self.weighting.total(blocks[:, 0, at] / (c * self.inner.scale[at]), whole)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.append(squares / whole, squares.sum() / whole.sum())
        each = np.clip(np.nan_to_num(each, nan=1.0), _LEAST_WORTH, 1.0)
        return each[:-1], float(each[-1])

    def matrix(self, sums: Sequence[float] | FloatArray, count: int) -> FloatArray:
        """Σw·zzᵀ of all groups together, with what everybody knows of it."""
        joint = self.joint
        return joint.matrix(joint.take(self.blocks(sums).sum(axis=0)), count)
