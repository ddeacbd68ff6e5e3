"""The neighbours that are hardest to hide, for a given agreement: who an audit lets an attacker ask
about.

Records here are q and p at the very edge of the loss's bounds R_q and R_p, in the directions that
the theory names as worst; the crowd around them is what lets a single record matter most.
"""

import math
from dataclasses import dataclass

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.audit.releases import Crowd, FloatArray, Record, noise_scales, noiseless
from blurfit.theory.calibration import InputCalibration, MomentCalibration

COLLUDERS_PULL = (0.5, 0.9)  # of what brings the solution to the boundary


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring collections: a record, the other, and everyone else."""

    name: str
    first: Record
    second: Record
    crowd: Crowd


def submission_pairs(agreement: Agreement) -> list[Pair]:
    """For whoever sees one submission: any two records are neighbours."""
    alone = Crowd(0, np.zeros(agreement.dimension))
    pairs = [Pair("opposite records", *_farthest(agreement), alone)]
    return [*pairs, Pair("zero and extreme", _extreme(agreement), _zero(agreement), alone)]


def collection_pairs(agreement: Agreement) -> list[Pair]:
    """For whoever sees the model or the sums: the quorum met exactly, the others' records zero.

    Where the relation is zero-out, one record of each pair is the zero record. The colluding crowd
    pulls the solution along the record, to and beyond the middle of the ball.
    """
    d, quorum = agreement.dimension, agreement.quorum
    still = np.zeros(d)
    extreme, zero = _extreme(agreement), _zero(agreement)
    pairs = [Pair("zero and extreme", extreme, zero, Crowd(quorum - 1, still))]
    if agreement.calibration.setting.neighbours == "replace":
        pairs.insert(0, Pair("opposite records", *_farthest(agreement), Crowd(quorum - 1, still)))
    calibration = agreement.calibration
    if isinstance(calibration, InputCalibration):
        curvature = calibration.sigma_u**2 + calibration.ridge + agreement.l2
        against = zero
        if calibration.setting.neighbours == "replace":
            # q = 0 with p ≠ 0 is no record of our losses, but the promise covers it
            against = Record(still, extreme.p)
        for share in COLLUDERS_PULL:
            reach = share * curvature * calibration.setting.ball * _axis(d)
            pulled = Record(extreme.q, -extreme.p)
            crowd = Crowd(quorum - 1, reach)
            pairs.append(Pair(f"boundary, colluders pull {share:g}", pulled, against, crowd))
    return pairs


def exact_mu(agreement: Agreement, pair: Pair) -> float:
    """μ of this pair, where all that is released is additive Gaussian noise: a submission, or
    moment's sums.

    The distance of the two, coordinate by coordinate in deviations of the noise; the noise of the
    honest crowd adds to the target's own.
    """
    growth = math.sqrt(pair.crowd.honest + 1)
    apart = noiseless(agreement, pair.first) - noiseless(agreement, pair.second)
    return float(np.linalg.norm(apart / (noise_scales(agreement) * growth)))


def _farthest(agreement: Agreement) -> tuple[Record, Record]:
    """The two records that are farthest apart in the noise's geometry.

    input: (q, p) and (−q, −p), both at full length. moment: with p = κq and opposed κ, the angle of
    cosine min(1, ϱ/2) between the q (`blurfit.theory.moment.sensitivity`); in one dimension, or
    where p need not follow q, the same q and opposite p, or one of them zero.
    """
    loss, calibration, d = agreement.loss, agreement.calibration, agreement.dimension
    e = _axis(d)
    first = Record(loss.q_bound * e, loss.p_bound * e)
    if not isinstance(calibration, MomentCalibration):
        return first, Record(-first.q, -first.p)
    cosine = 1.0
    if d > 1:
        ratio = (loss.p_bound / calibration.balance) ** 2 / loss.q_bound**4
        cosine = min(1.0, ratio / 2)
    turned = cosine * e
    if d > 1:
        turned[1] = math.sqrt(max(0.0, 1 - cosine**2))
    return first, Record(loss.q_bound * turned, -loss.p_bound * turned)


def _extreme(agreement: Agreement) -> Record:
    e = _axis(agreement.dimension)
    return Record(agreement.loss.q_bound * e, agreement.loss.p_bound * e)


def _zero(agreement: Agreement) -> Record:
    return Record(np.zeros(agreement.dimension), np.zeros(agreement.dimension))


def _axis(dimension: int) -> FloatArray:
    e = np.zeros(dimension)
    e[0] = 1.0
    return e
