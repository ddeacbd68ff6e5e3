"""What the noise on p has to hide, and how much of δ that spends: δ_b of the repaired Theorem 1.

Given the noise on q, the gradient at w changes by g(w) = Mw − π between neighbours, where M = q̃q̃ᵀ
− q̃'q̃'ᵀ and π = p − p' are fixed and only Mw moves with w, hence with the noise b ~ N(0, σ_b²I).
With P the projection on the plane of q̃ and q̃', e = ±π/‖π‖, α ∈ [0, π/2] the angle between e and
that plane, ξ = b/σ_b, and bounds ‖π‖ ≤ σ_b·a (`fixed`) and η‖M‖ ≤ σ_b·b (`moving`), the privacy
loss without the determinant's part is at most

    L_α = ½(a² + b² + 2ab·cos α) + a·ξ·e + b·Y,      Y = ‖Pξ‖.

So with ε' = ε − J (`headroom`), m = a + b and t₀ = ε' − m²/2 it is enough that

    δ_b ≥ sup over α of H(α),      H(α) = E[(1 − exp(ε' − L_α))₊],

which grows with a and with b. Three bounds on the supremum (docs/theory/
certified-input-perturbation.md, step 4):

* *plane*: H(0), if t₀ ≥ √3·m, if d = 2, or if a = 0.
* *angles*: max_j [H(α_j) + K·(cos α_j − cos α_{j+1})] over any 0 = α₀ < … < α_k = π/2, for t₀ > 0,
  with K = 0.2945·ab/t₀.
* *space*, always: Y ≤ X = ‖(ξ·e, ξ₂, ξ₃)‖ and cos α ≤ 1, so L_α ≤ m²/2 + a·ξ·e + b·X.

For d = 1 there is no angle: L = m²/2 + aξ + b|ξ| (*line*).

**Integrals.** In each the radius r is integrated in closed form. With r₀ = t/v, Mills' ratio M and
y = r₀ + v, E[(1 − e^{t − vr})₊] for r ~ χ_k is √(2/π)e^{−r₀²/2} times M(r₀) − M(y) for k = 1,
√(π/2)·v·M(y) for k = 2, v(1 − v·M(y)) + M(r₀) − M(y) for k = 3. What is left is one integral over
the direction (ξ·e/X is uniform on [−1, 1] in three dimensions), or two for H(α). Every value is
raised by more than the arithmetic and the quadrature err: by 10⁻¹⁰ of itself, and *angles* by 10⁻³
(measured against four times the nodes: tests/input_perturbation/test_gradient_delta.py).
"""

import math
from functools import lru_cache

import numpy as np

from blurfit.data import FloatArray
from blurfit.theory.gaussian import mills, root_of_increasing, unit_rule

_ROOT_3 = math.sqrt(3)
_ROOT_HALF_PI = math.sqrt(math.pi / 2)
_SLOPE = 0.2945  # ≥ √(2/π)·3^{3/2}·e^{−3/2}/π
_LOG_TAIL = 60.0  # what lies so many e-folds below the largest value is left to the safety
_LOG_SAFETY = 1e-10
_LOG_ANGLES_SAFETY = 1e-3
_ARITHMETIC = 4e-15  # added to closed forms whose terms cancel
_ANGLES_FROM = 0.3  # the least t₀/m for which *angles* is tried: below, K is too large to help
_LEAST_RADIUS_SHARE = 1 / 30  # of t: where v is smaller still, e^{−r₀²/2} < 10⁻¹⁹⁵

# Cosines that grow apart from the plane on, where H is largest as a rule.
_STEPS = 1.25 ** np.arange(16)
_COSINES = np.concatenate([[1.0], 1 - np.cumsum(_STEPS) / _STEPS.sum()])
_COSINES[-1] = 0.0

_NODES, _WEIGHTS = unit_rule(16)
_ANGLE_NODES, _ANGLE_WEIGHTS = unit_rule(24)


def log_gradient_delta(
    headroom: float, fixed: float, moving: float, dimension: int, *, sharp: bool = True
) -> float:
    """ln of the least bound on sup H(α) that holds here; headroom = ε − J, a and b as above.

    Without `sharp` the two-dimensional integral over angles is left out: a hundredth of the time,
    for a search that ends with the sharp one.
    """
    m = fixed + moving
    room = headroom - m * m / 2
    k = min(3, dimension)
    if not room > 0:
        return _without_room(room, m, 2 if k == 3 and fixed == 0 else k)
    if fixed == 0:
        return _log_radial(room, m, min(2, k)) + _LOG_SAFETY
    if k == 1:
        return _line(room, fixed, moving) + _LOG_SAFETY
    if k == 2 or room >= _ROOT_3 * m:
        return _plane(room, fixed, moving) + _LOG_SAFETY
    space = _space(room, fixed, moving) + _LOG_SAFETY
    if not sharp or room < _ANGLES_FROM * m:
        return space
    return min(space, _angles(headroom, fixed, moving) + _LOG_ANGLES_SAFETY)


def least_sigma_b(
    headroom: float,
    gradient_delta: float,
    fixed: float,
    moving: float,
    dimension: int,
    *,
    sharp: bool = True,
) -> float:
    """Return the least σ_b that spends no more than δ_b, for ‖π‖ ≤ `fixed` and η‖M‖ ≤ `moving`."""
    target, whole = math.log(gradient_delta), fixed + moving
    share = fixed / whole

    def overspent(m: float, sharp: bool = False) -> float:
        spent = log_gradient_delta(headroom, share * m, (1 - share) * m, dimension, sharp=sharp)
        return spent - target

    quantile = math.sqrt(2 * max(1.0, -target))
    # to first order where the difference is lost in rounding
    guess = math.sqrt(quantile**2 + 2 * headroom) - quantile or headroom / quantile
    m = root_of_increasing(overspent, guess, tolerance=1e-11 if sharp else 1e-6)
    if sharp and overspent(m, sharp=True) < -1e-6:
        m = root_of_increasing(lambda m: overspent(m, sharp=True), m * 1.05, tolerance=1e-11)
    return whole / (m * (1 - 1e-9))


def least_epsilon(
    determinant_loss: float,
    gradient_delta: float,
    fixed: float,
    moving: float,
    dimension: int,
    *,
    sharp: bool = True,
) -> float:
    """Return the least ε ≥ 0 that J, a and b keep with δ_b: `log_gradient_delta` inverted in ε."""
    target, m = math.log(gradient_delta), fixed + moving

    def saved(epsilon: float) -> float:
        headroom = epsilon - determinant_loss
        return target - log_gradient_delta(headroom, fixed, moving, dimension, sharp=sharp)

    if saved(0.0) >= 0:
        return 0.0
    guess = determinant_loss + m * (m / 2 + math.sqrt(2 * max(1.0, -target)))
    return root_of_increasing(saved, guess, tolerance=1e-10) * (1 + 1e-9)


def _radial(radius: FloatArray, v: FloatArray, k: int) -> FloatArray:
    """e^{r₀²/2}·E[(1 − e^{−v(r − r₀)})₊] for r ~ χ_k, r₀ = `radius` > 0, v > 0; never too small."""
    beyond = mills(radius + v)
    if k == 2:
        return v * beyond * (1 + _ARITHMETIC)
    near = mills(radius)
    total = near - beyond + _ARITHMETIC * near
    if k == 3:
        total += v * (1 - v * beyond + _ARITHMETIC)
    return total / _ROOT_HALF_PI


def _log_radial(room: float, m: float, k: int) -> float:
    """ln E[(1 − e^{t₀ − mr})₊], r ~ χ_k."""
    at = room / m
    return math.log(float(_radial(np.array(at), np.array(m), k))) - at * at / 2


def _without_room(room: float, m: float, k: int) -> float:
    """ln E[(1 − e^{t₀ − mX})₊] for t₀ ≤ 0, X ~ χ_k: everything counts, and δ_b is not small.

    E[e^{−mX}] is √(2/π)·M(m), 1 − m·M(m), √(2/π)·((1 + m²)M(m) − m) for k = 1, 2, 3.
    """
    if m > 1e3:
        return 0.0
    ratio = float(mills(m))
    transforms = ratio / _ROOT_HALF_PI, 1 - m * ratio, ((1 + m * m) * ratio - m) / _ROOT_HALF_PI
    transform = transforms[k - 1]
    return math.log(min(1.0, 1 - math.exp(room) * max(0.0, transform) + 1e-13))


def _line(room: float, fixed: float, moving: float) -> float:
    """ln E[(1 − exp(t₀ − aZ − b|Z|))₊]: half of the time a and b add, half a is against b."""
    together = _log_radial(room, fixed + moving, 1)
    if moving <= fixed:
        return together - math.log(2)
    against = _log_radial(room, moving - fixed, 1)
    return together + math.log1p(math.exp(against - together)) - math.log(2)


def _plane(room: float, fixed: float, moving: float) -> float:
    """ln H(0) = ln (1/π)∫_0^π E[(1 − exp(t₀ − r(b + a·cos φ)))₊] dφ, r ~ χ₂.

    Panels shorten towards both ends: near φ = 0 there may be a narrow peak, and at the other end v
    may vanish.
    """
    m = fixed + moving
    nearest = room / m
    least = room / math.sqrt(nearest**2 + 2 * _LOG_TAIL)
    end = math.acos(max(-1.0, (least - moving) / fixed)) if least < m else 0.0
    low = _panel_count(end / 2, 1 / (1 + nearest * math.sqrt(fixed / m)))
    high = _panel_count(end / 2, min(1.0, nearest))
    nodes, weights, split = _panels_from_both_ends(low, high)
    angle = end / 2 * nodes
    np.subtract(end, angle[split:], out=angle[split:])
    v = moving + fixed * np.cos(angle)
    radius = room / v
    integrand = _radial(radius, v, 2) * np.exp((nearest - radius) * (nearest + radius) / 2)
    integral = float((end / 2 * weights) @ integrand)
    return math.log(integral / math.pi) - nearest**2 / 2


def _space(room: float, fixed: float, moving: float) -> float:
    """ln E[(1 − exp(t₀ − r(b + au)))₊] for r ~ χ₃ and u uniform on [−1, 1].

    Over x = t₀/(b + au) instead of u it is t₀/(2a)·∫ x⁻²·E[… | v = t₀/x] dx, from t₀/m to
    t₀/(b − a) (to ∞ where b ≤ a), and falls as e^{−x²/2}.
    """
    m = fixed + moving
    nearest = room / m
    end = 2 * _LOG_TAIL / (nearest + math.sqrt(nearest**2 + 2 * _LOG_TAIL))
    if moving > fixed:
        end = min(end, 2 * fixed * nearest / (moving - fixed))
    nodes, weights = _panels(_panel_count(end, min(1.0, nearest, 1 / nearest)))
    step, weights = end * nodes, end * weights
    x = nearest + step
    integrand = _radial(x, room / x, 3) * np.exp(-step * (nearest + step / 2)) / x**2
    return math.log(room / (2 * fixed) * float(weights @ integrand)) - nearest**2 / 2


def _angles(headroom: float, fixed: float, moving: float) -> float:
    """ln max_j [H(α_j) + K(cos α_j − cos α_{j+1})]."""
    room = headroom - (fixed + moving) ** 2 / 2
    slope = _SLOPE * fixed * moving / room
    reached = over_angles(headroom, fixed, moving, _COSINES[:-1]) - slope * np.diff(_COSINES)
    return math.log(float(reached.max()))


def over_angles(headroom: float, fixed: float, moving: float, cosines: FloatArray) -> FloatArray:
    """H(α) for each cos α, over half of the sphere, in polar coordinates around the plane's normal.

    V(ω) = a·sin α·cos θ + b·sin θ + a·cos α·sin θ·cos φ; only where V > 0 is there anything to add.
    """
    cos, sin = cosines[:, None], np.sqrt(1 - cosines**2)[:, None]
    end = math.pi - np.arctan2(fixed * sin, moving + fixed * cos)
    theta = end * _ANGLE_NODES
    level = fixed * sin * np.cos(theta) + moving * np.sin(theta)
    across = fixed * cos * np.sin(theta)
    with np.errstate(divide="ignore", over="ignore"):
        width = np.arccos(np.clip(-level / across, -1.0, 1.0))
    v = level[..., None] + across[..., None] * np.cos(width[..., None] * _ANGLE_NODES)
    room = headroom - (fixed**2 + moving**2 + 2 * fixed * moving * cosines) / 2
    left = room[:, None, None]
    v = np.maximum(v, left * _LEAST_RADIUS_SHARE)
    radius = left / v
    inner = (_radial(radius, v, 3) * np.exp(-(radius**2) / 2)) @ _ANGLE_WEIGHTS
    return np.asarray((end * width / (2 * math.pi) * np.sin(theta) * inner) @ _ANGLE_WEIGHTS)


def _panel_count(end: float, shortest: float) -> int:
    """Return how many panels on [0, end] double in length from `shortest`/2 or less."""
    return max(1, math.ceil(math.log2(max(end, 1e-300) / shortest)) + 1)


@lru_cache(maxsize=128)
def _panels(count: int) -> tuple[FloatArray, FloatArray]:
    """On [0, 1], in panels that double in length from 2^{−count}."""
    edges = 0.5 ** np.arange(count, -1, -1.0)
    lengths = np.diff(edges, prepend=0.0)[:, None]
    return (edges[:, None] - lengths * _NODES).ravel(), (lengths * _WEIGHTS).ravel()


@lru_cache(maxsize=1024)
def _panels_from_both_ends(low: int, high: int) -> tuple[FloatArray, FloatArray, int]:
    """`_panels` of one half, and then of the other, counted from its own end; where that begins."""
    nodes, weights = zip(_panels(low), _panels(high), strict=True)
    return np.concatenate(nodes), np.concatenate(weights), len(nodes[0])
