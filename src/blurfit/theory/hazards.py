"""Times to an event: exits, from which hazards, survival curves and tests follow.

Used if an agreement asks for a time and an event (`blurfit.agreement.mechanisms.form_of`). A person
has features x, ‖x‖ ≤ ρ, and leaves observation at the time T in [0, 1] of the horizon, by the event
(d = 1) or without it (d = 0). Time has K bands of equal length.

    b(T): 0 except for the two knots around T, which share 1;  e: the indicator of the event's band,
    to whose end it belongs: an event at an edge, as in week 26, is one "until 26"
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
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from blurfit.data import FloatArray, fixed
from blurfit.errors import InvalidValueError, one_of, positive, whole
from blurfit.theory.forms import (
    Form,
    JointForm,
    Places,
    pair_counts,
    pair_names,
    places,
    public_zeros,
    symmetric,
)
from blurfit.theory.moments import NEIGHBOURS, NUDGE, Neighbours

AT_EDGE = 1e-9  # of a band: what floating point makes of a time at an edge is closer to it
LEAST_BANDS, MOST_BANDS = 2, 48  # as in `blurfit.schema.columns`
OF_TIME = 0.95  # α
OF_EVENT = math.sqrt(1 - OF_TIME * OF_TIME)  # β
_TIME, _BAND, _KNOT = 0.28, 0.315, 0.16  # t, u and K·h


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
        raise InvalidValueError(
            "Expected bands={bands} from {least_bands} to {most_bands}.",
            bands=bands,
            least_bands=LEAST_BANDS,
            most_bands=MOST_BANDS,
        )
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
    edge = np.floor(at + 0.5)
    at = np.where(np.abs(at - edge) < AT_EDGE, edge, at)
    band = np.maximum(np.ceil(at).astype(np.intp) - 1, 0)[..., None]
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
