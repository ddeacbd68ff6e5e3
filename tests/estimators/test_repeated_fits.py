"""Repeated fits are counted by the process, told in summaries, and searches warn once."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score

from blurfit import AdviceWarning, Budget
from blurfit.budget import Expense, Tally
from blurfit.estimators import MomentPerturbationRegressor, MomentPerturbationSurvival, base
from blurfit.theory.gaussian import epsilon_of

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(0, 1, (4000, 2))
Y = X[:, 0] + GENERATOR.normal(0, 0.1, 4000)


def regressor(**terms: float) -> MomentPerturbationRegressor:
    return MomentPerturbationRegressor(bounds=(0, 1), target_bounds=(0, 1), waves=1, **terms)


@pytest.fixture
def tally(monkeypatch) -> Tally:
    """As in a process that has fitted nothing yet, and was warned of nothing."""
    fresh = Tally()
    for room in ("budget", "estimators.moments", "estimators.survival"):
        monkeypatch.setattr(f"blurfit.{room}.tally", fresh)
    monkeypatch.setattr(base, "_searches", set())
    return fresh


def caught(run) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run()
    return [str(one.message) for one in found if one.category is AdviceWarning]


def test_a_summary_says_what_all_fits_of_the_process_cost(tally) -> None:
    """As a Budget would add them up, exactly."""
    first = regressor().fit(X, Y)
    assert "fits so far" not in str(first.summary())
    for _ in range(3):
        regressor().fit(X, Y)
    words = " ".join(str(first.summary()).split())
    assert words.count("This process has made 4 fits so far.") == 1
    assert "blurfit.Budget limits that" in words
    with Budget(epsilon=100, delta=1e-6) as budget:
        for _ in range(4):
            regressor().fit(X, Y)
    assert str(budget).split("ε = ")[1].split(" ")[0] in words
    assert tally.fits == 8


def test_the_sum_is_that_of_gaussian_mechanisms() -> None:
    one = Tally()
    for _ in range(9):
        one.add(Expense("a fit", mu=0.1), "replace")
    expected = epsilon_of(0.3, 1e-6)
    told = str(one.in_words(1e-6)).split("ε = ")[1].split(" ")[0]
    assert float(told) == pytest.approx(expected, rel=1e-3)
    one.add(Expense("a fit", delta=2e-6), "replace")
    assert "no ε holds" in str(one.in_words(1e-6))
    one.add(Expense("a fit", mu=0.1), "zero-out")
    assert "not known" in str(one.in_words(1e-6))


def test_a_fit_that_a_budget_refuses_is_not_counted(tally) -> None:
    with Budget(epsilon=1.2, delta=1e-6):
        regressor().fit(X, Y)
        with pytest.raises(Exception, match="would bring what is spent"):
            regressor().fit(X, Y)
    assert tally.fits == 1


def test_survival_counts_too(tally) -> None:
    time = GENERATOR.exponential(4, 4000)
    exits = np.rec.fromarrays([time <= 4, np.minimum(time, 4)], names="event,time")
    for _ in range(2):
        model = MomentPerturbationSurvival(bounds=(0, 1), horizon=4, bands=3).fit(X, exits)
    assert "made 2 fits so far" in " ".join(str(model.summary()).split())
    assert tally.fits == 2


def test_searches_warn_once_and_plain_fits_never(tally) -> None:
    def validate() -> None:
        cross_val_score(regressor(), X, Y, cv=5)

    def search() -> None:
        GridSearchCV(regressor(), {"epsilon": [1.0, 2.0]}, cv=3).fit(X, Y)

    assert caught(validate) == [base.SEARCHED]
    assert caught(validate) == []  # the same line
    assert caught(search) == [base.SEARCHED]
    assert caught(lambda: regressor().fit(X, Y)) == []
    assert tally.fits == 5 + 5 + 7 + 1


def test_a_budget_needs_no_warning(tally) -> None:
    with Budget(epsilon=100, delta=1e-6):
        found = caught(lambda: cross_val_score(regressor(), X, Y, cv=3, error_score="raise"))
    assert found == []
    assert tally.fits == 3
