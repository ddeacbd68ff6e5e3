"""Maps are total: whatever is announced and whatever a record holds, it stays in the ball."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from blurfit.agreement.mechanisms import map_from_dict
from blurfit.errors import InvalidValueError
from blurfit.theory.forms import WaveForm
from blurfit.theory.maps import (
    LogisticNewton,
    NewtonMap,
    PoissonNewton,
    ResidualMap,
    Whitening,
)
from support.exact import norm_excess

WILD = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 0.0, 1.0, -1.0]


def hostile_whitenings() -> list[Whitening]:
    """As bad as a map may be: steep, flat, oblique, far away, with a huge model."""
    steep = np.array([[1.0, 0.0], [1e12, 1e12]])
    flat = np.diag([1.0, 5e-324])
    oblique = np.array([[1e-300, 0.0], [-1e12, 1e-12]])
    return [
        Whitening(mean, matrix, beta, 1e6)
        for mean in ([0.0, 0.0], [1e6, -1e6])
        for matrix in (steep, flat, oblique, np.eye(2))
        for beta in ([0.0, 0.0], [1e6, 1e6], [5e-324, -1e6])
    ]


def record(chart: NewtonMap, v, y: float):
    """(M, p) of one record."""
    u, g, h = chart.records(v, y)
    return float(h) * np.outer(u, u), -float(g) * u


@pytest.mark.parametrize("whitening", hostile_whitenings())
def test_residual_vectors_stay_in_the_ball_for_every_record(whitening: Whitening) -> None:
    chart = ResidualMap(whitening, radius=1.3, scale=1e-6, bound=2.0)
    rows = np.array(list(itertools.product(WILD, WILD)))
    for y in WILD:
        z = chart.vectors(rows, np.full(len(rows), y))
        assert np.isfinite(z).all()
        assert (z[:, 0] <= chart.constant).all()
        assert (z[:, 0] >= 0).all()
        assert max(norm_excess(u) for u in z[:, 1:]) <= 2 * (2 + 8) * 2.0**-52


@pytest.mark.parametrize("whitening", hostile_whitenings())
@pytest.mark.parametrize("loss", [LogisticNewton(), PoissonNewton.of(9.0, 9.0, 9.0)])
@pytest.mark.parametrize("radius", [1.0, 30.0, 1000.0])
def test_newton_records_stay_in_their_set_for_every_record(
    whitening: Whitening, loss, radius: float
) -> None:
    chart = NewtonMap(whitening, loss, radius=radius, robust=True)
    h_bound, g_bound = (0.25, 1.0) if isinstance(loss, LogisticNewton) else (9.0, 9.0)
    rows = np.array(list(itertools.product(WILD, WILD)))
    for place, y in enumerate(WILD):
        u, g, h = chart.records(rows, np.full(len(rows), y))
        sent = [
            (h[:, None, None] * u[:, :, None] * u[:, None, :], -g[:, None] * u),
            *(
                (M[None], p[None])
                for M, p in (record(chart, v, y) for v in rows[place :: len(WILD)])
            ),
        ]
        for M, p in sent:  # all at once, and some by themselves
            assert np.isfinite(M).all()
            assert np.linalg.norm(M, axis=(1, 2)).max() <= h_bound * (1 + 1e-14)
            assert np.linalg.norm(p, axis=1).max() <= g_bound * (1 + 1e-14)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"radius": one} for one in (0.0, math.nan, 1e9)),
        *({"bound": 1e-5}, {"bound": math.inf}, {"scale": 0.0}, {"constant": 2.0}),
        {"feature_weight": 0.9, "target_weight": 0.9},
    ],
)
def test_residual_maps_refuse_public_numbers_out_of_range(wrong) -> None:
    fine = {"radius": 1.0, "scale": 1.0, "bound": 2.0}
    with pytest.raises(InvalidValueError):
        ResidualMap(Whitening([0.0], [[1.0]], [0.0]), **(fine | wrong))


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize("constant", [0.25, 0.6, 1.0])
@pytest.mark.parametrize("robust", [False, True])
def test_how_far_a_weighted_record_moves_the_sums(constant, neighbours, robust) -> None:
    """Δ by brute force: the worst pair of records of any weight, to five digits."""
    white = Whitening([0.0], [[1.0]], [0.0])
    chart = ResidualMap(white, 1, 1, 1, constant, 0.8, 0.6, robust=robust)
    omega = chart.robust_weight if robust else 0.0

    def loss(x: np.ndarray) -> float:
        pair = []
        for part in x.reshape(2, 4):
            f, g = part[1:3] / max(1.0, float(np.linalg.norm(part[1:3]))), np.sin(part[3])
            z = np.concatenate([[constant * expit(part[0])], 0.8 * f, [0.6 * g]])
            square = omega * g**2 * np.outer(z[:3], z[:3])
            pair.append(np.concatenate([np.outer(z, z).ravel(), square.ravel()]))
        if neighbours == "zero-out":
            pair[1] = np.zeros_like(pair[0])
        return -float(np.linalg.norm(pair[0] - pair[1]))

    starts = np.random.default_rng(1).normal(size=(12, 8)) * 4
    worst = max(-minimize(loss, one, method="Powell", tol=1e-12).fun for one in starts)
    missed = 0.01 if robust and constant == 1 else 1e-5  # there x and x' are too much alike
    assert worst == pytest.approx(chart.sensitivity(neighbours), rel=missed)
    assert worst <= chart.sensitivity(neighbours)


def test_a_weighted_record_is_what_it_says_alone_or_together() -> None:
    chart = ResidualMap(Whitening([0.1, 0.0], np.diag([2.0, 4.0]), [0.5, 0.0], 0.1), 0.5, 0.2, 1.5)
    for v in np.random.default_rng(2).uniform(-1, 1, (50, 2)):
        f, g = np.array([2, 4]) * (v - [0.1, 0.0]), (0.7 - 0.1 - 0.5 * v[0]) / 0.2
        s = min(1.0, 0.5 * math.sqrt(2) / np.linalg.norm(f))
        z = [0.25 * s, *(0.8 * s * f / (0.5 * math.sqrt(2))), 0.6 * np.clip(s * g, -1.5, 1.5) / 1.5]
        assert chart.vectors(v, 0.7) == pytest.approx(z)
    chart = ResidualMap(Whitening([0.1, 0.0], np.tril(np.ones((2, 2))), [1.0, 0.5]), 0.7, 0.4, 1.1)
    rows = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    for row in rows:
        alone, together = (chart.vectors(row[None], [0.6], together=one) for one in (False, True))
        np.testing.assert_allclose(together, alone, atol=1e-15)


def test_newton_maps_refuse_numbers_out_of_range() -> None:
    white = Whitening([0.0], [[1.0]], [0.0])
    for wrong in ({"radius": 0.99}, {"radius": math.inf}, {"robust": 1}, {"constant": 0.0}):
        with pytest.raises(InvalidValueError):
            NewtonMap(white, LogisticNewton(), **wrong)
    with pytest.raises(InvalidValueError, match="squared slopes"):
        NewtonMap(white, LogisticNewton(4.9), robust=True)


def examples() -> list[ResidualMap | NewtonMap]:
    white = Whitening([0.1, -0.2], [[1.5, 0.0], [0.3, 2.5]], [0.4, -0.6], 0.05)
    return [
        ResidualMap(white, 1.7, 0.3, 3.0, robust=True),
        NewtonMap(white, LogisticNewton(4.0), radius=2.5, robust=True),
        NewtonMap(white, PoissonNewton(12.0, 5.0, 7.0, 0.7), 0.4),
    ]


@pytest.mark.parametrize("chart", examples())
def test_a_map_is_read_as_it_was_written_and_refused_otherwise(chart) -> None:
    again = map_from_dict(chart.to_dict())
    assert again.to_dict() == chart.to_dict()
    v, y = np.array([0.3, 0.9]), 1.0
    if isinstance(chart, ResidualMap):
        assert (again.vectors(v, y) == chart.vectors(v, y)).all()
    else:
        ours, theirs = record(chart, v, y), record(again, v, y)
        assert all((a == b).all() for a, b in zip(ours, theirs, strict=True))
    entry = chart.to_dict()
    for key in entry:
        with pytest.raises(InvalidValueError):
            map_from_dict({name: value for name, value in entry.items() if name != key})
    with pytest.raises(InvalidValueError):
        map_from_dict(entry | {"more": 1})
    with pytest.raises(InvalidValueError):
        map_from_dict(entry | {"whitening": [[1.0], [2.0]]})
    with pytest.raises(InvalidValueError):
        map_from_dict(entry | {"whitening": [["a"], [2.0, 1.0]]})
    with pytest.raises(InvalidValueError):
        map_from_dict([entry])


@pytest.mark.parametrize("loss", [LogisticNewton(), PoissonNewton.of(6.0, 5.0, 5.0)])
def test_sums_are_sums_of_records(loss) -> None:
    generator = np.random.default_rng(6)
    v = generator.uniform(-1, 1, size=(20, 2)) * 3  # far out, so that weights are below 1
    y = (
        generator.choice([-1.0, 1.0], 20)
        if isinstance(loss, LogisticNewton)
        else generator.poisson(2.0, 20) * 1.0
    )
    white = Whitening([0.1, 0.2], [[2.0, 0.0], [1.0, 3.0]], [0.5, -0.5], 0.1)
    chart = NewtonMap(white, loss, radius=1.5, robust=True)
    matrix, linear, squares = chart.sums(v, y)
    records = [record(chart, row, float(label)) for row, label in zip(v, y, strict=True)]
    assert np.allclose(matrix, sum(M for M, _ in records))
    assert np.allclose(linear, sum(p for _, p in records))
    assert np.allclose(squares, sum(np.outer(p, p) for _, p in records))
    assert NewtonMap(white, loss).sums(v, y)[2] is None


def test_weights_follow_the_definition() -> None:
    """(M, p) = (h·xxᵀ, −g·x)/max(1, ‖x‖²) with x = (f/(r√p), κ)/√(1 + κ²), written out."""
    white = Whitening([0.1, 0.2], [[2.0, 0.0], [1.0, 3.0]], [0.5, -0.5], 0.1)
    chart = NewtonMap(white, LogisticNewton(), radius=1.3)
    for v in (np.array([0.2, 0.1]), np.array([-0.9, 1.0])):
        f = np.array([[2.0, 0.0], [1.0, 3.0]]) @ (v - [0.1, 0.2])
        x = np.array([*(f / (1.3 * math.sqrt(2))), 0.3]) / math.sqrt(1.09)
        t = v @ [0.5, -0.5] + 0.1
        size = 1 / (1 + math.exp(t))
        M, p = record(chart, v, 1.0)
        weight = 1 / max(1.0, float(x @ x))
        assert np.allclose(M, weight * size * (1 - size) * np.outer(x, x))
        assert np.allclose(p, weight * size * x)


def test_mean_curvature_is_that_of_gaussian_scores() -> None:
    generator = np.random.default_rng(2)
    white = Whitening([0.1, 0.2], [[2.0, 0.0], [1.0, 3.0]], [0.5, -0.9], 0.7)
    v = white.mean + generator.normal(size=(200_000, 2)) @ np.linalg.inv(white.matrix).T
    for loss in (LogisticNewton(), PoissonNewton.of(20.0, 2.4, 5.0)):
        chart = NewtonMap(white, loss)
        _, h = loss.slopes(white.score(v), np.zeros(len(v)))
        assert math.isclose(chart.mean_curvature, h.mean(), rel_tol=5e-3)


# ---- several rows of one person, cut together
@pytest.mark.parametrize("whitening", hostile_whitenings())
def test_rows_of_a_person_stay_in_the_ball_together(whitening: Whitening) -> None:
    chart = ResidualMap(whitening, radius=1.3, scale=1e-6, bound=2.0)
    rows = np.array(list(itertools.product(WILD, WILD)))
    generator = np.random.default_rng(0)
    for size in (1, 2, 3, 7, len(rows)):
        for _ in range(12):
            some = generator.permutation(len(rows))[:size]
            z = chart.vectors(rows[some], generator.choice(WILD, size), together=True)
            assert np.isfinite(z).all()
            assert ((z[:, 0] >= 0) & (z[:, 0] <= chart.constant)).all()
            features, errors = (z[:, 1:-1] ** 2).sum(axis=1), z[:, -1] ** 2
            assert features.mean() <= chart.feature_weight**2 * (1 + 1e-12)
            assert errors.mean() <= chart.target_weight**2 * (1 + 1e-12)


@pytest.mark.parametrize("robust", [False, True])
def test_two_people_are_as_far_apart_as_the_map_says_and_no_farther(robust) -> None:
    """A search over people at the edge of the ball finds Δ to five digits, of squares too."""
    white = Whitening(np.zeros(3), np.eye(3), np.zeros(3))
    chart = ResidualMap(white, 0.3, 0.5, 0.4, robust=robust)
    form = WaveForm(chart, ("a", "b", "c", "y"), (0, 1, 2))

    def apart(flat):
        people = []
        for one in flat.reshape(2, 3, 4):
            edge = 0.3 * np.sqrt(3) / np.sqrt((one[:, :3] ** 2).sum(axis=1).mean())
            rows = np.column_stack([edge * one[:, :3], one[:, 3]])
            people.append(form.pooled(rows) * np.sqrt(form.counts))
        return -float(np.linalg.norm(people[0] - people[1]))

    generator = np.random.default_rng(1)
    found = [
        minimize(apart, 3 * generator.normal(size=24), method="BFGS", options={"maxiter": 300}).fun
        for _ in range(3)
    ]
    assert -min(found) == pytest.approx(chart.sensitivity("replace"), rel=1e-5)
    assert -min(found) <= chart.sensitivity("replace")
