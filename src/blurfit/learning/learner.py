"""Learn from the blurred sums: the paper's Algorithm 2, and the model that moments allow.

For `input` there is one release per collection, and the learner has no knob that the agreement does
not fix. For `moment` the blurred sums are themselves publishable, and whatever is computed from
them afterwards is free: here, a ridge that reads the noisy spectrum, and standard errors.
"""

import math

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.grid import weight_step
from blurfit.errors import (
    BelowQuorumError,
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
)
from blurfit.learning.regularisers import ElasticNet, FloatArray, Regulariser
from blurfit.learning.solver import Minimiser, minimise
from blurfit.learning.statistics import Statistics
from blurfit.model.published import (
    PublishedModel,
    Uncertainty,
    first_order_uncertainty,
    software,
)
from blurfit.theory.calibration import InputCalibration, MomentCalibration
from blurfit.validate import nonnegative

# To which share of the noise's edge the smallest eigenvalue is lifted. Found on public census
# microdata, where 0.35 to 0.55 do about equally well from n = 2⁹ to 2¹⁷ at ε = 0.1 and 1.
LIFT = 0.5


def learn(
    agreement: Agreement, statistics: Statistics, *, ridge: float | None = None
) -> PublishedModel:
    """w = argmin_{‖w‖≤η} ½wᵀ(A + ridge·I)w − cᵀw + Ω(w), refused below the quorum.

    Args:
        agreement: what everyone agreed on; it is verified first.
        statistics: the sums of everything that was submitted under it. Sums that carry no
            fingerprint are simulated, or whoever passes them vouches for them.
        ridge: for `moment` only, and free: None reads it off the noisy spectrum (`spectral_ridge`).
    """
    agreement.verify(allow_unproved=True)  # the statement says so; nothing is sent here
    _refuse_unless_ready(agreement, statistics)
    calibration = agreement.calibration
    if isinstance(calibration, InputCalibration):
        if ridge is not None:
            raise InvalidValueError(
                f"Expected no ridge={ridge!r}: for mechanism='input' the agreement fixes it, "
                "because a second model from the same sums would undo the noise. Use "
                "mechanism='moment'."
            )
        return _learn_once(agreement, calibration, statistics)
    return _learn_freely(agreement, calibration, statistics, ridge)


def weights_of(agreement: Agreement, statistics: Statistics) -> FloatArray:
    """The weights that `learn` would publish, without its checks and standard errors.

    For simulations that repeat one agreement thousands of times; whoever publishes calls `learn`.
    """
    calibration = agreement.calibration
    if isinstance(calibration, InputCalibration):
        return _released_weights(agreement, calibration, statistics)
    lift = spectral_ridge(calibration, statistics)
    return _minimise(agreement, statistics, lift).weights


def spectral_ridge(calibration: MomentCalibration, statistics: Statistics) -> float:
    """max(0, κν − λ_min(A)), ν = σ_N·√(2d) the edge of the noise's spectrum, κ = 0.5.

    The noise moves the eigenvalues of the Gram matrix by up to about ν, so directions that the data
    do not determine end up anywhere between −ν and ν. Lifting the smallest to κν keeps them from
    dominating, and takes nothing where the data determine every direction. Post-processing: it
    costs no privacy.
    """
    edge = _noise(calibration, statistics)[0] * math.sqrt(2 * statistics.dimension)
    return max(0.0, LIFT * edge - float(np.linalg.eigvalsh(statistics.gram)[0]))


def _learn_once(
    agreement: Agreement, calibration: InputCalibration, statistics: Statistics
) -> PublishedModel:
    weights = _released_weights(agreement, calibration, statistics)
    return PublishedModel(agreement, weights, statistics.count, calibration.ridge, None, software())


def _released_weights(
    agreement: Agreement, calibration: InputCalibration, statistics: Statistics
) -> FloatArray:
    refusal = InfeasibleError(
        "The blurred sums leave a direction without curvature, an event that the guarantee "
        "excludes. No model can be published from this collection."
    )
    try:
        found = _minimise(agreement, statistics, calibration.ridge)
    except (InfeasibleError, NotCertifiedError):
        raise refusal from None  # whose own words would tell eigenvalues, which nothing covers
    if not found.positive_definite:
        raise refusal
    step = weight_step(calibration.setting.ball)
    return np.asarray(np.rint(found.weights / step) * step)


def _learn_freely(
    agreement: Agreement,
    calibration: MomentCalibration,
    statistics: Statistics,
    ridge: float | None,
) -> PublishedModel:
    lift = spectral_ridge(calibration, statistics) if ridge is None else ridge
    nonnegative(ridge=lift)
    found = _minimise(agreement, statistics, lift)
    uncertainty = _uncertainty(agreement, calibration, statistics, found, lift)
    return PublishedModel(agreement, found.weights, statistics.count, lift, uncertainty, software())


def _minimise(agreement: Agreement, statistics: Statistics, ridge: float) -> Minimiser:
    regulariser: Regulariser | None = None
    if agreement.l1 > 0:
        regulariser = ElasticNet(agreement.l1, agreement.l2)
    else:
        ridge += agreement.l2
    return minimise(
        statistics.gram,
        statistics.moment,
        ridge=ridge,
        weight_bound=agreement.calibration.setting.weight_bound,
        regulariser=regulariser,
    )


def _uncertainty(
    agreement: Agreement,
    calibration: MomentCalibration,
    statistics: Statistics,
    found: Minimiser,
    ridge: float,
) -> Uncertainty | None:
    """To first order, where the minimiser is smooth in the sums: inside the ball, and without
    l1.
    """
    if not found.positive_definite or found.multiplier > 0 or agreement.l1 > 0:
        return None
    total = ridge + agreement.l2
    hessian = statistics.gram + total * np.eye(statistics.dimension)
    inverse = np.asarray(np.linalg.inv(hessian), dtype=np.float64)
    noise_m, noise_p = _noise(calibration, statistics)
    # The records' gradients are (κy − q·w)q with |y| ≤ 1. The mean square of the bracket is at most
    # κ² − c·w/N, because the targets' own spread, which is not collected, is at most the bound.
    kappa = calibration.setting.p_bound / calibration.setting.q_bound
    fit = float(statistics.moment @ found.weights) / statistics.count
    spread = max(0.0, kappa**2 - fit)
    lifted = np.linalg.eigh(statistics.gram)
    gram = (lifted[1] * np.maximum(lifted[0], 0.0)) @ lifted[1].T
    return first_order_uncertainty(
        inverse,
        found.weights,
        noise_m=noise_m,
        noise_p=noise_p,
        ridge=total,
        residual_gram=spread * gram,
    )


def _noise(calibration: MomentCalibration, statistics: Statistics) -> tuple[float, float]:
    """σ and τσ of all N records together: √(N/n) times the quorum's."""
    growth = math.sqrt(statistics.count / calibration.setting.quorum)
    return calibration.sigma_m * growth, calibration.sigma_p * growth


def _refuse_unless_ready(agreement: Agreement, statistics: Statistics) -> None:
    if statistics.dimension != agreement.dimension:
        raise InvalidValueError(
            f"Expected dimension={statistics.dimension} of the statistics to be "
            f"{agreement.dimension}: "
            "they belong to another agreement."
        )
    if statistics.fingerprint not in (None, agreement.fingerprint):
        raise InvalidValueError(
            f"Expected statistics under {agreement.fingerprint}, and got some that were blurred "
            f"under {statistics.fingerprint}: another agreement promises something else."
        )
    missing = agreement.quorum - statistics.count
    if missing > 0:
        raise BelowQuorumError(
            f"Expected count={statistics.count} of at least the quorum {agreement.quorum}: "
            f"{missing} more contributors are needed. With fewer the noise is too small to "
            "protect anyone."
        )
