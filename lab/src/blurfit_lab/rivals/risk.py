"""What a rival minimises: Σℓ(w; x, y) over records in the unit ball, with the bounds that it needs.

    argmin over ‖w‖ ≤ η of  Σℓ(w; x, y) + ½·ridge·‖w‖² + linear·w,      ‖x‖ ≤ 1, |y| ≤ 1

exactly: the proofs of output and objective perturbation are about the minimiser itself. Squared
loss sees the records only through their sums; logistic loss has to pass over them, and does so for
many problems at once, because all the rivals of a comparison share the pass.

| bound | squared, ½(y − w·x)² | logistic, ln(1 + e^{−y w·x}) |
| --- | --- | --- |
| `curvature` λ ≥ ‖∇²ℓ‖ | 1 | ¼ |
| `gradient_change("zero-out")` ≥ ‖∇ℓ(w; z)‖ | η + 1 | 1 |
| `gradient_change("replace")` ≥ ‖∇ℓ(w; z) − ∇ℓ(w; z')‖ | η + 2 | 2 |

η + 2 and not 2η + 2, because ‖xxᵀ − x'x'ᵀ‖ ≤ 1. Both losses have a Hessian of rank one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

from blurfit.arrays import FloatArray
from blurfit.errors import InfeasibleError, NotCertifiedError
from blurfit.learning.solver import minimise
from blurfit.learning.sums import Statistics
from blurfit.theory.guarantees import Neighbours

ROWS_AT_ONCE = 8192  # stay in the processor's cache
RESIDUAL_ALLOWED = 1e-10  # of ‖gradient‖, relative to the size of what it adds up
LEAST_CURVATURE = 1e-12  # a ridge per record, where a rival has none: only to make w unique


@dataclass(frozen=True, eq=False)
class SquaredRisk:
    """Σ½(y − w·x)² = ½wᵀGw − cᵀw + constant, from the sums G = Σxxᵀ and c = Σyx alone."""

    statistics: Statistics
    weight_bound: float | None

    curvature: float = field(default=1.0, init=False)

    @property
    def count(self) -> int:
        """n."""
        return self.statistics.count

    @property
    def dimension(self) -> int:
        """d."""
        return self.statistics.dimension

    def gradient_change(self, neighbours: Neighbours) -> float:
        """‖(xxᵀ − x'x'ᵀ)w − (yx − y'x')‖ ≤ η + 2, and ‖xxᵀw − yx‖ ≤ η + 1."""
        if self.weight_bound is None:
            raise InfeasibleError(
                "Squared loss needs a weight_bound here: its gradient is bounded only where the "
                "weights are. Give weight_bound=4.0, say."
            )
        return self.weight_bound + (2.0 if neighbours == "replace" else 1.0)

    def gradients(self, weights: FloatArray) -> FloatArray:
        """Gw − c."""
        return np.asarray(weights @ self.statistics.gram - self.statistics.moment)

    def minimisers(self, ridges: FloatArray, linears: FloatArray) -> FloatArray:
        """By the certified solver: one eigendecomposition each."""
        found = [
            minimise(
                self.statistics.gram,
                self.statistics.moment - linear,
                ridge=max(ridge, LEAST_CURVATURE * self.count),
                weight_bound=self.weight_bound,
            ).weights
            for ridge, linear in zip(ridges.tolist(), linears, strict=True)
        ]
        return np.array(found)


@dataclass(frozen=True, eq=False)
class LogisticRisk:
    """Σln(1 + e^{−y w·x}) over the rows of `parts`, pairs of x (n_i, d) and y (n_i,) = ±1.

    Parts are views into one table, so that windows of it cost no memory. The gradient is bounded
    everywhere, so there is no ball.
    """

    parts: Sequence[tuple[FloatArray, FloatArray]]
    start: FloatArray | None = None  # where to look first: it changes the time, not the answer

    curvature: float = field(default=0.25, init=False)
    weight_bound: None = field(default=None, init=False)

    @property
    def count(self) -> int:
        """n."""
        return sum(len(y) for _, y in self.parts)

    @property
    def dimension(self) -> int:
        """d."""
        return int(self.parts[0][0].shape[1])

    def gradient_change(self, neighbours: Neighbours) -> float:
        """∇ℓ = −y·σ(−y w·x)·x is at most 1 long, and two of them at most 2 apart."""
        return 2.0 if neighbours == "replace" else 1.0

    def gradients(self, weights: FloatArray) -> FloatArray:
        """Σ(σ(w·x) − [y = 1])·x: the label enters only by Σ[y = 1]x, so one pass serves all k."""
        total = np.zeros((self.dimension, len(weights)))
        for x, y in self._blocks():
            slopes = _sigmoid(x @ weights.T)
            slopes -= (y > 0)[:, None]
            total += x.T @ slopes
        return np.asarray(total.T)

    def hessian(self, weights: FloatArray) -> FloatArray:
        """Σσ(w·x)σ(−w·x)·xxᵀ at one w."""
        total = np.zeros((self.dimension, self.dimension))
        for x, _ in self._blocks():
            z = x @ weights
            total += x.T @ (x * (expit(z) * expit(-z))[:, None])
        return total

    def minimisers(self, ridges: FloatArray, linears: FloatArray) -> FloatArray:
        """Newton's steps with one Hessian for all, as long as that halves every gradient; what is
        left, one by one, with its own Hessian and shorter steps where they overshoot.
        """
        ridges = np.maximum(ridges, LEAST_CURVATURE * self.count)
        reference = np.zeros(self.dimension) if self.start is None else self.start
        values, vectors = np.linalg.eigh(self.hessian(reference))
        weights = np.tile(reference, (len(ridges), 1))
        last, active = np.full(len(ridges), np.inf), np.arange(len(ridges))
        stubborn: list[int] = []
        while len(active):
            w, ridge, linear = weights[active], ridges[active], linears[active]
            gradient = self.gradients(w) + ridge[:, None] * w + linear
            residual = self._residuals(gradient, w, ridge, linear)
            open_ones = residual > RESIDUAL_ALLOWED
            slow = open_ones & (residual > 0.5 * last[active])
            stubborn += active[slow].tolist()
            last[active] = residual
            w = w - (gradient @ vectors / (values + ridge[:, None])) @ vectors.T
            going_on = open_ones & ~slow
            weights[active[going_on]] = w[going_on]
            active = active[going_on]
        for k in stubborn:
            weights[k] = self._newton(float(ridges[k]), linears[k], reference)
        return weights

    def _newton(self, ridge: float, linear: FloatArray, start: FloatArray) -> FloatArray:
        """Damped by halving until the gradient shrinks, which near the minimum is at once.

        A step that is short enough shrinks it: along −H⁻¹g the derivative of ‖g‖² is −2‖g‖².
        """
        weights = start
        gradient = self.gradients(weights[None])[0] + ridge * weights + linear
        for _ in range(200):
            residual = self._residuals(
                gradient[None], weights[None], np.array([ridge]), linear[None]
            )
            if residual[0] <= RESIDUAL_ALLOWED:
                return weights
            H = self.hessian(weights) + ridge * np.eye(self.dimension)
            step, share = np.linalg.solve(H, gradient), 1.0
            while True:
                further = weights - share * step
                slope = self.gradients(further[None])[0] + ridge * further + linear
                if np.linalg.norm(slope) < np.linalg.norm(gradient) or share < 1e-9:
                    break
                share /= 2
            if share < 1e-9:
                break
            weights, gradient = further, slope
        raise NotCertifiedError(
            f"The minimiser of {self.count} logistic losses with ridge={ridge:.3g} was not found "
            f"to {RESIDUAL_ALLOWED}: the classes may be separable. Give a larger ridge."
        )

    def _residuals(
        self, gradient: FloatArray, weights: FloatArray, ridges: FloatArray, linears: FloatArray
    ) -> FloatArray:
        """‖gradient‖ over the size of its addends: at most ½ for each record, ridge and noise."""
        addends = (
            0.5 * self.count
            + ridges * np.linalg.norm(weights, axis=1)
            + np.linalg.norm(linears, axis=1)
        )
        return np.asarray(np.linalg.norm(gradient, axis=1) / addends)

    def _blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        for x, y in self.parts:
            for begin in range(0, len(y), ROWS_AT_ONCE):
                rows = slice(begin, begin + ROWS_AT_ONCE)
                yield x[rows], y[rows]


# A sum of losses over records, with the bounds that privacy rests upon.
Risk = SquaredRisk | LogisticRisk


def minimiser(risk: Risk, ridge: float, linear: FloatArray | None = None) -> FloatArray:
    """The minimiser for one ridge and one linear term."""
    slope = np.zeros(risk.dimension) if linear is None else linear
    return np.asarray(risk.minimisers(np.array([ridge]), slope[None, :])[0])


def _sigmoid(z: FloatArray) -> FloatArray:
    """σ(z) in place of z: 1/(1 + e^{−z}), several times as fast as `scipy.special.expit`.

    Where e^{−z} overflows, σ is 0 to all digits.
    """
    np.negative(z, out=z)
    with np.errstate(over="ignore"):
        np.exp(z, out=z)
    z += 1.0
    return np.reciprocal(z, out=z)
