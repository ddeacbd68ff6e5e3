"""Examine a release: train attackers, choose the best, count, and tell what was found.

**The attackers.** Each learns from pilot releases how to turn a release into one number.

| name | what it knows, and what it finds |
| --- | --- |
| `known direction` | how the two neighbours differ and how loud the noise is: Neyman and Pearson's best test for additive Gaussian noise |
| `linear` | nothing beforehand: Fisher's discriminant, Σ⁺(m − m'); finds noise that two numbers share |
| `quadratic` | nothing beforehand: the log-ratio of two fitted Gaussians; finds what changes the spread |
| `nearest` | nothing beforehand: how close the k-th nearest pilot release of either side is; finds a shape of any kind, such as a spike |
| `lowest bit` | that numbers are floats: the last bit that is set betrays which value noise was added to |

**The bound.** An attacker computes one number from a release, larger if it looks like D than like D'. If a release
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

The trials are divided into three parts, because an attacker that is chosen on the trials it is
counted on finds something in any noise.
"""  # noqa: E501

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree
from scipy.special import betaincinv, ndtri

from blurfit.data import FloatArray, html_table
from blurfit.errors import InvalidValueError, axes, inside_unit_interval, nonnegative, whole
from blurfit.theory.gaussian import epsilon_of

Score = Callable[[FloatArray], FloatArray]  # releases (trials, k) → scores (trials,)

MOST_FOR_QUADRATIC = 40  # numbers in a release; beyond, its covariances are too uncertain
_RELATIVE_FLOOR = 1e-13  # of the largest eigenvalue: directions that carry less are noise-free


def along(direction: npt.ArrayLike) -> Score:
    """Score by release · direction."""
    v = np.asarray(direction, dtype=np.float64)
    return lambda releases: np.asarray(releases @ v)


def linear(first: FloatArray, second: FloatArray) -> Score:
    """Fisher's discriminant of the two pilot sets, standardised so that units do not matter."""
    centre, scale = _standard(first, second)
    a, b = (first - centre) / scale, (second - centre) / scale
    pooled = (np.cov(a, rowvar=False) + np.cov(b, rowvar=False)).reshape(a.shape[1], -1) / 2
    values, vectors = np.linalg.eigh(pooled)
    difference = vectors.T @ (a.mean(axis=0) - b.mean(axis=0))
    floor = max(float(values[-1]), 1e-300) * _RELATIVE_FLOOR
    direction = vectors @ (difference / np.maximum(values, floor))
    return lambda releases: np.asarray(((releases - centre) / scale) @ direction)


def quadratic(first: FloatArray, second: FloatArray) -> Score:
    """Score by ln N(x; m, Σ) − ln N(x; m', Σ'), with means and covariances of the pilot sets."""
    centre, scale = _standard(first, second)
    one, other = (_gaussian((side - centre) / scale) for side in (first, second))
    return lambda releases: one((releases - centre) / scale) - other((releases - centre) / scale)


def nearest(first: FloatArray, second: FloatArray) -> Score:
    """Score by ln of the distance to the k-th nearest second pilot over that to the first.

    The density of either side, up to a factor that both share. Columns are scaled by the median
    distance from the median, which heavy tails do not move.
    """
    both = np.concatenate([first, second])
    centre = np.median(both, axis=0)
    spread = np.median(np.abs(both - centre), axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    sides = [cKDTree((side - centre) / scale) for side in (first, second)]
    k = max(3, int(math.sqrt(len(first)) / 2))

    def score(releases: FloatArray) -> FloatArray:
        x = (releases - centre) / scale
        one, other = (np.log(np.asarray(side.query(x, [k])[0])[:, 0] + 1e-300) for side in sides)
        return np.asarray(other - one)

    return score


def lowest_bit(column: int) -> Score:
    """Return the exponent of the last bit that is set in one of the numbers (1100 for a zero)."""

    def score(releases: FloatArray) -> FloatArray:
        fraction, exponent = np.frexp(releases[:, column])
        whole = np.abs(fraction * 2.0**53).astype(np.int64)
        lowest = (whole & -whole).astype(np.float64)
        with np.errstate(divide="ignore"):
            place = exponent - 53 + np.log2(lowest)
        return np.where(whole == 0, 1100.0, place)

    return score


def candidates(first: FloatArray, second: FloatArray) -> dict[str, Score]:
    """Return the attackers that know nothing beforehand, trained on pilot releases."""
    found = {"linear": linear(first, second)}
    if first.shape[1] <= MOST_FOR_QUADRATIC:
        found["quadratic"] = quadratic(first, second)
    bits = [lowest_bit(column) for column in range(first.shape[1])]
    contrast = [_contrast(bit(first), bit(second)) for bit in bits]
    found["lowest bit"] = bits[int(np.argmax(contrast))]
    return found


def _contrast(first: FloatArray, second: FloatArray) -> float:
    """Return the largest difference of the two distribution functions (Kolmogorov and Smirnov)."""
    places = np.union1d(first, second)
    shares = [np.searchsorted(np.sort(s), places, side="right") / len(s) for s in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())


def _standard(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    both = np.concatenate([first, second])
    spread = both.std(axis=0)
    return both.mean(axis=0), np.where(spread > 0, spread, 1.0)


def _gaussian(x: FloatArray) -> Score:
    centre = x.mean(axis=0)
    covariance = np.cov(x, rowvar=False).reshape(x.shape[1], -1)
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, max(float(values[-1]), 1e-300) * _RELATIVE_FLOOR)
    constant = -0.5 * float(np.log(values).sum())
    whiten = vectors / np.sqrt(values)
    return lambda y: constant - 0.5 * (((y - centre) @ whiten) ** 2).sum(axis=1)


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
        """Return how often it happened."""
        happened = scores >= self.threshold if self.above else scores <= self.threshold
        return int(happened.sum())


def proportion_floor(
    count: npt.ArrayLike, trials: int, alpha: float
) -> npt.NDArray[np.float64] | np.float64:
    """Return p with P(≥ count | p) = α: smaller proportions show so many with less than α."""
    k, places = _different(count)
    found = np.where(k > 0, betaincinv(np.maximum(k, 1), trials - k + 1, alpha), 0.0)
    return found[places][()]


def proportion_ceiling(
    count: npt.ArrayLike, trials: int, alpha: float
) -> npt.NDArray[np.float64] | np.float64:
    """Return q with P(≤ count | q) = α: larger proportions show so few with less than α."""
    k, places = _different(count)
    least = np.maximum(trials - k, 1)
    return np.where(k < trials, betaincinv(k + 1, least, 1 - alpha), 1.0)[places][()]


def epsilon_floor(
    likelier: npt.ArrayLike, rarer: npt.ArrayLike, trials: int, delta: float, alpha: float
) -> npt.NDArray[np.float64] | np.float64:
    """Return ln((p − δ)/q), p and q bounded by counting but for α/2 each; 0 if it says nothing.

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
    """Choose the event that shows the largest ε on pilot scores, which are not counted again."""
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
    """Return what fresh trials show of an event that was chosen before."""
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
    """Return a lower bound on μ, by thresholds from pilot scores and counts on fresh ones.

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
    """Bound σ ≤ (b − a)/(Φ⁻¹(F(b)) − Φ⁻¹(F(a))), F(b) from below and F(a) from above."""
    a, b = centre - _WIDTH * deviation, centre + _WIDTH * deviation
    upper = _share(scores <= b, alpha, floor=True)
    lower = _share(scores <= a, alpha, floor=False)
    if upper <= lower:
        return math.inf
    return (b - a) / float(ndtri(upper) - ndtri(lower))


def _different(count: npt.ArrayLike) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Return the different counts, and where each of those given is among them: thresholds share
    some.
    """
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


Draw = Callable[[bool, int], FloatArray]  # from which of the two, how many → (trials, k)

LEAST_TRIALS = 100
_PILOT = 0.2  # of the trials, half for training and half for choosing


@dataclass(frozen=True)
class Finding:
    """What one attack found: ε is at least `audited`, where `promised` was promised at δ.

    `counted` assumes nothing. `gaussian` is the same evidence against a claim of μ-GDP, where that
    is what was claimed. `exact` is the true ε of this pair, where it is known.
    """

    view: str
    pair: str
    attack: str
    trials: int
    promised: float
    delta: float
    counted: float
    gaussian: float | None = None
    exact: float | None = None

    @property
    def audited(self) -> float:
        """The larger of the two bounds."""
        return max(self.counted, self.gaussian or 0.0)

    @property
    def ratio(self) -> float:
        """How much of the promised ε was found."""
        return self.audited / self.promised

    @property
    def broken(self) -> bool:
        """Whether more was found than was promised."""
        return self.audited > self.promised

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        found = {"audited": self.audited, "ratio": self.ratio, "broken": self.broken}
        return asdict(self) | found


class Findings(list[Finding]):
    """What several attacks found: a list that a notebook shows as a table."""

    def plot(self, ax: Any = None) -> Any:
        """Audited over promised ε, a bar for each attack; the axes are returned."""
        ax = axes(ax, 8, 1 + 0.45 * len(self))
        names = [f"{one.view}: {one.pair}" for one in self]
        colours = ["tab:red" if one.broken else "tab:blue" for one in self]
        ax.barh(range(len(self)), [one.ratio for one in self], color=colours)
        ax.set_yticks(range(len(self)), names)
        ax.axvline(1, color="black", linewidth=1)
        ax.invert_yaxis()
        ax.set_xlabel("audited ε over promised ε (beyond 1: broken)")
        return ax

    def _repr_html_(self) -> str:
        head = ["seen", "neighbours", "attack", "promised ε", "ε is at least", "verdict"]
        rows = [
            [
                one.view,
                one.pair,
                one.attack,
                f"{one.promised:.4g}",
                f"{one.audited:.4g}",
                "BROKEN" if one.broken else "not refuted",
            ]
            for one in self
        ]
        return html_table(head, rows)


def examine(
    draw: Draw,
    *,
    trials: int,
    confidence: float,
    promise: tuple[float, float],
    labels: tuple[str, str],
    attacks: Mapping[str, Score] | None = None,
    gaussian: float | None = None,
    bridge: bool = False,
    exact: float | None = None,
) -> Finding:
    """Train, choose, count. `gaussian` is the δ to read a claim of μ-GDP at, if there is one."""
    whole(trials=trials)
    inside_unit_interval(confidence=confidence)
    nonnegative(epsilon=promise[0], delta=promise[1])
    if trials < LEAST_TRIALS:
        raise InvalidValueError(
            f"Expected trials={trials} >= {LEAST_TRIALS}: fewer show nothing. A thousand show up "
            "to about ε = 4, a hundred thousand up to about 8."
        )
    pilot = int(_PILOT * trials / 2)
    training, choosing, fresh = (
        (draw(False, count), draw(True, count)) for count in (pilot, pilot, trials - 2 * pilot)
    )
    alpha = (1 - confidence) / (1 if gaussian is None else 2)
    scores = {**candidates(*training), **(attacks or {})}
    name, event = _best(scores, choosing, promise[1], alpha)
    counted = counted_epsilon(
        event, scores[name](fresh[0]), scores[name](fresh[1]), promise[1], alpha
    )
    read = None
    if gaussian is not None:
        straight = scores.get("known direction", scores["linear"])
        mu = gaussian_mu(
            (straight(choosing[0]), straight(choosing[1])),
            (straight(fresh[0]), straight(fresh[1])),
            alpha,
            bridge=bridge,
        )
        read = epsilon_of(mu, gaussian)
    return Finding(*labels, name, trials, *promise, counted, read, exact)


def _best(
    scores: Mapping[str, Score], choosing: tuple[FloatArray, FloatArray], delta: float, alpha: float
) -> tuple[str, Event]:
    """Return the attacker and event that show most on trials which neither has seen."""
    best: tuple[float, str, Event] | None = None
    for name, score in scores.items():
        first, second = score(choosing[0]), score(choosing[1])
        event = choose_event(first, second, delta, alpha)
        shown = counted_epsilon(event, first, second, delta, alpha)
        if best is None or shown > best[0]:
            best = (shown, name, event)
    assert best is not None
    return best[1], best[2]
