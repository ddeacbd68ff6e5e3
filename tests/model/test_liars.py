"""What a model says of contributors who lie: one sentence, and a caution where waves disagree."""

import numpy as np
import pytest

from blurfit import Agreement
from blurfit.agreement.plan import Plan
from blurfit.learning.sums import Totals
from blurfit.model.course import Course, learn_plan
from blurfit.model.model import PublishedModel
from blurfit.model.release import PublishedMoments, moments_of
from blurfit.model.statement import as_markdown, lies_in_words
from blurfit.schema.schema import Binary, Numeric, Schema, values
from blurfit.simulation import exact_totals, sampler_for

SCHEMA = Schema([Numeric("age", 0, 100), Binary("male")], Numeric("income", 0, 100))
PROMISE = {"epsilon": 1, "delta": 1e-6}
TWO = (("Office", "http://127.0.0.1:8001"), ("University", "http://127.0.0.1:8002"))


def people(count, seed=1):
    rng = np.random.default_rng(seed)
    age, male = rng.uniform(0, 100, count), rng.integers(0, 2, count)
    income = 20 + 0.4 * age + 10 * male + rng.normal(0, 8, count)
    return {"age": age, "male": male, "income": np.clip(income, 0, 100)}


def course_of(plan: Plan, table) -> PublishedModel:
    """The plan's model, of honest people."""
    v, rng = values(SCHEMA, table), np.random.default_rng(7)
    course, start = Course.of(plan, ()), 0
    for quorum in plan.quorums:
        agreement = course.next_agreement()
        rows = v[start : start + quorum]
        start += quorum
        exact = Totals(quorum, agreement.form.products(rows).sum(axis=0), agreement.fingerprint)
        drawn = sampler_for(agreement, exact).draw(rng)
        course = course.then(moments_of(agreement, drawn))
    return learn_plan(plan, course.releases)


def test_waves_that_disagree_are_a_caution_in_every_paper() -> None:
    plan, table = Plan.propose(SCHEMA, **PROMISE, quorum=10_000, waves=2), people(10_000)
    assert course_of(plan, table).doubt is None
    late = np.arange(10_000) >= plan.quorums[0]
    table["income"] = np.where(late, 100 - table["income"], table["income"])
    model = course_of(plan, table)
    assert model.doubt.startswith("Waves 1 and 2 disagree by more than chance")
    assert PublishedModel.from_json(model.to_json()).doubt == model.doubt
    assert f"Caution: {model.doubt}" in " ".join(str(model.summary()).split())
    assert f"**{model.doubt}**" in as_markdown(model)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({}, "longer than honest ones are was refused; within that, anything goes."),
        ({"databases": TWO, "proofs": True}, "Each contributor has proved to the two databases"),
        ({"databases": TWO, "proofs": False}, "One liar is enough to move the model by any amount"),
    ],
    ids=["one database", "proofs", "no proofs"],
)
def test_what_a_dishonest_contributor_could_do_is_said(terms, words) -> None:
    agreement = Agreement.propose(SCHEMA, **PROMISE, quorum=2000, **terms)
    moments = PublishedMoments(agreement, 2000, exact_totals(agreement, people(2000)).sums)
    assert words in lies_in_words(moments)
    assert words in as_markdown(moments.fit())
