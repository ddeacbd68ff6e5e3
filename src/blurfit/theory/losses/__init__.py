"""A record as a quadratic: ½wᵀqqᵀw − pᵀw + s, which is all that the database ever needs of it.

Paper: section "Loss Function for Input Perturbation". A loss turns (x, y) into (q, p, s);
contributors blur q and p, and from the sums of what they send a model is learned. Two losses are
ready; the exact logistic and Poisson ones need waves (`blurfit.theory.newton`):

| loss | of | q | p | parallel |
| --- | --- | --- | --- | --- |
| `SquaredLoss` | ½(y − w·x)² | x | yx | yes |
| `LogisticLoss` | ln(1 + e^{−y w·x}) by a parabola | √c·x | ½yx | yes |

| here | paper | meaning |
| --- | --- | --- |
| `q_bound` | √λ | R_q ≥ ‖q‖ for every record that may occur |
| `p_bound` | ≤ ζ | R_p ≥ ‖p‖ for every record that may occur |
| `parallel` | – | p = κq and ‖p‖ ≤ (R_p/R_q)·‖q‖ for every record |

Privacy rests on the bounds, so `terms` refuses a record outside them. `parallel` lets the moment
mechanism add less noise, and needs the ratio as well as the direction: where a short q may come
with a long p, say False.

Your own loss is any object with these three names and a method `terms`. In this one large targets
count for less, by the weight v = 1/(1 + y²):

>>> from dataclasses import dataclass
>>> import numpy as np
>>> from blurfit.theory.losses import Quadratic, check_bounds, value
>>> @dataclass(frozen=True)
... class CautiousLoss:  # ½v(y − w·x)² for ‖x‖ ≤ 1 and |y| ≤ 1
...     q_bound: float = 1.0  # ‖q‖ = √v·‖x‖, largest at y = 0
...     p_bound: float = 0.5  # ‖p‖ = v|y|·‖x‖, largest at |y| = 1
...     parallel: bool = False  # p = κq, but |κ| = √v·|y| reaches √½, more than R_p/R_q = ½
...     def terms(self, features, target):
...         x, y = np.asarray(features), np.asarray(target)
...         v = 1 / (1 + y**2)
...         return Quadratic(np.sqrt(v)[..., None] * x, (v * y)[..., None] * x, v * y**2 / 2)

Try it on data that might occur, before anybody relies on it:

>>> features, target = np.array([[0.6, 0.8], [0.0, 0.5]]), np.array([1.0, -0.5])
>>> check_bounds(CautiousLoss(), features, target)
>>> value(CautiousLoss().terms(features, target), weights=[1.0, 0.5]).round(6).tolist()
[0.0, 0.225]
>>> check_bounds(CautiousLoss(parallel=True), features, target)
Traceback (most recent call last):
    ...
blurfit.errors.InvalidValueError: Row 0 has a ‖p‖/‖q‖ above p_bound/q_bound=0.5; ...
"""

from blurfit.theory.losses.logistic import LogisticLoss
from blurfit.theory.losses.parabola import Parabola
from blurfit.theory.losses.quadratic import Quadratic, QuadraticLoss, check_bounds, value
from blurfit.theory.losses.squared import SquaredLoss

__all__ = [
    "LogisticLoss",
    "Parabola",
    "Quadratic",
    "QuadraticLoss",
    "SquaredLoss",
    "check_bounds",
    "value",
]
