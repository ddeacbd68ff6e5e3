"""Time to event: what is promised, what comes out, and what is refused."""

from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

from blurfit import Agreement, Binary, Budget, Categorical, InvalidValueError, Numeric, Schema
from blurfit.budget import BudgetExceededError
from blurfit.errors import InfeasibleError, NotCertifiedError, NotPrivateWarning
from blurfit.estimators import MomentPerturbationSurvival
from blurfit.learning.hazards import Curve
from blurfit.model.release import PublishedMoments, Release
from blurfit.model.statement import as_markdown
from blurfit.schema.columns import TimeToEvent
from blurfit.schema.derived import Curve as DerivedCurve

seeded = pytest.mark.filterwarnings("ignore:NOT PRIVATE:blurfit.errors.NotPrivateWarning")
BOUNDS = {"age": (20, 60), "remote": (0, 1), "region": ["north", "south", "west"]}
KINDS = Schema(
    [Numeric("age", 20, 60), Binary("remote"), Categorical("region", ["north", "south", "west"])],
    TimeToEvent("months", "left", horizon=24, bands=8),
)


def stays(people: int = 60_000, seed: int = 0, effect: float = 0.02):
    """Return features, and who left when: hazards per month, censored at random, over 30 months."""
    generator = np.random.default_rng(seed)
    age, remote = generator.uniform(20, 60, people), generator.integers(0, 2, people)
    region = generator.choice(["north", "south", "west"], people)
    frame = pd.DataFrame({"age": age, "remote": remote, "region": region})
    hazard = 0.02 + 0.0005 * (frame["age"] - 20) + effect * frame["remote"]
    hazard += 0.01 * (frame["region"] == "west")
    time = generator.exponential(1 / hazard.to_numpy())
    until = np.where(generator.random(people) < 0.5, 30.0, generator.uniform(0, 30, people))
    y = np.rec.fromarrays([time <= until, np.minimum(time, until)], names="left,months")
    return frame, y, hazard.to_numpy()


@seeded
def test_hazards_and_curves_are_those_of_the_population() -> None:
    frame, y, hazard = stays()
    model = MomentPerturbationSurvival(bounds=KINDS, epsilon=1.0, random_state=0).fit(frame, y)
    truth = {"age": 0.0005, "remote": 0.02, "region=south": 0.0, "region=west": 0.01}
    assert [one.name for one in model.estimates()] == list(truth)
    for one in model.estimates():
        assert abs(one.value - truth[one.name]) < 4 * one.standard_error
        assert one.standard_error < 0.004
        assert one.standard_error**2 == pytest.approx(one.sampling_error**2 + one.privacy_error**2)
    curve = model.model_.curve()["everybody"]
    true_curve = np.array([np.exp(-hazard * time).mean() for time in model.times_])
    np.testing.assert_allclose(curve.survival, true_curve, atol=0.012)
    lower, upper = curve.interval()
    assert ((lower <= curve.survival) & (curve.survival <= upper)).all()
    some = frame.head(3)
    survival = model.predict_survival(some)
    assert survival.shape == (3, 9)
    np.testing.assert_allclose(survival, np.exp(-hazard[:3, None] * model.times_), atol=0.03)
    order = np.argsort(model.predict(frame.head(200)))
    assert np.corrcoef(order.argsort(), hazard[:200])[0, 1] > 0.8
    by_group = model.model_.curve("remote")
    assert by_group["no"].survival[-1] > by_group["yes"].survival[-1] + 0.1
    assert model.model_.log_rank("remote").p_value < 1e-6
    assert model.model_.log_rank("region").freedom == 2
    assert model.model_.plot(by="region").get_legend() is not None


@seeded
def test_curves_are_kaplan_and_meiers_where_events_are_counted_in_weeks() -> None:
    """Seen before: events of week 26 were after week 26, and survival 0.8818 instead of 0.8750."""
    generator = np.random.default_rng(3)
    weeks = np.ceil(generator.exponential(26 / -np.log(0.875), 20_000))
    frame = pd.DataFrame({"age": generator.uniform(20, 60, len(weeks))})
    y = np.rec.fromarrays([weeks <= 52, np.minimum(weeks, 52)], names="arrest,week")
    schema = Schema([Numeric("age", 20, 60)], TimeToEvent("week", "arrest", horizon=52, bands=4))
    model = MomentPerturbationSurvival(bounds=schema, epsilon=5.0, random_state=0).fit(frame, y)
    curve = model.model_.curve()
    meier = [(weeks > edge).mean() for edge in (0, 13, 26, 39, 52)]  # nobody left without an event
    np.testing.assert_allclose(curve["everybody"].survival, meier, atol=0.002)
    table = curve.to_frame()
    assert list(table.columns) == ["group", "time", "survival", "lower", "upper", "events"]
    assert table["survival"].tolist() == curve["everybody"].survival.tolist()


def test_what_is_promised_and_told() -> None:
    frame, y, _ = stays(20_000)
    with Budget(epsilon=2, delta=1e-5) as budget:
        model = MomentPerturbationSurvival(bounds=KINDS, epsilon=2.0).fit(frame, y)
    assert "20,000 rows" in repr(budget)
    assert model.guarantee_.private
    assert "replacing one row by any other" in model.guarantee_.statement
    told = str(model.summary())
    modelled = "months until left ~ age + remote + region"
    for words in (modelled, "share without 'left'", "ε = 2", "events"):
        assert words in told
    assert "<table" in model._repr_html_()
    assert "left" in as_markdown(model.moments_)
    again = PublishedMoments.from_json(model.moments_.to_json())
    assert [one.value for one in again.survival().estimates()] == pytest.approx(
        [one.value for one in model.estimates()]
    )
    assert [one.standard_error for one in again.survival().estimates()] == pytest.approx(
        [one.standard_error for one in model.estimates()]
    )
    with pytest.raises(InfeasibleError, match="who left when"):
        model.moments_.fit()


@seeded
def test_bounds_by_name_and_times_beyond_the_horizon() -> None:
    """Whoever is observed longer counts as observed until the horizon, without an event."""
    frame, y, _ = stays(5000)
    settings = {"epsilon": 1e6, "delta": 1e-6, "random_state": 0}
    model = MomentPerturbationSurvival(bounds=BOUNDS, horizon=24, **settings).fit(frame, y)
    cut = np.rec.fromarrays(
        [y["left"] & (y["months"] <= 24), np.minimum(y["months"], 24)], names="e,t"
    )
    other = MomentPerturbationSurvival(bounds=BOUNDS, horizon=24, **settings).fit(frame, cut)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-4)
    events = model.model_.curve()["everybody"].events
    assert events.sum() == pytest.approx(cut["e"].sum(), rel=1e-3)
    assert model.model_.target.name == "event"


def test_without_noise_it_is_the_estimator_of_lin_and_ying() -> None:
    """Against sums over people and a fine grid of times, without bands of hats."""
    frame, y, _ = stays(3000, seed=3)
    frame = frame[["age", "remote"]]
    bounds = {name: BOUNDS[name] for name in frame}
    with pytest.warns(UserWarning, match="random_state"):
        model = MomentPerturbationSurvival(
            bounds=bounds, horizon=24, bands=6, epsilon=1e7, random_state=0
        ).fit(frame, y)
    x = frame.to_numpy(float)
    event, time = y["left"] & (y["months"] <= 24), np.minimum(y["months"], 24)
    A, b = np.zeros((2, 2)), np.zeros(2)
    for start in np.arange(6) * 4.0:
        at_risk = np.clip(time - start, 0, 4)
        mean = at_risk @ x / at_risk.sum()
        A += ((x - mean) * at_risk[:, None]).T @ (x - mean)
        now = event & (time > start) & (time <= start + 4)
        b += (x[now] - mean).sum(axis=0)
    np.testing.assert_allclose(model.coef_, np.linalg.solve(A, b), rtol=1e-4)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.ones(4), "two fields"),
        (np.zeros(4, dtype=[("e", bool), ("t", float), ("entry", float)]), "late entry"),
        (np.rec.fromarrays([[0, 1, 2, 1], [1.0] * 4], names="e,t"), "several kinds"),
        (np.rec.fromarrays([[True] * 4, [1.0, -2, 3, 4]], names="e,t"), "before they came"),
        (np.rec.fromarrays([[True] * 4, [1.0, np.nan, 3, 4]], names="e,t"), "finite times"),
    ],
)
def test_exits_that_are_none_are_refused_without_telling_them(y, words) -> None:
    with pytest.raises(InvalidValueError, match=words) as caught:
        MomentPerturbationSurvival(bounds=(0, 1), horizon=24).fit(np.ones((4, 1)), y)
    assert "-2" not in str(caught.value)


def test_horizons_are_stated_once() -> None:
    frame, y, _ = stays(300)
    for wrong, words in (({"bounds": BOUNDS}, "horizon=24"), ({"horizon": 3}, "no horizon beside")):
        with pytest.raises(InvalidValueError, match=words):
            MomentPerturbationSurvival(**{"bounds": KINDS} | wrong).fit(frame, y)


# ---- agreements
def agreement(**terms) -> Agreement:
    return Agreement.propose(KINDS, **{"epsilon": 1.0, "delta": 1e-6, "quorum": 2000} | terms)


def test_an_agreement_of_exits_is_a_contract_like_any_other() -> None:
    made = agreement()
    again = Agreement.from_json(made.to_json())
    again.verify()
    assert again.schema.target == KINDS.target
    assert [one.name for one in again.schema.features] == ["age", "remote", "region", "months"]
    assert again.sums_alone
    frame, y, _ = stays(2000)
    table = {name: frame[name].to_numpy() for name in frame}
    table |= {"months": np.minimum(y["months"], 24), "left": y["left"]}
    from blurfit import perturb
    from blurfit.learning.sums import Totals

    sent = perturb(made, table)
    assert sent.numbers.shape == (2000, made.width)
    release = Release.of(made, Totals(2000, sent.numbers.sum(axis=0), made.fingerprint))
    assert release.model is None
    assert release.moments is not None
    assert release.follows(made, 2000)
    with pytest.raises(InvalidValueError, match="not within lower=0"):
        perturb(made, {**{name: column[0] for name, column in table.items()}, "months": 25})
    made = agreement(databases=[("a", "https://a.example"), ("b", "https://b.example")])
    made.verify()
    assert not made.proofs


@pytest.mark.parametrize(
    "lie", ["sigma", "weight", "bands", "reach"], ids=["noise", "weight", "bands", "reach"]
)
def test_contracts_whose_noise_is_too_small_for_their_code_are_refused(lie) -> None:
    document = agreement().to_dict()
    if lie == "sigma":
        document["calibration"]["sigma"] *= 0.99
    elif lie == "weight":
        document["weights"]["left"] *= 1.05
    elif lie == "bands":
        document["schema"]["target"]["bands"] = 200
    else:
        document["calibration"]["reach"] = {"sums": 1.9, "submission": 1.9}
    with pytest.raises((NotCertifiedError, InvalidValueError)):
        Agreement.from_dict(document).verify()


@pytest.mark.parametrize(
    "features",
    [
        [Numeric("age", 0, 1), Numeric("months", 0, 12)],
        [Numeric("age", 0, 1), Numeric("months", 0, 24, optional=True)],
        [Numeric("age", 0, 1), TimeToEvent("a", "b", 3)],
        [Numeric("age", 0, 1), Binary("left")],
    ],
)
def test_schemas_whose_time_is_something_else_are_refused(features) -> None:
    with pytest.raises(InvalidValueError):
        Schema(features, TimeToEvent("months", "left", 24))


def test_a_fit_in_another_process_than_its_budget_is_refused() -> None:
    """Seen before: survival fits that were sent to a worker were counted by nobody."""
    frame, y, _ = stays(300)
    model = MomentPerturbationSurvival(bounds=KINDS)
    with Budget(epsilon=1.0, delta=1e-6):
        state = model.__getstate__()
    model.__setstate__({**state, "_sent_from": 1})
    with pytest.raises(BudgetExceededError, match="another process"):
        model.fit(frame, y)
    assert not hasattr(model, "moments_")


def test_rows_of_one_person_are_warned_of_and_single_rows_are_not_blurred() -> None:
    frame, y, _ = stays(20_000)
    frame.index = np.arange(len(frame)) // 2
    with pytest.warns(NotPrivateWarning, match="The index repeats"):
        MomentPerturbationSurvival(bounds=KINDS, epsilon=5.0).fit(frame, y)
    with pytest.raises(InvalidValueError, match="per_record=False"):
        MomentPerturbationSurvival(bounds=KINDS, per_record=True).fit(frame, y)


@seeded
def test_hazards_along_a_curve_are_told() -> None:
    """Seen before: all hats of a curve were taken, which sum to 1, and every fit was refused."""
    frame, y, _ = stays()
    schema = Schema(
        [DerivedCurve("age", knots=[20, 40, 60])],
        TimeToEvent("months", "left", horizon=24, bands=8),
        sources=[Numeric("age", 20, 60)],
    )
    found = MomentPerturbationSurvival(bounds=schema, random_state=0).fit(frame[["age"]], y)
    truth = [0.01, 0.02]  # beside the first knot, 0.0005 a year
    assert len(found.coef_) == 2
    for one, true in zip(found.estimates(), truth, strict=True):
        assert abs(one.value - true) < 4 * one.standard_error < 0.01


@seeded
def test_what_was_paid_for_stands_where_coefficients_are_refused() -> None:
    frame, y, _ = stays(300)
    model = MomentPerturbationSurvival(bounds=KINDS, random_state=0)
    with pytest.raises(InfeasibleError, match=r"about [\d,]+ events and more.*as moments_"):
        model.fit(frame, y)
    assert model.moments_.count == 300
    with pytest.raises(InfeasibleError, match=r"estimates\(\)"):
        model.results()


def test_no_event_so_far_leaves_a_curve_uncertain() -> None:
    """Seen before: a hazard that noise had made 0 had the interval from 1 to 1."""
    variance = np.array([0.0, 1e-4, 1e-4])
    none = np.zeros(3)
    curve = Curve(np.linspace(0, 1, 3), np.array([1.0, 1.0, 0.5]), variance, none, none, none)
    lower, upper = curve.interval()
    np.testing.assert_allclose(lower[:2], [1.0, np.exp(-0.0196)], rtol=1e-4)
    np.testing.assert_allclose(upper[:2], 1.0)
    assert lower[2] < 0.5 < upper[2] < 0.52


@seeded
def test_a_group_that_may_be_empty_has_no_curve() -> None:
    """Seen before, with these seeds: a curve of noise alone, once with the interval from 1 to 1."""
    frame, y, _ = stays(20_000)
    bounds = {**BOUNDS, "region": [*BOUNDS["region"], "nobody's"]}
    for seed in (2, 11):
        model = MomentPerturbationSurvival(bounds=bounds, horizon=24, bands=2, random_state=seed)
        with suppress(InfeasibleError):  # the release stands
            model.fit(frame, y)
        with pytest.raises(InfeasibleError, match="in every band"):
            model.model_.curve(by="region")


@seeded
def test_several_spells_of_a_person_count_as_one() -> None:
    """Spells that repeat add nothing; and those of one person are averaged, whoever comes first."""
    frame, y, _ = stays(3000, 2)
    settings = {"bounds": KINDS, "epsilon": 1e6, "random_state": 0}
    alone = MomentPerturbationSurvival(**settings).fit(frame, y)
    again = MomentPerturbationSurvival(**settings).fit(
        pd.concat([frame] * 3, ignore_index=True),
        np.tile(np.asarray(y), 3),
        groups=np.tile(np.arange(3000), 3),
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
    pairs = MomentPerturbationSurvival(**settings).fit(frame, y, groups=np.arange(3000) // 2)
    np.testing.assert_allclose(other.coef_, pairs.coef_, rtol=1e-3, atol=1e-4)
