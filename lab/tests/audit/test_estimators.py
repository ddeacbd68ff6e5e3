"""Audits of anybody's estimator: a broken one is caught, an honest one is not."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from blurfit import InvalidValueError
from blurfit_lab.audit.estimators import (
    PAIRS,
    Range,
    Tables,
    audit_estimator,
    load_estimator,
    pair_of,
    promise_of,
)
from blurfit_lab.rivals import BoostedAdaSSPRegressor


class NoisyMean(BaseEstimator):
    """Σxy and Σx² with Laplace noise, rounded; `quiet` and `diagonal` change the noise of each."""

    def __init__(self, epsilon=1.0, quiet=1.0, diagonal=1.0, random_state=None):
        self.epsilon, self.quiet, self.diagonal = epsilon, quiet, diagonal
        self.random_state = random_state

    def fit(self, X, y):
        generator = np.random.default_rng(self.random_state)
        moment = (X[:, 0] * y).sum() + generator.laplace(0, 4 / self.epsilon / self.quiet)
        square = (X[:, 0] ** 2).sum() + generator.laplace(0, 2 / self.epsilon * self.diagonal)
        self.coef_, self.intercept_ = np.round([moment * 64]) / 64, np.round(square * 64) / 64
        return self


TERMS = {"trials": 1000, "seed": 1}


def findings(estimator, *names, **terms):
    return audit_estimator(estimator, [pair_of(name, Range()) for name in names], **TERMS | terms)


def test_an_honest_estimator_is_not_accused() -> None:
    found = findings(NoisyMean(epsilon=4.0), *PAIRS, trials=600)
    assert [one.pair for one in found] == list(PAIRS)
    assert not any(one.broken for one in found)
    assert max(one.counted for one in found) > 0.05  # and yet something is told
    assert all(one.gaussian is None for one in found)


def test_too_little_noise_is_caught_and_more_pairs_ask_for_more_evidence() -> None:
    """Of an eighth of the noise: by these trials the found ε is 1.9, give or take 0.2."""
    (found,) = findings(NoisyMean(quiet=8.0), "target", trials=400)
    assert found.broken
    assert 1.0 < found.counted < 8.0
    assert found.promised == 1.0
    beside = findings(NoisyMean(quiet=8.0), "target", "features", trials=400)[0]
    assert beside.counted < found.counted


def test_a_diagonal_without_noise_is_caught_by_scale_alone() -> None:
    of_target, of_scale = findings(NoisyMean(diagonal=0.01), "target", "scale", trials=300)
    assert not of_target.broken
    assert of_scale.broken


class Spike(BaseEstimator):
    """Heavy tails, and a spike if the first target is at its highest: no discriminant sees it."""

    def __init__(self, epsilon=1.0, random_state=None):
        self.epsilon, self.random_state = epsilon, random_state

    def fit(self, X, y):
        generator = np.random.default_rng(self.random_state)
        value = generator.standard_cauchy()
        if y[0] == 1 and generator.random() < 0.3:
            value = 0.3 + 1e-3 * generator.standard_normal()
        self.coef_, self.intercept_ = np.array([value]), 0.0
        return self


def test_a_spike_is_found_by_the_nearest_pilots() -> None:
    (found,) = findings(Spike(), "target")
    assert found.broken
    assert found.attack == "nearest"


def test_the_public_code_of_a_rival_is_caught_and_its_repair_is_not() -> None:
    terms = {"bounds": (-1, 1), "target_bounds": (-1, 1), "delta": 1e-3, "rounds": 3}
    (broken,) = findings(BoostedAdaSSPRegressor(calibration="code", **terms), "target", trials=200)
    (honest,) = findings(BoostedAdaSSPRegressor(**terms), "target", trials=200)
    assert broken.broken
    assert not honest.broken


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_named_pairs_are_neighbours_within_the_range(name, labels) -> None:
    known = Range(rows=8, columns=2, features=(0, 5), target=(10, 20), labels=labels)
    pair = pair_of(name, known)  # refuses what differs in more or less than one row
    for X, y in (pair.first, pair.second):
        assert X.shape == (8, 2)
        assert X.min() >= 0
        assert X.max() <= 5
        assert set(y) <= ({0, 1} if labels else {10.0, 15.0, 20.0})
        if labels:
            assert set(y) == {0, 1}


def test_pairs_differ_in_one_row_or_one_person() -> None:
    X, y = np.zeros((4, 1)), np.zeros(4)
    with pytest.raises(InvalidValueError, match="0 rows differ"):
        Tables("same", (X, y), (X, y))
    with pytest.raises(InvalidValueError, match="4 rows differ"):
        Tables("far", (X, y), (X + 1, y))
    with pytest.raises(InvalidValueError, match="same rows and columns"):
        Tables("longer", (X, y), (X[:3], y[:3]))
    pair = pair_of("target", Range(rows=5, rows_each=3))
    assert len(pair.first[1]) == 15
    assert (pair.first[1] != pair.second[1]).sum() == 3
    with pytest.raises(InvalidValueError, match="rows of one person"):
        Tables("two", pair.first, pair.second)


@pytest.mark.parametrize("known", [{"rows": 3}, {"columns": 0}, {"features": (1, 1)}])
def test_ranges_that_cannot_be_are_refused(known) -> None:
    with pytest.raises(InvalidValueError, match=next(iter(known))):
        Range(**known)


def test_estimators_by_name() -> None:
    model = load_estimator("blurfit_lab.rivals:AdaSSPRegressor", {"epsilon": 2.0, "delta": 1e-3})
    assert promise_of(model) == (2.0, 1e-3)
    assert promise_of(NoisyMean()) == (1.0, 0.0)
    for where in ("blurfit_lab.rivals", "nowhere:Model", "blurfit_lab.rivals:Nobody"):
        with pytest.raises(InvalidValueError, match="--of"):
            load_estimator(where, {})
    with pytest.raises(InvalidValueError, match="rounds"):
        load_estimator("blurfit_lab.rivals:AdaSSPRegressor", {"rounds": 2})
    with pytest.raises(InvalidValueError, match="epsilon"):
        promise_of(load_estimator("sklearn.linear_model:Ridge", {}))


def test_a_fit_that_fails_is_told_with_its_reason() -> None:
    with pytest.raises(InvalidValueError, match=r"could not be fitted.*bounds"):
        findings(BoostedAdaSSPRegressor(), "target", trials=100)


# ---- people with several rows
def test_a_fit_by_person_keeps_its_promise_and_a_row_wise_one_tells_more() -> None:
    """Eight rows each. Row by row the promise is to a row, and a warning says so elsewhere."""
    from blurfit.estimators import MomentPerturbationRegressor

    model = MomentPerturbationRegressor(
        epsilon=1.0, delta=1e-3, bounds=(-1, 1), target_bounds=(-1, 1), waves=1
    )
    pair = pair_of("features", Range(rows=40, rows_each=8))
    terms = {"published": ("sums_",), "trials": 500, "seed": 3}

    class Sums(MomentPerturbationRegressor):
        """Publishes the blurred sums, which tell more than coefficients."""

        def fit(self, X, y, groups=None):
            super().fit(X, y, groups)
            self.sums_ = self.moments_.sums
            return self

    watched = Sums(**model.get_params())
    (by_person,) = audit_estimator(watched, [pair], **terms)
    (by_row,) = audit_estimator(watched, [pair], by_person=False, **terms)
    assert not by_person.broken
    assert by_row.broken
    assert by_row.counted > 1.0 >= by_person.counted
