"""Log-odds of an event: nobody moves the sums by more than is claimed, and maps are total."""

import math

import numpy as np
import pytest
from scipy.special import expit, logit

from blurfit.agreement.mechanisms import map_from_dict, wave_form
from blurfit.errors import InvalidValueError
from blurfit.theory.hazards import BALANCE, BAND, FEATURES, HazardForm, HazardMap
from blurfit.theory.maps import Whitening

W2, B2, T2 = BAND**2, FEATURES**2, BALANCE**2


def a_form(bands, beta=(0.0, 0.0), events=1.0, radius=1.0) -> HazardForm:
    """Return a form of two features, white as they are."""
    white = Whitening([0.0, 0.0], np.eye(2) * math.sqrt(2), list(beta))
    return HazardForm(HazardMap(white, bands, events, radius), ("a", "b", "t", "d"), (0, 1), 2)


def envelope(t):
    """φ: the concave envelope of t(1 − t)²."""
    return np.where(t <= 0.5, t * (1 - t) ** 2, (1 - t) / 4)


def curvature(R, S, R2, S2, c, kappa):
    return T2 * (B2**2 * (S**2 + S2**2 - 2 * c**2 * S * S2) + kappa * (envelope(R) + envelope(R2)))


def grid(*counts):
    return np.meshgrid(*(np.linspace(0, 1, count) for count in counts), indexing="ij")


def ends(R):
    """(P, S) at the two ends of P."""
    return ((np.ones_like(R), 1 - R), (R, np.zeros_like(R)))


def test_no_case_of_the_proof_exceeds_four() -> None:
    """The three inequalities on grids, whose steps are far finer than their slack."""
    R, R2, c = grid(61, 61, 41)
    alike, opposed = 1 - B2**2, 1 - B2**2 + 2 * W2 * B2 * c  # κ
    t, t2 = np.sqrt(R), np.sqrt(R2)
    none, both, one, against = [], [], {}, []
    for first, (P, S) in enumerate(ends(R)):
        for second, (P2, S2) in enumerate(ends(R2)):
            M = curvature(R, S, R2, S2, c, opposed)
            none.append(M + B2 * (P**2 + P2**2 + 2 * c * P * P2) + W2 * (R + R2))
            slopes = (1 - P) ** 2 + (1 - P2) ** 2 + 2 * c * (1 - P) * (1 - P2)
            bands = 2 + R + R2 + 2 * np.minimum(P, t) + 2 * np.minimum(P2, t2)
            both.append(M + B2 * slopes + W2 * bands)
            squares, bands = (1 - P) ** 2 + P2**2, W2 * (1 + R + R2 + 2 * np.minimum(P2, t2))
            against.append(M + B2 * (squares - 2 * c * (1 - P) * P2) + bands)
            M = curvature(R, S, R2, S2, c, alike)
            one[first, second] = M + B2 * (squares + 2 * c * (1 - P) * P2) + bands
    assert 3.8 < np.max(none) < 3.88
    assert np.max(both) < 3.5
    assert np.max(against) < 3.5
    assert np.max([one[0, 0], one[0, 1]]) < 3
    assert one[1, 1].max() <= 4
    assert one[1, 0][R > 0.2].max() < 3.7  # the rest is below


def test_features_beyond_the_ball_add_nothing() -> None:
    """λ = 0 for one person or for both: g has no features of theirs, and c = 0 is the worst."""
    R, R2, c = grid(61, 61, 1)
    for P, S in ends(R):
        for P2, S2 in ends(R2):
            M = curvature(R, S, R2, S2, c, 1 - B2**2)
            bands = W2 * (
                2 + R + R2 + 2 * np.minimum(P, np.sqrt(R)) + 2 * np.minimum(P2, np.sqrt(R2))
            )
            assert (M + B2 + bands).max() < 3.6


def test_the_tight_case_of_the_proof_has_its_equality_at_one_alone() -> None:
    t, share, R = grid(301, 101, 21)
    t, R = 0.9999 * t, 0.2 * R  # the other person's P = R
    rho = share * (1 - t)
    others = (1 - t) * envelope(rho / (1 - t))
    own = (t * (1 - t)) ** 2
    S2 = np.maximum(1 - t**2 - rho, 0)
    M = T2 * (B2**2 * S2**2 + (1 - B2**2) * (own + others + envelope(R)))
    found = M + B2 * (2 - R) ** 2 + W2 * (1 + R + t**2 + rho + 2 * t)
    assert found.max() <= 4
    assert found[t < 0.95].max() < 3.99


def contribution(p, x, event, weight=1.0):
    """(M, g/τ) of bands p, features x on the sphere, and the band of an event, one number each."""
    z = np.zeros((len(p), len(p) + len(x)))
    z[:, : len(p)], z[:, len(p) :] = weight * BAND * np.eye(len(p)), x
    happened = np.zeros(len(p))
    if event is not None:
        happened[event] = 1.0
    M = (z * (p * (1 - p))[:, None]).T @ z
    g = (happened - p) @ (z * np.append(weight * np.ones(len(p)), np.ones(len(x)))[None])
    return M, g


def test_a_form_sends_the_sum_over_bands_of_newtons_quadratics() -> None:
    generator = np.random.default_rng(2)
    for radius, far in ((1.0, 0.3), (2.0, 1.0), (1.0, 40.0)):
        form = a_form([-1.0, -2.0, -1.5], (0.4, -0.8), radius=radius)
        v = far * generator.normal(size=2)
        p = expit(np.array([-1.0, -2.0, -1.5]) + v @ [0.4, -0.8])
        p, f = p[: 1 + int(np.sum(np.cumsum(p)[1:] <= 1))], math.sqrt(2) * v
        reach = math.sqrt(2) * radius
        weight = 1 / max(1.0, float(np.linalg.norm(f)) / reach)
        x = FEATURES * weight * f / reach
        for event in (*range(len(p)), None):
            time = 1.0 if event is None else (event + 0.4) / 3
            p_seen = p if event is None else p[: event + 1]
            M, g = contribution(p_seen, x, event, weight)
            g[len(p_seen) :] *= weight
            sent = form.products(np.array([*v, 2 * time - 1, -1.0 if event is None else 1.0]))
            k = [*range(len(p_seen)), 3, 4]
            np.testing.assert_allclose(form.matrix(sent, 1)[np.ix_(k, k)], M, atol=1e-12)
            np.testing.assert_allclose(form.linear(sent)[k], g, atol=1e-12)


def test_a_part_of_a_band_counts_and_features_alone_tell_who_is_stopped() -> None:
    form, v = a_form([-1.0, -2.0]), np.array([0.2, 0.1])
    whole, none, half = (form.products(np.array([*v, t, -1.0])) for t in (0.0, -1.0, -0.5))
    assert not none.any()
    np.testing.assert_allclose(half, whole / 2)
    form = a_form([-0.2] * 6, (1.0, 0.0), events=1.5)
    _, observed = form.chart.hazards([[0.0, 0.0], [-3.0, 0.0], [9.0, 0.0]])
    assert observed.sum(axis=1).tolist() == [3, 6, 1]
    early, late = ([0.0, 0.0, 2 * (k + 0.5) / 6 - 1] for k in (1, 4))
    seen = form.products(np.array([[*early, 1.0], [*early, -1.0], [*late, 1.0], [*late, -1.0]]))
    assert not np.allclose(seen[0], seen[1])
    np.testing.assert_array_equal(seen[2], seen[3])  # the event came after they were stopped
    assert (form.chart.sensitivity() * BALANCE) == pytest.approx(3.0)


def test_a_search_finds_the_claim_to_five_digits() -> None:
    """Over hazards, features and events of two people: climbs from 500 starts for each kind."""
    generator, K, best = np.random.default_rng(0), 3, 0.0

    def apart(u, first, second):
        p, x, g, n = [], [], [], np.arange(K)
        for side, event in ((u[:, 0], first), (u[:, 1], second)):
            own = np.sin(side[:, :K]) ** 2
            own = own / np.maximum(1.0, own.sum(axis=1, keepdims=True))
            turn, size = side[:, K], FEATURES * np.sin(side[:, K + 1]) ** 2
            p.append(own)
            x.append((np.column_stack([np.cos(turn), np.sin(turn)]) * size[:, None])[:, None])
            g.append((n == event) * 1.0 - own)
        h = [one * (1 - one) for one in p]
        sizes = [one.sum(axis=1)[:, None, None] for one in h]
        pairs = [s * (y.swapaxes(1, 2) @ y) for s, y in zip(sizes, x, strict=True)]
        cross = [one[..., None] * y for one, y in zip(h, x, strict=True)]
        slopes = [one.sum(axis=1)[:, None] * y[:, 0] for one, y in zip(g, x, strict=True)]
        return (
            np.sum((pairs[0] - pairs[1]) ** 2, axis=(1, 2))
            + 2 * W2 * np.sum((cross[0] - cross[1]) ** 2, axis=(1, 2))
            + W2**2 * np.sum((h[0] - h[1]) ** 2, axis=1)
            + np.sum((slopes[0] - slopes[1]) ** 2, axis=1) / T2
            + W2 * np.sum((g[0] - g[1]) ** 2, axis=1) / T2
        )

    for first, second in ((-1, -1), (0, -1), (0, 0), (0, 1)):
        u = 3 * generator.normal(size=(500, 2, K + 2))
        value = apart(u, first, second)
        for step in np.geomspace(1, 1e-4, 400):
            other = u + step * generator.normal(size=u.shape)
            found = apart(other, first, second)
            better = found > value
            u[better], value[better] = other[better], found[better]
        best = max(best, float(value.max()))
    claimed = a_form([0.0] * K).reach("replace").sums
    assert math.sqrt(best) == pytest.approx(claimed, rel=1e-5)


def test_the_claim_is_attained_by_the_form_itself() -> None:
    sure, never = a_form([400.0, -400.0]), a_form([-400.0, -400.0])
    root = np.sqrt(sure.counts)
    left, stayed = np.array([1.0, 0.0, -0.6, 1.0]), np.array([1.0, 0.0, 1.0, -1.0])
    apart = np.linalg.norm(root * (never.products(left) - sure.products(stayed)))
    assert apart == pytest.approx(sure.reach("replace").sums, rel=1e-9)
    spread = a_form(logit(np.full(48, 1 / 48 - 1e-12)))
    alone = np.linalg.norm(np.sqrt(spread.counts) * spread.products(stayed))
    assert 0.97 * spread.bound < alone <= spread.bound


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
def test_no_record_and_no_map_passes_the_claim(neighbours) -> None:
    """Maps of any size, records that are no numbers, times outside of the horizon."""
    generator = np.random.default_rng(3)
    odd = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, 1.0, -1.0, 1e-308])
    for size in (1e-3, 1.0, 30.0, 500.0):
        bands = np.clip(size * generator.normal(size=5), -500, 500)
        white = Whitening([0.0, 0.3], [[1e12, 0.0], [-1e12, 1e-6]], size * generator.normal(size=2))
        for events in (1.0, 2.5, 48.0):
            form = HazardForm(HazardMap(white, bands, events), tuple("abtd"), (0, 1), 2)
            with np.errstate(all="raise", under="ignore"):
                sent = form.products(generator.choice(odd, size=(400, 4)))
            assert np.isfinite(sent).all()
            sent = sent * np.sqrt(form.counts)
            reach = form.reach(neighbours).sums
            if neighbours == "zero-out":
                assert np.linalg.norm(sent, axis=1).max() <= reach
            else:
                apart = np.linalg.norm(sent[:, None] - sent[None], axis=2)
                assert apart.max() <= reach


def test_sums_are_those_of_products_and_can_be_read_back() -> None:
    generator = np.random.default_rng(4)
    form = a_form([-1.0, -2.0, -1.5], (0.4, -0.8))
    v = generator.uniform(-1, 1, (200, 4))
    np.testing.assert_allclose(form.sums(v), form.products(v).sum(axis=0), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(form.pooled(v), form.products(v).mean(axis=0))
    assert len(form.names) == form.width == len(form.sums(v))
    assert form.squares(form.sums(v)) is None


def test_a_map_is_read_as_it_is_written_and_refused_otherwise() -> None:
    chart = a_form([-1.0, -2.0], (0.4, -0.8), 1.25, 1.5).chart
    entry = chart.to_dict()
    again = map_from_dict(entry)
    assert isinstance(again, HazardMap)
    assert again.to_dict() == entry
    wrong = [{"bands": one} for one in ([1.0], [1.0, math.nan], [[1.0, 2.0]], [501.0, 1.0])]
    for one in (*wrong, {"events": 0.99}, {"events": 49.0}, {"radius": 0.5}, {"more": 1}):
        with pytest.raises(InvalidValueError):
            map_from_dict(entry | one)
    with pytest.raises(InvalidValueError, match="time to an event"):
        wave_form(chart, ("a", "b", "c"), (0, 1))
    with pytest.raises(InvalidValueError, match="columns"):
        wave_form(chart, ("a", "t", "d"), (0,), 1)


def test_hazards_of_a_row_are_the_same_to_the_last_bit_beside_any_others() -> None:
    """Otherwise where observation ends could depend on how many rows another person has."""
    generator = np.random.default_rng(0)
    slopes, v = generator.normal(size=30), generator.uniform(-1, 1, (200, 30))
    chart = HazardMap(Whitening(np.zeros(30), np.eye(30), slopes), [-1.0, -1.0])
    together, beside = chart.hazards(v)[0], chart.hazards(np.asfortranarray(v[1:]))[0]
    alone = np.array([chart.hazards(row)[0] for row in v])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together[1:], beside)
