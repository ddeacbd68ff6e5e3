"""Waves in one process: who is in which, what a record can change, the noise, the models."""

import numpy as np
import pytest

from blurfit.errors import InvalidValueError
from blurfit.learning.waves import on_curve
from blurfit.theory import moments
from blurfit.theory.planning import Stage, Stages, choose_plan
from support.waves_by_hand import assign, collect_in_waves, draw_wave, score

TWO = Stages("number", (Stage("joint", 0.3), Stage("residual", 0.7)))
THREE = Stages("label", (Stage("joint", 0.2), Stage("residual", 0.3), Stage("newton", 0.5)))


def people(n: int, seed: int, p: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Features of very different spread, as people's are, and a number."""
    generator = np.random.default_rng(seed)
    v = np.clip(generator.normal(size=(n, p)) * np.geomspace(0.05, 0.5, p), -1, 1)
    y = v @ (0.3 / np.geomspace(0.05, 0.5, p)) / np.sqrt(p) + generator.normal(size=n) * 0.2
    return v, np.clip(y, -1, 1)


def test_everyone_is_in_one_wave() -> None:
    waves = assign(1001, THREE, np.random.default_rng(1))
    assert sorted(np.concatenate(waves)) == list(range(1001))
    assert [len(wave) for wave in waves] == list(THREE.quorums(1001))


@pytest.mark.parametrize("plan", [TWO, THREE])
def test_a_record_changes_its_own_wave_and_later_maps_alone(plan: Stages) -> None:
    """With the same noise, another answer of somebody in the last wave changes nothing before it:
    neither who is in which wave, nor a map."""
    v, y = people(400, seed=2)
    y = y if plan.task == "number" else np.sign(y)
    last = assign(400, plan, np.random.default_rng(3))[-1][0]
    other_v, other_y = v.copy(), y.copy()
    other_v[last], other_y[last] = -v[last], -y[last]
    one, other = (
        collect_in_waves(
            a, b, ["numeric"] * 6, plan=plan, mu=0.5, generator=np.random.default_rng(3)
        )
        for a, b in ((v, y), (other_v, other_y))
    )
    assert (one.first.matrix == other.first.matrix).all()
    assert [chart.to_dict() for chart in one.maps] == [chart.to_dict() for chart in other.maps]
    for before, after in zip(one.later[:-1], other.later[:-1], strict=True):
        assert (before.matrix == after.matrix).all()
    moved = one.later[-1].matrix - other.later[-1].matrix
    assert 0 < np.linalg.norm(moved) <= one.later[-1].deviation * 0.5 * (1 + 1e-9)  # Δ = σμ


def test_the_noise_is_that_of_the_promise() -> None:
    """Diagonal σ = Δ/μ, off-diagonal σ/√2, linear τσ, over many draws of the same wave."""
    v, y = people(50, seed=4)
    generator = np.random.default_rng(5)
    got = collect_in_waves(v, np.sign(y), ["numeric"] * 6, plan=THREE, mu=1.0, generator=generator)
    residual, newton = got.maps
    for chart, sigma, seen in (
        (residual, moments.sensitivity(residual.constant, 1.0) / 0.7, y),
        (newton, newton.loss.sensitivity() / 0.7, np.sign(y)),
    ):
        draws = [draw_wave(chart, v, seen, 0.7, generator) for _ in range(1500)]
        spread = np.std([draw.matrix for draw in draws], axis=0)
        upper = np.triu_indices(len(spread), 1)
        assert np.diagonal(spread).mean() == pytest.approx(sigma, rel=0.03)
        assert spread[upper].mean() == pytest.approx(sigma / np.sqrt(2), rel=0.03)
        assert all((draw.matrix == draw.matrix.T).all() for draw in draws[:5])
    linear = np.std([draw.linear for draw in draws], axis=0)
    assert linear.mean() == pytest.approx(newton.loss.balance * sigma, rel=0.05)


def test_zero_out_needs_less_noise() -> None:
    v, y = people(300, seed=6)
    deviations = [
        collect_in_waves(
            v,
            y,
            ["numeric"] * 6,
            plan=TWO,
            mu=1.0,
            generator=np.random.default_rng(1),
            neighbours=n,
        )
        .later[0]
        .deviation
        for n in ("replace", "zero-out")
    ]
    assert deviations[1] < deviations[0]


@pytest.mark.statistical
def test_two_waves_beat_one_where_features_differ_in_spread() -> None:
    errors = []
    test_v, test_y = people(5000, seed=99)
    for seed in range(12):
        v, y = people(4000, seed=seed)
        row = []
        for waves in (1, None):
            plan = choose_plan("number", coefficients=6, count=4000, mu=0.3, waves=waves)
            got = collect_in_waves(
                v, y, ["numeric"] * 6, plan=plan, mu=0.3, generator=np.random.default_rng(seed)
            )
            row.append(np.mean((score(got.model, test_v) - test_y) ** 2))
        errors.append(row)
    one, auto = np.mean(errors, axis=0)
    assert auto < one


def test_categories_keep_all_but_their_last_level() -> None:
    generator = np.random.default_rng(7)
    levels = np.eye(3)[generator.integers(3, size=6000)]
    number = generator.uniform(-1, 1, size=6000)
    y = np.clip(0.6 * levels[:, 0] - 0.3 + 0.3 * number + generator.normal(size=6000) * 0.1, -1, 1)
    got = collect_in_waves(
        np.column_stack([levels, number]), y, [3, "numeric"], plan=TWO, mu=2.0, generator=generator
    )
    assert got.kept.tolist() == [0, 1, 3]
    assert got.coefficients[3] == 0
    assert np.allclose(got.coefficients, [-0.3, 0.6, 0.0, 0.0, 0.3], atol=0.1)


def test_counts_by_newton() -> None:
    generator = np.random.default_rng(8)
    v = np.clip(generator.normal(size=(60_000, 4)) * 0.4, -1, 1)
    beta = np.array([0.3, 0.8, -0.5, 0.0, 0.4])
    y = generator.poisson(np.exp(beta[0] + v @ beta[1:])).astype(float)
    plan = choose_plan("count", coefficients=4, count=60_000, mu=1.0)
    assert plan.kinds == ("joint", "residual", "newton", "newton", "newton")
    got = collect_in_waves(
        v, y, ["numeric"] * 4, plan=plan, mu=1.0, generator=generator, count_bound=12.0
    )
    assert np.allclose(got.coefficients, beta, atol=0.1)
    one = choose_plan("count", coefficients=4, count=60_000, mu=1.0, waves=1)
    line = collect_in_waves(
        v, y, ["numeric"] * 4, plan=one, mu=1.0, generator=generator, count_bound=12.0
    ).model
    assert line.line
    assert np.allclose(on_curve(line).coefficients, beta, atol=0.25)


def test_refuses_columns_that_the_kinds_do_not_describe() -> None:
    v, y = people(100, seed=9)
    with pytest.raises(InvalidValueError, match="columns"):
        collect_in_waves(
            v, y, ["numeric"] * 5, plan=TWO, mu=1.0, generator=np.random.default_rng(1)
        )
