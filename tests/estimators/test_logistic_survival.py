"""Log-odds of an event by waves of all rows: the likelihood's own estimate, errors, refusals."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from blurfit import Binary, Budget, Categorical, InvalidValueError, Numeric, Schema
from blurfit.errors import InfeasibleError
from blurfit.estimators import MomentPerturbationSurvival
from blurfit.schema.columns import TimeToEvent

seeded = pytest.mark.filterwarnings("ignore:NOT PRIVATE:blurfit.errors.NotPrivateWarning")
BANDS = 6
SCHEMA = Schema(
    [Numeric("age", 20, 60), Binary("remote"), Categorical("region", ["north", "south", "west"])],
    TimeToEvent("months", "left", horizon=24, bands=BANDS),
)
TRUTH = {"age": 0.03, "remote": -0.5, "region=south": 0.2, "region=west": 0.6}


def staff(people: int, seed: int = 0, *, steep: bool = False):
    """Return features, exits, and a matrix in the user's units; `steep` hazards are no log-odds."""
    generator = np.random.default_rng(seed)
    age, remote = generator.uniform(20, 60, people), generator.integers(0, 2, people)
    region = generator.choice(["north", "south", "west"], people)
    frame = pd.DataFrame({"age": age, "remote": remote, "region": region})
    levels = [(frame["region"] == name) * 1.0 for name in ("south", "west")]
    x = np.column_stack([frame["age"], frame["remote"], *levels])
    score = x @ list(TRUTH.values()) - 3.8
    p = expit(score[:, None] + 0.1 * np.arange(BANDS))
    if steep:
        p = np.clip(0.02 + 0.6 * (x[:, :1] > 45) * x[:, 1:2] + 0.1 * x[:, 3:4], 0, 0.9) + 0 * p
    happened = generator.random((people, BANDS)) < p
    event, band = happened.any(axis=1), happened.argmax(axis=1)
    time = np.where(event, (band + generator.random(people)) / BANDS, 1.0) * 24
    until = np.where(generator.random(people) < 0.7, 24.0, generator.uniform(0, 24, people))
    y = np.rec.fromarrays([event & (time <= until), np.minimum(time, until)], names="left,months")
    return frame, y, x


def likelihood(x, y):
    """Maximise the discrete-time likelihood row by row of a table of people and bands."""
    at = y["months"] / 24 * BANDS
    band = np.minimum(at.astype(int), BANDS - 1)
    rows, weights, labels = [], [], []
    for k in range(BANDS):
        part = np.clip(at - k, 0, 1)
        happened = (band == k) & y["left"]
        part[happened] = 1.0
        some = part > 0
        rows.append(np.column_stack([np.tile(np.eye(BANDS)[k], (some.sum(), 1)), x[some]]))
        weights.append(part[some])
        labels.append(happened[some] * 1.0)
    z, w, d = np.vstack(rows), np.concatenate(weights), np.concatenate(labels)
    found = np.zeros(z.shape[1])
    for _ in range(30):
        p = expit(z @ found)
        found += np.linalg.solve((z * (w * p * (1 - p))[:, None]).T @ z, z.T @ (d - w * p))
    return found[BANDS:], found[:BANDS]


def fitted(frame, y, **options):
    return MomentPerturbationSurvival(bounds=SCHEMA, model="logistic", **options).fit(frame, y)


@seeded
@pytest.mark.parametrize("steep", [False, True])
def test_without_noise_it_is_the_maximum_of_the_likelihood(steep) -> None:
    """Whether the model is true or not: nobody is stopped or weighted down in the end."""
    frame, y, x = staff(4000, 1, steep=steep)
    model = fitted(frame, y, epsilon=1e7, random_state=0, waves=6 if steep else 4)
    slopes, bands = likelihood(x, y)
    np.testing.assert_allclose(model.coef_, slopes, rtol=2e-3, atol=2e-4)
    centred = model.model_._units.coefficients[len(slopes) :]
    np.testing.assert_allclose(centred, bands, atol=1e-2)
    some, matrix = frame.head(4), x[:4]
    p = expit(bands + (matrix @ slopes)[:, None])
    survival = model.predict_survival(some)
    np.testing.assert_allclose(survival[:, 1:], np.cumprod(1 - p, axis=1), atol=2e-3)
    np.testing.assert_allclose(model.predict_hazard(some), -np.log1p(-p) / 4, atol=1e-3)
    np.testing.assert_array_equal(survival[:, 0], 1.0)


@seeded
def test_estimates_lie_around_the_truth_by_their_errors() -> None:
    frame, y, _ = staff(40_000)
    model = fitted(frame, y, epsilon=1.0, random_state=0)
    assert [one.name for one in model.estimates()] == list(TRUTH)
    for one in model.estimates():
        assert abs(one.value - TRUTH[one.name]) < 4 * one.standard_error
        assert 0 < one.privacy_error < one.standard_error < 0.12
    assert model.estimates()[0].standard_error < 0.004
    assert [release.agreement.wave.kind for release in model.releases_] == [
        "joint",
        "newton",
        "newton",
    ]
    assert model.model_.curve("remote")["no"].survival[-1] < 0.9
    assert model.model_.log_rank("remote").p_value < 1e-3
    assert model.plot(by="region").get_legend() is not None


def test_what_is_spent_once_and_told_to_whom() -> None:
    frame, y, _ = staff(20_000)
    with Budget(epsilon=2, delta=1e-6) as budget:
        model = fitted(frame, y, epsilon=2.0)
    assert "20,000 rows" in repr(budget)
    assert model.guarantee_.private
    assert model.guarantee_.epsilon == 2.0
    assert "share what is spent" in model.guarantee_.statement
    assert math.fsum(model.plan_.stages.fractions) == pytest.approx(1)
    told = str(model.summary())
    for words in ("log-odds", "band of 4 (months)", "share without 'left'", "ε = 2", "20,000"):
        assert words in told
    assert "<table" in model._repr_html_()
    assert "LogisticSurvivalModel" in repr(model.model_)
    frame, y, _ = staff(6000)
    with Budget(epsilon=8, delta=1e-6) as budget:
        model = MomentPerturbationSurvival(bounds=SCHEMA, epsilon=8.0, model="logistic")
        model.fit(frame, y, groups=np.arange(6000) // 2)
    assert "3,000 people" in repr(budget)
    assert "all rows of one person" in model.guarantee_.statement


def test_too_few_events_are_refused_with_the_number_needed() -> None:
    frame, y, _ = staff(3000)
    rare = np.rec.fromarrays([np.arange(3000) < 5, np.full(3000, 24.0)], names="left,months")
    with pytest.raises(InfeasibleError, match=r"about [\d,]+ events and more.*stands as moments_"):
        fitted(frame, rare, epsilon=1.0)
    with pytest.raises(InfeasibleError):
        fitted(frame, y, epsilon=0.05)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": "cox"}, "model='cox'"),
        ({"model": "logistic", "waves": 1}, "at least 2"),
        ({"model": "logistic", "waves": 0}, "waves"),
        ({"model": "additive", "waves": 3}, "additive hazards"),
        ({"model": "logistic", "per_record": True}, "per_record=False"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_spent(options, words) -> None:
    frame, y, _ = staff(100)
    with Budget(epsilon=1, delta=1e-6) as budget:
        with pytest.raises(InvalidValueError, match=words):
            MomentPerturbationSurvival(bounds=SCHEMA, **options).fit(frame, y)
        assert not budget.expenses


@seeded
@pytest.mark.parametrize("model", ["additive", "logistic"])
def test_several_spells_of_a_person_count_as_one(model) -> None:
    """Spells that repeat add nothing; and those of one person are averaged, whoever comes first."""
    frame, y, _ = staff(3000, 2)
    settings = {"bounds": SCHEMA, "model": model, "epsilon": 1e6, "random_state": 0}
    alone = MomentPerturbationSurvival(**settings).fit(frame, y)
    people = np.tile(np.arange(3000), 3)
    again = MomentPerturbationSurvival(**settings).fit(
        pd.concat([frame] * 3, ignore_index=True), np.tile(np.asarray(y), 3), groups=people
    )
    np.testing.assert_allclose(again.coef_, alone.coef_, rtol=1e-3, atol=1e-4)
    assert again.moments_.count == 3000
    assert again.agreement_.diaries
    plain, noisy = (one.agreement_.form.reach("replace") for one in (alone, again))
    assert plain == noisy
    order = np.random.default_rng(0).permutation(len(y))
    other = MomentPerturbationSurvival(**settings).fit(
        frame.iloc[order].reset_index(drop=True), np.asarray(y)[order], groups=order // 2
    )
    halves = MomentPerturbationSurvival(**settings).fit(frame, y, groups=np.arange(3000) // 2)
    np.testing.assert_allclose(other.coef_, halves.coef_, rtol=1e-3, atol=1e-4)
