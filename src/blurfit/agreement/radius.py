"""How long an honest submission can be, but for a probability that is accounted in δ.

A submission is a record of bounded length and noise of known size, so its norm hardly ever exceeds

    ‖q̃‖² ≤ s_q²·χ²_d(R_q²/s_q²)      ‖p̃‖² ≤ s_p²·χ²_d(R_p²/s_p²)               (input)
    ‖M̃‖_F² ≤ s²·χ²_k(R²/s²)                                                     (moment)

where χ²_k(θ) is the noncentral quantile at probability γ, shared among the parts of a submission,
and s the deviation of one record's noise. M̃ holds the k products that are sent, R bounds them, and
they are measured in the Frobenius norm, in which their noise is isotropic: off the diagonal it has
the variance s²/2 and counts twice.

**What it costs to refuse what is longer.** To refuse by value is to cut the noise's tail. Let n
honest contributors be the ones that the guarantee relies on. Without the cut the model is
(ε, δ')-private; the cut changes anything at all with probability at most nγ, so with it

    P(S) ≤ P_uncut(S) + nγ ≤ e^ε·Q_uncut(S) + δ' + nγ ≤ e^ε·Q(S) + δ' + (1 + e^ε)·nγ.

γ = min(10⁻¹², 10⁻⁴·δ/((1 + e^ε)·n)) keeps the last term within a tenth of the thousandth of δ that
an agreement keeps back (`blurfit.agreement.grid`). Where ε is so large that γ would leave floating
point, norms are not looked at.

The noise is discrete, and `input`'s p̃ dithered: both move a number by at most half a step, so each
norm by less than step·√k, which is added to the radius.

**On a coarse grid** (agreements with proofs) rounding the record at random moves a number by up to
one step, and what discrete noise is worth has to be said. Its probability at x is at most

    g·φ(x) ≤ e^{g²/24s²}·P(N(0, s²) is rounded to x),

since its sum over the grid is at least s√2π/g (Poisson summation), and since by Jensen's inequality
the mean of φ over the cell around x is at least φ(x)·e^{−g²/24s²}. So for all numbers together, off
the diagonal with s²/2, no event is more than e^{Σ counts·g²/24s²} times as probable as with rounded
normal noise: γ is divided by that, and one and a half steps are added instead of one.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from blurfit.agreement.numbers import NumberRun
from blurfit.theory.forms import TargetForm
from blurfit.theory.numerics import shifted_energy_ceiling

if TYPE_CHECKING:
    from blurfit.agreement.agreement import Agreement

LIARS = 0.01  # the share of them for which every model says what they could do
LARGEST_PROBABILITY = 1e-12
PROVED_RADIUS = 1 + 2.0**-6  # by which factor what is proved may exceed the radius, at most
SHARE = 1e-4  # of δ
_LEAST_LOGARITHM = math.log(1e-290)


def radii(agreement: "Agreement", probability: float | None = None) -> tuple[float, ...]:
    """The norm that an honest submission hardly ever exceeds, for each part of the agreement:
    with at most this probability, or else with that of being refused.
    """
    chosen = refusal_probability(agreement) if probability is None else probability
    gamma = chosen / len(agreement.parts)
    return tuple(_radius(part, gamma) for part in agreement.parts)


def records_worth(agreement: "Agreement") -> float:
    """How many honest records, each at its farthest, one submission that passes can stand for.

    Sums of `input` are of q̃q̃ᵀ and p̃, so q̃ counts by its square. Shares are not seen by anybody who
    could measure them: without proofs there is no bound.
    """
    if agreement.databases and not agreement.proofs:
        return math.inf
    reach = [
        radius / part.bound for radius, part in zip(radii(agreement), agreement.parts, strict=True)
    ]
    return max(reach[0] ** 2, *reach) if len(reach) > 1 else reach[0]


def push_of_liars(agreement: "Agreement", count: int, share: float = LIARS) -> float:
    """How far so large a share of `count` contributors can push the matrix of a `moment` release
    away from what the others' sums make of it, in the Frobenius norm.

    A liar adds any numbers within the radius r, and, being counted, the entries of zzᵀ that
    everybody knows, of norm k: √(r² + k²) in all. Where products with the target alone are sent,
    sums are divided by the count, so that a liar also stands in for an average record, of norm at
    most R: r + R. With proofs the radius is rounded up (`blurfit.agreement.proving`). Without
    proofs nobody can measure what two databases hold, and there is no bound.
    """
    if agreement.databases and not agreement.proofs:
        return math.inf
    (radius,), (part,), form = radii(agreement), agreement.parts, agreement.form
    radius *= PROVED_RADIUS if agreement.proofs else 1.0
    if isinstance(form, TargetForm):
        return share * count * (radius + part.bound)
    known = np.linalg.norm(form.matrix(np.zeros(form.width), 1))
    return share * count * math.hypot(radius, float(known))


def _radius(part: NumberRun, gamma: float) -> float:
    if gamma == 0:
        return math.inf
    scale = float(part.deviations[0] * math.sqrt(part.counts[0]))
    steps = part.step * math.sqrt(part.counts.sum())
    if part.at_random:
        gamma *= math.exp(-((steps / scale) ** 2) / 24)
        steps *= 1.5
    return math.sqrt(shifted_energy_ceiling(gamma, len(part.counts), part.bound, scale)) + steps


def refusal_probability(agreement: "Agreement") -> float:
    """γ: how likely an honest submission is refused, at most; 0 where norms are not looked at."""
    logarithm = (
        math.log(SHARE * agreement.delta)
        - np.logaddexp(0.0, agreement.epsilon)
        - math.log(agreement.honest)
    )
    if logarithm < _LEAST_LOGARITHM:
        return 0.0
    return min(LARGEST_PROBABILITY, math.exp(logarithm))
