"""Perturb the minimiser, what is minimised, or the way to the minimum; or nothing.

**No privacy**: the exact minimiser of the same loss on the same encoded columns, the floor that
rivals are measured against.

**Output perturbation**: minimise, then add noise to the minimiser.

Chaudhuri, Monteleoni and Sarwate 2011, Algorithm 1, which is ε-differentially private for
neighbours that replace one record (Theorem 6):

    w = argmin Σℓ + ½Λ‖w‖² + b,    b with density ∝ e^{−ε‖b‖/Δ},    Δ = change/Λ.

The objective is Λ-strongly convex, so two minimisers are no further apart than the gradients of
their objectives differ, over Λ (their Lemma 7, in the sum's scale instead of the mean's: Λ = nΛ',
and change = 2 for a loss whose gradient is at most 1 long). The same holds in a ball, which squared
loss needs. Projecting back onto the ball is post-processing.

They leave Λ to the user. The default minimises a public forecast of the loss, ½Λη² for the bias
plus ½(n/d)·E‖b‖² for the noise, E‖b‖² ≈ (d·Δ/ε)², where n/d is the curvature in a typical direction
of the unit ball and η = √d a typical weight:  Λ³ = 2·n·d·change²/(ε²η²).

**Objective perturbation**: add a random linear term and a ridge, then minimise.

    w = argmin Σℓ + ½·ridge·‖w‖² + b·w

| rule | b | ridge | promise |
| --- | --- | --- | --- |
| "published" | N(0, σ²I), σ = change·√(8 ln(2/δ) + 4ε)/ε | 2λ/ε at least | (ε, δ)-DP, as claimed |
| "certified" | N(0, σ²I), σ = change/m | λ/(e^{split·ε} − 1) at least | (ε, δ)-DP, proved |

**published**: Kifer, Smith and Thakurta 2012, Algorithm 1, printed with the gradient's own bound ζ
in place of `change`, which covers adding or removing one record; for "replace" we put what one
person can change then. Its proof takes the noise along the gradient's change for one Gaussian, but
that direction depends on w, hence on b (docs/errata.md), so the promise is claimed, not proved.

**certified**: `blurfit.input_perturbation.theorem` with σ_u = 0: J = ln(1 + λ/ridge), and all the
gradient's change moves with w, in the plane of x and x', so that m = change/σ is the largest with
E[(1 − exp(ε − J − m²/2 − mX))₊] ≤ δ, X ~ χ_{min(2, d)}. Its proof asks of the loss a Hessian of
rank one along x and a gradient's change in span{x, x'}: every loss of w·x has both.

**Generalised objective perturbation**: any ridge, and the privacy profile itself.

Redberg, Koskela and Wang 2023 (arXiv 2401.00583): for ℓ(w; x, y) = f(w·x; y) with |f'| ≤ L and 0 ≤
f'' ≤ β, ‖x‖ ≤ 1, without a ball, w as above. b ↔ w is a bijection, and the log-ratio of w's
densities under two neighbouring tables is J + m²/2 + m·X at most, where m = change/σ, J bounds the
determinants' part, and X is the length of b/σ within the space where the gradient's change lies,
whatever w is:

| neighbours | change | that space | X | J |
| --- | --- | --- | --- | --- |
| zero-out, as published | L | the line of x | χ₁ | ln(1 + β/ridge) |
| replace | 2L | the plane of x, x' | χ₂ | ln(1 + β/ridge) |

(‖g‖ = ‖f'(w·x)x − f'(w·x')x'‖ depends on w, and so on b, which is why X is a length and not one
normal variable: the two-sided tail costs a factor of 2 in δ.) So (ε, δ) is kept where, with ε̂ = ε
− J − m²/2,

    χ₁:  δ ≥ 2δ_G(m, ε − J) if ε̂ ≥ 0, else 1 − e^ε̂ + 2e^ε̂·δ_G(m, m²/2)   (their theorem)
    χ₂:  δ ≥ m√(π/2)·e^{−(ε̂/m)²/2}·erfcx((ε̂/m + m)/√2) if ε̂ ≥ 0

with the Gaussian profile δ_G: *certified* in one dimension, or two. Their J is −ln(1 − β/ridge);
ln(1 + β/ridge) is less and enough, because the table with the record has a Hessian H ⪰ ridge·I +
f''xxᵀ, so that 1 − f''xᵀH⁻¹x ≥ 1/(1 + β/ridge). As in their code, the ridge starts at 2β/ε and
grows by a twentieth until σ ≤ 1.3 times the plain Gaussian mechanism's. (They release an
approximate minimum with a little output noise; ours is exact to rounding.)

Least squares has no bounded slope. As the paper says for such losses, slopes are clipped: for a
loss of w·x that is a convex loss again, here Huber's with |f'| ≤ L = `clip` and β = 1, so the
theorem holds as it stands. With |y| ≤ 1, `clip` = 1 cuts no slope at w = 0.

**Gradient perturbation**: descend along noisy gradients.

Bassily, Smith and Thakurta 2014 descend in n² steps along single records' gradients, for neighbours
that replace one record. With today's accounting fewer and larger steps do better: T along the whole
gradient,

    w ← Π(w − (Σ∇ℓ + b_t)/(nλ)),   b_t ~ N(0, σ²I),   σ = √T·Δ/μ(ε, δ)

and the mean of the last half of the iterates as the model. One person changes each gradient by at
most Δ, whatever the steps before told, and T such Gaussian steps are one: μ-GDP with μ = √T·Δ/σ,
exactly (Dong, Roth and Su 2022, Corollary 3.3). The tests hold that against privacy loss
distributions of another library.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from blurfit import errors
from blurfit.data import FloatArray
from blurfit.estimators.base import FitGuarantee
from blurfit.input_perturbation.gradient_delta import least_sigma_b
from blurfit.theory.gaussian import mu_of
from blurfit.theory.moments import Neighbours
from blurfit_lab.rivals import rival
from blurfit_lab.rivals.rival import Risk, RivalClassifier, RivalRegressor

_LARGEST = 700.0  # e⁷⁰⁰ is still a number
_ROUNDING = 1 + 1e-9  # noise is rounded up, by far more than the functions here err


@dataclass(frozen=True, eq=False)
class Perturbed:
    """What is minimised, with its noise drawn: a ridge, a linear term, and what is added after."""

    ridge: float
    linear: FloatArray | float = 0.0
    after: FloatArray | float = 0.0


class Minimising(rival.Rival):
    """A rival that releases a minimiser."""

    def perturbed(self, risk: Risk, generator: np.random.Generator) -> Perturbed:
        """Return what it minimises of this risk."""
        raise NotImplementedError  # pragma: no cover

    def release(self, risk: Risk, generator: np.random.Generator) -> FloatArray:
        """The minimiser, what is added to it, and the way back into the ball."""
        asked = self.perturbed(risk, generator)
        found = risk.minimiser(asked.ridge, asked.linear) + asked.after
        return rival.into_ball(found, risk.weight_bound)


class NonPrivate(Minimising):
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
        errors.nonnegative(ridge=self.ridge)
        told = "NOT PRIVATE: no noise is added. For comparisons only."
        return FitGuarantee(None, None, "replace", False, told)

    def perturbed(self, risk: Risk, generator: np.random.Generator) -> Perturbed:  # noqa: ARG002
        """The objective itself."""
        return Perturbed(self.ridge)


class NonPrivateRegressor(NonPrivate, RivalRegressor):
    """Least squares, not private.

    >>> model = NonPrivateRegressor(bounds=(0, 10), target_bounds=(0, 20))
    >>> model.fit([[1], [2], [4]], [2, 4, 8]).predict([[3]]).round(6).tolist()
    [6.0]
    """


class NonPrivateClassifier(NonPrivate, RivalClassifier):
    """Logistic regression, not private; separable classes need a ridge."""


def forecast_ridge(risk: Risk, epsilon: float, neighbours: Neighbours) -> float:
    """Λ = (2·n·d·change²/(ε²η²))^⅓, from public facts alone."""
    eta = risk.weight_bound or math.sqrt(risk.dimension)
    spread = risk.gradient_change(neighbours) / (epsilon * eta)
    return float((2 * risk.count * risk.dimension * spread**2) ** (1 / 3))


class OutputPerturbation(rival.PureRival, Minimising):
    """The minimiser plus noise.

    Args:
        ridge: Λ, in all and not per record; None for a public forecast of the best.
    """

    source = "Chaudhuri, Monteleoni and Sarwate 2011, output perturbation"
    published_neighbours = "replace"

    ridge: float | None = None

    def promise(self) -> FitGuarantee:
        """ε-DP, for a positive ridge."""
        if self.ridge is not None:
            if self.ridge == 0:
                raise errors.InvalidValueError(
                    f"Expected ridge={self.ridge!r} > 0: without it one person can move the "
                    "minimiser without bound. None takes a public default."
                )
            errors.positive(ridge=self.ridge)
        return super().promise()

    def perturbed(self, risk: Risk, generator: np.random.Generator) -> Perturbed:
        """The ridge, and noise for afterwards."""
        ridge = self.ridge or forecast_ridge(risk, self.epsilon, self.neighbours)
        rate = self.epsilon / (risk.gradient_change(self.neighbours) / ridge)
        return Perturbed(ridge, after=rival.exponential_in_norm(risk.dimension, rate, generator))


class OutputPerturbationRegressor(OutputPerturbation, rival.InBall, RivalRegressor):
    """Least squares in a ball, plus noise."""


class OutputPerturbationClassifier(OutputPerturbation, RivalClassifier):
    """Logistic regression, plus noise."""


GaussianRule = Literal["published", "certified"]


class Perturbation(NamedTuple):
    """The standard deviation of b, and the ridge with it."""

    scale: float
    ridge: float


def certified(
    epsilon: float, delta: float, curvature: float, change: float, ridge: float, dimension: int
) -> Perturbation:
    """σ = change/m for this ridge and its J: lab/docs/certified.md at σ_u = 0.

    The gradient's change lies in so many dimensions, of which two matter.
    """
    headroom = epsilon - math.log1p(curvature / ridge)
    scale = least_sigma_b(headroom, delta, 0.0, change, dimension)
    return Perturbation(scale * _ROUNDING, ridge)


class GaussianObjective(rival.ApproximateRival, Minimising):
    """A rival that minimises with a ridge and a Gaussian linear term."""

    def perturbation(self, risk: Risk) -> Perturbation:
        """Noise and ridge for this risk: from public facts alone."""
        raise NotImplementedError  # pragma: no cover

    def perturbed(self, risk: Risk, generator: np.random.Generator) -> Perturbed:
        """The perturbed objective."""
        found = self.perturbation(risk)
        return Perturbed(found.ridge, found.scale * generator.standard_normal(risk.dimension))


class ObjectivePerturbation(GaussianObjective):
    """(ε, δ)-DP, by a Gaussian linear term.

    Args:
        ridge: in all and not per record; raised where ε needs it.
        rule: "published" as in the paper of 2012, or "certified", which is proved, and less noise.
        split: with "certified", the share of ε that pays for the determinant.
    """

    source = "Kifer, Smith and Thakurta 2012, objective perturbation"
    published_neighbours = "zero-out"
    proved = False  # but for rule="certified"

    ridge: float = 0.0
    rule: GaussianRule = "published"
    split: float = 0.2

    def promise(self) -> FitGuarantee:
        """(ε, δ)-DP; proved if certified."""
        errors.nonnegative(ridge=self.ridge)
        errors.inside_unit_interval(split=self.split)
        return super().promise()

    @property
    def objection(self) -> str | None:
        """Only the certified rule is proved."""
        if self.rule == "certified":
            return None
        return (
            "the published proof takes the noise along a direction that depends on it for one "
            "Gaussian; rule='certified' is proved."
        )

    def perturbation(self, risk: Risk) -> Perturbation:
        """Noise and ridge by the rule."""
        change, epsilon = risk.gradient_change(self.neighbours), self.epsilon
        if self.rule == "published":
            scale = change * math.sqrt(8 * math.log(2 / self.delta) + 4 * epsilon) / epsilon
            return Perturbation(scale, max(self.ridge, 2 * risk.curvature / epsilon))
        least = risk.curvature / math.expm1(min(self.split * epsilon, _LARGEST))
        terms = epsilon, self.delta, risk.curvature, change, max(self.ridge, least)
        return certified(*terms, risk.dimension)


class ObjectivePerturbationRegressor(ObjectivePerturbation, rival.InBall, RivalRegressor):
    """Least squares in a ball, its objective perturbed; (ε, δ)-DP."""


class ObjectivePerturbationClassifier(ObjectivePerturbation, RivalClassifier):
    """Logistic regression, its objective perturbed; (ε, δ)-DP."""


MOST_NOISE = 1.3  # times the plain Gaussian mechanism's
GROWTH = 1.05


@lru_cache(maxsize=1024)
def calibrate(
    epsilon: float, delta: float, curvature: float, change: float, neighbours: Neighbours
) -> Perturbation:
    """The least ridge of the sequence 2β/ε·1.05ᵏ whose least σ is at most 1.3·change/μ(ε, δ)."""
    ridge, most = 2 * curvature / epsilon, MOST_NOISE * change / mu_of(epsilon, delta)
    while True:
        determinant = math.log1p(curvature / ridge)
        if determinant < epsilon:  # else J alone is too much
            dimension = 1 if neighbours == "zero-out" else 2
            found = certified(epsilon, delta, curvature, change, ridge, dimension)
            # Two-sided tails may cost more than 1.3 times at any ridge: J ≤ ε/50 is enough then.
            if found.scale <= most or determinant < epsilon / 50:
                return found
        ridge *= GROWTH


class GeneralisedObjectivePerturbation(GaussianObjective):
    """A Gaussian linear term, by the privacy profile itself."""

    source = "Redberg, Koskela and Wang 2023, generalised objective perturbation"
    published_neighbours = "zero-out"

    def perturbation(self, risk: Risk) -> Perturbation:
        """Noise and ridge by the profile."""
        change = risk.gradient_change(self.neighbours)
        return calibrate(self.epsilon, self.delta, risk.curvature, change, self.neighbours)


class GeneralisedObjectivePerturbationClassifier(GeneralisedObjectivePerturbation, RivalClassifier):
    """Logistic regression with a Gaussian linear term, by the privacy profile itself."""


class GeneralisedObjectivePerturbationRegressor(GeneralisedObjectivePerturbation, RivalRegressor):
    """Least squares with clipped slopes (Huber's loss) and a Gaussian linear term.

    Args:
        clip: L, the largest slope of one record.
    """

    clip: float = 1.0

    def promise(self) -> FitGuarantee:
        """(ε, δ)-DP, for a positive clip."""
        errors.positive(clip=self.clip)
        return super().promise()

    def _risk(self, x: FloatArray, y: FloatArray) -> Risk:
        return rival.HuberRisk([(x, y)], clip=self.clip)


class GradientPerturbation(rival.ApproximateRival, rival.InBall):
    """Noisy gradient descent.

    Args:
        steps: T. More approach the minimum more closely; their noise together is the same.
    """

    source = "Bassily, Smith and Thakurta 2014, noisy gradient descent"
    published_neighbours = "replace"

    steps: int = 512

    def deviation(self, risk: Risk) -> float:
        """σ of each step's noise."""
        multiplier = math.sqrt(self.steps) / mu_of(self.epsilon, self.delta) * (1 + 1e-6)
        return multiplier * risk.gradient_change(self.neighbours)

    def release(self, risk: Risk, generator: np.random.Generator) -> FloatArray:
        """The descent along whole gradients, which a risk can tell."""
        return np.asarray(self.descend(risk, self.deviation(risk), generator)[0])

    def descend(
        self, risk: Risk, deviation: float, generator: np.random.Generator, runs: int = 1
    ) -> FloatArray:
        """T gradients with noise of this deviation, `runs` times at once: (runs, d)."""
        weights, mean = np.zeros((2, runs, risk.dimension))
        rate, first = 1.0 / (risk.count * risk.curvature), self.steps // 2
        for step in range(self.steps):
            noise = deviation * generator.standard_normal(weights.shape)
            moved = weights - rate * (risk.gradients(weights) + noise)
            weights = rival.into_ball(moved, self._ball(risk.dimension))
            if step >= first:
                mean += weights / (self.steps - first)
        return mean


class GradientPerturbationRegressor(GradientPerturbation, RivalRegressor):
    """Least squares by noisy gradients."""


class GradientPerturbationClassifier(GradientPerturbation, RivalClassifier):
    """Logistic regression by noisy gradients."""

    widths = 4.0
