"""Models of a release with public rows: families, contrasts, refusals."""

import hashlib

import numpy as np
import pytest

from blurfit import (
    Agreement,
    Binary,
    Categorical,
    InfeasibleError,
    InvalidValueError,
    Numeric,
    PublishedModel,
    PublishedMoments,
    Schema,
    perturb_table,
)
from blurfit.agreement.terms import Terms
from blurfit.model.course import fit_public
from blurfit_server import Store
from support.joint_release import drawn, people, release

MOMENTS = release(20_000, epsilon=3.0)
ROWS = people(5000, 77)


def test_a_label_follows_the_logistic_curve() -> None:
    model = MOMENTS.fit("married ~ income + age + C(region, 'south')", public=ROWS)
    assert (model.link, model.target) == ("logistic", "married")
    some = {name: column[:40] for name, column in people(40, 5).items()}
    score = model.decision_function(some)
    assert model.predict_proba(some)[:, 1] == pytest.approx(1 / (1 + np.exp(-score)))
    names = ["(intercept)", "income", "age", "region=north", "region=west"]
    assert [one.name for one in model.estimates()] == names
    assert model.inference[0].r_squared is None
    assert "R²" not in str(model.summary())
    assert "log-odds" in str(model.summary())
    assert PublishedModel.from_json(model.to_json()).to_json() == model.to_json()


def test_each_class_is_told_from_all_others() -> None:
    """The same classes as yes and no: two levels of the release give a label's coefficients."""
    model = MOMENTS.fit("region ~ income + age + married", public=ROWS)
    assert (model.link, model.outputs) == ("logistic", ("north", "south", "west"))
    some = people(2000, 5)
    chances = model.predict_proba(some)
    assert chances.sum(axis=1) == pytest.approx(1)
    shares = [float(np.mean(np.asarray(some["region"]) == level)) for level in model.outputs]
    assert chances.mean(axis=0) == pytest.approx(shares, abs=0.03)
    assert len(model.inference) == 3
    assert "west" in str(model.summary())
    assert PublishedModel.from_json(model.to_json()).to_json() == model.to_json()
    assert set(model.predict(some)) <= {"north", "south", "west"}


def test_balance_is_told_beside_the_model() -> None:
    model, balance = fit_public(MOMENTS, ROWS)
    assert model.features == ("age", "education", "region", "married")
    assert balance.effective_rows > 1000
    assert f"worth {balance.effective_rows:,.0f}" in model.method


def singles(share: float, **options: str) -> tuple[PublishedMoments, dict[str, np.ndarray]]:
    """A release of people of whom some were formerly married, and public rows in which none was."""
    marital = Categorical("marital", ["single", "married", "formerly"], optional=True)
    schema = Schema([Numeric("age", 18, 90), marital], Numeric("income", 0, 100))
    rng = np.random.default_rng(5)

    def some(count: int, share: float) -> dict[str, np.ndarray]:
        chances = [0.5 - share / 2, 0.5 - share / 2, share]
        age, lives = rng.uniform(18, 90, count), rng.choice(marital.levels, count, p=chances)
        income = 0.5 * age + 20 * (lives == "married") + rng.normal(0, 5, count)
        return {"age": age, "marital": lives, "income": income}

    return drawn(schema, some(20_000, share), rng, epsilon=5, **options), some(2000, 0.0)


def test_a_level_that_no_public_row_has_is_left_out_of_the_table_alone() -> None:
    """All else has its standard errors; a number that is the same for everyone is a refusal."""
    moments, rows = singles(0.0)
    found = {one.name: one for one in moments.fit(public=rows).estimates(1 - 1e-9)}
    assert list(found) == ["(intercept)", "age", "marital=married"]
    assert found["marital=married"].lower < 20 < found["marital=married"].upper
    assert found["marital=married"].standard_error < 3
    unmatched, rows = singles(0.0, sends="targets", public_rows="5a" * 32)
    stuck = unmatched.fit(public=rows | {"age": np.full(2000, 54.0)})
    assert stuck.inference == ()
    assert stuck.refusal.startswith("all public rows have the same 'age'")


@pytest.mark.parametrize("sends", ["everything", "targets"])
def test_nothing_is_said_where_contributors_have_a_level_that_no_public_row_has(sends) -> None:
    """They would pass for singles: at a tenth of all, no interval held what is true."""
    options = {"sends": sends, "public_rows": "5a" * 32, "admission": "anyone"}
    moments, rows = singles(0.0, **options)
    assert moments.fit("income ~ age + marital", public=rows).inference
    unnamed = moments.fit("income ~ age + C(marital, 'formerly')", public=rows)
    assert unnamed.refusal.startswith("no public row has 'marital=formerly', with which other")
    assert not unnamed.inference
    only = {name: values[rows["marital"] == "married"] for name, values in rows.items()}
    moments, rows = singles(0.1, **options)
    if sends == "everything":
        with pytest.raises(InfeasibleError, match="No weights"):
            moments.fit("income ~ age + marital", public=rows)
        return
    assert not moments.fit("income ~ age + marital", public=only).inference
    found = moments.fit("income ~ age + marital", public=rows)
    assert found.refusal.startswith("contributors have 'marital=formerly', which no public row has")
    assert not found.inference


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"target": "region", "family": "poisson"}, InvalidValueError, "lower bound 0"),
        ({"target": "married", "family": "linear"}, InvalidValueError, "yes or no"),
        ({"target": "age", "family": "poisson"}, InvalidValueError, "lower bound 0"),
        ({"family": "logistic"}, InvalidValueError, "yes and no for family='logistic'"),
        ({"family": "gamma"}, InvalidValueError, "family='gamma' to be one of"),
        ({"ridge": 1.0}, InvalidValueError, "no ridge, lasso or uneven with public rows"),
        ({"public": None, "family": "linear"}, InvalidValueError, "public rows with family="),
        ({"public": {"region": ["north"]}}, InvalidValueError, "Expected a column 'age'"),
    ],
)
def test_what_public_rows_cannot_do(options, kind, message) -> None:
    with pytest.raises(kind, match=message):
        MOMENTS.fit(**{"public": ROWS} | options)


def test_rows_that_cannot_match_are_refused() -> None:
    old = people(3000, 3)
    old["age"] = np.full(3000, 89.0) + np.random.default_rng(0).uniform(0, 1, 3000)
    with pytest.raises(InfeasibleError, match="public rows"):
        release(50_000, epsilon=20.0).fit("income ~ age", public=old)


# ---- only products with the target are sent: a release that is read beside public rows alone
DIGEST = hashlib.sha256(b"rows").hexdigest()
TERMS = {"epsilon": 3.0, "delta": 1e-6, "quorum": 4000, "public_rows": DIGEST}
FEATURES = (Numeric("age", 0, 100), Binary("male"), Categorical("region", ["north", "south"]))


def answers(count: int, seed: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    age = generator.uniform(0, 100, count)
    male, region = generator.integers(0, 2, count), generator.integers(0, 2, count)
    score = (age - 50) / 15 + male
    return {
        "age": age,
        "male": male,
        "region": np.array(["north", "south"])[region],
        "income": np.clip(30 + 0.5 * age + 10 * region + generator.normal(0, 5, count), 0, 100),
        "rich": (generator.random(count) < 1 / (1 + np.exp(-score))).astype(int),
    }


def agreement(target=Numeric("income", 0, 100), **more) -> Agreement:  # noqa: B008
    return Agreement.propose(Schema(FEATURES, target), **TERMS, sends="targets", **more)


def collected(agreed: Agreement) -> PublishedMoments:
    with Store() as store:
        store.add(agreed, perturb_table(agreed, answers(4000, 1)))
        with pytest.raises(InfeasibleError, match="public rows that the agreement names"):
            store.publish(agreed)  # sums, and no model of their own
        return store.moments(agreed)


def test_an_agreement_says_it_and_is_read_again() -> None:
    agreed = agreement()
    agreed.verify()
    everything = Agreement.propose(agreed.schema, **TERMS)
    assert (agreed.width, everything.width) == (6, 18)
    assert Agreement.from_json(agreed.to_json()) == agreed
    assert "sends" not in everything.to_dict()
    assert agreed.to_dict()["sends"] == "targets"
    assert agreed.calibration.sigma <= everything.calibration.sigma


def test_the_release_is_read_beside_public_rows_and_in_no_other_way() -> None:
    moments = collected(agreement())
    rows = answers(3000, 9)
    model = moments.fit(public=rows)
    test = answers(2000, 7)
    error = np.sqrt(np.mean((model.predict(test) - test["income"]) ** 2))
    assert error < 0.55 * np.std(test["income"])
    told = {one.name: one for one in model.estimates(0.9999)}
    assert told["age"].lower < 0.5 < told["age"].upper
    for refused in (moments.fit, moments.correlations, lambda: moments.joint):
        with pytest.raises(InfeasibleError, match="Only products with the target were sent"):
            refused()
    with pytest.raises(InfeasibleError, match="Expected 'income' as the target"):
        moments.fit("age ~ male", public=rows)
    assert "people" in moments._repr_html_()


def test_labels_and_what_does_not_go_with_it() -> None:
    moments = collected(agreement(Binary("rich")))
    model = moments.fit("rich ~ age + male", public=answers(3000, 9))
    assert model.link == "logistic"
    assert model.coefficients.effects["age"] == pytest.approx(1 / 15, rel=0.5)
    with pytest.raises(InfeasibleError, match="Expected no public rows"):
        Terms.of(**TERMS, sends="targets", mechanism="input", weight_bound=1.0)
    with pytest.raises(InvalidValueError, match="sends='half'"):
        Terms.of(**TERMS, sends="half")
