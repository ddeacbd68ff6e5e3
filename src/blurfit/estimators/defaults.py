"""Defaults of input perturbation that read public facts alone: how long weights may be.

Encoded columns are divided by √m, where m counts them and the intercept: a weight of √m lets one
column move the prediction over its whole range. Nothing here touches privacy: whatever η is, the
noise is calibrated for it. It decides what the noise costs, and was chosen on public census
microdata (docs/experiments.md), from n = 2⁹ to 2¹⁷ at ε = 0.1 and 1.
"""

import math

from blurfit.theory.gaussian import mu_of

# How far a score reaches, in units of √m: a number's from one end of its range to the other; a
# label's log-odds are twice the least-squares fit of ±1, which is itself longer than a number's.
REACH_OF_NUMBER, REACH_OF_LABEL = 1.0, 3.0
# η is as long as that from n·μ/m^{3/2} = 256 on, and falls with its fourth root below.
WHOLE_BALL = 256.0
DEFAULT_SPLIT = 0.2  # J's share of ε


def public_ball(dimension: int, rows: int, epsilon: float, delta: float, *, label: bool) -> float:
    """η = reach·√m·min(1, (n·μ(ε, δ)/(256·m^{3/2}))^{1/4}), for one model.

    The noise on Σp grows with η, and the error with noise over n. So where n·μ is small, a smaller
    ball loses less to noise than it cuts off. μ(ε, δ) is the Gaussian privacy that the promise pays
    for; m^{3/2} is the noise's length √m times the m over which columns share the unit ball.

    >>> public_ball(14, 2**21, 1.0, 1e-6, label=False) == math.sqrt(14)
    True
    """
    reach = REACH_OF_LABEL if label else REACH_OF_NUMBER
    signal = rows * mu_of(epsilon, delta) / dimension**1.5
    affordable = math.sqrt(math.sqrt(signal / WHOLE_BALL))
    return reach * math.sqrt(dimension) * min(1.0, affordable)
