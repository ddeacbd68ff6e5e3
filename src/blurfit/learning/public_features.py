"""Exact generalised linear models from Σyx alone, where rows of the features are public.

For a canonical generalised linear model the target enters only through t = E[yx]: the exact model
minimises E[A(x·w)] − t·w, and E[A(x·w)] needs features but no targets. With public rows (weighted
to look like the contributors, as below) it is the solution of

    ∇Â(w) = Σ_i q_i A'(x_i·w)x_i = t,          A'(η) = tanh(η/2), e^η or η

for labels ±1, counts and numbers. Of several classes each is told from all others: with y = 1 for
it and 0 else, A' = 2/(1 + e^−η) and 2E[yx] stands for t: the label's model, moved by E[x]. t is
part of the joint release: no mechanism of its own is needed, and none is used. "Exact" means that
no parabola stands in for A.

**Noise.** t is blurred, and may lie outside what any w gives. So w is estimated as linear Bayes
does (`blurfit.learning.shrinkage`), with the curve in place of the matrix: under a prior
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

**Weighting public rows** until they look like the contributors, by entropy balancing to blurred
moments (`balance`). Public rows with the same features may come from another year or another place.
Of all weights on them, those nearest to equal ones (in relative entropy) whose means and second
moments are the contributors' are exponential in the features, q_i ∝ exp(λ·f_i), f = (v, vvᵀ)
(Hainmueller 2012). The contributors' moments m are known up to noise of known variances s_k
(privacy and sampling), so they are matched as far as that asks and no further: λ minimises the
convex dual

    ln Σ_i e^{λ·(f_i − m)} + ½ Σ_k (s_k/γ)·λ_k²,

whose minimiser leaves the misfit m_k − E_q[f_k] = s_kλ_k/γ: a moment that is hardly known is hardly
fitted. γ says how different the two populations are. With F = Cov(f) over the public rows and a
prior N(0, γF) on the difference of the true moments (γ is then its χ²-divergence for each moment),
the difference that is seen is D ~ N(0, γF + S), S = diag(s); γ is where that is most probable, over
a grid from nothing at all to 10. To first order the minimiser above is the posterior mean for it:
λ = γ(γF + S)⁻¹D. So public rows from the same population are left as they are, however noisy the
release is. Post-processing, as long as the public rows are not the contributors' own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from blurfit.data import FloatArray, IntArray
from blurfit.errors import InfeasibleError, InvalidValueError, axes, one_of
from blurfit.learning.shrinkage import target_variance
from blurfit.learning.sums import Submodel

LEAST_ROWS = 100.0  # of effective size; below it, a handful of rows would speak for everyone
_SAMPLING = 0.5  # what the choice of people adds to a moment's variance, of an even spread, over N
_LARGEST_MISFIT = 5.0  # standard deviations that any moment may be off
_BALANCING_STEPS = 60
_DIFFERENCES = np.concatenate([[0.0], np.geomspace(1e-5, 10.0, 25)])  # of γ
Family = Literal["logistic", "poisson", "linear"]
FAMILIES: tuple[Family, ...] = ("logistic", "poisson", "linear")
# s², the variance of the linear predictor: a choice for curves; a number in [−1, 1] has at most 1.
_SPREADS = dict.fromkeys(FAMILIES, np.geomspace(0.01, 30.0, 9)) | {
    "linear": np.geomspace(0.001, 0.5, 9)
}
_FITTING_STEPS = 30
_LARGEST_PREDICTOR = 30.0


@dataclass(frozen=True, eq=False)
class Balance:
    """Weights of the public rows, which sum to one, and how far they had to go.

    `effective_rows` is Kish's 1/Σq²: how many equal rows would be as good. `misfits` are what is
    left of each moment's difference, in deviations of its own noise; `before` and `after` are the
    means of the columns, beside the contributors' `wanted`; None where nothing is known of these,
    and the rows are taken as they are.
    """

    weights: FloatArray
    effective_rows: float
    largest_ratio: float
    names: tuple[str, ...]
    misfits: FloatArray
    before: FloatArray
    after: FloatArray
    wanted: FloatArray | None
    # where rows were weighted: f, centred by its weighted mean, (F + S/γ)⁻¹ under the weights, and
    # ν, privacy's part of S
    _matched: tuple[FloatArray, FloatArray, FloatArray] | None = None

    def spread(self, terms: FloatArray, count: int) -> FloatArray:
        """Return the covariance of the difference between the weighted mean of some terms, (rows,
        k), and their mean over the contributors, of whom there are `count`.

        Matching takes out what the matched moments explain of the terms (as in a regression
        estimator; Deville and Särndal 1992). With r the terms less their regression on f, penalised
        as the matching is, who is in the public rows adds Σq²rrᵀ and who happened to take part
        Σqrrᵀ/N; with b the coefficients of that regression, the privacy noise of the matched
        moments, of variances ν, adds bᵀdiag(ν)b.
        """
        rest = terms - self.weights @ terms
        of_noise: FloatArray | float = 0.0
        if self._matched is not None:
            features, inverse, noise = self._matched
            slope = inverse @ ((features * self.weights[:, None]).T @ rest)
            rest = rest - features @ slope
            of_noise = (slope * noise[:, None]).T @ slope
        each = self.weights**2 + self.weights / count
        return np.asarray((rest * each[:, None]).T @ rest + of_noise)

    @property
    def in_words(self) -> str:
        """What the rows are worth, for one line of a report."""
        if self.wanted is None:
            return "taken as they are"
        return f"worth {self.effective_rows:,.0f} after matching"

    def plot(self, ax: Any = None) -> Any:
        """Draw the means of the public rows before and after, beside the contributors' where these
        are known, by matplotlib; return the axes.
        """
        places = range(len(self.names))
        ax = axes(ax, 7, 1.5 + 0.3 * len(self.names))
        ax.scatter(self.before, places, facecolors="none", edgecolors="tab:grey", label="public")
        worth = "as they are"
        if self.wanted is not None:
            ax.hlines(places, self.before, self.after, color="lightgrey", zorder=0)
            ax.scatter(self.after, places, color="tab:blue", label="public, matched")
            marks = {"color": "tab:red", "marker": "|", "s": 150, "label": "contributors"}
            ax.scatter(self.wanted, places, **marks)
            worth = f"worth {self.effective_rows:,.0f}"
        ax.set_yticks(places, self.names)
        ax.invert_yaxis()
        ax.set_xlabel("mean, on the scale of the public bounds")
        ax.set_title(f"{len(self.weights):,} public rows, {worth}", fontsize=10)
        ax.legend(fontsize=8)
        return ax

    def __str__(self) -> str:
        if self.wanted is None:
            return (
                f"{len(self.weights):,} public rows, {self.in_words}: only products with the "
                "target were sent, so nobody knows whether the contributors' features differ."
            )
        lines = [
            f"{len(self.weights):,} public rows, worth {self.effective_rows:,.0f}; the largest "
            f"weight is {self.largest_ratio:.1f} times the mean one.",
            f"{'column':<24}  public  matched  contributors",
        ]
        for name, *means in zip(self.names, self.before, self.after, self.wanted, strict=True):
            lines.append(f"{name:<24}  {means[0]:6.3f}   {means[1]:6.3f}        {means[2]:6.3f}")
        return "\n".join(lines)


def balance(sums: Submodel, rows: FloatArray) -> Balance:
    """Find weights that make public rows v (rows, k) match the blurred moments of a release.

    Raises:
        InfeasibleError: no weights match, or so few rows carry them that they mean little.
    """
    names = tuple(column.name for column in sums.features)
    if rows.ndim != 2 or rows.shape[1] != len(names) or len(rows) < 2:
        raise InvalidValueError(
            f"Expected public rows of shape (rows, {len(names)}), one column for each of {names}, "
            f"and got {rows.shape}."
        )
    keep, wanted, noise = _moments(sums)
    features = np.hstack([rows, rows[:, keep[0]] * rows[:, keep[1]]])
    difference = _difference(features, wanted, noise)
    q, matched = np.full(len(rows), 1 / len(rows)), None
    if difference > 0:
        q = _minimise(features, wanted, noise / difference)
        centred = features - q @ features
        curvature = (centred * q[:, None]).T @ centred + np.diag(noise / difference)
        inverse = np.asarray(np.linalg.inv(curvature), dtype=np.float64)
        matched = centred, inverse, noise - _SAMPLING / sums.count
    effective = float(1 / np.sum(q**2))
    misfits = (wanted - q @ features) / np.sqrt(noise + features.var(axis=0) / len(rows))
    worst = int(np.abs(misfits).argmax())
    if abs(misfits[worst]) > _LARGEST_MISFIT:
        pairs = (
            f"{names[i]!r} and {names[j]!r}" if i != j else f"{names[i]!r} squared"
            for i, j in keep.T
        )
        moment = [*map(repr, names), *pairs][worst]
        raise InfeasibleError(
            f"No weights make the public rows match the contributors: the moment of {moment} stays "
            f"{abs(misfits[worst]):.1f} deviations of its noise away. The public rows lack people "
            "like the contributors; use others, or none."
        )
    if effective < min(LEAST_ROWS, len(rows) / 2):
        raise InfeasibleError(
            f"The public rows match the contributors only with weights that leave "
            f"{effective:.0f} effective rows of {len(rows):,} (at least {LEAST_ROWS:g} are "
            "needed). They are too different; use public rows that are more alike, or none."
        )
    return Balance(
        weights=q,
        effective_rows=effective,
        largest_ratio=float(q.max() * len(q)),
        names=names,
        misfits=misfits,
        before=rows.mean(axis=0),
        after=q @ rows,
        wanted=wanted[: len(names)],
        _matched=matched,
    )


def unweighted(names: tuple[str, ...], rows: FloatArray) -> Balance:
    """Take public rows as they are, where nothing is known of the contributors that the rows could
    be matched to: it is assumed that their features are alike.
    """
    mean, equal = rows.mean(axis=0), np.full(len(rows), 1 / len(rows))
    return Balance(equal, float(len(rows)), 1.0, names, np.zeros(0), mean, mean, None)


def _moments(sums: Submodel) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return which products of two columns, (2, k), are neither known nor constant, the
    contributors' moments, and the variance of each: privacy noise and sampling.
    """
    variance = sums.feature_noise.variance
    i, j = np.triu_indices(len(sums.features))
    share = np.array([column.is_share for column in sums.features])
    # a level's square is the level, and a hat's follows from the others
    free = (variance[1:, 1:][i, j] > 0) & ~((i == j) & share[i])
    i, j = i[free], j[free]
    gram, variance, weights = sums.gram / sums.count, variance / sums.count**2, sums.scale[1:]
    scale = np.concatenate([sums.constant * weights, weights[i] * weights[j]])
    wanted = np.concatenate([gram[0, 1:], gram[1:, 1:][i, j]]) / scale
    noise = np.concatenate([variance[0, 1:], variance[1:, 1:][i, j]]) / scale**2
    return np.stack([i, j]), np.clip(wanted, -1.0, 1.0), noise + _SAMPLING / sums.count


def _difference(features: FloatArray, wanted: FloatArray, noise: FloatArray) -> float:
    """Find γ, how different the contributors are from the public rows, by the evidence of D."""
    seen = wanted - features.mean(axis=0)
    spread = np.cov(features, rowvar=False).reshape(len(seen), len(seen))
    total = noise + np.diag(spread) / len(features)
    scale = np.sqrt(total)
    values, vectors = np.linalg.eigh(spread / np.outer(scale, scale))
    along = (vectors.T @ (seen / scale)) ** 2
    values = np.maximum(values, 0.0)
    variances = 1 + _DIFFERENCES[:, None] * values
    logs = -0.5 * np.sum(np.log(variances) + along / variances, axis=1)
    return float(_DIFFERENCES[int(logs.argmax())])


def _minimise(features: FloatArray, wanted: FloatArray, noise: FloatArray) -> FloatArray:
    """Minimise the dual, strictly convex because of the noise term, by damped Newton steps."""
    centred = features - wanted
    dual = np.zeros(len(wanted))

    def value(dual: FloatArray) -> tuple[float, FloatArray]:
        tilt = centred @ dual
        top = float(tilt.max())
        mass = np.exp(tilt - top)
        total = float(mass.sum())
        return top + np.log(total) + 0.5 * float(noise @ dual**2), mass / total

    now, q = value(dual)
    for _ in range(_BALANCING_STEPS):
        mean = q @ centred
        gradient = mean + noise * dual
        hessian = (centred * q[:, None]).T @ centred - np.outer(mean, mean)
        hessian[np.diag_indices_from(hessian)] += noise
        step = np.linalg.solve(hessian, gradient)
        descent = float(gradient @ step)
        if descent < 1e-12:
            break
        length = 1.0
        while length > 1e-8:
            then, tilted = value(dual - length * step)
            if then <= now - 0.25 * length * descent:
                break
            length /= 2
        else:
            break
        dual, now, q = dual - length * step, then, tilted
    return q


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
    """Fit the exact model of one target from its blurred sums and public rows of its features.

    `rows` are those of the columns v, (rows, k), never the contributors' own. Only Σz·y is read of
    the sums, and if `match` the moments, to which the rows are weighted first. The family is
    "logistic" for a target of ±1 or one of several classes, "linear" for numbers, and "poisson" for
    counts up to Y = `top`: the target's column is v = 2y/Y − 1.
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
        """Return x·w of each row, clipped."""
        return np.clip(self.design @ w, -_LARGEST_PREDICTOR, _LARGEST_PREDICTOR)

    def gradient(self, w: FloatArray) -> FloatArray:
        """Return ∇Â(w)."""
        return np.asarray((self.rows.weights * self.curve.mean(self.predictor(w))) @ self.design)

    def at(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ∇Â(w) and H."""
        slope = self.rows.weights * self.curve.slope(self.predictor(w))
        return self.gradient(w), (self.design * slope[:, None]).T @ self.design

    def spread(self, w: FloatArray, hessian: FloatArray) -> FloatArray:
        """Return the part of V that is not privacy noise."""
        terms = self.design * self.curve.mean(self.predictor(w))[:, None]
        return self.rows.spread(terms, self.count) + hessian * self.dispersion / self.count


def _target_moment(sums: Submodel, top: float | None) -> tuple[FloatArray, FloatArray]:
    """Return t = E[yx] for x = (1, v), and the variance of its privacy noise."""
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
    """Return w₀, a constant model, and P for each s²: independent at the features' means."""
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
        return np.asarray((move * parts) @ move.T)

    return start, prior


def _most_probable(
    problem: _Problem, start: FloatArray, prior: FloatArray, noise: FloatArray, w: FloatArray
) -> tuple[FloatArray, float]:
    """Find Gauss–Newton's fixed point, and ln(evidence) of the linear model around it.

    Each step minimises ‖t − ∇Â(w)‖² in V⁻¹ plus ‖w − w₀‖² in P⁻¹, and is halved until that falls.
    V is that of the start and then of the first step, which is near enough: it takes longest.
    """
    precision = np.linalg.inv(prior)
    log = -np.inf
    error = weighing = np.diag(noise)
    for place in range(_FITTING_STEPS):
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
    """Estimate φ of a number from the release's Σy², between its noise and the variance of y."""
    scale = sums.count * sums.target.weight**2
    seen = sums.square / scale - 2 * float(problem.moment @ w) + float(w @ hessian @ w)
    seen += float(np.trace(np.linalg.solve(hessian, np.diag(noise))))
    unsure = np.sqrt(sums.noise.variance[-1, -1] / scale**2 + 4 * float(noise @ w**2))
    return float(np.clip(seen, min(unsure / 2, problem.dispersion), problem.dispersion))


def _unshrunk(
    problem: _Problem, noise: FloatArray, w: FloatArray, sums: Submodel | None
) -> dict[str, Any]:
    """Solve ∇Â(w) = t, with the solution's covariance, where Newton finds one."""
    nothing = dict.fromkeys(("unshrunk", "sampling", "privacy", "residual_variance"))
    for _ in range(_FITTING_STEPS):
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
