"""The default point estimate: which reading of the blurred sums, by public facts alone.

ψ = nμ/p^1.5 says how far the signal stands above the noise (`blurfit.theory.public_weights`). Where
ψ is small the posterior mean is the better reading, for it uses that all moments come from one
positive definite matrix; where it is large the two agree up to sampling error, and linear Bayes
takes milliseconds. The border, 40, is a choice: on the American Community Survey both are equal
between 20 and 60, and so they are on twelve small sets. Beyond 32 coefficients sampling would take
more than a second, and linear Bayes is used throughout.
"""

import math
from typing import Literal

from blurfit.learning.joint_sums import Submodel
from blurfit.learning.linear_bayes import Shrunk, linear_bayes
from blurfit.learning.posterior_mean import posterior_mean
from blurfit.theory import public_weights
from blurfit.theory.joint import sensitivity

Reading = Literal["linear-bayes", "posterior-mean"]

_BORDER = 40.0
_MOST_COEFFICIENTS = 32


def information(sums: Submodel) -> float:
    """ψ, with the μ that this noise gives to `replace` if the weights fill the unit ball.

    It is about the noise that is in the sums, not about the promise, so it is the same for every
    neighbouring relation. Infinite without noise.
    """
    if sums.deviation == 0:
        return math.inf
    mu = sensitivity(sums.constant, 1.0) / sums.deviation
    return public_weights.information(sums.count, mu, len(sums.features))


def reading(sums: Submodel) -> Reading:
    """Which estimator `shrink` uses; it depends on N, s, c and the number of features only."""
    sampled = information(sums) < _BORDER and len(sums.features) <= _MOST_COEFFICIENTS
    return "posterior-mean" if sampled else "linear-bayes"


def shrink(sums: Submodel) -> Shrunk:
    """The model of one target that is published: the same release always gives the same model."""
    found = linear_bayes(sums)
    return posterior_mean(sums, found) if reading(sums) == "posterior-mean" else found
