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

**A Newton wave.** With Â = ΣM + E and t̂ = Σp + e, the unshrunk step is θ̃ = Â⁻¹t̂, and for the true
step θ

    θ̃ − θ = Â⁻¹(Σp − Aθ + e − Eθ),      Cov = Â⁻¹(φΣ_p + V)Â⁻¹,      V = Var(e) + E[Eθθᵀ E],

exactly. Σ_p is at most ΣM if the curve is right (information equality), and Σppᵀ in any case, which
a robust wave releases. (Â + G)⁻¹ with G = E[EÂ⁻¹E] removes the second-order bias. A data holder's
waves use the same rows: sampling counts once, and earlier waves are not pooled. Corrections:

* *One step is not all* (`_whole_step`): for white Gaussian features the change δ of the scores
  solves E[(σ(t + δ·x) − σ(t))x] = E[h(t)xxᵀ]q. Errors follow dδ/dq, and ¼(δ − q)² is added.
* *Wrong curves* (`_as_if_all_counted`): weights bias a wrong curve by b/r³; two Newton waves of
  different radii tell what the last lacks. After a single one, slopes of labels count as off by
  0.105.
* *Clipped counts* (`_cut_counts`): the part of the step that clipping to ±G removed, under a
  negative binomial law; the square of its half is added to the error.

A Newton wave is refused if the spread of the change q·x is above 1, or if the noise dominates Â:
λ_min ≤ 0, or κ = (σ²/2)(tr Â⁻¹ + 1/λ_min)/λ_min ≥ 0.3 (labels: 0.5). All three were chosen.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betainc, expit

from blurfit.data import BoolArray, FloatArray
from blurfit.errors import InfeasibleError
from blurfit.learning.beliefs import Belief, coordinates, inside, start_of, undone
from blurfit.learning.inference import UNLIMITED, Inference
from blurfit.learning.rare_answers import left_by_step
from blurfit.learning.shrinkage import StepSums, denoised
from blurfit.learning.sums import Noise
from blurfit.learning.waves import WaveSums, clipped_fraction, step_sums
from blurfit.schema.schema import INTERCEPT
from blurfit.theory.maps import (
    LARGEST_LOG_RATE,
    NORMAL_NODES,
    NORMAL_WEIGHTS,
    LogisticNewton,
    NewtonMap,
    PoissonNewton,
    ResidualMap,
    WaveMap,
)

MOST_NOISE, MOST_OF_LABELS = 0.3, 0.5  # κ
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
LEAST_DISPERSION = 0.05  # φ, which is 1/m for m independent rows of each person
DISPERSIONS = np.geomspace(1e-3, 8.0, 40)  # α, from nearly Poisson's to wider than counts are
WEIGHT_DECAY = 3.0  # of what weights take away, with r, where fourth moments just exist
LENGTHENED = 0.105  # by how much a slope of white features may be off after one Newton wave
MOST_FURTHER = 0.5  # of the difference of two waves, where their radii are much alike
MOST_UPDATES, UPDATED = 1000, 1e-9  # of an estimand, until an update changes it by less
MOST_STEPS = 30  # of at most 1, until a change of scores is found
LONGEST_STEP = 1.0  # d, the standard deviation of the change of scores
Collected = tuple[Belief, WaveMap, WaveSums]  # a wave, and what was believed before


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
    hidden = _hidden_columns(seen, jacobian)
    free = _free_directions(jacobian, hidden)
    gram, step = free.T @ seen.gram @ free, free.T @ seen.step
    values, vectors = np.linalg.eigh(gram)
    root, white = (vectors * values**power @ vectors.T for power in (0.5, -0.5))
    even = seen.clipped * chart.constant**2 / seen.gram[0, 0]
    fractions, axes = np.full(len(values), even), np.eye(len(values))
    if seen.squares is not None:
        squares = white @ free.T @ seen.squares @ free @ white
        deviation = seen.squares_deviation * float(np.sum(1 / values)) / len(values)
        fractions, axes = _clipped_fractions(squares, deviation, even)
    passing = np.array([inside(fraction) for fraction in fractions])
    bread = np.linalg.inv(root @ (axes * passing) @ axes.T @ root)
    theta = bread @ step
    noise = plain_noise = free.T @ (seen.step_variance * np.eye(len(seen.step))) @ free
    for _ in range(2):  # theta·thetaᵀ is too large by the variance that the first pass finds
        share = _kept(float(theta @ theta), float(np.trace(bread @ noise @ bread)))
        second = free @ (share * np.outer(theta, theta)) @ free.T
        noise = seen.kept * free.T @ seen.noise.sandwich(second) @ free + plain_noise
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


def _hidden_columns(seen: _Quadratic, jacobian: FloatArray) -> BoolArray:
    """Find the columns whose direction the noise hides.

    For column j, u = D⁻¹·(row j of the Jacobian) is the direction that decides its coefficient. The
    column is hidden if uᵀAu, less 2.5 standard deviations σ‖u‖² of its noise, is below a quarter of
    uᵀDu. The worst is held first, and the others are tested again on what is left: of a collinear
    pair one column loses its interval. Of very many columns a 32nd is held at once.
    """
    hidden = np.zeros(len(jacobian), dtype=bool)
    while True:
        free = _free_directions(jacobian, hidden)
        rows = np.linalg.solve(free.T @ seen.gram @ free, free.T @ jacobian[~hidden].T)
        directions = (free @ rows).T[1:]  # the constant is never hidden
        if not len(directions):
            raise InfeasibleError(NOISE_DOMINATES)
        signal, believed = (
            np.einsum("ij,jk,ik->i", directions, gram, directions, optimize=True)
            for gram in (seen.noisy, seen.gram)
        )
        noise = seen.deviation * np.einsum("ij,ij->i", directions, directions)
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
    squares: FloatArray, deviation: float, even: float
) -> tuple[FloatArray, FloatArray]:
    """Return E[ψ²]/R² in each direction, and the directions, in coordinates in which D is 1.

    `squares` are seen with noise of this deviation on the diagonal. Their mean is shrunk toward
    `even`, what it is if the spread is; and eigenvalues λ of their relative spread to √(λ² − 4σ²),
    where 2σ is the edge of a symmetric noise matrix's own.
    """
    size = len(squares)
    beyond = float(np.trace(squares)) / size - even
    mean = max(even + beyond * _kept(beyond**2, deviation**2 / size), LEAST_LEFT * even)
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


def wave_estimates(
    belief: Belief, chart: WaveMap, sums: WaveSums, before: Collected | None = None
) -> Inference:
    """Return the estimates of the wave that was collected under `chart`, the map of `belief`, with
    what the wave `before` tells of its weights.

    Coefficients are of (1, v), without shrinkage: of the encoded target after a residual wave, of
    log-odds or log rates after Newton's. An `InfeasibleError` says where no errors can be told.
    """
    if isinstance(chart, ResidualMap):
        return residual_estimates(belief, chart, sums)
    found = newton_estimates(chart, sums)
    if belief.task != "label":
        return _with_weights(belief, chart, found, before)
    step = undone(coordinates(chart).T).T @ solved(step_sums(chart, sums))[1]
    more = left_by_step(belief, start_of(chart), step, found)
    return more.put_on(_with_weights(belief, chart, found, before))


def _with_weights(
    belief: Belief, chart: NewtonMap, found: Inference, before: Collected | None
) -> Inference:
    """Return Newton's estimates with what weights took away, or with errors that allow for it."""
    if before is not None and isinstance(before[1], NewtonMap):
        with suppress(InfeasibleError):
            nearer = newton_estimates(before[1], before[2])
            return _as_if_all_counted(found, nearer, chart, before[1].radius)
    slope, mean = chart.whitening.coefficients, chart.whitening.mean
    longer = np.array([-mean @ slope, *slope]) / max(chart.whitening.scores[1], 1e-9)
    longer *= LENGTHENED if belief.task == "label" else 0.0
    return replace(found, privacy=found.privacy + np.outer(longer, longer))


def _as_if_all_counted(
    found: Inference, nearer: Inference, chart: NewtonMap, radius: float
) -> Inference:
    """Return estimates with what weights took away, by those of the wave before, of this `radius`:
    see "Wrong curves".
    """
    white, size = chart.whitening, len(found.coefficients)
    plane = np.zeros((size, 2))
    plane[0] = 1.0, -float(white.mean @ white.coefficients)
    plane[1:, 1] = white.coefficients
    gap = found.coefficients - nearer.coefficients
    weights = np.linalg.solve(found.covariance + nearer.covariance, plane)
    inner = np.linalg.pinv(plane.T @ weights)
    onto = plane @ inner @ weights.T
    along = weights.T @ gap
    further = chart.radius**WEIGHT_DECAY - radius**WEIGHT_DECAY
    share = min(radius**WEIGHT_DECAY / further, MOST_FURTHER) if further > 0 else 0.0
    share *= _kept(float(along @ inner @ along), plane.shape[1])
    more, turn = share * onto @ gap, np.eye(size) + share * onto
    start = share**2 * onto @ nearer.covariance @ onto.T + np.outer(more, more) / 4
    assert found.classical is not None
    return replace(
        found,
        coefficients=found.coefficients + more,
        sampling=symmetric(turn @ found.sampling @ turn.T),
        classical=symmetric(turn @ found.classical @ turn.T),
        privacy=symmetric(turn @ found.privacy @ turn.T + start),
    )


def solved(read: StepSums) -> tuple[FloatArray, FloatArray]:
    """Return (Â + G)⁻¹, and the step."""
    bias = read.noise.sandwich(np.asarray(np.linalg.inv(read.gram), dtype=np.float64))
    inverse = np.asarray(np.linalg.inv(read.gram + bias), dtype=np.float64)
    return inverse, inverse @ read.linear


def _rows_of_each(chart: WaveMap, sums: WaveSums) -> float:
    """Return how many rows there are for each that has sent squares."""
    return sums.count / -(-sums.count // chart.stride)


def _spread_of_slopes(
    gram: FloatArray, squares: FloatArray, variance: float, expected: float = 1.0
) -> FloatArray:
    """Return the sampling variance of Σp by Σppᵀ, as far as it stands above its noise.

    In coordinates in which Â is the identity, B̂ is φ(1 + D): φ = tr B̂/d is how far counts are
    dispersed, and D how unevenly. φ is shrunk to what is `expected` and D to 0, by the share of
    noise in their squares, and the eigenvalues of 1 + D are kept within ¼ and 4. `variance` is that
    of the noise on the diagonal of `squares`.
    """
    values, vectors = np.linalg.eigh(gram)
    root = (vectors * np.sqrt(values)) @ vectors.T
    white = (vectors / np.sqrt(values)) @ vectors.T
    size = len(values)
    seen = white @ squares @ white
    inverse = white @ white
    # E‖white·E·white‖² and Var tr(white·E·white), E with this variance, half of it off the diagonal
    of_all = variance * (float(np.trace(inverse)) ** 2 + float(np.sum(inverse**2))) / 2
    of_mean = variance * float(np.sum(inverse**2)) / size**2
    beyond = float(np.trace(seen)) / size - expected
    mean = expected + beyond * _kept(beyond**2, of_mean)
    if beyond < 0:  # rows of one person tell different things: no more than is sure is gained
        mean = max(min(expected, expected + beyond + math.sqrt(of_mean)), LEAST_DISPERSION)
    uneven = seen / mean - np.eye(size)
    uneven *= _kept(float(np.sum(uneven**2)), of_all / mean**2)
    values, vectors = np.linalg.eigh(uneven)
    spread = (vectors * np.clip(1 + values, 0.25, 4.0)) @ vectors.T
    return np.asarray(mean * root @ spread @ root)


def _kept(square: float, noise: float) -> float:
    """Return 1 − noise/square, or 0: the share of a square that is not noise."""
    return max(0.0, 1 - noise / square) if square > 0 else 0.0


def told_step(
    read: StepSums, sums: WaveSums, most: float = MOST_NOISE
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """Return κ < `most`, (Â + G)⁻¹, the step θ̃ and V; refuse sums that the noise dominates."""
    blur, values = sums.deviation**2 / 2, np.linalg.eigvalsh(read.gram)
    least, whole = float(values[0]), float(np.sum(1 / values))
    condition = blur * (whole + 1 / least) / least if least > 0 else math.inf
    if condition >= most:
        raise InfeasibleError(NOISE_DOMINATES)
    inverse, theta = solved(read)
    noise = np.zeros_like(inverse)
    for _ in range(2):  # θ̃θ̃ᵀ is too large by the variance that the first pass finds
        kept = _kept(float(theta @ theta), float(np.trace(inverse @ noise @ inverse)))
        noise = read.noise.sandwich(kept * np.outer(theta, theta))
        noise += read.linear_variance * np.eye(len(theta))
    return condition, inverse, theta, noise


def refuse_long_step(change: float) -> None:
    """Refuse a step that changed scores by more than a quadratic can tell; `change` is squared."""
    if change > LONGEST_STEP**2:
        raise InfeasibleError(
            "The last step changed scores by more than one standard deviation: one step is not "
            "enough for honest errors; plan another Newton wave."
        )


def newton_estimates(chart: NewtonMap, sums: WaveSums) -> Inference:
    """Return the estimates of the exact curve, one step after the model that the map announced."""
    read = step_sums(chart, sums)
    labels = isinstance(chart.loss, LogisticNewton)
    most = MOST_OF_LABELS if labels else MOST_NOISE
    condition, inverse, theta, noise = told_step(read, sums, most)
    middle = plain = read.dispersion * read.gram
    if sums.squares is not None:
        order, unit = [len(theta) - 1, *range(len(theta) - 1)], _rows_of_each(chart, sums)
        seen, variance = unit * sums.squares, (unit * sums.deviation / chart.robust_weight) ** 2
        middle = _spread_of_slopes(read.gram, seen[np.ix_(order, order)], variance)
    sampling, classical, privacy = (inverse @ one @ inverse for one in (middle, plain, noise))
    squares = np.array([chart.scale[1], *[chart.scale[0]] * (len(theta) - 1)]) ** 2
    change = max(float((theta**2 - np.diagonal(sampling + privacy)) @ squares), 0.0)  # d²
    refuse_long_step(change)
    scale = np.sqrt(squares)
    whole, turn = _whole_step(chart, theta * scale, privacy * np.outer(scale, scale))
    more, turn = whole / scale - theta, turn / scale[:, None] * scale
    short = np.outer(more, more) / 4
    if isinstance(chart.loss, PoissonNewton) and sums.squares is not None:
        dispersion = float(np.trace(np.linalg.solve(read.gram, middle))) / len(theta)
        away, follows = _cut_counts(chart, chart.loss, dispersion, whole)
        lost = sums.count * inverse @ (away * scale)
        more, short = more + lost, short + np.outer(lost, lost) / 4
        turn = turn + sums.count * inverse * (follows * squares) @ turn
    classical, privacy = turn @ classical, turn @ privacy @ turn.T
    sampling = classical if sums.squares is None else turn @ sampling @ turn.T
    back = undone(coordinates(chart).T).T
    return Inference(
        names=(INTERCEPT, *(f"v{place}" for place in range(chart.whitening.dimension))),
        count=sums.count,
        coefficients=start_of(chart) + back @ (theta + more),
        sampling=symmetric(back @ (sampling + short) @ back.T),
        classical=symmetric(back @ (classical + short) @ back.T),
        privacy=symmetric(back @ privacy @ back.T),
        residual_variance=None,
        r_squared=None,
        condition=condition,
        uneven=False,
    )


def _cut_counts(
    chart: NewtonMap, loss: PoissonNewton, dispersion: float, q: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return E[c·x] of x = (1, f), f white and Gaussian: what the cut takes away for each record,
    of counts that are dispersed as this, where scores have changed by q·x; and how it follows q.
    """
    z, weights = NORMAL_NODES, NORMAL_WEIGHTS
    slope = np.linalg.solve(chart.whitening.matrix.T, chart.whitening.coefficients) + q[1:]
    mean, deviation = chart.whitening.scores[0] + q[0], float(np.linalg.norm(slope))
    rate = np.exp(np.minimum(mean + deviation * z, LARGEST_LOG_RATE))
    end = np.minimum(rate + loss.gradient_bound, loss.count_bound)
    size = 1 / DISPERSIONS[:, None]  # of the negative binomial law
    odds = rate / (rate + size)

    def beyond(end: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """P(y > end), E[y; y > end] and E[y(y − 1); y > end]."""
        last = np.maximum(end - 1, 1e-9)
        squares = rate**2 * (1 + 1 / size) * betainc(last, size + 2, odds)
        share = np.asarray(betainc(end + 1, size, odds), dtype=np.float64)
        return share, rate * betainc(end, size + 1, odds), squares

    share, first, second = beyond(end)
    square = second + (1 - 2 * rate) * first + (rate**2 - loss.gradient_bound**2) * share
    seen = (
        (rate + rate**2 / size - square) @ weights / (loss.slopes(np.log(rate), 0.0)[1] @ weights)
    )
    above, most = beyond(loss.count_bound)[:2]
    lost = np.maximum(first - end * share - (most - loss.count_bound * above), 0.0)
    found = np.array([np.interp(dispersion, np.maximum.accumulate(seen), one) for one in lost.T])
    ratio = float((found * z) @ weights) / max(deviation, 1e-12)
    return np.append(found @ weights, ratio * slope), np.array([0.0, *[ratio] * len(slope)])


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
