"""Standard errors of a last wave's estimates: the sampling of people, and the noise of privacy.

**A residual wave** is a step of weighted least squares on s(1, f, g), so
`blurfit.learning.inference` gives the step with both parts of its covariance. Added to it:

* bias of the weights, at most L·E[(1 − w)g²]/E_f² squared (Cauchy and Schwarz), of which a share
  that grows with η is expected in each direction;
* bias of clipping, `clip` and `bend` of `Cut`, and the share `out` of the start's own error;
* uneven spread: Σppᵀ that the wave released (`_spread_of_slopes`), or E[w²f²g²]/E_f by the gauge.

**People whom no wave saw** (`unseen`). If bounds allow people beyond four times the usual ‖f‖, few
of them decide least squares and are clipped here. Errors assume that there are none. They are
refused where the best test of 1 % of people at the bounds, made of the share q beyond 2r that
gauges and missing weight show and of the energy E that wave 1 saw beyond the law, T = (a·q/σ_q +
b·E/σ_E)/c, exceeds 1.28, or where such people would be missed more than once in a thousand fits;
where features have tails (`tail_of`) that bounds allow to go on; and where a wave's own Σ(s·g)²
shows that R is below most residuals. Levels were chosen on generated populations.

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

The estimate is refused if the spread of the change q·x is above 1, or if the noise dominates Â:
λ_min ≤ 0, or κ = (σ²/2)(tr Â⁻¹ + 1/λ_min)/λ_min ≥ 0.3 (labels: 0.5). All three were chosen.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from scipy.special import betainc, expit

from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError
from blurfit.learning.beliefs import (
    LEAST_EXPECTED,
    Belief,
    Cut,
    Law,
    assumed_law,
    coordinates,
    far_share,
    farthest,
    known_of,
    kurtosis_of,
    middles,
    start_of,
    tail_of,
    undone,
    weight_near,
)
from blurfit.learning.inference import Inference, infer, steady
from blurfit.learning.rare_answers import left_by_step
from blurfit.learning.shrinkage import StepSums
from blurfit.learning.sums import Noise, Submodel
from blurfit.learning.waves import WaveSums, cut_of, cut_share, step_sums
from blurfit.schema.schema import INTERCEPT
from blurfit.theory.forms import JointColumn
from blurfit.theory.gaussian import root_of_increasing
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
LEAST_MISFIT = 0.005  # of the worst misfit, which errors allow for
NEAR, USUAL = 1.5, 4.0  # in units of r and of people's size: up to there nobody is far out
FAR, WIDE, PEAKED = 3.0, 2.0, 3.5  # signs of tails that go on
SIGN, TAILS = 1.28, 2.33  # by chance in one fit of ten, and of a hundred: the normal law's
SURE_SIGN = 3.0  # of differences within people, of whom a gauge has one bin far out
UNSURE = 0.25  # of the weight and the size that r takes away: bins are wide, laws not Gaussian
MOST_CUT = 0.5  # of R², Σ(s·g)² for each person: more where most are cut, whom the gauge missed
FEW, CLEAR, MISSED = 0.01, 2.5, 3.09  # a share at the bounds; once in a thousand by the normal law
LEAST_DISPERSION = 0.05  # φ, which is 1/m for m independent rows of each person
DISPERSIONS = np.geomspace(1e-3, 8.0, 40)  # α, from nearly Poisson's to wider than counts are
WEIGHT_DECAY = 3.0  # of what weights take away, with r, where fourth moments just exist
LENGTHENED = 0.105  # by how much a slope of white features may be off after one Newton wave
MOST_FURTHER = 0.5  # of the difference of two waves, where their radii are much alike
MOST_STEPS = 30  # of at most 1, until a change of scores is found
LONGEST_STEP = 1.0  # d, the standard deviation of the change of scores
Collected = tuple[Belief, WaveMap, WaveSums]  # a wave, and what was believed before


def residual_estimates(belief: Belief, chart: ResidualMap, sums: WaveSums) -> Inference:
    """Return the estimates of the residual wave collected under `chart`, the map of `belief`.

    Coefficients are of (1, v) for the encoded target, without shrinkage; what weights and cut may
    have done counts as privacy.
    """
    if belief.task == "label":
        raise InfeasibleError(
            "The last wave fitted a line to labels, which was turned into log-odds: the line's "
            "errors are not theirs. Plan a Newton wave (more people, or a larger epsilon), or read "
            "the first wave's release."
        )
    cut = cut_of(belief, chart, sums)
    joint = _step_sums(belief, chart, sums)
    step = infer(joint)
    assert step.residual_variance is not None
    weight = float(joint.gram[0, 0]) / (sums.count * chart.constant**2)
    left = max(step.residual_variance / weight, 0.05 * cut.spread)
    gauged = math.isfinite(cut.law_noise)
    uneven = max(1.0, cut.uneven / left) if gauged else 1.0
    back = _back(chart)
    if gauged:
        bias = back @ _moved(_hidden(belief, chart, cut), chart.whitening.dimension) @ back.T
        bias += cut.out**2 * belief.covariance
    else:
        bias = _assumed_bias(belief, chart, cut, weight, back @ step.coefficients)
    classical = robust = step.sampling / weight
    if sums.squares is None:
        robust = uneven * classical
    else:
        unit = (chart.target_weight / cut.through) ** 2  # from g²xxᵀ to ppᵀ, in z
        unit *= _rows_of_each(chart, sums)
        seen, noise = unit * sums.squares, unit * sums.deviation / chart.robust_weight
        spread = left * chart.target_scale**2
        middle = _spread_of_slopes(joint.gram, seen / spread, (noise / spread) ** 2, uneven)
        bread = (joint.scale / joint.target.weight)[:, None] * steady(joint)
        robust = spread * bread @ middle @ bread.T
    return replace(
        step,
        coefficients=start_of(chart) + back @ step.coefficients,
        sampling=symmetric(back @ robust @ back.T),
        classical=symmetric(back @ classical @ back.T),
        privacy=symmetric(back @ step.privacy @ back.T + bias),
        residual_variance=left * chart.scale**2,
        r_squared=None,
    )


def _moved(cut: Cut, p: int) -> FloatArray:
    """Return how far weights and cut may have moved the step, by what a gauge saw."""
    share = max((cut.expected - LEAST_EXPECTED) ** 2 / (1 - LEAST_EXPECTED) ** 2, LEAST_MISFIT)
    bent = (share * cut.lost * cut.misfit + cut.bend**2) / cut.energy**2
    slopes = (1 + (p - 1) * share) * bent + cut.clip**2 / (4 * p)
    return np.diag([cut.clip**2 + share * cut.misfit * (1 - cut.weight), *[slopes] * p])


def _hidden(belief: Belief, chart: ResidualMap, cut: Cut) -> Cut:
    """Return the cut with at least the energy that wave 1, which cuts nobody, saw beyond it."""
    if belief.seen is None:
        return cut
    energy, of_energy = belief.seen.energy(chart.whitening)
    square, of_square = belief.seen.residual(chart)
    lost = max(cut.lost, energy - 2 * of_energy - cut.energy)
    return replace(
        cut, lost=lost, misfit=max(cut.misfit, square - 2 * of_square - cut.weight * cut.spread)
    )


def unseen(waves: Sequence[Collected]) -> bool:
    """Tell whether people may be far out whom no wave saw: see the module's docstring.

    `waves` are those of residuals, in their order; the last one's errors are asked for.
    """
    each = [
        (belief, chart, sums) for belief, chart, sums in waves if isinstance(chart, ResidualMap)
    ]
    if len(each) < len(waves) or each[-1][0].seen is None:
        return False
    belief, chart, sums = each[-1]
    if belief.law is not None and cut_share(chart, sums) > MOST_CUT:
        return True
    law = belief.law or _gaussian(chart, sums)
    size, _ = law.squares
    far = farthest(chart.whitening, ~known_of(belief))
    if far <= USUAL * math.sqrt(size):
        return False
    long = belief.law is not None and tail_of(law, chart.whitening.dimension) > WIDE
    if long and (far > FAR * chart.radius or kurtosis_of(law) > PEAKED):
        return True
    reached = belief.law is not None and law.errors[-1] <= NEAR * chart.bound
    if reached and far <= NEAR * chart.radius:
        return False
    counted = 1 if belief.law else 2  # what weighs less in earlier waves, a gauge tells too badly
    told = [one for wave in each[:-1] for one in _far_out(*wave)[:counted]]
    told += _far_out(*each[-1]) + ([] if belief.law else share_by_size(each))
    precision = math.fsum(1 / variance for _, variance in told)
    share = math.fsum(share / variance for share, variance in told) / (precision or 1.0)
    assert belief.seen is not None
    energy, of_energy = belief.seen.energy(chart.whitening)
    signals = FEW * np.array([math.sqrt(precision), far**2 / of_energy])
    signs = np.array([share * math.sqrt(precision), (energy - size) / of_energy])
    clear = float(np.linalg.norm(signals))
    least = min(SURE_SIGN if belief.differences else SIGN, clear - MISSED)
    if belief.law is None and signs[0] > TAILS:
        return True
    return clear < CLEAR or float(signals @ signs) > least * clear


def _far_out(belief: Belief, chart: ResidualMap, sums: WaveSums) -> list[tuple[float, float]]:
    """Return what a wave and its gauge say of the share of people at the bounds, with variances."""
    law = belief.law or _gaussian(chart, sums)
    full = chart.constant**2 * sums.count
    near = weight_near(law, chart.radius)
    missing = near - float(sums.matrix[0, 0]) / full
    unsure = (sums.deviation / full) ** 2 + (UNSURE * (1 - near)) ** 2
    usual = USUAL / 2 * math.sqrt(law.squares[0])
    found = [far_share(law, min(chart.radius, usual))]
    lose = 1 - (chart.radius / farthest(chart.whitening, ~known_of(belief))) ** 2
    return [*found, (missing / lose, unsure / lose**2)] if lose > 0 else found


def share_by_size(
    waves: Sequence[tuple[Belief, ResidualMap, WaveSums]],
) -> list[tuple[float, float]]:
    """Return what the size of features says of the same share, by generalised least squares."""
    *earlier, (_, last, sums) = waves
    p, white, scale = last.whitening.dimension, last.whitening, sums.count * last.feature_scale**2
    matrix = sums.matrix[1:-1, 1:-1] / scale
    mean = sums.matrix[0, 1:-1] / (sums.count * last.constant * last.feature_scale)
    seen, size = float(np.trace(matrix)) / p, _gaussian(last, sums).squares[0]
    inside, rows = max(_kept_squares(size, last.radius, p)[1], 1e-3), []
    for _, chart, own in earlier:
        turn = chart.whitening.matrix @ np.linalg.inv(white.matrix)
        move = chart.whitening.matrix @ (white.mean - chart.whitening.mean)
        by, blurred = turn.T @ turn / p, own.count * chart.feature_scale**2
        along = float(np.sum(by * matrix)) / seen
        its_size = max(size * along + float(move @ (move + 2 * turn @ mean)) / p, 1e-3)
        kept, within = _kept_squares(its_size, chart.radius, p)
        lacks = float(np.trace(own.matrix[1:-1, 1:-1])) / (blurred * p) - kept
        slope = size / seen * by + along * (1 / inside - size / seen) * np.eye(p) / p
        common = sums.deviation / scale * within * float(np.linalg.norm(slope))
        alone = own.deviation**2 / (blurred**2 * p) + (UNSURE * (its_size - kept)) ** 2
        adds = chart.radius**2 - last.radius**2 * within * along / inside
        rows.append((adds, lacks, common, alone))
    signals, signs, shared, apart = np.reshape(rows, (-1, 4)).T
    weights = np.linalg.solve(np.diag(apart) + np.outer(shared, shared), signals)
    precision = float(weights @ signals)
    return [(float(weights @ signs) / precision, 1 / precision)] if precision > 0 else []


def _kept_squares(size: float, radius: float, p: int) -> tuple[float, float]:
    """E[min(f², r²)] of Gaussian features of this size, and its derivative, what is within r."""
    law = assumed_law(p)
    f2, row = middles(law.features) ** 2, law.shares.sum(axis=1)
    near = size * f2 < radius**2
    within = float(f2[near] @ row[near])
    return size * within + radius**2 * float(row[~near].sum()), within


def _gaussian(chart: ResidualMap, sums: WaveSums) -> Law:
    """Return the law of Gaussian features that are as large as the wave's own Σs²‖f‖² says."""
    p, radius = chart.whitening.dimension, chart.radius
    trace = float(np.trace(sums.matrix[1:-1, 1:-1])) / (sums.count * chart.feature_scale**2 * p)
    seen = min(max(trace, 1e-3 * radius**2), 0.999 * radius**2)
    size = root_of_increasing(lambda k: _kept_squares(k, radius, p)[0] - seen, seen, 1e-6)
    return replace(assumed_law(p), features=math.sqrt(size) * assumed_law(p).features)


def _assumed_bias(
    belief: Belief, chart: ResidualMap, cut: Cut, weight: float, step: FloatArray
) -> FloatArray:
    """Return the same without a gauge, by the law of Laplace for g alone.

    What is cut away, E(|g| − R)₊, shifts the constant, and if sizes of errors differ by a half, the
    others by half of that in all. The share 1 − s of a step that is cut is put back by dividing; it
    is wrong by as much as the start is, and as the step itself is: a strong signal that one column
    carries is not what P, even in all directions, expects.
    """
    p, tail = chart.whitening.dimension, 1 - cut.through
    shift = chart.bound / max(-math.log(max(tail, 1e-12)), 1e-3) * tail / weight
    back = _back(chart)
    moved = back @ np.diag(shift**2 * np.array([1.0, *[0.25 / p] * p])) @ back.T
    return np.asarray(moved + tail**2 * (belief.covariance + np.outer(step, step)))


def _step_sums(belief: Belief, chart: ResidualMap, sums: WaveSums) -> Submodel:
    """Return the wave's sums as those of s·g by s·(1, f)."""
    p = chart.whitening.dimension
    columns = tuple(JointColumn(f"f{place}", chart.feature_scale) for place in range(p))
    read = step_sums(chart, sums, cut_of(belief, chart, sums))
    variance = np.full((p + 2, p + 2), sums.deviation**2 / 2)
    np.fill_diagonal(variance, sums.deviation**2)
    variance[:-1, -1] = variance[-1, :-1] = read.linear_variance
    return Submodel(
        count=sums.count,
        constant=chart.constant,
        features=columns,
        target=JointColumn("error", chart.target_scale),
        gram=read.gram,
        cross=read.linear,
        square=float(sums.matrix[-1, -1]),
        noise=Noise(variance),
        deviation=sums.deviation,
    )


def _back(chart: ResidualMap) -> FloatArray:
    """Return the map from a step of g by (1, f), f = W(v − m), to coefficients of (1, v)."""
    white = chart.whitening
    found = np.zeros((white.dimension + 1, white.dimension + 1))
    found[0, 0], found[0, 1:] = 1.0, -white.matrix @ white.mean
    found[1:, 1:] = white.matrix.T
    return chart.scale * found


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
        raise InfeasibleError(
            "The noise dominates the sums of this wave, so there are no standard errors; state "
            "tighter bounds, ask more people, or allow a larger epsilon."
        )
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
            "The last step changed scores by more than {longest_step}: one step is not enough for "
            "honest errors; plan another Newton wave.",
            longest_step=LONGEST_STEP,
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
