"""Time to event: exposures are exact, and nobody moves the sums by more than is claimed."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from blurfit.errors import InvalidValueError
from blurfit.theory import hazards as module
from blurfit.theory.forms import JointColumn, JointForm
from blurfit.theory.hazards import EventForm, code_of, exits, extreme_exits


def form_of(constant: float, weight: float, features: int = 3, bands: int = 4) -> EventForm:
    """Return a form with ρ = 1."""
    columns = tuple(JointColumn(f"x{i}", features**-0.5) for i in range(features))
    inner = JointForm(constant, columns)
    return EventForm(inner, tuple(range(features)), features, features + 1, bands, weight)


def test_hats_give_the_time_at_risk_in_each_band_exactly() -> None:
    generator = np.random.default_rng(0)
    time, bands = np.append(generator.uniform(0, 1, 50), [0.0, 0.25, 1.0]), 4
    event = generator.integers(0, 2, len(time)).astype(float)
    found = exits(time, event, bands)
    at_risk = np.cumsum(found[:, bands::-1], axis=1)[:, ::-1][:, 1:] / bands
    edges = np.arange(bands) / bands
    np.testing.assert_allclose(at_risk, np.clip(time[:, None] - edges, 0, 1 / bands), atol=1e-15)
    np.testing.assert_allclose(found[:, bands + 1 :].sum(axis=1), event)


@pytest.mark.parametrize(
    ("horizon", "bands"), [(52.0, 4), (60.0, 12), (7.0, 7), (0.3, 3), (49, 48)]
)
def test_an_event_at_an_edge_belongs_to_the_band_that_ends_there(horizon, bands) -> None:
    """Those of week 26 are among those until week 26, whatever floating point makes of 26."""
    edges = np.linspace(0, horizon, bands + 1)
    scaled = ((edges - horizon / 2) / (horizon / 2) + 1) / 2  # as an agreement's columns are
    found = exits(scaled, np.ones(bands + 1), bands)[:, bands + 1 :]
    assert found.argmax(axis=1).tolist() == [0, *range(bands)]
    after = exits(scaled[:-1] + 1e-6, np.ones(bands), bands)[:, bands + 1 :]
    assert after.argmax(axis=1).tolist() == list(range(bands))


@pytest.mark.parametrize("bands", [2, 4, 8, 12, 48])
def test_codes_are_short_and_never_at_more_than_a_right_angle(bands) -> None:
    codes = np.vstack([extreme_exits(bands)]) @ code_of(bands).T
    products = codes @ codes.T
    assert products.min() >= 0
    assert products.diagonal().max() <= 1 + 1e-12
    between = exits(np.linspace(0, 1, 101), np.tile([0, 1], 51)[:101] * 1.0, bands)
    assert ((between @ code_of(bands).T) ** 2).sum(axis=1).max() <= 1 + 1e-12
    assert len(extreme_exits(bands)) == 3 * bands + 1


@pytest.mark.parametrize(
    ("constant", "weight", "time", "claimed"),
    [
        (0.5, 1.0, 0.95, 2.12132),
        (0.5, 1.0, 1.0, 2.12603),
        (0.5, 0.8, 0.95, 1.86676),
        (0.2, 1.5, 0.95, 3.0),
        (0.5, 2.0, 0.9, 4.0),
    ],
)
def test_a_search_finds_the_claim_to_five_digits(
    monkeypatch, constant, weight, time, claimed
) -> None:
    """Over times, events and features of two people, from many starts."""
    monkeypatch.setattr(module, "OF_TIME", time)
    monkeypatch.setattr(module, "OF_EVENT", math.sqrt(1 - time**2))
    form = form_of(constant, weight)
    assert form.reach("replace").sums == pytest.approx(claimed, rel=1e-5)
    root = np.sqrt(form.counts)

    def sent(flat, event):
        x, (last,) = np.split(flat, [3])
        inside = x / max(1.0, float(np.linalg.norm(x)))
        v = np.array([*(inside * math.sqrt(3)), 2 * min(max(last, 0.0), 1.0) - 1, event])
        return form.products(v) * root

    generator, found = np.random.default_rng(1), 0.0
    for first, second in ((-1, -1), (-1, 1), (1, 1)):
        for _ in range(6):
            ends = generator.choice([0.0, 0.5, 1.0], 2)
            x = 2 * generator.normal(size=(2, 3))
            start = np.array([*x[0], ends[0], *x[1], ends[1]])
            one = minimize(
                lambda flat, a=first, b=second: (
                    -np.linalg.norm(sent(flat[:4], a) - sent(flat[4:], b))
                ),
                start,
                method="Nelder-Mead",
                options={"maxiter": 4000, "maxfev": 4000, "xatol": 1e-9, "fatol": 1e-12},
            )
            found = max(found, -one.fun)
    assert found <= form.reach("replace").sums
    assert found == pytest.approx(claimed, rel=2e-5)


def test_no_record_is_longer_or_farther_than_claimed() -> None:
    form = form_of(0.5, 1.0, features=2, bands=8)
    generator = np.random.default_rng(0)
    corners = generator.choice([-1.0, 1.0], (400, 2))
    time = generator.choice([-1.0, -0.75, 0.0, 1.0, 0.3], (400, 1))
    numbers = form.products(np.hstack([corners, time, generator.choice([-1.0, 1.0], (400, 1))]))
    numbers = numbers * np.sqrt(form.counts)
    norms = np.linalg.norm(numbers, axis=1)
    assert norms.max() <= form.reach("zero-out").sums == form.bound
    assert norms.max() == pytest.approx(form.bound, rel=1e-9)
    apart = np.linalg.norm(numbers[:, None] - numbers, axis=2)
    assert apart.max() <= form.reach("replace").sums


def test_sums_are_read_exactly_where_there_is_no_noise() -> None:
    columns = (
        JointColumn("a", 0.5),
        JointColumn("r=n", 0.6, "level", "r"),
        JointColumn("r=s", 0.6, "level", "r"),
    )
    form = EventForm(JointForm(0.4, columns), (0, 1, 2), 3, 4, bands=4, weight=1.1)
    generator, n = np.random.default_rng(0), 60
    north = generator.integers(0, 2, n)
    time, event = generator.uniform(0, 1, n), generator.integers(0, 2, n)
    v = np.column_stack(
        [generator.uniform(-1, 1, n), north, 1 - north, 2 * time - 1, 2 * event - 1]
    )
    assert len(form.names) == form.width == form.products(v).shape[1]
    by_time, by_event, left = form.read(form.products(v).sum(axis=0), n)
    x = v[:, :3] * [0.5, 0.6, 0.6]
    np.testing.assert_allclose(by_time, (x * time[:, None]).T @ x, atol=1e-9)
    np.testing.assert_allclose(by_event, (x * event[:, None]).T @ x, atol=1e-9)
    whole = np.column_stack([np.ones(n), x])
    np.testing.assert_allclose(left, exits(time, event * 1.0, 4).T @ whole, atol=1e-9)


@pytest.mark.parametrize("bands", [0, 1, 49, 2.5, True])
def test_bands_that_are_none_are_refused(bands) -> None:
    with pytest.raises(InvalidValueError):
        form_of(0.5, 1.0, bands=bands)


def test_what_is_not_a_number_is_mapped_as_well() -> None:
    form = form_of(0.5, 1.0)
    for wild in (math.nan, math.inf, -math.inf):
        numbers = form.products(np.array([0.5, 0.5, 0.5, wild, wild]))
        assert np.isfinite(numbers).all()
        assert np.sqrt(numbers**2 @ form.counts) <= form.bound
