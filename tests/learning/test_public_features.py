"""Exact models from Σyx and public rows: truth is found, noise survived, errors are honest."""

import numpy as np
import pytest

from blurfit.errors import InvalidValueError
from blurfit.learning.public_features import fit_with_public_rows
from blurfit.learning.sums import JointSums
from blurfit.simulation import clean_sums
from blurfit.theory.forms import JointColumn

COLUMNS = (JointColumn("a", 0.5), JointColumn("b", 0.5, "sign"), JointColumn("y", 0.7, "sign"))
TRUTH = np.array([-0.5, 2.0, 0.8])


def features(count: int, generator: np.random.Generator) -> np.ndarray:
    return np.column_stack(
        [generator.uniform(-1, 1, count), generator.choice([-1.0, 1.0], count, p=[0.7, 0.3])]
    )


def labels(v: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    chance = 1 / (1 + np.exp(-(TRUTH[0] + v @ TRUTH[1:])))
    return np.where(generator.random(len(v)) < chance, 1.0, -1.0)


def sums(v: np.ndarray, y: np.ndarray, deviation: float, generator, columns=COLUMNS) -> JointSums:
    clean = clean_sums(columns, 0.5, np.column_stack([v, y]))
    noise = generator.normal(size=clean.shape) * deviation / np.sqrt(2)
    noise = np.triu(noise, 1) + np.diag(np.diag(noise) * np.sqrt(2))
    blurred = np.triu(clean) + noise
    return JointSums(columns, 0.5, len(v), blurred + np.triu(blurred, 1).T, deviation)


def test_the_exact_logistic_model_is_found_not_a_parabola() -> None:
    generator = np.random.default_rng(1)
    v = features(200_000, generator)
    found = fit_with_public_rows(
        sums(v, labels(v, generator), 0.0, generator).submodel("y"),
        features(100_000, generator),
        "logistic",
    )
    assert found.coefficients == pytest.approx(TRUTH, abs=0.03)
    assert found.unshrunk == pytest.approx(TRUTH, abs=0.03)


def test_a_class_has_the_coefficients_of_its_label() -> None:
    """One release as yes and no, one as two classes: the same people, the same model."""
    generator = np.random.default_rng(2)
    v, public = features(50_000, generator), features(5000, generator)
    y = labels(v, generator)
    classes = (
        *COLUMNS[:2],
        JointColumn("no", 0.7, "level", "y"),
        JointColumn("yes", 0.7, "level", "y"),
    )
    clean = clean_sums(classes, 0.5, np.column_stack([v, y < 0, y > 0]))
    as_class = JointSums(classes, 0.5, len(v), clean, 0.0).submodel("yes", ["a", "b"])
    as_label = sums(v, y, 0.0, generator).submodel("y")
    one, other = (fit_with_public_rows(s, public, "logistic") for s in (as_class, as_label))
    assert one.unshrunk == pytest.approx(other.unshrunk, abs=0.15)
    more = np.diag(one.sampling) / np.diag(other.sampling)  # the public rows tell E[x] as well
    assert (more > 0.99).all()
    assert (more < 4).all()


def test_errors_cover_the_truth_with_noise_and_with_few_public_rows() -> None:
    """It would be seen if half of either part of the variance were missing, or a fifth of both."""
    squares = []
    for seed in range(80):
        generator = np.random.default_rng(seed)
        v = features(2000, generator)
        release = sums(v, labels(v, generator), 20.0, generator)
        found = fit_with_public_rows(
            release.submodel("y"), features(1000, generator), "logistic", match=False
        )
        assert found.unshrunk is not None
        squares.append((found.unshrunk - TRUTH) ** 2 / np.diag(found.sampling + found.privacy))
    assert np.mean(squares) == pytest.approx(1, abs=0.14)
    assert np.mean(np.array(squares) < 1.96**2) == pytest.approx(0.95, abs=0.035)


def test_public_rows_of_another_population_are_weighted() -> None:
    generator = np.random.default_rng(5)
    v = features(50_000, generator)
    release = sums(v, labels(v, generator), 5.0, generator)
    public = features(30_000, generator)
    keep = generator.random(len(public)) < np.where(public[:, 0] > 0, 0.15, 1.0)
    matched = fit_with_public_rows(release.submodel("y"), public[keep], "logistic")
    taken_as_they_are = fit_with_public_rows(
        release.submodel("y"), public[keep], "logistic", match=False
    )
    assert matched.coefficients == pytest.approx(TRUTH, abs=0.12)
    assert np.abs(taken_as_they_are.coefficients - TRUTH).max() > 0.3


def test_a_moment_that_no_model_has_still_gives_one() -> None:
    """Noise may push Σyx out of the polytope; the prior keeps the model finite."""
    generator = np.random.default_rng(6)
    v = features(200, generator)
    release = sums(v, np.sign(v[:, 0]), 400.0, generator)
    found = fit_with_public_rows(release.submodel("y"), features(500, generator), "logistic")
    assert np.isfinite(found.coefficients).all()


def test_counts_and_numbers() -> None:
    generator = np.random.default_rng(7)
    v = features(100_000, generator)
    public = features(50_000, generator)
    numeric = (*COLUMNS[:2], JointColumn("y", 0.7))
    counts = np.minimum(generator.poisson(np.exp(0.3 + v @ [0.7, -0.4])), 20)
    release = sums(v, counts / 10 - 1, 0.0, generator, numeric)
    found = fit_with_public_rows(release.submodel("y"), public, "poisson", top=20.0)
    assert found.coefficients == pytest.approx([0.3, 0.7, -0.4], abs=0.03)
    line = np.clip(0.1 + v @ [0.3, 0.2] + generator.normal(0, 0.1, len(v)), -1, 1)
    release = sums(v, line, 0.0, generator, numeric)
    found = fit_with_public_rows(release.submodel("y"), public, "linear")
    assert found.coefficients == pytest.approx([0.1, 0.3, 0.2], abs=0.01)


def test_families_fit_their_targets() -> None:
    generator = np.random.default_rng(8)
    v = features(100, generator)
    release = sums(v, labels(v, generator), 0.0, generator).submodel("y")
    with pytest.raises(InvalidValueError, match="numeric target with lower bound 0"):
        fit_with_public_rows(release, v, "poisson")
    with pytest.raises(InvalidValueError, match="public rows of shape"):
        fit_with_public_rows(release, v[:, :1], "logistic")


def test_errors_of_a_number_follow_its_own_residuals() -> None:
    """Residuals have variance 0.01, a hundredth of the largest: intervals must not be for that."""
    columns = (*COLUMNS[:2], JointColumn("y", 0.7))
    truth, draws, inside, sampling = np.array([0.1, 0.3, 0.2]), 60, 0, []
    for seed in range(draws):
        generator = np.random.default_rng(seed)
        v = features(4000, generator)
        y = truth[0] + v @ truth[1:] + generator.normal(0, 0.1, len(v))
        found = fit_with_public_rows(
            sums(v, y, 3.0, generator, columns).submodel("y"),
            features(2000, generator),
            "linear",
            match=False,
        )
        error = np.sqrt(np.diag(found.sampling + found.privacy))
        inside += (np.abs(found.unshrunk - truth) <= 1.96 * error).sum()
        sampling.append(found.sampling[1, 1])
    assert inside / (3 * draws) == pytest.approx(0.95, abs=0.035)
    # Var(v·y)/n, and as much for public rows: a tenth of what the bounds of y alone would say.
    assert np.median(sampling) < 0.6 / 4000
