"""Many rows of one person: what is summed, what is promised, and to whom."""

from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import cross_validate

from blurfit import Binary, Budget, Categorical, InvalidValueError, Numeric
from blurfit.errors import AdviceWarning, InfeasibleError, NotPrivateWarning
from blurfit.estimators import (
    InputPerturbationRegressor,
    MomentPerturbationClassifier,
    MomentPerturbationRegressor,
    MomentPerturbationSurvival,
    moments,
)
from blurfit.estimators.passes import Rows
from blurfit.estimators.people import People, demean_by_person, every, one_of_each
from blurfit.model.statement import as_markdown, as_yaml
from blurfit.schema.schema import Schema
from blurfit.theory.forms import WaveForm
from blurfit.theory.maps import LogisticNewton, NewtonMap, ResidualMap, Whitening

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
    rows = moments.Rows(X, encoded, agreement.schema.features, people)
    return moments.clean_moment_totals(agreement, rows)


def regressor(**parameters) -> MomentPerturbationRegressor:
    return MomentPerturbationRegressor(bounds=(-1, 1), target_bounds=(-1, 1), **parameters)


def test_nobodys_size_depends_on_how_many_rows_another_has() -> None:
    """A row more moves others to other places."""
    X, y, whose = visits(people=40)
    with pytest.warns(NotPrivateWarning, match="random_state"):
        model = regressor(waves=4, epsilon=50.0, random_state=0).fit(X, y, groups=whose)
    release = model.releases_[1]
    form = release.agreement.form

    def rows_of(first: int) -> Rows:
        """Return the table in which the first person has one row so many times."""
        kept = np.append(np.flatnonzero(whose == 0)[[0] * first], np.flatnonzero(whose > 0))
        people = People.of(whose[kept], len(kept))
        return Rows(X[kept], y[kept, None], release.agreement.schema.features, people)

    once, twice = rows_of(1)._sizes(form), rows_of(2)._sizes(form)
    assert np.array_equal(once[:, 1:], twice[:, 2:])


@pytest.mark.parametrize("kind", ["residual", "label"])
@pytest.mark.parametrize("far", [1.0, 1e6])
def test_a_row_that_stands_there_twice_moves_no_sum(kind, far) -> None:
    """A person's mean stays the same, and others are rounded alike, however far bounds reach."""
    generator = np.random.default_rng(0)
    X, y, whose = visits(people=5000, seed=1)
    X, y = X / far, np.sign(y) if kind == "label" else y
    white = Whitening(np.zeros(3), far * np.tril(generator.normal(size=(3, 3))), [0.3, 0.2, 0.1])
    chart = ResidualMap(white, 1.0, 0.3, 1.5, robust=True)
    if kind == "label":
        chart = NewtonMap(white, LogisticNewton(), robust=True)
    form = WaveForm(chart, ("a", "b", "c", "y"), (0, 1, 2))
    (place,) = np.flatnonzero(whose == np.argmax(np.bincount(whose) == 1))
    sums = []
    for places in (np.arange(len(X)), np.append(place, np.arange(len(X)))):
        people = People.of(whose[places], len(places))
        columns = [Numeric(name, -1, 1) for name in "abc"]
        sums.append(Rows(X[places], y[places, None], columns, people).sums(form))
    moved = np.sqrt((sums[1] - sums[0]) ** 2 @ form.counts)
    assert moved <= 5000 * 4000 * 2.0**-52 * form.bound
    assert moved <= 2.0**-30


def test_what_is_summed_is_what_each_person_would_send() -> None:
    """By the route of contributors, one by one, in the first wave and under every later map."""
    X, y, whose = visits()
    with pytest.warns(NotPrivateWarning, match="random_state"):
        model = regressor(waves=4, epsilon=50.0, random_state=0).fit(X, y, groups=whose)
    schema, people = model.agreement_.schema, People.of(whose, len(X))
    table = {f"x{i}": X[:, i] for i in range(3)} | {"target": y}
    signal = moments.Signal(schema.target, y)
    single = {name: column[:50] for name, column in table.items()}
    assert set(model.plan_.kinds) == {"joint", "residual"}
    for release in model.releases_:
        assert release.agreement.diaries
        assert release.count == 300
        expected = release.agreement.exact(table, people.codes).sum(axis=0)
        found = clean(release.agreement, X, signal.encoded, people)
        np.testing.assert_allclose(found.sums, expected, atol=1e-9)
        alone = release.agreement.exact(single, np.arange(50))
        np.testing.assert_allclose(alone, release.agreement.exact(single), atol=1e-12)
    first = model.releases_[0].agreement
    mean = first.exact(table)[whose == 5].mean(axis=0)
    np.testing.assert_allclose(first.exact(table, people.codes)[5], mean)


@pytest.mark.parametrize("kind", ["label", "count"])
@seeded
def test_newton_waves_send_what_each_person_would(kind) -> None:
    """Squares are those of a person's mean slope, and not means of squares of rows."""
    X, y, whose = visits()
    if kind == "label":
        answers = y > 0
        model = MomentPerturbationClassifier(bounds=(-1, 1), classes=[0, 1], waves=3)
    else:
        answers = np.rint(4 * np.abs(y))
        model = MomentPerturbationRegressor(bounds=(-1, 1), target_bounds=(0, 6), family="poisson")
    model.set_params(epsilon=30.0, random_state=0).fit(X, answers.astype(int), groups=whose)
    last = model.releases_[-1].agreement
    assert last.wave.kind == "newton"
    assert last.wave.chart.robust
    people = People.of(whose, len(X))
    table = {f"x{i}": X[:, i] for i in range(3)} | {"target": answers.astype(int)}
    expected = last.exact(table, people.codes).sum(axis=0)
    signal = moments.Signal(last.schema.target, answers)
    found = clean(last, X, signal.encoded, people).sums
    np.testing.assert_allclose(found, expected, atol=1e-9)
    by_row = np.array([last.exact(table)[whose == one].mean(axis=0) for one in range(300)])
    squares = slice(-10, None)
    np.testing.assert_allclose(found[:-10], by_row.sum(axis=0)[:-10], atol=1e-9)
    assert (np.diagonal(last.form.squares(found)) < np.diagonal(
        last.form.squares(by_row.sum(axis=0)))).all()  # fmt: skip
    assert not np.allclose(found[squares], by_row.sum(axis=0)[squares], rtol=0.1)


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
        encoded = moments.Signal(target, answers).encoded
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
    assert "protects:    all rows" in summary
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
    signal = moments.Signal(model.agreement_.schema.target, y)
    exact = clean(model.agreement_, X, signal.encoded, people).sums
    sd = model.moments_.deviation
    assert np.abs(model.moments_.sums - exact).max() < 6 * sd
    assert model.moments_.count == 300


def test_one_of_each_three_people_is_whole() -> None:
    X, _, whose = visits(people=100)
    rows, some = every(len(X), People.of(whose + 7, len(X)), 3)
    chosen = one_of_each(100, 3)
    assert some.count == 34
    assert set(whose[rows]) == set(chosen)
    found = [X[whose == one].mean(axis=0) for one in chosen]
    np.testing.assert_allclose(some.means(X[rows]), found)


@pytest.mark.parametrize("count", [1, 5, 100, 4095, 10_001])
@pytest.mark.parametrize("stride", [1, 2, 3, 32])
def test_one_of_each_k_rows_is_all_through_them(count, stride) -> None:
    found = one_of_each(count, stride)
    assert len(found) == -(-count // stride)
    assert (np.diff(found) > 0).all()
    assert found[0] >= 0
    assert found[-1] < count
    farthest = 2 * 8 * stride  # no two runs are farther apart, so nothing sorted is left out
    assert np.diff(found, prepend=0, append=count).max() <= farthest


@pytest.mark.parametrize("period", [2, 3, 4, 7, 12, 24, 32])
@pytest.mark.parametrize("stride", [2, 3, 4, 12, 32])
def test_rows_that_are_read_take_all_places_of_a_period_alike(period, stride) -> None:
    """So that cases and controls who take turns, or months, are all there."""
    found = one_of_each(64_000, stride)
    share = np.bincount(found % period, minlength=period) / len(found)
    assert np.abs(share * period - 1).max() < 0.1


@pytest.mark.parametrize(
    "groups",
    [[1, 2], np.zeros((4, 2)), [1.0, np.nan, 2.0, 2.0], ["a", None, "b", "b"], [1, "a", 2, 2]],
)
def test_groups_that_name_nobody_are_refused_without_telling_them(groups) -> None:
    with pytest.raises(InvalidValueError, match="Expected groups") as caught:
        People.of(np.array(groups, dtype=object) if "a" in list(np.ravel(groups)) else groups, 4)
    assert "'a'" not in str(caught.value)


def test_no_warning_depends_on_how_many_rows_a_person_has(recwarn) -> None:
    """The number of people is public, that of rows is not: 60 people, and one has 100 rows."""
    X, y, whose = visits(people=60, most=1)
    weak = regressor(waves=1, delta=1 / 61)
    exits = np.rec.fromarrays([y > 0, np.abs(y)], names="event,time")
    spells = MomentPerturbationSurvival(bounds=(-1, 1), horizon=1.0, bands=2, delta=1 / 61)
    for more in (0, 100):
        rows = np.append(np.arange(len(y)), np.zeros(more, int))
        weak.fit(X[rows], y[rows], groups=whose[rows])
        with suppress(InfeasibleError):  # 60 people are few
            spells.fit(X[rows], exits[rows], groups=whose[rows])
    assert not recwarn.list
    weak.delta = 1 / 59
    with pytest.warns(AdviceWarning, match="one in 60, the number of people"):
        weak.fit(X[rows], y[rows], groups=whose[rows])


def test_people_are_refused_by_input_and_warned_of_without_groups() -> None:
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
    with pytest.raises(InvalidValueError, match="no groups with input"):
        InputPerturbationRegressor(bounds=(-1, 1), target_bounds=(-1, 1)).fit(X, y, groups=whose)


@seeded
def test_groups_are_routed() -> None:
    X, y, whose = visits()
    with sklearn.config_context(enable_metadata_routing=True):
        model = regressor(random_state=0, waves=1).set_fit_request(groups=True)
        found = cross_validate(model, X, y, cv=3, params={"groups": whose}, return_estimator=True)
    assert all(one.agreement_.diaries for one in found["estimator"])


# ---- within people
def confounded(people: int = 4000, seed: int = 0, rows: int = 6):
    """Return rows whose slope is 0.5 within people, and nearer to 1.5 between them."""
    generator = np.random.default_rng(seed)
    own = generator.uniform(-0.5, 0.5, people)
    x = own[:, None] + generator.uniform(-0.4, 0.4, (people, rows))
    other = generator.uniform(-1, 1, (people, rows))
    noise = generator.normal(0, 0.05, (people, rows))
    y = np.clip(0.5 * (x - own[:, None]) + own[:, None] - 0.2 * other + noise, -1, 1)
    X = np.column_stack([x.ravel(), other.ravel()])
    return X, y.ravel(), np.repeat(np.arange(people), rows)


@seeded
@pytest.mark.parametrize(("effects", "slope"), [("within", 0.5), ("pooled", 0.8)])
def test_effects_answer_different_questions(effects, slope) -> None:
    X, y, whose = confounded()
    model = regressor(epsilon=8.0, effects=effects, random_state=1).fit(X, y, groups=whose)
    first, second = model.estimates()[1:]
    assert abs(first.value - slope) < 0.03
    assert abs(second.value + 0.2) < 4 * second.standard_error + 0.005
    assert model.agreement_.quorum == 4000
    np.testing.assert_allclose(model.coef_, [first.value, second.value], atol=0.05)
    assert model.predict([[0.5, 0.0]]).shape == (1,)


@seeded
def test_without_noise_it_is_least_squares_of_the_same_rows() -> None:
    X, y, whose = confounded()
    model = regressor(epsilon=1e5, effects="within", random_state=2)
    told = model.fit(X, y, groups=whose).estimates()[1:]
    people, table = People.of(whose, len(X)), np.column_stack([X, y])
    table = (table - people.means(table)[whose]) * np.sqrt(people.weights)[:, None]
    right = np.linalg.lstsq(table[:, :-1], table[:, -1], rcond=None)[0]
    found = np.array([one.value for one in told])
    np.testing.assert_allclose(found, right, atol=0.1 * told[-1].standard_error)


@seeded
def test_bounds_do_not_cut_predicted_differences() -> None:
    """They bound a root mean square, and a single row may differ by more."""
    X, y, whose = confounded(people=500)
    model = regressor(epsilon=8.0, effects="within", spread=0.25, random_state=1)
    model.fit(X, y, groups=whose)
    far = np.array([[1.5, -1.5]])
    assert model.predict(far) > model.model_.aim.upper
    np.testing.assert_allclose(model.predict(far), far @ model.coef_ + model.intercept_)


@seeded
def test_a_person_moves_differences_by_no_more_than_the_form_says() -> None:
    """The worst pair is known: two people who alternate between opposite ends, at right angles."""
    X, y, whose = confounded(people=50)
    model = regressor(epsilon=8.0, effects="within", waves=1, random_state=1)
    model.fit(X, y, groups=whose)
    agreement = model.agreement_
    form = agreement.form
    names = ["a", "b", "y"]
    ends = np.array([[1.0, 1, 1], [-1, -1, -1]])  # rows of (x, other, y), at the ends of bounds
    generator = np.random.default_rng(0)
    people = [ends, *(np.sign(generator.normal(size=(rows, 3))) for rows in (2, 2, 3, 4, 8) * 8)]
    people += [generator.uniform(-1, 1, (rows, 3)) for rows in (2, 3, 9)]

    def sent(rows):
        whose = People(np.zeros(len(rows), dtype=int), 1)
        columns = [Numeric(name, -1, 1) for name in names]
        table, _, target, answers, whose = demean_by_person(
            whose, rows[:, :2], columns[:2], columns[2], rows[:, 2]
        )
        signal = moments.Signal(target, answers, whose.reach)
        return clean(agreement, table, signal.encoded, whose).sums

    numbers = np.array([sent(rows) for rows in people])
    apart = np.sqrt((numbers[:, None] - numbers) ** 2 @ form.counts)
    weights = np.array([column.weight for column in form.columns])
    signs = np.array(np.meshgrid([1], [1, -1], [1, -1])).reshape(3, -1).T
    lines = [np.outer(sign * weights, sign * weights) for sign in signs]
    worst = max(np.linalg.norm(one - other) for one in lines for other in lines)
    assert apart.max() == pytest.approx(worst, rel=1e-5)  # the corners of the hull
    assert apart.max() <= np.sqrt(2) * form.radius**2 <= form.reach("replace").sums
    assert np.sqrt(numbers**2 @ form.counts).max() <= form.reach("zero-out").sums


SCALES = [
    ((-0.5e-300, 0.5e-300), 1.0),
    ((1.0, 1.0 + 4e-15), 0.1),  # 2.5·10¹⁴ widths from zero
    ((-1e-162, 1e-162), 0.1),
    ((3e-200, 5e-200), 0.01),
    ((-1e160, 1e160), 1.0),
    ((-5e299, 5e299), 0.5),
    ((1e15, 1e15 + 1), 1.0),
]


@seeded
@pytest.mark.parametrize(("bounds", "spread"), SCALES)
def test_bounds_of_any_width_keep_what_is_promised_to_a_person(bounds, spread) -> None:
    """Squares in the units of the bounds would vanish, or be infinite."""
    low, high = bounds
    middle = low / 2 + high / 2
    y = np.tile([low, high], 50)
    model = MomentPerturbationRegressor(
        bounds=bounds, target_bounds=bounds, spread=spread, effects="within", random_state=1
    )
    form = model.set_params(waves=1).fit(y[:, None], y, groups=np.arange(100) // 2).agreement_.form
    ends = np.array(np.meshgrid([low, high], [low, high])).reshape(2, -1).T
    people = [ends[[0, 3]], ends[[1, 2]], ends[[0, 0]], ends[[2, 3, 2]], ends[[0, 3] * 20 + [2]]]
    people += [np.array([[middle, low], [middle, high], [high, high]])]
    columns = [Numeric(name, low, high) for name in "xy"]

    def sent(rows):
        alone = People(np.zeros(len(rows), dtype=int), 1)
        table, kept, target, answers, alone = demean_by_person(
            alone, rows[:, :1], columns[:1], columns[1], rows[:, 1], spread
        )
        encoded = moments.Signal(target, answers, alone.reach).encoded
        whole = Rows(table, encoded, kept, alone)
        squares = np.diag(whole.joint.matrix(1))[1:]
        assert (squares <= 1 + 1e-15).all()
        matrix = whole.joint.matrix(1) * np.outer(form.scale, form.scale)
        return form.take(matrix)

    numbers = np.array([sent(rows) for rows in people])
    apart = np.sqrt((numbers[:, None] - numbers) ** 2 @ form.counts)
    assert 0.5 * form.radius**2 < apart.max() <= form.reach("replace").sums
    assert np.sqrt(numbers**2 @ form.counts).max() <= form.reach("zero-out").sums


@seeded
@pytest.mark.parametrize(("bounds", "spread"), SCALES)
@pytest.mark.parametrize("waves", [1, 3])
def test_no_row_within_bounds_of_any_width_makes_a_fit_fail(bounds, spread, waves) -> None:
    """One person at both bounds, or everybody at the middle, is fitted like all others."""
    low, high = bounds
    whose = np.repeat(np.arange(100), 2)
    model = MomentPerturbationRegressor(
        bounds=bounds,
        target_bounds=bounds,
        spread=spread,
        effects="within",
        waves=waves,
        random_state=1,
    )
    for first in ([low, low], [low, high]):
        y = np.append(first, np.full(198, low / 2 + high / 2))
        model.fit(y[:, None], y, groups=whose)
        assert np.isfinite(model.moments_.sums).all()


def test_differences_of_people_who_vary_more_than_is_stated_fit_in() -> None:
    """Their mean squares do, in every column, and nobody else's change."""
    X, y, whose = confounded(people=200)
    columns = [Numeric("a", -1, 1), Numeric("b", -1, 1)]
    people, target = People.of(whose, len(X)), Numeric("y", -1, 1)
    plain = demean_by_person(people, X, columns, target, y)
    tight = demean_by_person(people, X, columns, target, y, 0.5)
    for (rows, _, aim, answers, who), width in ((plain, 1.0), (tight, 0.5)):
        assert aim.upper == width
        squares = who.means(np.column_stack([rows, answers]) ** 2)
        assert squares.max() <= width**2 * (1 + 1e-12)
        assert np.abs(rows).max() <= who.reach * width
    small = (people.means(np.column_stack([plain[0], plain[3]]) ** 2) <= 0.25).all(axis=1)
    assert 0 < small.sum() < 200
    np.testing.assert_array_equal(plain[0][small[whose]], tight[0][small[whose]])
    assert (np.abs(plain[0]) >= np.abs(tight[0])).all()


@seeded
def test_errors_are_clustered_by_person() -> None:
    """Rows that stand there twice tell no more than once, and independent ones all tell."""
    X, y, whose = confounded(people=3000, rows=8)
    plain = regressor(epsilon=50.0, effects="within", random_state=1)
    told = plain.fit(X, y, groups=whose).estimates()[2].sampling_error
    twins, copied = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    again = plain.fit(twins, copied, groups=np.repeat(whose, 2)).estimates()[2].sampling_error
    assert again == pytest.approx(told, rel=0.2)
    right = 0.05 / np.sqrt(3000 * 7) / X[:, 1].std()
    assert 0.9 * right < told < 1.6 * right  # one row each would be √7 = 2.6 times as much


@seeded
def test_no_errors_are_told_of_a_wave_that_cuts_most_people() -> None:
    """Seen before: of few people noise was taken for small errors, and z was up to 57."""
    generator, slopes, found = np.random.default_rng(3), np.array([0.2, -0.15]), []
    for seed in range(20):
        whose = np.repeat(np.arange(1000), np.minimum(generator.geometric(0.35, 1000), 12))
        own = generator.uniform(-0.5, 0.5, (1000, 2))[whose]
        X = own + generator.uniform(-0.5, 0.5, own.shape)
        X[:, 1] = X[:, 1] < 0
        y = X @ slopes + generator.normal(0, 0.12, 1000)[whose]
        y += generator.normal(0, 0.12, len(whose))
        asked = {"epsilon": 2.0, "delta": 1e-6, "effects": "within", "random_state": seed}
        bounds = {"bounds": ([-1, 0], [1, 1]), "target_bounds": (-1, 1)}
        model = MomentPerturbationRegressor(**bounds, **asked)
        if model.fit(X, y, groups=whose).model_.inference:
            found += [
                abs(one.value - slope) / one.standard_error
                for one, slope in zip(model.estimates()[1:], slopes, strict=True)
            ]
    assert len(found) > 20
    assert max(found) < 4


@pytest.mark.parametrize(
    ("parameters", "grouped", "words"),
    [
        ({"effects": "within"}, False, "Expected groups"),
        ({"effects": "fixed"}, True, "effects='fixed'"),
        ({"effects": "within", "family": "poisson"}, True, "family='linear'"),
        ({"effects": "within", "per_record": True}, True, "no per_record"),
        ({"spread": 0.5}, True, "effects='within'"),
        ({"effects": "within", "spread": 0.0}, True, "from 0.01 to 1"),
    ],
)
def test_effects_that_cannot_be_had_are_refused(parameters, grouped, words) -> None:
    X, y, whose = confounded(people=20)
    with pytest.raises(InvalidValueError, match=words):
        regressor(**parameters).fit(X, y, groups=whose if grouped else None)


@seeded
def test_whether_anybody_has_two_rows_is_told_by_no_refusal() -> None:
    """How many rows somebody has is theirs: fits go on, and noise alone has no errors."""
    X, y, _ = confounded(people=200, rows=1)
    model = regressor(effects="within", random_state=1).fit(X, y, groups=np.arange(200))
    with pytest.raises(InfeasibleError):
        model.estimates()


@seeded
def test_levels_and_signs_within_people() -> None:
    """Those who move from north to south earn more by 0.3, whoever moves."""
    generator = np.random.default_rng(0)
    whose = np.repeat(np.arange(3000), 4)
    frame = pd.DataFrame(
        {
            "region": generator.choice(["north", "south"], len(whose)),
            "married": generator.integers(0, 2, len(whose)),
        }
    )
    pay = 0.3 * (frame["region"] == "south") - 0.1 * frame["married"]
    pay += generator.uniform(-0.3, 0.3, 3000)[whose]
    schema = Schema(
        [Categorical("region", ["north", "south"]), Binary("married")], Numeric("pay", -1, 1)
    )
    model = MomentPerturbationRegressor(
        bounds=schema, effects="within", epsilon=8.0, random_state=0
    ).fit(frame, pay, groups=whose)
    assert [one.name for one in model.estimates()[1:]] == ["region=south", "married"]
    np.testing.assert_allclose(model.coef_, [0.3, -0.1], atol=0.02)
    moved = model.predict(pd.DataFrame({"region": ["south", "north"], "married": [0, 0]}))
    assert moved[0] - moved[1] == pytest.approx(0.3, abs=0.02)
