"""Times to an event: exits, from which hazards, survival curves and tests follow.

Used if an agreement asks for a time and an event (`blurfit.agreement.mechanisms.form_of`). A person
has features x, ‖x‖ ≤ ρ, and leaves observation at the time T in [0, 1] of the horizon, by the event
(d = 1) or without it (d = 0). Time has K bands of equal length.

    b(T): 0 except for the two knots around T, which share 1;  e: the indicator of the event's band
    φ(T, d) = (b(T), d·e):  its sums over people are exposures and events by band, exactly
    a(T, d) = (√t·T, √t·(1 − T), √v·d, √(v + u)·(1 − d), √h·b(T), √u·d·e) = Cφ,  t + v + u + h = 1
    submitted: (α·T·xxᵀ, β·d·xxᵀ, w·a(T, d) ⊗ (c, x)),  α² + β² = 1

a·a' ≥ 0 and ‖a‖ ≤ 1, however many bands there are, and Σφ follows by least squares. Δ is the
maximum of a closed form over pairs of extreme points, which have T at a knot, and d = 0, or an
event in a band that the knot ends (`EventForm.sensitivity`). It is exact; with one column of
features it is an upper bound. `zero-out` is relative to a record that adds nothing; one submission
has the Δ of `replace`. Several spells of one person, each from its own time 0 on, are averaged,
which has the Δ of one. The T, d and x of a person are not revealed.

Proof: `docs/theory/exits.md`. Test: `tests/theory/test_events.py`. Chosen: t = 0.28, u = 0.315, h =
0.16/K, near the least variances for K from 4 to 24; α = 0.95, which costs 5 % of noise.

**Log-odds of an event**, by later waves. The model is a discrete-time logistic hazard: in each band
that somebody is at risk in, the event happens with probability p_k = 1/(1 + exp(−α_k − β·v)). A
band is a row of logistic regression, z_k = (ω·e_k, x), and Newton's quadratic of a person at the
announced (α, β) is the sum over their bands,

    M = Σ_k h_k·z_kz_kᵀ,   g = d·z_e − Σ_k p_k·z_k,   h_k = p_k(1 − p_k),

e being the band of the event, if there was one (d = 1). Whoever stops being observed within a band
counts there with the part π of it that they were seen in: h = π·p(1 − p), and π·p in g. Entries of
M between two bands are 0 for everybody, and not sent.

**Trick S: stop, never scale down.** Somebody with high hazards has many expected events, and a
person's sums must be bounded. So everybody is observed only as long as Σp_k ≤ L: whoever would pass
the bound with the next band is taken as no longer observed from its start on. When that is depends
on their features and on the announced model, never on their event, so it is censoring that
does not look ahead, and the equation Σg = 0 still has its root at the truth. (To scale the
contribution down instead is biased however many people there are.) The first band is always
observed, as L ≥ 1. Where the model is not true, whom one stops matters; L grows with the number of
people until nobody is stopped, as radii do.

**Features** are x = b·f/(r√p), f = W(v − m), b² = 1 − ω². Beyond ‖f‖ = r√p a person is weighted by
λ², λ = r√p/‖f‖, which depends on features alone: with y = λx, on the sphere of radius b,

    M has λ²ω²·h_k for a band, λω·h_k·y beside it, S·yyᵀ for features, S = Σh_k;
    g has λ²ω(d·e_e − p) for bands and λ(d − P)·y for features, P = Σp_k.

**Sensitivity.** Noise is σ on M, τσ on g. With ω² = 0.3 and τ = 1.25, whatever map is announced,

    **Δ = 2L/τ, exactly for L = 1, and at most that beyond; `zero-out`: at most L√(τ²b⁴ + b²)/τ.**

So the curvature is free, as for labels: 2/τ is what g alone takes. It is attained by two people of
the same x, one with the event in a band that was certain not to have it, one without it in the same
band though it was certain. (Lemma P and the triangle inequality would give 1.44 times as much.)
Beyond L = 1 a search of eight bands finds 0.92, 0.92 and 0.87 of the bound at L = 1.5, 2 and 4.

*Proof.* Let all p_k be πp_k, so that h_k ≤ p_k(1 − p_k). It is enough to take L = 1: divide a
contribution by L, and p_k/L sum to at most 1, h_k/L ≤ (p_k/L)(1 − p_k/L), and d/L lies between 0
and 1, so it is a convex combination of one with d = 0 and one with d = 1 (Lemma H). Write R =
Σp_k², so S ≤ P − R, Q = Σh_k² and N = Σh_kh'_k. For two people with x·x' = ∓b²c, c ≥ 0,

    τ²F = τ²[b⁴(S² + S'² − 2c²SS') + (1 − b⁴)(Q + Q') ± 4ω²b²cN − 2ω⁴N] + ‖g − g'‖².

1. *Norms.* For λ = 1 and norms r, r' of x in place of b the terms in c depend on rr'c alone, up to
   rr'. If the best rr'c is inside, the rest grows with r and r'; if it is rr', its derivative there
   is not negative, and neither is that of F by r. So r = r' = b. λ < 1 makes all terms of bands
   smaller in the bounds below, and those are convex in λ beside it, so that λ = 0 or 1 is worst;
   λ = 0, where g has no features of that person, leaves less than 4.
2. *Bands that are as even as can be.* Q = Σp_k·[p_k(1 − p_k)²] ≤ φ(R), where φ is the concave
   envelope of t(1 − t)²: itself up to ½, then (1 − t)/4 (Jensen with weights p_k/P; the perspective
   Pφ(R/P) grows with P).
3. *P.* What remains is convex in S, which is therefore 0 or P − R; and for S = P − R it is convex
   in P at fixed R, as g's features are linear in P: P = 1, or P = R, where S is 0. For S = 0, and
   so Q = 0, it grows with R up to R = P. So for each person P = 1 and S = 1 − R, or P = R and
   S = 0. This leaves

   * d = d' = 0, x opposed: b²(P² + P'² + 2cPP') + ω²(R + R') beside the terms of M, in which N ≤
     (Q + Q')/2: at most 3.87, for R = 0, R' = 1, c = 1.
   * d = 1, d' = 0, x alike: b²((1 − P)² + P'² + 2c(1 − P)P') + ω²(1 + R + R' + 2p'_e). For
     P = R = 0 and P' = 1, with t = p'_e and ρ = R' − t², of which the other bands have
     (1 − t)φ(ρ/(1 − t)) of Q', it is at most 4 exactly if

         τ²b⁴(1 − t² − ρ)² + τ²(1 − b⁴)[t²(1 − t)² + (1 − t)φ(ρ/(1 − t))] + ω²ρ ≤ ω²(1 − t)(3 + t),

     which holds up to τ² = 1.616 (there t = 0.33, ρ = 0), with equality at t = 1. It falls as P = R
     grows from 0; for P = 1 it is at most 3; and for opposed x at most 3.5.
   * d = d' = 1, x opposed: b²((1 − P)² + (1 − P')² + 2c(1 − P)(1 − P')), ω²(2 + R + R' + 2p_e' +
     2p'_e), and M as in the first: at most 3.5.

   All three are functions of up to three numbers between 0 and 1, which the tests take to a grid.
   `zero-out`: τ²(b⁴(1 − R)² + (1 − b⁴)φ(R)) + b² + ω²R is largest at R = 0, and for d = 1 less. ∎

In floating point the map is total, as those of `blurfit.theory.maps` are: what is not a number
counts as 0, and nothing is raised for a value. As above, spells of one person are averaged.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from blurfit.data import BoolArray, FloatArray, fixed
from blurfit.errors import InvalidValueError, one_of, positive, whole
from blurfit.theory.forms import (
    Form,
    JointForm,
    Places,
    WaveForm,
    pair_counts,
    pair_names,
    places,
    public_zeros,
    symmetric,
)
from blurfit.theory.maps import (
    LARGEST_RADIUS,
    LARGEST_SCORE,
    GaugeMap,
    PublicMap,
    WaveMap,
    Whitening,
    gaussian_mean,
    into_ball,
    norms,
    numbers,
    within,
)
from blurfit.theory.moments import NEIGHBOURS, NUDGE, Neighbours

LEAST_BANDS, MOST_BANDS = 2, 48  # as in `blurfit.schema.columns`
OF_TIME = 0.95  # α
OF_EVENT = math.sqrt(1 - OF_TIME * OF_TIME)  # β
_TIME, _BAND, _KNOT = 0.28, 0.315, 0.16  # t, u and K·h
BAND = math.sqrt(0.3)  # ω
FEATURES = math.sqrt(0.7)  # b
BALANCE = 1.25  # τ


def code_of(bands: int) -> FloatArray:
    """Return C with a = Cφ: (2K + 5, 2K + 1).

    >>> code = code_of(8)
    >>> spread = np.linalg.inv(code.T @ code)
    >>> events = np.repeat([0.0, 1.0], [9, 8])
    >>> round(float(np.sqrt(events @ spread @ events)), 2)
    1.36
    """
    whole(bands=bands)
    if not LEAST_BANDS <= bands <= MOST_BANDS:
        raise InvalidValueError(f"Expected bands={bands} from {LEAST_BANDS} to {MOST_BANDS}.")
    knots, (t, v, u_v, h, u) = np.arange(bands + 1) / bands, _roots(bands)
    found = np.zeros((2 * bands + 5, 2 * bands + 1))
    found[:2, : bands + 1] = t * knots, t * (1 - knots)
    found[2, bands + 1 :] = v
    found[3, : bands + 1], found[3, bands + 1 :] = u_v, -u_v
    found[4:] = np.diag(np.repeat([h, u], [bands + 1, bands]))
    return fixed(found)


def _roots(bands: int) -> tuple[float, ...]:
    """√t, √v, √(v + u), √h and √u."""
    knot = _KNOT / bands
    event = 1 - _TIME - _BAND - knot  # v
    return tuple(map(math.sqrt, (_TIME, event, event + _BAND, knot, _BAND)))


def codes_of(time: FloatArray, event: FloatArray, bands: int) -> FloatArray:
    """Return a(T, d) = Cφ(T, d), (…, 2K + 5), number by number, so that every machine rounds alike.

    >>> np.allclose(codes_of(np.array(0.4), np.array(1.0), 8), code_of(8) @ exits(0.4, 1.0, 8))
    True
    """
    t, v, u_v, h, u = _roots(bands)
    hats, happened = np.split(exits(time, event, bands), [bands + 1], axis=-1)
    totals = np.stack([t * time, t * (1 - time), v * event, u_v * (1 - event)], axis=-1)
    return np.concatenate([totals, h * hats, u * happened], axis=-1)


def exits(time: FloatArray, event: FloatArray, bands: int) -> FloatArray:
    """Return φ(T, d): (…, 2K + 1); times are cut to the horizon.

    >>> exits(np.array([0.75]), np.array([1.0]), 2).tolist()
    [[0.0, 0.5, 0.5, 0.0, 1.0]]
    """
    at = np.clip(np.asarray(time, dtype=np.float64), 0.0, 1.0) * bands
    band = np.minimum(at.astype(np.intp), bands - 1)[..., None]
    part = at[..., None] - band
    found = np.zeros((*at.shape, 2 * bands + 1))
    np.put_along_axis(found, band, 1 - part, axis=-1)
    np.put_along_axis(found, band + 1, part, axis=-1)
    np.put_along_axis(found, band + bands + 1, np.asarray(event, dtype=np.float64)[..., None], -1)
    return found


def extreme_exits(bands: int) -> FloatArray:
    """Return φ at the extreme points: (3K + 1, 2K + 1)."""
    found = []
    for knot in range(bands + 1):
        none = np.zeros(2 * bands + 1)
        none[knot] = 1
        found.append(none)
        for band in {max(knot - 1, 0), min(knot, bands - 1)}:
            one = none.copy()
            one[bands + 1 + band] = 1
            found.append(one)
    return np.array(found)


@dataclass(frozen=True)
class EventForm(Form):
    """(α·T·xxᵀ, β·d·xxᵀ, w·a(T, d) ⊗ (c, x)) of records with a time and an event.

    >>> from blurfit.theory.forms import JointColumn
    >>> inner = JointForm(0.5, (JointColumn("age", 0.8), JointColumn("sex", 0.6, "sign")))
    >>> form = EventForm(inner, (0, 1), 2, 3, bands=2, weight=1.0)
    >>> form.width, form.names[:4]
    (33, ('time·age·age', 'time·age·sex', 'time·sex·sex', 'event·age·age'))
    """

    inner: JointForm  # the columns of x with their weights, and the constant c
    kept: tuple[int, ...]  # which of a record's columns those of `inner` are
    time: int  # the column of the time, −1 at 0 and 1 at the horizon
    event: int  # the column of the event, ±1
    bands: int  # K
    weight: float  # w

    def __post_init__(self) -> None:
        positive(weight=self.weight)
        code_of(self.bands)
        if len(self.kept) != len(self.inner.columns):
            raise InvalidValueError("Expected a place for each column of the features.")

    def sensitivity(self, neighbours: Neighbours) -> float:
        """Δ over pairs of extreme points, or over one beside nothing."""
        one_of(NEIGHBOURS, neighbours=neighbours)
        return self._reaches[NEIGHBOURS.index(neighbours)]

    @cached_property
    def _reaches(self) -> tuple[float, float]:
        """Δ of `replace` and of `zero-out`."""
        K, c, rho, w2 = self.bands, self.inner.constant, self.inner.radius, self.weight**2
        points = extreme_exits(K)
        codes = points @ code_of(K).T
        time, event = points[:, : K + 1] @ np.arange(K + 1) / K, points[:, K + 1 :].sum(axis=1)
        u = np.column_stack([OF_TIME * time, OF_EVENT * event])
        both, g = u @ u.T, codes @ codes.T
        squares = np.diag(both)[:, None] + np.diag(both)
        norms = np.diag(g)[:, None] + np.diag(g)
        inside = w2 * g <= 2 * rho**2 * both
        with np.errstate(divide="ignore", invalid="ignore"):
            top = np.where(both > 0, (w2 * g) ** 2 / (2 * both), 0.0)
        more = np.where(inside, top, 2 * rho**2 * (w2 * g - rho**2 * both))
        apart = rho**4 * squares + w2 * rho**2 * norms + w2 * c**2 * (norms - 2 * g) + more
        alone = rho**4 * np.diag(both) + w2 * (c**2 + rho**2) * np.diag(g)
        return math.sqrt(apart.max()) * NUDGE, math.sqrt(alone.max()) * NUDGE

    @cached_property
    def _pairs(self) -> Places:
        """The places of the products of two columns that are sent."""
        rows, columns = places(len(self.kept))
        known = public_zeros(self.inner.columns)[rows + 1, columns + 1]
        return fixed(rows[~known]), fixed(columns[~known])

    @cached_property
    def counts(self) -> FloatArray:
        """How often each number counts in the squared norm: twice off a diagonal."""
        products = pair_counts(self._pairs)
        coded = np.ones((2 * self.bands + 5) * (len(self.kept) + 1))
        return fixed(np.concatenate([products, products, coded]))

    @property
    def names(self) -> tuple[str, ...]:
        """What each number is about: products times time, times event, and codes of exits."""
        labels = [column.name for column in self.inner.columns]
        pairs = pair_names(labels, self._pairs)
        exits_ = [f"exit {place}" for place in range(2 * self.bands + 5)]
        return (
            *(f"{what}·{pair}" for what in ("time", "event") for pair in pairs),
            *(f"{one}·{label}" for one in exits_ for label in ("1", *labels)),
        )

    def products(self, values: FloatArray) -> FloatArray:
        """Return the numbers that are sent, not blurred yet: (…, width) from columns v (…, k)."""
        x = values[..., list(self.kept)] * self.inner.scale[1:]
        time = np.clip((np.nan_to_num(values[..., self.time], nan=-1.0) + 1) / 2, 0.0, 1.0)
        event = np.where(values[..., self.event] > 0, 1.0, 0.0)
        rows, columns = self._pairs
        pairs = x[..., rows] * x[..., columns]
        code = self.weight * codes_of(time, event, self.bands)
        z = np.concatenate([np.full((*x.shape[:-1], 1), self.inner.constant), x], axis=-1)
        coded = (code[..., :, None] * z[..., None, :]).reshape(*x.shape[:-1], -1)
        both = OF_TIME * time[..., None] * pairs, OF_EVENT * event[..., None] * pairs
        return np.concatenate([*both, coded], axis=-1)

    def matrix(self, sums: object, count: int) -> FloatArray:
        """Return the sums as they are, (1, width): there is no Σzzᵀ."""
        del count
        return np.array(sums, dtype=np.float64)[None]

    def read(self, sums: FloatArray, count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return ΣT·xxᵀ, Σd·xxᵀ and Σφ ⊗ (1, x), by least squares, as `count` people sent them.

        Everybody has left by some time, so the first column's hats sum to the count; what the noise
        adds to that is taken away where it costs least.
        """
        size, p = len(self._pairs[0]), len(self.kept)
        by_time, by_event, coded = np.split(np.asarray(sums), [size, 2 * size])
        code = code_of(self.bands)
        spread = np.linalg.inv(code.T @ code)
        coded = coded.reshape(len(code), p + 1) / self.weight
        coded = coded / np.array([self.inner.constant, *np.ones(p)])
        exits_ = spread @ (code.T @ coded)
        hats = np.repeat([1.0, 0.0], [self.bands + 1, self.bands])
        exits_[:, 0] -= spread @ hats * (hats @ exits_[:, 0] - count) / (hats @ spread @ hats)
        grams = (
            symmetric(self._pairs, by_time / OF_TIME, p),
            symmetric(self._pairs, by_event / OF_EVENT, p),
        )
        return *grams, exits_


@dataclass(frozen=True, eq=False)
class HazardMap(PublicMap):
    """(M, g) of a person's bands at announced log-odds, observed while Σp_k ≤ L.

    >>> chart = HazardMap(Whitening([0.0], [[2.0]], [1.0]), [-3.0, -3.0])
    >>> round(chart.sensitivity() * chart.balance, 6), round(chart.sensitivity("zero-out"), 4)
    (2.0, 0.9685)
    """

    whitening: Whitening  # m, W and the slopes β of the log-odds
    bands: FloatArray  # α, the log-odds at v = 0, beside the whitening's own intercept
    events: float = 1.0  # L ≥ 1, the expected events until which a person is observed
    radius: float = 1.0  # r ≥ 1; a person with ‖f‖ > r√p counts less
    kind = "hazard"
    written: ClassVar[tuple[str, ...]] = "bands", "events", "radius"
    robust: ClassVar[bool] = False
    balance: ClassVar[float] = BALANCE

    def __post_init__(self) -> None:
        bands = numbers(LARGEST_SCORE, bands=self.bands)
        if bands.ndim != 1 or not LEAST_BANDS <= len(bands) <= MOST_BANDS:
            raise InvalidValueError(
                f"Expected bands to be {LEAST_BANDS} to {MOST_BANDS} log-odds, got {bands.shape}."
            )
        object.__setattr__(self, "bands", fixed(bands))
        within(1.0, float(MOST_BANDS), events=self.events)
        within(1.0, LARGEST_RADIUS, radius=self.radius)

    @property
    def scale(self) -> float:
        """What f is multiplied by in x: b/(r√p)."""
        return FEATURES / self.spread(self.radius)

    @cached_property
    def mean_curvature(self) -> float:
        """E[S] for Gaussian features, by what the map itself says of them, if all are observed."""

        def curvature(score: FloatArray) -> FloatArray:
            p = expit(score[:, None] + self.bands)
            still = np.cumprod(1 - p, axis=1) / (1 - p)
            return np.asarray((still * p * (1 - p)).sum(axis=1))

        return gaussian_mean(curvature, *self.whitening.scores)

    def sensitivity(self, neighbours: Neighbours = "replace") -> float:
        """Δ of (ΣM, Σg), whatever is announced: see the module's docstring."""
        one_of(NEIGHBOURS, neighbours=neighbours)
        alone = math.hypot(BALANCE * FEATURES**2, FEATURES)
        return self.events * (2.0 if neighbours == "replace" else alone) / BALANCE * NUDGE

    def hazards(self, v: ArrayLike) -> tuple[FloatArray, BoolArray]:
        """Return p_k, and which bands a person is observed in: (…, K) each.

        Scores are summed row by row and not by a matrix product, which may round a row differently
        beside others: where observation ends depends on the person's own row alone.
        """
        white, rows = self.whitening, np.ascontiguousarray(v, dtype=np.float64)
        with np.errstate(all="ignore"):
            t = np.nan_to_num((rows * white.coefficients).sum(axis=-1) + white.intercept)
        score = np.clip(t, -LARGEST_SCORE, LARGEST_SCORE)[..., None] + self.bands
        p = expit(np.clip(score, -LARGEST_SCORE, LARGEST_SCORE))
        return p, np.cumsum(p, axis=-1) <= self.events

    def records(
        self, v: ArrayLike, time: ArrayLike, event: ArrayLike
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return (y, λ, h, d·e − p) of people who left at shares of the horizon, by an event or
        not: (…, p), (…), (…, K) and (…, K).
        """
        count = len(self.bands)
        at = np.clip(np.nan_to_num(np.asarray(time, dtype=np.float64)), 0.0, 1.0) * count
        band = np.minimum(at.astype(np.intp), count - 1)[..., None]
        happened = (np.asarray(event, dtype=np.float64) > 0)[..., None]
        p, observed = self.hazards(v)
        seen = np.clip(at[..., None] - np.arange(count), 0.0, 1.0)  # π
        here = band == np.arange(count)
        seen = np.where(here & happened, 1.0, seen) * observed
        f = self.whitening.features(v)
        reach = self.spread(self.radius)
        with np.errstate(over="ignore"):
            weight = 1 / np.maximum(1.0, norms(f) / reach)
        left = np.where(here & happened & observed, 1.0, 0.0) - seen * p
        return FEATURES * into_ball(f, reach), weight, seen * p * (1 - p), left


Announced = WaveMap | GaugeMap | HazardMap  # what a wave can announce


@dataclass(frozen=True, eq=False)
class HazardForm(WaveForm):
    """The numbers of a wave of log-odds of an event, whose column is the last.

    >>> chart = HazardMap(Whitening([0.0], [[2.0]], [1.0]), [0.0, 0.0])
    >>> form = HazardForm(chart, ("age", "months", "left"), (0,), 1)
    >>> form.names[:5]
    ('band 1·band 1', 'band 2·band 2', 'band 1·age', 'band 2·age', 'age·age')
    >>> form.products(np.array([[0.0, 0.5, 1.0]])).round(3).tolist()
    [[0.075, 0.075, 0.0, 0.0, 0.0, -0.274, 0.274, 0.0]]
    """

    chart: HazardMap  # type: ignore[assignment]
    time: int = -2  # the column of the time, −1 at 0 and 1 at the horizon

    @property
    def _size(self) -> tuple[int, int]:
        """K and p."""
        return len(self.chart.bands), len(self.kept)

    @cached_property
    def counts(self) -> FloatArray:
        """How often each number counts in the squared norm: 1, 2 beside the diagonal, 1/τ²."""
        bands, p = self._size
        parts = [np.ones(bands), np.full(bands * p, 2.0), pair_counts(places(p))]
        return fixed(np.concatenate([*parts, np.full(bands + p, BALANCE**-2)]))

    @property
    def names(self) -> tuple[str, ...]:
        """What each number is about: white features by the column that ends each of them."""
        bands = [f"band {place + 1}" for place in range(self._size[0])]
        features = [self.columns[place] for place in self.kept]
        return (
            *(f"{band}·{band}" for band in bands),
            *(f"{band}·{feature}" for band in bands for feature in features),
            *pair_names(features, places(len(features))),
            *(f"slope·{one}" for one in (*bands, *features)),
        )

    def products(self, values: FloatArray) -> FloatArray:
        """Return the numbers that are sent, not blurred yet: (…, width) from columns (…, k)."""
        y, weight, h, left = self._records(values)
        rows, columns = places(self._size[1])
        shape = (*weight.shape, -1)
        own, w = weight[..., None], BAND
        return np.concatenate(
            [
                (w * own) ** 2 * h,
                ((w * own * h)[..., :, None] * y[..., None, :]).reshape(shape),
                h.sum(axis=-1)[..., None] * (y[..., rows] * y[..., columns]),
                w * own**2 * left,
                own * left.sum(axis=-1)[..., None] * y,
            ],
            axis=-1,
        )

    pooled = Form.pooled  # nothing is cut together, and no squares are sent

    def sums(self, values: FloatArray) -> FloatArray:
        """Σ of `products` over rows, as products of matrices."""
        y, weight, h, left = self._records(values)
        return np.concatenate(
            [
                BAND**2 * (weight**2 @ h),
                (BAND * (weight[:, None] * h).T @ y).ravel(),
                ((y * h.sum(axis=1)[:, None]).T @ y)[places(self._size[1])],
                BAND * (weight**2 @ left),
                (weight * left.sum(axis=1)) @ y,
            ]
        )

    def matrix(self, sums: ArrayLike, count: int) -> FloatArray:
        """ΣM, bands first, from the sums of what was sent."""
        del count
        bands, p = self._size
        parts = np.split(np.asarray(sums), [bands, bands * (1 + p), self._linear])
        beside = parts[1].reshape(bands, p)
        return np.block(
            [[np.diag(parts[0]), beside], [beside.T, symmetric(places(p), parts[2], p)]]
        )

    def linear(self, sums: ArrayLike) -> FloatArray:
        """Σg, bands first."""
        return np.asarray(sums)[self._linear :]

    def squares(self, sums: object) -> None:
        """Return nothing: squared slopes are not sent."""
        del sums

    @property
    def _linear(self) -> int:
        bands, p = self._size
        return bands * (1 + p) + p * (p + 1) // 2

    def _records(self, values: FloatArray) -> tuple[FloatArray, ...]:
        time = np.nan_to_num(values[..., self.time], nan=-1.0)
        return self.chart.records(values[..., list(self.kept)], (time + 1) / 2, values[..., -1])
