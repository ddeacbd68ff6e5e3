"""Choosing the free parameters of input perturbation, and the tightest statement about given ones.

The theorem (`certified`) holds for any split of ε between determinant and gradient and any shares
of δ, so both may be chosen freely as long as no data are read. From ε, δ to noise, the choice
minimises the certified excess risk (`excess_risk.input_excess_risk`); from noise to ε or δ, it
minimises that number itself.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter

import numpy as np
from scipy.special import expit

from blurfit.errors import InfeasibleError
from blurfit.theory.certified import (
    CurvatureLoss,
    DeltaShares,
    Scales,
    curvature_loss,
    fixed_sensitivity,
    require_more_records_than_dimensions,
    spectrum_floor,
)
from blurfit.theory.excess_risk import input_excess_risk
from blurfit.theory.gradient_delta import least_epsilon, least_sigma_b, log_gradient_delta
from blurfit.theory.quantiles import chi_square_floor, shifted_energy_ceiling
from blurfit.theory.setting import LEAST_DELTA, LEAST_PROBABILITY, Setting
from blurfit.theory.simplex import Point, descend
from blurfit.theory.stated import rounded_down, rounded_up

DEFAULT_FRACTION = 0.01  # of δ, for each of γ₁, 2γ₂ and γ₃, unless they are searched for
_LARGEST_DETERMINANT_LOSS = 10.0  # e¹⁰: a smaller ridge and less noise on q would not show


@dataclass(frozen=True)
class Choice:
    """A calibration of input perturbation, with everything that is needed to check it."""

    scales: Scales
    shares: DeltaShares
    loss: CurvatureLoss
    split: float


@lru_cache(maxsize=256)  # the same question has the same answer, and takes a search
def choose(
    setting: Setting,
    epsilon: float,
    delta: float,
    *,
    split: float | None = None,
    local_mu: float | None = None,
    local_share: float | None = None,
    debias: bool = True,
) -> Choice:
    """The noise that keeps (ε, δ), and μ ≤ `local_mu` for a submission; split=None minimises the
    certified excess risk.

    A number for `split` fixes it, and the shares of δ at a hundredth for each event. `local_share`
    is the share of a submission's μ² that the noise on q may spend; None minimises likewise.
    """
    require_certifiable(delta)
    require_more_records_than_dimensions(setting.quorum, setting.dimension)

    searching = [] if split is not None else [math.log(0.2 / 0.8), 0.0, 0.0]
    balancing = local_mu is not None and local_share is None
    start = np.array(searching + ([0.0] if balancing else []))

    def build(point: Point, sharp: bool) -> Choice:
        odds, gram, record = point[:3] if split is None else (0.0, 0.0, 0.0)
        return _candidate(
            setting,
            epsilon,
            delta,
            split=_share(odds) if split is None else split,
            fractions=(_fraction(gram), _fraction(record), DEFAULT_FRACTION),
            local_mu=local_mu,
            local_share=_share(point[-1]) if balancing else local_share or 0.5,
            debias=debias,
            sharp=sharp,
        )

    def risk(point: Point) -> float:
        try:
            return math.log(input_excess_risk(setting, build(point, sharp=False).scales))
        except (ArithmeticError, ValueError):  # out there floating point ends: search elsewhere
            return math.inf

    return build(descend(risk, start, steps=90) if start.size else start, sharp=True)


def require_certifiable(delta: float) -> None:
    """Refuse a δ of which no share can be given away with certainty."""
    if delta < LEAST_DELTA:
        raise InfeasibleError(
            f"Expected delta={delta!r} to be at least {LEAST_DELTA:g}: the tails from which the "
            "noise follows are not certain below."
        )


def least_kept_epsilon(
    setting: Setting,
    scales: Scales,
    delta: float,
    count: int | None = None,
    known: DeltaShares | None = None,
) -> tuple[float, DeltaShares]:
    """The least ε that the theorem gives to these scales at δ, over all shares of δ.

    A search may miss the best shares, but never tells more than `known` ones do.
    """
    require_certifiable(delta)

    def evaluate(point: Point, sharp: bool) -> tuple[float, DeltaShares]:
        gram, record, spectrum = _tails(scales, delta, point)
        shares = DeltaShares(gram, record, spectrum, delta - gram - 2 * record - spectrum)
        return kept_epsilon(setting, scales, shares, count, sharp=sharp), shares

    return _tightest(evaluate, scales, None if known is None else _point(known, known.total))


def kept_epsilon(
    setting: Setting,
    scales: Scales,
    shares: DeltaShares,
    count: int | None = None,
    *,
    sharp: bool = True,
) -> float:
    """The ε that the theorem gives to these scales at these shares of δ."""
    loss = curvature_loss(setting, scales.sigma_u, scales.ridge, shares, count)
    parts = standardised(setting, scales.sigma_b, loss, count)
    return least_epsilon(
        loss.determinant_loss, shares.gradient, *parts, setting.dimension, sharp=sharp
    )


def least_kept_delta(
    setting: Setting,
    scales: Scales,
    epsilon: float,
    count: int | None = None,
    known: DeltaShares | None = None,
) -> tuple[float, DeltaShares]:
    """The least δ that the theorem gives to these scales at ε, over all γ₁, γ₂ and γ₃.

    A search may miss the best ones, but never tells more than `known` ones do. No δ below
    `LEAST_DELTA` is stated.
    """

    def evaluate(point: Point, sharp: bool) -> tuple[float, DeltaShares]:
        tails = _tails(scales, 1.0, point)
        loss = curvature_loss(
            setting, scales.sigma_u, scales.ridge, DeltaShares(*tails, 0.0), count
        )
        parts = standardised(setting, scales.sigma_b, loss, count)
        headroom = epsilon - loss.determinant_loss
        spent = log_gradient_delta(headroom, *parts, setting.dimension, sharp=sharp)
        shares = DeltaShares(*tails, math.exp(spent))
        return shares.total, shares

    return _tightest(evaluate, scales, None if known is None else _point(known, 1.0))


def standardised(
    setting: Setting, sigma_b: float, loss: CurvatureLoss, count: int | None = None
) -> tuple[float, float]:
    """a and b: S_π and S_w over σ_b·√(N/n), for each of N records has noise σ_b²/n on its p."""
    records = setting.quorum if count is None else count
    noise = sigma_b * math.sqrt(records / setting.quorum)
    return fixed_sensitivity(setting) / noise, loss.moving_sensitivity / noise


def local_mu(setting: Setting, scales: Scales) -> float:
    """μ = 2√n·√(R_q²/σ_u² + R_p²/σ_b²): one submission, exactly, for the worst two records."""
    if scales.sigma_u == 0 or scales.sigma_b == 0:
        return math.inf
    reach = math.hypot(setting.q_bound / scales.sigma_u, setting.p_bound / scales.sigma_b)
    return 2 * math.sqrt(setting.quorum) * reach


def _candidate(
    setting: Setting,
    epsilon: float,
    delta: float,
    *,
    split: float,
    fractions: tuple[float, float, float],
    local_mu: float | None,
    local_share: float,
    debias: bool,
    sharp: bool,
) -> Choice:
    """One calibration: J = split·ε, σ_u² = R_q²/(e^J − 1), Δ_in = λ̃/(e^J − 1) − f, then σ_b, then
    all of it again.

    With `sharp` every number is rounded to the safe side as it is made, and those after it follow
    from what is stated: shares of δ down, σ_u, Δ_in and σ_b up (`blurfit.theory.stated`).

    σ_u is raised where a local target asks for more. Where the noise then supplies more curvature
    than J needs, Δ_in is negative: taken away again up to what is certain (−a·(1 − λ̃/((e^J −
    1)f))) with `debias`, else left (Δ_in = 0).
    """
    n, d = setting.quorum, setting.dimension
    gram, record = _probability(delta * fractions[0]), _probability(delta * fractions[1] / 2)
    spectrum = _probability(delta * fractions[2])
    if sharp:
        gram, record, spectrum = map(rounded_down, (gram, record, spectrum))
    growth = math.expm1(min(split * epsilon, _LARGEST_DETERMINANT_LOSS))
    sigma_u = setting.q_bound / math.sqrt(growth)
    if local_mu is not None:
        sigma_u = max(sigma_u, 2 * math.sqrt(n / local_share) * setting.q_bound / local_mu)
    if sharp:
        sigma_u = rounded_up(sigma_u)
    s = sigma_u / math.sqrt(n)
    needed = shifted_energy_ceiling(record, d, setting.q_bound, s) / growth
    floor = s**2 * chi_square_floor(gram, n - d)
    if sharp:
        floor = rounded_down(floor)
    ridge = needed - floor
    if ridge < 0:
        certain = spectrum_floor(s, d, n, spectrum) if debias else 0.0
        if sharp:
            certain = rounded_down(certain)
        ridge = -certain * (1 - needed / floor) * (1 - 1e-12)
    if sharp:
        ridge = rounded_up(ridge)
    if ridge >= 0:
        spectrum = 0.0
    left = delta - gram - 2 * record - spectrum
    shares = DeltaShares(gram, record, spectrum, rounded_down(left) if sharp else left)
    loss = curvature_loss(setting, sigma_u, ridge, shares)
    if sharp:
        loss = loss.bounded(ridge)
    headroom = epsilon - loss.determinant_loss
    parts = fixed_sensitivity(setting), loss.moving_sensitivity
    sigma_b = least_sigma_b(headroom, shares.gradient, *parts, d, sharp=sharp)
    if local_mu is not None:
        rest = (local_mu / 2) ** 2 / n - (setting.q_bound / sigma_u) ** 2
        sigma_b = max(sigma_b, setting.p_bound / math.sqrt(rest) * (1 + 1e-12))
    if sharp:
        sigma_b = rounded_up(sigma_b)
    return Choice(Scales(sigma_u, sigma_b, ridge), shares, loss, split)


def _tightest(
    evaluate: Callable[[Point, bool], tuple[float, DeltaShares]],
    scales: Scales,
    known: Point | None,
) -> tuple[float, DeltaShares]:
    """Minimise over the logarithms of the shares, starting from small to ever smaller ones."""
    if scales.sigma_u == 0:
        return evaluate(np.empty(0), True)

    def value(point: Point) -> float:
        try:
            return math.log(evaluate(point, False)[0] + 1e-300)
        except InfeasibleError:
            return math.inf

    starts = [np.full(3, start) for start in (0.0, -5.0, -15.0, -30.0, -60.0, -120.0)]
    best = min(starts, key=value)
    if value(best) == math.inf:
        return evaluate(best, True)  # which says why it is infeasible
    found = evaluate(descend(value, best, steps=200), True)
    if known is not None and value(known) < math.inf:
        return min(found, evaluate(known, True), key=itemgetter(0))
    return found


def _tails(scales: Scales, whole: float, point: Point) -> tuple[float, float, float]:
    """γ₁, γ₂ and γ₃ as shares of a whole; 0 for events that these scales do not know."""
    if scales.sigma_u == 0:
        return 0.0, 0.0, 0.0
    gram, record, spectrum = (_probability(whole * _fraction(value)) for value in point)
    return gram, record / 2, spectrum if scales.ridge < 0 else 0.0


def _point(shares: DeltaShares, whole: float) -> Point:
    """Where `_tails` finds these shares; 0 for events that they do not know."""
    parts = (shares.gram, 2 * shares.record, shares.spectrum)
    return np.array([math.log(part / whole / DEFAULT_FRACTION) if part else 0.0 for part in parts])


def _share(log_odds: float) -> float:
    """From the real line to (0, 1), kept away from its ends."""
    return min(max(float(expit(log_odds)), 1e-6), 1 - 1e-6)


def _fraction(logarithm: float) -> float:
    """From the real line to a share of δ: a hundredth at 0, never more than 0.3."""
    return DEFAULT_FRACTION * math.exp(min(logarithm, math.log(0.3 / DEFAULT_FRACTION)))


def _probability(value: float) -> float:
    """Kept where quantiles have been compared with exact ones."""
    return max(value, LEAST_PROBABILITY)
