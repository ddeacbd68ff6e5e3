"""Windows and their sums, against the rows themselves."""

from pathlib import Path

import numpy as np
import pytest

from blurfit import InvalidValueError
from blurfit_lab.experiments.cohort import BLOCK, Cohort, Window


def rows_of(people: Cohort, start: int, count: int) -> np.ndarray:
    whole = len(people) // BLOCK * BLOCK
    return (start + np.arange(count)) % whole


@pytest.mark.parametrize("start", [0, 64, 4992 - 128])
@pytest.mark.parametrize("count", [128, 1024, 4096])
def test_sums_of_a_window_are_those_of_its_rows(people, start, count) -> None:
    window = Window(start, count, count // 4)
    sums, chosen = people.training_sums(window), rows_of(people, start, count)
    x, y, label = people.x[chosen], people.y[chosen], people.label[chosen]
    assert sums.gram == pytest.approx(x.T @ x, abs=1e-8)
    assert sums.moment == pytest.approx(x.T @ y, abs=1e-8)
    w = np.linspace(-1, 1, x.shape[1])
    assert sums.rmse(w) == pytest.approx(np.sqrt(np.mean((y - x @ w) ** 2)) / 2)
    assert sums.scale == pytest.approx(people.intercept)
    for is_label, target in ((False, y), (True, label)):
        rows = np.column_stack([np.ones(count), x[:, :-1] / people.intercept, target])
        sums = people.training_sums(window, label=is_label)
        assert sums.products() == pytest.approx(rows.T @ rows, abs=1e-7)


def test_test_rows_follow_the_window_and_are_never_trained_on(people) -> None:
    for trial in range(20):
        window = people.window(1024, trial)
        assert window.tested == 256
        train = set(rows_of(people, window.start, 1024).tolist())
        test = rows_of(people, window.start + 1024, 256)
        assert not train & set(test.tolist())
        sums = people.test_sums(window)
        assert sums.gram == pytest.approx(people.x[test].T @ people.x[test], abs=1e-8)
        w = np.ones((1, people.x.shape[1]))
        right = (people.x[test] @ w[0] > 0) == (people.label[test] > 0)
        assert people.scores(window, w, label=True)[0] == pytest.approx(right.mean())


def test_at_the_largest_n_all_the_rest_is_tested(people) -> None:
    """Those after the last whole block, which are in no window, included."""
    for trial in range(5):
        window = people.window(4096, trial)
        assert window.tested == 5013 - 4096
        train = rows_of(people, window.start, 4096)
        rest = np.setdiff1d(np.arange(5013), train)
        assert len(rest) == window.tested
        sums = people.test_sums(window)
        assert sums.gram == pytest.approx(people.x[rest].T @ people.x[rest], abs=1e-7)
        w = np.linspace(-1, 1, people.x.shape[1])[None]
        right = (people.x[rest] @ w[0] > 0) == (people.label[rest] > 0)
        assert people.scores(window, w, label=True)[0] == pytest.approx(right.mean())


def test_the_training_risk_has_the_windows_rows(people) -> None:
    window = Window(4992 - 128, 512, 128)
    risk = people.training_risk(window)
    assert risk.count == 512
    w = np.ones(people.x.shape[1])
    chosen = rows_of(people, window.start, 512)
    x, y = people.x[chosen], people.label[chosen]
    expected = ((-y / (1 + np.exp(y * (x @ w))))[:, None] * x).sum(axis=0)
    assert risk.gradients(w[None])[0] == pytest.approx(expected)


def test_windows_depend_on_seed_n_and_trial_alone(people) -> None:
    assert people.window(128, 4) == people.window(128, 4)
    assert len({people.window(128, trial).start for trial in range(30)}) > 20
    assert people.intercept == people.x[17, -1]


@pytest.mark.parametrize("n", [100, 4992])
def test_an_n_that_leaves_nothing_to_test_is_refused(people, n) -> None:
    with pytest.raises(InvalidValueError, match=f"n={n}"):
        people.window(n, 0)


def test_without_data_the_population_is_generated(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("BLURFIT_DATA", str(tmp_path))
    people = Cohort.load(None, rows=200)
    assert people.synthetic
    assert len(people) == 200
    with pytest.raises(InvalidValueError, match=r"data='/nowhere'"):
        Cohort.load(Path("/nowhere"))
    with pytest.raises(InvalidValueError, match="us_acs2024_income"):
        Cohort.load(tmp_path)  # a folder without the file is a mistake, not a wish
