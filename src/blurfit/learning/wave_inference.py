"""Standard errors of a last wave's estimates: the sampling of people, and the noise of privacy.

Called by `blurfit.model.course` for the model of a plan, or of a fit. What is estimated is what the
last wave's own update solves in the population (`estimand`), not least squares of people whom the
transform clips.

**A residual wave** with x = (1, f), f = W(v − m), s = min(1, r√p/‖f‖), g = (y − start)/scale and
ψ(u) = max(−R, min(R, u)) estimates the root θ* of E[s·x·ψ(s(g − θ·x))] = 0: a bounded-influence
M-estimate, which is least squares where nothing is clipped. The wave releases A = E[s²xxᵀ] + E and
t = E[s·x·ψ(s·g)] + e, and a last one B = E[ψ²s²xxᵀ] too.

* *Update.* θ̃ = A'⁻¹t with A' = D^½·diag(inside)·D^½, D the denoised A
  (`blurfit.learning.shrinkage`): D's error multiplies only θ̃, whose size is that of the start's
  error, and counts with V = E[EΘE], Θ = θ̃θ̃ᵀ without its own noise.
* *Clipping by direction.* An eigenvalue λ of D^{-½}BD^{-½} is E[ψ²] in its direction, and λ/R² says
  what fraction of an update passes ψ there (`inside`, for errors with the tails of Laplace's law).
* *Covariance.* A'⁻¹(kB/n + V + Var e)A'⁻¹ + T(P + θ̃θ̃ᵀ)Tᵀ, T = 0.35(1 − D⁻¹A'): one update from a
  start with error covariance P is short of the root by about that where much is clipped. k is the
  fraction of E[ψ²] that the update leaves.
* *Hidden columns* (`_hidden_columns`) are held at their announced coefficients, have no interval,
  and the estimand of the others holds them as well.
* Estimates are withheld where E[ψ²] is above R²/2 or does not stand above its noise.

Measured on 20 populations, n = 2¹¹ to 2¹⁵ (`lab/docs/everywhere.md`): held in 0.90 to 0.98 of
intervals in every cell.

**A Newton wave** estimates the root of its own weighted score: maximum likelihood with weights
1/max(1, ‖x‖²), x = (f/(r√p), κ), and slopes clipped to ±G for counts. θ̃ = D⁻¹t, with the covariance
D⁻¹(B/n + V + Var e)D⁻¹, B = Σppᵀ/n, which a robust wave releases; if not, B is D, which is right if
the curve is (information equality). A data holder's waves use the same rows: sampling counts once,
and earlier waves are not pooled. One update is not all (`_whole_step`): for white Gaussian features
the change δ of the scores solves E[(σ(t + δ·x) − σ(t))x] = E[h(t)xxᵀ]q. Errors follow dδ/dq, and
¼(δ − q)² is added; of columns of two values more (`_with_rare_answers`). Estimates are withheld
if the spread of the change q·x is above 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from blurfit.data import BoolArray, FloatArray
from blurfit.errors import InfeasibleError
from blurfit.learning.beliefs import Belief, coordinates, inside, known_of, start_of, undone
from blurfit.learning.inference import UNLIMITED, Inference
from blurfit.learning.shrinkage import denoised
from blurfit.learning.sums import Noise
from blurfit.learning.waves import WaveSums, clipped_fraction, step_sums, two_points
from blurfit.schema.schema import INTERCEPT
from blurfit.theory.maps import (
    LARGEST_LOG_RATE,
    NORMAL_NODES,
    NORMAL_WEIGHTS,
    LogisticNewton,
    NewtonMap,
    ResidualMap,
    WaveMap,
)

HIDDEN = 2.5  # standard deviations of the noise by which a column's direction must be seen,
LEAST_SEEN = 0.25  # to at least this fraction of its denoised size: chosen on 20 populations
MOST_CLIPPED = 0.5  # of R², E[ψ²]: more where R is below most residuals
SHORT = 0.35  # of what clipping takes from an update, by which the update may be wrong: chosen
UNEVEN_SPREAD = 0.25, 16.0  # within which E[ψ²] of a direction is believed, relative to the mean
LEAST_LEFT = 0.1  # of E[ψ²]: what an update leaves, and what noisy squares are, at least
NOISE_DOMINATES = (
    "The noise dominates the sums of this wave, so there are no standard errors; state tighter "
    "bounds, ask more people, or allow a larger epsilon."
)
MOST_UPDATES, UPDATED = 1000, 1e-9  # of an estimand, until an update changes it by less
MOST_STEPS = 30  # of at most 1, until a change of scores is found
SKEWED = 1.5  # by how much noise may hide how far out the rarer value of an undeclared column is
SURE = 2.0  # standard errors within which a rare answer's share is not to reach 0 or 1
ROUNDING = 1e-9  # of a coefficient that is held
LONGEST_STEP = 1.0  # d, the standard deviation of the change of scores


def residual_estimates(belief: Belief, chart: ResidualMap, sums: WaveSums) -> Inference:
    """Estimate the wave's own M-estimand from a residual wave: see the module's docstring.

    Args:
        belief: What was known before the wave; `chart` is its map.
        chart: The announced transform.
        sums: The wave's blurred sums.

    Returns:
        Coefficients of (1, v) for the encoded target, without shrinkage; those whose direction the
        noise hides are `unlimited`. The update from a start that is wrong counts as privacy.

    Raises:
        InfeasibleError: For labels, where the noise hides the residuals, and where it hides all
            columns.
    """
    if belief.task == "label":
        raise InfeasibleError(
            "The last wave fitted a line to labels, which was turned into log-odds: the line's "
            "errors are not theirs. Plan a Newton wave (more people, or a larger epsilon), or read "
            "the first wave's release."
        )
    seen = _quadratic(chart, sums)
    jacobian = undone(coordinates(chart).T).T
    hidden = _hidden_columns(seen.gram, seen.noisy, seen.deviation, jacobian)
    free = _free_directions(jacobian, hidden)
    gram, step = free.T @ seen.gram @ free, free.T @ seen.step
    values, vectors = np.linalg.eigh(gram)
    root, white = (vectors * values**power @ vectors.T for power in (0.5, -0.5))
    even = seen.clipped * chart.constant**2 / seen.gram[0, 0]
    fractions, axes = np.full(len(values), even), np.eye(len(values))
    if seen.squares is not None:
        squares = white @ free.T @ seen.squares @ free @ white
        deviation = seen.squares_deviation * float(np.sum(1 / values)) / len(values)
        fractions, axes = _clipped_fractions(squares, deviation, even, root @ free[0])
    passing = np.array([inside(fraction) for fraction in fractions])
    bread = np.linalg.inv(root @ (axes * passing) @ axes.T @ root)
    theta = bread @ step
    noise = _noise_of(theta, bread, free, seen.kept, seen.noise, seen.step_variance)
    share = _kept(float(theta @ theta), float(np.trace(bread @ noise @ bread)))
    short = SHORT * (np.eye(len(theta)) - np.linalg.inv(gram) @ np.linalg.inv(bread))
    into = free.T @ coordinates(chart)
    start = into @ belief.covariance @ into.T + np.outer(theta, theta)
    change = jacobian @ free
    unlimited = np.diag(np.where(hidden, UNLIMITED**2, 0.0))
    privacy = change @ (bread @ noise @ bread + short @ start @ short.T) @ change.T + unlimited
    total = chart.target_weight**2 * seen.clipped
    left = max(1 - share * float(theta @ gram @ theta) / total, LEAST_LEFT)  # after the update
    per_person = left * chart.target_weight**2 / sums.count
    meat, plain = per_person * root @ (axes * fractions) @ axes.T @ root, per_person * even * gram
    return Inference(
        names=(INTERCEPT, *(f"v{place}" for place in range(chart.whitening.dimension))),
        count=sums.count,
        coefficients=start_of(chart) + change @ theta,
        sampling=symmetric(change @ bread @ meat @ bread @ change.T),
        classical=symmetric(change @ bread @ plain @ bread @ change.T),
        privacy=symmetric(privacy),
        residual_variance=left * even * (chart.bound * chart.scale) ** 2,
        r_squared=None,
        condition=0.0,
        uneven=False,
        unlimited=tuple(np.flatnonzero(hidden).tolist()),
    )


@dataclass(frozen=True, eq=False)
class _Quadratic:
    """A residual wave's quadratic for one person, in the coordinates of its map.

    `gram` is the denoised D and `noisy` the released A; `kept` is the fraction of the noise on
    pairs that is left in D. `step` is E[s·x·ψ], and `squares` E[ψ²xxᵀ]/R². `clipped` is E[ψ²]/R².
    """

    gram: FloatArray
    noisy: FloatArray
    kept: float
    noise: Noise
    step: FloatArray
    step_variance: float
    squares: FloatArray | None
    squares_deviation: float
    clipped: float
    deviation: float  # σ/n, of the noise on the diagonal of `noisy`


def _quadratic(chart: ResidualMap, sums: WaveSums) -> _Quadratic:
    """Read a residual wave's sums; refuse those in which noise hides the size of the residuals."""
    n = sums.count
    read = step_sums(chart, sums)
    (gram, kept), clipped = denoised(read), clipped_fraction(chart, sums)
    deviation = sums.deviation / (n * chart.target_weight**2)
    if clipped + deviation > MOST_CLIPPED or clipped < 2 * deviation:
        raise InfeasibleError(NOISE_DOMINATES)
    rows = n * _rows_of_each(chart, sums) ** -1
    squares = None if sums.squares is None else sums.squares / rows
    return _Quadratic(
        gram=gram,
        noisy=read.gram / n,
        kept=kept,
        noise=Noise(read.noise.variance / n**2),
        step=sums.matrix[:-1, -1] / n,
        step_variance=sums.deviation**2 / 2 / n**2,
        squares=squares,
        squares_deviation=sums.deviation / (chart.robust_weight * rows),
        clipped=clipped,
        deviation=sums.deviation / n,
    )


def _hidden_columns(
    denoised_gram: FloatArray, noisy: FloatArray, deviation: float, jacobian: FloatArray
) -> BoolArray:
    """Find the columns whose direction the noise hides.

    For column j, u = D⁻¹·(row j of the Jacobian) is the direction that decides its coefficient. The
    column is hidden if uᵀAu, less 2.5 standard deviations σ‖u‖² of its noise, is below a quarter of
    uᵀDu. The worst is held first, and the others are tested again on what is left: of a collinear
    pair one column loses its interval. Of very many columns a 32nd is held at once.
    """
    hidden = np.zeros(len(jacobian), dtype=bool)
    while True:
        free = _free_directions(jacobian, hidden)
        rows = np.linalg.solve(free.T @ denoised_gram @ free, free.T @ jacobian[~hidden].T)
        directions = (free @ rows).T[1:]  # the constant is never hidden
        if not len(directions):
            raise InfeasibleError(NOISE_DOMINATES)
        signal, believed = (
            np.einsum("ij,jk,ik->i", directions, gram, directions, optimize=True)
            for gram in (noisy, denoised_gram)
        )
        noise = deviation * np.einsum("ij,ij->i", directions, directions)
        clear = (signal - HIDDEN * noise) / believed
        worst = np.argsort(clear)[: 1 + len(clear) // 32]
        worst = worst[clear[worst] < LEAST_SEEN]
        if not len(worst):
            return hidden
        hidden[np.flatnonzero(~hidden)[1 + worst]] = True


def _free_directions(jacobian: FloatArray, hidden: BoolArray) -> FloatArray:
    """Return an orthonormal basis of the updates that leave the hidden coefficients as they are."""
    if not hidden.any():
        return np.eye(len(jacobian))
    return np.asarray(np.linalg.svd(jacobian[hidden])[2][hidden.sum() :].T)


def _clipped_fractions(
    squares: FloatArray, deviation: float, even: float, constant: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return E[ψ²]/R² in each direction, and the directions, in coordinates in which D is 1.

    `squares` are seen with noise of this deviation on the diagonal. Their mean is shrunk toward
    `even`, what it is if the spread is; and eigenvalues λ of their relative spread to √(λ² − 4σ²),
    where 2σ is the edge of a symmetric noise matrix's own. The mean is that of slopes: residuals
    within a person add up to 0, so the `constant`'s direction may have none.
    """
    size = len(squares)
    slopes, total = size, float(np.trace(squares))
    if size > 1:
        slopes, total = (
            size - 1,
            total - float(constant @ squares @ constant / (constant @ constant)),
        )
    beyond = total / slopes - even
    mean = max(even + beyond * _kept(beyond**2, deviation**2 / slopes), LEAST_LEFT * even)
    values, vectors = np.linalg.eigh(squares / mean - np.eye(size))
    edge = 2 * deviation / mean * math.sqrt(size / 2)
    values = np.sign(values) * np.sqrt(np.maximum(values**2 - edge**2, 0.0))
    return mean * np.clip(1 + values, *UNEVEN_SPREAD), vectors


def estimand(
    chart: WaveMap, v: FloatArray, y: FloatArray, hidden: Sequence[int] = ()
) -> FloatArray:
    """Solve a wave's own equation in rows without noise, by repeating its update.

    Args:
        chart: The announced transform.
        v: Encoded features that it reads, (n, p).
        y: The encoded target, (n,); counts as they are.
        hidden: Places of coefficients of (1, v) that are held as they were announced.

    Returns:
        Coefficients of (1, v).

    Raises:
        InfeasibleError: If these rows do not decide the coefficients.
    """
    jacobian, is_unlimited = undone(coordinates(chart).T).T, np.zeros(1 + v.shape[1], dtype=bool)
    is_unlimited[list(hidden)] = True
    free, beta = _free_directions(jacobian, is_unlimited), start_of(chart)
    order = [*range(len(beta))]
    if isinstance(chart, NewtonMap):
        order = [order[-1], *order[:-1]]
    for _ in range(MOST_UPDATES):
        white = replace(chart.whitening, coefficients=beta[1:], intercept=float(beta[0]))
        sums = replace(chart, whitening=white, robust=False).sums(v, y)
        if isinstance(chart, ResidualMap):
            gram, linear = sums[0][:-1, :-1], sums[0][:-1, -1]
        else:
            assert sums[1] is not None
            gram, linear = sums[0][np.ix_(order, order)], sums[1][order]
        try:
            theta = np.linalg.solve(free.T @ gram @ free, free.T @ linear)
        except np.linalg.LinAlgError:
            break
        beta = beta + jacobian @ free @ theta
        if not np.isfinite(beta).all():
            break
        if np.abs(theta).max() < UPDATED:
            return beta
    raise InfeasibleError("These rows do not decide the coefficients: are columns collinear?")


def wave_estimates(belief: Belief, chart: WaveMap, sums: WaveSums) -> Inference:
    """Estimate what a wave's own update solves, from the sums collected under `chart`.

    Args:
        belief: What was known before the wave.
        chart: The announced transform, a map of `belief`.
        sums: The wave's blurred sums.

    Returns:
        Coefficients of (1, v), without shrinkage: of the encoded target after a residual wave, of
        log-odds or log rates after Newton's.

    Raises:
        InfeasibleError: Where no errors can be reported.
    """
    if isinstance(chart, ResidualMap):
        return residual_estimates(belief, chart, sums)
    return _with_rare_answers(belief, chart, newton_estimates(chart, sums))


def held_places(chart: WaveMap, found: Inference) -> tuple[int, ...]:
    """Return which of the unlimited coefficients were held as the map announced them."""
    moved = np.abs(found.coefficients - start_of(chart))
    return tuple(place for place in found.unlimited if moved[place] < ROUNDING)


def _with_rare_answers(belief: Belief, chart: NewtonMap, found: Inference) -> Inference:
    """Return a Newton wave's estimates with what one update leaves for columns of two values.

    The score of those with the rarer value changes by Δ = d·(change of the coefficient), d its
    distance from the mean. An update is wrong by up to Δ²/2 there, to second order, which no
    Gaussian feature shows. So the square of half of Δ² and its variance is added. Where that is
    above 1, or their share of +1, p + p(1 − p)Δ, may be none or all, the coefficient is unknown.
    """
    low, high, two = two_points(belief)
    start, far = start_of(chart), np.where(known_of(belief), 1.0, SKEWED)
    distance = far * np.where(low > high, -low, high)
    change = distance * (found.coefficients - start)[1:]
    error = np.abs(distance) * np.sqrt(np.diagonal(found.covariance)[1:])
    second = np.where(two, change**2 + error**2, 0.0)
    score = float(start[0] + start[1:] @ belief.mean) + distance * start[1:]
    labels = isinstance(chart.loss, LogisticNewton)
    slope = 1 - expit(score) if labels else np.ones(len(score))  # of the share, relative to it
    none = slope * (change - SURE * error) < -1
    everyone = (1 - slope) * (change + SURE * error) > 1
    unknown = two & ((second > LONGEST_STEP**2) | none | everyone)
    short = np.where(unknown, UNLIMITED, second / (2 * np.maximum(np.abs(distance), 1e-9)))
    places = set(found.unlimited) | set((1 + np.flatnonzero(unknown)).tolist())
    return replace(
        found,
        privacy=found.privacy + np.diag(np.append(0.0, short**2)),
        unlimited=tuple(sorted(places)),
    )


def _rows_of_each(chart: WaveMap, sums: WaveSums) -> float:
    """Return how many rows there are for each that has sent squares."""
    return sums.count / -(-sums.count // chart.stride)


def _kept(square: float, noise: float) -> float:
    """Return 1 − noise/square, or 0: the share of a square that is not noise."""
    return max(0.0, 1 - noise / square) if square > 0 else 0.0


def refuse_long_step(change: float) -> None:
    """Refuse a step that changed scores by more than a quadratic can tell; `change` is squared."""
    if change > LONGEST_STEP**2:
        raise InfeasibleError(
            "The last step changed scores by more than one standard deviation: one step is not "
            "enough for honest errors; plan another Newton wave."
        )


def newton_estimates(chart: NewtonMap, sums: WaveSums) -> Inference:
    """Estimate the weighted maximum likelihood of a Newton wave: see the module's docstring."""
    read, n = step_sums(chart, sums), sums.count
    gram_of_all, kept = denoised(read)
    noise_of_gram = Noise(read.noise.variance / n**2)
    jacobian = undone(coordinates(chart).T).T
    hidden = _hidden_columns(gram_of_all, read.gram / n, sums.deviation / n, jacobian)
    free = _free_directions(jacobian, hidden)
    gram = free.T @ gram_of_all @ free
    values, vectors = np.linalg.eigh(gram)
    root, white = (vectors * values**power @ vectors.T for power in (0.5, -0.5))
    fractions, axes = np.ones(len(values)), np.eye(len(values))
    if sums.squares is not None:
        order, rows = [len(jacobian) - 1, *range(len(jacobian) - 1)], n / _rows_of_each(chart, sums)
        squares = white @ free.T @ (sums.squares[np.ix_(order, order)] / rows) @ free @ white
        deviation = sums.deviation / (chart.robust_weight * rows)
        deviation *= float(np.sum(1 / values)) / len(values)
        fractions, axes = _clipped_fractions(squares, deviation, 1.0, root @ free[0])
    bread: FloatArray = np.asarray(np.linalg.inv(gram), dtype=np.float64)
    linear = read.linear_variance / n**2
    theta = bread @ free.T @ read.linear / n
    noise = _noise_of(theta, bread, free, kept, noise_of_gram, linear)
    middle = root @ (axes * fractions) @ axes.T @ root / n
    sampling, classical, privacy = (bread @ one @ bread for one in (middle, gram / n, noise))
    scale = np.array([chart.scale[1], *[chart.scale[0]] * (len(jacobian) - 1)])
    units = np.asarray(scale[:, None] * free, dtype=np.float64)  # from the free update to q
    lost = float(np.sum((units @ (sampling + privacy)) * units))
    refuse_long_step(max(float(np.sum((units @ theta) ** 2)) - lost, 0.0))
    change, turn = _whole_step(chart, units @ theta, units @ privacy @ units.T)
    beyond = free.T @ (change / scale) - theta
    turn = free.T @ (turn / scale[:, None]) @ units
    into = jacobian @ free
    short = np.outer(beyond, beyond) / 4
    sampling, classical, privacy = (turn @ part @ turn.T for part in (sampling, classical, privacy))
    unlimited = np.diag(np.where(hidden, UNLIMITED**2, 0.0))
    return Inference(
        names=(INTERCEPT, *(f"v{place}" for place in range(chart.whitening.dimension))),
        count=n,
        coefficients=start_of(chart) + into @ (theta + beyond),
        sampling=symmetric(into @ (sampling + short) @ into.T),
        classical=symmetric(into @ (classical + short) @ into.T),
        privacy=symmetric(into @ privacy @ into.T + unlimited),
        residual_variance=None,
        r_squared=None,
        condition=0.0,
        uneven=False,
        unlimited=tuple(np.flatnonzero(hidden).tolist()),
    )


def _noise_of(
    theta: FloatArray,
    bread: FloatArray,
    free: FloatArray,
    kept: float,
    noise: Noise,
    linear_variance: float,
) -> FloatArray:
    """Return the covariance that the noise gives to an update's equation: V + Var e."""
    plain = linear_variance * free.T @ free
    found = plain
    for _ in range(2):  # theta·thetaᵀ is too large by the variance that the first pass finds
        share = _kept(float(theta @ theta), float(np.trace(bread @ found @ bread)))
        second = free @ (share * np.outer(theta, theta)) @ free.T
        found = kept * free.T @ noise.sandwich(second) @ free + plain
    return np.asarray(found)


def _whole_step(
    chart: NewtonMap, q: FloatArray, noise: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the change δ of scores by δ·x of which q is a single Newton step, x = (1, f), f white
    and Gaussian; what `noise` on q, its covariance, adds to δ is taken off. And how δ follows q.

    δ is in the space of the constant, the scores' own direction and q: three numbers are sought.
    """
    slope = np.linalg.solve(chart.whitening.matrix.T, chart.whitening.coefficients)
    one, labels = np.eye(len(q)), isinstance(chart.loss, LogisticNewton)
    basis = np.linalg.qr(np.column_stack([one[0], np.append(0.0, slope), q]))[0]
    z, s = (nodes.ravel() for nodes in np.meshgrid(NORMAL_NODES, NORMAL_NODES))
    x = np.column_stack([np.ones_like(z), z, s])[:, : basis.shape[1]]
    weights = np.outer(NORMAL_WEIGHTS, NORMAL_WEIGHTS).ravel()
    scores = chart.whitening.scores[0] + x @ (basis[1:].T @ slope)

    def curve(change: FloatArray) -> tuple[FloatArray, FloatArray]:
        t = np.minimum(scores + x @ change, LARGEST_LOG_RATE)
        rate = np.asarray(expit(t) if labels else np.exp(t), dtype=np.float64)
        return rate, rate * (1 - rate) if labels else rate

    def squares(h: FloatArray) -> FloatArray:
        return np.asarray(x.T @ (x * (weights * h)[:, None]))

    def whole(inner: FloatArray, others: float) -> FloatArray:
        return np.asarray(basis @ (inner - others * np.eye(x.shape[1])) @ basis.T + others * one)

    before, bounded = curve(np.zeros(x.shape[1]))[0], chart.loss.slopes(scores, 0.0)[1]
    aim, (change, step) = squares(bounded) @ basis.T @ q, np.zeros((2, x.shape[1]))
    for _ in range(MOST_STEPS):
        rate, h = curve(change)
        step = np.linalg.solve(squares(h), aim - x.T @ (weights * (rate - before)))
        change = change + step / max(1.0, float(np.linalg.norm(step)))
    if float(np.linalg.norm(step)) > 1e-6:
        refuse_long_step(math.inf)  # no change has such means

    def turned(change: FloatArray) -> tuple[FloatArray, FloatArray]:
        h = curve(change)[1]
        inner = np.asarray(np.linalg.inv(squares(h)), dtype=np.float64)
        inverse = whole(inner, 1 / float(weights @ h))
        return inverse, inverse @ whole(squares(bounded), float(weights @ bounded))

    inverse, turn = turned(change)
    spread = turn @ noise @ turn.T
    inside = basis.T @ spread @ basis
    third = weights * (h * (1 - 2 * rate) if labels else h)
    size = np.sum((x @ inside) * x, axis=1) + float(np.trace(spread) - np.trace(inside))
    beside = 2 * (spread @ basis - basis @ inside) @ (x.T @ third)
    found = basis @ change + inverse @ (basis @ (x.T @ (third * size)) + beside) / 2
    return found, turned(basis.T @ found)[1]


def symmetric(matrix: FloatArray) -> FloatArray:
    """Return a matrix that rounding has made uneven, even."""
    return np.asarray((matrix + matrix.T) / 2)
