"""Descend along noisy gradients, of all records or of one contributor each.

**Accounting.** How much noise T noisy gradient steps need: privacy loss distributions instead of
bounds.

A step releases the sum of the gradients of a Poisson sample (each record with probability q) plus
N(0, (z·L)²I), where one record's gradient is at most L long. `dp-accounting` composes the exact
privacy loss distribution of T such steps, on a grid that is rounded to the safe side, and finds
the least noise.

With q = 1 nothing is sampled and T Gaussian steps are one: μ-GDP with μ = √T·Δ/σ, exactly. The
tests hold the two against each other.

**Descents.** What descents along noisy gradients share: slopes of single records, and the ball of
weights.

The slope is ℓ'(z) at z = w·x: one record's gradient is ℓ'(z)·x.

**Gradient perturbation**: descend along noisy gradients.

**published**: Bassily, Smith and Thakurta 2014, Algorithm 1, for neighbours that replace one
record. T = n² steps, each along the gradient of one record drawn at random, n times enlarged,
plus noise:

    w ← Π(w − η_t·(n·∇ℓ(w; x_i, y_i) + b_t)),   b_t ~ N(0, σ²I),   σ² = 32L²n²·ln(n/δ)·ln(1/δ)/ε²
    η_t = 2η/√(t·(n²L² + dσ²)),   L ≥ ‖∇ℓ‖

n² steps are out of reach for most n. `most_steps` cuts them: fewer steps tell less, so the promise
stands, and the noise, which is for n² steps, stays as printed. Their theorem needs ε ≤ 2√(ln(1/δ)),
beyond which it is refused.

**modern**: T steps along the whole gradient (or a Poisson sample's, `sampling_rate` < 1),

    w ← Π(w − (Σ∇ℓ + b_t)/(nλ)),   b_t ~ N(0, σ²I),   σ = z·Δ

with the least z that `blurfit_lab.rivals.gradient` allows, and the mean of the last half of the
iterates as the model. Without sampling Δ is what one person can change, and T Gaussians are one;
with sampling Δ = L/q, and a sample's gradient is divided by q, so that steps have the same mean.

**Local gradients.** The locally private gradient method: each contributor sends one randomised
gradient, once.

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
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import expit, gammaln

from blurfit.data import FloatArray
from blurfit.errors import (
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
    inside_unit_interval,
    positive,
    whole,
)
from blurfit.estimators.base import FitGuarantee
from blurfit.theory.gaussian import mu_of
from blurfit.theory.guarantees import Neighbours
from blurfit_lab.rivals.rival import (
    ApproximateRival,
    InBall,
    PureRival,
    Risk,
    Rival,
    RivalClassifier,
)

_ROUNDING = 1 + 1e-6
_TOLERANCE = 1e-4  # of z, to the safe side
# Zeroing a record out is what its removal does to the sum that is released.
_RELATIONS: dict[Neighbours, str] = {"replace": "REPLACE_ONE", "zero-out": "ADD_OR_REMOVE_ONE"}


def _accountant(neighbours: Neighbours) -> Any:
    import dp_accounting as accounting  # type: ignore[import-untyped]
    from dp_accounting.pld import PLDAccountant  # type: ignore[import-untyped]

    return PLDAccountant(getattr(accounting.NeighboringRelation, _RELATIONS[neighbours]))


def _event(noise_multiplier: float, steps: int, sampling_rate: float) -> Any:
    import dp_accounting as accounting

    step = accounting.GaussianDpEvent(noise_multiplier)
    if sampling_rate < 1:
        step = accounting.PoissonSampledDpEvent(sampling_rate, step)
    return accounting.SelfComposedDpEvent(step, steps)


def delta_of_steps(
    noise_multiplier: float,
    epsilon: float,
    *,
    steps: int,
    sampling_rate: float,
    neighbours: Neighbours,
) -> float:
    """δ at ε of T steps with z = `noise_multiplier`, never too small."""
    accountant = _accountant(neighbours)
    accountant.compose(_event(noise_multiplier, steps, sampling_rate))
    return float(accountant.get_delta(epsilon))


@lru_cache(maxsize=256)
def least_noise_multiplier(
    epsilon: float, delta: float, *, steps: int, sampling_rate: float, neighbours: Neighbours
) -> float:
    """The least z that keeps (ε, δ) over T steps, to within 0.01% and on the safe side.

    Without sampling by the closed form, z = √T·Δ/μ(ε, δ), which is also enough with sampling.
    """
    positive(epsilon=epsilon)
    inside_unit_interval(delta=delta)
    whole(steps=steps)
    distance = 2.0 if neighbours == "replace" else 1.0
    most = distance * math.sqrt(steps) / mu_of(epsilon, delta) * _ROUNDING
    if sampling_rate == 1:
        return most
    import dp_accounting as accounting

    try:
        found = accounting.calibrate_dp_mechanism(
            lambda: _accountant(neighbours),
            lambda z: _event(z, steps, sampling_rate),
            epsilon,
            delta,
            accounting.ExplicitBracketInterval(most * sampling_rate / 2, 2 * most),
            tol=_TOLERANCE * most * sampling_rate,
        )
    except (accounting.mechanism_calibration.NoBracketIntervalFoundError, ValueError) as error:
        raise NotCertifiedError(
            f"No noise was found that keeps epsilon={epsilon} and delta={delta} over "
            f"steps={steps}: the accountant cannot tell so small a delta."
        ) from error
    return float(found)


Slope = Callable[[FloatArray, FloatArray], FloatArray]


def squared_slope(z: FloatArray, y: FloatArray) -> FloatArray:
    """Of ½(y − z)²: z − y."""
    return z - y


def logistic_slope(z: FloatArray, y: FloatArray) -> FloatArray:
    """Of ln(1 + e^{−yz}), y = ±1: −y·σ(−yz)."""
    return np.asarray(-y * expit(-y * z))


def into_balls(weights: FloatArray, radius: float) -> None:
    """Each row to the nearest point of the ball, in place."""
    norms = np.sqrt(np.einsum("kd,kd->k", weights, weights))
    weights *= (radius / np.maximum(norms, radius))[:, None]


@dataclass(kw_only=True, eq=False, repr=False)
class Descent(Rival):
    """A rival that descends along noisy gradients within a ball."""

    slope: ClassVar[Any]

    def _radius(self, dimension: int, /) -> float:
        raise NotImplementedError  # pragma: no cover


@dataclass(kw_only=True, eq=False, repr=False)
class DescentRegressor(Descent, InBall):
    """Least squares; η is √m unless given."""

    slope = staticmethod(squared_slope)

    def _radius(self, dimension: int, /) -> float:
        return float(self._ball(dimension) or 0.0)


@dataclass(kw_only=True, eq=False, repr=False)
class DescentClassifier(Descent, RivalClassifier):
    """Logistic regression.

    Args:
        weight_bound: η, the ball that w is projected onto; None takes 4√m.
    """

    slope = staticmethod(logistic_slope)

    weight_bound: float | None = None

    def _radius(self, dimension: int, /) -> float:
        if self.weight_bound is None:
            return 4 * math.sqrt(dimension)
        positive(weight_bound=self.weight_bound)
        return self.weight_bound


Accounting = Literal["published", "modern"]
ACCOUNTINGS: tuple[Accounting, ...] = ("published", "modern")
STEPS_AT_ONCE = 4096  # whose noise is drawn in one go


def published_deviation(epsilon: float, delta: float, *, count: int, lipschitz: float) -> float:
    """σ = L·n·√(32·ln(n/δ)·ln(1/δ))/ε."""
    factor = 32 * math.log(count / delta) * math.log(1 / delta)
    return lipschitz * count * math.sqrt(factor) / epsilon


def published_descent(
    x: FloatArray,
    y: FloatArray,
    slope: Slope,
    *,
    radius: float,
    lipschitz: float,
    deviation: float,
    steps: int,
    runs: int,
    generator: np.random.Generator,
) -> FloatArray:
    """Bassily, Smith and Thakurta's Algorithm 1, `runs` times beside one another: (runs, d)."""
    n, d = x.shape
    weights = np.zeros((runs, d))
    rate = 2 * radius / math.sqrt((n * lipschitz) ** 2 + d * deviation**2)
    for first in range(0, steps, STEPS_AT_ONCE):
        count = min(STEPS_AT_ONCE, steps - first)
        chosen = generator.integers(0, n, (count, runs))
        noise = deviation * generator.standard_normal((count, runs, d))
        for t in range(count):
            rows = x[chosen[t]]
            z = np.einsum("kd,kd->k", rows, weights)
            gradient = (n * slope(z, y[chosen[t]]))[:, None] * rows + noise[t]
            weights -= rate / math.sqrt(first + t + 1) * gradient
            into_balls(weights, radius)
    return weights


def modern_descent(
    risk: Risk,
    *,
    radius: float,
    deviation: float,
    steps: int,
    runs: int,
    generator: np.random.Generator,
    gradients: Callable[[FloatArray], FloatArray] | None = None,
) -> FloatArray:
    """T noisy gradients, whole ones unless others are given, `runs` times at once: (runs, d)."""
    weights, mean = np.zeros((runs, risk.dimension)), np.zeros((runs, risk.dimension))
    rate = 1.0 / (risk.count * risk.curvature)
    for step in range(steps):
        noise = deviation * generator.standard_normal(weights.shape)
        weights = weights - rate * ((gradients or risk.gradients)(weights) + noise)
        into_balls(weights, radius)
        if step >= steps // 2:
            mean += weights / (steps - steps // 2)
    return mean


@dataclass(kw_only=True, eq=False, repr=False)
class GradientPerturbation(Descent, ApproximateRival):
    """Noisy gradient descent.

    Args:
        accounting: "published", or "modern" for the least noise that is known to do.
        steps: of the modern descent. More approach the minimum more closely; their noise together
            is the same.
        sampling_rate: of the modern descent: the probability with which a step sees a record.
        most_steps: of the published descent, which asks for n².
    """

    source = "Bassily, Smith and Thakurta 2014, noisy gradient descent"
    published_neighbours = "replace"
    choices = (("accounting", ACCOUNTINGS),)
    wholes = ("steps", "most_steps")

    accounting: Accounting = "modern"
    steps: int = 512
    sampling_rate: float = 1.0
    most_steps: int = 2**17

    def promise(self) -> FitGuarantee:
        """(ε, δ)-DP."""
        positive(sampling_rate=self.sampling_rate)
        if self.sampling_rate > 1:
            raise InvalidValueError(f"Expected sampling_rate={self.sampling_rate!r} <= 1.")
        promise = super().promise()
        largest = 2 * math.sqrt(math.log(1 / self.delta))
        if self.accounting == "published" and self.epsilon > largest:
            raise InfeasibleError(
                f"Expected epsilon={self.epsilon:g} <= {largest:.3g} at delta={self.delta:g}, "
                "which the published theorem needs; accounting='modern' takes any."
            )
        return promise

    def deviation(self, risk: Risk, sampling_rate: float = 1.0) -> float:
        """σ of each modern step's noise."""
        neighbours: Neighbours = "zero-out" if sampling_rate == 1 else self.neighbours
        z = least_noise_multiplier(
            self.epsilon,
            self.delta,
            steps=self.steps,
            sampling_rate=sampling_rate,
            neighbours=neighbours,
        )
        if sampling_rate == 1:  # one Gaussian: only how far one person moves it matters
            return z * risk.gradient_change(self.neighbours)
        return z * risk.gradient_change("zero-out") / sampling_rate

    def release(self, risk: Risk, generator: np.random.Generator) -> FloatArray:
        """The modern descent along whole gradients, which a risk can tell."""
        return self._descended(risk, 1.0, generator, risk.gradients)

    def _descended(
        self,
        risk: Risk,
        sampling_rate: float,
        generator: np.random.Generator,
        gradients: Callable[[FloatArray], FloatArray],
    ) -> FloatArray:
        (weights,) = modern_descent(
            risk,
            radius=self._radius(risk.dimension),
            deviation=self.deviation(risk, sampling_rate),
            steps=self.steps,
            runs=1,
            generator=generator,
            gradients=gradients,
        )
        return np.asarray(weights)

    def _weights(self, x: FloatArray, y: FloatArray, generator: np.random.Generator) -> FloatArray:
        risk = self._risk(x, y)
        if self.accounting == "modern" and self.sampling_rate == 1:
            return self.release(risk, generator)
        if self.accounting == "modern":
            q = self.sampling_rate

            def sampled(weights: FloatArray) -> FloatArray:
                chosen = generator.random(len(y)) < q
                if not chosen.any():
                    return np.zeros_like(weights)
                return self._risk(x[chosen], y[chosen]).gradients(weights) / q

            return self._descended(risk, q, generator, sampled)
        count, lipschitz = len(y), risk.gradient_change("zero-out")
        (weights,) = published_descent(
            x,
            y,
            type(self).slope,
            radius=self._radius(x.shape[1]),
            lipschitz=lipschitz,
            deviation=published_deviation(
                self.epsilon, self.delta, count=count, lipschitz=lipschitz
            ),
            steps=min(count**2, self.most_steps),
            runs=1,
            generator=generator,
        )
        return np.asarray(weights)


@dataclass(kw_only=True, eq=False, repr=False)
class GradientPerturbationRegressor(GradientPerturbation, DescentRegressor):
    """Least squares by noisy gradients; η is √m unless given."""


@dataclass(kw_only=True, eq=False, repr=False)
class GradientPerturbationClassifier(GradientPerturbation, DescentClassifier):
    """Logistic regression by noisy gradients; η is 4√m unless given."""


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
    trust = "local"

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
