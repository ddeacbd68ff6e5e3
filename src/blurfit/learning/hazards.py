"""Additive hazards, curves and tests from blurred sums of exits.

With Σφ ⊗ (1, x) = (B_j, D_k) by knots and bands, E_k = (1/K)Σ_{j>k} B_j is the time at risk in band
k, in all and times x, and D_k the events. Write E_k0 and E_kx for the two parts, x̄_k = E_kx/E_k0.

**Coefficients.** The hazard of x in band k is λ_k + β·x, per horizon. Least squares for such
a piecewise constant baseline (Lin and Ying 1994) is exact for it:

    A = ΣT·xxᵀ − ΣE_k0·x̄_kx̄_kᵀ,   b = ΣD_kx − ΣD_k0·x̄_k,
    β̂ = (A + G)⁻¹b,   λ_k = D_k0/E_k0 − x̄_k·β̂,

where G = (s²/2α²)(tr(A⁻¹)·I + A⁻¹) takes back the second-order bias of the noise on A
(`blurfit.learning.inference`).

**Sampling error**, of the martingales of the events, whatever the censoring is that does not look
ahead: with M = Σd·xxᵀ − Σ(x̄_kD_kxᵀ + D_kxx̄_kᵀ) + ΣD_k0·x̄_kx̄_kᵀ, V = A⁻¹MA⁻¹ is the covariance of β̂,
h_k = A⁻¹(D_kx − D_k0·x̄_k)/E_k0 its covariance with D_k0/E_k0, and so

    Cov(β̂, λ_k) = h_k − Vx̄_k,   Cov(λ_k, λ_l) = [k = l]·D_k0/E_k0² − x̄_k·h_l − x̄_l·h_k + x̄_kVx̄_l.

M is blurred itself, and is taken to its nearest positive semidefinite matrix.

**Privacy error.** The noise is known, so it is drawn again, 200 times, added to what was released,
and everything is computed anew: post-processing. The covariance of what comes out is told. Draws
follow from the release, so that everybody who has it finds the same errors.

**Curves** of everybody, or of those in a group that some column tells: their exposure and events
are combinations of E_k and D_k, and S = exp(−Σ_k D_k/(K·E_k)) at the ends of bands. The variance of
its logarithm is ΣD_k/(K·E_k)² and the privacy part; intervals are made of the logarithm of −ln S,
or of −ln S itself where that may be 0.

**Log-rank test** of groups g that a column tells: with π_kg = E_kg/E_k0, U_g = Σ(D_kg − D_k0π_kg)
has the covariance ΣD_k0(diag π_k − π_kπ_kᵀ) if all have the same hazard, and the privacy part.

**Refused.** Fewer events than 20 standard deviations of a number's noise on a count, with the
number needed; a last band in which nobody is at risk for sure; and coefficients whose A the noise
could have made (κ ≥ 0.3, as for lines).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import chdtrc, ndtri

from blurfit.data import FloatArray
from blurfit.errors import InfeasibleError, inside_unit_interval
from blurfit.learning.inference import Inference
from blurfit.theory.hazards import OF_TIME, EventForm, code_of

DRAWS = 200
LEAST_EVENTS = 20.0  # standard deviations of the noise on a count
LEAST_AT_RISK = 4.0
MOST_CONDITION = 0.3


@dataclass(frozen=True, eq=False)
class Curve:
    """A survival curve at the ends of bands, times as shares of the horizon, from S(0) = 1.

    `variance` is that of the cumulated hazard, and `privacy` the part of it that is due to noise;
    `at_risk` is time at risk in each band, `events` how many there were: estimates, both.
    """

    times: FloatArray
    survival: FloatArray
    variance: FloatArray
    privacy: FloatArray
    at_risk: FloatArray
    events: FloatArray

    def interval(self, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends, pointwise, inside of 0 and 1."""
        inside_unit_interval(confidence=confidence)
        hazard = -np.log(self.survival)
        reach = float(ndtri((1 + confidence) / 2)) * np.sqrt(self.variance)
        unclear = reach >= hazard  # of hazards that may be 0, no logarithm is told
        spread = np.exp(np.divide(reach, hazard, out=np.zeros_like(reach), where=~unclear))
        most = np.where(unclear, hazard + reach, hazard * spread)
        least = np.where(unclear, 0.0, hazard / spread)
        return np.exp(-most), np.exp(-least)


@dataclass(frozen=True)
class LogRank:
    """A log-rank test: whether groups have the same hazard."""

    statistic: float
    freedom: int
    p_value: float


class EventSums:
    """Blurred sums of exits as `count` people sent them, with noise of s = `deviation`.

    `used` are the places of the columns that hazards follow: all but the first of each group.
    """

    def __init__(self, form: EventForm, sums: FloatArray, count: int, deviation: float) -> None:
        self.form, self.sums, self.count, self.deviation = form, sums, count, deviation
        groups = [column.group for column in form.inner.columns]
        shares = [column.is_share for column in form.inner.columns]
        first = [groups.index(group) for group in groups]
        self.used = [at for at in range(len(groups)) if not shares[at] or first[at] < at]

    @cached_property
    def _released(self) -> tuple[FloatArray, ...]:
        """What was released."""
        return self.form.read(self.sums, self.count)

    @cached_property
    def _draws(self) -> list[tuple[FloatArray, ...]]:
        """What was released, and what it could have been with noise once more."""
        seed = hashlib.sha256(np.asarray(self.sums, dtype="<f8").tobytes()).digest()
        generator = np.random.default_rng(list(seed))
        scale = self.deviation / np.sqrt(self.form.counts)
        again = self.sums + scale * generator.normal(size=(DRAWS, len(scale)))
        return [self._released, *(self.form.read(one, self.count) for one in again)]

    def require_events(self) -> None:
        """Refuse sums of which no hazard can be told: fewer events than `LEAST_EVENTS` deviations
        of the noise on a count, or nobody in the last band.
        """
        form, K = self.form, self.form.bands
        exits = self._released[2][:, 0]
        noise = self.deviation / (form.weight * form.inner.constant)
        found, least = float(exits[K + 1 :].sum()), LEAST_EVENTS * noise
        if found < least:
            raise InfeasibleError(
                "Expected about {least:,.0f} events and more to tell hazards with this noise, and "
                "there were about {number:,.0f}: collect more people, or allow a larger "
                "epsilon.",
                least=least,
                number=max(found, 0),
            )
        spread = np.linalg.inv(code_of(K).T @ code_of(K))
        last = float(exits[K]) / K, noise * float(np.sqrt(spread[K, K])) / K
        if last[0] < LEAST_AT_RISK * last[1]:
            raise InfeasibleError(
                "Expected people who are still observed in the last band, and there are too few "
                "to tell from the noise: take a shorter horizon, or collect more people."
            )

    @cached_property
    def solved(self) -> tuple[FloatArray, FloatArray]:
        """β̂ of the used columns of x, then λ_k, per horizon, and what sampling adds to them."""
        self.require_events()
        if not self._condition < MOST_CONDITION:
            raise InfeasibleError(
                "The noise could have made the spread of some feature by itself, so no coefficient "
                "can be told: use fewer features or tighter bounds, collect more people, or allow "
                "a larger epsilon. Curves and tests need less."
            )
        return _solve(self._released, self.used, self.deviation)

    @cached_property
    def model(self) -> Inference:
        """The same, with the covariance that privacy adds."""
        values, sampling = self.solved
        names = [self.form.inner.columns[place].name for place in self.used]
        again = [_solve(one, self.used, self.deviation)[0] for one in self._draws[1:]]
        return Inference(
            names=(*names, *_band_names(self.form.bands)),
            count=max(self.count, len(values) + 2),
            coefficients=values,
            sampling=sampling,
            privacy=np.atleast_2d(np.cov(np.array(again).T)),
            residual_variance=None,
            r_squared=None,
            condition=self._condition,
            uneven=False,
        )

    def curve(self, group: FloatArray | None = None) -> Curve:
        """Return the curve of everybody, or of those whose share (1, x)·group is 1, else 0."""
        self.require_events()
        K = self.form.bands
        combination = np.eye(1 + len(self.form.kept))[0] if group is None else group
        each = np.array([_exposure(one[2] @ combination, K) for one in self._draws])
        at_risk, events = each[0]
        if not (at_risk >= LEAST_AT_RISK * each[1:, 0].std(axis=0)).all():
            raise InfeasibleError(
                "Expected people of the group who are observed in every band, and there are too "
                "few to tell from the noise: take fewer bands, or compare larger groups."
            )
        hazards = np.cumsum(each[:, 1] / each[:, 0], axis=1) / K
        privacy = hazards[1:].var(axis=0)
        sampling = np.cumsum(np.maximum(events, 0.0) / at_risk**2) / K**2
        cumulated = np.maximum.accumulate(np.maximum(hazards[0], 0.0))
        return Curve(
            times=np.arange(K + 1) / K,
            survival=np.exp(-np.append(0.0, cumulated)),
            variance=np.append(0.0, sampling + privacy),
            privacy=np.append(0.0, privacy),
            at_risk=at_risk,
            events=events,
        )

    def log_rank(self, groups: Sequence[FloatArray]) -> LogRank:
        """Test whether all groups, which are everybody together, have the same hazard."""
        self.require_events()
        each = [_scores(one[2], groups, self.form.bands) for one in self._draws]
        scores, sampling = each[0]
        privacy = np.atleast_2d(np.cov(np.array([one[0] for one in each[1:]]).T))
        found = float(scores @ np.linalg.solve(sampling + privacy, scores))
        return LogRank(found, len(scores), float(chdtrc(len(scores), found)))

    @cached_property
    def _condition(self) -> float:
        """κ of A: how much the noise could have made of it."""
        values = np.linalg.eigvalsh(_curvature(self._released, self.used)[0])
        if values[0] <= 0:
            return float("inf")
        noise = (self.deviation / OF_TIME) ** 2 / 2
        return float(noise * ((1 / values).sum() + 1 / values[0]) / values[0])


def _band_names(count: int) -> list[str]:
    return [f"band {place + 1}" for place in range(count)]


def _exposure(exits: FloatArray, bands: int) -> FloatArray:
    """Return E_k and D_k, (2, K), of one combination of columns."""
    at_risk = np.cumsum(exits[bands::-1])[::-1][1:] / bands
    return np.array([at_risk, exits[bands + 1 :]])


def _bands(exits: FloatArray, used: Sequence[int], bands: int) -> tuple[FloatArray, ...]:
    """Return E_k0, x̄_k, D_k0 and D_kx."""
    places = [1 + place for place in used]
    at_risk = np.cumsum(exits[bands::-1], axis=0)[::-1][1:] / bands
    means = at_risk[:, places] / at_risk[:, :1]
    events = exits[bands + 1 :]
    return at_risk[:, 0], means, events[:, 0], events[:, places]


def _curvature(read: tuple[FloatArray, ...], used: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Return A and b."""
    by_time, _, exits = read
    at_risk, means, count, events = _bands(exits, used, len(exits) // 2)
    curvature = by_time[np.ix_(used, used)] - (means.T * at_risk) @ means
    return curvature, events.sum(axis=0) - count @ means


def _solve(
    read: tuple[FloatArray, ...], used: Sequence[int], deviation: float
) -> tuple[FloatArray, FloatArray]:
    """Return (β̂, λ) and the sampling covariance of both."""
    _, by_event, exits = read
    p, K = len(used), len(exits) // 2
    at_risk, means, count, events = _bands(exits, used, K)
    curvature, score = _curvature(read, used)
    inverse = np.linalg.inv(curvature)
    noise = (deviation / OF_TIME) ** 2 / 2
    inverse = np.linalg.inv(curvature + noise * (np.trace(inverse) * np.eye(p) + inverse))
    slopes = inverse @ score
    values = np.concatenate([slopes, count / at_risk - means @ slopes])
    cross = means.T @ events
    meat = by_event[np.ix_(used, used)] - cross - cross.T + (means.T * count) @ means
    spread = inverse @ _positive(meat) @ inverse
    h = ((events - count[:, None] * means) / at_risk[:, None]) @ inverse  # (K, p)
    of_bands = np.diag(np.maximum(count, 0.0) / at_risk**2) - means @ h.T - h @ means.T
    covariance = np.empty((p + K, p + K))
    covariance[:p, :p] = spread
    covariance[:p, p:] = h.T - spread @ means.T
    covariance[p:, :p] = covariance[:p, p:].T
    covariance[p:, p:] = of_bands + means @ spread @ means.T
    return values, _positive(covariance)


def _scores(
    exits: FloatArray, groups: Sequence[FloatArray], bands: int
) -> tuple[FloatArray, FloatArray]:
    """Return U of all groups but the last, and its covariance where hazards are equal."""
    whole = _exposure(exits[:, 0], bands)
    each = np.array([_exposure(exits @ group, bands) for group in groups[:-1]])  # (G, 2, K)
    shares = each[:, 0] / whole[0]
    scores = (each[:, 1] - shares * whole[1]).sum(axis=1)
    weighted = shares * whole[1]
    return scores, np.diag(weighted.sum(axis=1)) - weighted @ shares.T


def _positive(matrix: FloatArray) -> FloatArray:
    """Return the nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
