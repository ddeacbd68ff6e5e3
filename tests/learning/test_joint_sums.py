"""What is public is exact, the noise has the law that is claimed, and sub-models agree."""

from functools import cache

import numpy as np
import pytest

from blurfit.errors import InvalidValueError
from blurfit.learning.sums import JointColumn, JointSums, Noise
from support.joint_sums import clean_sums, draw_joint_sums

COLUMNS = (
    JointColumn("age", 0.4),
    JointColumn("owner", 0.3, "sign"),
    JointColumn("region=n", 0.35, "level", "region"),
    JointColumn("region=s", 0.35, "level", "region"),
    JointColumn("income", 0.6),
)
CONSTANT, DEVIATION = 0.5, 7.0


def rows(count: int = 400, seed: int = 1) -> np.ndarray:
    generator = np.random.default_rng(seed)
    level = generator.integers(0, 3, count)
    age, owner = generator.uniform(-1, 1, count), generator.choice([-1.0, 1.0], count)
    income = generator.uniform(-1, 1, count)
    return np.column_stack([age, owner, level == 0, level == 1, income])


@cache
def draws(number: int, deviation: float = DEVIATION) -> tuple[np.ndarray, list[JointSums]]:
    clean, generator = clean_sums(COLUMNS, CONSTANT, rows()), np.random.default_rng(2)
    return clean, [
        draw_joint_sums(COLUMNS, CONSTANT, 400, clean, deviation, generator) for _ in range(number)
    ]


def test_what_is_public_is_exact_and_levels_are_known_better() -> None:
    clean, (sums,) = draws(1)
    for entry in [(0, 0), (2, 2), (3, 4)]:
        assert sums.matrix[entry] == pytest.approx(clean[entry], abs=1e-9)
        assert sums.noise.variance[entry] == 0
    assert sums.matrix[3, 3] / 0.35 == pytest.approx(sums.matrix[0, 3] / CONSTANT)
    _, (sums,) = draws(1)
    combined = sums.noise.variance[0, 3]
    assert combined < DEVIATION**2 / 2
    assert combined < (DEVIATION / 0.35**2 * CONSTANT * 0.35) ** 2


def test_every_entry_has_the_variance_the_ties_and_the_sandwich_that_are_claimed() -> None:
    clean, found = draws(6000)
    errors = np.array([sums.matrix - clean for sums in found])
    noise = found[0].noise
    np.testing.assert_allclose(errors.var(axis=0), noise.variance, rtol=0.12, atol=1e-9)
    np.testing.assert_allclose(errors.mean(axis=0), 0, atol=5 * DEVIATION / np.sqrt(6000))
    assert noise.pairs.tolist() == [[0, 3, 3, 3], [0, 4, 4, 4]]
    tied = [np.mean(errors[:, i, j] * errors[:, k, m]) for i, j, k, m in noise.pairs]
    assert tied == pytest.approx(noise.covariances, rel=0.12)
    root = np.random.default_rng(3).normal(size=(6, 6))
    middle = root @ root.T
    expected = found[0].noise.sandwich(middle)
    measured = np.mean(errors @ middle @ errors, axis=0)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs(measured - expected).max() / scale.max() < 0.06


HATS = (
    *(JointColumn(f"age={at}", 0.5, "hat", "age") for at in range(4)),
    *(JointColumn(f"hours by {one}", 0.3, "numeric", "hours") for one in "ab"),
    JointColumn("pay", 0.6),
)


def test_hats_are_read_by_least_squares_and_their_noise_is_what_is_claimed() -> None:
    """Σv_i = Σv_i² + Σv_iv_{i±1}, and a public total: less noise than in the entries as sent."""
    generator = np.random.default_rng(1)
    at, hours, second = generator.uniform(0, 3, 300), generator.uniform(-1, 1, 300), rows(300)[:, 2]
    v = np.maximum(1 - np.abs(at[:, None] - np.arange(4)), 0)
    v = np.column_stack([v, hours * second, hours * (1 - second), at / 1.5 - 1])
    clean = clean_sums(HATS, CONSTANT, v)
    found = [draw_joint_sums(HATS, CONSTANT, 300, clean, 7.0, generator) for _ in range(6000)]
    errors, noise = np.array([one.matrix - clean for one in found]), found[0].noise
    np.testing.assert_allclose(errors.var(axis=0), noise.variance, rtol=0.15, atol=1e-9)
    assert np.abs(errors.mean(axis=0)).max() < 5 * 7.0 / np.sqrt(6000)
    measured = np.array([np.mean(errors[:, i, j] * errors[:, k, m]) for i, j, k, m in noise.pairs])
    assert np.abs(measured - noise.covariances).max() < 0.12 * noise.variance.max()
    for zero in [(1, 3), (1, 4), (2, 4), (5, 6)]:
        assert noise.variance[zero] == found[0].matrix[zero] == 0
    one = found[0].matrix
    row_sums = one[1:5, 1:5].sum(axis=1) / 0.5**2
    np.testing.assert_allclose(one[0, 1:5] / (CONSTANT * 0.5), row_sums)
    assert row_sums.sum() == pytest.approx(300)
    assert (np.diag(noise.variance)[1:5] < 0.8 * 49).all()
    assert (noise.variance[0, 1:5] < 0.9 * 49 / 2).all()
    middle = np.linalg.inv(clean + np.eye(8))
    expected = noise.take(range(7)).sandwich(middle[:7, :7])
    ebe = np.mean(errors[:, :7, :7] @ middle[:7, :7] @ errors[:, :7, :7], axis=0)
    assert np.abs(ebe - expected).max() < 0.06 * np.abs(expected).max()


def test_sandwich_of_isotropic_noise_has_its_closed_form() -> None:
    size, s2 = 4, 3.0
    noise = Noise(s2 / 2 * (np.ones((size, size)) + np.eye(size)))
    middle = np.diag([1.0, 2.0, 3.0, 4.0]) + 0.5
    expected = s2 / 2 * (np.trace(middle) * np.eye(size) + middle)
    np.testing.assert_allclose(noise.sandwich(middle), expected)
    np.testing.assert_allclose(
        noise.sandwich(np.stack([middle, 2 * middle])), np.stack([expected, 2 * expected])
    )


def test_any_column_can_be_the_target_and_all_others_its_features() -> None:
    values = rows(5000)
    clean = clean_sums(COLUMNS, CONSTANT, values)
    sums = JointSums(COLUMNS, CONSTANT, 5000, clean, 0.0)
    for target, features in (("income", ["age", "region=n"]), ("owner", ["income", "age"])):
        model = sums.submodel(target, features)
        indices = [sums.index(name) - 1 for name in features]
        x = np.column_stack([np.ones(5000), values[:, indices]])
        y = values[:, sums.index(target) - 1]
        expected = np.linalg.lstsq(x, y, rcond=None)[0]
        theta = np.linalg.solve(model.gram, model.cross)
        np.testing.assert_allclose(model.in_columns(theta), expected, atol=1e-9)
        assert model.square / model.target.weight**2 == pytest.approx(float(y @ y))
        assert model.extended.shape == (4, 4)
    _, (sums,) = draws(1)
    assert [column.name for column in sums.submodel("region=n").features] == [
        "age",
        "owner",
        "income",
    ]


def test_what_makes_no_sense_is_refused() -> None:
    _, (sums,) = draws(1)
    with pytest.raises(InvalidValueError, match="'wealth'"):
        sums.submodel("wealth")
    with pytest.raises(InvalidValueError, match="region=s"):
        sums.submodel("region=n", ["age", "region=s"])
    with pytest.raises(InvalidValueError, match="feature once"):
        sums.submodel("income", ["age", "age"])
    with pytest.raises(InvalidValueError, match="symmetric"):
        JointSums(COLUMNS, CONSTANT, 10, np.arange(36.0).reshape(6, 6), 1.0)
    with pytest.raises(InvalidValueError, match="one weight"):
        JointSums(
            (JointColumn("r=a", 0.2, "level", "r"), JointColumn("r=b", 0.3, "level", "r")),
            0.5,
            10,
            np.zeros((3, 3)),
            1.0,
        )
    with pytest.raises(InvalidValueError, match="group"):
        JointColumn("r=a", 0.2, "level")
