"""Every line trains on the same rows, keeps the task's promise, and repeats."""

import numpy as np
import pytest

from blurfit.errors import NotPrivateWarning
from blurfit.estimators import MomentPerturbationRegressor
from blurfit_lab.experiments import head_to_head
from blurfit_lab.experiments.figures import NO_PRIVACY
from blurfit_lab.experiments.head_to_head import (
    EPSILONS,
    FOR_LABELS,
    INPUT,
    LINES,
    MOMENT,
    ONLY_LABELS,
    OURS,
    PRIVATE_MEAN,
    PUBLIC_FEATURES,
    RIVAL_LINES,
    WAVES,
    Contest,
    HeadToHead,
    Task,
    error_of,
    fitted,
    is_one_wave,
    private_mean,
    takes,
)

pytestmark = pytest.mark.usefixtures("short_chains")


@pytest.fixture
def small(monkeypatch) -> HeadToHead:
    monkeypatch.setattr(head_to_head, "TESTED", 128)
    monkeypatch.setattr(head_to_head, "PUBLIC", 200)
    monkeypatch.setattr(
        head_to_head,
        "contests",
        lambda _: {
            "people": Contest("people", head_to_head._numbers, training=256),
            "rich": Contest("rich", head_to_head._labels, label=True, training=256),
        },
    )
    return HeadToHead()


def test_cells(small, people) -> None:
    cells = small.cells(people, 23)
    assert len(cells) == 2 * 2 * 2 * 6
    assert cells[0] == "people:replace:0.1:0:20"
    assert cells[-1] == "rich:zero-out:10.0:20:23"  # the first trials of all cells come first
    assert EPSILONS == (0.1, 0.2512, 0.631, 1.585, 3.981, 10.0)


def test_every_line_in_every_trial_and_the_same_again(small, people) -> None:
    rows = small.compute(people, "people:zero-out:10.0:1:3", {})
    assert {row.line for row in rows} == set(LINES) - set(ONLY_LABELS)
    assert {row.trial for row in rows} == {1, 2}
    assert {row.variant for row in rows} == {"people, zero-out"}
    assert {row.n for row in rows} == {256}
    assert all(0 < row.value <= 1 for row in rows)  # predictions are clipped to the bounds
    again = small.compute(people, "people:zero-out:10.0:2:3", {})  # whatever the block is
    assert again == [row for row in rows if row.trial == 2]
    value = {row.line: row.value for row in rows if row.trial == 1}
    assert value[NO_PRIVACY] < value[PRIVATE_MEAN]


def test_where_the_default_is_one_wave_its_line_is_that_of_one_wave(small, people) -> None:
    rows = small.compute(people, "people:replace:0.1:0:1", {})
    value = {row.line: row.value for row in rows}
    assert value[WAVES] == value[MOMENT]
    x, y = people.x[:8000], people.y[:8000]
    assert is_one_wave(Task(x[:256], y[:256], 0.1, 1e-6, "replace"))
    assert not is_one_wave(Task(x, y, 10.0, 1e-6, "replace"))
    task = Task(x[:4000], y[:4000], 10.0, 1e-6, "replace")
    model = MomentPerturbationRegressor(epsilon=10, delta=1e-6, bounds=(-1, 1), random_state=1)
    model.target_bounds = (-1, 1)
    with pytest.warns(NotPrivateWarning):
        model.fit(task.x[:, :-1] * task.root, task.y)
    assert (model.plan_ is None) == is_one_wave(task)


def test_labels_have_their_own_rivals(small, people) -> None:
    rows = small.compute(people, "rich:replace:10.0:0:1", {})
    assert {row.line for row in rows} == {NO_PRIVACY, PRIVATE_MEAN, *OURS, *FOR_LABELS}
    value = {row.line: row.value for row in rows}
    assert value[NO_PRIVACY] < 0.35 < value[PRIVATE_MEAN]
    assert value[PUBLIC_FEATURES] < value[PRIVATE_MEAN]


def test_a_line_without_public_rows_takes_none() -> None:
    x = np.ones((3, 2))
    task = Task(x, x[:, 0], 1.0, 1e-6, "replace")
    assert not takes(PUBLIC_FEATURES, task)
    assert takes(MOMENT, task)
    assert not any(takes(line, task) for line in ONLY_LABELS)


def test_the_error_is_a_mean_square_or_a_share_of_mistakes() -> None:
    score, y = np.array([3.0, -0.5, 0.5]), np.array([1.0, 0.5, 1.0])
    assert error_of(score, y, label=False) == pytest.approx((0 + 1 + 0.25) / 3 / 4)
    assert error_of(score, y, label=True) == pytest.approx(1 / 3)


def test_a_line_is_told_the_promise_and_gives_weights_of_encoded_columns() -> None:
    seen = {}

    class Copy:
        def __init__(self, **terms):
            seen.update(terms)

        def fit(self, X, y):
            seen["largest"] = np.abs(X).max()
            self.coef_, self.intercept_ = np.array([1.0, 2.0]), 3.0
            return self

    x = np.array([[0.5, -0.5, 1], [1, 1, 1]]) / np.sqrt(3)
    task = Task(x, np.array([0.0, 1.0]), 0.7, 1e-3, "replace")
    weights = fitted(Copy, rounds=2)(task, np.random.default_rng(0))
    assert x @ weights == pytest.approx([0.5 - 1 + 3, 1 + 2 + 3])
    assert (seen["epsilon"], seen["delta"], seen["neighbours"]) == (0.7, 1e-3, "replace")
    assert seen["rounds"] == 2
    assert seen["largest"] == pytest.approx(1.0)


def test_the_private_mean_is_a_mean() -> None:
    x = np.ones((1000, 1))
    task = Task(x, np.linspace(-1, 0.2, 1000), 5.0, 1e-6, "zero-out")
    (weight,) = private_mean(task, np.random.default_rng(0))
    assert weight == pytest.approx(-0.4, abs=0.01)
    assert set(OURS).isdisjoint(RIVAL_LINES)


@pytest.mark.parametrize(
    "name", [line for line in (*RIVAL_LINES, WAVES, MOMENT, INPUT) if line not in ONLY_LABELS]
)
def test_with_little_privacy_lines_come_close_to_least_squares(name, people) -> None:
    """Those that can: one groups rows, one makes bins, mixtures are few, and steps are few."""
    x, y = people.x[:4000], people.y[:4000]
    task = Task(x, y, 20.0, 1e-6, "zero-out", public=people.x[4000:6000])
    weights = LINES[name](task, np.random.default_rng(1))
    best = np.linalg.lstsq(x, y, rcond=None)[0]
    error, least = (float(np.mean((np.clip(x @ w, -1, 1) - y) ** 2)) for w in (weights, best))
    rough = name in ("BinAgg", "TukeyEM", "GaussMix (exact)", "gradient (modern accounting)")
    assert error < (1.7 if rough else 1.1) * least
