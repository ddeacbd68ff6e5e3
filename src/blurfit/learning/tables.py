"""Counts, tables, means by level and correlations out of blurred joint sums, with both errors.

**One least-squares problem** (`solved`). A question with K levels is known through its columns v,
and M_A has the value of each column at each level. With T_kl the people at level k of A and l of B,
and r its margin, each entry of the release is one equation with independent noise of known
variance (`Noise`):

    Σv_iw_j = Σ_kl M_A[i,k] M_B[j,l] T_kl,    Σv_i = Σ_k M_A[i,k] r_k,    Σv_i² = Σ_k M_A[i,k]² r_k.

N = Σ T_kl is public, or one more equation. Sums of a number by level, Y_k, are the same problem:
Σv_iv_y = Σ_k M_A[i,k]Y_k, and their total Σv_y.

**Sampling.** People in a table are multinomial: Cov T = N(diag π − ππᵀ). A mean ȳ_k = Y_k/N_k has
the variance σ_k²/N_k, and Σ v_y² by level is not in the release: `pooled` takes one spread for all
levels, `bounded` the largest of any law, (1 − ȳ_k)(1 + ȳ_k) (Bhatia and Davis 2000).

**Noise of a ratio**, to first order: Cov ȳ = (V_Y + ȳȳᵀ∘V_N)/(N_kN_l); Y and N are read from
different products, so their noises are independent.

**Tests.** Under independence U = (I − p1ᵀ)T(I − 1qᵀ) has mean 0 and the covariance
N(D_p − ppᵀ)⊗(D_q − qqᵀ) + BC_noiseBᵀ, B = (I − p1ᵀ)⊗(I − q1ᵀ), so that U·Cov⁺·U is χ² with
(K−1)(L−1) degrees of freedom. Equality of means is Wald's test with both parts of the covariance.

**Synthetic rows** (`joint_law`) follow the joint law p of largest entropy H among those that agree
with the release's tables of two: it minimises −λ·H(p) + Σ_f (y_f − p_f)²/(2v_f), y the shares of
all cells of all pairs, v their noise variance, by its smooth dual. λ leaves Σ(y_f − p_f)²/v_f at
the number of independent cells (discrepancy principle). Rows drawn from it are post-processing;
they have no standard errors.

**Correlations.** A covariance is C_ij = S_ij/(N ω_iω_j) − m_im_j, with the noise variance V_ij +
m_i²V_0j + m_j²V_0i; on the diagonal V_0j is added back. To first order

    Var r = Var C_ij/(d_id_j) + r²/4·(Var d_i/d_i² + Var d_j/d_j²) + (1 − r²)²/N,

the last term for sampling. A column whose variance is not above its noise has no correlations.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import chdtrc, fdtrc

from blurfit.data import BoolArray, FloatArray, IntArray
from blurfit.errors import InfeasibleError, optional, whole
from blurfit.learning.sums import Blurred, JointSums, solved

LEAST_CELL = 3.0  # noise deviations that a count must exceed before it is divided by
MOST_CELLS = 1_000_000  # of a joint law
_STEPS = 12  # of the search for λ, each halving its logarithm's range


@dataclass(frozen=True, eq=False)
class Levels:
    """A question as levels: the rows of its columns in the sums, and their values at each level."""

    question: str
    names: tuple[str, ...]
    rows: tuple[int, ...]
    values: FloatArray  # (columns, levels)

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False)
class Answer:
    """Numbers with the two parts of their covariance."""

    values: FloatArray
    sampling: FloatArray
    privacy: FloatArray

    @property
    def covariance(self) -> FloatArray:
        """Both parts together."""
        return self.sampling + self.privacy

    def through(self, matrix: FloatArray) -> "Answer":
        """Return linear combinations of the numbers, the rows of `matrix`."""
        parts = (matrix @ part @ matrix.T for part in (self.sampling, self.privacy))
        return Answer(matrix @ self.values, *parts)

    def taken(self, places: IntArray) -> "Answer":
        """Return some of the numbers."""
        rows = np.ix_(places, places)
        return Answer(self.values[places], self.sampling[rows], self.privacy[rows])

    def scaled(self, factor: float, shift: float = 0.0) -> "Answer":
        """Return the numbers in other units: factor·x + shift."""
        return Answer(
            factor * self.values + shift, factor**2 * self.sampling, factor**2 * self.privacy
        )


@dataclass(frozen=True)
class Test:
    """A test's statistic with its law under the hypothesis, and how often that is exceeded.

    `share_of_noise` says how much of the statistic's variance under the hypothesis is noise of
    privacy: near 1 there is little power.
    """

    __test__ = False  # for pytest, which collects classes of this name
    hypothesis: str
    law: str
    statistic: float
    degrees: float
    p_value: float
    share_of_noise: float = 0.0
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        found = f"{self.law} = {self.statistic:.4g} with {self.degrees:g} degrees of freedom"
        line = f"Test whether {self.hypothesis}: {found}, p = {self.p_value:.3g}"
        return "\n".join([line, *self.notes])


# ---- reading


def _margins(sums: JointSums, levels: Levels) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the equations for the counts of one question: design, what is seen, noise."""
    design, seen, noise = [], [], []
    for row, values in zip(levels.rows, levels.values, strict=True):
        column, c, variance = sums.columns[row - 1], sums.constant, sums.noise.variance
        w = column.weight
        if column.kind != "level":
            design.append(values)
            seen.append(sums.matrix[0, row] / (c * w))
            noise.append(variance[0, row] / (c * w) ** 2)
        if column.kind != "sign" or not sums.counted:
            design.append(values**2)
            seen.append(sums.matrix[row, row] / w**2)
            noise.append(variance[row, row] / w**4)
    return np.reshape(design, (-1, len(levels))), np.array(seen), np.array(noise)


def _block(
    sums: JointSums, rows: Sequence[int], others: Sequence[int]
) -> tuple[FloatArray, FloatArray]:
    """Return Σ of the products of two questions' columns, and their noise variances."""
    place = np.ix_(*(np.array(one, dtype=np.intp) for one in (rows, others)))
    one, other = ([sums.columns[row - 1].weight for row in part] for part in (rows, others))
    both = np.outer(one, other)
    return sums.matrix[place] / both, sums.noise.variance[place] / both**2


def _people(sums: JointSums, design: FloatArray, seen: FloatArray, variance: FloatArray) -> Blurred:
    """Return numbers of people, who are as many as is known in all; where that is not public, what
    the sums say of it is one more equation.
    """
    if sums.counted:
        return solved(design, seen, variance, total=sums.count)
    everybody = np.ones((1, design.shape[1]))
    noise = sums.noise.variance[0, 0] / sums.constant**4
    return solved(
        np.vstack([design, everybody]), np.append(seen, sums.count), np.append(variance, noise)
    )


def counts(sums: JointSums, levels: Levels) -> Blurred:
    """Return how many people there are at each level."""
    return _people(sums, *_margins(sums, levels))


def table(sums: JointSums, one: Levels, other: Levels) -> Blurred:
    """Return how many people there are at each pair of levels, row by row."""
    block, noise = _block(sums, one.rows, other.rows)
    pairs = np.einsum("ik,jl->ijkl", one.values, other.values)
    rows, of_rows, noise_of_rows = _margins(sums, one)
    columns, of_columns, noise_of_columns = _margins(sums, other)
    design = [
        pairs.reshape(-1, len(one) * len(other)),
        np.kron(rows, np.ones(len(other))),
        np.kron(np.ones(len(one)), columns),
    ]
    seen = np.concatenate([block.ravel(), of_rows, of_columns])
    variance = np.concatenate([noise.ravel(), noise_of_rows, noise_of_columns])
    return _people(sums, np.vstack(design), seen, variance)


def totals(sums: JointSums, number: int, levels: Levels) -> Blurred:
    """Return Σv of a number's column, by its row in the sums, over the people at each level."""
    block, noise = _block(sums, levels.rows, [number])
    c, w = sums.constant, sums.columns[number - 1].weight
    design = np.vstack([levels.values, np.ones(len(levels))])
    seen = np.append(block[:, 0], sums.matrix[0, number] / (c * w))
    variance = np.append(noise[:, 0], sums.noise.variance[0, number] / (c * w) ** 2)
    return solved(design, seen, variance)


# ---- answers


def shares(found: Blurred) -> Answer:
    """Return counts as shares of all people, with what sampling adds: they are multinomial.

    Their noise is that of x/Σx, to first order: where Σx is known, that of x/N.
    """
    count = float(found.values.sum())
    if not count > 0:
        raise InfeasibleError(
            "The noise hides how many people there are, so no share of them can be told: collect "
            "more records, or allow a larger epsilon."
        )
    values = found.values / count
    likely = on_simplex(values)
    sampling = (np.diag(likely) - np.outer(likely, likely)) / count
    change = (np.eye(len(values)) - values[:, None]) / count
    return Answer(values, sampling, change @ found.noise @ change.T)


def within(found: Answer, groups: FloatArray) -> Answer:
    """Return shares within groups of cells: x_k/(its group's Σx), to first order.

    `groups` has a row of 0 and 1 for each group, and each cell is in one of them.
    """
    sizes = groups @ found.values
    errors = np.sqrt(np.maximum(np.diag(groups @ found.privacy @ groups.T), 0.0))
    of_cell = groups.T @ np.where(clear(sizes, errors, "a share of it"), sizes, np.nan)
    values = found.values / of_cell
    change = (np.eye(len(values)) - values[:, None] * (groups.T @ groups)) / of_cell[:, None]
    parts = (change @ part @ change.T for part in (found.sampling, found.privacy))
    return Answer(values, *parts)


def means(
    sums: Blurred, people: Blurred, squares: float, count: float, *, bounded: bool = False
) -> Answer:
    """Return the mean of a number at each level, in units of its column v: from Σv at each level,
    how many there are, read from other products, and over all of them Σv² and how many they are.

    `bounded` takes the largest spread that a mean allows for each level, instead of one for all.
    """
    told = clear(people.values, np.sqrt(np.diag(people.noise)), "the mean")
    each = np.where(told, people.values, np.nan)
    values = sums.values / each
    both = np.outer(each, each)
    privacy = (sums.noise + np.outer(values, values) * people.noise) / both
    if bounded:
        spread = np.maximum(1 - values**2, 0.0)
    else:
        # Ŷ²/N̂ is too large by the variance of Ŷ − ȳN̂, over N.
        too_large = np.diag(privacy) * each
        left = squares - float(np.nansum(each * values**2 - too_large))
        spread = np.full(len(values), min(max(left / count, 0.0), 1.0))
    sampling = np.zeros_like(privacy)
    np.fill_diagonal(sampling, spread / each)
    return Answer(values, sampling, privacy)


def clear(sizes: FloatArray, errors: FloatArray, what: str) -> BoolArray:
    """Tell which counts may be divided by, because the noise cannot have made them; nothing is told
    of the others (nan), and if there is none, all is refused.
    """
    found: BoolArray = sizes > LEAST_CELL * errors
    if not found.any():
        raise InfeasibleError(
            "The noise hides how many people there are at each level, so {what} cannot be told: "
            "join rare levels, collect more records, or allow a larger epsilon.",
            what=what,
        )
    return found


def on_simplex(values: FloatArray) -> FloatArray:
    """Return the nearest shares that are at least 0 and sum to 1: for display, and for variances.

    >>> on_simplex(np.array([0.7, 0.5, -0.2])).round(3).tolist()
    [0.6, 0.4, 0.0]
    """
    ordered = np.sort(values)[::-1]
    level = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    place = np.flatnonzero(ordered > level)[-1]
    return np.asarray(np.maximum(values - level[place], 0.0))


def quantile(bands: Answer, edges: FloatArray, share: float) -> tuple[Answer, float]:
    """Return where this share of the people lies below, and how far the bands leave it open.

    `bands` are the shares between edges, of which there is one more. With F the cumulated shares
    and f = π_k/h_k the density in the band that holds it, x = e_k + (share − F_k)/f, and to first
    order Var x = Var F(x)/f² with F(x) = F_k + π_k·(x − e_k)/h_k.
    """
    likely = on_simplex(bands.values)
    below = np.concatenate([[0.0], np.cumsum(likely)])
    place = min(int(np.searchsorted(below, share, side="right")) - 1, len(likely) - 1)
    widths = np.diff(edges)
    density = likely / widths
    error = math.sqrt(max(float(bands.privacy[place, place]), 0.0))
    if likely[place] <= LEAST_CELL * error:
        raise InfeasibleError(
            "The noise hides how many people are in the band that holds this quantile: use wider "
            "bands, collect more records, or allow a larger epsilon."
        )
    part = (share - below[place]) / likely[place]
    value = edges[place] + part * widths[place]
    row = np.where(np.arange(len(likely)) < place, 1.0, 0.0)
    row[place] = part
    found = bands.through(row[None] / density[place])
    beside = density[max(place - 1, 0) : place + 2]
    open_by = float(widths[place] / 8 * np.abs(beside - density[place]).max() / density[place])
    return Answer(np.array([value]), found.sampling, found.privacy), open_by


# ---- tests


def wald(found: Answer, matrix: FloatArray, hypothesis: str, freedom: float | None = None) -> Test:
    """Test matrix·x = 0 with both parts of the covariance: χ², or F with so many people left."""
    asked = found.through(matrix)
    degrees = len(matrix)
    statistic = float(asked.values @ np.linalg.solve(asked.covariance, asked.values))
    noise = float(np.trace(np.linalg.solve(asked.covariance, asked.privacy)) / degrees)
    if freedom is None:
        return Test(hypothesis, "χ²", statistic, degrees, float(chdtrc(degrees, statistic)), noise)
    each = statistic / degrees
    return Test(hypothesis, "F", each, degrees, float(fdtrc(degrees, freedom, each)), noise)


def equal(found: Answer, hypothesis: str, freedom: float | None = None) -> Test:
    """Test whether all of the numbers are equal, or those of them that are told."""
    told = np.flatnonzero(np.isfinite(found.values))
    if len(told) < 2:
        raise InfeasibleError("The noise hides all levels but one: there is nothing to compare.")
    contrasts = np.eye(len(told))[1:] - np.eye(len(told))[0]
    return wald(found.taken(told), contrasts, hypothesis, freedom)


def independent(found: Blurred, shape: tuple[int, int], count: int, hypothesis: str) -> Test:
    """Test whether the two questions of a table are independent, with the noise in the null law."""
    cells = found.values.reshape(shape)
    p, q = (on_simplex(cells.sum(axis=axis) / count) for axis in (1, 0))
    left, right = (np.eye(len(one)) - one[:, None] for one in (p, q))
    both = np.kron(left, right)
    distance = both @ found.values
    noise = both @ found.noise @ both.T
    sampling = count * np.kron(np.diag(p) - np.outer(p, p), np.diag(q) - np.outer(q, q))
    values, vectors = np.linalg.eigh(sampling + noise)
    degrees = (shape[0] - 1) * (shape[1] - 1)
    kept, along = values[-degrees:], vectors[:, -degrees:]
    statistic = float(np.sum((distance @ along) ** 2 / kept))
    of_noise = float(np.sum(np.diag(along.T @ noise @ along) / kept) / degrees)
    return Test(hypothesis, "χ²", statistic, degrees, float(chdtrc(degrees, statistic)), of_noise)


def log_odds_ratio(found: Blurred) -> Answer:
    """Return ln(n₁₁n₂₂/(n₁₂n₂₁)) of a table of two by two, its cells in order."""
    errors = np.sqrt(np.diag(found.noise))
    if (found.values <= LEAST_CELL * errors + 1).any():
        raise InfeasibleError(
            "The noise hides whether a cell of the table is empty, so the odds ratio cannot be "
            "told: collect more records, or allow a larger epsilon."
        )
    a, b, c, d = found.values
    slope = np.array([1.0, -1.0, -1.0, 1.0]) / found.values
    sampling, privacy = np.sum(1 / found.values), slope @ found.noise @ slope
    return Answer(
        np.array([math.log(a * d / (b * c))]), np.array([[sampling]]), np.array([[privacy]])
    )


# ---- rows


def joint_law(sums: JointSums, questions: Sequence[Levels]) -> FloatArray:
    """Return the law of largest entropy of the questions' levels, an axis for each."""
    shape = tuple(len(one) for one in questions)
    cells = math.prod(shape)
    if cells > MOST_CELLS:
        raise InfeasibleError(
            "These questions have {cells:,} combinations of levels, and at most {most_cells:,} "
            "can be computed with: name fewer questions, or join levels.",
            cells=cells,
            most_cells=MOST_CELLS,
        )
    if len(questions) == 1:
        return on_simplex(counts(sums, questions[0]).values / sums.count)
    pairs = list(combinations(range(len(questions)), 2))
    found = [table(sums, questions[one], questions[other]) for one, other in pairs]
    freedom = sum((shape[one] - 1) * (shape[other] - 1) for one, other in pairs)
    freedom += sum(shape) - len(shape)
    wanted = np.concatenate([one.values / sums.count for one in found])
    variance = np.concatenate([np.diag(one.noise) / sums.count**2 for one in found])
    variance = np.maximum(variance, 1e-4 / sums.count**2)  # of a release without any noise
    theta, low, high = np.zeros(len(wanted)), math.log(1e-6), math.log(1e6)
    law = np.full(shape, 1 / cells)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        theta, law = _law_of_most_entropy(wanted, variance, math.exp(middle), shape, pairs, theta)
        misfit = float(np.sum((wanted - _shares_of_pairs(law, pairs)) ** 2 / variance))
        low, high = (low, middle) if misfit > freedom else (middle, high)
    return law


def _law_of_most_entropy(
    wanted: FloatArray,
    variance: FloatArray,
    entropy: float,
    shape: tuple[int, ...],
    pairs: Sequence[tuple[int, int]],
    start: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return θ and p for one λ."""

    def law_of(theta: FloatArray) -> tuple[FloatArray, float]:
        score = np.zeros(shape)
        ends = np.cumsum([shape[one] * shape[other] for one, other in pairs])[:-1]
        for pair, block in zip(pairs, np.split(theta, ends), strict=True):
            axes = [size if axis in pair else 1 for axis, size in enumerate(shape)]
            score += block.reshape(axes)
        score /= entropy
        top = float(score.max())
        weights = np.exp(score - top)
        total = float(weights.sum())
        return weights / total, top + math.log(total)

    scale = 1 / np.sqrt(variance)  # in these units the last term curves by 1, as L-BFGS likes

    def loss(x: FloatArray) -> tuple[float, FloatArray]:
        theta = x * scale
        law, logarithm = law_of(theta)
        value = entropy * logarithm - theta @ wanted + x @ x / 2
        return float(value), scale * (_shares_of_pairs(law, pairs) - wanted) + x

    found = minimize(loss, start / scale, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    theta: FloatArray = found.x * scale
    return theta, law_of(theta)[0]


def _shares_of_pairs(law: FloatArray, pairs: Sequence[tuple[int, int]]) -> FloatArray:
    every = range(law.ndim)
    parts = [law.sum(axis=tuple(a for a in every if a not in pair)).ravel() for pair in pairs]
    return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class Correlations:
    """r of each pair of columns, and its standard error; nan where the noise drowns a column."""

    names: tuple[str, ...]
    values: FloatArray
    standard_errors: FloatArray

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each pair: its correlation, and its error."""
        i, j = np.triu_indices(len(self.names), 1)
        names = np.array(self.names, dtype=object)
        columns = {"one": names[i], "other": names[j], "estimate": self.values[i, j]}
        errors = {"standard_error": self.standard_errors[i, j]}
        return optional("pandas").DataFrame(columns | errors)

    def __str__(self) -> str:
        return _table(self.names, self.names, self.values)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


@dataclass(frozen=True, eq=False)
class Components:
    """Directions in which the standardised columns differ most.

    `variances` are eigenvalues of the correlation matrix, `directions` their vectors, one a row.
    Eigenvalues within `noise` of 1 may be the work of the noise alone: it is the edge of the
    spectrum that the noise on the correlations would have by itself (semicircle, 2·sd·√k).
    """

    names: tuple[str, ...]
    variances: FloatArray
    directions: FloatArray
    noise: float

    @property
    def shares(self) -> FloatArray:
        """Of the total variance."""
        found: FloatArray = self.variances / len(self.names)
        return found

    def __str__(self) -> str:
        heads = [f"{share:.1%}" for share in self.shares]
        return _table(self.names, heads, self.directions.T)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _covariances_of(sums: JointSums) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the covariances of the columns v, the variance that the noise left in each, and in
    those on the diagonal.
    """
    weights = np.array([sums.constant, *(column.weight for column in sums.columns)])
    both = sums.count * np.outer(weights, weights)
    matrix, variance = sums.matrix / both, sums.noise.variance / both**2
    mean, of_mean = matrix[0, 1:], variance[0, 1:]
    covariance = matrix[1:, 1:] - np.outer(mean, mean) + np.diag(of_mean)
    product = np.outer(mean**2, of_mean)
    noise = variance[1:, 1:] + product + product.T
    return covariance, noise, np.diag(variance)[1:] + 4 * mean**2 * of_mean


def spreads(sums: JointSums) -> tuple[FloatArray, FloatArray]:
    """Return the variance of each column v, and what the noise adds to the variance of that."""
    covariance, _, of_spread = _covariances_of(sums)
    return np.diag(covariance), of_spread


def correlations(sums: JointSums) -> Correlations:
    """Return the correlations of all columns of a release."""
    covariance, noise, of_spread = _covariances_of(sums)
    spread = np.diag(covariance)
    clear = spread > np.sqrt(of_spread)
    scale = np.where(clear, spread, np.nan)
    with np.errstate(invalid="ignore"):
        found = np.clip(covariance / np.sqrt(np.outer(scale, scale)), -1.0, 1.0)
        relative = of_spread / scale**2
        errors = noise / np.outer(scale, scale)
        errors += found**2 / 4 * (relative[:, None] + relative[None, :])
        errors += (1 - found**2) ** 2 / sums.count
    np.fill_diagonal(found, np.where(clear, 1.0, np.nan))
    np.fill_diagonal(errors, np.where(clear, 0.0, np.nan))
    return Correlations(tuple(column.name for column in sums.columns), found, np.sqrt(errors))


def components(sums: JointSums, count: int | None = None) -> Components:
    """Return the first few principal components of the correlations, or all."""
    found = correlations(sums)
    drowned = [
        name for name, row in zip(found.names, found.values, strict=True) if np.isnan(row).all()
    ]
    if drowned:
        raise InfeasibleError(
            "The noise is larger than the spread of {drowned}: principal components need every "
            "column's. Collect more records, or allow a larger epsilon.",
            drowned=drowned,
        )
    size = len(found.names)
    most = size if count is None else count
    whole(count=most)
    values, vectors = np.linalg.eigh(found.values)
    order = np.argsort(values)[::-1][:most]
    beside = ~np.eye(size, dtype=bool)
    noise = float(np.sqrt(np.mean(found.standard_errors[beside] ** 2))) if size > 1 else 0.0
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(size)])
    return Components(
        found.names,
        np.maximum(values[order], 0.0),
        np.ascontiguousarray((vectors * signs).T[order]),
        2 * noise * float(np.sqrt(size)),
    )


def _table(rows: Sequence[str], heads: Sequence[str], values: FloatArray) -> str:
    first = max(map(len, rows), default=0)
    widths = [max(len(head), 6) for head in heads]
    lines = [" " * first + "".join(f"  {h:>{w}}" for h, w in zip(heads, widths, strict=True))]
    for name, line in zip(rows, values, strict=True):
        cells = "".join(f"  {value:>{w}.2f}" for value, w in zip(line, widths, strict=True))
        lines.append(f"{name:<{first}}{cells}")
    return "\n".join(lines)
