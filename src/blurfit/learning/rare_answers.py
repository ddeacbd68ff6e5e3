"""What Newton's last step leaves of the way for the few who give a rare answer.

How far one step falls short is solved for as if features were Gaussian
(`blurfit.learning.wave_inference`). Of those with the rarer answer of a yes/no column, or with one
level, that says nothing: they are few, their log-odds may differ much from others', and the start,
which is shrunk, has not come near. But by one step their own share of +1 is known,

    share = E[p(t)] + E[h(t)]·Δ,

t being the start's scores given the answer, which are Gaussian around those of the features' means,
and Δ how far the step changes them. The whole change δ has E[p(t + δ)] = share. What that adds to
the change δ' which is told already is put on the answer itself, so that nobody else's scores
change, less what noise on the share adds to δ on average. A quarter of its square is counted to the
variance. Errors grow by dδ/dΔ = E[h(t)]/E[h(t + δ)], but for the part of the way from Δ to δ that
δ' is there already. Answers follow each other, so that what several have in common is put on once.
Those of a quarter of the people and more are left as they are: there the Gaussian law is near.

Where the share is less than three of its errors from 0 or 1, nearly all have the same label, or the
noise hides it. Their log-odds could be anything, and their error is 10: as after a regression
without privacy, one answer of a few people does not take away all others' intervals.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from blurfit.data import FloatArray
from blurfit.learning.beliefs import Belief
from blurfit.learning.inference import Inference
from blurfit.theory.maps import NORMAL_NODES, NORMAL_WEIGHTS

RARE = 0.25  # the share of people below which an answer is rare
SURE_SHARE = 3.0  # errors of a share by which it is to be away from 0 and 1
UNKNOWN = 10.0  # the error of log-odds of whom nothing is known
LEAST_SHARE = 1e-6  # which is looked at
LARGEST_CHANGE = 60.0  # of scores, within which a change is looked for


class Answer(NamedTuple):
    """Who gives an answer: `chosen` are the columns, whose sum is `total` for them and no others.

    `move` is the change of coefficients, the constant first, that adds 1 to their scores alone.
    """

    chosen: FloatArray
    total: float
    move: FloatArray


class More(NamedTuple):
    """What is added to coefficients, how the errors of these follow, and what else is unknown."""

    change: FloatArray
    turn: FloatArray
    unknown: FloatArray

    def put_on(self, found: Inference) -> Inference:
        """Return the estimates with it."""
        short = np.outer(self.change, self.change) / 4 + self.unknown
        sampling, classical, privacy = (
            None if one is None else self.turn @ one @ self.turn.T
            for one in (found.sampling, found.classical, found.privacy)
        )
        assert sampling is not None
        assert privacy is not None
        return replace(
            found,
            coefficients=found.coefficients + self.change,
            sampling=sampling + short,
            classical=None if classical is None else classical + short,
            privacy=privacy,
        )


def left_by_step(belief: Belief, start: FloatArray, step: FloatArray, found: Inference) -> More:
    """Return what one step of Newton's, from these coefficients, leaves for rare answers beyond the
    estimates that were found by it.
    """
    size = len(start)
    change, turn, unknown = np.zeros(size), np.eye(size), np.zeros((size, size))
    for answer in rare_answers(belief):
        along = belief.spread @ answer.chosen
        variance = float(answer.chosen @ along)
        away = (answer.total - float(answer.chosen @ belief.mean)) / variance
        at = np.append(1.0, belief.mean + along * away)
        left = belief.spread - np.outer(along, along) / variance
        deviation = math.sqrt(max(float(start[1:] @ left @ start[1:]), 0.0))
        scores = float(start @ at) + deviation * NORMAL_NODES
        told, way = float((found.coefficients + change - start) @ at), at @ turn
        error = math.sqrt(float(way @ found.covariance @ way))
        whole = _whole(scores, float(step @ at), told, error)
        if whole is None:
            unknown += UNKNOWN**2 * np.outer(answer.move, answer.move)
            continue
        change += answer.move * (whole[0] - told)
        turn += np.outer(answer.move, way) * (whole[1] - 1.0)
    return More(change, turn, unknown)


def rare_answers(belief: Belief) -> Iterator[Answer]:
    """Yield the rarer answer of each yes/no column, and each level, the last one too, which has no
    column: those that few people give.
    """
    for place, kind in enumerate(belief.kinds):
        mean, one = float(belief.mean[place]), np.zeros(len(belief.mean))
        one[place] = 1.0
        if kind == "sign" and (1 - abs(mean)) / 2 < RARE:
            sign = -math.copysign(1.0, mean)
            yield Answer(one, sign, np.append(1.0, sign * one) / 2)
        elif kind == "level" and mean < RARE:
            yield Answer(one, 1.0, np.append(0.0, one))
    for group in dict.fromkeys(belief.groups):
        levels = [
            kind == "level" and group == other
            for kind, other in zip(belief.kinds, belief.groups, strict=True)
        ]
        chosen = np.array(levels, dtype=np.float64)
        if chosen.any() and 1 - float(chosen @ belief.mean) < RARE:
            yield Answer(chosen, 0.0, np.append(1.0, -chosen))


def _whole(
    scores: FloatArray, step: float, told: float, error: float
) -> tuple[float, float] | None:
    """Return δ, and how its error follows that of δ', of people with these scores at their nodes,
    whom one step changes by Δ, and of whom δ' is told with this error; None if nobody can tell.
    """

    def share_after(change: float, less: float = 0.0) -> float:
        return float(expit(scores + change) @ NORMAL_WEIGHTS) - less

    def slope_after(change: float) -> float:
        rates = expit(scores + change)
        return float((rates * (1 - rates)) @ NORMAL_WEIGHTS)

    def change_to(share: float) -> float:
        return float(brentq(share_after, -LARGEST_CHANGE, LARGEST_CHANGE, args=(share,)))

    share = share_after(0.0) + slope_after(0.0) * step
    if not LEAST_SHARE < share < 1 - LEAST_SHARE:
        return None
    whole = change_to(share)
    slope = slope_after(whole)
    solved = (told - step) / (whole - step) if whole != step else 0.0
    follows = 1 + (1 - min(max(solved, 0.0), 1.0)) * (slope_after(0.0) / slope - 1)
    unsure = slope * follows * error
    if min(share, 1 - share) <= SURE_SHARE * unsure:
        return None
    return 2 * whole - (change_to(share - unsure) + change_to(share + unsure)) / 2, follows
