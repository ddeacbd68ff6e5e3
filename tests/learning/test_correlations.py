"""Correlations and components of blurred sums, against those of the rows."""

import numpy as np
import pytest

from blurfit.errors import InfeasibleError
from blurfit.learning.sums import JointSums
from blurfit.learning.tables import components, correlations
from blurfit.theory.forms import JointColumn
from support.joint_sums import clean_sums

COLUMNS = tuple(JointColumn(name, 0.5) for name in "abc")


def blurred(v: np.ndarray, deviation: float, seed: int) -> JointSums:
    clean = clean_sums(COLUMNS, 0.4, v)
    noise = np.triu(np.random.default_rng(seed).normal(size=clean.shape) * deviation / np.sqrt(2))
    noise[np.diag_indices_from(noise)] *= np.sqrt(2)
    total = np.triu(clean) + noise
    return JointSums(COLUMNS, 0.4, len(v), total + np.triu(total, 1).T, deviation)


def rows(count: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    common = generator.uniform(-1, 1, count)
    beside, other = generator.uniform(-1, 1, (2, count))
    return np.column_stack([common, 0.7 * common + 0.3 * beside, other])


def test_without_noise_they_are_those_of_the_rows() -> None:
    v = rows(500, 1)
    assert correlations(blurred(v, 0.0, 0)).values == pytest.approx(np.corrcoef(v.T), abs=1e-9)
    frame = correlations(blurred(v, 0.0, 0)).to_frame()
    assert frame[["one", "other"]].to_numpy().tolist() == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert frame["estimate"][1] == pytest.approx(np.corrcoef(v.T)[0, 2], abs=1e-9)
    found = components(blurred(v, 0.0, 0))
    assert found.variances == pytest.approx(np.linalg.eigvalsh(np.corrcoef(v.T))[::-1])
    assert found.shares.sum() == pytest.approx(1)


def test_standard_errors_are_the_spread_over_collections() -> None:
    found = [correlations(blurred(rows(2000, 2 * seed), 8.0, seed)) for seed in range(150)]
    spread = np.std([one.values for one in found], axis=0)
    stated = np.mean([one.standard_errors for one in found], axis=0)
    beside = ~np.eye(3, dtype=bool)
    assert stated[beside] == pytest.approx(spread[beside], rel=0.25)


def test_a_drowned_column_is_not_a_number() -> None:
    v = np.column_stack([rows(200, 3)[:, :2], np.zeros(200)])
    found = correlations(blurred(v, 300.0, 5))
    assert np.isnan(found.values).any()
    with pytest.raises(InfeasibleError, match="larger than the spread"):
        components(blurred(v, 300.0, 5))
