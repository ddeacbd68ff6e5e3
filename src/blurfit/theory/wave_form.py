"""What a contributor of a later wave sends: the numbers that an announced map makes of a record.

As `blurfit.theory.joint_form` does for the first wave, a form lists the numbers, their weights in
the norm in which noise is alike in all directions, and how far a record reaches in it:

| map | numbers, in this order | count 1 | count 2 | count 1/τ² |
| --- | --- | --- | --- | --- |
| residual | upper triangle of zzᵀ but c² | diagonal | beside it | |
| Newton's | upper triangle of M, then p | diagonal | beside it | p |

**Whatever map is announced, a record stays within the reach.** Write ‖·‖ for that norm.

* Residual. z = (c, u) with u = (a·f', b·g'), f' = f/max(‖f‖, r√p) and |g'| ≤ 1, so that ‖u‖² ≤
  a² + b² ≤ 1 for *every* f and g: nothing of m, W, β, β₀, r or the scale enters. Two records differ
  by ‖zzᵀ − z'z'ᵀ‖_F ≤ Δ(c, 1) of `theory.joint.sensitivity`, whose constant entry is 0.
* Newton's. (M, p) = (h·uuᵀ, −g·u/max(1, ‖x‖)) with ‖u‖ ≤ 1, and (g, h) are the loss's slopes at
  *some* score: those of logistic loss lie on one curve whatever the score is, and Poisson's are
  clipped into a rectangle. `theory.newton` proves Δ(τ) for all such pairs, whatever x and the score
  are, and however they depend on each other.

So Δ follows from (c), or from the loss and τ: from a handful of numbers in the agreement, which
`verify` checks. m, W, β and r may have been chosen by an enemy who knows everything but the noise.
∎ In floating point: the map is total (`theory.maps`), and each number that is sent is a product of
at most four factors, each at most 1 + (p + 8)·2⁻⁵² too large; Δ as computed therefore exceeds Δ by
a factor of less than 1 + (4p + 40)·2⁻⁵², where an agreement allows 1 + 2⁻¹².

**τ is at least 1.** The grid of an agreement follows from the noise on M. With a τ below 1 the
noise on p would be finer than that grid assumes, so such a map is refused.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from blurfit.arrays import FloatArray, fixed
from blurfit.errors import InvalidValueError
from blurfit.theory.maps import NewtonMap, ResidualMap, WaveMap
from blurfit.theory.moment_calibration import Reach
from blurfit.theory.newton import PoissonNewton
from blurfit.theory.setting import Neighbours

LEAST_BALANCE, LARGEST_BALANCE = 1.0, 1e6


@dataclass(frozen=True, eq=False)
class WaveForm:
    """The numbers of a later wave.

    Args:
        chart: The announced map.
        columns: The names of a record's encoded columns, the target's last.
        kept: Which of them the map speaks of, in its order.

    >>> from blurfit.theory.maps import Whitening
    >>> chart = ResidualMap(Whitening([0.5], [[2.0]], [1.0]), radius=1, scale=0.5, bound=2)
    >>> form = WaveForm(chart, ("age", "income"), (0,))
    >>> form.names
    ('1·age', '1·error', 'age·age', 'age·error', 'error·error')
    >>> form.products(np.array([[0.75, 1.0]])).round(3).tolist()
    [[0.1, 0.038, 0.16, 0.06, 0.022]]
    """

    chart: WaveMap
    columns: tuple[str, ...]
    kept: tuple[int, ...]

    def __post_init__(self) -> None:
        dimension = self.chart.whitening.dimension
        if len(self.kept) != dimension:
            raise InvalidValueError(
                f"Expected a map of {len(self.kept)} columns, as the schema has them without the "
                f"target and the last level of each categorical, and got one of {dimension}."
            )
        if not self.is_newton:
            return
        balance = self.chart.loss.balance  # type: ignore[union-attr]
        if not LEAST_BALANCE <= balance <= LARGEST_BALANCE:
            raise InvalidValueError(
                f"Expected balance={balance!r} between {LEAST_BALANCE:g} and {LARGEST_BALANCE:g}: "
                "the grid would be too coarse for the noise of another."
            )

    @property
    def is_newton(self) -> bool:
        """Whether a Newton step is collected, and not residuals."""
        return isinstance(self.chart, NewtonMap)

    def reach(self, neighbours: Neighbours) -> Reach:
        """How far one person moves the sums, and how far apart two submissions can be."""
        return Reach(self.chart.sensitivity(neighbours), self.chart.sensitivity("replace"))

    @property
    def bound(self) -> float:
        """The largest norm of the numbers of one record."""
        return self.reach("zero-out").sums

    @property
    def width(self) -> int:
        """How many numbers are sent."""
        return len(self.counts)

    @cached_property
    def counts(self) -> FloatArray:
        """How often each number counts in the squared norm: 1, 2 beside the diagonal, 1/τ²."""
        rows, columns = self._upper
        found = np.where(rows == columns, 1.0, 2.0)
        if not isinstance(self.chart, NewtonMap):
            return fixed(found)
        return fixed(np.concatenate([found, np.full(self._rows, self.chart.loss.balance**-2)]))

    @property
    def size(self) -> int:
        """√Σ counts, rounded up: numbers that are off by a step each are off by so many steps."""
        return math.ceil(math.sqrt(math.fsum(self.counts)))

    @property
    def names(self) -> tuple[str, ...]:
        """What each number is about: white features by the column that ends each of them."""
        features = [self.columns[place] for place in self.kept]
        labels = [*features, "1"] if self.is_newton else ["1", *features, "error"]
        rows, columns = self._upper
        products = [f"{labels[i]}·{labels[j]}" for i, j in zip(rows, columns, strict=True)]
        slopes = [f"slope·{label}" for label in labels] if self.is_newton else []
        return (*products, *slopes)

    def products(self, values: FloatArray) -> FloatArray:
        """The numbers that are sent, before they are blurred: (…, width) from columns (…, k).

        Nothing is raised for a value: what is not a number is mapped as well.
        """
        features, target = values[..., list(self.kept)], values[..., -1]
        rows, columns = self._upper
        if isinstance(self.chart, ResidualMap):
            z = self.chart.vectors(features, target)
            return np.asarray(z[..., rows] * z[..., columns])
        if isinstance(self.chart.loss, PoissonNewton):
            target = (target + 1) / 2 * self.chart.loss.count_bound
        u, (g, h) = self.chart.vectors(features), self.chart.slopes(features, target)
        matrix = h[..., None] * (u[..., rows] * u[..., columns])
        return np.concatenate([matrix, -g[..., None] * u], axis=-1)

    def sums(self, values: FloatArray) -> FloatArray:
        """Σ of `products` over rows, as products of matrices: for whoever has all rows at hand."""
        features, target = values[:, list(self.kept)], values[:, -1]
        if isinstance(self.chart, ResidualMap):
            z = self.chart.vectors(features, target)
            return np.asarray((z.T @ z)[self._upper])
        if isinstance(self.chart.loss, PoissonNewton):
            target = (target + 1) / 2 * self.chart.loss.count_bound
        matrix, linear = self.chart.sums(features, target)
        return np.concatenate([matrix[self._upper], linear])

    def matrix(self, sums: Sequence[float] | FloatArray, count: int) -> FloatArray:
        """Σzzᵀ, or ΣM, from the sums of what was sent by `count` people."""
        rows, columns = self._upper
        found = np.zeros((self._rows, self._rows))
        found[rows, columns] = found[columns, rows] = np.asarray(sums)[: len(rows)]
        if isinstance(self.chart, ResidualMap):
            found[0, 0] = self.chart.constant**2 * count
        return found

    def linear(self, sums: Sequence[float] | FloatArray) -> FloatArray | None:
        """Σp, where a Newton step is collected."""
        rows, _ = self._upper
        return np.asarray(sums)[len(rows) :] if self.is_newton else None

    @property
    def _rows(self) -> int:
        """Of the matrix: the constant's, each feature's, and for residuals the target's."""
        return len(self.kept) + (1 if self.is_newton else 2)

    @cached_property
    def _upper(self) -> tuple[np.ndarray, np.ndarray]:
        """The places of the upper triangle that are sent; zzᵀ begins with c², which is known."""
        rows, columns = np.triu_indices(self._rows)
        start = 0 if self.is_newton else 1
        return fixed(rows[start:]), fixed(columns[start:])
