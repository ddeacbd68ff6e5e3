"""Regularisers Ω of the model, and how to minimise a quadratic with any of them in a ball.

A regulariser is anything convex that can say its value and its proximal map

    prox(v, t) = argmin_w  t·Ω(w) + ½‖w − v‖²

Bring your own in a few lines. Weights that must not be negative are Ω = 0 there and ∞ elsewhere,
and the nearest such point to v is its positive part:

>>> class Nonnegative:
...     def value(self, weights):
...         return 0.0 if (weights >= 0).all() else np.inf
...     def prox(self, point, step):
...         return np.maximum(point, 0.0)
>>> isinstance(Nonnegative(), Regulariser)
True

The solver asks for nothing more, whatever the bound on ‖w‖ is (see `prox_in_ball`). Ω has to be
convex and fixed before the data are seen, because the proof of privacy needs both.
"""

from collections import deque
from dataclasses import dataclass
from itertools import cycle
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.linalg.blas import dnrm2

from blurfit import validate
from blurfit.arrays import FloatArray
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.theory.roots import brent

EPSILON = float(np.finfo(np.float64).eps)

# The splitting stops at RESIDUAL_SOUGHT or, where rounding forbids that, after twice the steps that
# brought it to RESIDUAL_ENOUGH. Those are tens as a rule and rarely thousands: the limit is for
# problems that have no minimiser.
RESIDUAL_SOUGHT = 1e-13
RESIDUAL_ENOUGH = 1e-11
STEPS_ALLOWED = 20_000
STEPS_REMEMBERED = 25
FIRST_REVIEW = 30
PENALTY_FACTORS = (1.0, 0.03, 30.0, 0.001, 1000.0)


@runtime_checkable
class Regulariser(Protocol):
    """A convex Ω: its value, and its proximal map."""

    def value(self, weights: FloatArray, /) -> float:
        """Ω(w); infinite outside its domain."""

    def prox(self, point: FloatArray, step: float, /) -> FloatArray:
        """argmin_w step·Ω(w) + ½‖w − point‖²."""


@dataclass(frozen=True)
class ElasticNet:
    """Ω(w) = l1·‖w‖₁ + ½·l2·‖w‖²: l1 makes weights 0, l2 lets correlated features share theirs."""

    l1: float
    l2: float = 0.0

    def __post_init__(self) -> None:
        validate.nonnegative(l1=self.l1, l2=self.l2)

    def value(self, weights: FloatArray, /) -> float:
        """l1·Σ|wⱼ| + ½·l2·Σwⱼ²."""
        return self.l1 * float(np.abs(weights).sum()) + 0.5 * self.l2 * float(weights @ weights)

    def prox(self, point: FloatArray, step: float, /) -> FloatArray:
        """sign(vⱼ)·max(|vⱼ| − step·l1, 0)/(1 + step·l2): shrunk towards 0, where it stops."""
        shrunk = np.sign(point) * np.maximum(np.abs(point) - step * self.l1, 0.0)
        return np.asarray(shrunk / (1.0 + step * self.l2))


def prox_in_ball(
    regulariser: Regulariser, point: FloatArray, step: float, radius: float
) -> tuple[FloatArray, float]:
    """argmin_{‖w‖≤η} t·Ω(w) + ½‖w − v‖², and the multiplier ν of the ball, for any convex Ω.

    Add ½ν(‖w‖² − η²) and complete the square: up to a constant the Lagrangian is 1 + ν times
    θt·Ω(w) + ½‖w − θv‖² with θ = 1/(1 + ν). So the minimiser is

        w(θ) = prox_{θt·Ω}(θv),

    with θ = 1 if that lies in the ball and else the root of ‖w(θ)‖ = η. The norm does not decrease
    in θ (it falls as the price ν of length rises), so a bracket and Brent's method find the root
    to machine precision. If Ω is positively homogeneous, as every norm is, then w(θ) = θ·w(1) and
    the first guess η/‖w(1)‖ is the root already.

    `radius` may be infinite: no ball.
    """

    def at(theta: float) -> tuple[FloatArray, float]:
        w = np.asarray(regulariser.prox(theta * point, theta * step), dtype=np.float64)
        if w.shape != point.shape:
            raise InvalidValueError(
                f"Expected {type(regulariser).__name__}.prox to return shape={w.shape} as "
                f"{point.shape}, the shape of its point."
            )
        return w, length(w)

    w, norm = at(1.0)
    if not norm > radius:
        return w, 0.0
    above, theta = 1.0, radius / norm
    w, norm = at(theta)
    if abs(norm - radius) > 4 * EPSILON * radius:
        below = theta
        while norm > radius:
            above, below = below, below / 16
            if below < EPSILON**4:
                raise InfeasibleError(
                    f"{type(regulariser).__name__} is infinite on the whole ball of "
                    f"weight_bound={radius:.6g}: raise the bound or widen the regulariser's domain."
                )
            norm = at(below)[1]
        theta = brent(
            lambda a: at(a)[1] - radius,
            below,
            above,
            xtol=EPSILON * below,
            rtol=4 * EPSILON,
            maxiter=5000,
        )
        w, _ = at(theta)
    return w, 1.0 / theta - 1.0


def splitting(
    hessian: FloatArray,
    moment: FloatArray,
    regulariser: Regulariser,
    *,
    eigen: tuple[FloatArray, FloatArray],
    radius: float,
) -> tuple[FloatArray, float, int]:
    """The weights argmin_{‖w‖≤η} ½wᵀHw − cᵀw + Ω(w) for H ⪰ 0, the ball's ν, and the steps taken.

    Douglas–Rachford splitting, with (λ, V) = `eigen` to solve with H at any ρ:

        x = (H + ρI)⁻¹(c + ρs),   z = prox of Ω/ρ in the ball, at 2x − s,   s ← s + z − x.

    The first says Hx − c = ρ(s − x), the second ρ(2x − s − z) ∈ ∂Ω(z) + νz. Added up, z is exact
    for c + e with e = (H − ρI)(z − x), so ‖e‖ is the gap. Plain steps converge from anywhere, but
    slowly where H is ill conditioned; Anderson's extrapolation needs a hundredth of them at
    condition number 10⁸. A leap that more than doubles ‖z − x‖ is taken back for the plain step.
    The ρ that is best for a quadratic, √((λ₁ + ν)(λd + ν)), follows ν as it becomes known; as no ρ
    suits every Ω, multiples of it take turns, each longer than the last.
    """
    eigenvalues, V = np.maximum(eigen[0], 0.0), eigen[1]
    greatest, push = float(eigenvalues[-1]), length(moment)

    def penalty(nu: float) -> float:
        least = max(float(eigenvalues[0]), 1e-6 * greatest)
        return float(np.sqrt(least + nu) * np.sqrt(greatest + nu)) or 1.0

    rho = penalty(max(push / radius - greatest, 0.0))
    review, factors = FIRST_REVIEW, cycle(PENALTY_FACTORS)
    s = plain = weights = np.zeros_like(moment)
    multiplier, best, last, leapt = 0.0, np.inf, np.inf, False
    past: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=STEPS_REMEMBERED)
    step, limit = 0, STEPS_ALLOWED
    while best > RESIDUAL_SOUGHT and step < limit:
        step += 1
        x = V @ ((V.T @ (moment + rho * s)) / (eigenvalues + rho))
        z, price = prox_in_ball(regulariser, 2.0 * x - s, 1.0 / rho, radius)
        g = z - x
        size = length(g)
        if leapt and not size <= 2.0 * last:
            s, leapt = plain, False
            past.clear()
            continue
        if not np.isfinite(size):
            break
        gap, addends = length(hessian @ g - rho * g), length(moment + rho * (s - x)) + push
        if relative(gap, of=addends) < best:
            best, weights, multiplier = relative(gap, of=addends), z, rho * price
        rounding = len(g) * EPSILON * greatest * length(z)
        if relative(gap, of=addends, rounding=rounding) <= RESIDUAL_ENOUGH:
            limit = min(limit, 2 * step + 100)
        plain, last = s + g, size
        past.append((s, g))
        s, leapt = _extrapolate(past), len(past) > 1
        if step >= review:
            review += review // 2
            better = next(factors) * penalty(rho * price)
            if not 1 / 3 < better / rho < 3:
                # The same x and dual variable ρ(s − x), in the units of the new ρ.
                s, rho, leapt = x + (plain - g - x) * (rho / better), better, False
                past.clear()
    return weights, multiplier, step


def relative(gap: float, *, of: float, rounding: float = 0.0) -> float:
    """The part of a gap that rounding does not explain, relative to the size of what was added up.

    Not relative to ‖H‖‖w‖, which would forgive any gap to weights that run off to infinity.
    """
    return 0.0 if gap <= rounding < np.inf else (gap - rounding) / (of or 1.0)


def length(vector: FloatArray) -> float:
    """‖v‖ by BLAS, which scales as it sums: squares neither overflow nor vanish."""
    return float(dnrm2(vector)) if vector.size else 0.0


def _extrapolate(past: deque[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Anderson's step (type II) for s ← s + g(s), from the last few pairs of s and g.

    Of all combinations of the points, with weights that sum to 1, take the one whose g, combined
    in the same way, is shortest, and step by that g.
    """
    s, g = past[-1]
    points, steps = (np.diff(np.array(part), axis=0).T for part in zip(*past, strict=True))
    mixture = np.linalg.lstsq(steps, g, rcond=1e-12)[0]
    following: FloatArray = s + g - (points + steps) @ mixture
    return following
