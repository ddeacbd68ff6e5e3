"""The neighbours that are hardest to hide, for a given agreement: who an audit lets an attacker ask
about.

For `input`, records are q and p at the very edge of the loss's bounds R_q and R_p, in the
directions that the theory names as worst. For `moment` they are answers to the schema's own
questions, as far apart as any two that a search finds. The crowd around them is what lets a single
record matter most.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from blurfit.agreement.agreement import Agreement
from blurfit.arrays import FloatArray
from blurfit.audit.releases import Crowd, nobody, noise_scales
from blurfit.theory.forms import JointForm, WaveForm
from blurfit.theory.input_calibration import InputCalibration

COLLUDERS_PULL = (0.5, 0.9)  # of what brings the solution to the boundary
_BETWEEN = np.linspace(-1.0, 1.0, 41)  # values of a number that the search tries
_ROUNDS = 20
_CORNERS = 512  # of which the farthest two are taken


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring collections: a record, the other, and everyone else."""

    name: str
    first: FloatArray
    second: FloatArray
    crowd: Crowd
    of_collections: bool = True  # else of two submissions, which no database blurs


def submission_pairs(agreement: Agreement) -> list[Pair]:
    """For an attacker who sees one submission: any two records are neighbours."""
    zero, (extreme, other) = nobody(agreement), _farthest(agreement)
    alone = Crowd(0, zero)
    opposite = Pair("opposite records", extreme, other, alone, of_collections=False)
    return [opposite, replace(opposite, name="zero and extreme", second=zero)]


def collection_pairs(agreement: Agreement) -> list[Pair]:
    """For one who sees the model or the sums: the quorum met exactly, the others' records zero.

    Where the relation is zero-out, one record of each pair is the zero record. The colluding crowd
    pulls the solution along the record, to and beyond the middle of the ball.
    """
    calibration = agreement.calibration
    zero, (extreme, other) = nobody(agreement), _farthest(agreement)
    crowd = Crowd(agreement.quorum - 1, zero)
    pairs = [Pair("zero and extreme", extreme, zero, crowd)]
    replaced = calibration.model.neighbours == "replace"
    if replaced:
        pairs.insert(0, Pair("opposite records", extreme, other, crowd))
    if isinstance(calibration, InputCalibration):
        assert agreement.objective is not None
        d = agreement.schema.dimension
        curvature = calibration.sigma_u**2 + calibration.ridge + agreement.objective.l2
        # q = 0 with p ≠ 0 is no record of our losses, but the promise covers it
        q, p = extreme.copy(), extreme.copy()
        q[d:], p[:d] = 0.0, 0.0
        for share in COLLUDERS_PULL:
            pull = nobody(agreement)
            pull[d] = share * curvature * calibration.setting.ball
            crowd = Crowd(agreement.quorum - 1, pull)
            name = f"boundary, colluders pull {share:g}"
            pairs.append(Pair(name, q - p, p if replaced else zero, crowd))
    return pairs


def lying_crowd(agreement: Agreement) -> Pair:
    """All others lie: they send what the attacker likes, whose noise she knows. Here it is nothing.

    Where a promise counts on honest contributors alone, this breaks it; noise of the database
    keeps it (`blurfit.theory.moments`).
    """
    extreme, other = _farthest(agreement)
    if agreement.calibration.model.neighbours == "zero-out":
        other = nobody(agreement)
    return Pair("all others lie", extreme, other, Crowd(0, nobody(agreement)))


def exact_mu(agreement: Agreement, pair: Pair) -> float:
    """μ of this pair, where all that is released is additive Gaussian noise: a submission, or
    moment's sums.

    The distance of the two, coordinate by coordinate in deviations of the noise; the noise of the
    honest crowd adds to the target's own, and that of a database is as much as a quorum's.
    """
    databases = agreement.database_draws if pair.of_collections else 0
    growth = math.sqrt(pair.crowd.honest + 1 + databases * agreement.quorum)
    return float(np.linalg.norm((pair.first - pair.second) / (noise_scales(agreement) * growth)))


def _farthest(agreement: Agreement) -> tuple[FloatArray, FloatArray]:
    """Two records that are as far apart as any in the noise's geometry: an extreme one first.

    input: (q, p) and (−q, −p), both at full length. A later wave of `moment`, whose map bends
    records: the farthest of some hundred random corners.
    """
    if not isinstance(agreement.calibration, InputCalibration):
        form = agreement.form
        if isinstance(form, WaveForm):
            return farthest_under_a_map(form)
        first, second = farthest_answers(form)
        return form.products(first), form.products(second)
    axis = np.zeros(agreement.schema.dimension)
    axis[0] = 1.0
    extreme = np.concatenate([agreement.loss.q_bound * axis, agreement.loss.p_bound * axis])
    return extreme, -extreme


def farthest_under_a_map(form: WaveForm) -> tuple[FloatArray, FloatArray]:
    """What is sent of the two corners that are farthest apart under an announced map, among some.

    Corners need not be records that a schema encodes (several levels at once): noise that hides
    corners hides records.
    """
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(_CORNERS, len(form.columns)))
    sent = form.products(np.unique(signs, axis=0))
    scaled = sent * np.sqrt(form.counts)
    squares = np.einsum("ij,ij->i", scaled, scaled)
    apart = squares[:, None] + squares[None] - 2 * scaled @ scaled.T
    one, other = np.unravel_index(int(apart.argmax()), apart.shape)
    return sent[one], sent[other]


def farthest_answers(form: JointForm) -> tuple[FloatArray, FloatArray]:
    """Columns v and v' of two records whose zzᵀ differ most, as far as a search finds them.

    `blurfit.theory.moments.sensitivity` is attained where ‖u‖ = ‖u'‖ = ρ with cosine −c²/ρ². A
    record of full length answers every number with ±1, so the cosine of two of them is Σ ±ω²/ρ² over
    questions (0 for two levels of one categorical), and may miss −c²/ρ². By symmetry the first may
    answer 1 throughout. The second starts from signs that come close, or opposite throughout, and
    goes on question by question, values between −1 and 1 included, as long as that helps.
    """
    blocks = _questions(form)
    first = np.zeros(len(form.columns))
    first[[block[0] for block in blocks]] = 1.0
    here = form.products(first)

    def distance(others: FloatArray) -> FloatArray:
        return np.asarray(((form.products(others) - here) ** 2) @ form.counts)

    best, farthest = -1.0, first
    for start in _starts(form, blocks, first):
        second, reached = start, float(distance(start[None])[0])
        for _ in range(_ROUNDS):
            before = reached
            for block in blocks:
                tried = _answers(form, block, second)
                away = distance(tried)
                place = int(away.argmax())
                if away[place] > reached:
                    second, reached = tried[place], float(away[place])
            if reached <= before:
                break
        if reached > best:
            best, farthest = reached, second
    return first, farthest


def _questions(form: JointForm) -> list[list[int]]:
    """The columns of each question: one, or those of all levels."""
    found: dict[str, list[int]] = {}
    for place, column in enumerate(form.columns):
        found.setdefault(f"\0{place}" if column.group is None else column.group, []).append(place)
    return list(found.values())


def _answers(form: JointForm, block: list[int], record: FloatArray) -> FloatArray:
    """The record with every answer to one question, a row for each."""
    if form.columns[block[0]].kind == "level":
        answers = np.eye(len(block))[:2]  # further levels are as far as the second
    elif len(block) > 1:  # a number that need not be said
        said = np.column_stack([_BETWEEN, np.zeros(len(_BETWEEN))])
        answers = np.vstack([said, [0.0, 1.0]])
    elif form.columns[block[0]].kind == "sign":
        answers = np.array([[1.0], [-1.0]])
    else:
        answers = _BETWEEN[:, None]
    found = np.tile(record, (len(answers), 1))
    found[:, block] = answers
    return found


def _starts(form: JointForm, blocks: list[list[int]], first: FloatArray) -> Iterator[FloatArray]:
    """Opposite throughout; and, from the heaviest question on, opposite wherever that brings u·u'
    closer to −c².
    """
    opposite = first.copy()
    for block in blocks:
        has_levels = form.columns[block[0]].kind == "level"
        opposite[block] = _answers(form, block, first)[-1 if has_levels else 0, block]
        if form.columns[block[0]].kind == "sign":
            opposite[block] = -1.0
    yield opposite
    near, product = first.copy(), form.radius**2
    for block in sorted(blocks, key=lambda block: -form.columns[block[0]].weight):
        has_levels = form.columns[block[0]].kind == "level"
        turned = product - form.columns[block[0]].weight ** 2 * (1 if has_levels else 2)
        if abs(turned + form.constant**2) < abs(product + form.constant**2):
            near[block], product = opposite[block], turned
    yield near
