"""As people grow, the published curve is maximum likelihood of the same people, true or not."""

import numpy as np
import pytest
from scipy.special import expit

from blurfit.estimators import MomentPerturbationClassifier, MomentPerturbationRegressor

pytestmark = pytest.mark.filterwarnings("ignore::blurfit.errors.NotPrivateWarning")
ROWS = 2**20
SLOPES = np.array([1.0, -0.5, 0.8, 0.0, 0.3])


def likeliest(X: np.ndarray, y: np.ndarray, rate) -> np.ndarray:
    """Newton's method on all rows, of E[y] = rate(t) whose derivative is h."""
    rows, w = np.column_stack([np.ones(len(X)), X]), np.zeros(X.shape[1] + 1)
    for _ in range(12):
        mean, h = rate(rows @ w)
        w += np.linalg.solve((rows * h[:, None]).T @ rows, rows.T @ (y - mean))
    return w


def people(law: str) -> np.ndarray:
    generator = np.random.default_rng(1)
    z = generator.normal(size=(ROWS, 5))
    if law == "wrong":  # skewed columns
        return np.clip(np.exp(0.7 * z) / 5 - 1, -1, 1)
    return np.clip(0.033 * z + 0.3 if law == "loose" else 0.35 * z, -1, 1)


@pytest.mark.parametrize("law", ["true", "wrong", "loose"])
def test_labels(law: str) -> None:
    X, generator = people(law), np.random.default_rng(2)
    t = (X - X.mean(axis=0)) / X.std(axis=0) @ SLOPES
    share = 0.1 + 0.6 * (t > 1) if law == "wrong" else expit(t - 1)
    y = generator.random(ROWS) < share
    model = MomentPerturbationClassifier(
        epsilon=8.0, delta=1 / ROWS**2, bounds=(-1, 1), classes=[False, True], random_state=3
    ).fit(X, y)
    best = likeliest(X, y, lambda t: (expit(t), expit(t) * expit(-t)))

    def loss(score: np.ndarray) -> float:
        return float(np.mean(np.logaddexp(0, np.where(y, -score, score))))

    excess = loss(model.decision_function(X)) - loss(best[0] + X @ best[1:])
    assert -1e-9 < excess < 1e-3
    assert model.plan_.kinds[-2:] == ("newton", "newton")


@pytest.mark.parametrize("law", ["true", "wrong"])
def test_counts(law: str) -> None:
    X, generator = people(law), np.random.default_rng(4)
    t = (X - X.mean(axis=0)) / X.std(axis=0) @ SLOPES / 3
    rate = np.exp(t) * generator.gamma(1.0, 1.0, ROWS) if law == "wrong" else np.exp(t)
    y = np.minimum(generator.poisson(2 * rate), 40).astype(float)
    public = {"bounds": (-1, 1), "target_bounds": (0, 40), "family": "poisson"}
    model = MomentPerturbationRegressor(epsilon=8.0, delta=1 / ROWS**2, random_state=5, **public)
    model.fit(X, y)
    best = likeliest(X, y, lambda t: (np.exp(np.minimum(t, 5)), np.exp(np.minimum(t, 5))))

    def loss(score: np.ndarray) -> float:
        return float(np.mean(np.exp(score) - y * score))

    score = model.intercept_ + X @ model.coef_
    assert np.allclose(model.predict(X), np.minimum(np.exp(score), 40.0))
    excess = loss(score) - loss(best[0] + X @ best[1:])
    assert -1e-9 < excess < 1e-3
