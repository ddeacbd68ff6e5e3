"""Rivals that minimise or descend: sensitivities and densities by brute force, noise, limits."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import chi, gamma, kstest, norm
from sklearn.linear_model import LinearRegression, LogisticRegression

from blurfit.input_perturbation.algorithms import Sums
from blurfit.theory.gaussian import mu_of
from blurfit_lab.audit.examination import examine
from blurfit_lab.rivals import (
    GradientPerturbationClassifier,
    GradientPerturbationRegressor,
    NonPrivateClassifier,
    NonPrivateRegressor,
    ObjectivePerturbationClassifier,
    ObjectivePerturbationRegressor,
    OutputPerturbationClassifier,
    OutputPerturbationRegressor,
)
from blurfit_lab.rivals.perturbation import (
    MOST_NOISE,
    calibrate,
    forecast_ridge,
)
from blurfit_lab.rivals.rival import HuberRisk, LogisticRisk, SquaredRisk, into_ball

RIDGE, ETA = 2.0, 1.5


def risk_of(kind: str, x, y):
    if kind == "squared":
        return SquaredRisk(Sums(len(y), x.T @ x, x.T @ y), ETA)
    return LogisticRisk([(x, y)])


def unit(generator, rows):
    x = generator.standard_normal((rows, 2))
    return x / np.linalg.norm(x, axis=1)[:, None]


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_nobody_moves_the_minimiser_further_than_the_sensitivity(kind, neighbours) -> None:
    generator, worst = np.random.default_rng(0), 0.0
    for rows in (1, 2, 5):
        for _ in range(60):
            x, y = unit(generator, rows), generator.choice([-1.0, 1.0], rows)
            moved, label = x.copy(), y.copy()
            moved[0], label[0] = -x[0], y[0]
            before = risk_of(kind, x, y).minimiser(RIDGE)
            if neighbours == "zero-out":
                moved[0] = 0.0
            after = risk_of(kind, moved, label).minimiser(RIDGE)
            worst = max(worst, float(np.linalg.norm(before - after)))
    bound = risk_of(kind, x, y).gradient_change(neighbours) / RIDGE
    assert 0.2 * bound < worst <= bound


@pytest.mark.statistical
def test_the_noise_is_gamma_in_length() -> None:
    generator = np.random.default_rng(1)
    x, y = unit(generator, 30), generator.choice([-1.0, 1.0], 30)
    clean = LogisticRisk([(x, y)]).minimiser(RIDGE)
    risk = LogisticRisk([(x, y)], start=clean)  # each release looks for it anew
    model = OutputPerturbationClassifier(epsilon=0.5, ridge=RIDGE)
    lengths = [np.linalg.norm(model.release(risk, generator) - clean) for _ in range(3000)]
    assert kstest(lengths, gamma(2, scale=2 / RIDGE / 0.5).cdf).pvalue > 1e-3


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_output_without_privacy_is_the_plain_fit(kind) -> None:
    generator = np.random.default_rng(2)
    x, y = unit(generator, 50), generator.choice([-1.0, 1.0], 50)
    risk = risk_of(kind, x, y)
    family = OutputPerturbationRegressor if kind == "squared" else OutputPerturbationClassifier
    found = family(epsilon=1e12).release(risk, generator)
    assert found == pytest.approx(risk.minimiser(0.0), abs=1e-4)


def test_the_default_ridge_minimises_its_forecast() -> None:
    x, y = unit(np.random.default_rng(3), 100), np.ones(100)
    risk = risk_of("squared", x, y)

    def forecast(ridge: float) -> float:
        noise = risk.dimension * risk.gradient_change("replace") / ridge / 0.3
        return 0.5 * ridge * ETA**2 + 0.5 * risk.count / risk.dimension * noise**2

    best = forecast_ridge(risk, 0.3, "replace")
    assert forecast(best) <= min(forecast(0.99 * best), forecast(1.01 * best))


GRID = np.linspace(-400, 400, 160_001)
# records (x, y) that all others leave alone, then the neighbours: one person's record in each
OTHERS = [(0.5, 1.0), (-1.0, 1.0)]
PAIRS = {
    "replace": [((1.0, 1.0), (1.0, -1.0)), ((1.0, 1.0), (0.3, -1.0)), ((1.0, -1.0), (0.0, 1.0))],
    "zero-out": [((1.0, 1.0), (0.0, 1.0)), ((-0.7, 1.0), (0.0, 1.0))],
}


def log_density(person, ridge: float, log_noise) -> np.ndarray:
    slope, bend = ridge * GRID, np.full_like(GRID, ridge)
    for x, y in [*OTHERS, person]:
        slope = slope - y * x * expit(-y * x * GRID)
        bend = bend + x * x * expit(x * GRID) * expit(-x * GRID)
    return log_noise(-slope) + np.log(bend)


def both_ways(neighbours: str, ridge: float, log_noise):
    for one, other in PAIRS[neighbours]:
        first, second = (log_density(person, ridge, log_noise) for person in (one, other))
        yield first, second
        yield second, first


@pytest.mark.parametrize("neighbours", ["replace", "zero-out"])
@pytest.mark.parametrize("rule", ["published", "certified"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_gaussian_keeps_delta(neighbours, rule, epsilon) -> None:
    delta, risk = 0.01, LogisticRisk([(np.ones((1, 1)), np.ones(1))])
    terms = {"epsilon": epsilon, "delta": delta, "neighbours": neighbours, "rule": rule}
    found = ObjectivePerturbationClassifier(**terms).perturbation(risk)
    spent = 0.0
    for p, q in both_ways(neighbours, found.ridge, norm(scale=found.scale).logpdf):
        assert np.trapezoid(np.exp(p), GRID) == pytest.approx(1, abs=1e-6)
        excess = np.maximum(np.exp(p) - np.exp(epsilon + q), 0)
        spent = max(spent, float(np.trapezoid(excess, GRID)))
    assert spent <= delta


def test_kifer_smith_and_thakurta_as_printed() -> None:
    model = ObjectivePerturbationRegressor(epsilon=0.1, delta=0.005, neighbours="zero-out")
    found = model.perturbation(SquaredRisk(Sums(1, np.eye(2), np.ones(2)), 1.0))
    assert found.scale == pytest.approx(139.0, abs=0.1)  # ζ = 2, δ' = δ/2: theory, section 4
    assert found.ridge == pytest.approx(20.0)


def test_certified_needs_less_noise_than_published() -> None:
    risk = SquaredRisk(Sums(1, np.eye(14), np.ones(14)), 1.0)
    for epsilon in (0.1, 1.0):
        tight, published = (
            ObjectivePerturbationRegressor(epsilon=epsilon, delta=0.01, rule=rule)
            .perturbation(risk)
            .scale
            for rule in ("certified", "published")
        )
        assert tight < 0.7 * published


def problem(kind: str):
    generator = np.random.default_rng(1)
    x = generator.standard_normal((60, 2))
    x /= np.linalg.norm(x, axis=1)[:, None]
    y = np.sign(x[:, 0] + generator.standard_normal(60))
    if kind == "logistic":
        return LogisticRisk([(x, y)]), generator
    return SquaredRisk(Sums(60, x.T @ x, x.T @ y), 2.0), generator


FAMILIES = {
    "squared": ObjectivePerturbationRegressor,
    "logistic": ObjectivePerturbationClassifier,
}


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("rule", ["published", "certified"])
def test_objectives_without_privacy_are_the_plain_fit(kind, rule) -> None:
    risk, generator = problem(kind)
    model = FAMILIES[kind](epsilon=1e9, rule=rule)
    assert model.release(risk, generator) == pytest.approx(risk.minimiser(0.0), abs=1e-2)


@pytest.mark.statistical
@pytest.mark.parametrize("rule", ["published", "certified"])
def test_the_noise_that_weights_imply_has_the_stated_distribution(rule) -> None:
    """From each w the b that made it is computed back. A thousand tell a scale that is wrong by √2
    (a distance of 0.083 between the two distribution functions, at a p-value of 10⁻⁶)."""
    risk, generator = problem("logistic")
    model = ObjectivePerturbationClassifier(epsilon=1.0, delta=0.01, rule=rule)
    found = model.perturbation(risk)
    weights = np.array([model.release(risk, generator) for _ in range(1000)])
    noise = -(risk.gradients(weights) + found.ridge * weights)
    assert kstest(noise[:, 0], norm(scale=found.scale).cdf).pvalue > 1e-3


def test_only_the_certified_rule_is_called_proved() -> None:
    published = ObjectivePerturbationRegressor().promise()
    assert not published.private
    assert "NOT PROVED" in published.statement
    assert ObjectivePerturbationRegressor(rule="certified").promise().private


@pytest.mark.parametrize(("neighbours", "freedom"), [("zero-out", 1), ("replace", 2)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-2), (0.1, 0.4), (1.0, 1e-6), (10.0, 1e-4)])
def test_the_calibration_spends_delta_and_no_more(epsilon, delta, neighbours, freedom) -> None:
    """E[(1 − exp(headroom − m²/2 − mX))₊] with X ~ χ, by quadrature of the definition."""
    change = 2.0 if neighbours == "replace" else 1.0
    found = calibrate(epsilon, delta, 0.25, change, neighbours)
    headroom, m = epsilon - math.log1p(0.25 / found.ridge), change / found.scale
    start = max(0.0, (headroom - m * m / 2) / m)

    def integrand(x):
        return -math.expm1(headroom - m * m / 2 - m * x) * chi.pdf(x, freedom)

    spent, _ = quad(integrand, start, start + 40, epsabs=1e-14, limit=200)
    assert delta * (1 - 1e-5) <= spent <= delta
    plain = change / mu_of(epsilon, delta)
    assert plain < found.scale
    assert found.scale <= MOST_NOISE * plain or headroom > 0.98 * epsilon


def test_the_release_itself_on_the_worst_neighbours() -> None:
    """d = 1, one record against none: the log-ratio of w's densities, drawn, keeps δ."""
    epsilon, delta, trials = 1.0, 0.02, 200_000
    found = calibrate(epsilon, delta, 0.25, 1.0, "zero-out")
    b = found.scale * np.random.default_rng(0).standard_normal(trials)
    w = -b / found.ridge  # no record: ridge·w + b = 0

    def slope(w):  # of the record x = 1, y = 1
        return -1 / (1 + np.exp(w))

    other = -slope(w) - found.ridge * w  # the b that gives this w with the record
    curvature = np.exp(w) / (1 + np.exp(w)) ** 2
    loss = (other**2 - b**2) / (2 * found.scale**2) - np.log1p(curvature / found.ridge)
    drawn = np.maximum(0, -np.expm1(epsilon - loss)).mean()
    backwards = np.maximum(0, np.exp(-loss) - math.exp(epsilon)).mean()
    for found_delta in (drawn, backwards):
        assert found_delta <= delta * 1.05
    assert max(drawn, backwards) > 0.1 * delta


def test_less_noise_than_the_published_rule_of_2012() -> None:
    rule = ObjectivePerturbationClassifier(epsilon=1.0, delta=1e-6, neighbours="zero-out")
    published = rule.perturbation(LogisticRisk([(np.ones((1, 1)), np.ones(1))]))
    assert calibrate(1.0, 1e-6, 0.25, 1.0, "zero-out").scale < 0.6 * published.scale


def heavy(seed: int):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1, 1, (60, 3)) / np.sqrt(3)
    y = np.clip(x @ [1.0, -2.0, 0.5] + generator.standard_t(2, 60) / 5, -1, 1)
    return x, y, generator.standard_normal(3)


@pytest.mark.parametrize("clip", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("size", [0.1, 10.0, 300.0])
def test_hubers_minimiser_is_the_minimum(clip, size) -> None:
    x, y, linear = heavy(0)
    linear = size * linear

    def objective(w):
        r = np.abs(y - x @ w)
        losses = np.where(r <= clip, r * r / 2, clip * r - clip * clip / 2)
        return losses.sum() + w @ w + linear @ w

    found = HuberRisk([(x, y)], clip=clip).minimiser(2.0, linear)
    other = minimize(objective, np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    assert objective(found) <= other.fun + 1e-9 * abs(other.fun)
    residuals = np.clip(y - x @ found, -clip, clip)
    assert 2 * found + linear == pytest.approx(residuals @ x, abs=1e-7)


def test_hubers_minimiser_without_clipping_is_ridge_regression() -> None:
    x, y, linear = heavy(1)
    found = HuberRisk([(x, y)], clip=100.0).minimiser(0.5, linear)
    assert found == pytest.approx(np.linalg.solve(x.T @ x + 0.5 * np.eye(3), x.T @ y - linear))


def squared_risk(x, y, eta=2.0) -> SquaredRisk:
    return SquaredRisk(Sums(len(y), x.T @ x, x.T @ y), eta)


def records(rows: int = 200, columns: int = 2):
    generator = np.random.default_rng(rows)
    x = generator.standard_normal((rows, columns))
    x /= np.linalg.norm(x, axis=1)[:, None]
    return x, np.clip(x @ [0.5, -0.3] + 0.1 * generator.standard_normal(rows), -1, 1)


def test_into_ball() -> None:
    weights = into_ball(np.array([[3.0, 4.0], [0.1, 0.0]]), 1.0)
    assert weights == pytest.approx(np.array([[0.6, 0.8], [0.1, 0.0]]))
    assert into_ball(np.array([3.0, 4.0]), None).tolist() == [3.0, 4.0]


def test_the_noise_is_one_gaussian_over_all_steps(delta_of_steps) -> None:
    """σ = Δ·√T/μ, where Δ is η + 2 to replace one record and η + 1 to zero it out."""
    risk = squared_risk(*records())
    for neighbours, change in (("replace", 4.0), ("zero-out", 3.0)):
        model = GradientPerturbationRegressor(delta=0.01, steps=64, neighbours=neighbours)
        exact = change * 8 / mu_of(1.0, 0.01)
        assert exact <= model.deviation(risk) <= 1.001 * exact
        multiplier = model.deviation(risk) / change
        assert delta_of_steps(multiplier, 1.0, 64) == pytest.approx(0.01, rel=0.01)


@pytest.mark.statistical
def test_a_step_carries_the_stated_noise() -> None:
    """One step from 0 in a huge ball: w = −(Σ∇ℓ(0) + b)/(nλ)."""
    x, y = records()
    model = GradientPerturbationRegressor(steps=1, weight_bound=1e9)
    found = model.descend(squared_risk(x, y), 50.0, np.random.default_rng(0), runs=5000)
    noise = -(found * 200) + x.T @ y
    assert kstest(noise[:, 0], norm(scale=50).cdf).pvalue > 1e-3


@pytest.mark.statistical
def test_all_steps_together_keep_the_promise_and_noise_for_one_does_not() -> None:
    """Thousands of descents from two tables that differ in one person, beside one another."""
    x, y = records(10)
    other = y.copy()
    y[0], other[0] = 1, -1
    risks, generator = (squared_risk(x, y), squared_risk(x, other)), np.random.default_rng(5)
    model = GradientPerturbationRegressor(delta=1e-3, weight_bound=2.0)
    for share, broken in ((1.0, False), (1 / math.sqrt(model.steps), True)):

        def draw(which: bool, count: int, share: float = share) -> np.ndarray:
            risk = risks[which]
            return model.descend(risk, share * model.deviation(risk), generator, runs=count)

        promise = (model.epsilon, model.delta)
        found = examine(
            draw, trials=4000, confidence=0.9999, promise=promise, labels=("model", "one person")
        )
        assert found.broken is broken, found


@pytest.mark.parametrize("kind", ["squared", "logistic"])
def test_without_noise_the_descent_approaches_the_minimum(kind) -> None:
    x, y = records()
    risk = LogisticRisk([(x, np.sign(y))]) if kind == "logistic" else squared_risk(x, y, None)
    plain = risk.minimiser(0.0)
    model = GradientPerturbationRegressor(
        steps=4000 if kind == "logistic" else 400, weight_bound=1.5 * float(np.linalg.norm(plain))
    )
    found = model.descend(risk, 1e-9, np.random.default_rng(1), runs=2)
    assert found == pytest.approx(np.array([plain, plain]), abs=2e-2)


def test_fits_are_in_the_ball() -> None:
    x, y = records()
    terms = {"bounds": (-1, 1), "delta": 0.01, "steps": 5, "weight_bound": 0.7, "random_state": 0}
    for family, target in (
        (GradientPerturbationRegressor, {"target_bounds": (-1, 1)}),
        (GradientPerturbationClassifier, {}),
    ):
        model = family(**terms, **target).fit(x, y if target else np.sign(y))
        assert 0 < np.linalg.norm(model.weights_) <= 0.7 * (1 + 1e-9)


GENERATOR = np.random.default_rng(5)
X = GENERATOR.uniform(0, 4, (300, 3))
Y = X @ [1.0, -0.5, 0.2] + GENERATOR.normal(0, 0.3, 300)
LABELS = np.where(Y + GENERATOR.normal(0, 1, 300) > 1, "yes", "no")


def test_no_privacy_is_least_squares() -> None:
    model = NonPrivateRegressor(bounds=(0, 4), target_bounds=(-9, 9)).fit(X, Y)
    oracle = LinearRegression().fit(X, Y)
    assert model.coef_ == pytest.approx(oracle.coef_, abs=1e-6)
    assert model.intercept_ == pytest.approx(oracle.intercept_, abs=1e-6)
    assert not model.guarantee_.private


def test_no_privacy_is_logistic_regression() -> None:
    model = NonPrivateClassifier(bounds=(0, 4)).fit(X, LABELS)
    oracle = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(X, LABELS)
    assert model.coef_ == pytest.approx(oracle.coef_, abs=1e-4)
    assert model.predict(X).tolist() == oracle.predict(X).tolist()


def test_separable_classes_have_a_minimum_with_a_ridge() -> None:
    labels = X[:, 0] > 2
    model = NonPrivateClassifier(bounds=(0, 4), ridge=1.0).fit(X, labels)
    assert np.mean(model.predict(X) == labels) > 0.9
