"""Standard errors for the last of several waves: the sampling of people, and the noise of privacy.

**A residual wave** adds what the cut leaves of the model that the wave started from. A residual
wave's sums are joint sums of (1, f', g'), f' = min(1, r√p/‖f‖)·f the cut white features and g' the
cut error of the last model, in standard deviations. So `blurfit.learning.inference` gives the step
θ̃ of g' by (1, f') with the two parts of its covariance, refusals included. What is left is to say
what that step has to do with the coefficients. Write x' = (1, f'), x = (1, f), and d for the error
of the start: the truth is start + d, and g = x·d + e.

**One step of a bounded estimating equation.** Given the past, which other people's records made,
the start is a fixed number. Σx'g' is the sum of a score, Σ w(x)x·ψ(x·d + e), with bounded influence
(Mallows; ψ cuts at ±R), and θ̃ is a step of it whose slope is taken to be A = E[x'x'ᵀ], where it is
J = E[1(|g| < R)·x'xᵀ]. To first order in d,

    E[θ̃] − d = (K − 1)d + A⁻¹E[x'·E[ψ(e) | x]],      K = A⁻¹J.                               (1)

* **The plug-in**, (K − 1)d. Where nothing is cut K = 1, and the start does not matter. Else its
  error d, whose covariance P the belief knows, enters by a small factor. For features whose
  directions are alike K is s·k on them, with s = P(|g| < R) and k = E[‖f'‖‖f‖]/E‖f'‖² ≥ 1: the two
  cuts err to opposite sides. As directions are not quite alike, they are not set off against each
  other: **κ² = (k − 1)² + (1 − s)²**, and κ²P is added to the covariance. Measured on the American
  Community Survey and on generated and skewed people, the singular values of K − 1 lie around κ.
* **The cut's own bias**, the last term of (1). It is 0 for symmetric errors. If errors are skewed,
  but of one law for everybody, E[ψ(e) | x] is one number, which the constant takes up alone:
  coefficients are not biased, the constant is. All that is cut away, δ = E(|g| − R)₊, is added to
  the constant's error, as if it were of one sign. Where errors are skewed *and* differ in size
  between people, coefficients are biased too: with sizes that differ by a half (a choice), (δ/2)²
  is added to the white coefficients, in equal parts.

s, δ and the uncut spread come from E[min(|g|, R)²], which is released, by the law of Laplace, whose
tails are as heavy as those of incomes' errors (kurtosis 6): with scale b and u = R/b,

    E[min(|g|, R)²] = 2b²(1 − e^{−u}(1 + u)),   1 − s = e^{−u},   E(|g| − R)₊ = b·e^{−u};

k comes from E‖f'‖², which is released, by the gamma law of ‖f‖² for Gaussian features (shape p/2).

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

The estimate is **refused** where d is above 1: then another wave is needed. It is refused, too,
where noise dominates Â: λ_min ≤ 0, or κ = (σ²/2)(tr Â⁻¹ + 1/λ_min)/λ_min ≥ 0.3.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammainc, gammaincc, gammaln

from blurfit.arrays import FloatArray
from blurfit.errors import InfeasibleError
from blurfit.learning.inference import Inference, Pull, infer
from blurfit.learning.sums import JointSums, Submodel
from blurfit.learning.waves import Belief, StepSums, WaveSums, coordinates, start_of, step_sums
from blurfit.schema.schema import INTERCEPT
from blurfit.theory.forms import JointColumn
from blurfit.theory.maps import LogisticNewton, NewtonMap, ResidualMap, WaveMap
from blurfit.theory.numerics import root_of_increasing

_UNEVEN = 0.5  # by how much the size of errors is taken to differ between people
_MOST = 0.95  # of what a cut lets through: beyond, everything was cut, and the law is not told
MOST_NOISE = 0.3  # κ
LONGEST_STEP = 1.0  # d, the standard deviation of the change of scores


@dataclass(frozen=True)
class Cut:
    """What the cut does to a step: see the module's docstring.

    Attributes:
        plug_in: κ, the share of the start's error that is left.
        shift: δ, how far the constant may be off, in standard deviations of the residual.
        spread: the uncut residual's variance over the cut one's.
    """

    plug_in: float
    shift: float
    spread: float


def cut_of(chart: ResidualMap, sums: WaveSums) -> Cut:
    """Tell how much a wave's records were cut, by what was released of them."""
    p = chart.whitening.dimension
    seen = float(sums.matrix[-1, -1]) / sums.count / chart.target_scale**2
    length = float(np.trace(sums.matrix[1:-1, 1:-1])) / sums.count / chart.feature_scale**2 / p
    u = _laplace(seen / chart.bound**2)
    scale, tail = chart.bound / u, math.exp(-u)
    stretch = _stretch(length, chart.radius, p / 2)
    left = 1 - tail * (1 + u)
    return Cut(math.hypot(stretch - 1, tail), scale * tail, 1 / left)


def residual_estimates(belief: Belief, chart: ResidualMap, sums: WaveSums) -> Inference:
    """Return the estimates of the residual wave collected under `chart`, the map of `belief`.

    Coefficients are of (1, v) for the encoded target, without shrinkage.
    """
    if belief.task == "label":
        raise InfeasibleError(
            "The last wave fitted a line to labels, which was turned into log-odds: the line's "
            "errors are not theirs. Plan a Newton wave (more people, or a larger epsilon), or read "
            "the first wave's release."
        )
    step = infer(_step_sums(chart, sums))
    cut, back = cut_of(chart, sums), _back(chart)
    p = chart.whitening.dimension
    moved = cut.shift**2 * np.array([1.0, *[_UNEVEN**2 / p] * p])
    privacy = back @ (step.privacy + np.diag(moved)) @ back.T + cut.plug_in**2 * belief.covariance
    sampling = back @ step.sampling @ back.T
    assert step.residual_variance is not None
    return replace(
        step,
        coefficients=start_of(chart) + back @ step.coefficients,
        sampling=(sampling + sampling.T) / 2,
        privacy=(privacy + privacy.T) / 2,
        residual_variance=step.residual_variance * cut.spread * chart.scale**2,
        r_squared=None,
    )


def residual_pull(chart: ResidualMap, sums: WaveSums) -> Pull:
    """Tell how the wave's estimates follow a push of its sums by contributors who lie."""
    return Pull.of_line(_step_sums(chart, sums)).through(_back(chart))


def _step_sums(chart: ResidualMap, sums: WaveSums) -> Submodel:
    """Return the wave's sums as those of g' by (1, f')."""
    names = [f"f{place}" for place in range(chart.whitening.dimension)]
    columns = [JointColumn(name, chart.feature_scale) for name in names]
    error = JointColumn("error", chart.target_scale)
    joint = JointSums((*columns, error), chart.constant, sums.count, sums.matrix, sums.deviation)
    return joint.submodel("error")


def _back(chart: ResidualMap) -> FloatArray:
    """Return the map from a step of g by (1, f), f = W(v − m), to coefficients of (1, v)."""
    white = chart.whitening
    found = np.zeros((white.dimension + 1, white.dimension + 1))
    found[0, 0], found[0, 1:] = 1.0, -white.matrix @ white.mean
    found[1:, 1:] = white.matrix.T
    return chart.scale * found


def _laplace(share: float) -> float:
    """Find u = R/b of the law whose E[min(|g|, R)²] is so large a share of R²."""
    share = min(max(share, 1e-3), _MOST)
    return root_of_increasing(lambda u: share - 2 * (1 - math.exp(-u) * (1 + u)) / u**2, 1.0, 1e-9)


def _stretch(seen: float, radius: float, shape: float) -> float:
    """Return k = E[min(t, r√t)]/E[min(t, r²)]: t = ‖f‖²/p is gamma with E[min(t, r²)] = seen."""
    seen = min(max(seen, 1e-3 * radius**2), _MOST * radius**2)

    def kept(mean: float) -> float:
        x = radius**2 * shape / mean
        return float(mean * gammainc(shape + 1, x) + radius**2 * gammaincc(shape, x))

    mean = root_of_increasing(lambda mean: kept(mean) - seen, 1.0, 1e-9)
    x = radius**2 * shape / mean
    root = math.sqrt(mean / shape) * math.exp(gammaln(shape + 0.5) - gammaln(shape))
    crossed = mean * gammainc(shape + 1, x) + radius * root * gammaincc(shape + 0.5, x)
    return float(crossed / seen)


def wave_estimates(belief: Belief, chart: WaveMap, sums: WaveSums) -> Inference:
    """Return the estimates of the wave that was collected under `chart`, the map of `belief`.

    Coefficients are of (1, v), without shrinkage: of the encoded target after a residual wave, of
    log-odds or log rates after Newton's. An `InfeasibleError` says where no errors can be told.
    """
    if isinstance(chart, ResidualMap):
        return residual_estimates(belief, chart, sums)
    return newton_estimates(chart, sums)


def wave_pull(belief: Belief, chart: WaveMap, sums: WaveSums) -> tuple[Pull, FloatArray]:
    """Tell how the wave's estimates follow a push of its own sums, and, as a quadratic form, what
    is left in them of the start's error.

    Liars of earlier waves move the start. To first order a residual wave keeps the share κ of that,
    and Newton's keeps nothing: what one step leaves of a start that is far off is in its standard
    errors, by the length of the step that was released. The rest of the map, m, W and the scale,
    matters only beside an error of the start.
    """
    if isinstance(chart, ResidualMap):
        left = cut_of(chart, sums).plug_in ** 2 * belief.covariance
        return residual_pull(chart, sums), left
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
