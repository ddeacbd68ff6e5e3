"""Exact generalised linear models from Σyx alone, where rows of the features are public.

For a canonical generalised linear model the target enters only through t = E[yx]: the exact model
minimises E[A(x·w)] − t·w, and E[A(x·w)] needs features but no targets. With public rows (weighted
to look like the contributors, `blurfit.learning.balancing`) it is the solution of

    ∇Â(w) = Σ_i q_i A'(x_i·w)x_i = t,          A'(η) = tanh(η/2), e^η or η

for labels ±1, counts and numbers. Of several classes each is told from all others: with y = 1 for
it and 0 else, A' = 2/(1 + e^−η) and 2E[yx] stands for t: the label's model, moved by E[x]. t is
part of the joint release: no mechanism of its own is needed, and none is used. "Exact" means that
no parabola stands in for A.

**Noise.** t is blurred, and may lie outside what any w gives. So w is estimated as linear Bayes
does (`blurfit.learning.linear_bayes`), with the curve in place of the matrix: under a prior
w ~ N(w₀, P) and t = ∇Â(w) + error of covariance V, Gauss–Newton's fixed point of

    w ← w₀ + PH(HPH + V)⁻¹(t − ∇Â(w) + H(w − w₀)),     H = ∇²Â(w),

is the most probable w. V has three parts: the privacy noise of t; how contributors' answers differ
from their mean at their features, φH/N; and how their features differ from the weighted public
rows, by who takes part in either and by the noise of matching (`Balance.spread`). The
prior says that the features move the linear predictor with variance s², in equal parts; s² is
averaged over a grid by how probable it makes t.

**Errors.** Without the prior w errs by H⁻¹(error of t), so its covariance is H⁻¹VH⁻¹.

**How far answers lie from the model** decides who happened to take part: that part of V is φH/N,
φ = Var(y | x)/A''. It is 2 for labels ±1 and 1 for counts, by the model. For a number it is the
residual variance, and the release has Σy²: with r(w) = E[y²] − 2t·w + wᵀHw, and w = H⁻¹t of a t
with noise variances ν, E[r] = φ − tr(H⁻¹diag(ν)), so φ is r + tr(H⁻¹diag(ν)); at least half a
deviation of what the noise adds to it, and at most the variance of y. For shrinkage, the latter.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError
from blurfit.learning.balancing import Balance, balance, unweighted
from blurfit.learning.joint_sums import Submodel
from blurfit.learning.linear_bayes import target_variance
from blurfit.validate import one_of

Family = Literal["logistic", "poisson", "linear"]
FAMILIES: tuple[Family, ...] = ("logistic", "poisson", "linear")
# s², the variance of the linear predictor: a choice for curves; a number in [−1, 1] has at most 1.
_SPREADS: dict[Family, FloatArray] = {
    "logistic": np.geomspace(0.01, 30.0, 9),
    "poisson": np.geomspace(0.01, 30.0, 9),
    "linear": np.geomspace(0.001, 0.5, 9),
}
_STEPS = 30
_LARGEST_PREDICTOR = 30.0


class Curve(NamedTuple):
    """A' and A'' of a canonical model, as functions of the linear predictor."""

    mean: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]


def _logistic_slope(eta: FloatArray) -> FloatArray:
    return np.asarray(0.5 / np.cosh(eta / 2) ** 2)


CURVES: dict[Family, Curve] = {
    "logistic": Curve(lambda eta: np.tanh(eta / 2), _logistic_slope),
    "poisson": Curve(np.exp, np.exp),
    "linear": Curve(lambda eta: eta, np.ones_like),
}
# Var(y | x)/A'' where the model tells it: labels are ±1, and their A' is tanh(η/2).
DISPERSION: dict[Family, float] = {"logistic": 2.0, "poisson": 1.0}


CLASS = Curve(lambda eta: 1 + np.tanh(eta / 2), _logistic_slope)  # 2/(1 + e^−η)


@dataclass(frozen=True, eq=False)
class PublicFit:
    """w of (1, v): shrunk for prediction, and unshrunk with the parts of its covariance.

    `residual_variance` is φ of a number; `spread` is the posterior mean of the linear predictor's
    variance; `balance` says how the public rows were weighted.
    """

    coefficients: FloatArray
    unshrunk: FloatArray | None
    sampling: FloatArray | None
    privacy: FloatArray | None
    residual_variance: float | None
    spread: float
    balance: Balance


def fit_with_public_rows(
    sums: Submodel,
    rows: FloatArray,
    family: Family,
    *,
    match: bool = True,
    top: float | None = None,
) -> PublicFit:
    """The exact model of one target from its blurred sums and public rows of its features.

    Args:
        sums: one target and its features; only Σz·y is read of them, and the moments if `match`.
        rows: public rows of the columns v, (rows, k), never the contributors' own.
        family: "logistic" for a target of ±1 or one of several classes, "poisson" for counts,
            "linear" for numbers.
        match: weight the rows to the contributors' blurred moments first.
        top: for "poisson", the largest count Y: the target's column is v = 2y/Y − 1.
    """
    one_of(FAMILIES, family=family)
    if family == "logistic" and sums.target.kind == "numeric":
        raise InvalidValueError(
            f"Expected a target of yes and no for family='logistic', or one of several classes: "
            f"{sums.target.name!r} is a number."
        )
    if family == "poisson" and (sums.target.kind != "numeric" or top is None):
        raise InvalidValueError(
            "Expected a numeric target with lower bound 0, and `top`, its upper bound, for "
            "family='poisson'."
        )
    names = tuple(column.name for column in sums.features)
    found = balance(sums, rows) if match else unweighted(names, rows)
    q = found.weights
    design = np.column_stack([np.ones(len(rows)), rows])
    moment, noise = _target_moment(sums, top if family == "poisson" else None)
    curve, is_class = CURVES[family], sums.target.kind == "level"
    if is_class:
        curve, moment, noise = CLASS, 2 * moment, 4 * noise
    dispersion = target_variance(sums) / sums.target.weight**2
    problem = _Problem(design, found, moment, curve, sums.count, DISPERSION.get(family, dispersion))
    start, prior = _prior(design, q, moment - is_class, family)
    logs, means, w = [], [], start
    for spread in _SPREADS[family]:
        w, log = _most_probable(problem, start, prior(spread), noise, w)
        logs.append(log)
        means.append(w)
    chance = np.exp(np.array(logs) - max(logs))
    chance /= chance.sum()
    w = chance @ np.array(means)
    return PublicFit(
        coefficients=w,
        spread=float(chance @ _SPREADS[family]),
        balance=found,
        **_unshrunk(problem, noise, w, sums if family == "linear" else None),
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    design: FloatArray
    rows: Balance
    moment: FloatArray
    curve: Curve
    count: int
    dispersion: float  # Var(y | x)/A''

    def predictor(self, w: FloatArray) -> FloatArray:
        """x·w of each row, clipped."""
        return np.clip(self.design @ w, -_LARGEST_PREDICTOR, _LARGEST_PREDICTOR)

    def gradient(self, w: FloatArray) -> FloatArray:
        """∇Â(w)."""
        found: FloatArray = (self.rows.weights * self.curve.mean(self.predictor(w))) @ self.design
        return found

    def at(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """∇Â(w) and H."""
        slope = self.rows.weights * self.curve.slope(self.predictor(w))
        return self.gradient(w), (self.design * slope[:, None]).T @ self.design

    def spread(self, w: FloatArray, hessian: FloatArray) -> FloatArray:
        """The part of V that is not privacy noise."""
        terms = self.design * self.curve.mean(self.predictor(w))[:, None]
        return self.rows.spread(terms, self.count) + hessian * self.dispersion / self.count


def _target_moment(sums: Submodel, top: float | None) -> tuple[FloatArray, FloatArray]:
    """t = E[yx] for x = (1, v), and the variance of its privacy noise."""
    scale = sums.count * sums.scale * sums.target.weight
    moment = sums.cross / scale
    noise = sums.noise.variance[:-1, -1] / scale**2
    if top is None:
        return moment, noise
    # y = (v + 1)·Y/2, so E[yx] = Y/2·(E[vx] + E[x]), and E[x] is blurred as well
    means = sums.gram[0] / (sums.count * sums.constant * sums.scale)
    also = sums.noise.variance[0, :-1] / (sums.count * sums.constant * sums.scale) ** 2
    return top / 2 * (moment + means), (top / 2) ** 2 * (noise + also)


def _prior(
    design: FloatArray, q: FloatArray, moment: FloatArray, family: Family
) -> tuple[FloatArray, Callable[[float], FloatArray]]:
    """w₀, a constant model, and P for each s²: independent at the features' means."""
    mean = q @ design[:, 1:]
    variance = np.maximum(q @ (design[:, 1:] - mean) ** 2, 1e-4)
    middle = float(moment[0])
    if family == "logistic":
        middle = 2 * float(np.arctanh(np.clip(middle, -0.98, 0.98)))
    elif family == "poisson":
        middle = float(np.log(max(middle, 1e-3)))
    start = np.zeros(design.shape[1])
    start[0] = middle
    move = np.eye(len(start))
    move[0, 1:] = -mean

    def prior(spread: float) -> FloatArray:
        parts = np.concatenate([[1.0], spread / (len(mean) * variance)])
        found: FloatArray = (move * parts) @ move.T
        return found

    return start, prior


def _most_probable(
    problem: _Problem, start: FloatArray, prior: FloatArray, noise: FloatArray, w: FloatArray
) -> tuple[FloatArray, float]:
    """Gauss–Newton's fixed point, and ln(evidence) of the linear model around it.

    Each step minimises ‖t − ∇Â(w)‖² in V⁻¹ plus ‖w − w₀‖² in P⁻¹, and is halved until that falls.
    V is that of the start and then of the first step, which is near enough: it takes longest.
    """
    precision = np.linalg.inv(prior)
    log = -np.inf
    error = weighing = np.diag(noise)
    for place in range(_STEPS):
        gradient, hessian = problem.at(w)
        if place < 2:
            error = problem.spread(w, hessian) + np.diag(noise)
            weighing = np.asarray(np.linalg.inv(error), dtype=np.float64)
        total = hessian @ prior @ hessian + error
        seen = problem.moment - gradient + hessian @ (w - start)
        solved = np.linalg.solve(total, seen)
        step = start + prior @ hessian @ solved - w
        log = -0.5 * float(np.linalg.slogdet(total)[1] + seen @ solved)

        def merit(at: FloatArray, gradient: FloatArray, weighing: FloatArray = weighing) -> float:
            left, moved = problem.moment - gradient, at - start
            return float(left @ weighing @ left + moved @ precision @ moved)

        now, length = merit(w, gradient), 1.0
        while length > 1e-4 and merit(w + length * step, problem.gradient(w + length * step)) > now:
            length /= 2
        w = w + length * step
        if length * float(np.abs(step).max()) < 1e-6:
            break
    return w, log


def _residual_variance(
    sums: Submodel, problem: _Problem, noise: FloatArray, w: FloatArray, hessian: FloatArray
) -> float:
    """φ of a number, from the release's Σy²: between its noise and the variance of y."""
    scale = sums.count * sums.target.weight**2
    seen = sums.square / scale - 2 * float(problem.moment @ w) + float(w @ hessian @ w)
    seen += float(np.trace(np.linalg.solve(hessian, np.diag(noise))))
    unsure = np.sqrt(sums.noise.variance[-1, -1] / scale**2 + 4 * float(noise @ w**2))
    return float(np.clip(seen, min(unsure / 2, problem.dispersion), problem.dispersion))


def _unshrunk(
    problem: _Problem, noise: FloatArray, w: FloatArray, sums: Submodel | None
) -> dict[str, Any]:
    """The solution of ∇Â(w) = t and its covariance, where Newton finds one."""
    nothing = dict.fromkeys(("unshrunk", "sampling", "privacy", "residual_variance"))
    for _ in range(_STEPS):
        gradient, hessian = problem.at(w)
        values = np.linalg.eigvalsh(hessian)
        if values[0] <= 1e-10 * values[-1]:
            return nothing
        step = np.linalg.solve(hessian, problem.moment - gradient)
        reach = float(np.abs(problem.design @ step).max())
        w = w + step * min(1.0, 2.0 / max(reach, 1e-12))
        if float(np.abs(problem.design @ w).max()) > _LARGEST_PREDICTOR:
            return nothing
        if reach < 1e-9:
            break
    else:
        return nothing
    known, spread = None, problem.spread(w, hessian)
    if sums is not None:
        known = _residual_variance(sums, problem, noise, w, hessian)
        spread += hessian * (known - problem.dispersion) / problem.count
    inverse = np.linalg.inv(hessian)
    return {
        "unshrunk": w,
        "sampling": inverse @ spread @ inverse,
        "privacy": inverse @ np.diag(noise) @ inverse,
        "residual_variance": known,
    }
