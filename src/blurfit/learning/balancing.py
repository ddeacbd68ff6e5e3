"""Weigh public rows until they look like the contributors: entropy balancing to blurred moments.

Public rows with the same features may come from another year or another place. Of all weights on
them, those nearest to equal ones (in relative entropy) whose means and second moments are the
contributors' are exponential in the features, q_i ∝ exp(λ·f_i), f = (v, vvᵀ) (Hainmueller 2012).
The contributors' moments m are known up to noise of known variances s_k (privacy and sampling), so
they are matched as far as that asks and no further: λ minimises the convex dual

    ln Σ_i e^{λ·(f_i − m)} + ½ Σ_k (s_k/γ)·λ_k²,

whose minimiser leaves the misfit m_k − E_q[f_k] = s_kλ_k/γ: a moment that is hardly known is hardly
fitted. γ says how different the two populations are. With F = Cov(f) over the public rows and a
prior N(0, γF) on the difference of the true moments (γ is then its χ²-divergence for each moment),
the difference that is seen is D ~ N(0, γF + S), S = diag(s); γ is where that is most probable, over
a grid from nothing at all to 10. To first order the minimiser above is the posterior mean for it:
λ = γ(γF + S)⁻¹D. So public rows from the same population are left as they are, however noisy the
release is. Post-processing, as long as the public rows are not the contributors' own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blurfit.arrays import FloatArray, IntArray
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.learning.joint_sums import Submodel
from blurfit.optional import axes

LEAST_ROWS = 100.0  # of effective size; below it, a handful of rows would speak for everyone
_LARGEST_MISFIT = 5.0  # standard deviations that any moment may be off
_STEPS = 60
_DIFFERENCES = np.concatenate([[0.0], np.geomspace(1e-5, 10.0, 25)])  # of γ


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
    _features: FloatArray | None = None  # f, centred by its weighted mean, where rows were weighted
    _inverse: FloatArray | None = None  # (F + S/γ)⁻¹ under the weights
    _noise: FloatArray | None = None  # ν, privacy's part of S

    def spread(self, terms: FloatArray, count: int) -> FloatArray:
        """Covariance of the difference between the weighted mean of some terms, (rows, k), and
        their mean over the contributors, of whom there are `count`.

        Matching takes out what the matched moments explain of the terms (as in a regression
        estimator; Deville and Särndal 1992). With r the terms less their regression on f, penalised
        as the matching is, who is in the public rows adds Σq²rrᵀ and who happened to take part
        Σqrrᵀ/N; with b the coefficients of that regression, the privacy noise of the matched
        moments, of variances ν, adds bᵀdiag(ν)b.
        """
        rest = terms - self.weights @ terms
        of_noise: FloatArray | float = 0.0
        if self._features is not None and self._inverse is not None and self._noise is not None:
            along = (self._features * self.weights[:, None]).T @ rest
            slope = self._inverse @ along
            rest = rest - self._features @ slope
            of_noise = (slope * self._noise[:, None]).T @ slope
        each = self.weights**2 + self.weights / count
        found: FloatArray = (rest * each[:, None]).T @ rest + of_noise
        return found

    @property
    def in_words(self) -> str:
        """What the rows are worth, for one line of a report."""
        if self.wanted is None:
            return "taken as they are"
        return f"worth {self.effective_rows:,.0f} after matching"

    def plot(self, ax: Any = None) -> Any:
        """Means of the public rows before and after, beside the contributors' where these are
        known, by matplotlib; the axes are returned.
        """
        places = range(len(self.names))
        ax = axes(ax, 7, 1.5 + 0.3 * len(self.names))
        title = f"{len(self.weights):,} public rows, "
        ax.scatter(self.before, places, facecolors="none", edgecolors="tab:grey", label="public")
        if self.wanted is None:
            title += "as they are"
        else:
            ax.hlines(places, self.before, self.after, color="lightgrey", zorder=0)
            ax.scatter(self.after, places, color="tab:blue", label="public, matched")
            ax.scatter(
                self.wanted, places, color="tab:red", marker="|", s=150, label="contributors"
            )
            title += f"worth {self.effective_rows:,.0f}"
        ax.set_yticks(places, self.names)
        ax.invert_yaxis()
        ax.set_xlabel("mean, on the scale of the public bounds")
        ax.set_title(title, fontsize=10)
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
    """Weights that make public rows v (rows, k) match the blurred moments of a release.

    Raises:
        InfeasibleError: no weights match, or so few rows carry them that they mean little.
    """
    names = tuple(column.name for column in sums.features)
    if rows.ndim != 2 or rows.shape[1] != len(names) or len(rows) < 2:
        raise InvalidValueError(
            f"Expected public rows of shape (rows, {len(names)}), one column for each of {names}, "
            f"and got {rows.shape}."
        )
    keep = _free_products(sums)
    wanted, noise = _moments(sums, keep)
    features = np.hstack([rows, rows[:, keep[0]] * rows[:, keep[1]]])
    difference = _difference(features, wanted, noise)
    q, centred, inverse = np.full(len(rows), 1 / len(rows)), None, None
    if difference > 0:
        q = _minimise(features, wanted, noise / difference)
        centred = features - q @ features
        inverse = np.asarray(
            np.linalg.inv((centred * q[:, None]).T @ centred + np.diag(noise / difference)),
            dtype=np.float64,
        )
    effective = float(1 / np.sum(q**2))
    misfits = (wanted - q @ features) / np.sqrt(noise + features.var(axis=0) / len(rows))
    worst = int(np.abs(misfits).argmax())
    if abs(misfits[worst]) > _LARGEST_MISFIT:
        raise InfeasibleError(
            f"No weights make the public rows match the contributors: the moment of "
            f"{_label(names, keep, worst)} stays {abs(misfits[worst]):.1f} deviations of its noise "
            "away. The public rows lack people like the contributors; use others, or none."
        )
    if effective < min(LEAST_ROWS, len(rows) / 2):
        raise InfeasibleError(
            f"The public rows match the contributors only with weights that leave "
            f"{effective:.0f} effective rows of {len(rows):,} (at least {LEAST_ROWS:g} are "
            "needed). They are too different; use public rows that are more alike, or none."
        )
    k = len(names)
    return Balance(
        weights=q,
        effective_rows=effective,
        largest_ratio=float(q.max() * len(q)),
        names=names,
        misfits=misfits,
        before=rows.mean(axis=0),
        after=q @ rows,
        wanted=wanted[:k],
        _features=centred,
        _inverse=inverse,
        _noise=noise - _sampling(sums),
    )


def unweighted(names: tuple[str, ...], rows: FloatArray) -> Balance:
    """Public rows as they are: nothing is known of the contributors that they could be matched to,
    so it is assumed that their features are alike.
    """
    mean, count = rows.mean(axis=0), len(rows)
    equal = np.full(count, 1 / count)
    return Balance(equal, float(count), 1.0, names, np.zeros(0), mean, mean, None)


def _free_products(sums: Submodel) -> IntArray:
    """Which products of two columns, (2, k), are neither known nor constant."""
    i, j = np.triu_indices(len(sums.features))
    noise = sums.feature_noise.variance[1:, 1:]
    free = noise[i, j] > 0
    level = np.array([column.kind == "level" for column in sums.features])
    free &= ~((i == j) & level[i])  # a level's square is the level itself
    return np.stack([i[free], j[free]]).astype(np.int64)


def _moments(sums: Submodel, keep: IntArray) -> tuple[FloatArray, FloatArray]:
    """The contributors' moments, and the variance of each: privacy noise and sampling."""
    gram, variance = sums.gram / sums.count, sums.feature_noise.variance / sums.count**2
    weights, (i, j) = sums.scale[1:], keep
    scale = np.concatenate([sums.constant * weights, weights[i] * weights[j]])
    wanted = np.concatenate([gram[0, 1:], gram[1:, 1:][i, j]]) / scale
    noise = np.concatenate([variance[0, 1:], variance[1:, 1:][i, j]]) / scale**2
    return np.clip(wanted, -1.0, 1.0), noise + _sampling(sums)


def _sampling(sums: Submodel) -> float:
    """What the choice of people adds to the variance of a moment, roughly: that of an even
    spread.
    """
    return 0.5 / sums.count


def _difference(features: FloatArray, wanted: FloatArray, noise: FloatArray) -> float:
    """γ: how different the contributors are from the public rows, by the evidence of D."""
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
    """Damped Newton on the dual, which is strictly convex because of the noise term."""
    centred = features - wanted
    dual = np.zeros(len(wanted))

    def value(dual: FloatArray) -> tuple[float, FloatArray]:
        tilt = centred @ dual
        top = float(tilt.max())
        mass = np.exp(tilt - top)
        total = float(mass.sum())
        return top + np.log(total) + 0.5 * float(noise @ dual**2), mass / total

    now, q = value(dual)
    for _ in range(_STEPS):
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


def _label(names: Sequence[str], keep: IntArray, place: int) -> str:
    if place < len(names):
        return repr(names[place])
    i, j = keep[:, place - len(names)]
    return f"{names[i]!r} and {names[j]!r}" if i != j else f"{names[i]!r} squared"
