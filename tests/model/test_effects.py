"""Tests, comparisons, responses and effects of a model, each by another route."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit

from blurfit import (
    Agreement,
    Binary,
    Categorical,
    Curve,
    Numeric,
    PublishedModel,
    PublishedMoments,
    Schema,
)
from blurfit.errors import InfeasibleError, InvalidValueError
from blurfit.estimators import MomentPerturbationClassifier
from blurfit.simulation import exact_totals
from support.joint_release import drawn

SCHEMA = Schema(
    [
        Numeric("age", 18, 90),
        Numeric("hours", 0, 80),
        Categorical("region", ["n", "s", "w"]),
        Curve("age", knots=[18, 40, 60, 90]),
        Numeric("pay", 0, 100),
    ],
    Binary("member"),
)


@cache
def people(count: int = 20_000) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    age, hours = rng.uniform(18, 90, count), rng.uniform(0, 80, count)
    region = rng.choice(["n", "s", "w"], count)
    score = -2 + 0.03 * age + 0.8 * (region == "s")
    pay = np.clip(30 + 0.3 * age + 4 * (region == "s") + rng.normal(0, 8, count), 0, 100)
    table = {"age": age, "hours": hours, "region": region, "pay": pay}
    return pd.DataFrame(table | {"member": rng.random(count) < expit(score)})


@cache
def release(deviation: float | None = None) -> PublishedMoments:
    if deviation is None:
        return drawn(SCHEMA, dict(people()), 5, epsilon=2)
    agreement = Agreement.propose(SCHEMA, epsilon=2, delta=1e-6, quorum=20_000)
    clean = exact_totals(agreement, people())

    class Quiet(PublishedMoments):
        """A release with hardly any noise: what is told of it is what statisticians know."""

    Quiet.deviation = deviation
    return Quiet(agreement, 20_000, clean.sums)


seeded = pytest.mark.filterwarnings("ignore::blurfit.errors.NotPrivateWarning")


@cache
def curved(formula: str) -> PublishedModel:
    """A logistic curve, learned in waves."""
    bounds = {"age": (18, 90), "region": ["n", "s", "w"]}
    learner = MomentPerturbationClassifier(
        epsilon=30.0, bounds=bounds, classes=[False, True], formula=formula, waves=3, random_state=0
    )
    return learner.fit(people()).model_


def squares(*columns) -> float:
    """The residual sum of squares of pay on these columns, by least squares on the rows."""
    x = np.column_stack([np.ones(20_000), *columns])
    y = people()["pay"].to_numpy()
    return float(np.linalg.lstsq(x, y, rcond=None)[1][0])


def test_without_noise_a_comparison_is_the_usual_f_test_with_aic_and_bic() -> None:
    rows, quiet = people(), release(1e-3)
    south, west = rows["region"] == "s", rows["region"] == "w"
    small = squares(rows["age"])
    large = squares(rows["age"], rows["hours"], south, west)
    expected = (small - large) / 3 / (large / (20_000 - 5))
    models = [quiet.fit(one) for one in ("pay ~ age + hours + region", "pay ~ age")]
    found = models[0].compare(models[1])
    assert found.statistic == pytest.approx(expected, rel=1e-3)
    assert found.p_value == pytest.approx(stats.f.sf(expected, 3, 19_995), rel=1e-2)
    logarithm = 20_000 * np.log(small / large)
    assert found.aic == pytest.approx(logarithm - 6, rel=0.03)
    assert found.bic == pytest.approx(logarithm - 3 * np.log(20_000), rel=0.03)
    assert "better for the larger" in str(found)
    assert models[1].compare(models[0]).statistic == found.statistic
    frame = models[0].results().compare_f_test(models[1].results())
    assert frame == (found.statistic, found.p_value, 3)


def test_a_line_is_within_a_curve_of_the_same_number() -> None:
    quiet, rows = release(1e-3), people()
    hats = SCHEMA.question("curve(age)").scale(rows["age"].to_numpy())[:, 1:]
    small, large = squares(rows["age"]), squares(*hats.T)
    found = quiet.fit("pay ~ curve(age)").compare(quiet.fit("pay ~ age"))
    assert found.degrees == 2
    expected = (small - large) / 2 / (large / (20_000 - 4))
    assert found.statistic == pytest.approx(expected, rel=0.02, abs=0.02)
    assert found.bic < 0  # a line is enough: it is the truth
    assert release().fit("pay ~ curve(age)").compare(release().fit("pay ~ age")).p_value > 1e-3


def test_noise_makes_a_comparison_say_less_and_some_models_have_none() -> None:
    noisy, quiet = (
        one.fit("pay ~ age + region").compare(one.fit("pay ~ region"))
        for one in (release(), release(1e-3))
    )
    assert 0.05 < noisy.share_of_noise < 1
    assert quiet.share_of_noise < 1e-3
    assert 0 < noisy.aic < quiet.aic
    assert 0 < noisy.bic < quiet.bic
    one, other = release().fit("pay ~ age + region"), release().fit("pay ~ age + hours")
    with pytest.raises(InfeasibleError, match="within the other"):
        one.compare(other)
    with pytest.raises(InfeasibleError, match="within the other"):
        one.compare(one)
    with pytest.raises(InvalidValueError, match="one target"):
        one.compare(release().fit("hours ~ age"))
    with pytest.raises(InvalidValueError, match="another model, and got a str"):
        one.compare("pay ~ age")


def test_mean_responses_and_effects_have_the_errors_of_a_combination() -> None:
    model = release().fit("pay ~ curve(age) + region")
    found = model.mean_response({"age": [18, 90], "region": ["n", "s"]}).to_dict()
    inference = model.inference_of()
    one = inference.combination([1, 0, 0, 0, 0, 0])
    assert found["estimate"][0] == pytest.approx(one.value)
    assert (found["lower"][0], found["upper"][0]) == pytest.approx((one.lower, one.upper))
    other = inference.combination([1, 0, 0, 1, 1, 0])
    assert found["standard_error"][1] == pytest.approx(other.standard_error)
    effect = model.effect("age", at={"region": "s"})
    assert effect.rows == (("18",), ("40",), ("60",), ("90",))
    assert effect.to_dict()["estimate"][3] == pytest.approx(other.value)
    truth = 34 + 0.3 * np.array([18, 40, 60, 90])
    reach = 4 * np.array(effect.to_dict()["standard_error"])
    assert (np.abs(np.array(effect.to_dict()["estimate"]) - truth) < reach).all()
    assert effect.test().degrees == 3
    assert effect.test().p_value < 1e-6
    axes = effect.plot()
    assert len(axes.lines[0].get_xdata()) == 4
    assert axes.collections  # the band
    by_region = model.effect("region")
    assert [row[0] for row in by_region.rows] == ["n", "s", "w"]
    assert model.test("region=s = 0, region=w = 0").statistic == pytest.approx(
        by_region.test().statistic
    )
    with pytest.raises(InvalidValueError, match="'hours' to be one of"):
        model.effect("hours")


@seeded
def test_curves_of_labels_have_odds_ratios_probabilities_and_marginal_effects() -> None:
    rows = people()
    model = curved("member ~ age + region")
    ratios = model.odds_ratios().to_dict()
    assert ratios["coefficient"] == ["age", "region=s", "region=w"]
    truth = np.exp([0.03, 0.8, 0.0])
    assert ((np.array(ratios["lower"]) < truth) & (truth < np.array(ratios["upper"]))).all()
    told = model.mean_response({"age": 90, "region": "s"}).to_dict()
    assert 0 < told["lower"][0] < expit(-2 + 2.7 + 0.8) < told["upper"][0] < 1
    effects = model.marginal_effects(rows).to_frame()
    assert list(effects["change"]) == ["one more", "s for n", "w for n"]
    beta = [one.value for one in model.estimates()]
    score = beta[0] + beta[1] * rows["age"]
    score += beta[2] * (rows["region"] == "s") + beta[3] * (rows["region"] == "w")
    slope = beta[1] * np.mean(expit(score) * (1 - expit(score)))
    assert effects["estimate"][0] == pytest.approx(slope, rel=1e-4)
    bent = curved("member ~ curve(age) + region").effect("age")
    told = bent.to_dict()
    truth = expit(-2 + 0.03 * bent.line)
    assert len(bent.line) > 40  # between knots probabilities are no straight line
    assert np.mean((np.array(told["lower"]) < truth) & (truth < np.array(told["upper"]))) > 0.9
    base = beta[0] + beta[1] * rows["age"]
    change = np.mean(expit(base + beta[2]) - expit(base))
    assert effects["estimate"][1] == pytest.approx(change, rel=1e-6)


@seeded
def test_errors_of_marginal_effects_are_those_of_moved_coefficients() -> None:
    """The delta method against drawing coefficients from their law."""
    rows = people().head(2000)
    model = curved("member ~ age + region")
    found = model.marginal_effects(rows).to_dict()
    inference = model.inference_of()
    drawn = np.random.default_rng(1).multivariate_normal(
        inference.coefficients, inference.covariance, 4000
    )
    x = model.rows_of(rows)
    slopes = [one[1] * np.mean(expit(x @ one) * expit(-(x @ one))) for one in drawn]
    assert found["standard_error"][0] == pytest.approx(np.std(slopes), rel=0.08)


def test_straight_models_need_no_rows_for_marginal_effects_and_have_no_odds_ratios() -> None:
    model = release().fit("pay ~ age + region")
    found = model.marginal_effects().to_dict()
    assert found["estimate"] == pytest.approx([one.value for one in model.estimates()[1:]])
    errors = [one.standard_error for one in model.estimates()[1:]]
    assert found["standard_error"] == pytest.approx(errors)
    bent = release().fit("pay ~ curve(age)")
    with pytest.raises(InvalidValueError, match="stand for the population"):
        bent.marginal_effects()
    over = bent.marginal_effects(people()).to_dict()
    assert abs(over["estimate"][0] - 0.3) < 4 * over["standard_error"][0]
    with pytest.raises(InfeasibleError, match="logistic curve"):
        model.odds_ratios()


def test_standardised_coefficients() -> None:
    rows, found = people(), release().standardised("pay ~ age + region").to_dict()
    south = rows["region"] == "s"
    for place, (value, column) in enumerate([(0.3, rows["age"]), (4.0, south)]):
        truth = value * column.std() / rows["pay"].std()
        assert abs(found["estimate"][place] - truth) < 4 * found["standard_error"][place]
    quiet = release(1e-3).standardised("pay ~ age").to_dict()
    assert quiet["estimate"][0] == pytest.approx(rows["pay"].corr(rows["age"]), rel=1e-3)


def test_a_table_of_coefficients_goes_into_files(tmp_path) -> None:
    model = release().fit("pay ~ age + region")
    answers = model.to_answers()
    for name in ("table.csv", "table.xlsx"):
        answers.save(tmp_path / name)
    frame = pd.read_csv(tmp_path / "table.csv")
    assert frame["estimate"].tolist() == pytest.approx([one.value for one in model.estimates()])
    book = pd.read_excel(tmp_path / "table.xlsx", sheet_name=None)
    assert list(book) == ["rows", "notes"]
    assert book["rows"].equals(frame) or np.allclose(book["rows"]["upper"], frame["upper"])
    assert "ε = 2" in " ".join(book["notes"]["notes"])
    with pytest.raises(InvalidValueError, match=r"\.csv or \.xlsx"):
        answers.save(tmp_path / "table.doc")
