"""The locally private gradient method: each contributor sends one randomised gradient, once.

Duchi, Jordan and Wainwright 2013 (section 4.2.3 of the long version): stochastic gradient descent
in one pass, where a contributor sends, instead of a gradient g with ‖g‖ ≤ L, a vector of length

    B = L·(e^ε + 1)/(e^ε − 1)·√π·Γ((d+1)/2)/Γ(d/2)

in a random direction: g is first rounded to ±L·g/‖g‖, the sign + with probability ½ + ‖g‖/(2L);
then the direction is uniform on the half sphere of that, with probability e^ε/(e^ε + 1), or on the
other half. Each density is e^ε times the other, so what is sent is ε-locally private, whatever the
two records are; and it is unbiased, because the mean of a half sphere is Γ(d/2)/(√π·Γ((d+1)/2))
long. So the model, too, is ε-DP for neighbours that replace one record: an ε that everyone has
against everyone.

    w ← Π(w − η_t·sent),   η_t = η/(B√t);   the model is the mean of all iterates.

For losses of w·x the gradient points along ±x, so all randomness is drawn before the pass.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError
from blurfit.estimators.guarantee import FitGuarantee
from blurfit_lab.rivals.descent import (
    Descent,
    DescentClassifier,
    DescentRegressor,
    Slope,
    into_balls,
)
from blurfit_lab.rivals.risk import Risk
from blurfit_lab.rivals.rival import PureRival

ROWS_AT_ONCE = 4096  # whose randomness is drawn in one go


def sent_length(epsilon: float, dimension: int, lipschitz: float) -> float:
    """B, by logarithms of Γ; (e^ε + 1)/(e^ε − 1) = 1/tanh(ε/2) cannot overflow so.

    >>> round(sent_length(1.0, 1, 1.0), 4)  # in one dimension: randomised response
    2.164
    """
    half_sphere = gammaln((dimension + 1) / 2) - gammaln(dimension / 2)
    return float(lipschitz / math.tanh(epsilon / 2) * math.sqrt(math.pi) * math.exp(half_sphere))


def sent_directions(
    directions: FloatArray, along: FloatArray, positive_share: FloatArray, coins: FloatArray
) -> FloatArray:
    """±direction, so that its side of `along` is + with the probability that is asked for."""
    side = np.where(coins < positive_share, 1.0, -1.0)
    facing = np.where(np.einsum("kd,kd->k", directions, along) >= 0, 1.0, -1.0)
    return np.asarray(directions * (side * facing)[:, None])


def local_descent(
    x: FloatArray,
    y: FloatArray,
    slope: Slope,
    *,
    epsilon: float,
    radius: float,
    lipschitz: float,
    runs: int,
    generator: np.random.Generator,
) -> FloatArray:
    """One pass, `runs` times beside one another, each in an order of its own: (runs, d)."""
    n, d = x.shape
    orders = np.stack([generator.permutation(n) for _ in range(runs)], axis=1)
    length, truth = sent_length(epsilon, d, lipschitz), 1 / (1 + math.exp(-epsilon))
    weights, mean = np.zeros((runs, d)), np.zeros((runs, d))
    for first in range(0, n, ROWS_AT_ONCE):
        chosen = orders[first : first + ROWS_AT_ONCE]
        directions = generator.standard_normal((*chosen.shape, d))
        directions /= np.linalg.norm(directions, axis=2, keepdims=True)
        coins = generator.random(chosen.shape)
        for t in range(len(chosen)):
            rows = x[chosen[t]]
            steepness = slope(np.einsum("kd,kd->k", rows, weights), y[chosen[t]])
            norms = np.sqrt(np.einsum("kd,kd->k", rows, rows))
            # the rounding's sign is + with ½ + ℓ'‖x‖/(2L) along x itself, and is kept with `truth`
            rounded_up = 0.5 + steepness * norms / (2 * lipschitz)
            share = truth * rounded_up + (1 - truth) * (1 - rounded_up)
            sent = length * sent_directions(directions[t], rows, share, coins[t])
            weights -= radius / (length * math.sqrt(first + t + 1)) * sent
            into_balls(weights, radius)
            mean += weights
    return np.asarray(mean / n)


@dataclass(kw_only=True, eq=False, repr=False)
class LocalGradient(Descent, PureRival):
    """One randomised gradient from each contributor."""

    source = "Duchi, Jordan and Wainwright 2013, locally private gradients"
    published_neighbours = "replace"

    def promise(self) -> FitGuarantee:
        """ε-DP, locally too: for "replace", which covers zero-out."""
        if self.neighbours != "replace":
            raise InvalidValueError(
                f"Expected neighbours={self.neighbours!r} to be 'replace': a local method keeps "
                "any two records from being told apart."
            )
        return super().promise()

    def release(self, risk: Risk, generator: np.random.Generator) -> FloatArray:  # noqa: ARG002
        """Not from a risk: each record is asked once, by itself."""
        raise InvalidValueError("Expected rows: the local method asks each record by itself.")

    def _weights(self, x: FloatArray, y: FloatArray, generator: np.random.Generator) -> FloatArray:
        (weights,) = local_descent(
            x,
            y,
            type(self).slope,
            epsilon=self.epsilon,
            radius=self._radius(x.shape[1]),
            lipschitz=self._risk(x, y).gradient_change("zero-out"),
            runs=1,
            generator=generator,
        )
        return np.asarray(weights)


@dataclass(kw_only=True, eq=False, repr=False)
class LocalGradientRegressor(LocalGradient, DescentRegressor):
    """Least squares by one randomised gradient from each contributor; η is √m unless given."""


@dataclass(kw_only=True, eq=False, repr=False)
class LocalGradientClassifier(LocalGradient, DescentClassifier):
    """Logistic regression by one randomised gradient from each; η is 4√m unless given."""
