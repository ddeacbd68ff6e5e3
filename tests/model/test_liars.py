"""What a model says that 1 % of liars could do, against liars who do it."""

import numpy as np
import pytest

from blurfit import Agreement, perturb_table
from blurfit.agreement.plan import Plan
from blurfit.contributor.blur import proved_with, share
from blurfit.learning.sums import Totals
from blurfit.messages.submissions import Submissions
from blurfit.model.course import Course, learn_plan
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments, moments_of
from blurfit.model.statement import as_markdown, lies_in_words
from blurfit.schema.schema import Binary, Categorical, Numeric, Schema, values
from blurfit.simulation import exact_totals, sampler_for
from blurfit_server import Store
from server_support.sharing import arrival, opened
from support.lying import climbing

SCHEMA = Schema([Numeric("age", 0, 100), Binary("male")], Numeric("income", 0, 100))
PROMISE = {"epsilon": 1, "delta": 1e-6}
TWO = (("Office", "http://127.0.0.1:8001"), ("University", "http://127.0.0.1:8002"))


def people(count, seed=1):
    rng = np.random.default_rng(seed)
    age, male = rng.uniform(0, 100, count), rng.integers(0, 2, count)
    income = 20 + 0.4 * age + 10 * male + rng.normal(0, 8, count)
    return {"age": age, "male": male, "income": np.clip(income, 0, 100)}


def told(model: PublishedModel, name: str) -> float:
    return next(one.value for one in model.estimates() if one.name == name)


def lied(agreement: Agreement, row, count: int) -> Submissions:
    names = np.random.default_rng(5).integers(0, 256, (count, 16), dtype=np.uint8)
    return Submissions(names, agreement.fingerprint, np.tile(row, (count, 1)))


@pytest.mark.parametrize("name", ["age", "male"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_one_database_that_screens_and_adds_up(name, sign) -> None:
    agreement = Agreement.propose(SCHEMA, **PROMISE, quorum=3900)
    with Store() as store:
        store.add(agreement, perturb_table(agreement, people(3960)))
        honest = next(iter(store.submissions(agreement.fingerprint))).numbers.sum(axis=0)
        others = PublishedMoments(agreement, 3960, honest).fit()
        row = climbing(
            agreement,
            honest,
            lambda sums: told(PublishedMoments(agreement, 4000, sums).fit(), name),
            40,
            sign,
        )
        assert store.add(agreement, lied(agreement, row, 40)) == 40
        model = store.publish(agreement)
    stated, reached = model.liars[0][name], abs(told(model, name) - told(others, name))
    assert 0.4 * stated < reached <= stated
    assert reached > 5 * model.estimates()[1].standard_error, "which its interval does not tell"
    read = PublishedModel.from_json(model.to_json())
    assert read.liars == model.liars


@pytest.mark.parametrize(
    "terms",
    [
        {"groups": "region", "overlap": 0.5},
        {"weighting": "region", "factors": {"north": 0.3, "south": 0.25}},
    ],
)
def test_groups_and_weights(terms) -> None:
    """Everybody's model, from sums of which liars may push each block."""
    region = Categorical("region", ["north", "south"])
    schema = Schema([*SCHEMA.features, region], SCHEMA.target)
    agreement = Agreement.propose(schema, epsilon=20, delta=1e-6, quorum=8000, **terms)
    table = people(7920) | {"region": np.tile(["north", "south"], 3960)}
    draw = sampler_for(agreement, exact_totals(agreement, table)).draw(np.random.default_rng(3))

    def fitted(sums, count: int = 8000) -> PublishedModel:
        return PublishedMoments(agreement, count, sums).fit("income ~ age + male")

    honest = told(fitted(draw.sums, 7920 + 80), "age")
    row = climbing(agreement, draw.sums, lambda sums: told(fitted(sums), "age"), 80, 1, steps=3)
    model = fitted(draw.sums + 80 * row)
    stated, reached = model.liars[0]["age"], abs(told(model, "age") - honest)
    assert stated is not None
    assert 0.15 * stated < reached <= stated


def test_two_databases_with_proofs() -> None:
    agreement = Agreement.propose(
        SCHEMA, epsilon=190, delta=1e-6, quorum=190, databases=TWO, proofs=True
    )
    table, liars = people(198), 2
    with Store() as first, Store() as second:
        peer = opened(agreement, first, second)
        exact = exact_totals(agreement, table).sums
        row = climbing(
            agreement,
            exact,
            lambda sums: told(PublishedMoments(agreement, 200, sums).fit(), "age"),
            liars,
            -1,
        )
        false = lied(agreement, row, liars)
        for shared in (
            share(agreement, table),
            proved_with(agreement, false, [bytes([k]) * 128 for k in range(liars)]),
        ):
            for store, shares in ((first, shared.first), (second, shared.second)):
                store.receive(store.collection(agreement.fingerprint), [arrival(shares)])
        second.close_collection(agreement.fingerprint)
        model = PublishedModel.from_json(first.publish_text(agreement.fingerprint, peer))
    assert model.count == 200, "their proofs are good"
    truth = told(PublishedMoments(agreement, 198, exact).fit(), "age")
    stated, reached = model.liars[0]["age"], abs(told(model, "age") - truth)
    assert 0.4 * stated < reached <= stated
    assert "has proved" in lies_in_words(model)


def course_of(plan: Plan, table, liars: float, sign: int) -> PublishedModel:
    """The plan's model with a share of liars in each wave, who know everything."""
    v, rng = values(SCHEMA, table), np.random.default_rng(7)
    course, start = Course.of(plan, ()), 0
    for quorum in plan.quorums:
        agreement, lying = course.next_agreement(), round(liars * quorum)
        rows = v[start : start + quorum - lying]
        start += quorum
        exact = Totals(quorum, agreement.form.products(rows).sum(axis=0), agreement.fingerprint)
        found = sampler_for(agreement, exact).draw(rng).sums
        so_far = course.releases

        def value(sums, agreement=agreement, quorum=quorum, so_far=so_far) -> float:
            release = PublishedMoments(agreement, quorum, sums)
            model = learn_plan(plan, [*so_far, release]) if so_far else release.fit()
            return told(model, "age")

        if lying:
            found = found + lying * climbing(agreement, found, value, lying, sign, steps=3)
        course = course.then(moments_of(agreement, Totals(quorum, found, agreement.fingerprint)))
    return learn_plan(plan, course.releases)


@pytest.mark.parametrize("sign", [-1, 1])
def test_waves(sign) -> None:
    plan, table = Plan.propose(SCHEMA, **PROMISE, quorum=10_000, waves=2), people(10_000)
    truth = told(course_of(plan, table, 0.0, sign), "age")
    model = course_of(plan, table, 0.01, sign)
    stated, reached = model.liars[0]["age"], abs(told(model, "age") - truth)
    assert 0.15 * stated < reached <= stated
    assert "to first order" in as_markdown(model)


def test_waves_that_disagree_are_a_caution_in_every_paper() -> None:
    plan, table = Plan.propose(SCHEMA, **PROMISE, quorum=10_000, waves=2), people(10_000)
    assert course_of(plan, table, 0.0, 1).doubt is None
    late = np.arange(10_000) >= plan.quorums[0]
    table["income"] = np.where(late, 100 - table["income"], table["income"])
    model = course_of(plan, table, 0.0, 1)
    assert model.doubt.startswith("Waves 1 and 2 disagree by more than chance")
    assert PublishedModel.from_json(model.to_json()).doubt == model.doubt
    assert f"Caution: {model.doubt}" in " ".join(str(model.summary()).split())
    assert f"**{model.doubt}**" in as_markdown(model)


def test_where_nothing_can_be_told_the_reason_is() -> None:
    agreement = Agreement.propose(SCHEMA, **PROMISE, quorum=2000, databases=TWO, proofs=False)
    moments = PublishedMoments(agreement, 2000, exact_totals(agreement, people(2000)).sums)
    model = moments.fit()
    assert set(model.liars[0].values()) == {None}
    assert "One liar is enough" in lies_in_words(model)
    assert " any " in str(model.summary())
    one = Agreement.propose(SCHEMA, **PROMISE, quorum=2000)
    moments = PublishedMoments(one, 2000, exact_totals(one, people(2000)).sums)
    assert "standard deviations of their noise" in lies_in_words(moments)
    assert "it has no coefficients with standard errors" in lies_in_words(
        PublishedModel(one, "income", ("age", "male"), np.ones((1, 3)), 2000, "by hand")
    )
