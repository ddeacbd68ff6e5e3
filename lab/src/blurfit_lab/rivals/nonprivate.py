"""No privacy: the floor that rivals are measured against.

It is the exact minimiser of the same loss on the same encoded columns.
"""

from dataclasses import dataclass

import numpy as np

from blurfit.data import FloatArray
from blurfit.errors import nonnegative
from blurfit.estimators.base import FitGuarantee
from blurfit_lab.rivals.rival import Risk, Rival, RivalClassifier, RivalRegressor, minimiser

PUBLIC = FitGuarantee(
    None, None, "replace", False, "NOT PRIVATE: no noise is added. For comparisons only."
)


@dataclass(kw_only=True, eq=False, repr=False)
class NonPrivate(Rival):
    """argmin Σℓ + ½·ridge·‖w‖², without noise.

    Args:
        ridge: for encoded columns, in all and not per record.
    """

    source = "nobody"
    published_neighbours = None
    trust = "none"
    proved = False

    ridge: float = 0.0

    def promise(self) -> FitGuarantee:
        """Nothing."""
        nonnegative(ridge=self.ridge)
        return PUBLIC

    def release(self, risk: Risk, generator: np.random.Generator) -> FloatArray:  # noqa: ARG002
        """The minimiser itself."""
        return minimiser(risk, self.ridge)


@dataclass(kw_only=True, eq=False, repr=False)
class NonPrivateRegressor(NonPrivate, RivalRegressor):
    """Least squares, not private.

    >>> model = NonPrivateRegressor(bounds=(0, 10), target_bounds=(0, 20))
    >>> model.fit([[1], [2], [4]], [2, 4, 8]).predict([[3]]).round(6).tolist()
    [6.0]
    """


@dataclass(kw_only=True, eq=False, repr=False)
class NonPrivateClassifier(NonPrivate, RivalClassifier):
    """Logistic regression, not private; separable classes need a ridge."""
