"""Every fit spends before it draws noise, wherever it is called from."""

import os
import pickle
import subprocess
import sys
import threading
from concurrent import futures
from multiprocessing import get_context

import numpy as np
import pytest
from joblib import parallel_config
from joblib.externals.loky import ProcessPoolExecutor
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

from blurfit import Budget, BudgetExceededError
from blurfit.estimators import (
    InputPerturbationClassifier,
    InputPerturbationRegressor,
    MomentPerturbationClassifier,
    MomentPerturbationRegressor,
    moments,
)
from blurfit.input_perturbation import estimators as paper
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


def test_moments_spend_mu_input_epsilon_and_further_models_nothing() -> None:
    with Budget(epsilon=100.0, delta=1e-5) as budget:
        fitted = MomentPerturbationRegressor(**NUMBER, waves=1).fit(X, Y)
        InputPerturbationRegressor(**NUMBER).fit(X, Y)
    gaussian, added = budget.expenses
    assert gaussian.mu == fitted.agreement_.calibration.mu
    assert gaussian.mu == pytest.approx(mu_of(20.0, 1e-6), rel=1e-3)
    assert (gaussian.epsilon, added.mu) == (0.0, 0.0)
    assert (added.epsilon, added.delta) == (20.0, 1e-6)
    with Budget(epsilon=20.0, delta=1e-6) as budget:
        moments = MomentPerturbationRegressor(**NUMBER).fit(X, Y).moments_
        moments.fit(features=["x0"])
        moments.fit(target="x1")
    assert len(budget.expenses) == 1


def test_a_fit_spends_its_promise_once_and_what_is_proved() -> None:
    y = np.digitize(Y, [0.3, 0.6])
    model = InputPerturbationClassifier(bounds=(0, 1), classes=[0, 1, 2], epsilon=20.0)
    with Budget(epsilon=20.0, delta=1e-6) as budget:
        model.fit(X, y)
    assert budget.spent().epsilon == 20.0
    model = InputPerturbationRegressor(**NUMBER | {"epsilon": 1.0}, rule="published")
    with Budget(epsilon=1e6, delta=1e-5) as budget:
        model.fit(X, Y)
    assert budget.spent().epsilon > 1.0


@pytest.mark.parametrize("kind", [MomentPerturbationRegressor, InputPerturbationRegressor])
def test_nothing_is_drawn_before_it_is_paid_for(monkeypatch, kind) -> None:
    def never(*_):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(moments, "blurred", never)
    monkeypatch.setattr(paper, "blur_sums", never)
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
        with pytest.raises(BudgetExceededError, match=r"in another process.*n_jobs=1"):
            folds.result()
    assert not budget.expenses


def fit_own(parameters: dict[str, object]) -> int:
    """Fit an estimator that was made here; how many rows it learned from."""
    return int(MomentPerturbationRegressor(**parameters).fit(X, Y).model_.count)


@pytest.mark.parametrize(
    ("kind", "started"),
    [("loky", "before"), ("spawn", "within"), ("forkserver", "within"), ("fork", "before")],
)
def test_workers_that_make_their_own_estimators_refuse(kind, started) -> None:
    """Seen before: 50 fits by joblib's workers, "0 fits spent ε = 0 of 1", and ε was 8.88."""
    parameters = MomentPerturbationRegressor(**NUMBER).get_params()
    if kind == "loky":
        workers = ProcessPoolExecutor(1)
    else:
        workers = futures.ProcessPoolExecutor(1, mp_context=get_context(kind))
    with workers:
        if started == "before":
            assert workers.submit(fit_own, parameters).result() == len(X)
        with Budget(epsilon=200.0, delta=1e-6) as budget:
            with Budget(epsilon=100.0, delta=1e-6):
                pass  # the outer one is open still
            for _ in range(2):
                with pytest.raises(BudgetExceededError, match="another process"):
                    workers.submit(fit_own, parameters).result()
        assert workers.submit(fit_own, parameters).result() == len(X), "as soon as it is over"
    assert "0 fits in this process" in str(budget)


def fit_in_a_worker(kind: str) -> int:
    """Fit in a worker of this process."""
    with futures.ProcessPoolExecutor(1, mp_context=get_context(kind)) as workers:
        return workers.submit(fit_own, NUMBER).result()


@pytest.mark.parametrize(("kind", "within"), [("fork", "fork"), ("spawn", "fork")])
def test_workers_of_workers_refuse(kind, within) -> None:
    """Seen before: of a worker that was started before the block, the workers fitted unseen."""
    with futures.ProcessPoolExecutor(1, mp_context=get_context(kind)) as workers:
        assert workers.submit(fit_own, NUMBER).result() == len(X)
        refused = pytest.raises(BudgetExceededError, match="another process")
        with Budget(epsilon=200.0, delta=1e-6), refused:
            workers.submit(fit_in_a_worker, within).result()
        assert workers.submit(fit_in_a_worker, within).result() == len(X)


@pytest.mark.parametrize("moved", [None, "tempfile", "environment"])
def test_a_program_that_was_started_within_refuses(moved, tmp_path, monkeypatch) -> None:
    """Also if it opens a budget of its own, and where the folder for temporary files has become
    another since blurfit was imported.
    """
    if moved == "tempfile":
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    elif moved == "environment":
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", None)
    program = (
        "from blurfit import Budget; import numpy as np\n"
        "from blurfit.estimators import MomentPerturbationRegressor as Kind\n"
        "with Budget(50, 1e-6): Kind(bounds=(0, 1), target_bounds=(0, 1), epsilon=20.0).fit("
        "np.full((300, 2), 0.5), np.full(300, 0.5))"
    )
    with Budget(epsilon=200.0, delta=1e-6):
        found = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert "in another process" in found.stderr


def test_the_mark_goes_with_the_last_block(tmp_path, monkeypatch) -> None:
    """In any order in which threads leave, and after an error; nothing stays behind."""
    monkeypatch.setattr("blurfit.budget._FOLDER", str(tmp_path))
    one, other = Budget(epsilon=1.0, delta=1e-6), Budget(epsilon=1.0, delta=1e-6)
    one.__enter__()
    other.__enter__()
    (mark,) = tmp_path.iterdir()
    assert mark.stat().st_mode & 0o777 == 0o600
    one.__exit__(None, None, None)
    assert mark.exists()
    other.__exit__(ValueError, ValueError(), None)
    assert not list(tmp_path.iterdir())


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
