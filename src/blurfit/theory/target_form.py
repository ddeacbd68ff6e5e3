"""Only the products with the target: d numbers a person instead of d²/2, beside public rows.

Where rows of the features are public, Σyx (and Σy² for a number's spread) is all that is read of
the contributors (`blurfit.learning.public_features`). So the rest of zzᵀ need not be sent: of
z = (x, t), with x = (c, ω₁v₁, …) of the constant and the features, ‖x‖ ≤ R, and t of the target's
columns, ‖t‖ ≤ b, what is sent is x·tᵀ and t², in the geometry of `blurfit.theory.joint`, where x·tᵀ
counts twice.

**Sensitivity.** Of two records (x, t) and (x', t') let

    F = 2‖x·tᵀ − x't'ᵀ‖² + Σ(t_k² − t'_k²)².

* `zero-out` (t' = 0): F = 2t²‖x‖² + t⁴ ≤ 2b²R² + b⁴; without the last for a sign, whose square is
  known and is not sent.
* `replace`, one column. ‖xt − x't'‖ ≤ (|t| + |t'|)R. With s = |t| + |t'| and e = ||t| − |t'||, F ≤
  s²(2R² + e²), and s ≤ 2b − e. At e = 0 that is 8b²R². With e = hb, 0 ≤ h ≤ 1, it is no more than
  that if (1 − h/2)²(1 + kh²) ≤ 1, k = b²/(2R²). As (1 − h/2)⁻² ≥ 1 + h + ¾h² ≥ 1 + 7h²/4, it is for
  k ≤ 7/4. So **Δ² = 8b²R² for b² ≤ 3.5R²**: y² is free; it is attained by t = b, t' = −b and one
  x of length R. Beyond, e ≤ b and s² ≤ 4b² give Δ² = 8b²R² + 4b⁴, an upper bound.
* `replace`, levels: t = b·e_k. Two levels: F = 2b²(‖x‖² + ‖x'‖²) + 2b⁴ ≤ 4b²R² + 2b⁴. One level:
  F = 2b²‖x − x'‖² ≤ 8b²ρ², ρ² = R² − c². Δ² is the larger.
* `replace`, a number that need not be said (a number and a level, of which one is 0): ‖x·tᵀ −
  x't'ᵀ‖ ≤ 2bR, and the squares differ by at most 2b⁴ in all: Δ² = 8b²R² + 2b⁴, an upper bound. ∎

What is sent is a part of zzᵀ, so Δ of the whole bounds it too, and the smaller of both is taken.
For one column that is Δ = 2√2·bR against √2(R² + b²): the same noise at b = R, and less otherwise.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from blurfit.arrays import FloatArray, fixed
from blurfit.errors import InvalidValueError
from blurfit.theory.joint_form import IndexArray, JointColumn, JointForm
from blurfit.theory.moment_calibration import Reach
from blurfit.theory.setting import Neighbours

_NUDGE = 1 + 1e-12
_FREE = 3.5  # b²/R² up to which y² costs nothing


@dataclass(frozen=True)
class TargetForm(JointForm):
    """A form of which only products with the last `outputs` columns, the target's, are sent.

    >>> columns = JointColumn("age", 0.6), JointColumn("male", 0.6, "sign"), JointColumn("y", 0.9)
    >>> TargetForm(0.4, columns).names
    ('1·y', 'age·y', 'male·y', 'y·y')
    """

    outputs: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.outputs < len(self.columns):
            raise InvalidValueError(
                f"Expected outputs={self.outputs} to be some of the {len(self.columns)} columns, "
                "the last ones, and at least one feature before them."
            )

    @property
    def target(self) -> tuple[JointColumn, ...]:
        """The target's columns."""
        return self.columns[-self.outputs :]

    def reach(self, neighbours: Neighbours) -> Reach:
        """How far one person moves the sums, and how far apart two submissions can be."""
        whole = super().reach(neighbours)  # of zzᵀ, of which this is a part
        submission = min(self._replaced() * _NUDGE, whole.submission)
        zeroed = min(self._zeroed() * _NUDGE, whole.sums)
        return Reach(submission if neighbours == "replace" else zeroed, submission)

    def matrix(self, sums: object, count: int) -> FloatArray:
        """There is none: most of Σzzᵀ was never sent."""
        del sums, count
        raise InvalidValueError("Only products with the target were sent: Σzzᵀ is not known.")

    def beside(self, sums: FloatArray, features: FloatArray, count: int) -> FloatArray:
        """Σzzᵀ with the target's rows as they were sent, and for the rest `count` times E[(1, v)
        (1, v)ᵀ] of public rows, (p + 1, p + 1).
        """
        found = np.zeros((self.size, self.size))
        p = len(features)
        scale = self.scale[:p]
        found[:p, :p] = count * features * np.outer(scale, scale)
        rows, columns = self._sent
        found[rows, columns] = found[columns, rows] = sums
        return found

    def _replaced(self) -> float:
        b, length, inner = self._lengths()
        first = self.target[0]
        if self.outputs == 1:
            extra = 0.0 if first.kind == "sign" or b**2 <= _FREE * length**2 else 4 * b**4
            return math.sqrt(8 * (b * length) ** 2 + extra)
        if all(column.kind == "level" for column in self.target):
            return math.sqrt(max(4 * (b * length) ** 2 + 2 * b**4, 8 * (b * inner) ** 2))
        return math.sqrt(8 * (b * length) ** 2 + 2 * b**4)

    def _zeroed(self) -> float:
        b, length, _ = self._lengths()
        known = self.target[0].kind == "sign"
        return math.sqrt(2 * (b * length) ** 2 + (0.0 if known else b**4))

    def _lengths(self) -> tuple[float, float, float]:
        """b, R, and ρ of the features without the constant."""
        b = max(column.weight for column in self.target)
        inner = JointForm(self.constant, self.columns[: -self.outputs]).radius
        return b, math.hypot(self.constant, inner), inner

    @cached_property
    def _sent(self) -> tuple[IndexArray, IndexArray]:
        rows, columns = super()._sent
        first = self.size - self.outputs
        kept = columns >= first
        return fixed(rows[kept]), fixed(columns[kept])
