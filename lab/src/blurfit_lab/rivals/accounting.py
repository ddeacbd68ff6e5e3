"""How much noise T noisy gradient steps need: privacy loss distributions instead of bounds.

A step releases the sum of the gradients of a Poisson sample (each record with probability q) plus
N(0, (z·L)²I), where one record's gradient is at most L long. `dp-accounting` composes the exact
privacy loss distribution of T such steps, on a grid that is rounded to the safe side. It comes with
`pip install blurfit[rivals]`.

With q = 1 nothing is sampled and T Gaussian steps are one: μ-GDP with μ = √T·Δ/σ, exactly. The
tests hold the two against each other.
"""

import math
from collections.abc import Callable
from functools import lru_cache

from blurfit.errors import NotCertifiedError
from blurfit.theory.gaussian import mu_of
from blurfit.theory.guarantees import Neighbours
from blurfit.theory.numerics import root_of_increasing
from blurfit.validate import inside_unit_interval, positive, whole

_INTERVAL = 1e-4  # of the grid of privacy losses
_COARSE = 20  # times that interval: a grid that finds a good guess in a twentieth of the time
_ROUNDING = 1 + 1e-6
_TOLERANCE = 1e-4  # of ln z, to the safe side
_NEARBY = 1e-3  # of ln z, for a slope
_FARTHEST = 0.5  # of ln z, in one turn: with too little noise a grid would fill the memory
_MOST_TURNS = 50
# Zeroing a record out is what its removal does to the sum that is released.
_RELATIONS: dict[Neighbours, str] = {"replace": "REPLACE_ONE", "zero-out": "ADD_OR_REMOVE_ONE"}


def delta_of_steps(
    noise_multiplier: float,
    epsilon: float,
    *,
    steps: int,
    sampling_rate: float,
    neighbours: Neighbours,
    interval: float = _INTERVAL,
) -> float:
    """δ at ε of T steps with z = `noise_multiplier`, never too small.

    A wider `interval` of the grid takes less time, and rounds up by more.
    """
    import dp_accounting as accounting  # type: ignore[import-untyped]
    from dp_accounting.pld import PLDAccountant  # type: ignore[import-untyped]

    relation = getattr(accounting.NeighboringRelation, _RELATIONS[neighbours])
    event = accounting.GaussianDpEvent(noise_multiplier)
    if sampling_rate < 1:
        event = accounting.PoissonSampledDpEvent(sampling_rate, event)
    accountant = PLDAccountant(relation, interval)
    accountant.compose(event, steps)
    return float(accountant.get_delta(epsilon))


@lru_cache(maxsize=256)
def least_noise_multiplier(
    epsilon: float, delta: float, *, steps: int, sampling_rate: float, neighbours: Neighbours
) -> float:
    """The least z that keeps (ε, δ) over T steps, to within 0.01% and on the safe side.

    Without sampling by the closed form, z = √T·Δ/μ(ε, δ), which needs no package.
    """
    positive(epsilon=epsilon)
    inside_unit_interval(delta=delta)
    whole(steps=steps)
    distance = 2.0 if neighbours == "replace" else 1.0
    whole_steps = distance * math.sqrt(steps) / mu_of(epsilon, delta) * _ROUNDING
    if sampling_rate == 1:
        return whole_steps

    def saved(z: float, interval: float) -> float:
        spent = delta_of_steps(
            z,
            epsilon,
            steps=steps,
            sampling_rate=sampling_rate,
            neighbours=neighbours,
            interval=interval,
        )
        return math.log(delta / max(spent, 1e-300))

    def roughly(z: float) -> float:
        return saved(z, _COARSE * _INTERVAL)

    z = root_of_increasing(roughly, whole_steps * sampling_rate, tolerance=_TOLERANCE / 4)
    slope = (roughly(z * math.exp(_NEARBY)) - roughly(z)) / _NEARBY
    found = _least_kept(lambda z: saved(z, _INTERVAL), z, slope)
    if found is None:
        raise NotCertifiedError(
            f"No noise was found that keeps epsilon={epsilon} and delta={delta} over "
            f"steps={steps}: the accountant cannot tell so small a delta."
        )
    return found


def _least_kept(saved: Callable[[float], float], z: float, slope: float) -> float | None:
    """The least z with saved(z) ≥ 0, from one nearby, by the coarse grid's slope in ln z.

    None where it is not found: near the accountant's own rounding, slopes have any sign. So what is
    saved at z decides whether z is enough, and never the slope.
    """
    if not slope > 0:
        return None
    for _ in range(_MOST_TURNS):  # two, as a rule: the fine grid has the coarse one's slope
        left = saved(z)
        if 0 <= left <= _TOLERANCE * slope:
            return z
        change = _TOLERANCE / 2 - left / slope
        z *= math.exp(min(max(change, -_FARTHEST), _FARTHEST))
    return None
