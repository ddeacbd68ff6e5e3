"""From scores to a lower bound on ε: by counting (Clopper and Pearson), and read as Gaussian.

An attacker computes one number from a release, larger if it looks like D than like D'. If a release
is (ε, δ)-DP, every event E has P(E|D) ≤ e^ε·P(E|D') + δ. So where counting shows, each but for α/2,
that P(E|D) ≥ p and P(E|D') ≤ q (Clopper and Pearson 1934: exact for every sample size),

    ε ≥ ln((p − δ)/q)     with confidence 1 − α.

Nothing is assumed. The event has to be chosen on other trials than it is counted on, and no number
of trials N shows more than about ln(N/ln(1/α)).

**Read as Gaussian.** A claim of μ-GDP says more than one (ε, δ): every event has Φ⁻¹(p) − Φ⁻¹(q) ≤
μ. So events that are not rare refute it, and the ε that follows from the μ that was found is beyond
what counting reaches (Nasr et al. 2023, Section 4). Where μ is so large that no trial of D looks
like D' (`FAR`), the distance of two thresholds t and t', in deviations, bridges the gap:

    μ = (t − t')/σ + Φ⁻¹(P(s > t|D)) − Φ⁻¹(P(s > t'|D')),   σ = (b − a)/(Φ⁻¹(F(b)) − Φ⁻¹(F(a))),

which holds for scores that are Gaussian with one deviation, as those of additive Gaussian noise
are; again each probability is bounded by counting, σ from above.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri

from blurfit.arrays import FloatArray
from blurfit.errors import InvalidValueError
from blurfit.validate import inside_unit_interval, nonnegative

FAR = 4.0  # deviations between the two scores' medians, beyond which μ is bridged
_WIDTH = 1.5  # deviations to either side of the median, where σ is read off
_THRESHOLDS = 400
_COUNTS = 6  # probabilities that the Gaussian reading bounds


@dataclass(frozen=True)
class Event:
    """`score ≥ threshold` (or ≤ with above=False), likelier under the first set than the second.

    `swapped` says that the first set are the releases from D'.
    """

    threshold: float
    above: bool
    swapped: bool

    def count(self, scores: FloatArray) -> int:
        """How often it happened."""
        happened = scores >= self.threshold if self.above else scores <= self.threshold
        return int(happened.sum())


def proportion_floor(
    count: npt.ArrayLike, trials: int, alpha: float
) -> npt.NDArray[np.float64] | np.float64:
    """p with P(≥ count | p) = α: a proportion that is smaller shows so many with less than α."""
    k, places = _different(count)
    found = np.where(k > 0, betaincinv(np.maximum(k, 1), trials - k + 1, alpha), 0.0)
    return found[places][()]


def proportion_ceiling(
    count: npt.ArrayLike, trials: int, alpha: float
) -> npt.NDArray[np.float64] | np.float64:
    """q with P(≤ count | q) = α: a proportion that is larger shows so few with less than α."""
    k, places = _different(count)
    least = np.maximum(trials - k, 1)
    return np.where(k < trials, betaincinv(k + 1, least, 1 - alpha), 1.0)[places][()]


def epsilon_floor(
    likelier: npt.ArrayLike, rarer: npt.ArrayLike, trials: int, delta: float, alpha: float
) -> npt.NDArray[np.float64] | np.float64:
    """ln((p − δ)/q) with p and q bounded by counting, each but for α/2; 0 where it says nothing.

    p is at most the share that was counted and q at least (Beta's median lies between its mode and
    its mean): where the shares themselves say nothing, they are not bounded.
    """
    first, second = np.broadcast_arrays(*(np.asarray(k, np.float64) for k in (likelier, rarer)))
    found = np.zeros(first.shape)
    telling = first - delta * trials > second
    p = np.asarray(proportion_floor(first[telling], trials, alpha / 2)) - delta
    q = np.asarray(proportion_ceiling(second[telling], trials, alpha / 2))
    found[telling] = np.where(p > q, np.log(np.maximum(p, 1e-300) / q), 0.0)
    return found[()]


def choose_event(first: FloatArray, second: FloatArray, delta: float, alpha: float) -> Event:
    """The event that shows the largest ε on these pilot scores, which are not counted again."""
    thresholds = np.unique(np.concatenate([_spread(first), _spread(second)]))
    trials = min(len(first), len(second))
    ordered = np.sort(first[:trials]), np.sort(second[:trials])
    best = (-math.inf, Event(float(thresholds[0]), True, False))
    for swapped, sides in enumerate((ordered, ordered[::-1])):
        for above in (True, False):
            counts = [_at_least(side, thresholds, above) for side in sides]
            shown = np.asarray(epsilon_floor(counts[0], counts[1], trials, delta, alpha))
            place = int(shown.argmax())
            if shown[place] > best[0]:
                event = Event(float(thresholds[place]), above, bool(swapped))
                best = (float(shown[place]), event)
    return best[1]


def counted_epsilon(
    event: Event, first: FloatArray, second: FloatArray, delta: float, alpha: float
) -> float:
    """What fresh trials show of an event that was chosen before."""
    nonnegative(delta=delta)
    inside_unit_interval(alpha=alpha)
    if len(first) != len(second):
        raise InvalidValueError(
            f"Expected equally many trials of both, and got {len(first)} and {len(second)}."
        )
    likelier, rarer = (second, first) if event.swapped else (first, second)
    counts = event.count(likelier), event.count(rarer)
    return float(epsilon_floor(*counts, len(first), delta, alpha))


def gaussian_mu(
    pilot: tuple[FloatArray, FloatArray],
    fresh: tuple[FloatArray, FloatArray],
    alpha: float,
    *,
    bridge: bool,
) -> float:
    """A lower bound on μ, by thresholds from pilot scores and counts on fresh ones.

    One threshold, half way, and nothing is assumed; with `bridge`, for scores that are known to be
    Gaussian with one deviation, two thresholds where they are far apart (see above).
    """
    inside_unit_interval(alpha=alpha)
    medians = [float(np.median(scores)) for scores in pilot]
    high, low = (0, 1) if medians[0] >= medians[1] else (1, 0)
    deviation = max(float(np.std(pilot[high])), float(np.std(pilot[low])))
    gap = medians[high] - medians[low]
    if deviation == 0:
        return 0.0
    if not bridge or gap <= FAR * deviation:
        middle = (medians[0] + medians[1]) / 2
        p = _share(fresh[high] > middle, alpha / 2, floor=True)
        q = _share(fresh[low] > middle, alpha / 2, floor=False)
        return max(0.0, float(ndtri(p) - ndtri(q)))
    alpha /= _COUNTS
    widths = [_deviation_ceiling(fresh[k], medians[k], deviation, alpha) for k in (high, low)]
    p = _share(fresh[high] > medians[high], alpha, floor=True)
    q = _share(fresh[low] > medians[low], alpha, floor=False)
    return max(0.0, gap / max(widths) + float(ndtri(p) - ndtri(q)))


def _deviation_ceiling(scores: FloatArray, centre: float, deviation: float, alpha: float) -> float:
    """σ ≤ (b − a)/(Φ⁻¹(F(b)) − Φ⁻¹(F(a))), with F(b) bounded from below and F(a) from above."""
    a, b = centre - _WIDTH * deviation, centre + _WIDTH * deviation
    upper = _share(scores <= b, alpha, floor=True)
    lower = _share(scores <= a, alpha, floor=False)
    if upper <= lower:
        return math.inf
    return (b - a) / float(ndtri(upper) - ndtri(lower))


def _different(count: npt.ArrayLike) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """The different counts, and where each of those given is among them: thresholds share some."""
    given = np.asarray(count, dtype=np.float64)
    found, places = np.unique(given, return_inverse=True)
    return found, places.reshape(given.shape)


def _share(happened: npt.NDArray[np.bool_], alpha: float, *, floor: bool) -> float:
    bound = proportion_floor if floor else proportion_ceiling
    return float(bound(int(happened.sum()), len(happened), alpha))


def _spread(scores: FloatArray) -> FloatArray:
    """Thresholds at even shares of the scores, and at their ends."""
    return np.quantile(scores, np.linspace(0, 1, _THRESHOLDS), method="inverted_cdf")


def _at_least(ordered: FloatArray, thresholds: FloatArray, above: bool) -> FloatArray:
    if above:
        return len(ordered) - np.searchsorted(ordered, thresholds, side="left").astype(np.float64)
    return np.searchsorted(ordered, thresholds, side="right").astype(np.float64)
