"""Coverage by simulation, the identities by other routes, and refusal where it cannot hold."""

import numpy as np
import pytest
from joint_people import NAMES, NOISE, TRUTH, collected, people

from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.learning.inference import Refusal, condition, infer, refusal
from blurfit.learning.sums import JointColumn, JointSums
from support.joint_sums import clean_sums


def test_without_noise_it_is_the_textbook() -> None:
    values = people(500, np.random.default_rng(1))[:, :8]
    columns = tuple(JointColumn(name, 0.3) for name in (*NAMES, "y"))
    sums = JointSums(columns, 0.5, 500, clean_sums(columns, 0.5, values), 0.0)
    found = infer(sums.submodel("y"))
    x, y = np.column_stack([np.ones(500), values[:, :7]]), values[:, 7]
    expected, (rss,), *_ = np.linalg.lstsq(x, y, rcond=None)
    np.testing.assert_allclose(found.coefficients, expected, rtol=1e-8)
    assert found.residual_variance == pytest.approx(rss / 492)
    np.testing.assert_allclose(found.covariance, rss / 492 * np.linalg.inv(x.T @ x), rtol=1e-6)
    assert found.r_squared == pytest.approx(1 - rss / np.sum((y - y.mean()) ** 2))
    assert found.condition == 0
    assert np.all(found.privacy == 0)


@pytest.mark.statistical
@pytest.mark.parametrize(("count", "mu"), [(2000, 1.0), (8000, 0.4)])
def test_intervals_cover_and_are_not_too_wide(count: int, mu: float) -> None:
    generator = np.random.default_rng(2)
    point = np.array([0.2, -0.3, 0.4, 1, -1, 0, 1])
    contrast = np.array([0, 0, 0, 0, 0, 0, 1.0, -1.0])
    inside, widths, values, variances, new = [], [], [], [], []
    for _ in range(250):
        sums = collected(count, mu, generator).submodel("y")
        if refusal(sums):
            continue
        found = infer(sums)
        told = [*found.estimates(), found.mean_response(point), found.combination(contrast)]
        truth = [*TRUTH, TRUTH[0] + point @ TRUTH[1:], contrast @ TRUTH]
        inside.append([e.lower <= t <= e.upper for e, t in zip(told, truth, strict=True)])
        widths.append([e.standard_error for e in told])
        values.append([e.value for e in told])
        variances.append(found.residual_variance)
        one = found.prediction(point)
        answer = TRUTH[0] + point @ TRUTH[1:] + NOISE * generator.normal()
        new.append(one.lower <= answer <= one.upper)
    assert len(inside) >= 240
    assert 0.93 <= np.mean(inside) <= 0.97
    assert 0.92 <= np.mean(new) <= 0.98
    ratio = np.mean(widths, axis=0) / np.std(values, axis=0)
    assert 0.93 < ratio.mean() < 1.1
    np.testing.assert_allclose(np.mean(variances), NOISE**2, rtol=0.04)


def test_noise_does_not_pass_for_the_size_of_coefficients() -> None:
    """All coefficients are 0 and κ is about 0.4: their noise is no part of r."""
    generator = np.random.default_rng(9)
    columns = tuple(JointColumn(f"x{place}", 1.0) for place in range(10))
    squares, deviation = [], 0.15
    for _ in range(140):
        half = generator.normal(size=(12, 12)) * deviation / 2
        matrix = np.diag([1.0] * 11 + [0.02]) + half + half.T
        sums = JointSums((*columns, JointColumn("y", 1.0)), 1e-3**0.5, 1000, matrix, deviation)
        if not refusal(sums.submodel("y")):
            found = infer(sums.submodel("y"))
            squares.append(found.coefficients[1:] ** 2 / np.diagonal(found.covariance)[1:])
    assert len(squares) > 110
    assert 0.91 < np.mean(squares) < 1.06


def test_both_parts_of_the_error_are_told_and_uneven_spread_triples_one() -> None:
    found = infer(collected(50_000, 1.0, np.random.default_rng(3)).submodel("y"))
    for one in found.estimates():
        assert one.standard_error == pytest.approx(np.hypot(one.sampling_error, one.privacy_error))
        assert one.sampling_error > 0
        assert one.privacy_error > 0
    strong = found.estimates()[1]
    assert strong.name == "a"
    assert strong.p_value < 1e-6
    assert strong.statistic == pytest.approx(strong.value / strong.standard_error)
    sums = collected(50_000, 1.0, np.random.default_rng(3)).submodel("y")
    even, uneven = infer(sums), infer(sums, uneven=True)
    np.testing.assert_allclose(uneven.sampling, 3 * even.sampling)
    np.testing.assert_allclose(uneven.privacy, even.privacy)
    with pytest.raises(InvalidValueError, match="weights"):
        found.combination([1.0])


def test_the_correction_removes_bias() -> None:
    """At κ = 0.1 plain least squares of the blurred sums is biased; θ̃ is less so."""
    generator = np.random.default_rng(4)
    plain, corrected = [], []
    for _ in range(300):
        sums = collected(1000, 0.6, generator).submodel("y")
        plain.append(sums.in_columns(np.linalg.solve(sums.gram, sums.cross)))
        corrected.append(infer(sums).coefficients)
    bias = [np.linalg.norm(np.mean(found, axis=0) - TRUTH) for found in (plain, corrected)]
    assert bias[1] < bias[0] * 0.7


def test_the_condition_of_isotropic_noise_has_its_closed_form() -> None:
    columns = tuple(JointColumn(name, 0.4) for name in "ab")
    values = np.random.default_rng(7).uniform(-1, 1, (1000, 3))
    columns = (*columns, JointColumn("y", 0.5))
    sums = JointSums(columns, 0.5, 1000, clean_sums(columns, 0.5, values), 2.0).submodel("y")
    known = sums.feature_noise.variance.copy()
    assert known[0, 0] == 0
    inverse = np.linalg.inv(sums.gram)
    second = 2.0 * (inverse + np.trace(inverse) * np.eye(3)) - np.diag([4 * inverse[0, 0], 0, 0])
    expected = np.linalg.eigvals(inverse @ second).real.max()
    assert condition(sums) == pytest.approx(expected)


def test_what_cannot_be_told_is_refused_with_the_reason() -> None:
    few = collected(300, 0.05, np.random.default_rng(8)).submodel("y")
    assert refusal(few) in (Refusal.NOT_DEFINITE, Refusal.TOO_NOISY)
    with pytest.raises(InfeasibleError, match="collect more records"):
        infer(few)
    tiny = collected(7, 100.0, np.random.default_rng(8)).submodel("y")
    assert refusal(tiny) is Refusal.TOO_FEW
    columns = tuple(JointColumn(f"r={name}", 0.5, "level", "r") for name in "ab")
    columns = (*columns, JointColumn("y", 0.5))
    chosen = np.arange(100) % 2 == 0
    values = np.column_stack([chosen, ~chosen, np.linspace(-1, 1, 100)])
    sums = JointSums(columns, 0.5, 100, clean_sums(columns, 0.5, values), 0.0)
    assert refusal(sums.submodel("y")) is Refusal.NOT_DEFINITE
    assert refusal(sums.submodel("y", ["r=a"])) is None
