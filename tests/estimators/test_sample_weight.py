"""Rows with weights: divided by a stated bound, blurred with all else, and worth what they are."""

import numpy as np
import pytest

from blurfit.errors import InvalidValueError
from blurfit.estimators import MomentPerturbationClassifier, MomentPerturbationRegressor
from blurfit.estimators.base import SAMPLE_WEIGHT, Signal
from blurfit.estimators.passes import Rows, clean_moment_totals
from blurfit.schema.columns import Numeric
from blurfit.schema.schema import Schema
from blurfit.simulation import exact_totals

BOUNDS = {"bounds": (-1, 1), "target_bounds": (-1, 1), "sample_weight_bound": 4.0}


def selected(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """People who answer the more likely the larger x is, and the reciprocal of that."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1, 1, (3 * count, 2))
    chance = 0.625 + 0.375 * x[:, 0]
    kept = np.flatnonzero(generator.random(len(x)) < chance)[:count]
    y = 0.1 + 0.4 * x @ [1.0, 0.5] + 0.2 * generator.uniform(-1, 1, len(x))
    return x[kept], y[kept], 1 / chance[kept]


def fitted(x, y, weight, **options):
    with pytest.warns(match="drawn from random_state"):
        return MomentPerturbationRegressor(**BOUNDS, random_state=1, **options).fit(
            x, y, sample_weight=weight
        )


def test_weights_take_a_selection_bias_away() -> None:
    x, y, weight = selected(20_000)
    model = fitted(x, y, weight, epsilon=1e4)
    mean = model.moments_.mean("target")
    assert abs(y.mean() - 0.1) > 0.05
    assert mean.answer.values == pytest.approx(np.average(y, weights=weight), abs=1e-3)
    design = np.column_stack([np.ones(len(x)), x])
    root = np.sqrt(weight)
    expected = np.linalg.lstsq(design * root[:, None], y * root, rcond=None)[0]
    assert [model.intercept_, *model.coef_] == pytest.approx(expected, abs=2e-3)
    assert model.moments_.average_weight == pytest.approx(weight.mean() / 4, rel=0.01)
    assert model.moments_.joint.count == pytest.approx(
        weight.sum() ** 2 / np.sum(weight**2), rel=0.02
    )
    assert "Rows were weighted" in str(model.summary())
    assert "weighted (0.4 on average)" in str(model.summary())


def test_noise_depends_on_no_weight_and_small_ones_are_told() -> None:
    """Half of all weights are under the same contract, of which the bound is a part."""
    x, y, weight = selected(500)
    one, other = (fitted(x, y, scale * weight).agreement_ for scale in (1.0, 0.5))
    assert one.fingerprint == other.fingerprint
    assert one.weighting == SAMPLE_WEIGHT
    assert one.schema.question(SAMPLE_WEIGHT).upper == 4.0
    x, y, weight = selected(5000)
    model = fitted(x, y, weight / 20, epsilon=100.0)
    assert "are 0.02 on average" in str(model.moments_.mean("target"))
    assert "50 times as large" in model.model_.method


def test_one_pass_gives_the_sums_that_people_would_send() -> None:
    x, y, weight = selected(300)
    weight = 2 * weight  # some are beyond the bound, and count 1
    agreement = fitted(x, y, weight).agreement_
    table = {"x0": x[:, 0], "x1": x[:, 1], SAMPLE_WEIGHT: weight, "target": y}
    values = np.column_stack([x, weight])
    target = agreement.schema.target
    rows = Rows(
        values,
        Signal(target, y).encoded,
        agreement.schema.features,
        scales=np.clip(weight / 4, 0, 1),
    )
    clean = clean_moment_totals(agreement, rows)
    assert clean.sums == pytest.approx(exact_totals(agreement, table).sums)


def test_a_label_may_be_weighted_row_by_row() -> None:
    x, y, weight = selected(3000)
    model = MomentPerturbationClassifier(
        bounds=(-1, 1), classes=[0, 1], sample_weight_bound=4.0, epsilon=10.0, per_record=True
    ).fit(x, (y > 0).astype(int), sample_weight=weight)
    assert model.guarantee_.private
    assert model.score(x, (y > 0).astype(int)) > 0.8


@pytest.mark.parametrize(
    ("options", "weight", "reason"),
    [
        ({"sample_weight_bound": None}, np.ones(100), "known beforehand"),
        ({"sample_weight_bound": -1.0}, np.ones(100), "sample_weight_bound"),
        ({}, np.ones(99), "each of the 100 rows"),
        ({}, -np.ones(100), "at least 0"),
        ({}, np.full(100, np.nan), "finite"),
        ({"waves": 2}, np.ones(100), "sample_weight"),
    ],
)
def test_what_weights_cannot_be_is_refused_without_their_values(options, weight, reason) -> None:
    x, y, _ = selected(100)
    with pytest.raises(InvalidValueError, match=reason):
        MomentPerturbationRegressor(**(BOUNDS | options)).fit(x, y, sample_weight=weight)


def test_people_with_several_rows_have_no_weights_yet() -> None:
    x, y, weight = selected(100)
    with pytest.raises(InvalidValueError, match="no groups"):
        MomentPerturbationRegressor(**BOUNDS).fit(
            x, y, groups=np.arange(100) // 2, sample_weight=weight
        )
    named = Schema([Numeric(SAMPLE_WEIGHT, -1, 1), Numeric("b", -1, 1)], Numeric("y", -1, 1))
    with pytest.raises(InvalidValueError, match="no column that is called"):
        MomentPerturbationRegressor(bounds=named, sample_weight_bound=4.0).fit(
            x, y, sample_weight=weight
        )
