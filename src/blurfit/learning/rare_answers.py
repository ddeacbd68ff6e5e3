"""What Newton's last step leaves of the way for the few who give a rare answer.

How far one step falls short is solved for as if features were Gaussian
(`blurfit.learning.wave_inference`). Of those with the rarer answer of a yes/no column, or with one
level, that says nothing: they are few, their log-odds may differ much from others', and the start,
which is shrunk, has not come near. But by one step their own share of +1 is known,

    share = E[p(t)] + E[h(t)]·Δ,

t being the start's scores given the answer, which are Gaussian around those of the features' means,
and Δ how far the step changes them. The whole change δ has E[p(t + δ)] = share. What that adds to
the change which is told already is put on the answer itself, so that nobody else's scores change,
less what noise on the share adds to δ on average. A quarter of its square is counted to the
variance, and errors grow by dδ/dΔ = E[h(t)]/E[h(t + δ)].

Where the share is less than two of its errors from 0 or 1, nearly all have the same label, or the
noise hides it: no interval for their log-odds would be honest, and errors are refused.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError
from blurfit.learning.beliefs import Belief
from blurfit.learning.inference import Inference
from blurfit.theory.maps import NORMAL_NODES, NORMAL_WEIGHTS

SURE_SHARE = 2.0  # errors of a share by which it is to be away from 0 and 1
LARGEST_CHANGE = 60.0  # of scores, within which a change is looked for


class Answer(NamedTuple):
    """Who gives an answer: `chosen` are the columns, whose sum is `total` for them and no others.

    `move` is the change of coefficients, the constant first, that adds 1 to their scores alone.
    """

    chosen: FloatArray
    total: float
    move: FloatArray


class More(NamedTuple):
    """What is added to coefficients, and how the errors of these follow."""

    change: FloatArray
    turn: FloatArray

    def put_on(self, found: Inference) -> Inference:
        """Return the estimates with it."""
        short = np.outer(self.change, self.change) / 4
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
    change, turn = np.zeros(size), np.eye(size)
    for answer in rare_answers(belief):
        along = belief.spread @ answer.chosen
        variance = float(answer.chosen @ along)
        away = (answer.total - float(answer.chosen @ belief.mean)) / variance
        at = np.append(1.0, belief.mean + along * away)
        left = belief.spread - np.outer(along, along) / variance
        deviation = math.sqrt(max(float(start[1:] @ left @ start[1:]), 0.0))
        scores = float(start @ at) + deviation * NORMAL_NODES
        error = math.sqrt(float(at @ found.covariance @ at))
        whole, slope = _whole(scores, float(step @ at), error)
        change += answer.move * (whole - float((found.coefficients - start) @ at))
        turn += np.outer(answer.move, at) * (slope - 1.0)
    return More(change, turn)


def rare_answers(belief: Belief) -> Iterator[Answer]:
    """Yield the rarer answer of each yes/no column, and each level that most people are not of, the
    last one too, which has no column.
    """
    size = len(belief.mean)
    for place, kind in enumerate(belief.kinds):
        one, mean = np.eye(size)[place], float(belief.mean[place])
        if kind == "sign":
            sign = -math.copysign(1.0, mean)
            yield Answer(one, sign, np.append(1.0, sign * one) / 2)
        elif kind == "level" and mean < 0.5:
            yield Answer(one, 1.0, np.append(0.0, one))
    for group in dict.fromkeys(belief.groups):
        levels = [
            kind == "level" and group == other
            for kind, other in zip(belief.kinds, belief.groups, strict=True)
        ]
        chosen = np.array(levels, dtype=np.float64)
        if chosen.any() and 1 - float(chosen @ belief.mean) < 0.5:
            yield Answer(chosen, 0.0, np.append(1.0, -chosen))


def _whole(scores: FloatArray, step: float, error: float) -> tuple[float, float]:
    """Return δ and dδ/dΔ of people whose scores, at their nodes, one step changes by Δ."""

    def share_after(change: float, less: float = 0.0) -> float:
        return float(expit(scores + change) @ NORMAL_WEIGHTS) - less

    def slope_after(change: float) -> float:
        rates = expit(scores + change)
        return float((rates * (1 - rates)) @ NORMAL_WEIGHTS)

    slope = slope_after(0.0)
    share, unsure = share_after(0.0) + slope * step, slope * error
    if min(share, 1 - share) <= SURE_SHARE * unsure:
        raise InfeasibleError(
            "Of those with the rarer answer of a yes/no column, or with a rare level, nearly all "
            "have the same label, or the noise hides how many. So no interval would be honest: "
            "leave the column out, merge rare levels, ask more people, or allow a larger epsilon. "
            "Predictions are still possible."
        )
    less, whole, more = (
        brentq(share_after, -LARGEST_CHANGE, LARGEST_CHANGE, args=(one,))
        for one in (share - unsure, share, share + unsure)
    )
    return 2 * whole - (less + more) / 2, slope / slope_after(whole)
