"""Public second moments: whitened, inside the ball whatever the record, and back again."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

from blurfit_lab.rivals import AdaSSPRegressor, PublicMomentRegressor
from blurfit_lab.rivals.noisy_sums import radius, whitening

TERMS = {"bounds": (-1, 1), "target_bounds": (-1, 1), "random_state": 0}


def people(rows: int, seed: int):
    """Two columns of which one hardly varies: what whitening is for."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1, 1, (rows, 2)) * [0.9, 0.02] + [0.0, 0.5]
    return x, np.clip(x @ [0.5, 8.0] - 4.0, -1, 1)


def test_whitened_public_rows_have_the_identity_for_second_moment() -> None:
    public = np.random.default_rng(0).standard_normal((500, 3)) @ np.diag([1.0, 0.1, 0.01])
    z = public @ whitening(public)
    assert z.T @ z / len(z) == pytest.approx(np.eye(3), abs=1e-9)


@pytest.mark.parametrize(("d", "n"), [(2, 100), (14, 2**13)])
def test_the_radius_is_exceeded_once_in_n_rows_at_most(d, n) -> None:
    assert chi2.sf(radius(d, n) ** 2, d) <= 1 / n


def test_whatever_the_record_it_is_in_the_ball(monkeypatch) -> None:
    """What AdaSSP's proof needs, of rows that are nothing like the public ones."""
    seen = []
    released = AdaSSPRegressor.from_sums
    monkeypatch.setattr(
        AdaSSPRegressor, "from_sums", lambda *all: seen.append(all[1]) or released(*all)
    )
    public, _ = people(200, 1)
    for corner in (1.0, -1.0):
        x = np.array([[corner, -corner]])
        PublicMomentRegressor(public_X=public, **TERMS).fit(
            np.repeat(x, 2, axis=0), np.array([1.0, 1.0])
        )
        assert np.trace(seen[-1].gram) <= 2 * (1 + 1e-12)  # two rows of length 1 at most
        assert np.trace(seen[-1].gram) > 1.9  # and cut they were, or the test tests nothing


def test_without_privacy_it_is_least_squares() -> None:
    public, _ = people(300, 2)
    x, y = people(400, 3)
    model = PublicMomentRegressor(epsilon=1e9, public_X=public, **TERMS).fit(x, y)
    assert model.predict(x) == pytest.approx(y, abs=2e-3)


def test_public_rows_help_where_a_column_hardly_varies() -> None:
    public, _ = people(2000, 4)
    x, y = people(4000, 5)
    terms = TERMS | {"epsilon": 3.0, "delta": 1e-6}
    whitened = PublicMomentRegressor(public_X=public, **terms).fit(x, y)
    plain = PublicMomentRegressor(**terms).fit(x, y)
    errors = [math.sqrt(np.mean((model.predict(x) - y) ** 2)) for model in (whitened, plain)]
    assert errors[0] < 0.7 * errors[1]


def test_without_public_rows_it_is_adassp() -> None:
    x, y = people(300, 6)
    alone = PublicMomentRegressor(**TERMS).fit(x, y)
    assert alone.coef_ == pytest.approx(
        AdaSSPRegressor(accounting="exact", **TERMS).fit(x, y).coef_
    )
