"""Standard errors for a residual wave: sampling, the noise of privacy, and what the cut leaves of
the model that the wave started from.

A residual wave's sums are joint sums of (1, f', g'), f' = min(1, r√p/‖f‖)·f the cut white features
and g' the cut error of the last model, in standard deviations. So `blurfit.learning.inference`
gives the step θ̃ of g' by (1, f') with the two parts of its covariance, refusals included. What is
left is to say what that step has to do with the coefficients. Write x' = (1, f'), x = (1, f), and
d for the error of the start: the truth is start + d, and g = x·d + e.

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
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammainc, gammaincc, gammaln

from blurfit.arrays import FloatArray
from blurfit.errors import InfeasibleError
from blurfit.learning.belief import Belief
from blurfit.learning.inference import Inference, infer
from blurfit.learning.joint_sums import JointSums, Submodel
from blurfit.learning.liars import Pull
from blurfit.learning.wave_step import WaveSums
from blurfit.theory.joint_form import JointColumn
from blurfit.theory.maps import ResidualMap
from blurfit.theory.roots import root_of_increasing

_UNEVEN = 0.5  # by how much the size of errors is taken to differ between people
_MOST = 0.95  # of what a cut lets through: beyond, everything was cut, and the law is not told


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
    """How much a wave's records were cut, by what was released of them."""
    p = chart.whitening.dimension
    seen = float(sums.matrix[-1, -1]) / sums.count / chart.target_scale**2
    length = float(np.trace(sums.matrix[1:-1, 1:-1])) / sums.count / chart.feature_scale**2 / p
    u = _laplace(seen / chart.bound**2)
    scale, tail = chart.bound / u, math.exp(-u)
    stretch = _stretch(length, chart.radius, p / 2)
    left = 1 - tail * (1 + u)
    return Cut(math.hypot(stretch - 1, tail), scale * tail, 1 / left)


def residual_estimates(belief: Belief, chart: ResidualMap, sums: WaveSums) -> Inference:
    """The estimates of the residual wave that was collected under `chart`, the map of `belief`.

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
    start = np.append(chart.whitening.intercept, chart.whitening.coefficients)
    assert step.residual_variance is not None
    return replace(
        step,
        coefficients=start + back @ step.coefficients,
        sampling=(sampling + sampling.T) / 2,
        privacy=(privacy + privacy.T) / 2,
        residual_variance=step.residual_variance * cut.spread * chart.scale**2,
        r_squared=None,
    )


def residual_pull(chart: ResidualMap, sums: WaveSums) -> Pull:
    """How the wave's estimates follow a push of its sums by contributors who lie."""
    return Pull.of_line(_step_sums(chart, sums)).through(_back(chart))


def _step_sums(chart: ResidualMap, sums: WaveSums) -> Submodel:
    """The wave's sums as those of g' by (1, f')."""
    names = [f"f{place}" for place in range(chart.whitening.dimension)]
    columns = [JointColumn(name, chart.feature_scale) for name in names]
    error = JointColumn("error", chart.target_scale)
    joint = JointSums((*columns, error), chart.constant, sums.count, sums.matrix, sums.deviation)
    return joint.submodel("error")


def _back(chart: ResidualMap) -> FloatArray:
    """What a step of g by (1, f), f = W(v − m), is for coefficients of (1, v)."""
    white = chart.whitening
    found = np.zeros((white.dimension + 1, white.dimension + 1))
    found[0, 0], found[0, 1:] = 1.0, -white.matrix @ white.mean
    found[1:, 1:] = white.matrix.T
    return chart.scale * found


def _laplace(share: float) -> float:
    """u = R/b of the law whose E[min(|g|, R)²] is so large a share of R²."""
    share = min(max(share, 1e-3), _MOST)
    return root_of_increasing(lambda u: share - 2 * (1 - math.exp(-u) * (1 + u)) / u**2, 1.0, 1e-9)


def _stretch(seen: float, radius: float, shape: float) -> float:
    """k = E[min(t, r√t)]/E[min(t, r²)] for t = ‖f‖²/p of a gamma law with E[min(t, r²)] = seen."""
    seen = min(max(seen, 1e-3 * radius**2), _MOST * radius**2)

    def kept(mean: float) -> float:
        x = radius**2 * shape / mean
        return float(mean * gammainc(shape + 1, x) + radius**2 * gammaincc(shape, x))

    mean = root_of_increasing(lambda mean: kept(mean) - seen, 1.0, 1e-9)
    x = radius**2 * shape / mean
    root = math.sqrt(mean / shape) * math.exp(gammaln(shape + 0.5) - gammaln(shape))
    crossed = mean * gammainc(shape + 1, x) + radius * root * gammaincc(shape + 0.5, x)
    return float(crossed / seen)
