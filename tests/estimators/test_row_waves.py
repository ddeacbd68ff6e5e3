"""Waves in one process: what is spent and released, and what it is good for."""

from dataclasses import replace

import dp_accounting
import numpy as np
import pandas as pd
import pytest
from dp_accounting import pld
from scipy.special import expit
from sklearn.linear_model import PoissonRegressor

from blurfit import Binary, Budget, BudgetExceededError, InvalidValueError, Numeric, Schema
from blurfit.agreement.agreement import Agreement
from blurfit.agreement.numbers import DISCRETE_SHARE
from blurfit.errors import InfeasibleError
from blurfit.estimators import MomentPerturbationClassifier, MomentPerturbationRegressor, moments
from blurfit.estimators.people import one_of_each
from blurfit.model.course import follows, learn_plan
from blurfit.model.statement import as_markdown, as_yaml
from blurfit.simulation import exact_totals
from blurfit.theory.gaussian import mu_of
from support.plans import FEATURES, people

seeded = pytest.mark.filterwarnings("ignore::blurfit.errors.NotPrivateWarning")
SLOPES = np.array([3.0, -3.0, 6.0, 1.5, 0.0, 0.0])


def voters(rows: int = 4000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Six columns that are far from their bounds, and labels by a logistic law."""
    generator = np.random.default_rng(seed)
    X = np.clip(0.3 * generator.normal(size=(rows, 6)), -1, 1)
    return X, (generator.random(rows) < expit(X @ SLOPES)).astype(int)


def classifier(**parameters) -> MomentPerturbationClassifier:
    return MomentPerturbationClassifier(bounds=(-1, 1), classes=[0, 1], **parameters)


# ---- every row is in every wave


@seeded
def test_a_row_moves_every_wave_by_no_more_than_its_reach() -> None:
    """Under the same maps: those of the first fit, applied to neighbouring rows."""
    X, y = voters()
    model = classifier(waves=3, random_state=5).fit(X, y)
    other, target = X.copy(), model.agreement_.schema.target
    other[7] = -X[7]
    for release in model.releases_:
        assert release.count == len(X)
        form = release.agreement.form
        one, two = (
            moments.clean_moment_totals(
                release.agreement,
                moments.Rows(
                    rows,
                    moments.Signal(target, y > 0).encoded,
                    release.agreement.schema.features,
                ),
            )
            for rows in (X, other)
        )
        moved = one.sums - two.sums
        assert 0 < np.sqrt(moved**2 @ form.counts) <= form.reach("replace").sums


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 0.01), (8.0, 1e-9)])
@pytest.mark.parametrize("kind", [MomentPerturbationClassifier, MomentPerturbationRegressor])
def test_all_waves_together_keep_the_promise(kind, epsilon, delta) -> None:
    """By an accountant that knows nothing of ours: Gaussian moments, and their δ's besides."""
    bounds = {"bounds": (-1, 1)}
    bounds |= (
        {"classes": [0, 1]} if kind is MomentPerturbationClassifier else {"target_bounds": (0, 1)}
    )
    X, y = voters(20_000)
    model = kind(epsilon=epsilon, delta=delta, **bounds).fit(X, y)
    accountant, spent = pld.PLDAccountant(), 0.0
    for release in model.releases_:
        found = release.agreement.calibration
        accountant.compose(dp_accounting.GaussianDpEvent(found.sigma / found.reach.sums))
        spent += DISCRETE_SHARE * delta
    assert len(model.releases_) > 1
    kept = accountant.get_delta(epsilon) + spent
    assert kept == pytest.approx(delta, rel=2e-3)
    assert kept <= delta * (1 + 1e-4)  # by which the accountant rounds up
    shares = [one.agreement.calibration.mu**2 for one in model.releases_]
    assert sum(shares) <= model.plan_.mu**2
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (epsilon, delta)
    for release, share in zip(model.releases_, model.plan_.stages.fractions, strict=True):
        release.agreement.verify()
        assert release.guarantee.epsilon < epsilon
        assert release.guarantee.delta == pytest.approx(share * delta)


def test_the_first_release_is_of_all_rows_and_a_share_of_the_promise() -> None:
    model = classifier(waves=2).fit(*voters())
    assert model.moments_ is model.releases_[0]
    assert model.moments_.count == 4000
    mu = model.moments_.agreement.calibration.mu
    assert mu == pytest.approx(model.plan_.mu * 0.5, rel=1e-6)
    assert mu <= model.plan_.mu * 0.5


# ---- what is spent and released


def test_a_fit_in_waves_spends_once() -> None:
    model = classifier(waves=3)
    with Budget(epsilon=1.0, delta=1e-6) as budget:
        model.fit(*voters())
        assert 0.99 < budget.spent().epsilon <= 1.0
        with pytest.raises(BudgetExceededError, match="of 4,000 rows would bring"):
            classifier(waves=2).fit(*voters())
    (expense,) = budget.expenses
    assert expense.mu == model.plan_.mu
    assert len(model.releases_) == 3
    assert all(one.agreement.calibration.mu <= expense.mu * (1 + 1e-12) for one in model.releases_)


NUMBER = {"bounds": (-1, 1), "target_bounds": (0, 1)}


@pytest.mark.parametrize(
    ("model", "why"),
    [  # a first wave has a tenth of δ; one of so many has nothing
        (MomentPerturbationRegressor(**NUMBER, waves=4, delta=4e-30), "cipher's bits"),
        (MomentPerturbationRegressor(**NUMBER, waves=1001), "fewer releases"),
        (classifier(waves=1500), "strictly between 0 and 1"),
    ],
)
def test_waves_that_cannot_keep_their_share_are_refused_before_anything_is_spent(
    model, why
) -> None:
    with Budget(epsilon=1.0, delta=1e-6) as budget, pytest.raises(InvalidValueError, match=why):
        model.fit(*voters(600))
    assert not budget.expenses


def test_a_local_target_spends_no_more_than_it_says() -> None:
    model = classifier(waves=2, local_epsilon=300.0, local_delta=1e-6)
    with Budget(epsilon=1.0, delta=1e-6) as budget:
        model.fit(*voters(200))
    (expense,) = budget.expenses
    spent = [one.agreement.calibration.mu for one in model.releases_]
    assert np.linalg.norm(spent) <= expense.mu
    local = [one.agreement.calibration.local.mu for one in model.releases_]
    assert np.linalg.norm(local) <= mu_of(300.0, 1e-6)  # of a row that is blurred in each wave


def test_nothing_is_drawn_before_it_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(moments, "blurred", never)
    with Budget(epsilon=0.5, delta=1e-6), pytest.raises(BudgetExceededError):
        classifier(waves=2).fit(*voters())


@pytest.mark.parametrize("way", [{}, {"per_record": True}])
def test_anybody_can_follow_the_releases(way) -> None:
    model = classifier(waves=2, **way).fit(*voters(600))
    for place, release in enumerate(model.releases_):
        follows(model.plan_, model.releases_[:place], release.agreement)
        assert release.count == 600
        assert release.guarantee.private
    again = learn_plan(model.plan_, model.releases_)
    assert again.to_json() == model.model_.to_json()


def test_the_promise_is_told_once_and_is_that_of_one_wave() -> None:
    X, y = voters()
    one, three = (classifier(waves=waves).fit(X, y) for waves in (1, 3))
    assert (one.plan_, one.releases_) == (None, (one.moments_,))
    for name in ("epsilon", "delta", "neighbours", "private"):
        assert getattr(one.guarantee_, name) == getattr(three.guarantee_, name)
    promise = "privacy:     ε = 1, δ = 1e-06\n"
    assert promise in str(one.summary())
    assert promise in str(three.summary())
    assert "joint 16%, residual 25%, newton 59%" in str(three.summary())
    assert "`moments_` has 16% of μ²" in str(three.summary())
    assert "answers further questions" in " ".join(str(one.summary()).split())
    told = three.guarantee_.statement
    assert one.guarantee_.statement.split(" Further")[0] in told
    assert "in each of the 3 releases" in told
    assert "holds for all of `releases_` together" in told
    assert "releases_" not in one.guarantee_.statement


def test_no_release_speaks_for_the_others() -> None:
    """Every row is in all of them: what one keeps by itself does not hold for them together."""
    model = classifier(waves=3).fit(*voters(600))
    for release in model.releases_:
        text = as_markdown(release)
        assert "they reveal more together than each by itself" in text
        assert "Each row is in one group" not in text
        assert "parallel" not in as_yaml(release)
    assert "Waves" not in as_markdown(model.model_)


@seeded
def test_a_seed_voids_every_release_and_the_model() -> None:
    model = classifier(waves=2, random_state=0).fit(*voters())
    assert not model.guarantee_.private
    assert not model.model_.guarantee.private
    assert all("NOT PRIVATE" in release.caveats[0] for release in model.releases_)
    other = classifier(waves=2, random_state=0).fit(*voters())
    assert np.array_equal(model.coef_, other.coef_)


def where_some_send_squares(agreement: Agreement) -> Agreement:
    """The agreement of a last wave, but for the squares, of which a third is sent."""
    chart = None if agreement.wave is None else agreement.wave.chart
    if chart is None or not chart.robust:
        return agreement
    return replace(agreement, wave=replace(agreement.wave, chart=replace(chart, stride=3)))


@seeded
@pytest.mark.parametrize("task", ["number", "label", "count"])
def test_sums_are_those_that_contributors_would_send(task) -> None:
    """One pass over the table against the records of all contributors, in every kind of wave."""
    table = people(20_000, 3)
    regions = ["north", "south", "west"]
    bounds = {"age": (18, 90), "education": (0, 20), "region": regions, "married": (0, 1)}
    X = pd.DataFrame({one.name: table[one.name] for one in FEATURES})
    y = pd.Series(table["visits"] if task == "count" else table["income"], name="target")
    known = {"target_bounds": (0, 12) if task == "count" else (0, 100_000)}
    kind = MomentPerturbationRegressor
    if task == "label":
        kind, known, y = MomentPerturbationClassifier, {"classes": [False, True]}, y > 45_000
    else:
        known["family"] = "poisson" if task == "count" else "linear"
    waves = 2 if task == "number" else 3
    model = kind(epsilon=10.0, bounds=bounds, waves=waves, random_state=0, **known).fit(X, y)
    for release in model.releases_:
        agreement = where_some_send_squares(release.agreement)
        part = {name: np.asarray(column)[:5000] for name, column in X.items()}
        part[agreement.schema.target.name] = np.asarray(y)[:5000]
        values = X[:5000].assign(region=X["region"][:5000].map(regions.index)).to_numpy()
        signal = moments.Signal(agreement.schema.target, np.asarray(y)[:5000])
        got = moments.clean_moment_totals(
            agreement, moments.Rows(values, signal.encoded, agreement.schema.features)
        )
        expected = exact_totals(agreement, part)
        chart = None if agreement.wave is None else agreement.wave.chart
        if chart is not None and chart.robust:
            places = one_of_each(5000, chart.stride)
            some = {name: column[places] for name, column in part.items()}
            rows = len(chart.whitening.mean) + 1
            squares = rows * (rows + 1) // 2
            expected.sums[-squares:] = exact_totals(agreement, some).sums[-squares:]
        np.testing.assert_allclose(got.sums, expected.sums, rtol=1e-9, atol=1e-8)
        assert got.fingerprint == expected.fingerprint


# ---- what it is good for


@seeded
def test_waves_find_the_curve_better_than_one_wave() -> None:
    """Newton's waves against a line's curve, on rows of a logistic law: paired over seeds."""
    fresh, _ = voters(20_000, seed=99)
    truth = expit(fresh @ SLOPES)
    gains = []
    for seed in range(6):
        X, y = voters(20_000, seed)
        line, curve = (
            np.mean((model.fit(X, y).predict_proba(fresh)[:, 1] - truth) ** 2)
            for model in (classifier(waves=waves, random_state=seed) for waves in (1, "auto"))
        )
        gains.append(line - curve)
    assert np.mean(gains) > 2 * np.std(gains) / np.sqrt(6)


@seeded
def test_probabilities_of_waves_are_the_logistic_curve() -> None:
    X, y = voters(20_000)
    model = classifier(random_state=0).fit(X, y)
    assert model.plan_.kinds == ("joint", "residual", "newton", "newton")
    np.testing.assert_allclose(
        model.predict_proba(X[:50])[:, 1], expit(model.decision_function(X[:50]))
    )
    records = {f"x{place}": X[:50, place] for place in range(6)}
    np.testing.assert_allclose(model.predict_proba(X[:50]), model.model_.predict_proba(records))
    for one, slope in zip(model.estimates(0.9999)[1:], SLOPES, strict=True):
        assert one.lower < slope < one.upper, one.name


def _strays(X: np.ndarray, y: np.ndarray, generator: np.random.Generator) -> None:
    """One person in a hundred is at the bounds, anywhere: least squares follows them."""
    stray = generator.random(len(y)) < 0.01
    X[stray] = np.sign(generator.normal(size=(int(stray.sum()), X.shape[1])))
    y[stray] = generator.uniform(-1, 1, int(stray.sum()))


def _skewed(X: np.ndarray, y: np.ndarray, generator: np.random.Generator) -> None:
    """Columns of 0 to 20 medians, and a mean that bends."""
    X[:] = np.clip(np.exp(0.8 * generator.normal(size=X.shape)) / 10 - 1, -1, 1)
    y[:] = np.clip(
        np.exp(2 * (X + 0.9).mean(axis=1) + 0.3 * generator.normal(size=len(y))) - 2, -1, 1
    )


@seeded
@pytest.mark.parametrize(("far", "epsilon"), [(_strays, 3.0), (_skewed, 1.0)])
def test_intervals_hold_the_waves_own_estimand_where_a_few_people_are_far_out(far, epsilon) -> None:
    """They hold what the last update would find in the same rows, and say that it clips."""
    missed = intervals = 0
    draws = 12
    for seed in range(draws):
        generator = np.random.default_rng(seed)
        X = 0.1 * generator.normal(size=(8192, 5))
        y = 0.1 * (X @ [10.0, -5.0, 3.0, 0.0, 8.0] / 1.4 + generator.normal(size=len(X)))
        far(X, y, generator)
        X, y = np.clip(X, -1, 1), np.clip(y, -1, 1)
        model = MomentPerturbationRegressor(
            bounds=(-1, 1), target_bounds=(-1, 1), epsilon=epsilon, random_state=seed
        ).fit(X, y)
        if model.model_.refusal is None:
            assert model.model_.estimand_in_words.startswith("bounded-influence")
            told = zip(model.estimates(), model.estimand(X, y), strict=True)
            missed += sum(not one.lower <= t <= one.upper for one, t in told)
            intervals += sum(not one.is_unlimited for one in model.estimates())
    assert missed <= 0.12 * intervals
    assert intervals >= 5 * draws


@seeded
def test_numbers_in_waves_come_closer_than_in_one() -> None:
    generator = np.random.default_rng(0)
    slopes = np.array([0.5, -0.5, 0.25, 0.0, 0.0, 0.0])
    gains = []
    for seed in range(8):
        X = np.clip(0.15 * generator.normal(size=(4000, 6)), -1, 1)
        y = X @ slopes + 0.05 * generator.normal(size=4000)
        errors = [
            MomentPerturbationRegressor(
                bounds=(-1, 1), target_bounds=(-1, 1), waves=waves, random_state=seed
            )
            .fit(X, y)
            .coef_
            - slopes
            for waves in (1, "auto")
        ]
        gains.append(np.sum(errors[0] ** 2) - np.sum(errors[1] ** 2))
    assert np.mean(gains) > 3 * np.std(gains) / np.sqrt(8)


@seeded
@pytest.mark.parametrize("kind", ["binary", "numeric"])
def test_rare_answers_do_not_make_counts_explode(kind) -> None:
    generator = np.random.default_rng(4)
    X = (generator.random((2**14, 8)) < 0.01).astype(float)
    rate = 2 * np.exp(X @ np.array([2.2, 2.0, -1.0, 0.5, 1.5, -0.5, 2.0, 1.0]))
    visits = np.minimum(generator.poisson(rate), 20).astype(float)
    names = [f"x{place}" for place in range(8)]
    features = [Binary(one) if kind == "binary" else Numeric(one, 0, 1) for one in names]
    schema = Schema(features, Numeric("visits", 0, 20))
    table = pd.DataFrame(X, columns=names)
    model = MomentPerturbationRegressor(
        epsilon=1.0, bounds=schema, family="poisson", random_state=0
    ).fit(table, visits)
    found = model.predict(table)
    assert found.max() == 20.0  # no count is larger
    assert found == pytest.approx(model.model_.predict(table))

    def loss(mean: np.ndarray) -> float:
        return float(np.mean(mean - visits * np.log(mean)))

    assert loss(found) < loss(np.full(len(X), visits.mean())) - 0.1
    assert loss(found) < loss(np.minimum(rate, 20.0)) + 0.1


@seeded
@pytest.mark.parametrize("columns", [1, 5])
def test_counts_are_learned_by_poissons_law(columns) -> None:
    generator = np.random.default_rng(0)
    X = generator.uniform(0, 40, (40_000, columns))
    slopes = np.array([0.03, -0.01, 0.0, 0.02, 0.01])[:columns]
    visits = generator.poisson(np.exp(0.2 + X @ slopes)).clip(0, 20)
    model = MomentPerturbationRegressor(
        epsilon=100.0, bounds=(0, 40), target_bounds=(0, 20), family="poisson", random_state=0
    ).fit(X, visits)
    plain = PoissonRegressor(alpha=0).fit(X, visits)
    assert model.plan_.kinds[-1] == "newton"
    assert model.model_.link == "log"
    assert model.coef_ == pytest.approx(slopes, abs=0.003)
    assert model.predict(X[:100]) == pytest.approx(plain.predict(X[:100]), rel=0.06)
    records = {f"x{place}": X[:9, place] for place in range(columns)}
    assert model.predict(X[:9]) == pytest.approx(model.model_.predict(records))


# ---- what is refused, and when one wave is taken


def test_counts_need_newtons_wave() -> None:
    X, y = np.zeros((500, 1)), np.zeros(500)
    common = {"bounds": (0, 1), "target_bounds": (0, 9), "family": "poisson"}
    with Budget(epsilon=1.0, delta=1e-6) as budget:
        for waves in (1, 2):
            with pytest.raises(InfeasibleError, match=f"waves={waves} has only"):
                MomentPerturbationRegressor(waves=waves, **common).fit(X, y)
    assert not budget.expenses
    with pytest.raises(InvalidValueError, match="lower=0"):
        MomentPerturbationRegressor(
            epsilon=100.0, bounds=(0, 1), target_bounds=(-1, 9), family="poisson"
        ).fit(np.zeros((40_000, 1)), np.zeros(40_000))


@pytest.mark.parametrize("waves", [0, -1, 1.5, "many", True, None])
def test_other_words_and_numbers_are_refused(waves) -> None:
    with pytest.raises(InvalidValueError, match=f"waves={waves!r}"):
        classifier(waves=waves).fit(*voters(200))


def test_several_classes_take_one_wave() -> None:
    X, _ = voters()
    classes = np.arange(4000) % 3
    model = MomentPerturbationClassifier(bounds=(-1, 1), classes=[0, 1, 2]).fit(X, classes)
    assert model.plan_ is None
    with pytest.raises(InvalidValueError, match=r"waves=2 .*3 classes"):
        model.set_params(waves=2).fit(X, classes)


def test_a_handful_of_rows_is_one_wave_whatever_the_promise() -> None:
    X, y = voters(8)
    assert classifier(epsilon=1e4).fit(X, y).plan_ is None


@seeded
def test_rows_may_take_turns() -> None:
    """Cases and controls alternate, as where they are matched: no wave reads one kind alone."""
    X, y = voters(60_000)
    order = np.argsort(y, kind="stable")
    half = min(int(y.sum()), len(y) - int(y.sum()))
    turns = np.column_stack([order[:half], order[-half:]]).ravel()
    model = classifier(epsilon=8.0, random_state=0).fit(X[turns], y[turns])
    assert max(model.plan_.strides) > 1
    mixed = np.random.default_rng(0).permutation(turns)
    other = classifier(epsilon=8.0, random_state=0).fit(X[mixed], y[mixed])
    assert abs(model.score(X, y) - other.score(X, y)) < 0.01


def test_records_blurred_one_by_one_send_the_same_squares() -> None:
    """Those of some rows, where a map takes no others; nearly without noise."""
    X, y = voters(3000)
    model = classifier(epsilon=1e6, waves=3).fit(X, y)
    agreement = where_some_send_squares(model.releases_[-1].agreement)
    columns, signal = agreement.schema.features, moments.Signal(agreement.schema.target, y)
    of_all = moments.clean_moment_totals(agreement, moments.Rows(X, signal.encoded, columns))
    sent = moments.blur_each(agreement, X, columns, signal).numbers.sum(axis=0)
    np.testing.assert_allclose(sent, of_all.sums, rtol=0.01, atol=20.0)


def test_waves_between_the_first_and_the_last_read_fewer_of_very_many_rows() -> None:
    X, y = voters(60_001)
    model = classifier(epsilon=8.0).fit(X, y)
    strides = model.plan_.strides
    assert strides[0] == strides[-1] == 1
    assert all(stride > 1 for stride in strides[1:-1])
    counts = [release.count for release in model.releases_]
    assert counts == [-(-60_001 // stride) for stride in strides] == list(model.plan_.quorums)
    assert model.model_.count == 60_001
    assert np.allclose(model.coef_[0], SLOPES, atol=0.5)
    assert set(classifier(waves=4).fit(X[:3000], y[:3000]).plan_.strides) == {1}
