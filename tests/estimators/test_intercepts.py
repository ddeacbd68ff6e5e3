"""Random intercepts: how far one person moves what is summed, f, and the variance components."""

import numpy as np
import pytest
from scipy.optimize import minimize

from blurfit import Budget, Numeric
from blurfit.errors import InvalidValueError
from blurfit.estimators import MomentPerturbationRegressor
from blurfit.estimators.intercepts import told_by
from blurfit.estimators.people import People, arranged
from blurfit.learning.components import choose_kept
from blurfit.model.course import learn_plan
from blurfit.theory.moments import sensitivity

seeded = pytest.mark.filterwarnings("ignore:NOT PRIVATE:blurfit.errors.NotPrivateWarning")
SLOPES = np.array([0.4, -0.2, 0.0])


def visits(people: int = 6000, seed: int = 0, most: int = 8, least: int = 8):
    """Return rows, targets and whose they are: people differ by 0.09, rows of one by 0.04."""
    generator = np.random.default_rng(seed)
    whose = np.repeat(np.arange(people), generator.integers(least, most + 1, people))
    X = np.clip(0.3 * generator.normal(size=(people, 3))[whose], -0.6, 0.6)
    X = X + generator.uniform(-0.4, 0.4, (len(whose), 3))
    own, error = 0.3 * generator.normal(size=people), 0.2 * generator.normal(size=len(whose))
    return X, 0.5 + X @ SLOPES + own[whose] + error, whose


def regressor(**parameters) -> MomentPerturbationRegressor:
    return MomentPerturbationRegressor(
        bounds=(-1, 1), target_bounds=(-2, 3), effects="random", **parameters
    )


@pytest.mark.parametrize("f", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("constant", [0.4, 1.5])
def test_nobody_moves_the_sums_by_more_than_one_row_may(f, constant) -> None:
    """The worst pair of people with rows in a ball, by search from many starts."""
    generator = np.random.default_rng(1)

    def sent(free):
        rows = free.reshape(2, 3)
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)  # the longest are the worst
        rows = rows - (1 - np.sqrt(f)) * rows.mean(axis=0)
        z = np.column_stack([np.full(2, constant), rows])
        return z.T @ z / 2

    def apart(free):
        return -np.linalg.norm(sent(free[:6]) - sent(free[6:]))

    claimed = sensitivity(constant, 1.0)
    found = max(-minimize(apart, generator.normal(size=12)).fun for _ in range(20))
    assert np.sqrt(2) * (1 - 1e-5) <= found <= claimed
    if f in (0, 1):
        assert found == pytest.approx(claimed if f else np.sqrt(2), rel=1e-5)
    nothing = np.diag([constant**2, 0, 0, 0])
    ends = max(np.linalg.norm(sent(generator.normal(size=6)) - nothing) for _ in range(200))
    assert ends <= sensitivity(constant, 1.0, "zero-out")


def test_rows_keep_a_part_of_their_persons_mean() -> None:
    X, y, whose = visits(people=50, least=1)
    columns, target = [Numeric(f"x{j}", -1, 1) for j in range(3)], Numeric("y", -2, 3)
    people = People.of(whose, len(X))
    rows, bounds, aim, answers, who = arranged("random", people, X, columns, target, y, kept=0.6)
    assert [(one.lower, one.upper) for one in (*bounds, aim)] == [(-1, 1)] * 3 + [(-2, 3)]
    assert who.reach == 2
    u = np.column_stack([X, y - 0.5])
    for person in range(50):
        own = u[whose == person]
        mean = own.mean(axis=0)
        within = (own - mean).T @ (own - mean) / len(own)
        made = np.column_stack([rows, answers - 0.5])[whose == person]
        expected = within + 0.36 * np.outer(mean, mean)
        np.testing.assert_allclose(made.T @ made / len(own), expected, atol=1e-12)


@seeded
@pytest.mark.parametrize("least", [8, 1])
def test_slopes_constant_and_components_are_found(least) -> None:
    X, y, whose = visits(least=least)
    model = regressor(epsilon=60.0, random_state=1).fit(X, y, groups=whose)
    told = model.estimates()
    for one, truth in zip(told, [0.5, *SLOPES], strict=True):
        assert abs(one.value - truth) < 4 * one.standard_error
        assert one.standard_error < 0.02
    np.testing.assert_allclose(model.coef_, SLOPES, atol=0.02)
    assert model.intercept_ == pytest.approx(0.5, abs=0.03)
    assert model.predict([[0.5, 0, 0]])[0] == pytest.approx(0.7, abs=0.03)
    found = model.variances_
    assert abs(found.between - 0.09) < 4 * found.between_error
    assert abs(found.within - 0.04) < 4 * found.within_error
    assert found.between_error < 0.02
    assert found.within_error < 0.004
    rows = np.mean(1 / np.bincount(whose))
    assert found.one_over_rows == pytest.approx(rows, abs=0.02)
    right = rows * 0.04 / (0.09 + rows * 0.04)
    assert found.kept**2 == pytest.approx(right, rel=0.4)
    summary = str(model.summary())
    assert "Random intercepts: the variance between people is 0.0" in summary
    assert model.model_.inference[0].residual_variance == found.between + found.within
    again = learn_plan(model.plan_, model.releases_[: len(model.plan_)])
    np.testing.assert_allclose(again.weights, model.model_.weights)


@seeded
def test_all_releases_share_one_promise() -> None:
    X, y, whose = visits(people=800)
    with Budget(epsilon=1, delta=1e-6) as budget:
        model = regressor(epsilon=1.0).fit(X, y, groups=whose)
    assert "800 people" in repr(budget)
    assert len(model.releases_) == len(model.plan_) + 2 == model.plan_.releases
    spent = [release.agreement.calibration.mu**2 for release in model.releases_]
    assert sum(spent) <= model.plan_.mu**2 * (1 + 1e-9)
    assert all(release.agreement.diaries for release in model.releases_)
    for release in model.releases_:
        release.agreement.verify()
    assert model.agreement_.epsilon == model.guarantee_.epsilon == 1.0
    assert "all rows of one person" in model.guarantee_.statement
    one = regressor(epsilon=1.0, waves=1).fit(X, y, groups=whose)
    assert one.plan_.kinds == ("joint",)
    assert one.agreement_.epsilon == one.model_.agreement.epsilon == 1.0
    assert one.moments_.agreement.epsilon < 1
    other = regressor(epsilon=1.0, random_state=3).fit(X, y, groups=whose)
    noise = [release.sums[:3] for release in other.releases_[-2:]]
    assert not np.allclose(*noise)


@seeded
def test_means_count_as_noise_and_sampling_ask() -> None:
    """Those of generalised least squares where people are many, nearly all where noise rules."""
    X, y, whose = visits()
    model = regressor(epsilon=1e3, random_state=1).fit(X, y, groups=whose)
    facts = told_by(*model.releases_[-2:])
    right = 0.04 / (0.04 + 8 * 0.09)
    assert choose_kept(*facts, mu=1e6, waves=True) ** 2 == pytest.approx(right, rel=0.2)
    assert choose_kept(*facts, mu=1e6, waves=False) ** 2 == pytest.approx(right, rel=0.2)
    assert choose_kept(*facts, mu=0.01, waves=False) > 0.95
    kept = [choose_kept(*facts, mu=mu, waves=False) for mu in (0.01, 0.1, 1, 10, 100)]
    assert kept == sorted(kept, reverse=True)


def test_what_cannot_be_had_is_refused() -> None:
    X, y, whose = visits(people=30)
    with pytest.raises(InvalidValueError, match="Expected groups"):
        regressor().fit(X, y)
    with pytest.raises(InvalidValueError, match="effects='within'"):
        regressor(spread=0.5).fit(X, y, groups=whose)


@seeded
@pytest.mark.parametrize("effects", ["within", "random"])
def test_without_noise_it_is_least_squares_of_the_same_rows(effects) -> None:
    X, y, whose = visits(people=4000, least=2)
    model = regressor(epsilon=1e5, random_state=2).set_params(effects=effects)
    told = model.fit(X, y, groups=whose).estimates()
    kept, people = model.plan_.kept, People.of(whose, len(X))
    table = np.column_stack([np.ones(len(X)), X, y])
    table -= ((1 - kept) * people.means(table))[whose]
    table *= np.sqrt(people.weights)[:, None]
    if effects == "within":
        table = table[:, 1:]
        told = told[1:]
    right = np.linalg.lstsq(table[:, :-1], table[:, -1], rcond=None)[0]
    found = np.array([one.value for one in told])
    np.testing.assert_allclose(found, right, atol=0.1 * told[-1].standard_error)
