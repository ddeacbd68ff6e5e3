"""What is known after a wave: the model, its error, and where people are.

Wave 1's joint sums give the line of least squares, for every task, or the target's mean alone, with
the covariance of the error, and mean and covariance of the features (`first_belief`). Sums of later
waves move it (`blurfit.learning.waves`). `coordinates` are those of a map, in which a wave looks
for a change of the coefficients.

**Pilot histograms** (`law_of`). A residual wave weights a record by s = min(1, r√p/‖f‖), w = s²,
and clips s·g to ±R (`blurfit.theory.maps.ResidualMap`). Its noise grows with r·R, and small r and R
clip people. Second moments do not say how many, so a gauge counts people in bins of ‖f‖/√p and of
|g| first: pairs of bins where the noise is below `_SHARP` of the people, else two histograms, taken
for independent. A share that stands above its noise is taken as seen; the others are posterior
means under an exponential prior, or 0. Without a gauge the law is assumed (`assumed_law`).

**r and R** (`choose`) are the bins' ends of least expected excess error, by that law, in units in
which features are white and residuals have spread 1, f² = ‖f‖²/p and the symbols of `Cut`:

    J = u·p(k√p·rR)² + u·pσ²E[w²f²]/n + (L + E_f)·B + out²·tr P + clip²
        + ((kRa/c)² + σ²/n)/E_w² + u(kr²pb/a)²(p + 1)·tr P/p,

k = (1 + c²)/(abμn) the noise, u = (L + E_f)/E_f², B = (η·L·E[(1 − w)g²] + bend²)/E_f², P the error
of the model that the wave starts from: noise on Σfg, sampling, weights and clipping; the constant;
noise on Σffᵀ. Weights bias nothing if the mean is linear; if not, by at most L·E[(1 − w)g²]/E_f²
(Cauchy and Schwarz), of which η is expected. As nμ grows, the ends that clip nobody win. The last
wave, whose errors are reported, weights nobody down whom its gauge saw.

The constants were chosen on generated populations.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.linalg.lapack import dtrtri
from scipy.special import gammainc, ndtr

from blurfit.data import BoolArray, FloatArray
from blurfit.errors import one_of, positive
from blurfit.learning.shrinkage import (
    Shrunk,
    mean_posterior,
    of_slopes,
    prior_of,
    read_once,
    soft_floor,
)
from blurfit.learning.sums import Submodel
from blurfit.theory.forms import ColumnKind
from blurfit.theory.gaussian import root_of_increasing
from blurfit.theory.maps import GaugeMap, ResidualMap, WaveMap, Whitening
from blurfit.theory.planning import TASKS, Task, information

_RATIO = math.sqrt(2)
_BINS = 13, 33  # at least and at most
_NEAREST = 0.25  # where bins begin, in standard deviations, if there are enough of them
_USUAL, _PARTS = (0.5, 2.0 * _RATIO), 4  # where bins are divided, of differences within people
_SHARP = 0.003  # the largest deviation of a share for which pairs of bins are counted
_SURE, _LIKELY = 4.0, 1.5  # deviations above 0 from which a cell stands, by itself or beside one
LEAST_EXPECTED, _FULL = 0.1, 500.0  # η, and ψ at which it is 1
_NEAR = 2.5  # up to where tails are read
_DOUBT = 1.5  # deviations of the noise by which tails, and what wave 1 saw beyond, count less
_LEAST_BOUND = 1.0, 2.0  # R in deviations of s·g, where ψ is up to 5, and from 10 on
MEAN = 1.0, 0.1, 0.99  # (c, a, b) of a wave that learns the mean alone
SLOPES = 0.6, 0.7, 0.714  # of the only wave that looks for slopes
WEIGHTS = ResidualMap.constant, ResidualMap.feature_weight, ResidualMap.target_weight


# Of the variance that a mean leaves, which slopes may explain: as public weights expect.
SIGNAL = 0.4


@dataclass(frozen=True, eq=False)
class Law:
    """The share of people in each cell: rows are bins of ‖f‖/√p, columns those of |g|.

    `noise` is the standard deviation of a share; infinite where nobody was counted. `rows` are the
    shares of each bin of ‖f‖/√p as they were blurred, with the standard deviation of each.
    """

    features: FloatArray
    errors: FloatArray
    shares: FloatArray
    noise: float
    rows: tuple[FloatArray, float] = (np.zeros(0), math.inf)

    @property
    def squares(self) -> tuple[float, float]:
        """E[‖f‖²/p] and E[g²]."""
        f2, g2 = middles(self.features) ** 2, middles(self.errors) ** 2
        return float(f2 @ self.shares.sum(axis=1)), float(self.shares.sum(axis=0) @ g2)


@dataclass(frozen=True)
class Cut:
    """What weights and cut do at one r and R: see the module's docstring.

    Attributes:
        weight: E_w.
        energy: E_f, of the weighted features.
        lost: L, the energy that weights take away.
        misfit: E[(1 − w)g²].
        spread: E[wg²]/E_w.
        clip: How far the constant may be shifted.
        bend: How far coefficients may be, in all.
        out: The share of people whose g is cut, with the energy that they carry beyond it.
        uneven: E[w²f²g²]/E_f, the sampling variance of a coefficient if spread is uneven.
        expected: η.
        through: The share of a step that passes the cut.
        law_noise: The standard deviation of a share of the law.
    """

    weight: float
    energy: float
    lost: float
    misfit: float
    spread: float
    clip: float
    bend: float
    out: float
    uneven: float
    expected: float
    through: float
    law_noise: float


@dataclass(frozen=True, eq=False)
class Belief:
    """What is known after a wave, in units of the encoded columns v and of the target's score.

    Attributes:
        task: "number", "label" or "count".
        line: Whether the score is the encoded target itself: the number in [−1, 1], the label ±1 or
            2y/Y − 1 for a count y. If not, it is the log-odds or the log rate.
        coefficients: Of the score, the constant first.
        covariance: Of their error.
        mean: Of the features.
        spread: The features' covariance, positive definite.
        scale: The standard deviation of the residual, as far as a line was fitted.
        count_bound: Y, the largest count, for counts.
        law: Where people are, by the gauge before the next residual wave.
        seen: What wave 1 saw of everybody, without any cut, and its noise; not for labels.
        kinds: Of the features: whether they are numbers, signs or levels.
        groups: Of which question each level is one.
        differences: Whether rows are differences within people, each of whom is cut as a whole.
    """

    task: Task
    line: bool
    coefficients: FloatArray
    covariance: FloatArray
    mean: FloatArray
    spread: FloatArray
    scale: float
    count_bound: float | None = None
    law: Law | None = None
    seen: "Seen | None" = None
    kinds: tuple[ColumnKind, ...] = ()
    groups: tuple[str | None, ...] = ()
    differences: bool = False

    @property
    def explained(self) -> float:
        """R² of the coefficients that predict, of a line: what their error costs taken off."""
        beta = self.coefficients[1:]
        signal = float(beta @ self.spread @ beta)
        at_mean = np.concatenate([[1.0], self.mean])
        second = np.outer(at_mean, at_mean)
        second[1:, 1:] += self.spread
        lost = float(np.sum(self.covariance * second))
        return min(max((signal - lost) / (signal + self.scale**2), 0.0), 1.0)

    def __post_init__(self) -> None:
        one_of(TASKS, task=self.task)
        if self.task == "count":
            positive(count_bound=self.count_bound)


@dataclass(frozen=True, eq=False)
class Seen:
    """Unbiased second moments of (1, v, y) of everybody, and the variance of the noise on each."""

    matrix: FloatArray
    variance: FloatArray

    @classmethod
    def of(cls, sums: Submodel) -> "Seen":
        """Return those of joint sums."""
        scale = np.append(sums.scale, sums.target.weight)
        both = sums.count * np.outer(scale, scale)
        return cls(sums.extended / both, sums.noise.variance / both**2)

    def energy(self, white: Whitening) -> tuple[float, float]:
        """Return E‖f‖²/p, and the standard deviation of the noise on it."""
        p, by = white.dimension, white.matrix.T @ white.matrix
        move = np.vstack([-white.mean, np.eye(p)])
        return self._form(move @ by @ move.T / p, slice(0, -1))

    def residual(self, chart: ResidualMap) -> tuple[float, float]:
        """Return E[g²], and the standard deviation of the noise on it."""
        return self.square(np.append(-start_of(chart), 1.0) / chart.scale)

    def square(self, r: FloatArray) -> tuple[float, float]:
        """Return E[(r·(1, v, y))²], and the standard deviation of the noise on it."""
        return self._form(np.outer(r, r), slice(None))

    def _form(self, by: FloatArray, part: slice) -> tuple[float, float]:
        matrix, variance = self.matrix[part, part], self.variance[part, part]
        weights = np.where(np.eye(len(by), dtype=bool), by, np.sqrt(2) * by)  # pairs are one entry
        return float(np.sum(by * matrix)), math.sqrt(float(np.sum(weights**2 * variance)))


def first_belief(
    sums: Submodel,
    model: Shrunk,
    task: Task,
    count_bound: float | None = None,
    *,
    mean: bool = False,
    differences: bool = False,
) -> Belief:
    """Return what wave 1's joint sums say: the line of least squares, for every task, or its `mean`
    alone.
    """
    weights = sums.scale[1:]
    jacobian = np.diag(sums.scale) / sums.target.weight
    variance = model.variance / sums.target.weight**2
    found = Belief(
        task=task,
        line=True,
        coefficients=model.coefficients,
        covariance=jacobian @ posterior_covariance(sums, model) @ jacobian,
        mean=model.features.mean / weights,
        spread=_white(sums, model) / np.outer(weights, weights),
        scale=math.sqrt(variance * max(1 - model.explained, 0.1)),
        count_bound=count_bound,
        seen=None if task == "label" else Seen.of(sums),
        kinds=tuple(column.kind for column in sums.features),
        groups=tuple(column.group for column in sums.features),
        differences=differences,
    )
    return _without_slopes(found, sums, model) if mean else found


def _without_slopes(belief: Belief, sums: Submodel, model: Shrunk) -> Belief:
    """Return the belief with the target's mean alone; later waves may find slopes, whose prior is
    that of `blurfit.learning.shrinkage`: equal parts of the columns as they are, in which a few
    directions may have most of the signal.
    """
    b = sums.target.weight
    mean, error = mean_posterior(sums)
    variance = model.variance / b**2
    of_columns = np.diag(model.features.variance / sums.scale[1:] ** 2)
    covariance = even_slopes(replace(belief, spread=of_columns), SIGNAL * variance)
    covariance[0, 0] += error / b**2
    coefficients = np.array([mean / b, *np.zeros(len(belief.mean))])
    scale = math.sqrt(variance)
    return replace(belief, coefficients=coefficients, covariance=covariance, scale=scale)


def about_mean(belief: Belief) -> FloatArray:
    """Return the covariance of the slopes' errors, which leave the score at the mean."""
    return of_slopes(belief.covariance[1:, 1:], belief.mean)


def even_slopes(belief: Belief, variance: float) -> FloatArray:
    """Return the covariance of slopes that explain this variance, equally in white features, and
    leave the score at the mean.
    """
    inverse = np.asarray(np.linalg.inv(belief.spread), dtype=np.float64)
    return of_slopes(variance / len(belief.mean) * inverse, belief.mean)


def known_of(belief: Belief) -> BoolArray:
    """Return which columns are yes and no, or levels: where their answers are is known."""
    kinds = belief.kinds or ("numeric",) * len(belief.mean)
    return np.array([kind in ("sign", "level") for kind in kinds])


def posterior_covariance(sums: Submodel, model: Shrunk) -> FloatArray:
    """Return the covariance of wave 1's error in z-space: P − PA·T⁻¹AP of
    `blurfit.learning.shrinkage`, at the share that the features are found to explain.
    """
    features, n = model.features, sums.count
    gram = features.gram(sums.constant)
    at_mean, slopes = prior_of(sums, features, model.variance)
    prior = at_mean + model.explained * slopes
    through = gram @ prior
    total = through @ gram + np.diag(sums.noise.variance[:-1, -1]) / n**2
    total += model.variance * max(1 - model.explained, 0.2) * gram / n
    left, reach = prior, np.column_stack([through, sums.cross / n])
    for _ in range(3):
        second = np.outer(model.theta, model.theta) + left
        blurred = features.kept / n**2 * sums.feature_noise.sandwich(second)
        blurred[0, 0] = 0.0
        _, explained, _ = read_once(total + blurred, reach)
        assert explained is not None
        left = prior - explained
    return np.asarray((left + left.T) / 2)


def _white(sums: Submodel, model: Shrunk) -> FloatArray:
    """Return the features' covariance in z-space, with a soft floor that no direction falls below.

    A direction whose variance is taken for too small makes a feature that is too large, and the cut
    then leaves nothing of the others; one that is taken for too large only costs some noise. The
    floor of `denoise` has a strength of about p/4 in units of the noise; here it is at least 3.
    """
    features = model.features
    noise = float(np.max(sums.feature_noise.variance)) / sums.count**2
    missing = 3 - len(features.mean) / 4
    return soft_floor(features.covariance, max(missing, 0.0) * noise)


def start_of(chart: WaveMap) -> FloatArray:
    """Return the coefficients that the map announced, the constant first."""
    return np.array([chart.whitening.intercept, *chart.whitening.coefficients])


def undone(lower: FloatArray) -> FloatArray:
    """Return the inverse of a lower triangle."""
    found, _ = dtrtri(lower, lower=1)
    return np.ascontiguousarray(found)


def coordinates(chart: WaveMap) -> FloatArray:
    """Return J with θ = J·(β₀, β): the step that a change of the coefficients is, the constant
    first. It is an upper triangle.

    β₀ + β·v = (β₀ + β·m) + (W⁻ᵀβ)·f, each divided by what 1 and f are multiplied by in the chart.
    """
    white = chart.whitening
    found = np.eye(1 + white.dimension)
    found[0, 1:] = white.mean
    found[1:, 1:] = undone(white.matrix).T
    if isinstance(chart, ResidualMap):
        unit = chart.target_scale / chart.scale
        found[0] *= unit / chart.constant
        found[1:] *= unit / chart.feature_scale
    else:
        of_features, constant = chart.scale
        found[0] /= constant
        found[1:] /= of_features
    return found


def gauge_map(
    white: Whitening, scale: float, count: int, mu: float, *, differences: bool = False
) -> GaugeMap:
    """Return the gauge of μ-GDP before a residual wave with this whitening and model; of
    differences within people one that looks more closely where most of them are.
    """
    far, error = map(_ends, bounds_of(white, scale))
    if differences:
        return GaugeMap(white, scale, _closely(far), _closely(error))
    return GaugeMap(white, scale, far, error, math.sqrt(2) / (mu * count) < _SHARP)


def bounds_of(white: Whitening, scale: float) -> tuple[float, float]:
    """Return how large ‖f‖/√p and |g| can be, or a little more, by the public bounds of v and y."""
    at_mean = abs(white.intercept + float(white.coefficients @ white.mean))
    moved = float(np.abs(white.coefficients) @ (1 + np.abs(white.mean)))
    return farthest(white), (1 + at_mean + moved) / scale


def farthest(white: Whitening, free: BoolArray | None = None) -> float:
    """Return the largest ‖f‖/√p that public bounds allow, or a little more; or what of it the
    columns give that are `free` to be anywhere.
    """
    reach = (1 + np.abs(white.mean)) * (1.0 if free is None else free)
    return math.sqrt(float(np.mean((np.abs(white.matrix) @ reach) ** 2)))


def law_of(
    chart: GaugeMap, counts: FloatArray, count: int, deviation: float, *, differences: bool = False
) -> Law:
    """Return what the blurred counts of a gauge say of the people."""
    seen, noise = counts / count, deviation / count
    prior = _prior(chart.features, chart.errors, chart.whitening.dimension)
    if not chart.joint:
        ends, read = len(chart.features), _standing if differences else _believed
        parts = [read(seen[:ends], noise, prior[0]), read(seen[ends:], noise, prior[1])]
        return Law(chart.features, chart.errors, np.outer(*parts), noise, (seen[:ends], noise))
    cells = seen.reshape(len(chart.features), len(chart.errors))
    shares = _standing(cells, noise, np.outer(*prior))
    rows = cells.sum(axis=1), noise * math.sqrt(cells.shape[1])
    return Law(chart.features, chart.errors, shares, noise, rows)


@lru_cache(maxsize=64)
def assumed_law(dimension: int) -> Law:
    """Return what is assumed of people whom nobody has counted: white features are Gaussian, and
    errors follow the law of Laplace, whose tails are as heavy as those of incomes' (kurtosis 6).
    """
    ends = np.geomspace(0.05, 12.0, 64)
    features = np.diff(gammainc(dimension / 2, dimension / 2 * ends**2), prepend=0.0)
    errors = np.diff(-np.exp(-math.sqrt(2) * ends), prepend=-1.0)
    shares = np.outer(features, errors)
    return Law(ends, ends, shares / shares.sum(), math.inf)


def inside(share: float, centre: float = 0.0) -> float:
    """P(|g| < R) of a Laplace law about centre·R, if E[min(|g|, R)²] is share·R² about its centre:
    so much of a step passes.

    >>> round(inside(0.1), 3), round(inside(0.1, 0.5), 3)
    (0.987, 0.941)
    """
    share, centre = min(max(share, 1e-3), 0.6), min(abs(centre), 1.0)
    u = root_of_increasing(lambda u: share - 2 * (1 - math.exp(-u) * (1 + u)) / u**2, 1.0, 1e-9)
    return 1 - (math.exp(-u * (1 - centre)) + math.exp(-u * (1 + centre))) / 2


def completed(law: Law, energy: tuple[float, float], square: float) -> Law:
    """Return the law with the people whom only wave 1 saw: `energy` is its E‖f‖²/p, with the
    standard deviation of its noise, and `square` its E[g²].
    """
    f, g = middles(law.features), middles(law.errors)
    of_features, of_errors = law.shares.sum(axis=1), law.shares.sum(axis=0)
    missing = energy[0] - _DOUBT * energy[1] - float(of_features @ f**2)
    if missing <= 0:
        return law
    share = min(missing / float(f[-1] ** 2), 0.5)
    beyond = square - float(of_errors @ g**2)
    size = math.sqrt(max(beyond / share, 1.0))
    shares = law.shares * (1 - share)
    shares[-1, int(np.argmin(np.abs(np.log(g / size))))] += share
    return replace(law, shares=shares)


def choose_mean(law: Law, count: int, mu: float) -> tuple[float, float]:
    """Return (r, R) of a wave that learns the mean alone: see the module's docstring."""
    found = _Cuts(law, law.features[-1:], law.errors, 1)
    c, _, b = MEAN
    excess = ((1 + c**2) * law.errors / (c * b * mu * count)) ** 2 + found.clip[0] ** 2
    excess[law.errors < min(_LEAST_BOUND[0] * math.sqrt(found.spread[0]), law.errors[-1])] = (
        math.inf
    )
    return float(law.features[-1]), float(law.errors[int(np.argmin(excess))])


def choose(
    law: Law,
    count: int,
    mu: float,
    dimension: int,
    error: float,
    seen: Law | None = None,
    *,
    weights: tuple[float, float, float] = WEIGHTS,
    differences: bool = False,
) -> tuple[float, float]:
    """Return (r, R) of least expected excess error J, for a start with tr P/p = `error`; of the
    last wave, whose errors are told, among those that weight nobody down whom its gauge has `seen`.
    """
    found = _Cuts(law, law.features, law.errors, dimension)
    c, a, b = weights
    p, r, bound = dimension, law.features[:, None], law.errors[None]
    k = (1 + c**2) / (a * b * mu * count)
    eta = _expected(count, mu, p)
    weight, energy, lost, spread = (
        one[:, None] for one in (found.weight, found.energy, found.lost, found.spread)
    )
    up = (lost + energy) / energy**2
    bias = (eta * lost * found.misfit[:, None] + found.bend**2) / energy**2
    excess = up * p * ((k * math.sqrt(p) * r * bound) ** 2 + spread * found.fourth[:, None] / count)
    excess = excess + (lost + energy) * bias + found.out**2 * p * error + found.clip**2
    excess = excess + ((k * bound * a / c) ** 2 + spread / count) / weight**2
    excess = excess + up * (k * r**2 * p * b / a) ** 2 * (p + 1) * error
    most = _LEAST_BOUND[0 if differences else 1]
    deviations = min(max(information(count, mu, p) / 5, _LEAST_BOUND[0]), most)
    least = np.minimum(deviations * np.sqrt(spread * weight), law.errors[-1])
    excess[np.broadcast_to(bound < least, excess.shape)] = math.inf
    if seen is not None and seen.noise < _SHARP:
        weight = _Cuts(seen, law.features, law.errors, dimension).weight
        excess[1 - weight > seen.noise] = math.inf
    row, column = np.unravel_index(int(np.argmin(excess)), excess.shape)
    return float(law.features[row]), float(law.errors[column])


def cut_at(law: Law, chart: ResidualMap, count: int, mu: float) -> Cut:
    """Return what the weights and the cut of a residual map do to the people of a law."""
    ends = np.array([chart.radius]), np.array([chart.bound])
    found = _Cuts(law, *ends, chart.whitening.dimension)
    return Cut(
        weight=float(found.weight[0]),
        energy=float(found.energy[0]),
        lost=float(found.lost[0]),
        misfit=float(found.misfit[0]),
        spread=float(found.spread[0]),
        clip=float(found.clip[0, 0]),
        bend=float(found.bend[0, 0]),
        out=float(found.out[0, 0]),
        uneven=float(found.uneven[0]),
        expected=_expected(count, mu, chart.whitening.dimension),
        through=float(found.through[0, 0]),
        law_noise=law.noise,
    )


def far_share(law: Law, radius: float) -> tuple[float, float]:
    """Return the share of people in bins beyond 2r, as it was blurred, and its noise's variance."""
    rows, noise = law.rows
    far = np.flatnonzero(law.features[: len(rows)] / _RATIO >= 2 * radius)
    return (float(rows[far].sum()), len(far) * noise**2) if len(far) else (0.0, math.inf)


def weight_near(law: Law, radius: float) -> float:
    """Return E[w] of the people within 2r."""
    f, row = middles(law.features), law.shares.sum(axis=1)
    near = f <= 2 * radius
    return float(np.minimum(1.0, radius / f[near]) ** 2 @ row[near] / row[near].sum())


def tail_of(law: Law, dimension: int) -> float:
    """Return how widely ‖f‖² spreads beside Gaussian features', 1, at least: see "Tails"."""
    near = middles(law.features) <= _NEAR
    f2, share = middles(law.features)[near] ** 2, law.shares.sum(axis=1)[near]
    second, fourth = (float(share @ one / share.sum()) for one in (f2, f2**2))
    slope = f2**2 / second**2 - 2 * f2 * fourth / second**3
    found = fourth / second**2 - 1 - _DOUBT * law.noise * float(np.linalg.norm(slope))
    return dimension / 2 * found


def kurtosis_of(law: Law) -> float:
    """Return E[g⁴]/E[g²]² of people with |g| ≤ 3.5: see "Tails"."""
    near = middles(law.errors) <= 3.5
    g2, share = middles(law.errors)[near] ** 2, law.shares.sum(axis=0)[near]
    return float(share @ g2**2 * share.sum() / (share @ g2) ** 2)


class _Cuts:
    """The parts of `Cut` for all radii (rows) and bounds (columns)."""

    def __init__(self, law: Law, radii: FloatArray, bounds: FloatArray, p: int) -> None:
        f, g, shares = middles(law.features), middles(law.errors), law.shares
        s = np.minimum(1.0, radii[:, None] / f)
        w, f2, row, g2 = s**2, f**2, shares.sum(axis=1), shares @ g**2
        self.weight, self.energy, self.lost = w @ row, (w * f2) @ row, ((1 - w) * f2) @ row
        self.misfit, self.spread = (1 - w) @ g2, (w @ g2) / (w @ row)
        self.fourth = (w**2 * f2) @ row
        self.uneven = ((w**2 * f2) @ g2) / self.energy
        over = np.maximum((s[:, :, None] * g)[:, None] - bounds[None, :, None, None], 0.0)
        each = np.einsum("rf,rRfg,fg->rRf", s, over, shares)
        self.clip = each.sum(axis=-1)
        self.bend = np.maximum(each - self.clip[..., None] * row, 0.0) @ f
        hit = np.einsum("rRfg,fg->rRf", over > 0, shares)
        out = hit.sum(axis=-1)
        weighted = np.einsum("rRf,rf->rR", hit, w * f2) / self.energy[:, None]
        self.through = np.maximum(0.5, 1 - weighted)
        beyond = np.maximum(hit - out[..., None] * row, 0.0) * (f2 * w)[:, None]
        self.out = np.minimum(out + p * beyond.sum(axis=-1) / self.energy[:, None], 1.0)


def _expected(count: int, mu: float, dimension: int) -> float:
    return min(max(information(count, mu, dimension) / _FULL, LEAST_EXPECTED), 1.0)


def _ends(farthest: float) -> FloatArray:
    """Return where bins end: the last at the farthest that anybody can be."""
    least, most = _BINS
    wanted = 1 + math.ceil(math.log(max(farthest / _NEAREST, 1.0), _RATIO))
    return np.asarray(farthest * _RATIO ** -np.arange(min(max(wanted, least), most))[::-1])


def _closely(ends: FloatArray) -> FloatArray:
    """Return ends with more of them around what is usual, and none far out but the last."""
    low, high = _USUAL
    around = np.geomspace(low, high, 1 + round(_PARTS * math.log(high / low, _RATIO)))
    found = np.concatenate([ends[ends < low / _RATIO], around, [_RATIO * high]])
    return np.append(found[found < ends[-1] / _RATIO], ends[-1])


def middles(ends: FloatArray) -> FloatArray:
    """Return where in their bins people are taken to be."""
    below = np.maximum(np.concatenate([[0.0], ends[:-1]]), ends / _RATIO)
    return np.asarray(np.sqrt(ends * below))


def _prior(features: FloatArray, errors: FloatArray, p: int) -> tuple[FloatArray, FloatArray]:
    """Return the shares that are expected of each histogram: Gaussian ones, and a few far out."""
    found = []
    for ends, cumulative in (
        (features, gammainc(p / 2, p / 2 * features**2)),
        (errors, gammainc(0.5, errors**2 / 2.6)),
    ):
        gaussian = np.diff(cumulative, prepend=0.0)
        found.append(0.6 * gaussian + 0.05 * np.minimum(1.0, middles(ends) ** -2.0))
    return found[0], found[1]


def _believed(seen: FloatArray, noise: float, prior: FloatArray) -> FloatArray:
    """Return posterior means under exponential priors; what stands 4 deviations out as seen."""
    moved = seen - noise**2 / prior
    z = np.maximum(moved / noise, -8.0)
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    low = np.where(moved > -8 * noise, moved + noise * density / ndtr(z), prior)
    found = np.where(seen > _SURE * noise, seen, low)
    return np.asarray(found / found.sum())


def _standing(seen: FloatArray, noise: float, prior: FloatArray) -> FloatArray:
    """Return the shares that stand above their noise, as they were seen; the prior if none does."""
    cells = np.atleast_2d(seen)
    stand = _connected(cells > _SURE * noise, cells > _LIKELY * noise).reshape(seen.shape)
    found = np.where(stand, seen, 0.0) if stand.any() else prior
    return np.asarray(found / found.sum())


def _connected(sure: BoolArray, likely: BoolArray) -> BoolArray:
    """Return the cells that are sure, and the likely ones that touch one that stands."""
    stand = sure
    while True:
        pad = np.pad(stand, 1)
        rows, columns = stand.shape
        touched = np.logical_or.reduce(
            [pad[i : i + rows, j : j + columns] for i in range(3) for j in range(3)]
        )
        grown: BoolArray = stand | (likely & touched)
        if (grown == stand).all():
            return grown
        stand = grown
