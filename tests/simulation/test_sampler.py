"""The shortcut against the long way round: blurring every record, and comparing what the database
would see."""

import math

import numpy as np
import pytest
from scipy.stats import ks_2samp, kstest

from blurfit import InvalidValueError, calibrate
from blurfit.learning.statistics import Statistics
from blurfit.simulation.sampler import InputSampler, MomentSampler, sampler_for

TRIALS = 3000


def summaries(gram: np.ndarray, moment: np.ndarray) -> dict[str, float]:
    """Entries, log-determinant, smallest eigenvalue and an inverse entry: what a wrong joint
    distribution would show in."""
    values = {
        "diagonal": gram[0, 0],
        "off-diagonal": gram[0, -1],
        "product": gram[0, 0] * gram[-1, -1] - gram[0, -1] ** 2,
        "smallest eigenvalue": np.linalg.eigvalsh(gram)[0],
        "moment": moment[0],
        "moment sum": moment.sum(),
    }
    sign, logarithm = np.linalg.slogdet(gram)
    values["log-determinant"] = sign * logarithm
    values["inverse"] = np.linalg.inv(gram)[0, 0] if abs(sign) else 0.0
    return values


def compare(per_record, drawn) -> None:
    left = [summaries(*per_record()) for _ in range(TRIALS)]
    right = [summaries(*drawn()) for _ in range(TRIALS)]
    for name in left[0]:
        columns = ([row[name] for row in rows] for rows in (left, right))
        result = ks_2samp(
            *columns, method="asymp"
        )  # the exact method does not converge at this size
        assert result.pvalue > 1e-4, name


@pytest.mark.statistical
@pytest.mark.parametrize(("count", "dimension"), [(40, 4), (7, 4), (12, 6), (1, 1), (30, 1)])
@pytest.mark.parametrize("kind", ["random", "equal"])
def test_input_sampler_against_every_record(count: int, dimension: int, kind: str) -> None:
    generator = np.random.default_rng([count, dimension, len(kind)])
    quorum, sigma_u, sigma_b = 30, 2.0, 5.0
    q, p = generator.standard_normal((2, count, dimension)) / math.sqrt(dimension)
    if kind == "equal":
        q[:] = q[0]
    clean = Statistics.of_records(q, p)
    sampler = InputSampler.of(clean, quorum=quorum, sigma_u=sigma_u, sigma_b=sigma_b)

    def per_record() -> tuple[np.ndarray, np.ndarray]:
        u, r = generator.standard_normal((2, count, dimension)) / math.sqrt(quorum)
        blurred = q + sigma_u * u
        return blurred.T @ blurred, (p + sigma_b * r).sum(axis=0)

    def drawn() -> tuple[np.ndarray, np.ndarray]:
        seen = sampler.draw(generator)
        assert seen.count == count
        return seen.gram, seen.moment

    compare(per_record, drawn)


@pytest.mark.statistical
def test_fewer_records_than_dimensions() -> None:
    """N = 2 < d = 3: the Gram matrix stays of rank 2, and its entries are right."""
    generator = np.random.default_rng(3)
    q, p = generator.standard_normal((2, 2, 3))
    sampler = InputSampler.of(Statistics.of_records(q, p), quorum=10, sigma_u=3.0, sigma_b=1.0)
    left, right = [], []
    for _ in range(TRIALS):
        gram = sampler.draw(generator).gram
        assert np.linalg.matrix_rank(gram, tol=1e-9) == 2
        left.append(gram[0, 1])
        blurred = q + 3 / math.sqrt(10) * generator.standard_normal((2, 3))
        right.append((blurred.T @ blurred)[0, 1])
    assert ks_2samp(left, right, method="asymp").pvalue > 1e-4


@pytest.mark.statistical
@pytest.mark.parametrize("dimension", [1, 3])
def test_moment_sampler_against_every_record(dimension: int) -> None:
    generator = np.random.default_rng(dimension)
    count, quorum, sigma_m, sigma_p = 25, 20, 3.0, 2.0
    q, p = generator.standard_normal((2, count, dimension))
    clean = Statistics.of_records(q, p)
    sampler = MomentSampler.of(clean, quorum=quorum, sigma_m=sigma_m, sigma_p=sigma_p)

    def per_record() -> tuple[np.ndarray, np.ndarray]:
        # As the mechanism is defined: variance σ²/n on the diagonal, σ²/(2n) above, mirrored below.
        noise = (
            generator.standard_normal((count, dimension, dimension)) * sigma_m / math.sqrt(quorum)
        )
        upper = np.triu(noise, 1) / math.sqrt(2)
        noise = upper + np.swapaxes(upper, 1, 2) + noise * np.eye(dimension)
        blurred = q[:, :, None] * q[:, None, :] + noise
        r = generator.standard_normal((count, dimension)) * sigma_p / math.sqrt(quorum)
        return blurred.sum(axis=0), (p + r).sum(axis=0)

    def drawn() -> tuple[np.ndarray, np.ndarray]:
        seen = sampler.draw(generator)
        return seen.gram, seen.moment

    compare(per_record, drawn)


@pytest.mark.statistical
def test_a_billion_contributors() -> None:
    """wᵀAw is known exactly: s² times a noncentral χ²_N, here normal to within 10⁻⁴."""
    generator = np.random.default_rng(9)
    n, d = 10**9, 5
    clean = Statistics(n, n / d * np.eye(d), np.zeros(d))
    found = calibrate(
        1, 1e-6, dimension=d, quorum=n, q_bound=1, p_bound=1, weight_bound=1, mechanism="input"
    )
    sampler = sampler_for(found, clean)
    s2 = found.sigma_u**2 / n
    mean = n / d + n * s2
    deviation = math.sqrt(2 * s2**2 * n + 4 * s2 * n / d)
    seen = [(sampler.draw(generator).gram[2, 2] - mean) / deviation for _ in range(TRIALS)]
    assert kstest(seen, "norm").pvalue > 1e-4


def test_the_same_seed_gives_the_same_draw() -> None:
    clean = Statistics(100, np.eye(3), np.ones(3))
    found = calibrate(1, 1e-6, dimension=3, quorum=100, q_bound=1, p_bound=1)
    sampler = sampler_for(found, clean)
    first, second = (sampler.draw(np.random.default_rng(1)) for _ in range(2))
    assert first == second
    assert first != sampler.draw(np.random.default_rng(2))


def test_blurred_or_foreign_statistics_are_refused() -> None:
    found = calibrate(
        1, 1e-6, dimension=3, quorum=100, q_bound=1, p_bound=1, weight_bound=1, mechanism="input"
    )
    with pytest.raises(InvalidValueError, match=r"dimension=2 .* to be 3"):
        sampler_for(found, Statistics(100, np.eye(2), np.ones(2)))
    with pytest.raises(InvalidValueError, match="Are these blurred statistics"):
        sampler_for(found, Statistics(100, -np.eye(3), np.ones(3)))
    with pytest.raises(InvalidValueError, match="rank at most 2"):
        sampler_for(found, Statistics(2, np.eye(3), np.ones(3)))
    with pytest.raises(InvalidValueError, match="nothing to blur"):
        sampler_for(found, Statistics.empty(3))
