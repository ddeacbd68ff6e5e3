"""What Newton's last step leaves for the few who give a rare answer.

`blurfit.learning.wave_inference` solves for what one step lacks as if features were Gaussian. Of
the rarer answer of a yes/no column, or of one level, that says nothing. But a step tells their
share of +1, E[p(t)] + E[h(t)]·Δ, t being the start's scores given the answer and Δ how far the step
changes them. The whole change δ solves E[p(t + δ)] = share. What it adds to the change that is
estimated already is added to the answer's own coefficient, less the second-order bias of the noise
on the share; a quarter of its square is counted to the variance, and errors grow by dδ/dΔ. Answers
follow each other, and those of a quarter of the people and more are left as they are.

If the share is less than `SURE_SHARE` of its errors from 0 or 1, the answer's log-odds are unknown,
and their error is `UNKNOWN`: other coefficients keep their intervals.
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
