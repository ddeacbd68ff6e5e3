"""Every fit spends before it draws noise, wherever it is called from."""

import pickle
import threading

import numpy as np
import pytest
from joblib import parallel_config
from joblib.externals.loky import ProcessPoolExecutor
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

from blurfit import Budget, BudgetExceededError
from blurfit.estimators import (
    InputPerturbationClassifier,
    InputPerturbationRegressor,
    MomentPerturbationClassifier,
    MomentPerturbationRegressor,
    by_input,
    by_moment,
)
from blurfit.theory.gaussian import mu_of

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(0, 1, (300, 2))
Y = X[:, 0] + 0.1 * GENERATOR.standard_normal(300)
NUMBER = {"bounds": (0, 1), "target_bounds": (-1, 2), "epsilon": 20.0}
LABEL = {"bounds": (0, 1), "classes": [False, True], "epsilon": 20.0}
KINDS = [
    (MomentPerturbationRegressor(**NUMBER), Y),
    (InputPerturbationRegressor(**NUMBER), Y),
    (MomentPerturbationClassifier(**LABEL), Y > 0.5),
    (InputPerturbationClassifier(**LABEL), Y > 0.5),
]


@pytest.mark.parametrize(("model", "y"), KINDS, ids=lambda one: type(one).__name__)
def test_a_fit_spends_what_it_promises_and_no_more(model, y) -> None:
    with Budget(epsilon=20.0, delta=1e-6) as budget:
        clone(model).fit(X, y)
        assert 19.9 < budget.spent().epsilon <= 20.0
        with pytest.raises(BudgetExceededError, match="of 300 rows would bring"):
            clone(model).fit(X, y)
    assert len(budget.expenses) == 1
    assert type(model).__name__ in budget.expenses[0].what
    clone(model).fit(X, y)
    assert len(budget.expenses) == 1


def test_moments_spend_mu_and_input_spends_epsilon() -> None:
    with Budget(epsilon=100.0, delta=1e-5) as budget:
        fitted = MomentPerturbationRegressor(**NUMBER).fit(X, Y)
        InputPerturbationRegressor(**NUMBER).fit(X, Y)
    gaussian, added = budget.expenses
    assert gaussian.mu == fitted.agreement_.calibration.mu
    assert gaussian.mu == pytest.approx(mu_of(20.0, 1e-6), rel=1e-3)
    assert (gaussian.epsilon, added.mu) == (0.0, 0.0)
    assert (added.epsilon, added.delta) == (20.0, 1e-6)


def test_further_models_of_a_release_are_free() -> None:
    with Budget(epsilon=20.0, delta=1e-6) as budget:
        moments = MomentPerturbationRegressor(**NUMBER).fit(X, Y).moments_
        moments.fit(features=["x0"])
        moments.fit(target="x1")
    assert len(budget.expenses) == 1


def test_several_classes_of_input_spend_the_promise_once() -> None:
    y = np.digitize(Y, [0.3, 0.6])
    model = InputPerturbationClassifier(bounds=(0, 1), classes=[0, 1, 2], epsilon=20.0)
    with Budget(epsilon=20.0, delta=1e-6) as budget:
        model.fit(X, y)
    assert budget.spent().epsilon == 20.0


def test_a_rule_that_is_not_proved_spends_what_is_proved() -> None:
    model = InputPerturbationRegressor(**NUMBER | {"epsilon": 1.0}, rule="published")
    with Budget(epsilon=1e6, delta=1e-5) as budget:
        model.fit(X, Y)
    assert budget.spent().epsilon > 1.0


@pytest.mark.parametrize("module", [by_moment, by_input])
def test_nothing_is_drawn_before_it_is_paid_for(monkeypatch, module) -> None:
    def never(*_):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(module, "blurred", never)
    kind = MomentPerturbationRegressor if module is by_moment else InputPerturbationRegressor
    model = kind(**NUMBER)
    with Budget(epsilon=1.0, delta=1e-6), pytest.raises(BudgetExceededError):
        model.fit(X, Y)
    assert not hasattr(model, "model_")


def test_cross_validation_spends_and_is_stopped() -> None:
    model = MomentPerturbationRegressor(**NUMBER)
    with Budget(epsilon=40.0, delta=1e-6) as budget, pytest.raises(BudgetExceededError):
        cross_val_score(model, X, Y, cv=10, error_score="raise")
    assert 2 <= len(budget.expenses) < 10
    assert budget.spent().epsilon <= 40.0


@pytest.mark.filterwarnings("ignore:One or more of the test scores")
def test_a_grid_search_is_stopped_and_its_folds_say_why() -> None:
    search = GridSearchCV(
        MomentPerturbationRegressor(**NUMBER), {"epsilon": [5.0, 20.0]}, cv=3, refit=False
    )
    with Budget(epsilon=25.0, delta=1e-6) as budget:
        with pytest.warns(FitFailedWarning, match="would bring what is spent"):
            search.fit(X, Y)
        assert budget.spent().epsilon <= 25.0
    assert 0 < len(budget.expenses) < 6


def test_threads_spend_from_the_same_budget() -> None:
    with Budget(epsilon=200.0, delta=1e-6) as budget, parallel_config(backend="threading"):
        cross_val_score(MomentPerturbationRegressor(**NUMBER), X, Y, cv=4, n_jobs=2)
    assert len(budget.expenses) == 4
    with Budget(epsilon=20.0, delta=1e-6) as budget:
        thread = threading.Thread(target=lambda: MomentPerturbationRegressor(**NUMBER).fit(X, Y))
        thread.start()
        thread.join()
    assert len(budget.expenses) == 1


def test_other_processes_refuse_to_fit() -> None:
    """joblib's processes would spend where nobody hears of it. (`n_jobs=2` starts two, and two
    again after the first error: one tells as much.)"""
    model = MomentPerturbationRegressor(**NUMBER)
    with Budget(epsilon=200.0, delta=1e-6) as budget, ProcessPoolExecutor(1) as joblibs:
        folds = joblibs.submit(cross_val_score, model, X, Y, cv=2, error_score="raise")
        with pytest.raises(BudgetExceededError, match=r"sent to another process.*n_jobs=1"):
            folds.result()
    assert not budget.expenses


def test_what_has_left_an_open_budget_remembers_it(monkeypatch) -> None:
    model = MomentPerturbationRegressor(**NUMBER)
    with Budget(epsilon=200.0, delta=1e-6):
        text = pickle.dumps(model)
    back = clone(pickle.loads(text))
    back.fit(X, Y)  # in the same process there is nothing to refuse
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(BudgetExceededError, match="another process"):
        clone(back).fit(X, Y)
    pickle.loads(pickle.dumps(model)).fit(X, Y)  # which left while none was open


def test_others_are_not_asked() -> None:
    with Budget(epsilon=1.0, delta=1e-6) as budget:
        LinearRegression().fit(X, Y)
    assert not budget.expenses
