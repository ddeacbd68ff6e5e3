"""Least squares, which is a quadratic as it stands."""

from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import ArrayLike

from blurfit.theory.losses.quadratic import Quadratic
from blurfit.theory.losses.records import read, within
from blurfit.validate import positive


@dataclass(frozen=True)
class SquaredLoss:
    """½(y − w·x)² = ½wᵀxxᵀw − (yx)ᵀw + ½y², so q = x, p = yx and s = ½y².

    With ‖x‖ ≤ R (`feature_bound`) and |y| ≤ B (`target_bound`): R_q = R and R_p = RB. It is
    `parallel`, because p = yq and |y| ≤ B = R_p/R_q.

    >>> SquaredLoss().terms([0.6, 0.8], 0.5).p.tolist()
    [0.3, 0.4]
    """

    feature_bound: float = 1.0
    target_bound: float = 1.0
    parallel: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(feature_bound=self.feature_bound, target_bound=self.target_bound)

    @property
    def q_bound(self) -> float:
        """R_q = R."""
        return self.feature_bound

    @property
    def p_bound(self) -> float:
        """R_p = RB."""
        return self.feature_bound * self.target_bound

    def terms(self, features: ArrayLike, target: ArrayLike) -> Quadratic:
        """(x, yx, ½y²) of each record."""
        records = read(features, target, self.feature_bound)
        bound = self.target_bound
        y = within(
            records.target,
            -bound,
            bound,
            f"target_bound={bound:g} of 0",
            "scale targets by public bounds, or agree on a larger target_bound",
        )
        return Quadratic(q=records.along(1.0), p=records.along(y), s=y**2 / 2)
