"""Collections drawn from public rows: the shortcut for large ones against drawing every person."""

import math

import numpy as np
import pytest
from scipy.stats import ks_2samp

from blurfit import Binary, Categorical, InvalidValueError, Numeric, Schema
from blurfit.datasets import make_census
from blurfit.forecast import population as module
from blurfit.forecast.population import Population, Samples

SCHEMA = Schema([Numeric("a", 0, 10), Binary("b")], Numeric("y", -5, 15))
LABEL = Schema([Numeric("a", 0, 10), Binary("b")], Numeric("y", -5, 15).above(3))


@pytest.fixture(scope="module")
def people() -> Population:
    census = make_census(5000, seed=3)
    return Population.of_table(census.schema, census.table, "census")


@pytest.mark.statistical
def test_large_collections_are_distributed_as_if_every_person_were_drawn(people) -> None:
    n, draws = module.DRAWN_ONE_BY_ONE, 400
    samples = Samples.of(people, draws, seed=1)
    one_by_one, at_once = samples.at(n), samples.at(n + 1)
    for i, j in ((0, 0), (0, 5), (4, 7), (13, 2)):
        pair = one_by_one.gram[:, i, j], at_once.gram[:, i, j]
        assert ks_2samp(*pair, method="asymp").pvalue > 1e-4
    pair = one_by_one.moment[:, 4], at_once.moment[:, 4]
    assert ks_2samp(*pair, method="asymp").pvalue > 1e-4
    # and jointly, where the model is made of them
    errors = people.without_privacy(one_by_one), people.without_privacy(at_once)
    assert ks_2samp(*errors, method="asymp").pvalue > 1e-4


def test_deviations_have_the_covariance_of_the_rows() -> None:
    """Var(n·M + √n·D) = n·Var(zzᵀ): by the rows' own variance."""
    people = Population.generated(SCHEMA, explained=0.5, seed=2)
    sums = Samples.of(people, 2000, seed=0).at(10**6)
    products = people.features[:, 0] * people.target
    expected = math.sqrt(1e6 * products.var())
    assert sums.moment[:, 0].std() == pytest.approx(expected, rel=0.08)
    assert sums.moment[:, 0].mean() == pytest.approx(1e6 * people.moment[0], abs=expected / 5)


def test_the_same_seed_draws_the_same_people(people) -> None:
    for n in (50, 10**8):
        one, other = (Samples.of(people, 3, seed=5).at(n) for _ in range(2))
        assert np.array_equal(one.gram, other.gram)
        assert not np.array_equal(one.gram, Samples.of(people, 3, seed=6).at(n).gram)


def test_errors_are_those_on_the_rows() -> None:
    table = {"a": [0, 5, 10, 2.5], "b": [0, 1, 1, 0], "y": [1, 4, 14, -3]}
    people = Population.of_table(SCHEMA, table)
    w = np.array([[0.2, -0.1, 0.4], [0.0, 0.0, 0.0]])
    predicted = np.array([SCHEMA.predict(row, table) for row in w])
    expected = np.sqrt(np.mean((predicted - np.array(table["y"])) ** 2, axis=1))
    assert people.error(w) == pytest.approx(expected)
    assert people.constant == pytest.approx(np.std(table["y"]))
    labels = Population.of_table(LABEL, table)
    wrong = np.mean((LABEL.predict(w[0], table) > 0) != (np.array(table["y"]) > 3))
    assert labels.error(w)[0] == wrong
    assert labels.constant == 0.5
    assert labels.best <= 0.5


def test_many_rows_count_in_the_moments_though_few_are_kept(monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 10)
    people = Population.of_table(
        SCHEMA, {"a": np.arange(100) / 10, "b": np.arange(100) % 2, "y": np.arange(100) / 10}
    )
    assert len(people.features) == 10
    x, _ = SCHEMA.encode({"a": np.arange(100) / 10, "b": np.arange(100) % 2, "y": np.zeros(100)})
    assert people.gram == pytest.approx(x.T @ x / 100)


def test_generated_people_are_explained_as_asked() -> None:
    schema = Schema(
        [Numeric("a", 0, 10), Binary("b"), Categorical("c", ["x", "y", "z"])], Numeric("y", 0, 1)
    )
    people = Population.generated(schema, explained=0.4)
    assert 1 - (people.best / people.constant) ** 2 == pytest.approx(0.4, abs=0.03)
    assert np.linalg.norm(people.features, axis=1).max() <= 1
    labels = Population.generated(LABEL, explained=0.4)
    assert labels.best < labels.constant < 0.51


def test_assumed_spectrum() -> None:
    people = Population.of_spectrum(SCHEMA, [0.5, 0.1, 0.01], explained=0.25)
    assert np.diag(people.gram) == pytest.approx([0.5, 0.1, 0.01])
    assert 1 - (people.best / people.constant) ** 2 == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("spectrum", [[0.5, 0.1], [0.5, 0.5, 0.1], [0.5, 0.1, 0.0]])
def test_bad_spectrum_is_refused(spectrum) -> None:
    with pytest.raises(InvalidValueError, match="to be 3 numbers > 0"):
        Population.of_spectrum(SCHEMA, spectrum)


def test_singular_sums_have_a_model_too(people) -> None:
    """Three people and fourteen columns: the shortest least-squares model."""
    errors = people.without_privacy(Samples.of(people, 4, seed=0).at(3))
    assert np.isfinite(errors).all()
