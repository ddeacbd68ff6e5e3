"""Standard errors for the last of several waves: the sampling of people, and the noise of privacy.

**A residual wave** is a step of weighted least squares. Its sums are joint sums of s(1, f, g), s a
record's weight and g the last model's error in standard deviations, so `blurfit.learning.inference`
gives the step θ̃ of g by (1, f) with the two parts of its covariance, refusals included; only that
Σs² is blurred too, and that the residual's spread is told by Σs²e²/Σs². What is left to say is what
the step has to do with the line that least squares without weights would give.

* **Weights.** They bias nothing if the mean is linear. If it is not, the squared bias is at most
  L·E[(1 − w)g²]/E_f² in all white directions together (`blurfit.learning.gauge`), both factors
  being at least what wave 1, which cuts nobody, saw beyond the cut, less twice its noise.
  The worst is not to be expected of every direction: a share e of it is, in each, which grows from
  0.02 to 1 as η does.
* **The cut** lets only a share s of a step through, by which Σfg is divided. It shifts the constant
  by at most `clip` and the others by `bend`; and of the start's own error, whose covariance P the
  belief knows, it leaves the share `out`.
* **Uneven spread**: the sampling part is as large as E[w²f²g²]/E_f says, if that is more than what
  an even spread gives.

All of it comes from the law that the gauge told, so it holds for people as the gauge saw them: what
a few people far out do, fewer than its noise, it cannot tell. Where contributors send once there is
no gauge, and the law is an assumption.

**People whom the gauge did not see** (`may_hide`). Where bounds allow features or errors twice as
far out as r or R, nothing released limits what a few people there do to least squares, except wave
1, which cuts nobody. So no errors of later waves are told where there is a sign of such people:
features spread at least twice as widely as Gaussian ones where most people are (`tail_of`), for
what goes on beyond the noise does not end there; or wave 1 saw more energy and larger errors than
the law has, (z_E + z_g)/√2 > 1.28, about one time in ten by noise alone. Twice, twice and one in
ten were chosen on generated populations. Then wave 1's errors are told, or none. A sign is no
proof, and a few people leave none: 80 of 8,000 at ε = 1 were noticed in a third of the fits.

**Waves that share their rows** (`pooled`). Given the past, a wave's noise is fresh; its rows are
the same. So their estimates are weighted by the precision of their noise, the sampling error counts
once, and biases as if they agreed.

**A Newton wave.** With Â = ΣM + E and t̂ = Σp + e, the step without any shrinkage is θ̃ = Â⁻¹t̂,
and for the true step θ (the Newton step of everybody's sums)

    θ̃ − θ = Â⁻¹(Σp − Aθ + e − Eθ),

exactly. So its covariance is the sandwich

    Â⁻¹(φΣ_p + V)Â⁻¹,      V = Var(e) + E[Eθθᵀ E],

where Σ_p is the sampling variance of Σp. If the model's curve is right it is about ΣM: for a record
weighted by w = 1/max(1, ‖x‖²) it is E[w²g²xxᵀ] = E[w²h·xxᵀ] ⪯ E[w·h·xxᵀ] = E[M] (information
equality). Whether it is right or not, it is B = Σppᵀ, which a robust wave releases with noise E/ω:
`_spread_of_slopes` reads B, as far as it stands above its noise. To second order E[Â⁻¹] = A⁻¹ +
A⁻¹E[EA⁻¹E]A⁻¹, which (Â + G)⁻¹ with G = E[EÂ⁻¹E] takes away.

Whoever holds all rows announces w₀ from the same rows. Nothing changes: for given rows w₀ + A⁻¹Σp
is the rows' own estimate up to second order in its distance to w₀, whatever w₀ is, and the last
wave's noise is fresh. So sampling counts once, for all rows, and earlier waves are not pooled.

**One step is not all.** From w₀ it is the maximum likelihood up to ½A⁻¹Σ w·h'(t)(x·θ)²x, h' the
third derivative. |h'| ≤ h for logistic and Poisson loss, so by Cauchy–Schwarz the scores that are
left have at most a spread of √3/2·d², d the spread of the change x·θ (taken for Gaussian). For
counts h' = h, and half of d² is taken; for labels h' has two signs, and a quarter is. The square of
that is added, shared among all directions; d² is that of the step less what its own error adds.
Where h' has one sign, for counts and rare classes, it shifts the constant: half of d² times
E[h']/E[h] is added to its error.

The estimate is **refused** where d is above 1: then another wave is needed. It is refused, too,
where noise dominates Â: λ_min ≤ 0, or κ = (σ²/2)(tr Â⁻¹ + 1/λ_min)/λ_min ≥ 0.3.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.errors import InfeasibleError
from blurfit.learning.gauge import LEAST_EXPECTED, Cut, tail_of
from blurfit.learning.inference import Inference, Pull, infer
from blurfit.learning.sums import Noise, Submodel
from blurfit.learning.waves import (
    Belief,
    StepSums,
    WaveSums,
    coordinates,
    cut_of,
    start_of,
    step_sums,
)
from blurfit.schema.schema import INTERCEPT
from blurfit.theory.forms import JointColumn
from blurfit.theory.maps import LogisticNewton, NewtonMap, ResidualMap, WaveMap

MOST_NOISE = 0.3  # κ
LEAST_MISFIT = 0.02  # of the worst misfit, which errors allow for
FAR, WIDE, EXCESS = 2.0, 2.0, 1.28  # signs of people whom the gauge did not see
LONGEST_STEP = 1.0  # d, the standard deviation of the change of scores


@dataclass(frozen=True, eq=False)
class WaveEstimate:
    """What one wave tells without shrinkage: `inference`, whose privacy part has the noise alone,
    and the covariance of what weights and cut may have done.
    """

    inference: Inference
    bias: FloatArray

    @property
    def whole(self) -> Inference:
        """The estimate with both parts of what is not sampling."""
        return replace(self.inference, privacy=self.inference.privacy + self.bias)


def pooled(waves: Sequence[WaveEstimate]) -> WaveEstimate:
    """Return the estimate of several waves of the same rows: see the module's docstring."""
    precisions = [np.linalg.inv(one.inference.privacy) for one in waves]
    privacy = np.asarray(np.linalg.inv(sum(precisions)), dtype=np.float64)
    gains = [privacy @ one for one in precisions]
    pairs = list(zip(gains, waves, strict=True))
    bias = len(waves) * sum(gain @ one.bias @ gain.T for gain, one in pairs)
    value = np.sum([gain @ one.inference.coefficients for gain, one in pairs], axis=0)
    found = replace(waves[-1].inference, coefficients=value, privacy=(privacy + privacy.T) / 2)
    return WaveEstimate(found, np.asarray(bias))


def residual_estimates(belief: Belief, chart: ResidualMap, sums: WaveSums) -> WaveEstimate:
    """Return the estimates of the residual wave collected under `chart`, the map of `belief`.

    Coefficients are of (1, v) for the encoded target, without shrinkage.
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
    uneven = max(1.0, cut.uneven / left) if math.isfinite(cut.law_noise) else 1.0
    back = _back(chart)
    if math.isfinite(cut.law_noise):
        bias = back @ _moved(_hidden(belief, chart, cut), chart.whitening.dimension) @ back.T
        bias += cut.out**2 * belief.covariance
    else:
        bias = _assumed_bias(belief, chart, cut, weight, back @ step.coefficients)
    sampling = back @ (uneven / weight * step.sampling) @ back.T
    privacy = back @ step.privacy @ back.T
    found = replace(
        step,
        coefficients=start_of(chart) + back @ step.coefficients,
        sampling=(sampling + sampling.T) / 2,
        privacy=(privacy + privacy.T) / 2,
        residual_variance=left * chart.scale**2,
        r_squared=None,
    )
    return WaveEstimate(found, (bias + bias.T) / 2)


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


def may_hide(belief: Belief, chart: WaveMap, sums: WaveSums) -> bool:
    """Whether people may be far out whom the gauge did not see: see the module's docstring."""
    law, seen = belief.law, belief.seen
    if not isinstance(chart, ResidualMap) or law is None or seen is None:
        return False
    if law.features[-1] <= FAR * chart.radius and law.errors[-1] <= FAR * chart.bound:
        return False
    cut = cut_of(belief, chart, sums)
    energy, of_energy = seen.energy(chart.whitening)
    square, of_square = seen.residual(chart)
    more = (energy - cut.energy - cut.lost) / of_energy
    more += (square - cut.weight * cut.spread - cut.misfit) / of_square
    return more > math.sqrt(2) * EXCESS or tail_of(law, chart.whitening.dimension) > WIDE


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


def wave_estimates(belief: Belief, chart: WaveMap, sums: WaveSums) -> WaveEstimate:
    """Return the estimates of the wave that was collected under `chart`, the map of `belief`.

    Coefficients are of (1, v), without shrinkage: of the encoded target after a residual wave, of
    log-odds or log rates after Newton's. An `InfeasibleError` says where no errors can be told.
    """
    if isinstance(chart, ResidualMap):
        return residual_estimates(belief, chart, sums)
    found = newton_estimates(chart, sums)
    return WaveEstimate(found, np.zeros_like(found.privacy))


def wave_pull(belief: Belief, chart: WaveMap, sums: WaveSums) -> tuple[Pull, FloatArray]:
    """Tell how the wave's estimates follow a push of its own sums, and, as a quadratic form, what
    is left in them of the start's error.

    Liars of earlier waves move the start. To first order a residual wave keeps the share of it that
    its cut lets through, and Newton's keeps nothing: what one step leaves of a start that is far
    off is in its standard errors, by the length of the step that was released. The rest of the map,
    m, W and the scale, matters only beside an error of the start.
    """
    if isinstance(chart, ResidualMap):
        left = cut_of(belief, chart, sums).out ** 2 * belief.covariance
        return Pull.of_line(_step_sums(belief, chart, sums)).through(_back(chart)), left
    back = np.asarray(np.linalg.inv(coordinates(chart)), dtype=np.float64)
    found = Pull.of_step(*_solved(step_sums(chart, sums)), chart.loss.balance**2).through(back)
    return found, np.zeros_like(found.squares)


def _solved(read: StepSums) -> tuple[FloatArray, FloatArray]:
    """Return (Â + G)⁻¹, and the step."""
    bias = read.noise.sandwich(np.asarray(np.linalg.inv(read.gram), dtype=np.float64))
    inverse = np.asarray(np.linalg.inv(read.gram + bias), dtype=np.float64)
    return inverse, inverse @ read.linear


def _spread_of_slopes(chart: NewtonMap, sums: WaveSums, read: StepSums) -> FloatArray:
    """Return the sampling variance of Σp: ΣM, or Σppᵀ as far as it stands above its noise.

    In coordinates in which Â is the identity, B̂ is φ(1 + D): φ = tr B̂/d is how far counts are
    dispersed, and D how unevenly. 1 − φ and D are shrunk to 0 by the share of noise in their
    squares, and the eigenvalues of 1 + D are kept within ¼ and 4.
    """
    if sums.squares is None:
        return read.dispersion * read.gram
    values, vectors = np.linalg.eigh(read.gram)
    root = (vectors * np.sqrt(values)) @ vectors.T
    white = (vectors / np.sqrt(values)) @ vectors.T
    size = len(values)
    order = [size - 1, *range(size - 1)]
    seen = white @ sums.squares[np.ix_(order, order)] @ white
    variance = (sums.deviation / chart.loss.robust_weight) ** 2
    inverse = white @ white
    # E‖white·E·white‖² and Var tr(white·E·white), E with this variance, half of it off the diagonal
    of_all = variance * (float(np.trace(inverse)) ** 2 + float(np.sum(inverse**2))) / 2
    of_mean = variance * float(np.sum(inverse**2)) / size**2
    mean = float(np.trace(seen)) / size
    mean = 1 + (mean - 1) * _kept((mean - 1) ** 2, of_mean)
    mean = max(mean, 0.25)
    uneven = seen / mean - np.eye(size)
    uneven *= _kept(float(np.sum(uneven**2)), of_all / mean**2)
    values, vectors = np.linalg.eigh(uneven)
    spread = (vectors * np.clip(1 + values, 0.25, 4.0)) @ vectors.T
    return np.asarray(mean * root @ spread @ root)


def _kept(square: float, noise: float) -> float:
    """Return 1 − noise/square, or 0: the share of a square that is not noise."""
    return max(0.0, 1 - noise / square) if square > 0 else 0.0


def newton_estimates(chart: NewtonMap, sums: WaveSums) -> Inference:
    """Return the estimates of the exact curve, one step after the model that the map announced."""
    read = step_sums(chart, sums)
    values = np.linalg.eigvalsh(read.gram)
    least, blur = float(values[0]), sums.deviation**2 / 2
    condition = blur * (float(np.sum(1 / values)) + 1 / least) / least if least > 0 else math.inf
    if condition >= MOST_NOISE:
        raise InfeasibleError(
            "The noise dominates the sums of this wave, so there are no standard errors; state "
            "tighter bounds, ask more people, or allow a larger epsilon."
        )
    inverse, theta = _solved(read)
    noise = read.linear_variance * np.eye(len(theta))
    noise += read.noise.sandwich(np.outer(theta, theta))
    sampling, privacy = (
        inverse @ one @ inverse for one in (_spread_of_slopes(chart, sums, read), noise)
    )
    squares = np.array([chart.scale[1], *[chart.scale[0]] * (len(theta) - 1)]) ** 2
    change = max(float((theta**2 - np.diagonal(sampling + privacy)) @ squares), 0.0)  # d²
    if change > LONGEST_STEP**2:
        raise InfeasibleError(
            f"The last step changed scores by {math.sqrt(change):.2g}, more than {LONGEST_STEP}: "
            "one step is not enough for honest errors; plan another Newton wave."
        )
    left = change * (0.25 if isinstance(chart.loss, LogisticNewton) else 0.5)
    sampling += np.diag(left**2 / (len(theta) * squares))
    sampling[0, 0] += (chart.skewness * change / 2) ** 2 / squares[0]
    back = np.linalg.inv(coordinates(chart))
    sampling, privacy = back @ sampling @ back.T, back @ privacy @ back.T
    return Inference(
        names=(INTERCEPT, *(f"v{place}" for place in range(chart.whitening.dimension))),
        count=sums.count,
        coefficients=start_of(chart) + back @ theta,
        sampling=(sampling + sampling.T) / 2,
        privacy=(privacy + privacy.T) / 2,
        residual_variance=None,
        r_squared=None,
        condition=condition,
        uneven=False,
    )
