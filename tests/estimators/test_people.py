"""Many rows of one person: what is summed, what is promised, and to whom."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import cross_validate

from blurfit import Budget, InvalidValueError, Numeric
from blurfit.errors import NotPrivateWarning
from blurfit.estimators import (
    InputPerturbationRegressor,
    MomentPerturbationClassifier,
    MomentPerturbationRegressor,
    mechanisms,
)
from blurfit.estimators.people import People
from blurfit.model.statement import as_markdown, as_yaml
from blurfit.schema.schema import Schema

seeded = pytest.mark.filterwarnings("ignore:NOT PRIVATE:blurfit.errors.NotPrivateWarning")


def visits(people: int = 300, seed: int = 0, most: int = 8):
    """Return rows, targets and whose they are, shuffled: 1 to `most` rows of each."""
    generator = np.random.default_rng(seed)
    whose = np.repeat(np.arange(people), generator.integers(1, most + 1, people))
    own = generator.uniform(-0.4, 0.4, (people, 3))
    X = np.clip(own[whose] + generator.normal(0, 0.2, (len(whose), 3)), -1, 1)
    y = np.clip(X @ [0.4, -0.3, 0.0] + generator.normal(0, 0.1, len(whose)), -1, 1)
    order = generator.permutation(len(whose))
    return X[order], y[order], whose[order]


def clean(agreement, X, encoded, people):
    """Return what is summed of everybody's rows, before any noise."""
    rows = mechanisms.Rows(X, encoded, agreement.schema.features, people.weights)
    return mechanisms.clean_moment_totals(agreement, rows)


def regressor(**parameters) -> MomentPerturbationRegressor:
    return MomentPerturbationRegressor(bounds=(-1, 1), target_bounds=(-1, 1), **parameters)


def test_what_is_summed_is_the_mean_of_what_each_row_would_send() -> None:
    """By the route of contributors, row by row, in the first wave and under every later map."""
    X, y, whose = visits()
    with pytest.warns(NotPrivateWarning, match="random_state"):
        model = regressor(waves=4, epsilon=50.0, random_state=0).fit(X, y, groups=whose)
    schema, people = model.agreement_.schema, People.of(whose, len(X))
    table = {f"x{i}": X[:, i] for i in range(3)} | {"target": y}
    signal = mechanisms.Signal(schema.target, y)
    assert set(model.plan_.kinds) == {"joint", "gauge", "residual"}
    for release in model.releases_:
        assert release.agreement.diaries
        assert release.count == 300
        exact = release.agreement.exact(table)
        expected = sum(exact[whose == one].mean(axis=0) for one in range(300))
        found = clean(release.agreement, X, signal.encoded, people)
        np.testing.assert_allclose(found.sums, expected, atol=1e-9)


@pytest.mark.parametrize("kind", ["number", "label", "count"])
@seeded
def test_a_person_moves_every_wave_by_no_more_than_one_row_may(kind) -> None:
    """One person's eight rows are replaced by forty others at the bounds, under the same maps."""
    X, y, whose = visits(seed=1)
    if kind == "label":
        y = (y > 0).astype(int)
        model = MomentPerturbationClassifier(
            bounds=(-1, 1), classes=[0, 1], waves=3, epsilon=20.0, random_state=0
        )
    elif kind == "count":
        y = np.rint(4 * np.abs(y)).astype(int)
        model = MomentPerturbationRegressor(
            bounds=(-1, 1), target_bounds=(0, 6), family="poisson", epsilon=20.0, random_state=0
        )
    else:
        model = regressor(waves=4, epsilon=20.0, random_state=0)
    model.fit(X, y, groups=whose)
    target = model.agreement_.schema.target
    kept = whose != 5
    far = np.tile([1.0, -1.0, 1.0], (40, 1))
    tops = np.full(40, {"label": 1, "count": 6}.get(kind, 1.0))
    others = np.vstack([X[kept], far]), np.append(y[kept], tops), np.append(whose[kept], [5] * 40)

    def sums(agreement, X, y, whose):
        answers = y > 0 if kind == "label" else y.astype(float)
        encoded = mechanisms.Signal(target, answers).encoded
        people = People.of(whose, len(X))
        return clean(agreement, X, encoded, people).sums

    for release in model.releases_:
        form = release.agreement.form
        moved = sums(release.agreement, X, y, whose) - sums(release.agreement, *others)
        assert 0 < np.sqrt(moved**2 @ form.counts) <= form.reach("replace").sums


@seeded
def test_people_with_one_row_each_are_rows() -> None:
    X, y, _ = visits(most=1)
    labels = np.array([f"p{i:04d}" for i in range(len(X))])
    by_rows = regressor(random_state=3, waves=1).fit(X, y)
    by_people = regressor(random_state=3, waves=1).fit(X, y, groups=labels)
    np.testing.assert_allclose(by_people.moments_.sums, by_rows.moments_.sums, rtol=1e-9)
    assert by_people.agreement_.calibration.sigma == by_rows.agreement_.calibration.sigma


def test_what_is_promised_is_promised_to_the_person() -> None:
    X, y, whose = visits()
    with Budget(epsilon=1, delta=1e-6) as budget:
        model = regressor(epsilon=1.0).fit(X, y, groups=whose)
    assert "300 people" in repr(budget)
    assert model.agreement_.quorum == model.model_.count == 300
    told = model.guarantee_.statement
    assert "replacing all rows of one person by any others" in told
    assert "one fit to 300 people, each with any number of rows" in told
    assert "number of people" in told
    summary = str(model.summary())
    assert "people:      300" in summary
    assert "replace one person" in summary
    statement = as_markdown(model.model_)
    assert "is one person, with all rows that they have" in statement
    assert "Each row is another person's" not in statement
    assert "All rows of a person." in as_yaml(model.model_)
    zeroed = regressor(epsilon=1.0, neighbours="zero-out").fit(X, y, groups=whose)
    assert "leaving all rows of one person out of the sums" in zeroed.guarantee_.statement


def test_blurred_person_by_person() -> None:
    X, y, whose = visits()
    model = regressor(epsilon=1e4, waves=1, per_record=True).fit(X, y, groups=whose)
    people = People.of(whose, len(X))
    signal = mechanisms.Signal(model.agreement_.schema.target, y)
    exact = clean(model.agreement_, X, signal.encoded, people).sums
    sd = model.moments_.deviation
    assert np.abs(model.moments_.sums - exact).max() < 6 * sd
    assert model.moments_.count == 300


def test_every_kth_person_is_whole() -> None:
    X, _, whose = visits(people=10)
    people = People.of(whose + 7, len(X))
    rows, some = people.every(3)
    assert some.count == 4
    assert set(whose[rows]) == {0, 3, 6, 9}
    np.testing.assert_allclose(some.means(X[rows])[1], X[whose == 3].mean(axis=0))


@pytest.mark.parametrize(
    "groups",
    [[1, 2], np.zeros((4, 2)), [1.0, np.nan, 2.0, 2.0], ["a", None, "b", "b"], [1, "a", 2, 2]],
)
def test_groups_that_name_nobody_are_refused_without_telling_them(groups) -> None:
    with pytest.raises(InvalidValueError, match="Expected groups") as caught:
        People.of(np.array(groups, dtype=object) if "a" in list(np.ravel(groups)) else groups, 4)
    assert "'a'" not in str(caught.value)


def test_input_perturbation_refuses_people() -> None:
    X, y, whose = visits()
    with pytest.raises(InvalidValueError, match="no groups with input"):
        InputPerturbationRegressor(bounds=(-1, 1), target_bounds=(-1, 1)).fit(X, y, groups=whose)


def test_repeated_people_without_groups_are_warned_of() -> None:
    X, y, whose = visits()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = regressor(epsilon=1.0, waves=1)
    with pytest.warns(NotPrivateWarning, match="index repeats.*promise is to the person"):
        model.fit(frame.set_index(whose), y)
    schema = Schema(
        [Numeric("a", -1, 1), Numeric("b", -1, 1), Numeric("PatientID", 0, 1000)],
        Numeric("y", -1, 1),
    )
    named = frame[["a", "b"]].assign(PatientID=whose.astype(float))
    with pytest.warns(NotPrivateWarning, match="seems to name people"):
        MomentPerturbationRegressor(bounds=schema, waves=1).fit(named, y)
    model.fit(frame.set_index(whose), y, groups=whose)  # nothing to warn of
    model.fit(frame, y)


@seeded
def test_groups_are_routed() -> None:
    X, y, whose = visits()
    with sklearn.config_context(enable_metadata_routing=True):
        model = regressor(random_state=0, waves=1).set_fit_request(groups=True)
        found = cross_validate(model, X, y, cv=3, params={"groups": whose}, return_estimator=True)
    assert all(one.agreement_.diaries for one in found["estimator"])
