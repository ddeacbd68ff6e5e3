"""Groups and weights: forms in which each person's products are multiplied by public numbers.

A record's products are w·zzᵀ ⊗ a_g: zzᵀ of `JointForm`, times a weight w from 0 to 1 that follows
from the answers by a public rule, times a public vector a_g of the group g that the person is in.
The database gets one sum for each entry of a_g, from which the sum of every group follows, and
learns neither w nor g. Three lemmas say what that costs.

**Lemma H (hull).** Let K be the set of all numbers that one record can send, in any form. Then the
convex hull of K has the diameter of K, and no point of it is farther from any o than some point of
K is.

*Proof.* With weights λ_i and μ_j that sum to 1, ‖Σλ_i x_i − Σμ_j y_j‖ = ‖ΣΣλ_iμ_j(x_i − y_j)‖ ≤
ΣΣλ_iμ_j‖x_i − y_j‖ ≤ diam K. The second claim is the case y_j = o. ∎ So whatever a person averages
over their own rows or days reaches as far as one row.

**Lemma P (positive).** For A, B ⪰ 0 with traces of at most t, ‖A − B‖_F ≤ √2·t and ‖A‖_F ≤ t.

*Proof.* ‖A − B‖² = ‖A‖² + ‖B‖² − 2⟨A, B⟩, where ⟨A, B⟩ = ‖A^½B^½‖² ≥ 0 and ‖A‖_F ≤ tr A. ∎

**Lemma C (codes).** Let ‖a_g‖ ≤ 1 and a_g·a_h ≥ 0 for all g and h. Then A⊗a_g and B⊗a_h, with A
and B as in Lemma P, are at most √2·t apart, however many groups there are.

*Proof.* ‖A⊗a − B⊗b‖² = ‖A‖²‖a‖² + ‖B‖²‖b‖² − 2⟨A, B⟩(a·b) ≤ 2t². ∎

**Sensitivity.** zzᵀ has the trace ‖z‖² ≤ t = c² + ρ², and w·zzᵀ no larger a one.

* Groups, with or without weights, `replace`: Δ = √2(c² + ρ²) by Lemma C. With a_g·a_h = 0 for some
  two groups it is attained, by a record of full length in each; else, if c ≤ ρ, by two whose z are
  orthogonal; else it is an upper bound. For c ≤ ρ it is what sending zzᵀ alone takes, so
  groups cost no noise.
* Weights alone, `replace`: w·zzᵀ is in the hull of all zzᵀ and 0, whose largest distances are
  Δ_z = `sensitivity` between two of the first, and t. Δ = max(Δ_z, t) by Lemma H: √2(c² + ρ²) up to
  c = ρ, 2√2·cρ up to c = (1 + √2)ρ, and c² + ρ² beyond. It is attained wherever Δ_z is.
* `zero-out`: a record that is blanked out says no group and no weight, so it adds 0, and
  Δ = c² + ρ². That bounds what a record with u = 0 in the same group, or of any weight, changes
  too, which is √((c² + ρ²)² − c⁴) and less than t by Lemma H.
* One submission: as `replace`. ∎

How many people, or how much weight, there is in a group is not public, so c² and the squares of
signs are sent (`counted=False`): they are entries of zzᵀ, and counted above.

**Reading.** With X = (a_g·a_h), least squares gives the sum B_g of every group. Their noise has
the covariance s²(X⁻¹)_gh between two groups, times 1 on the diagonal of a block and ½ beside it.
So Σ_g B_g, the sum over everybody, has the variance s²·1ᵀX⁻¹1.

**What weights are worth.** As w ≤ 1, Σw² ≤ Σw, and n = (Σw)²/Σw² people without weights would have
the sampling error that these have, as far as the spread is unrelated to w. w is a sum of columns of
z (a factor for each level, or half of a number's column and a half), so Σw² = Σw·w is among the
products, and so is f = Σw²/Σw. Sums divided by f are those of n people, with noise of s/f.

**Which code.** X = (1 − κ)I + κ11ᵀ, with the overlap κ from 0 to 0.9. In units of s², the variance
of the sum of all G groups is G/(1 + (G−1)κ), of one group (1 + (G−2)κ)/((1−κ)(1 + (G−1)κ)), of the
difference of two 2/(1−κ). κ = 0 is best for groups and their differences; κ = ½ for everybody
together, where there are four groups or more. Its symmetric root is a code of G numbers: a_g = αe_g
+ β1 with α = √(1−κ) and β = (√(1 + (G−1)κ) − α)/G ≥ 0.

**Rounding.** A code is stated by κ, and its entries are at least 0, so products of its rows are as
well, in floating point too. Entries are taken 2⁻⁴⁰ smaller where they are no whole numbers, so that
‖a_g‖ ≤ 1 for the numbers as they are; `Code` refuses a longer row by what it computes, which is off
by less than (G + 2)·2⁻⁵² of it and is covered by `NUDGE`.
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
                f"Expected a code of 1 to {MOST_CLASSES} groups, a row of finite numbers for each, "
                f"and got shape {table.shape}."
            )
        products = table @ table.T
        if (longest := products.diagonal().max()) > 1:
            raise InvalidValueError(
                f"Expected no row of a code to be longer than 1, and one has the squared length "
                f"{longest!r}: the noise would be too small for it."
            )
        # what floating point may have taken from a product, unless nothing can be negative
        least = 0.0 if (table >= 0).all() else table.shape[1] * 2.0**-50
        off = products[~np.eye(len(table), dtype=bool)]
        if off.size and not off.min() >= least:
            raise InvalidValueError(
                f"Expected rows of a code whose products are at least 0, and two have "
                f"{off.min()!r}: the noise would be too small for such a pair."
            )
        if np.linalg.matrix_rank(table) < len(table):
            raise InvalidValueError("Expected rows of a code that tell all groups apart.")

    @classmethod
    def overlapping(cls, classes: int, overlap: float = 0.0) -> "Code":
        """Return the code whose rows have the length 1 and the product `overlap`, all alike."""
        whole(classes=classes)
        if not 0 <= overlap <= MOST_OVERLAP:
            raise InvalidValueError(
                f"Expected overlap={overlap!r} from 0, for groups and their differences, to "
                f"{MOST_OVERLAP}; 0.5 suits a model of everybody together."
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
                f"Expected factors from 0 to 1, and got {list(self.factors)}: divide them by their "
                "largest possible value, which is public."
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
            raise InvalidValueError(f"Expected a code of {classes} groups and as many blocks.")

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
