"""The lines of the figures are the estimators and rivals themselves."""

import numpy as np
import pytest

from blurfit.estimators import InputPerturbationRegressor
from blurfit.model.release import learn
from blurfit.simulation import exact_totals, sampler_for
from blurfit_lab.experiments import figures
from blurfit_lab.rivals import NonPrivateClassifier, ObjectivePerturbationRegressor


@pytest.mark.filterwarnings("ignore::blurfit.errors.NotPrivateWarning")
def test_from_sums_is_what_an_estimator_would_publish(people) -> None:
    window = people.window(1024, 0)
    sums = people.training_sums(window)
    contract = figures.agreement(figures.INPUT, people, 1.0, 1024, label=False)
    found = figures.from_sums(contract, sums, None, np.random.default_rng(5))
    chosen = (window.start + np.arange(1024)) % (len(people) // 32 * 32)
    X = people.x[chosen][:, :-1] / people.intercept  # encoded columns in [−1, 1]
    model = InputPerturbationRegressor(
        epsilon=1.0, delta=0.01, bounds=(-1, 1), target_bounds=(-1, 1), random_state=5
    ).fit(X, people.y[chosen])
    # weights are published on a lattice: rounding may take them to the next of its points
    assert model.coef_ / people.intercept == pytest.approx(found[:-1], abs=1e-5)


@pytest.mark.parametrize("label", [False, True])
@pytest.mark.parametrize("epsilon", [1.0, 50.0])
def test_moment_is_what_a_database_would_publish(people, label: bool, epsilon: float) -> None:
    """From the raw records, by the schema's own kinds of columns."""
    window = people.window(512, 0)
    contract = figures.agreement(figures.MOMENT, people, epsilon, 512, label=label)
    found = figures.from_sums(
        contract, people.training_sums(window, label=label), None, np.random.default_rng(5)
    )
    chosen = (window.start + np.arange(512)) % (len(people) // 32 * 32)
    table = {people.schema.target.name: people.schema.target.unscale(people.y[chosen])}
    columns = np.split(
        people.x[chosen] / people.schema.scale,
        np.cumsum([len(one.columns) for one in people.schema.features]),
        axis=1,
    )
    for one, z in zip(people.schema.features, columns, strict=False):
        table[one.name] = one.unscale(z if len(one.columns) > 1 else z[:, 0])
    drawn = sampler_for(contract, exact_totals(contract, table)).draw(np.random.default_rng(5))
    model = learn(contract, drawn)
    (weights,) = model.weights
    expected = np.append(weights[1:], weights[0]) / people.intercept
    assert found == pytest.approx(expected, abs=1e-6)


def test_published_input_and_its_ridge(people) -> None:
    contract = figures.agreement(figures.PUBLISHED_INPUT, people, 1.0, 1024, label=True)
    assert contract.calibration.rule == "published"
    sums = people.training_sums(people.window(1024, 0), label=True)
    free, held = (
        figures.from_sums(contract, sums, ridge, np.random.default_rng(0)) for ridge in (0.0, 1e5)
    )
    assert np.linalg.norm(held) < 0.1 * np.linalg.norm(free)


@pytest.mark.parametrize("label", [False, True])
def test_a_ridge_of_moment_holds_the_slopes_and_leaves_the_intercept_free(people, label) -> None:
    contract = figures.agreement(figures.MOMENT, people, 1e6, 1024, label=label)
    window = people.window(1024, 0)
    sums = people.training_sums(window, label=label)
    chosen = (window.start + np.arange(1024)) % (len(people) // 32 * 32)
    x, y = people.x[chosen], (people.label if label else people.y)[chosen]
    for ridge in (0.0, 10.0):  # hardly any noise: it is that of least squares, without the mean
        found = figures.from_sums(contract, sums, ridge, np.random.default_rng(0))
        features = x[:, :-1] - x[:, :-1].mean(axis=0)
        gram = features.T @ features + ridge * np.eye(13)
        expected = np.linalg.solve(gram, features.T @ y)
        assert found[:-1] == pytest.approx(expected, abs=0.02)
        assert (x @ found).mean() == pytest.approx(y.mean(), abs=1e-3)


def test_objective_perturbation_is_the_rivals(people) -> None:
    risk = figures.squared_risk(people.training_sums(people.window(1024, 0)))
    problem = figures.perturbed(figures.OBJECTIVE, risk, 1.0, None, np.random.default_rng(1))
    expected = ObjectivePerturbationRegressor(epsilon=1.0, delta=0.01).release(
        risk, np.random.default_rng(1)
    )
    assert figures.minimised(risk, [problem])[0] == pytest.approx(expected)


def test_what_two_lines_ask_alike_is_the_same(people) -> None:
    risk = people.training_risk(people.window(512, 0))
    nothing = np.random.default_rng(0)
    problems = [
        figures.perturbed(figures.NO_PRIVACY, risk, 1.0, ridge, nothing)
        for ridge in (1.0, None, 1.0)
    ]
    found = figures.minimised(risk, problems)
    assert found[0].tolist() == found[2].tolist() != found[1].tolist()
    assert found[0] == pytest.approx(NonPrivateClassifier(ridge=1.0).release(risk, nothing))


def test_the_constant_is_the_mean(people) -> None:
    window = people.window(512, 0)
    chosen = (window.start + np.arange(512)) % (len(people) // 32 * 32)
    for label, target in ((False, people.y), (True, people.label)):
        sums = people.training_sums(window, label=label)
        scores = people.x[:3] @ figures.constant(people, sums)
        assert scores == pytest.approx(np.full(3, target[chosen].mean()))
