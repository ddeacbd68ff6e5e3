"""Learn from the sums of a collection: the paper's Algorithm 2, and the model that moments allow.

For `input` there is one release per collection, and the learner has no knob that the agreement does
not fix. For `moment` the blurred sums are themselves the release, and the model of the agreed
target is the first of many that anyone may fit to them (`blurfit.model.moments`).
"""

import hashlib
from dataclasses import replace

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.agreement.grid import weight_scale
from blurfit.arrays import FloatArray
from blurfit.errors import BelowQuorumError, InfeasibleError, InvalidValueError, NotCertifiedError
from blurfit.learning.exact import enclose
from blurfit.learning.solver import ElasticNet, minimise
from blurfit.learning.sums import Statistics, Totals
from blurfit.model.moments import PublishedMoments
from blurfit.model.published import PublishedModel
from blurfit.theory import forms
from blurfit.theory.input_calibration import InputCalibration
from blurfit.theory.losses import LogisticLoss

NO_ERRORS = (
    "the promise of mechanism='input' is for the weights alone, and standard errors would be a "
    "second release. Use mechanism='moment' where they are needed."
)
_SOLVER_SHARE = 2.0**-40  # of the weights' last noise: how far they may be from exact
_SURELY_NOISE = 16  # times its scale: a weight of 0 gets that far with a probability of e^{−16}


def learn(
    agreement: Agreement, totals: Totals, *, allow_unproved: bool = False, held: bool = False
) -> PublishedModel:
    """The model of the agreed target, refused below the quorum; `held` as in `PublishedModel`.

    input:  w = argmin_{‖w‖≤η} ½wᵀ(A + Δ_in·I)w − cᵀw + l1·‖w‖₁ + ½l2·‖w‖²
    moment: the shrunk model of `PublishedMoments.fit`
    """
    agreement.verify(allow_unproved=allow_unproved)
    refuse_unless_ready(agreement, totals)
    if agreement.mechanism == "moment":
        return moments_of(agreement, totals, held=held).fit()
    weights = released_weights(agreement, statistics_of(agreement, totals))
    return replace(published(agreement, weights, totals.count), held=held)


def moments_of(agreement: Agreement, totals: Totals, *, held: bool = False) -> PublishedMoments:
    """The release of a `moment` collection."""
    refuse_unless_ready(agreement, totals)
    return PublishedMoments(agreement, totals.count, totals.sums, held=held)


def statistics_of(agreement: Agreement, totals: Totals) -> Statistics:
    """A and c of an `input` collection. Nothing of them may be shown but the model."""
    d = agreement.schema.dimension

    size = forms.size(d)
    gram, moment = forms.unpack(totals.sums[:size], d), totals.sums[size:]
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
    """w of an `input` collection and its last noise, which hides grids, sums and solver: the one
    thing that may be shown. `blurfit.agreement.grid` has the proof.

    With l1, what that noise alone could have made is shown as 0, as it was.
    Without the checks of `learn`, for simulations that repeat one agreement thousands of times.
    """
    calibration, objective = agreement.calibration, agreement.objective
    assert isinstance(calibration, InputCalibration) and objective is not None  # noqa: PT018
    gram, moment, l1 = statistics.gram, statistics.moment, objective.l1
    ridge, radius = calibration.ridge, calibration.setting.ball
    scale = weight_scale(calibration, agreement.grid, statistics.count)
    try:
        start = minimise(
            gram,
            moment,
            ridge=ridge + objective.l2,
            weight_bound=radius,
            regulariser=ElasticNet(l1) if l1 > 0 else None,
        )
        found = enclose(
            gram,
            moment,
            start,
            ridge=ridge + objective.l2,
            radius=radius,
            l1=l1,
            allowed=_SOLVER_SHARE * scale,
        )
    except (InfeasibleError, NotCertifiedError):
        # whose own words would tell eigenvalues, which nothing covers
        raise InfeasibleError(
            "The blurred sums leave a direction without curvature, an event that the guarantee "
            "excludes. No model can be published from this collection."
        ) from None
    weights = found.plus(scale * _standard_laplace(agreement, statistics), scale)
    if l1 > 0:
        weights[np.abs(weights) <= _SURELY_NOISE * scale] = 0.0
    return weights


def _standard_laplace(agreement: Agreement, statistics: Statistics) -> FloatArray:
    """Laplace noise of scale 1, drawn from the sums themselves by SHAKE-256.

    Whoever learns from the same sums publishes the same model, to the last bit; fresh noise would
    average out over repeated learning. Only whoever holds the sums knows them: they contain the
    noise of all contributors, some seventy bits of it even for d = 1 and many hundreds as a rule,
    so that their hash serves as fresh randomness (SHAKE-256 taken as a random oracle).
    """
    sums = np.concatenate([statistics.gram.ravel(), statistics.moment]) + 0.0  # no −0.0
    secret = hashlib.shake_256(b"blurfit weights\0" + agreement.fingerprint.encode())
    secret.update(statistics.count.to_bytes(8, "little") + sums.astype("<f8").tobytes())
    d = statistics.dimension
    words = np.frombuffer(secret.digest(17 * d), dtype=np.uint8).reshape(d, 17)
    uniform = [(int.from_bytes(word[1:], "little") + 0.5) / 2.0**128 for word in words.tolist()]
    return np.where(words[:, 0] & 1, 1.0, -1.0) * -np.log(uniform)


def refuse_unless_ready(agreement: Agreement, totals: Totals) -> None:
    """Refuse sums of another agreement, and of fewer people than its quorum."""
    if totals.fingerprint != agreement.fingerprint:
        raise InvalidValueError(
            f"Expected sums under {agreement.fingerprint}, and got some that were blurred under "
            f"{totals.fingerprint}: another agreement promises something else."
        )
    if totals.draws != agreement.database_draws:
        raise InvalidValueError(
            f"Expected sums with the noise of {agreement.database_draws} databases, as agreed, and "
            f"these have that of {totals.draws}: add it with blurfit.randomness.database."
        )
    refuse_below_quorum(agreement, totals.count)


def refuse_below_quorum(agreement: Agreement, count: int) -> None:
    """Refuse to release anything of fewer people than the quorum."""
    missing = agreement.quorum - count
    if missing > 0:
        raise BelowQuorumError(
            f"Expected count={count} to be at least the quorum {agreement.quorum}: "
            f"{missing} more contributors are needed. With fewer, the noise is too small to "
            "protect anyone."
        )
