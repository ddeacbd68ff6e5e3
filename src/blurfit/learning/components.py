"""Random intercepts: what people differ by, and how much their means should count.

A row of a person is y_t = β·x_t + a + e_t: a, of variance σ_a², is the person's own, and e_t, of
variance σ_e², the row's. Write W for the mean over a person's m rows of the products of their
differences from the person's mean, and B for the products of that mean. Two releases tell the
averages of both over people (`blurfit.estimators.people`), the second also k = E[1/m]. With the
residuals of any slopes, w = E[rᵀWr] and b = E[rᵀBr] less its mean squared,

    σ_e² = w/(1 − k),      σ_a² = b − k·σ_e².

The noise has the mean 0 in each entry, and the slopes are of other releases, so what noise adds to
w and b has the mean 0 as well: nothing is left to take out but the square of a blurred mean. The
model's last release tells w + f·b with far less noise, as its errors are sent in units of their own
spread; the three are put together by precision.

**How much means count.** W + f·B with the same f for everybody gives weighted least squares, which
is consistent for every f. Let ω be the share of W in the features' variance V. For independent
errors a slope of one standard deviation has the variance, from sampling,

    S(f) = (kσ_e²·ω + f²·(σ_a² + kσ_e²)(1 − ω))/(n·(ω + f(1 − ω))²),

least at f = kσ_e²/(σ_a² + kσ_e²), which with m rows of each is that of generalised least squares,
σ_e²/(σ_e² + mσ_a²). But noise has to be counted, too. Where waves whiten the features, and send
errors of the spread w + f·b in their own units, it adds

    P(f) = p·(2T/(nμ))²·(w + f·b)/(ω + f(1 − ω)),

T ≈ 2 being how far the largest person is beyond the usual one, with what constant and squares take;
and to the constant, of which rows keep √f, C(f) = (6.5T/(nμ))²·(w + f·b)/f. In one wave noise is
that of the bounds, P(f) = (D/(nμ))²/(v·(ω + f(1 − ω))²) and C(f) = (D/(nμ))²/f, with
D = 1.25(p + 1), and v the mean variance of an encoded column. f is where the product of all
variances, (S + P)^p·(C + (σ_a² + kσ_e²)/n), is least: near 1, the pooled rows, where the noise of
bounds rules, and that of generalised least squares as people grow.
"""

from dataclasses import dataclass

import numpy as np

from blurfit.data import FloatArray
from blurfit.learning.beliefs import Seen
from blurfit.learning.shrinkage import linear_bayes
from blurfit.learning.sums import Submodel

LEAST_KEPT = 0.03  # √f
_LARGEST = 2.0  # T
_LEAST_SINGLE, _MOST_SINGLE = 1e-3, 0.98  # k: a thousand rows each, and hardly anybody with two


@dataclass(frozen=True)
class VarianceComponents:
    """What people differ by (`between`, σ_a²) and rows of one person (`within`, σ_e²), with the
    noise taken out, and the standard errors of both for normal laws.

    `one_over_rows` is E[1/m], and `kept` is √f: how much of people's means the model's rows kept.
    """

    between: float
    within: float
    between_error: float
    within_error: float
    one_over_rows: float
    kept: float

    @property
    def share(self) -> float:
        """The share of people in all that slopes leave unexplained: the intraclass correlation."""
        total = self.between + self.within
        return self.between / total if total > 0 else 0.0


def components(
    within: Submodel,
    between: Submodel,
    single: float,
    slopes: FloatArray,
    kept: float,
    unit: float,
    left: tuple[float, float] | None = None,
) -> VarianceComponents:
    """Return the components that two releases tell of the residuals of these slopes of encoded
    columns, 1 of the encoded target being a `unit`; `single` is k, and `left` w + f·b with its
    standard error, if it is known.
    """
    k, r = single, np.array([0.0, *-slopes, 1.0])
    w, noise_w = Seen.of(within).square(r)
    means = Seen.of(between)
    b, noise_b = means.square(r)
    centre = float(means.matrix[0] @ r)
    b -= centre**2 - float(means.variance[0, 1:] @ r[1:] ** 2)
    design, seen, noise = np.eye(2), np.array([w, b]), np.array([noise_w, noise_b])
    if left is not None:
        design = np.vstack([design, [1.0, kept**2]])
        seen, noise = np.append(seen, left[0]), np.append(noise, left[1])
    precision = design.T @ (design / noise[:, None] ** 2)
    w, b = np.maximum(np.linalg.solve(precision, design.T @ (seen / noise**2)), 0.0)
    n = within.count  # squares of normal numbers: m − 1 differences of each person, and one mean
    chance = np.diag([2 * w**2 / (n * max(1 / k - 1, 0.1)), 2 * b**2 / n])
    turn = np.array([[-k / (1 - k), 1.0], [1 / (1 - k), 0.0]])
    errors = np.sqrt(np.diagonal(turn @ (np.linalg.inv(precision) + chance) @ turn.T))
    a, e = unit**2 * np.clip(turn @ [w, b], 0.0, 1.0)  # no number between −1 and 1 varies by more
    of_a, of_e = unit**2 * errors
    return VarianceComponents(float(a), float(e), float(of_a), float(of_e), k, kept)


def one_over_rows(sums: Submodel) -> float:
    """Return E[1/m] by the sums of one column from 0 to 1, within what is possible."""
    mean = float(sums.gram[0, 1] / (sums.count * sums.scale[0] * sums.scale[1]))
    return min(max((1 + mean) / 2, _LEAST_SINGLE), _MOST_SINGLE)


def choose_kept(
    within: Submodel, between: Submodel, single: float, mu: float, waves: bool
) -> float:
    """Return √f for the release of μ-GDP that decides, after `waves` or alone: see the module's
    docstring; `single` is k.
    """
    (w, own), (b, others) = _spreads(within), _spreads(between)
    p, n, k = len(within.features), within.count, single
    variance, share = (own + others) / p, own / (own + others)
    of_rows = w / (1 - k)
    of_people = max(b - k * of_rows, 0.0)
    kept = np.geomspace(LEAST_KEPT, 1.0, 120)
    f = kept**2
    left = share + f * (1 - share)
    sampling = k * of_rows * share + f**2 * (of_people + k * of_rows) * (1 - share)
    blur = (1.25 * (p + 1) / (n * mu)) ** 2
    privacy, constant = blur / (variance * left**2), blur / f
    if waves:
        white = (_LARGEST / (n * mu)) ** 2 * (w + f * b)
        privacy = np.minimum(privacy, 4 * p * white / left)
        constant = np.minimum(constant, 6.5**2 * white / f)
    slopes, constant = sampling / (n * left**2) + privacy, constant + (of_people + k * of_rows) / n
    return float(kept[int(np.argmin(p * np.log(slopes) + np.log(constant)))])


def _spreads(sums: Submodel) -> tuple[float, float]:
    """Return the variance that slopes leave, and that of all features, in encoded units."""
    model = linear_bayes(sums)
    left = model.variance * max(1 - model.explained, 0.1) / sums.target.weight**2
    return left, float(np.sum(model.features.variance / sums.scale[1:] ** 2))
