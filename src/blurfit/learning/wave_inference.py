"""Standard errors for the last wave: the sampling of people, and the noise of privacy.

A residual wave's are in `blurfit.learning.residual_inference`. Newton's are these.

With Â = ΣM + E and t̂ = Σp + e, the step without any shrinkage is θ̃ = Â⁻¹t̂, and for the true step θ
(the Newton step of everybody's sums)

    θ̃ − θ = Â⁻¹(Σp − Aθ + e − Eθ),

exactly. So its covariance is the sandwich

    Â⁻¹(φΣ_p + V)Â⁻¹,      V = Var(e) + E[Eθθᵀ E],

where Σ_p, the sampling variance of Σp, is ΣM: for a record weighted by w = 1/max(1, ‖x‖²) it is
E[w²g²xxᵀ] = E[w²h·xxᵀ] ⪯ E[w·h·xxᵀ] = E[M] if the model's curve is right (information equality), so
the errors are a little too wide where many records are far out, and are not to be trusted where
the curve is wrong: Σg²xxᵀ is not released. To second order E[Â⁻¹] = A⁻¹ + A⁻¹E[EA⁻¹E]A⁻¹, which
(Â + G)⁻¹ with G = E[EÂ⁻¹E] takes away.

**One step is not all.** From w₀ it is the maximum likelihood up to ½A⁻¹Σ w·h'(t)(x·θ)²x, h' the
third derivative. |h'| ≤ h for logistic and Poisson loss, so by Cauchy–Schwarz the scores that are
left have at most a spread of √3/2·d², d the spread of the change x·θ (taken for Gaussian). For
counts h' = h, and half of d² is taken; for labels h' has two signs, and a quarter is. The square of
that is added, shared among all directions; d² is that of the step less what its own error adds.

The estimate is **refused** where d is above 1: then another wave is needed. It is refused, too,
where noise dominates Â: λ_min ≤ 0, or κ = (σ²/2)(tr Â⁻¹ + 1/λ_min)/λ_min ≥ 0.3.
"""

import math

import numpy as np

from blurfit.arrays import FloatArray
from blurfit.errors import InfeasibleError
from blurfit.learning.belief import Belief, on_curve
from blurfit.learning.inference import Inference
from blurfit.learning.liars import Pull
from blurfit.learning.residual_inference import cut_of, residual_estimates, residual_pull
from blurfit.learning.step import StepSums
from blurfit.learning.wave_step import WaveSums, coordinates, step_sums
from blurfit.schema.schema import INTERCEPT
from blurfit.theory.maps import NewtonMap, ResidualMap, WaveMap
from blurfit.theory.newton import LogisticNewton

MOST_NOISE = 0.3  # κ
LONGEST_STEP = 1.0  # d, the standard deviation of the change of scores


def wave_estimates(belief: Belief, chart: WaveMap, sums: WaveSums) -> Inference:
    """The estimates of the wave that was collected under `chart`, the map of `belief`.

    Coefficients are of (1, v), without shrinkage: of the encoded target after a residual wave, of
    log-odds or log rates after Newton's. An `InfeasibleError` says where no errors can be told.
    """
    if isinstance(chart, ResidualMap):
        return residual_estimates(belief, chart, sums)
    return newton_estimates(belief, chart, sums)


def wave_pull(belief: Belief, chart: WaveMap, sums: WaveSums) -> tuple[Pull, FloatArray]:
    """How the wave's estimates follow a push of its own sums, and, as a quadratic form, what is
    left in them of the start's error.

    Liars of earlier waves move the start. To first order a residual wave keeps the share κ of that
    (`blurfit.learning.residual_inference`), and Newton's keeps nothing: what one step leaves of a
    start that is far off is in its standard errors, by the length of the step that was released.
    The rest of the map, m, W and the scale, matters only beside an error of the start.
    """
    if isinstance(chart, ResidualMap):
        left = cut_of(chart, sums).plug_in ** 2 * belief.covariance
        return residual_pull(chart, sums), left
    back = np.asarray(np.linalg.inv(coordinates(chart)), dtype=np.float64)
    found = Pull.of_step(*_solved(step_sums(chart, sums)), chart.loss.balance**2).through(back)
    return found, np.zeros_like(found.squares)


def _solved(read: StepSums) -> tuple[FloatArray, FloatArray]:
    """(Â + G)⁻¹, and the step."""
    bias = read.noise.sandwich(np.asarray(np.linalg.inv(read.gram), dtype=np.float64))
    inverse = np.asarray(np.linalg.inv(read.gram + bias), dtype=np.float64)
    return inverse, inverse @ read.linear


def newton_estimates(belief: Belief, chart: NewtonMap, sums: WaveSums) -> Inference:
    """Of the exact curve, one step after the model that the map announced."""
    read = step_sums(chart, sums)
    values = np.linalg.eigvalsh(read.gram)
    least, blur = float(values[0]), sums.deviation**2 / 2
    condition = blur * (float(np.sum(1 / values)) + 1 / least) / least if least > 0 else math.inf
    if condition >= MOST_NOISE:
        raise InfeasibleError(
            "The noise dominates the sums of this wave, so there are no standard errors; ask more "
            "people, or allow a larger epsilon."
        )
    inverse, theta = _solved(read)
    noise = read.linear_variance * np.eye(len(theta))
    noise += read.noise.sandwich(np.outer(theta, theta))
    sampling, privacy = (inverse @ one @ inverse for one in (read.dispersion * read.gram, noise))
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
        coefficients=on_curve(belief).coefficients + back @ theta,
        sampling=(sampling + sampling.T) / 2,
        privacy=(privacy + privacy.T) / 2,
        residual_variance=None,
        r_squared=None,
        condition=condition,
        uneven=False,
    )
