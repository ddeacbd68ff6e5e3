"""Learn from the sums of a collection: the paper's Algorithm 2, and the model that moments allow.

For `input` there is one release per collection, and the learner has no knob that the agreement does
not fix. For `moment` the blurred sums are themselves the release, and the model of the agreed
target is the first of many that anyone may fit to them (`blurfit.model.moments`).
"""

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.grid import weight_step
from blurfit.arrays import FloatArray
from blurfit.errors import (
    BelowQuorumError,
    InfeasibleError,
    InvalidValueError,
    NotCertifiedError,
)
from blurfit.learning.regularisers import ElasticNet
from blurfit.learning.solver import minimise
from blurfit.learning.statistics import Statistics
from blurfit.learning.sums import Totals
from blurfit.model.moments import PublishedMoments
from blurfit.model.published import PublishedModel
from blurfit.theory import triangle
from blurfit.theory.input_calibration import InputCalibration
from blurfit.theory.losses import LogisticLoss

NO_ERRORS = (
    "the promise of mechanism='input' is for the weights alone, and standard errors would be a "
    "second release. Use mechanism='moment' where they are needed."
)


def learn(agreement: Agreement, totals: Totals, *, allow_unproved: bool = False) -> PublishedModel:
    """The model of the agreed target, refused below the quorum.

    input:  w = argmin_{‖w‖≤η} ½wᵀ(A + Δ_in·I)w − cᵀw + l1·‖w‖₁ + ½l2·‖w‖²
    moment: the shrunk model of `PublishedMoments.fit`
    """
    agreement.verify(allow_unproved=allow_unproved)
    refuse_unless_ready(agreement, totals)
    if agreement.mechanism == "moment":
        return moments_of(agreement, totals).fit()
    statistics = statistics_of(agreement, totals)
    return published(agreement, released_weights(agreement, statistics), totals.count)


def moments_of(agreement: Agreement, totals: Totals) -> PublishedMoments:
    """The release of a `moment` collection."""
    refuse_unless_ready(agreement, totals)
    return PublishedMoments(agreement, totals.count, totals.sums)


def statistics_of(agreement: Agreement, totals: Totals) -> Statistics:
    """A and c of an `input` collection. Nothing of them may be shown but the model."""
    d = agreement.schema.dimension

    size = triangle.size(d)
    gram, moment = triangle.unpack(totals.sums[:size], d), totals.sums[size:]
    return Statistics(totals.count, gram, moment, totals.fingerprint)


def published(agreement: Agreement, weights: FloatArray, count: int) -> PublishedModel:
    """The weights w on x = s·(v, 1) as those of (1, v), for the target's own column.

    For a label the quadratic a + ½cz² − yz/2 is least squares in disguise: its minimiser is 1/(2c)
    times the least-squares fit of y = ±1, whose value estimates E[y|x]. So 2c·(w·x) is the score,
    and (score + 1)/2 the probability, as calibrated as a linear function can be.
    """
    schema = agreement.schema
    scaled = weights * schema.scale
    if isinstance(agreement.loss, LogisticLoss):
        scaled = 2 * agreement.loss.parabola.curvature * scaled
    constant, slopes = (scaled[-1], scaled[:-1]) if schema.intercept else (0.0, scaled)
    return PublishedModel(
        agreement=agreement,
        target=schema.target.name,
        features=tuple(feature.name for feature in schema.features),
        weights=np.concatenate([[constant], slopes])[None],
        count=count,
        method="input perturbation",
        refusal=NO_ERRORS,
    )


def released_weights(agreement: Agreement, statistics: Statistics) -> FloatArray:
    """w of an `input` collection, rounded to its lattice: the one thing that may be shown.

    Without the checks of `learn`, for simulations that repeat one agreement thousands of times.
    """
    calibration, objective = agreement.calibration, agreement.objective
    assert isinstance(calibration, InputCalibration) and objective is not None  # noqa: PT018
    refusal = InfeasibleError(
        "The blurred sums leave a direction without curvature, an event that the guarantee "
        "excludes. No model can be published from this collection."
    )
    ridge, regulariser = calibration.ridge, None
    if objective.l1 > 0:
        regulariser = ElasticNet(objective.l1, objective.l2)
    else:
        ridge += objective.l2
    try:
        found = minimise(
            statistics.gram,
            statistics.moment,
            ridge=ridge,
            weight_bound=calibration.setting.weight_bound,
            regulariser=regulariser,
        )
    except (InfeasibleError, NotCertifiedError):
        raise refusal from None  # whose own words would tell eigenvalues, which nothing covers
    if not found.positive_definite:
        raise refusal
    step = weight_step(calibration.setting.ball)
    return np.asarray(np.rint(found.weights / step) * step)


def refuse_unless_ready(agreement: Agreement, totals: Totals) -> None:
    """Refuse sums of another agreement, and of fewer people than its quorum."""
    if totals.fingerprint != agreement.fingerprint:
        raise InvalidValueError(
            f"Expected sums under {agreement.fingerprint}, and got some that were blurred under "
            f"{totals.fingerprint}: another agreement promises something else."
        )
    missing = agreement.quorum - totals.count
    if missing > 0:
        raise BelowQuorumError(
            f"Expected count={totals.count} of at least the quorum {agreement.quorum}: "
            f"{missing} more contributors are needed. With fewer the noise is too small to "
            "protect anyone."
        )
