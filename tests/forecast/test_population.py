"""Collections drawn from public rows: the shortcut for large ones against drawing every person."""

import math

import numpy as np
import pytest
from scipy.stats import ks_2samp

from blurfit import Agreement, Binary, Categorical, InvalidValueError, Numeric, Schema
from blurfit.forecast import population as module
from blurfit.forecast.population import Population, Samples
from blurfit.model.model import PublishedModel
from blurfit.simulation import make_census

SCHEMA = Schema([Numeric("a", 0, 10), Binary("b")], Numeric("y", -5, 15))
LABEL = Schema([Numeric("a", 0, 10), Binary("b")], Numeric("y", -5, 15).above(3))


@pytest.fixture(scope="module")
def people() -> Population:
    census = make_census(5000, seed=3)
    return Population.of_table(census.schema, census.table, "census")


@pytest.mark.statistical
def test_large_collections_are_distributed_as_if_every_person_were_drawn(people) -> None:
    n, draws = module.DRAWN_ONE_BY_ONE, 400
    samples = Samples(people, draws, seed=1)
    one_by_one, at_once = samples.at(n), samples.at(n + 1)
    for i, j in ((0, 5), (4, 7), (13, 2), (14, 14), (14, 4)):
        pair = one_by_one.products[:, i, j], at_once.products[:, i, j]
        assert ks_2samp(*pair, method="asymp").pvalue > 1e-4
    assert set(one_by_one.products[:, 0, 0]) == {n}
    assert at_once.products[:, 0, 0] == pytest.approx(n + 1)
    # and jointly, where the model is made of them
    errors = people.without_privacy(one_by_one), people.without_privacy(at_once)
    assert ks_2samp(*errors, method="asymp").pvalue > 1e-4


def test_deviations_have_the_covariance_of_the_rows(monkeypatch) -> None:
    """Var(n·M + √n·D) = n·Var(zzᵀ): by the rows' own variance, however many they are."""
    monkeypatch.setattr(module, "ROWS_GENERATED", 2**12)
    people = Population.generated(SCHEMA, explained=0.5, seed=2)
    sums = Samples(people, 2000, seed=0).at(10**6)
    products = people.rows[:, 1] * people.rows[:, -1]
    expected, seen = math.sqrt(1e6 * products.var()), sums.products[:, 1, -1]
    assert seen.std() == pytest.approx(expected, rel=0.08)
    assert seen.mean() == pytest.approx(1e6 * people.products[1, -1], abs=expected / 5)


def test_the_same_seed_draws_the_same_people(people) -> None:
    for n in (50, 10**8):
        one, other = (Samples(people, 3, seed=5).at(n) for _ in range(2))
        assert np.array_equal(one.products, other.products)
        assert not np.array_equal(one.products, Samples(people, 3, seed=6).at(n).products)


TABLE = {"a": [0, 5, 10, 2.5], "b": [0, 1, 1, 0], "y": [1, 4, 14, -3]}


def model(schema: Schema, weights: np.ndarray) -> PublishedModel:
    agreement = Agreement.propose(schema, epsilon=1, delta=1e-6, quorum=10)
    features = tuple(one.name for one in schema.features)
    return PublishedModel(agreement, schema.target.name, features, weights, 10, "by hand")


def test_errors_are_those_of_the_models_predictions() -> None:
    people = Population.of_table(SCHEMA, TABLE)
    weights = np.array([[[0.4, 0.2, -0.1]], [[0.0, 0.0, 0.0]]])
    predicted = np.array([model(SCHEMA, one).predict(TABLE) for one in weights])
    expected = np.sqrt(np.mean((predicted - np.array(TABLE["y"])) ** 2, axis=1))
    assert people.error(weights) == pytest.approx(expected)
    assert people.constant == pytest.approx(np.std(TABLE["y"]))
    labels = Population.of_table(LABEL, TABLE)
    wrong = np.mean(model(LABEL, weights[0]).predict(TABLE) != (np.array(TABLE["y"]) > 3))
    assert labels.error(weights[0])[0] == wrong
    assert labels.constant == 0.5
    assert labels.best <= 0.5


def test_classes_are_told_by_their_share_of_mistakes() -> None:
    schema = Schema(SCHEMA.features, Categorical("c", ["x", "y", "z"]))
    table = {**TABLE, "c": ["x", "z", "z", "y"]}
    people = Population.of_table(schema, table)
    weights = np.random.default_rng(0).normal(size=(3, 3))
    wrong = np.mean(model(schema, weights).predict(table) != np.array(table["c"], dtype=object))
    assert people.error(weights[None])[0] == wrong
    assert people.constant == 0.5
    made = Population.generated(schema, explained=0.6)
    assert made.constant == pytest.approx(2 / 3, abs=1e-3)
    assert made.best < 0.55


def test_many_rows_count_in_the_moments_though_few_are_kept(monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 10)
    people = Population.of_table(
        SCHEMA, {"a": np.arange(100) / 10, "b": np.arange(100) % 2, "y": np.arange(100) / 10}
    )
    assert len(people.rows) == 10
    v = np.column_stack([np.arange(100) / 50 - 1, np.where(np.arange(100) % 2, 1, -1)])
    assert people.products[1:3, 1:3] == pytest.approx(v.T @ v / 100)


def test_generated_people_are_explained_as_asked_by_any_spectrum() -> None:
    schema = Schema(
        [Numeric("a", 0, 10), Binary("b"), Categorical("c", ["x", "y", "z"])], Numeric("y", 0, 1)
    )
    people = Population.generated(schema, explained=0.4)
    assert 1 - (people.best / people.constant) ** 2 == pytest.approx(0.4, abs=0.03)
    assert np.abs(people.rows).max() <= 1
    labels = Population.generated(LABEL, explained=0.4)
    assert labels.best < labels.constant < 0.51
    schema = Schema([Numeric("a", 0, 10), Numeric("c", -2, 1), Binary("b")], Numeric("y", 0, 1))
    people = Population.of_spectrum(schema, [0.5, 0.1], explained=0.25)
    assert np.diag(people.products)[1:4] == pytest.approx([0.5, 0.1, 1.0])
    assert 1 - (people.best / people.constant) ** 2 == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("spectrum", [[0.5, 0.1], [1.5], [0.0], []])
def test_bad_spectrum_is_refused(spectrum) -> None:
    with pytest.raises(InvalidValueError, match="to be 1 numbers > 0 of at most 1"):
        Population.of_spectrum(SCHEMA, spectrum)


def test_singular_sums_have_a_model_too(people) -> None:
    """Three people and fourteen columns: the shortest least-squares model."""
    errors = people.without_privacy(Samples(people, 4, seed=0).at(3))
    assert np.isfinite(errors).all()
