"""Entropy balancing: matched where the release says so, left alone where it does not."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from blurfit.errors import InfeasibleError
from blurfit.learning.public_features import balance, unweighted
from blurfit.learning.sums import JointSums
from blurfit.simulation import clean_sums
from blurfit.theory.forms import JointColumn

mpl.use("Agg")

COLUMNS = (JointColumn("a", 0.5), JointColumn("b", 0.5), JointColumn("y", 0.7, "sign"))
LABELS = ["public", "public, matched", "contributors"]


def release(v: np.ndarray, deviation: float, generator: np.random.Generator):
    y = generator.choice([-1.0, 1.0], len(v))
    clean = clean_sums(COLUMNS, 0.5, np.column_stack([v, y]))
    noise = np.triu(generator.normal(size=clean.shape) * deviation / np.sqrt(2))
    blurred = np.triu(clean) + noise
    blurred += np.triu(blurred, 1).T
    return JointSums(COLUMNS, 0.5, len(v), blurred, deviation).submodel("y")


def test_weights_make_the_moments_equal() -> None:
    generator = np.random.default_rng(1)
    people = generator.beta(4, 2, (50_000, 2)) * 2 - 1
    public = generator.uniform(-1, 1, (20_000, 2))
    found = balance(release(people, 1.0, generator), public)
    assert found.weights.sum() == pytest.approx(1)
    assert found.after == pytest.approx(people.mean(axis=0), abs=0.01)
    second = found.weights @ (public[:, 0] * public[:, 1])
    assert second == pytest.approx((people[:, 0] * people[:, 1]).mean(), abs=0.01)
    assert 100 < found.effective_rows < 20_000
    assert "worth" in str(found)


def test_the_same_population_is_left_alone_however_noisy_the_release() -> None:
    generator = np.random.default_rng(2)
    people, public = (generator.uniform(-1, 1, (5000, 2)) for _ in range(2))
    for deviation in (0.0, 50.0, 1000.0):
        found = balance(release(people, deviation, generator), public)
        assert found.effective_rows > 4500


def test_people_that_the_public_rows_lack_are_refused() -> None:
    generator = np.random.default_rng(3)
    people = generator.uniform(0.6, 1.0, (50_000, 2))
    public = generator.uniform(-1, 0.1, (5000, 2))
    with pytest.raises(InfeasibleError, match=r"too different|No weights"):
        balance(release(people, 1.0, generator), public)


def test_matching_takes_out_the_spread_of_what_is_matched() -> None:
    generator = np.random.default_rng(4)
    people = generator.beta(3, 2, (50_000, 2)) * 2 - 1
    public = generator.uniform(-1, 1, (5000, 2))
    found = balance(release(people, 0.0, generator), public)
    plain = unweighted(("a", "b"), public)
    assert np.trace(found.spread(public, 10**9)) < 0.05 * np.trace(plain.spread(public, 10**9))
    wild = np.sin(9 * public)
    assert np.trace(found.spread(wild, 10**9)) > 0.5 * np.trace(plain.spread(wild, 10**9))


def test_contributors_are_drawn_where_they_are_known() -> None:
    generator = np.random.default_rng(4)
    people, public = (generator.uniform(-1, 1, (rows, 2)) for rows in (5000, 500))
    matched = balance(release(people, 0.0, generator), public)
    for one, known in ((matched, LABELS), (unweighted(("a", "b"), public), LABELS[:1])):
        axes = one.plot()
        assert [text.get_text() for text in axes.get_legend().get_texts()] == known
        plt.close(axes.figure)
